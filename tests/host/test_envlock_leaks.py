"""Secrets where people really put them: git remotes, keys of configurations, command lines, webhooks; at any length."""

import json
import os
import signal
import string
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_migparity.host.envlock import Scrubber, collect, config_facts, render, repo_name, secret_key

# assembled so that no scanner takes this file for a leak
WANDB = "0a1b2c3d4e" * 4
UUID = "0a1b2c3d-1111-2222-3333-444455556666"
SCRUB = Scrubber({"HOME": "/home/zhangsan7", "USER": "zhangsan7", "HOSTNAME": "trainhost-17"})


# ---- git remotes --------------------------------------------------------------------------------------------------

def git(folder, *arguments):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(folder), *arguments], check=True,
                   capture_output=True)


@pytest.mark.parametrize("remote, repo", [
    ("https://oauth2:hunter2secret@gitlab.corp.example", None),
    ("https://oauth2:hunter2secret@gitlab.corp.example/team/port.git", "port"),
    ("ssh://git@gitlab.corp.example:2222/team/port", "port"),
    ("git@gitlab.corp.example:team/port.git", "port"),
])
def test_a_lock_names_the_repository_and_nothing_else_of_its_remote(tmp_path, remote, repo):
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
    git(tmp_path, "remote", "add", "origin", "https://elsewhere.example/x.git")
    git(tmp_path, "remote", "set-url", "origin", remote)
    lock = collect(trees=[("port", str(tmp_path))], torch=False, environ={"PATH": os.environ["PATH"]})
    assert lock["trees"]["port"].get("repo") == repo
    for planted in ("hunter2secret", "oauth2", "gitlab", "corp", "2222"):
        assert planted not in render(lock)


FORMS = [
    "https://{user}:{password}@{host}{path}", "http://{user}:{password}@{host}:8443{path}",
    "https://{password}@{host}{path}", "https://{user}:@{host}{path}", "HTTPS://{user}:{password}@{host}{path}",
    "ssh://{user}@{host}{path}", "ssh://{user}:{password}@{host}:22{path}", "git+ssh://{user}@{host}{path}",
    "https://{user}:{password}@[2001:db8::17]:8443{path}", "ssh://{user}@[2001:db8::17]{path}",
    "https://{user}:{password}@10.20.30.40{path}", "{user}@{host}:{path}", "{user}@[2001:db8::17]:{path}",
    "{user}:{password}@{host}:{path}", "{host}:{path}", "//{host}{path}", "\\\\{host}{path}", "https:///{host}{path}",
    "file://{host}{path}", "https:{host}{path}", "ext::ssh {user}@{host} {path}", "hg::https://{user}:{password}@{host}",
    "https://{user}:{password}@{host}{path}?token={password}", "https://{host}{path}?u={user}@{password}",
    "https://{host}{path}#{user}@{password}", "https://{user}:{password}@{host}{path};x={password}",
    "{user}@{host}", "{host}", "/home/{user}", "file:///home/{user}", "ssh://{host}/~{user}", "C:\\Users\\{user}",
]
hosts = st.sampled_from(["gitlab.corp.example", "gpu-node17", "a.b.c.d.example"])
secrets = st.text(string.ascii_letters + string.digits + "@:/?#%+!$&*=._-~", min_size=4, max_size=20)
paths = st.sampled_from(["", "/", "/.git", "/team/port.git", "/port", "/team/port/", "/team/port/.git"])


@given(st.sampled_from(FORMS), hosts, secrets, paths)
@example("https://{user}:{password}@{host}{path}", "gitlab.corp.example", "hunter2secret", "")
@example("https://{user}:{password}@{host}{path}", "gitlab.corp.example", "p@ss", "/team/port.git")
@example("https://{user}:{password}@{host}{path}", "gitlab.corp.example", "p/ss#w?r;d", "/team/port.git")
def test_no_part_of_a_remotes_login_or_host_is_ever_taken_for_its_repository(form, host, secret, path):
    """The path names the repository `port` or nothing: whatever else comes out is a part of the rest."""
    remote = form.format(user="zhang.wei", password="#" + secret + "#", host=host, path=path)
    assert repo_name(remote) in ("", "port")


