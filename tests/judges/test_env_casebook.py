"""Public accuracy reports whose cause L0 should name: each as two synthetic locks, held to the casebook's verdict.

What a case says about losses, success rates or tensors belongs to other levels and is left out here.
"""

import csv
from pathlib import Path

import pytest

from pytest_migparity.core.evidence import EnvLock, EnvRules, Evidence, Policy, Recorded
from pytest_migparity.core.limits import Floors
from pytest_migparity.core.verdict import Witness
from pytest_migparity.judges.envmatch import judge_env

BOOK = Path(__file__).resolve().parents[2].parent / "shared" / "casebook" / "cases.csv"
GPU = {"devices": [["NVIDIA A100", "8.0", "81920", 1]]}
NPU = {"devices": [["910B3", 1]]}
WHEEL = ["4.57.3", "index", "aaaaaaaaaaaa", "pure"]


def lock(packages=None, config=None, **sections):
    documents = {"packages": {"transformers": WHEEL, **(packages or {})}, "env": {}, "listed": [], **sections}
    if config is not None:
        documents["configs"] = {"train": {"sha256": repr(config), "values": config}}
    return documents


def side(name, documents):
    runs = (Recorded(EnvLock(tuple(documents)), Witness(name, "real", "env.json", name[0] * 64)),)
    return Evidence(name, "env", runs)


@pytest.fixture
def held_to(request):
    """Judge two locks and hold the outcome to the row whose id the test carries; returns the finding."""
    case = request.node.name.split("_")[1]
    if not BOOK.is_file():
        pytest.skip("the casebook is not beside this checkout")
    with BOOK.open(encoding="utf-8", newline="") as stream:
        row = next(row for row in csv.DictReader(stream) if row["id"] == case)

    def hold(baseline, *candidate, must=None, **rules):
        rules = EnvRules(must_match={"transformers": "*"} if must is None else must, **rules)
        finding = judge_env(side("baseline", [baseline]), side("candidate", candidate), limits={}, floors=Floors(),
                            policy=Policy(env=rules))
        assert row["level_code"] == "L0"
        assert finding.outcome.value.lower() == row["verdict_code"], [item.code for item in finding.notes]
        return finding
    return hold


def test_C13_saturating_overflow_mode(held_to):
    finding = held_to(lock(cuda=GPU), lock(npu=NPU, env={"INF_NAN_MODE_ENABLE": "0"}))
    assert finding.first_divergence.at == "INF_NAN_MODE_ENABLE"


def test_C15_requested_option_not_effective(held_to):
    finding = held_to(lock(config={"ddp.reduce_in_fp32": True}), lock(config={"ddp.reduce_in_fp32": False}),
                      requested={"config:train.ddp.reduce_in_fp32": "true"})
    assert [item.params["side"] for item in finding.notes if item.code == "env-requested"] == ["candidate"]


def test_C18_device_conditional_default(held_to):
    """The GPU's dump says fp16 = null, the NPU's a loss scale that nobody asked for: its counterpart is unknown."""
    finding = held_to(lock(config={"lr": 1.0, "fp16": None}), lock(config={"lr": 1.0, "fp16.loss_scale": 512}))
    assert finding.first_divergence.at == "config:train.fp16.loss_scale"


def test_C25_transformers_must_match_exactly(held_to):
    finding = held_to(lock(), lock({"transformers": ["4.51.0", *WHEEL[1:]]}), must={"transformers": "4.57.3"})
    assert (finding.first_divergence.baseline, finding.first_divergence.candidate) == ("4.57.3", "4.51.0")


def test_C27_patched_files_on_one_side(held_to):
    patched = ["4.53.2", "index", "aaaaaaaaaaaa", "pure", {"checked": 900, "modified": 1, "patch": "cccccccccccc"}]
    finding = held_to(lock({"transformers": patched}),
                      lock({"transformers": [*patched[:4], {"checked": 900}]}))
    assert finding.first_divergence.kind == "origin"


