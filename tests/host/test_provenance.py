"""What configurations ask for: the loader's field and not the name, every candidate kept, nothing run."""

import json
import sys

import pytest

from pytest_migparity.host.envlock import Scrubber
from pytest_migparity.host.provenance import collect_asked, leaving, log_lines
from pytest_migparity.wire.provenance import Asked, Provenance, ProvenanceError, parse, to_text

OPENPI = '''
import openpi.training.weight_loaders as weight_loaders
raise SystemExit("a configuration is read and not run")
_CONFIGS = [
    TrainConfig(name="pi05_libero", model=Pi0Config(pi05=True), batch_size=256,
                weight_loader=weight_loaders.CheckpointWeightLoader("gs://openpi-assets/checkpoints/pi05_base/params")),
    TrainConfig(name="pi0_libero", pytorch_weight_path=None,
                weight_loader=weight_loaders.CheckpointWeightLoader("gs://openpi-assets/checkpoints/pi0_base/params")),
    TrainConfig(name="pi0_own", weight_loader=weight_loaders.CheckpointWeightLoader(base_path())),
]
'''


@pytest.fixture
def written(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return str(path)
    return write


def chosen(found):
    return [(asked.intent, asked.field, asked.value) for asked in found if asked.chosen]


def test_openpis_weight_loader_and_not_the_name_of_the_configuration(written):
    path = written("config.py", OPENPI)
    found = collect_asked([path], config="pi05_libero")
    assert found == (Asked("weight_loader.params_path", "gs://openpi-assets/checkpoints/pi05_base/params", "config.py",
                           "init", chosen=True),)


def test_a_field_that_asks_for_nothing_gives_way_to_one_that_does(written):
    found = collect_asked([written("config.py", OPENPI)], config="pi0_libero")
    assert chosen(found) == [("init", "weight_loader.params_path", "gs://openpi-assets/checkpoints/pi0_base/params")]
    assert [asked.value for asked in found if asked.field == "pytorch_weight_path"] == [""]


def test_a_path_that_is_computed_is_not_guessed(written):
    """It is kept as what it is; the judge takes it for no witness."""
    found = collect_asked([written("config.py", OPENPI)], config="pi0_own")
    assert chosen(found) == [("init", "weight_loader.params_path", "<computed>")]


@pytest.mark.parametrize("name", ["pi9", ""])
def test_a_configuration_that_is_not_there(written, name):
    path = written("config.py", OPENPI)
    if name:
        with pytest.raises(ProvenanceError, match=r"config\.py: 0 configurations are called 'pi9'"):
            collect_asked([path], config=name)
    else:
        assert collect_asked([path]) == ()


def test_lingbots_yaml(written):
    pytest.importorskip("yaml")
    path = written("train.yaml", "model:\n  model_path: /w/qwen\ntrain:\n  load_checkpoint_path: null\n"
                                 "  enable_resume: true\n")
    assert chosen(collect_asked([path])) == [("init", "model.model_path", "/w/qwen"),
                                             ("resume", "train.enable_resume", "true")]


def test_lerobots_command_line_overrides_its_file(written):
    path = written("train_config.json", {"policy": {"pretrained_path": "lerobot/pi0_base"}, "resume": False})
    found = collect_asked([path], ["--policy.pretrained_path=lerobot/pi05_base", "--resume", "--steps", "3000"])
    assert chosen(found) == [("init", "policy.pretrained_path", "lerobot/pi05_base"), ("resume", "resume", "true")]
    assert len(found) == 2


def test_megatrons_arguments():
    found = collect_asked([], ["--load", "/w/ckpt", "--finetune", "--pretrained-checkpoint", "/w/base"])
    assert sorted(chosen(found)) == [("init", "pretrained_checkpoint", "/w/base"), ("resume", "load", "/w/ckpt")]


def test_other_things_that_are_loaded_are_no_checkpoints(written):
    assert collect_asked([written("a.json", {"data": {"load": "parquet"}, "tokenizer_path": "/w/qwen"})]) == ()


@pytest.mark.parametrize(("arguments", "value"), [
    (["--resume=true"], "true"), (["--resume=false"], ""), (["--no-resume"], ""), (["resume=/w/x"], "/w/x"),
    (["--resume", "--lr", "1"], "true"), (["--resume_from_checkpoint=null"], "")])
def test_what_a_flag_says(arguments, value):
    assert [asked.value for asked in collect_asked([], arguments)] == [value]


def test_every_candidate_is_kept_and_the_first_field_decides(written):
    """The model's own backbone is named as well; the policy's checkpoint decides."""
    path = written("train.json", {"policy": {"pretrained_path": "/w/policy", "vlm": {"model_path": "/w/vlm"}}})
    found = collect_asked([path])
    assert [(asked.value, asked.chosen) for asked in found] == [("/w/policy", True), ("/w/vlm", False)]


def test_files_that_contradict_each_other_are_both_marked(written):
    found = collect_asked([written("a.json", {"pretrained_path": "/w/a"}), written("b.json", {"pretrained_path": "/w/b"})])
    assert [(asked.file, asked.chosen) for asked in found] == [("a.json", True), ("b.json", True)]


@pytest.mark.parametrize(("name", "text", "said"), [
    ("a.json", "{", "a.json cannot be read"), ("a.json", "[" * 200_000, "a.json cannot be read"),
    ("a.py", "x = (", "a.py cannot be read"), ("a.py", "x = " + "(" * 5000 + ")" * 5000, "a.py cannot be read"),
    ("a.cfg", "x = 1", "expected a configuration as"), ("a.json", " " * (1 << 21), "larger than"),
    ("a.json", json.dumps({"a": [0] * 100_001}), "more than 100000 values"),
])
def test_a_configuration_that_cannot_be_read_is_named(written, name, text, said):
    with pytest.raises(ProvenanceError) as caught:
        collect_asked([written(name, text)])
    assert said in str(caught.value)


@pytest.mark.parametrize(("text", "said"), [
    ("a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{name}: &{name} [{','.join(['*' + chr(ord(name) - 1)] * 10)}]\n" for name in "bcdefgh"), "more than 100000"),
    ("a: !!python/object/apply:os.system ['exit 1']", "no YAML"), ("a: [", "no YAML")])