@pytest.mark.parametrize("remote, repo", [
    ("https://h.example/team/port.git", "port"), ("https://u:p@ss@h.example/team/port.git", "port"),
    ("https://u:p/ss@h.example/team/port.git", "port"), ("ssh://git@h:22/port", "port"), ("git@h:port.git", "port"),
    ("host.example:team/port", "port"), ("git@[2001:db8::1]:team/port", "port"), ("/data/port/.git", "port"),
    ("/data/port", "port"), ("../port.git", "port"), ("port.git", "port"), ("file:///data/port", "port"),
    ("D:\\code\\port", "port"), ("./port", "port"), ("https://h.example/o/robot.win", "robot.win"),
])
def test_the_repositorys_name_of_an_ordinary_remote_is_kept(remote, repo):
    assert repo_name(remote) == repo


# ---- configurations -----------------------------------------------------------------------------------------------

def recorded(tmp_path, values):
    (tmp_path / "c.json").write_text(json.dumps(values))
    return config_facts(str(tmp_path / "c.json"), SCRUB)["values"]


SECRET_KEYS = ["key", "wandb_key", "WANDB_API_KEY", "pass", "db_pass", "dbPass", "pw", "smtp_pw", "passcode", "ak", "sk",
               "obs_ak", "obs.sk", "access_token", "accessToken", "bot_token", "AccountKey", "shared_access_key", "webhook",
               "feishu_webhook", "webhook_url", "sig", "密码", "token", "s3_key", "master_key"]


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_value_under_a_secrets_key_is_replaced(tmp_path, key):
    assert set(recorded(tmp_path, {key: "letmein", "in": {key: "letmein"}, "list": [{key: "letmein"}]}).values()) == {
        "<redacted>"}


@pytest.mark.parametrize("key", ["access_token", "auth_token", "bot_token", "db_pass", "passcode", "pw", "secret", "token"])
def test_a_number_under_a_secrets_key_is_replaced(tmp_path, key):
    assert recorded(tmp_path, {key: 48151623}) == {key: "<redacted>"}


@pytest.mark.parametrize("key", ["state_key", "image_key", "door_key", "x_key", "hfkey"])
@pytest.mark.parametrize("value", [WANDB, UUID, "AbCdEf0123456789xyz"])
def test_a_random_word_under_any_key_is_replaced(tmp_path, key, value):
    assert recorded(tmp_path, {key: value}) == {key: "<redacted>"}


ORDINARY = {
    "pad_token_id": 151643, "pad_token": "<pad>", "eos_token": "</s>", "max_tokens": 2048, "num_image_tokens": 256,
    "num_key_value_heads": 8, "key_dim": 64, "key_padding_mask": True, "skip": "none", "skip_first": 3, "sk_scale": 0.5,
    "sk_mode": "fast", "ask": "yes", "task": "stack_blocks", "mask": "causal", "top_k": 5, "top_p": 0.9, "pass_rate": 0.8,
    "num_pass": 2, "max_pass": 3, "high_pass": 0.1, "passes": 4, "bypass": "off", "image_key": "observation.images.cam_high",
    "state_key": "observation.state", "obs_keys": "qpos", "action_key": "action", "keyframe": 10, "monkey": "see",
    "author_count": 2, "tokenizer": "qwen", "hidden_size": 4096, "commit": "0123456789abcdef0123456789abcdef01234567",
    "sha256": "0123456789abcdef" * 4, "cudnn": "9.1.0.70", "cublas": "12.4.5.8", "key": True, "sig": 0.3, "ak": 1.5,
    "run": "lingbot-vla-v2_robotwin_50k_bf16", "hook": "hooks.py", "git_hooks": "port/.git/hooks/pre-commit",
    "image": "registry.example/vla:2.6@sha256:" + "0123456789abcdef" * 4, "url": "https://huggingface.co/robbyant/lingbot", "ratio": "16:9",
    "command": "train --max-tokens 2048 --pad-token <pad> --key-dim 64 --skip 1 --lr 1e-4", "time": "12:30:00",
    "flags": "--xla_gpu_deterministic_ops=true", "alloc": "max_split_size_mb:128,expandable_segments:True",
}