def test_C27_one_rank_runs_the_unpatched_copy(held_to):
    patched = ["4.53.2", "index", "aaaaaaaaaaaa", "pure", {"checked": 900, "modified": 1, "patch": "cccccccccccc"}]
    whole = lock({"transformers": patched}, rank={"rank": 0, "world": 2})
    finding = held_to(lock({"transformers": patched}), whole,
                      lock({"transformers": [*patched[:4], {"checked": 900}]}, rank={"rank": 1, "world": 2}))
    assert finding.first_divergence.at == "candidate rank 1"


def test_C28_renderer_version(held_to):
    finding = held_to(lock({"mujoco": ["3.3.2", "index", "aa", "binary"]}),
                      lock({"mujoco": ["3.3.7", "index", "bb", "binary"]}), must={"mujoco": "*"})
    assert finding.first_divergence.at == "mujoco"


def test_C35_actions_per_chunk(held_to):
    finding = held_to(lock(config={"n_action_steps": 10}), lock(config={"n_action_steps": 50}))
    assert (finding.first_divergence.baseline, finding.first_divergence.candidate) == ("10", "50")


def test_C37_other_seed_population(held_to):
    """Seeds say which episodes were drawn. Other ones are no loss of accuracy and no comparison: it stays open."""
    finding = held_to(lock(config={"episodes": 200, "seed": 2022}), lock(config={"episodes": 200, "seed": 42}))
    assert "env-protocol" in {item.code for item in finding.notes}


def test_C45_torch_upgraded_on_the_way(held_to):
    """With torch in may_differ, as a migration between vendors needs, this is a remark: the manifest decides."""
    finding = held_to(lock({"torch": ["2.7.1", "index", "aa", "binary"]}),
                      lock({"torch": ["2.8.0", "index", "bb", "binary"]}), must={"torch": "*"})
    assert finding.first_divergence.at == "torch"


def test_C46_parameter_dtype_and_ema(held_to):
    finding = held_to(lock(config={"param_dtype": "float32", "ema": 0.99}),
                      lock(config={"param_dtype": "bfloat16", "ema": None}))
    assert finding.first_divergence.at == "config:train.param_dtype"


def test_C55_gradient_accumulation(held_to):
    """Accumulation is also part of the recipe (its hash is in the receipts); L0 catches it without a receipt."""
    finding = held_to(lock(config={"gradient_accumulation_steps": 2}), lock(config={"gradient_accumulation_steps": 4}))
    assert finding.first_divergence.at == "config:train.gradient_accumulation_steps"


def test_C57_loss_defined_differently(held_to):
    finding = held_to(lock(config={"lr": 1.0, "loss_type": "default"}),
                      lock(config={"lr": 1.0, "loss_type": "per_token"}))
    assert finding.first_divergence.at == "config:train.loss_type"


def test_C64_training_dtype(held_to):
    finding = held_to(lock(config={"dtype": "fp32"}), lock(config={"dtype": "bf16"}))
    assert finding.first_divergence.at == "config:train.dtype"


def test_C70_extension_built_for_another_gpu(held_to):
    """As it happened: built on an A10 (8.6), run on an A100 (8.0), which cannot run that code."""
    a10 = {"devices": [["NVIDIA A10", "8.6", "23028", 1]]}
    built = {"extensions": {"torch-extensions/deform": ["aa", ["sm_86"]]}}
    finding = held_to(lock(cuda=a10, **built), lock(cuda=GPU, **built))
    assert finding.first_divergence.kind == "architecture"


def test_C70_extension_built_differently_for_equal_devices(held_to):
    """As the row has it: equal environments, sm_86 against sm_80."""
    a10 = {"devices": [["NVIDIA A10", "8.6", "23028", 1]]}
    finding = held_to(lock(cuda=a10, extensions={"deform": ["aa", ["sm_86"]]}),
                      lock(cuda=a10, extensions={"deform": ["bb", ["sm_80"]]}))
    assert finding.first_divergence.kind == "extension"
