"""Nothing that could be a secret, a person or a machine leaves with the lock; what is harmless stays comparable."""

import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.host.envlock import LISTED, Scrubber, collect, config_facts, render, secret_key

# assembled so that no scanner takes this file for a leak
PLANTED = {
    "hub": "hf_" + "QwErTyUiOpAsDfGhJkLzXcVbNm", "github": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "cloud": "AKIA" + "IOSFODNN7EXAMPLE", "model": "sk-" + "proj-abcdefghijklmnopqrstuv",
    "jwt": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl", "plain": "correct-horse-battery",
    "scope": "ms-" + "0a1b2c3d-1111-2222-3333-444455556666", "lab": "glpat-" + "abcDEF123456ghiJKL",
}
PERSON, MACHINE = "zhangsan7", "trainhost-17"
HOME = f"/home/{PERSON}"


def environ(**more):
    return {"HOME": HOME, "USER": PERSON, "HOSTNAME": MACHINE, "PATH": "", **more}


def git(folder, *arguments):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(folder), *arguments], check=True,
                   capture_output=True)


@pytest.fixture
def leaky_host(tmp_path, monkeypatch):
    """A package, a tree, configurations and an environment, each with secrets where people put them."""
    info = tmp_path / "site" / "leaky-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leaky\nVersion: 1.0\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
    (info / "direct_url.json").write_text(json.dumps({
        "url": f"https://{PERSON}:{PLANTED['github']}@git.example/team/leaky.git?private_token={PLANTED['plain']}",
        "vcs_info": {"vcs": "git", "commit_id": "a" * 40}}))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "-q")
    git(tree, "remote", "add", "origin", f"https://oauth2:{PLANTED['lab']}@git.example/{PERSON}/port.git")
    (tree / "a.py").write_text("x = 1\n")
    git(tree, "add", "."), git(tree, "commit", "-qm", "a")
    settings = {"lr": 1e-4, "max_tokens": 2048, "pad_token": "<pad>", "tokenizer": "qwen", "hf_token": PLANTED["hub"],
                "wandb": {"api_key": PLANTED["plain"], "entity": PERSON},
                "auth": {"kind": "x", "value": PLANTED["plain"]},
                "command": f"train --token {PLANTED['plain']} --lr 1", "hub": f"login {PLANTED['scope']}",
                "data": f"{HOME}/data/robotwin", "url": f"https://{PERSON}:{PLANTED['plain']}@cdn.example/x?sig=abc#y",
                "proxy": f"{PERSON}:{PLANTED['plain']}@10.0.0.1:8080", "note": f"seen on {MACHINE}",
                "list": ["ok", PLANTED["cloud"]], PLANTED["model"]: 1, "session": {"cookies": [PLANTED["plain"]]},
                "secretPin": 48151623, "header": f"Authorization: Bearer {PLANTED['jwt']}"}
    (tmp_path / "train.json").write_text(json.dumps(settings))
    (tmp_path / "more.toml").write_text(f'[hub]\npassword = "{PLANTED["plain"]}"\nrepo = "a/b"\n')
    return collect(environ=environ(PATH="/usr/bin:/bin", HF_TOKEN=PLANTED["hub"], OMP_NUM_THREADS="8",
                                   PYTORCH_CUDA_ALLOC_CONF=PLANTED["model"], XLA_FLAGS=f"--dump={HOME}/x"),
                   trees=[("port", str(tree))], torch=False,
                   configs=[("train", str(tmp_path / "train.json")), ("more", str(tmp_path / "more.toml")),
                            ("gone", f"{HOME}/gone.json")])


def test_no_planted_secret_appears_anywhere(leaky_host):
    text = render(leaky_host)
    for name, secret in PLANTED.items():
        assert secret not in text, name
    assert "48151623" not in text


def test_no_user_home_or_host_name_appears_anywhere(leaky_host):
    text = render(leaky_host)
    for name in (PERSON, MACHINE, HOME):
        assert name not in text


def test_what_matters_is_still_there(leaky_host):
    """Redaction that empties the lock would be as useless as a leak."""
    values = leaky_host["configs"]["train"]["values"]
    assert {"lr": 1e-4, "max_tokens": 2048, "pad_token": "<pad>", "tokenizer": "qwen"}.items() <= values.items()
    assert (values["data"], values["url"]) == ("~/data/robotwin", "https://cdn.example/x")
    assert values["list"] == ["ok", "<redacted>"]
    assert leaky_host["configs"]["more"]["values"] == {"hub.password": "<redacted>", "hub.repo": "a/b"}
    assert "error" in leaky_host["configs"]["gone"]
    assert leaky_host["packages"]["leaky"][1:] == ["vcs", "", "pure", {
        "url": "https://git.example/team/leaky.git", "commit": "a" * 40}]
    assert (leaky_host["trees"]["port"]["repo"], leaky_host["trees"]["port"]["dirty"]) == ("port", 0)
    assert leaky_host["env"]["OMP_NUM_THREADS"] == "8"