@pytest.mark.parametrize("key", ORDINARY)
def test_an_ordinary_training_option_is_kept_as_it_is(tmp_path, key):
    assert recorded(tmp_path, {key: ORDINARY[key]}) == {key: ORDINARY[key]}


def test_an_attention_block_called_key_is_no_secret(tmp_path):
    assert recorded(tmp_path, {"attention": {"key": {"bias": 1, "rank": 8}}}) == {
        "attention.key.bias": 1, "attention.key.rank": 8}


@pytest.mark.parametrize("values", [
    {"command": ["train", "--token", "letmein", "--lr", "1"]}, {"command": [["--db-pass", "letmein"]] * 2},
    {"command": ["x"] * 20 + ["--api-key", "letmein"]}, {"env": [{"name": "API_KEY", "value": "letmein"}]},
    {"env": [{"name": "db_pass", "value": {"from": "letmein"}}]}, {"auth": {"kind": ["letmein"]}},
])
def test_a_secret_beside_its_name_is_replaced(tmp_path, values):
    text = json.dumps(recorded(tmp_path, values))
    assert "letmein" not in text
    assert "<redacted>" in text


def test_arguments_after_an_ordinary_flag_are_kept(tmp_path):
    assert recorded(tmp_path, {"command": ["--max-tokens", "2048", "--lr", "1"]})["command"] == [
        "--max-tokens", "2048", "--lr", "1"]


def test_a_long_key_does_not_carry_its_text_out(tmp_path):
    assert max(map(len, recorded(tmp_path, {"k" * 5000: 1}))) <= 160


# ---- text ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text, planted", [
    (f"WANDB_API_KEY={WANDB}", WANDB), (f"export WANDB_API_KEY='{WANDB}' && train", WANDB), (f"wandb_key: {WANDB}", WANDB),
    (f"wandb login {WANDB}", WANDB), (f"wandb login --relogin {WANDB}", WANDB), (f"MY_KEY={WANDB}", WANDB),
    ('{"api_key": "open sesame", "lr": 1}', "sesame"), ('{\\"api_key\\": \\"sesame\\"}', "sesame"),
    ("password = 'open sesame' --lr 1", "sesame"), ("password=\"open sesame", "sesame"), ("密码：sesame", "sesame"),
    ("--db-pass sesame --lr 1", "sesame"), ("token => sesame", "sesame"), ("Authorization: Bearer sesame", "sesame"),
    ("Authorization: Basic c2VzYW1l", "c2VzYW1l"),
    ("https://open.feishu.cn/open-apis/bot/v2/hook/" + UUID, UUID), ("open.feishu.cn/open-apis/bot/v2/hook/" + UUID, UUID),
    ("https://hooks.slack.com/services/" + "T0AB/B0CD/sesame", "sesame"), ("see hooks.slack.com/services/T/B/sesame", "sesame"),
    ("https://oapi.dingtalk.com/robot/send?access_token=sesame", "sesame"),
    ("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=" + UUID, UUID),
    ("https://discord.com/api/webhooks/123/sesame", "sesame"), ("https://x.webhook.office.com/webhookb2/sesame/y", "sesame"),
    ("https://api.telegram.org/bot123456789:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1/send", "AAHdqTcvCH1v"),
    ("chat 123456789:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1", "AAHdqTcvCH1v"),
    ("DefaultEndpointsProtocol=https;AccountName=x;AccountKey=" + "c2VzYW1l/abc==;EndpointSuffix=y", "c2VzYW1l"),
    ("LTAI" + "5tQnKxyzABCDEFGH", "5tQnKxyz"), ("ak=QWERTYUIOPASDFGHJK12 sk=sesame", "sesame"),
    ("ak " + "QWERTYUIOPASDFGHJK12", "QWERTYUIOP"), ("obsutil config -i=sesame -k=x", "sesame"),
    ("user:p@ss@host/db", "ss@"), ("user:p@ss@host/db", "user"), ("mysql://user:p@ss@db:3306/x", "ss@"),
    ("https://user:pa/ss@h.example/x", "pa/ss"), ("https://user:pa#ss@h.example/x", "pa"),
    ("https://user:pa'ss@h.example/x", "ss"), ('https://user:pa"ss@h.example/x', "pa"),
    ("http://10.1.2.3:8080/x", "10.1.2.3"), ("http://user:pw@10.1.2.3/x", "10.1.2.3"), ("http://[2001:db8::17]:80/x", "db8"),
    ("tcp://[fe80::1%eth0]:29500", "fe80"), ("rendezvous at 10.1.2.3:29500", "10.1.2.3"), ("at [2001:db8::17]:80", "db8"),
    ("git@gitlab.corp.example:team/port", "corp"), ("mail li.si@corp.example", "corp"),
])
def test_a_secret_in_a_text_is_replaced_and_stays_so(text, planted):
    once = SCRUB.text(text)
    assert planted not in once
    assert SCRUB.text(once) == once