def test_a_hostile_yaml(written, text, said):
    """Aliases that would unfold to 10^8 values, a tag that would run a command."""
    pytest.importorskip("yaml")
    with pytest.raises(ProvenanceError, match=said):
        collect_asked([written("a.yaml", text)])


def test_yaml_without_its_package_says_what_to_do(written, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ProvenanceError, match="PyYAML is not installed"):
        collect_asked([written("a.yaml", "a: 1")])


def test_a_file_that_is_not_there():
    with pytest.raises(ProvenanceError, match=r"gone\.json: No such file"):
        collect_asked(["/nowhere/gone.json"])


def test_the_lines_about_loading_are_picked_out_and_bounded():
    log = ["Step 1, Loss 0.5", "Starting training from scratch.\n", "  - lm_head.weight", "x" * 50_000,
           "[I] Restoring checkpoint from /w/pi0/params. " + "y" * 5000]
    found = log_lines(log)
    assert [line.number for line in found] == [2, 3, 5]
    assert found[0].text == "Starting training from scratch."
    assert len(log_lines(["resume"] * 5000)) == 1000
    assert parse(to_text(Provenance(lines=found))).lines == found


def test_what_leaves_names_neither_person_nor_secret_and_stays_one_path():
    home = "/home/somebody/ckpt/pi0"
    document = Provenance((Asked("model_path", home, "a.json", "init", True),),
                          log_lines([f"Loaded PyTorch weights from {home}", "token=hf_abcdefghijklmnop resume"]))
    gone = leaving(document, Scrubber({}).text)
    assert "somebody" not in to_text(gone)
    assert "hf_abcdefghijklmnop" not in to_text(gone)
    assert gone.asked[0].value in gone.lines[0].text