def test_only_listed_variables_are_read():
    lock = collect(environ={**dict.fromkeys(LISTED, "1"), "AWS_REGION": "eu-west-9", "MY_FLAG": "mine"}, torch=False)
    assert set(lock["env"]) == set(LISTED)
    assert not any(secret_key(name.lower()) for name in LISTED if name != "TOKENIZERS_PARALLELISM")


@pytest.mark.parametrize("key", ["token", "hf_token", "HF_TOKEN", "apiKey", "api-key", "client_secret", "db_password",
                                 "Authorization", "cookie", "aws_access_key_id", "private_key", "username",
                                 "credentials"])
def test_keys_that_announce_a_secret(key):
    assert secret_key(key)


@pytest.mark.parametrize("key", ["max_tokens", "num_token", "tokenizer", "pad_token_id", "eos_token", "image_token",
                                 "keyframe", "author_count", "hidden_size", "passes"])
def test_keys_of_numbers_that_only_look_like_it(key):
    assert not secret_key(key, text=False)


words = st.text("abcdefghij klmno/.-_=:", max_size=30)


@given(words, st.sampled_from(sorted(set(PLANTED) - {"plain"})), words)
def test_a_secret_by_its_shape_is_replaced_wherever_it_stands(before, name, after):
    text = Scrubber(environ()).text(f"{before} {PLANTED[name]} {after}")
    assert PLANTED[name] not in text


@given(st.text(max_size=60))
def test_scrubbing_twice_changes_nothing_more(text):
    scrub = Scrubber(environ())
    once = scrub.text(text)
    assert scrub.text(once) == once


@pytest.mark.parametrize("text, clean", [
    ("https://deploy-token-9@h.example/x", "https://h.example/x"),
    ("git+ssh://me:pw@h.example/x.git#egg=y", "git+ssh://h.example/x.git"),
    ("/home/lisi/data", "~/data"), ("/root/data", "~/data"), ("C:\\Users\\lisi\\data", "~\\data"),
    ("/rootfs/home", "/rootfs/home"), ("/data/root/x", "/data/root/x"), ("/data/homework", "/data/homework"),
    ("a 3.10.0 torch", "a 3.10.0 torch"),
    ("0123456789abcdef" * 4, "0123456789abcdef" * 4),  # a sha256 is no secret
])
def test_text_without_people(text, clean):
    assert Scrubber(environ()).text(text) == clean


def test_an_error_message_is_scrubbed_too(tmp_path):
    """git names the folder that it could not enter; that folder may lie in a home."""
    lock = collect(environ={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, trees=[("x", str(tmp_path / "gone"))],
                   configs=[("c", str(tmp_path / "gone.json"))], torch=False)
    assert "error" in lock["trees"]["x"]
    assert str(tmp_path) not in render(lock)


@pytest.mark.parametrize("name, content, unread", [
    ("c.json", b"{", "JSONDecodeError"), ("c.json", b"\xff\xfe", "UnicodeDecodeError"),
    ("c.toml", b"= 1", "Decode"),
    ("c.json", b"[" * 100_000, "RecursionError"), ("c.ini", b"[a]", "not .json"),
    ("c.json", b" " * (2 << 20), "larger"),
])
def test_a_configuration_that_cannot_be_parsed_keeps_its_hash(tmp_path, name, content, unread):
    (tmp_path / name).write_bytes(content)
    facts = config_facts(str(tmp_path / name), Scrubber(environ()))
    assert len(facts["sha256"]) == 32
    assert unread in facts["unread"]


def test_a_large_configuration_is_cut_and_says_so(tmp_path):
    (tmp_path / "c.json").write_text(json.dumps({f"k{index}": index for index in range(1000)} | {"deep": "x" * 5000}))
    facts = config_facts(str(tmp_path / "c.json"), Scrubber(environ()))
    assert (len(facts["values"]), facts["dropped"]) == (400, 601)


def test_yaml_is_read_where_the_host_can_and_hashed_where_it_cannot(tmp_path, monkeypatch):
    import sys
    (tmp_path / "c.yaml").write_text("lr: 1\n")
    monkeypatch.setitem(sys.modules, "yaml", None)
    facts = config_facts(str(tmp_path / "c.yaml"), Scrubber(environ()))
    assert facts["unread"] == "no reader on this host: yaml"
    fake = type(sys)("yaml")
    fake.safe_load = lambda text: {"lr": 1}
    monkeypatch.setitem(sys.modules, "yaml", fake)
    assert config_facts(str(tmp_path / "c.yaml"), Scrubber(environ()))["values"] == {"lr": 1}