plain = st.text("abz AB09_.-:=@/\"'#?[]{}", max_size=40)


@given(plain, st.sampled_from(["user:{}@host", "https://u:{}@h.example/x", "--token {} ", "api_key={} ", "db_pass: {} "]),
       st.text(string.ascii_letters + string.digits + "@!$%&*+", min_size=6, max_size=20).map(lambda text: "Q7" + text),
       plain)
def test_a_planted_password_never_comes_through_whole(before, form, password, after):
    text = SCRUB.text(f"{before} {form.format(password)} {after}")
    assert password not in text.replace("<redacted>", "")


# ---- length -------------------------------------------------------------------------------------------------------

@pytest.fixture
def alarm():
    """Ends a test that takes longer than 20 s, from inside a regular expression too once it returns."""
    def late(_signal, _frame):
        raise TimeoutError("more than 20 s")
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


REPEATED = ["a", "a.", "a:", "a@", "a=", "key=", "token=1 ", "--a ", "://", "a://", "a:1/", "eyJ", "-eyJ", "a+", "aA1+", "'",
            '"key":', "hook.", "[::", "1.", "1" * 12 + ":", "bearer ", "C:\\", " ", "https://u:"]


@pytest.mark.parametrize("unit", REPEATED)
@pytest.mark.parametrize("end", ["", "@", "="])
def test_the_time_is_linear_in_the_text(unit, end, alarm):
    """A quarter of a megabyte of what makes patterns start again and again. Quadratic, each took minutes."""
    assert len(SCRUB.short(unit * ((1 << 18) // len(unit)) + end)) <= 160


@pytest.mark.parametrize("value", ["x" * (1 << 20), "word " * (200 * 1024), "a@b:" * (256 * 1024)])
def test_a_configuration_of_one_megabyte_is_read_in_seconds(tmp_path, value, alarm):
    (tmp_path / "c.json").write_text(json.dumps({"text": value[:(1 << 20) - 40]}))
    assert len(config_facts(str(tmp_path / "c.json"), SCRUB)["values"]["text"]) <= 160


@pytest.mark.parametrize("at", [0, 130, 139, 140, 155, 159, 160, 5000, 100_000])
def test_a_secret_where_a_long_value_is_cut_does_not_come_through(at):
    """Neither its head, nor its influence on the hash: the hash is of the scrubbed text."""
    values = ["x" * at + f" token={secret} " + "y" * 500 for secret in ("sesame-one", "sesame-two!")]
    first, second = map(SCRUB.short, values)
    assert first == second
    assert "sesame" not in first


def test_two_long_values_that_differ_behind_the_cut_are_told_apart():
    assert SCRUB.short("x " * 5000 + "a") != SCRUB.short("x " * 5000 + "b")


# ---- numbers ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("rank", ["１", "²", "٣", "1_0", " 1", "-1", ""])
def test_a_rank_is_written_in_ascii_digits(rank):
    lock = collect(environ={"RANK": rank, "WORLD_SIZE": rank, "PATH": ""}, torch=False)
    assert "rank" not in lock


def test_only_key_names_of_secrets_are_secret():
    assert not any(secret_key(key) for key in ("max_steps", "keyboard", "skew", "akin", "task", "pwm", "passthrough"))
