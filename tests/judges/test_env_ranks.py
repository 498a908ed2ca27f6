"""L0: every process of a side is judged, and how many there are. Each lock differs from its neighbours in one place."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.core.evidence import EnvLock, EnvRules, Evidence, Policy, Recorded
from pytest_migparity.core.limits import Floors
from pytest_migparity.core.manifest import Manifest
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.judges.envmatch import judge_env
from pytest_migparity.reports.messages.env import MESSAGES

PASS, FAIL, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
WHEEL = ["4.57.3", "index", "aaaaaaaaaaaa", "pure"]
GPU = {"devices": [["NVIDIA A100", "8.0", "81920", 8]]}
NPU = {"devices": [["910B3", 8]]}


def lock(rank=None, world=None, **sections):
    """One process; without rank and world as a process that no launcher started."""
    names = {key: value for key, value in (("rank", rank), ("world", world)) if value is not None}
    document = {"packages": {"transformers": WHEEL}, "env": {}, "listed": ["HCCL_DETERMINISTIC"], "rank": names,
                "cuda": GPU, "torch": {"version": "2.6.0", "seen": "process", "flags": {
                    "matmul_precision": "highest", "cuda.matmul.allow_tf32": False, "threads": 8}},
                "configs": {"train": {"sha256": "aa", "values": {"lr": 1.0}}}, "extensions": {"op": ["aa", ["sm_80"]]},
                "trees": {"up": {"commit": "1" * 40, "dirty": 0}}}
    return copy.deepcopy({**document, **sections})


def processes(count, world=None, **sections):
    return [lock(rank, count if world is None else world, **sections) for rank in range(count)]


def side(name, runs):
    recorded = tuple(Recorded(EnvLock(tuple(run)), Witness(name, "real", "env.json", f"{name[0]}{index}" * 32))
                     for index, run in enumerate(runs))
    return Evidence(name, "env", recorded)


def judge(baseline, candidate, *, world=None, **rules):
    """Each side is one run: a list of locks; or several: a list of such lists."""
    sides = [side(name, one if isinstance(one[0], list) else [one])
             for name, one in (("baseline", baseline), ("candidate", candidate))]
    policy = Policy(env=EnvRules(must_match={"transformers": "*"}, **rules), world_size=world)
    finding = judge_env(*sides, limits={}, floors=Floors(), policy=policy)
    for item in finding.notes:
        for template in MESSAGES[item.code]:
            template.format(**item.params)
    return finding


def said(finding, code):
    return [dict(item.params) for item in finding.notes if item.code == code]


def put(value, *path):
    def change(document):
        for key in path[:-1]:
            document = document.setdefault(key, {})
        document[path[-1]] = value
    return change


DIFFERENCES = {
    "INF_NAN_MODE_ENABLE": (put("0", "env", "INF_NAN_MODE_ENABLE"), FAIL),
    "INF_NAN_MODE_FORCE_DISABLE": (put("1", "env", "INF_NAN_MODE_FORCE_DISABLE"), FAIL),
    "NVIDIA_TF32_OVERRIDE": (put("1", "env", "NVIDIA_TF32_OVERRIDE"), FAIL),
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": (put("1", "env", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"), FAIL),
    "cuda.matmul.allow_tf32": (put(True, "torch", "flags", "cuda.matmul.allow_tf32"), FAIL),
    "matmul_precision": (put("high", "torch", "flags", "matmul_precision"), FAIL),
    "torch flags": (put("probe", "torch", "seen"), OPEN),
    "torch:cudnn.benchmark": (put(True, "torch", "flags", "cudnn.benchmark"), OPEN),  # the first did not record it
    "torch": (put("2.7.0", "torch", "version"), FAIL),
    "HCCL_DETERMINISTIC": (put("true", "env", "HCCL_DETERMINISTIC"), FAIL),           # named by a rule
    "transformers": (put([*WHEEL[:2], "bbbbbbbbbbbb", "pure"], "packages", "transformers"), FAIL),
    "numpy": (put(["2.0", "index", "", "binary"], "packages", "numpy"), FAIL),
    "packages": (put({"error": "OSError"}, "packages"), OPEN),
    "config:train.lr": (put({"sha256": "bb", "values": {"lr": 2.0}}, "configs", "train"), FAIL),
    "config:train": (put({"sha256": "bb"}, "configs", "train"), OPEN),
    "op": (put(["aa", ["sm_90"]], "extensions", "op"), FAIL),                         # no code for the device
    "tree up": (put("2" * 40, "trees", "up", "commit"), FAIL),
    "changes of tree up": (put(3, "trees", "up", "dirty"), FAIL),
    "WORLD_SIZE": (put(9, "rank", "world"), FAIL),
}
VENDOR = {"INF_NAN_MODE_ENABLE": NPU, "INF_NAN_MODE_FORCE_DISABLE": NPU}


@pytest.mark.parametrize("where", ["baseline", "candidate"])
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("what", DIFFERENCES)
def test_one_process_that_differs_is_named_whichever_it_is(what, rank, where):
    """The first process of each side is flawless: judging it alone passes all of these."""
    change, outcome = DIFFERENCES[what]
    hardware = {"npu": NPU, "cuda": {}} if what in VENDOR else {}
    sides = {"baseline": processes(3, **hardware), "candidate": processes(3, **hardware)}
    rules = {"overrides": {"env:HCCL_DETERMINISTIC": "x"}, "requested": {"env:HCCL_DETERMINISTIC": "None"}}
    assert judge(**sides, world=3, **rules).outcome is PASS
    change(sides[where][rank])
    finding = judge(**sides, world=3, **rules)
    assert finding.outcome is outcome
    found = said(finding, "env-ranks" if outcome is FAIL else "env-ranks-unsure")
    assert [(one["side"], one["rank"], one["first"]) for one in found] == [(where, f"rank {rank}", "rank 0")]
    assert found[0]["what"].rpartition(":")[2].endswith(what.rpartition(":")[2])
    assert (finding.first_divergence.kind, finding.first_divergence.at) == ("rank", f"{where} rank {rank}")


@pytest.mark.parametrize("change", [put(4, "torch", "flags", "threads"), put("4", "env", "OMP_NUM_THREADS"),
                                    put({"sha256": "bb", "values": {"lr": 1.0, "local_rank": 1}}, "configs", "train"),
                                    put("1", "env", "INF_NAN_MODE_ENABLE")])
def test_what_belongs_to_a_process_may_differ(change):
    ranks = processes(2)
    change(ranks[1])
    assert judge(ranks, processes(2)).outcome is PASS


def test_no_declaration_between_the_sides_excuses_a_process():
    ranks = processes(2)
    put("1", "env", "NVIDIA_TF32_OVERRIDE")(ranks[1])
    found = judge(processes(2), ranks, may_differ=("env:*",), overrides={"env:NVIDIA_TF32_OVERRIDE": "x"})
    assert found.outcome is FAIL


def test_a_second_run_of_a_side_is_held_against_the_first():
    """Runs may have other seeds and configurations; they have one environment."""
    runs = [processes(2), processes(2)]
    runs[1][0]["configs"]["train"] = runs[1][1]["configs"]["train"] = {"sha256": "bb", "values": {"lr": 2.0}}
    assert judge(runs, processes(2)).outcome is PASS
    put(True, "torch", "flags", "cuda.matmul.allow_tf32")(runs[1][0])
    finding = judge(runs, processes(2))
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "baseline run 1 rank 0"


# ---- how many there are -------------------------------------------------------------------------------------------

ALONE = [lock()]  # as the command line writes it, without a launcher


@pytest.mark.parametrize("left, right, wanted, outcome, code", [
    (processes(8), processes(8), 8, PASS, None),
    (processes(8), processes(8), None, PASS, None),
    (processes(1), ALONE, 1, PASS, None),
    (ALONE, ALONE, 1, PASS, None),
    (ALONE, ALONE, None, PASS, None),
    (processes(8), processes(1), None, FAIL, "env-world"),
    (processes(8), processes(1), 8, FAIL, "env-world"),
    (processes(8), processes(4), 8, FAIL, "env-world"),
    (processes(1), processes(1), 8, OPEN, "env-world-recipe"),
    (processes(8), processes(8), 1, OPEN, "env-world-recipe"),
    (ALONE, ALONE, 8, OPEN, "env-world-unrecorded"),
    (processes(8), ALONE, 8, OPEN, "env-world-unrecorded"),
    (processes(8), ALONE, None, OPEN, "env-world-unrecorded"),
    (processes(8), ALONE, 1, OPEN, "env-world-recipe"),
    ([lock(rank) for rank in range(8)], processes(8), 8, OPEN, "env-world-unrecorded"),
    ([lock(rank) for rank in range(2)], ALONE, 1, OPEN, "env-world-recipe"),
    ([lock(3)], ALONE, 1, OPEN, "env-ranks-missing"),          # the fourth of at least four
    ([lock(0, 2), lock(9, 2)], processes(2), 2, OPEN, "env-ranks-missing"),
    (processes(7, world=8), processes(8), 8, OPEN, "env-ranks-missing"),
    ([lock(world=0)], ALONE, 8, OPEN, "env-world-unrecorded"),
    ([processes(2), processes(4)], [processes(2), processes(4)], 2, FAIL, "env-ranks"),
])
def test_the_number_of_processes(left, right, wanted, outcome, code):
    """Unequal sides fail; a number that contradicts the recipe, or that must be known and is not, leaves it open."""
    for sides in ((left, right), (right, left)):
        finding = judge(*sides, world=wanted)
        assert finding.outcome is outcome
        worlds = {item.code for item in finding.notes if item.code.startswith(("env-world", "env-ranks"))}
        assert code in worlds if code else not worlds


def test_another_number_of_processes_can_be_declared_for_the_candidate():
    declared = {"overrides": {"env:WORLD_SIZE": "16 NPUs, half the batch each"}}
    assert judge(processes(2), processes(4), world=2, **declared).outcome is PASS
    assert judge(processes(4), processes(2), world=2, **declared).outcome is OPEN  # the baseline is no run of the recipe


def test_the_manifest_says_how_many():
    tables = {"model": {"name": "m"}, "baseline": {"site": "file:a"}, "candidate": {"site": "file:b"}}
    assert Manifest.model_validate({**tables, "recipe": {"world_size": 8}}).policy().world_size == 8
    assert Manifest.model_validate(tables).policy().world_size is None  # not said is not one


@given(st.data())
def test_adding_a_process_that_differs_never_makes_it_pass(data):
    """From any two sides: one more process with one more difference leaves what was not green not green."""
    sides = []
    for _ in range(2):
        one = processes(data.draw(st.integers(1, 3)))
        for document in one:
            for what in data.draw(st.lists(st.sampled_from(sorted(DIFFERENCES)), max_size=1)):
                DIFFERENCES[what][0](document)
        sides.append(one)
    before = judge(*sides)
    more = lock(len(sides[1]), len(sides[1]))
    DIFFERENCES[data.draw(st.sampled_from(["transformers", "matmul_precision", "tree up"]))][0](more)
    after = judge(sides[0], [*sides[1], more])
    assert before.outcome is PASS or after.outcome is not PASS
