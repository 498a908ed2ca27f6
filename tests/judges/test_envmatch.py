"""L0: two environments held against rules. Every expectation is read off the two locks by hand."""

import copy
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_migparity.core.evidence import EnvLock, EnvRules, Evidence, Policy, Recorded
from pytest_migparity.core.limits import Floors
from pytest_migparity.core.verdict import Outcome, State, Verdict, Witness, note
from pytest_migparity.judges.envconfig import equal, meets
from pytest_migparity.judges.envmatch import judge_env
from pytest_migparity.judges.envregime import runs_on
from pytest_migparity.reports.messages.env import MESSAGES

PASS, FAIL, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
GPU = {"devices": [["NVIDIA A100-SXM4-80GB", "8.0", "81920", 8]]}
NPU = {"devices": [["910B3", 8]]}
LISTED = ["INF_NAN_MODE_ENABLE", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS", "HCCL_DETERMINISTIC", "MUJOCO_GL"]


def lock(packages=None, **sections):
    base = {"schema": "migparity.env/1", "python": {"version": "3.11.9"}, "env": {}, "listed": LISTED,
            "packages": {"transformers": ["4.57.3", "index", "aaaaaaaaaaaa", "pure"], **(packages or {})}}
    return {**base, **sections}


def side(name, *documents, problems=()):
    witness = Witness(name, "real", "env.json", name[0] * 64)
    runs = (Recorded(EnvLock(tuple(documents)), witness),) if documents else ()
    return Evidence(name, "env", runs, problems=problems)


def judge(baseline, candidate, *, must=None, **rules):
    sides = [one if isinstance(one, Evidence) else side(name, *(one if isinstance(one, list) else [one]))
             for name, one in (("baseline", baseline), ("candidate", candidate))]
    rules = EnvRules(must_match={"transformers": "4.57.3"} if must is None else must, **rules)
    finding = judge_env(*sides, limits={}, floors=Floors(), policy=Policy(env=rules))
    for item in finding.notes:
        for template in MESSAGES[item.code]:
            template.format(**item.params)
    verdict = Verdict("L0", "mine", "main", finding)
    assert Verdict.from_json(verdict.to_json()) == verdict
    return finding


def codes(finding):
    return {item.code for item in finding.notes}


def package(version="4.57.3", kind="index", payload="aaaaaaaaaaaa", build="pure", **details):
    return {"transformers": [version, kind, payload, build, details]}


def test_equal_locks_pass_and_say_what_was_compared():
    finding = judge(lock(), lock())
    assert finding.outcome is PASS
    assert finding.first_divergence is None
    assert (finding.coverage.unit, finding.coverage.compared, finding.coverage.of) == ("packages", 1, 1)
    assert [(check.name, check.value, check.state) for check in finding.checks] == [
        ("mismatches", 0.0, State.OK), ("open", 0.0, State.FIGURE)]


# ---- packages -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("wanted", ["*", "4.57.3", ">=4.50,<5"])
def test_another_version_fails_and_is_named(wanted):
    finding = judge(lock(), lock(package("4.51.0")), must={"transformers": wanted})
    assert finding.outcome is FAIL
    first = finding.first_divergence
    assert (first.kind, first.at, first.baseline, first.candidate) == ("package", "transformers", "4.57.3", "4.51.0")


def test_both_sides_outside_the_specifier_fail_although_equal():
    finding = judge(lock(package("4.51.0")), lock(package("4.51.0")))
    assert finding.outcome is FAIL
    assert [item.params["side"] for item in finding.notes if item.code == "env-outside"] == ["baseline", "candidate"]


def test_a_spelling_of_the_same_version_is_no_difference():
    assert judge(lock(package("1.0")), lock(package("1.0.0")), must={"Transformers": ">=1"}).outcome is PASS


def test_a_prerelease_within_the_bounds_is_accepted():
    assert judge(lock(package("5.0.0rc1")), lock(package("5.0.0rc1")), must={"transformers": ">=4.50"}).outcome is PASS


def test_absent_on_both_sides_proves_nothing():
    finding = judge(lock(), lock(), must={"transformers": "*", "lerobot": "*"})
    assert finding.outcome is OPEN
    assert [item.params["name"] for item in finding.notes if item.code == "env-absent"] == ["lerobot"]
    assert (finding.coverage.compared, finding.coverage.of) == (1, 2)


@pytest.mark.parametrize("missing", ["baseline", "candidate"])
def test_absent_on_one_side_fails(missing):
    empty = lock()
    del empty["packages"]["transformers"]
    sides = {"baseline": lock(), "candidate": lock(), missing: empty}
    finding = judge(sides["baseline"], sides["candidate"])
    assert finding.outcome is FAIL
    assert getattr(finding.first_divergence, missing) == "(not set)"
    only = (finding.coverage.baseline_only, finding.coverage.candidate_only)
    assert only == ((0, 1) if missing == "baseline" else (1, 0))


def test_a_package_list_that_broke_is_not_an_absent_package():
    finding = judge(lock(), lock() | {"packages": {"error": "OSError: disk"}})
    assert finding.outcome is OPEN
    assert {"env-unrecorded", "env-part-error"} <= codes(finding)


@pytest.mark.parametrize("other, what", [
    (package("4.57.3+patched"), "local tag"),
    (package(payload="bbbbbbbbbbbb"), "files"),
    (package(kind="vcs", payload="bbbbbbbbbbbb", commit="1" * 40), "files"),
    (package(kind="editable", payload="", commit="1" * 40), "origin"),
    (package(modified=1, patch="cccccccccccc", checked=10), "modified files"),
    (package(modified=1), "modified files"),
])
def test_the_same_version_from_another_origin_fails(other, what):
    """A public report lost 38 points of success to a package of the right version with other contents."""
    finding = judge(lock(), lock(other))
    assert finding.outcome is FAIL
    assert [item.params["what"] for item in finding.notes if item.code == "env-origin"] == [what]
    assert finding.first_divergence.kind == "origin"


@pytest.mark.parametrize("left, right", [
    (package(), package(kind="archive", url="https://mirror/t.whl", archive="dddddddddddd")),
    (package(kind="vcs", commit="1" * 40), package()),
])
def test_identical_files_of_two_pure_wheels_are_one_origin(left, right):
    """A mirror's URL instead of the index is no other code: the payload says so."""
    assert judge(lock(left), lock(right)).outcome is PASS


def test_binary_wheels_of_two_platforms_are_one_release():
    left = package(build="binary", payload="aaaaaaaaaaaa")
    assert judge(lock(left), lock(package(build="binary", payload="bbbbbbbbbbbb"))).outcome is PASS


@pytest.mark.parametrize("right, outcome", [
    (package(kind="vcs", build="binary", commit="1" * 40), PASS),
    (package(kind="vcs", build="binary", commit="2" * 40), FAIL),
    (package(kind="index", build="binary"), FAIL),
    (package(kind="vcs", build="binary"), FAIL),
])
def test_binary_packages_from_git_are_held_to_their_commit(right, outcome):
    assert judge(lock(package(kind="vcs", build="binary", commit="1" * 40)), lock(right)).outcome is outcome


@pytest.mark.parametrize("left, right, outcome", [
    ({"commit": "1" * 40, "dirty": 0}, {"commit": "1" * 40, "dirty": 0}, PASS),
    ({"commit": "1" * 40, "dirty": 0}, {"commit": "2" * 40, "dirty": 0}, FAIL),
    ({"commit": "1" * 40, "dirty": 0}, {"commit": "1" * 40, "dirty": 2}, FAIL),
    ({"commit": "1" * 40}, {"commit": "1" * 40}, OPEN),  # nobody asked git for changes
    ({"commit": "1" * 40, "dirty": 0}, {"commit": "1" * 40}, OPEN),
    ({}, {}, OPEN),
])
def test_editable_installs_are_their_commit_and_nothing_uncommitted(left, right, outcome):
    sides = [lock(package(kind="editable", payload="", **one)) for one in (left, right)]
    assert judge(*sides).outcome is outcome


def test_the_same_patch_on_both_sides_is_the_same_code():
    patched = package(modified=2, patch="cccccccccccc", checked=9)
    assert judge(lock(patched), lock(patched)).outcome is PASS
    other = package(modified=2, patch="eeeeeeeeeeee", checked=9)
    assert judge(lock(patched), lock(other)).outcome is FAIL
    sized = package(modified=2)  # seen by size only: nobody can say that it is the same patch
    assert judge(lock(sized), lock(sized)).outcome is OPEN


GONE = {"missing": 12}


@pytest.mark.parametrize("left, right, outcome", [
    (package(), package(**GONE), FAIL),                                      # the same wheel, twelve files less
    (package(**GONE), package(missing=11), FAIL),
    (package(**GONE), package(**GONE), OPEN),                                # which twelve?
    (package(patch="pp", **GONE), package(patch="pp", **GONE), PASS),        # the same twelve
    (package(patch="pp", **GONE), package(patch="qq", **GONE), FAIL),
    (package(checked=9, unchecked=3), package(checked=12), PASS),            # said, not judged: as an unnamed package
])
def test_files_that_are_gone_are_a_difference_of_the_code(left, right, outcome):
    finding = judge(lock(left), lock(right))
    assert finding.outcome is outcome
    assert judge(lock(right), lock(left)).outcome is outcome


def test_files_that_were_not_checked_are_named():
    finding = judge(lock(package(checked=9, unchecked=3)), lock(package(checked=12)))
    assert [item.params["side"] for item in finding.notes if item.code == "env-unverified"] == ["baseline"]


@pytest.mark.parametrize("entry", [
    ["1.0", "?", "", "?", {"error": "boom"}], ["", "index", "", "pure"], ["None", "index", "aa", "pure"],
    ["?", "index", "aa", "pure"], ["unknown", "index", "aa", "pure"], ["odd version", "index", "aa", "pure"],
    ["１.０", "index", "aa", "pure"],
])
@pytest.mark.parametrize("wanted", ["*", ">=0"])
def test_a_package_that_could_not_be_read_never_passes(entry, wanted):
    """Equal nonsense on both sides is no equal version, and nonsense against a version is no proof of another one."""
    for right in (entry, ["1.0", "index", "aa", "pure"]):
        for sides in ((entry, right), (right, entry)):
            found = judge(*(lock({"transformers": one}) for one in sides), must={"transformers": wanted})
            known = entry[0] in ("odd version", "１.０") and right is not entry
            assert found.outcome is (FAIL if known else OPEN)
            assert codes(found) & {"env-package-unread", "env-bad-version"}


def test_a_package_that_could_not_be_read_can_be_declared_for_the_candidate_alone():
    sides = [lock(), lock(package("", "?", error="boom"))]
    assert judge(*sides, overrides={"transformers": "vendored"}).outcome is PASS
    assert judge(*reversed(sides), overrides={"transformers": "vendored"}).outcome is OPEN


@pytest.mark.parametrize("payloads, state, outcome", [
    (("aa", "bb"), {}, OPEN), (("aa", "aa"), {}, PASS), (("aa", "bb"), {"commit": "1" * 40}, OPEN),
    (("aa", "bb"), {"commit": "1" * 40, "dirty": 0}, PASS), (("", ""), {}, OPEN),
])
def test_a_build_from_a_local_folder_is_known_by_its_files_or_its_commit(payloads, state, outcome):
    sides = [lock(package(kind="local", build="binary", payload=one, **state)) for one in payloads]
    assert judge(*sides).outcome is outcome


def test_a_second_copy_on_the_path_leaves_it_open():
    assert judge(lock(), lock(package(shadowed=["4.51.0"]))).outcome is OPEN
    assert judge(lock(), lock(package(shadowed=["4.57.3"]))).outcome is PASS


@pytest.mark.parametrize("wanted", ["4.57.3.x", "newest", ">=", "=>4", "４.57.3"])
def test_a_rule_that_cannot_be_read_never_passes(wanted):
    assert judge(lock(), lock(), must={"transformers": wanted}).outcome is OPEN


def test_undeclared_and_declared_differences_are_listed_and_do_not_fail():
    left = lock({"numpy": ["1.26.4", "index", "", "binary"], "nvidia-nccl-cu12": ["2.21.5", "index", "", "binary"]})
    right = lock({"numpy": ["2.1.0", "index", "", "binary"], "torch_npu": ["2.6.0", "index", "", "binary"]})
    finding = judge(left, right, may_differ=("nvidia-*", "torch_npu"))
    assert finding.outcome is PASS
    listed = {item.code: item.params for item in finding.notes}
    assert listed["env-undeclared"] == {"count": 1, "listed": "numpy 1.26.4 -> 2.1.0"}
    assert listed["env-may-differ"]["count"] == 2


def test_a_declared_override_is_accepted_and_listed_with_its_reason():
    left = lock({"mx-driving": ["1.0", "index", "", "binary"]})
    finding = judge(left, lock(), must={"transformers": "*", "mx_driving": "*"}, overrides={"mx_driving": "off on NPU"})
    assert finding.outcome is PASS
    assert [item.params["reason"] for item in finding.notes if item.code == "env-waived"] == ["off on NPU"]


def test_an_override_of_the_candidate_does_not_excuse_the_baseline():
    finding = judge(lock(package("4.0")), lock(), overrides={"transformers": "newer on NPU"})
    assert finding.outcome is FAIL


def test_may_differ_does_not_soften_a_name_that_must_match():
    assert judge(lock(), lock(package("4.51.0")), may_differ=("*",)).outcome is FAIL


@pytest.mark.parametrize("pattern, waived", [
    ("torch*", False), ("c*", False), ("*", False), ("env*", False), ("?orch:*", False), ("*:*", False),
    ("torch:*", True), ("config:train.*", True), ("env:*", True),
])
def test_a_pattern_for_packages_never_waives_an_option(pattern, waived):
    """Three locks that differ in one option each: a pattern waives those of the prefix that it spells out."""
    options = {
        "torch:": [lock(torch=torch(matmul_precision=value), cuda=GPU) for value in ("highest", "high")],
        "config:": [lock(configs={"train": config(lr=value)}) for value in (1, 2)],
        "env:": [lock(env={"NVIDIA_TF32_OVERRIDE": value}, cuda=GPU) for value in "01"],
    }
    for prefix, sides in options.items():
        expected = PASS if waived and pattern.startswith(prefix) else FAIL
        assert judge(*sides, may_differ=(pattern,)).outcome is expected, prefix


def test_a_pattern_for_options_never_waives_a_package():
    sides = [lock({"env": [version, "index", "", "pure"]}) for version in ("1", "2")]
    assert "env-undeclared" in codes(judge(*sides, may_differ=("env:*",)))


def test_no_rule_and_nothing_shared_is_no_verdict():
    finding = judge(lock(), lock(), must={})
    assert finding.outcome is OPEN
    assert "env-nothing" in codes(finding)


# ---- evidence -----------------------------------------------------------------------------------------------------

def test_missing_evidence_is_inconclusive_and_named():
    finding = judge(lock(), side("candidate"))
    assert finding.outcome is OPEN
    assert [item.params["side"] for item in finding.notes if item.code == "env-missing"] == ["candidate"]
    assert finding.coverage.of == 1


def test_a_problem_with_the_evidence_forbids_a_pass_and_is_carried():
    problem = note("env-part-error", side="candidate", part="receipt", error="stale")
    assert judge(lock(), side("candidate", lock(), problems=(problem,))).outcome is OPEN
    assert judge(lock(), side("candidate", lock(package("1.0")), problems=(problem,))).outcome is FAIL


def test_a_rank_with_other_files_fails_and_is_named():
    ranks = [lock(rank={"rank": 0, "world": 2}), lock(package(payload="bbbbbbbbbbbb"), rank={"rank": 1, "world": 2})]
    finding = judge(lock(), ranks)
    assert finding.outcome is FAIL
    assert (finding.first_divergence.kind, finding.first_divergence.at) == ("rank", "candidate rank 1")


def test_ranks_that_left_no_lock_leave_it_open():
    finding = judge(lock(), lock(rank={"rank": 0, "world": 8}))
    assert finding.outcome is OPEN
    assert next(item.params for item in finding.notes if item.code == "env-ranks-missing")["found"] == 1


def test_what_names_a_process_may_differ_between_ranks():
    ranks = [lock(rank={"rank": one}, configs={"train": config(lr=1, local_rank=one, device=f"npu:{one}")})
             for one in (0, 1)]
    assert judge(ranks, ranks).outcome is PASS
    ranks[1]["configs"]["train"]["values"]["lr"] = 2
    assert judge(ranks, ranks).outcome is FAIL


# ---- configuration ------------------------------------------------------------------------------------------------

def config(sha="", /, **values):
    return {"sha256": sha or repr(values), "values": values}


def configured(*values):
    return [lock(configs={"train": config(**one)}) for one in values]


@pytest.mark.parametrize("left, right, outcome", [
    ({"lr": 1e-4}, {"lr": 0.0001}, PASS),
    ({"lr": 1}, {"lr": 1.0}, PASS),
    ({"lr": 1e-4}, {"lr": 2e-4}, FAIL),
    ({"fused": True}, {"fused": 1}, FAIL),
    ({"fused": True}, {"fused": "true"}, FAIL),
    ({"betas": [0.9, 0.95]}, {"betas": [0.9, 0.999]}, FAIL),
    ({"lr": 1, "ema": 0.99}, {"lr": 1}, OPEN),
    ({"lr": 1, "ema": 0.99}, {"lr": 1, "ema": None}, OPEN),
    ({"lr": 1, "ema": None}, {"lr": 1}, PASS),
    ({"lr": 1, "seed": 1}, {"lr": 1, "seed": 2}, OPEN),
])
def test_configuration_values(left, right, outcome):
    """One-sided values and other seeds leave the level open, unequal ones fail it, null and absent say the same."""
    assert judge(*configured(left, right)).outcome is outcome


def test_a_declared_configuration_difference_is_accepted():
    sides = configured({"out": {"dir": "a"}, "fused": True}, {"out": {"dir": "b"}, "fused": False})
    for one in sides:
        one["configs"]["train"]["values"]["out.dir"] = one["configs"]["train"]["values"].pop("out")["dir"]
    assert judge(*sides).outcome is FAIL
    finding = judge(*sides, may_differ=("config:train.out.*",), overrides={"config:train.fused": "no kernel"})
    assert finding.outcome is PASS


def test_redacted_values_are_counted_and_not_compared():
    finding = judge(*configured({"lr": 1, "token": "<redacted>"}, {"lr": 1, "token": "<redacted>", "x": None}))
    assert finding.outcome is PASS
    assert next(item.params["count"] for item in finding.notes if item.code == "env-redacted") == 1


@pytest.mark.parametrize("left, right, outcome", [
    ({"sha256": "aa"}, {"sha256": "aa"}, PASS),
    ({"sha256": "aa"}, {"sha256": "bb"}, OPEN),
    ({"sha256": "aa"}, None, OPEN),
    ({"sha256": "aa", "values": {"lr": 1}}, {"sha256": "bb", "values": {"lr": 1}, "dropped": 3}, OPEN),
    ({"error": "gone"}, {"error": "gone"}, OPEN),
])
def test_a_configuration_that_was_not_read_is_equal_only_by_its_hash(left, right, outcome):
    sides = [lock(configs={"train": one} if one else {}) for one in (left, right)]
    assert judge(*sides).outcome is outcome


@pytest.mark.parametrize("must, outcome", [
    ({"config:train.lr": "*"}, PASS),
    ({"config:train.lr": "1e-4"}, PASS),
    ({"config:train.lr": "2e-4"}, FAIL),
    ({"config:train.fp16": "*"}, OPEN),
    ({"config:eval.horizon": "*"}, OPEN),
    ({"env:OMP_NUM_THREADS": "*"}, OPEN),
])
def test_an_option_can_be_named_as_must_match(must, outcome):
    finding = judge(*configured({"lr": 0.0001}, {"lr": 0.0001}), must=must)
    assert finding.outcome is outcome


@pytest.mark.parametrize("requested, outcome", [
    ({"config:train.fp32_reduce": "true"}, PASS),
    ({"config:train.fp32_reduce": "false"}, FAIL),
    ({"config:train.lr": "0.0001"}, PASS),
    ({"config:train.clip": "1.0"}, FAIL),
    ({"config:other.clip": "1.0"}, OPEN),
    ({"env:HCCL_DETERMINISTIC": "true"}, FAIL),
    ({"env:NEVER_LISTED": "1"}, OPEN),
    ({"torch:deterministic": "true"}, OPEN),
])
def test_a_requested_option_must_be_in_effect_on_both_sides(requested, outcome):
    sides = configured({"fp32_reduce": True, "lr": 1e-4}, {"fp32_reduce": True, "lr": 1e-4})
    assert judge(*sides, requested=requested).outcome is outcome


def test_a_requested_option_may_be_waived_for_the_candidate_alone():
    sides = [lock(env={"HCCL_DETERMINISTIC": "true"}), lock()]
    asked = {"requested": {"env:HCCL_DETERMINISTIC": "true"}, "overrides": {"env:HCCL_DETERMINISTIC": "too slow"}}
    assert judge(*sides, **asked).outcome is PASS
    assert judge(*reversed(sides), **asked).outcome is FAIL


@pytest.mark.parametrize("value, wanted, met", [
    ("１", "1", False), (1, "１", False), ("1_0", "10", False), (10 ** 400, "1" + "0" * 399, False),
    ("1" + "0" * 400, "1" + "0" * 401, False), ("1e-4", "0.0001", True), (0.5, ".5", True), (True, "1", False),
])
def test_a_number_is_written_in_ascii_and_compared_exactly(value, wanted, met):
    assert meets(value, wanted) is met


@given(st.one_of(st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False), st.text(max_size=5)))
def test_a_value_equals_itself_and_meets_its_own_text(value):
    assert equal(value, value)
    if not isinstance(value, str) or value == value.strip():
        assert meets(value, str(value))


# ---- source trees -------------------------------------------------------------------------------------------------

COMMIT = "ecca77b" + "0" * 33


@pytest.mark.parametrize("trees, outcome", [
    ({"lingbot": {"commit": COMMIT, "dirty": 0}}, PASS),
    ({"official": {"commit": COMMIT, "dirty": 0, "repo": "lingbot"}}, PASS),
    ({"lingbot": {"commit": COMMIT, "dirty": 0, "untracked": 4}}, PASS),
    ({"lingbot": {"commit": COMMIT, "dirty": 1}}, FAIL),
    ({"lingbot": {"commit": "1" * 40, "dirty": 0}}, FAIL),
    ({"lingbot": {"commit": COMMIT}}, OPEN),
    ({"lingbot": {"error": "not a repository"}}, OPEN),
    ({"other": {"commit": COMMIT, "dirty": 0}}, OPEN),
    ({}, OPEN),
])
def test_the_baseline_runs_upstream_unpatched(trees, outcome):
    assert judge(lock(trees=trees), lock(), upstream_repo="lingbot", upstream_commit="ecca77b").outcome is outcome


def test_the_port_is_described_and_not_judged():
    port = {"base": COMMIT, "files": 12, "added": 340, "deleted": 20, "notes": ["MIGRATION.md"]}
    trees = {"lingbot": {"commit": "1" * 40, "dirty": 3, "port": port}, "x": {"commit": "2" * 40, "dirty": 1}}
    finding = judge(lock(), lock(trees=trees))
    assert finding.outcome is PASS
    said = next(item.params for item in finding.notes if item.code == "env-port")
    assert (said["files"], said["added"], said["notes"]) == (12, 340, "MIGRATION.md")


# ---- numeric regime and builds ------------------------------------------------------------------------------------

@pytest.mark.parametrize("left, right, outcome", [
    ({}, {"INF_NAN_MODE_ENABLE": "1"}, PASS),      # what a GPU does anyway
    ({}, {"INF_NAN_MODE_ENABLE": "0"}, FAIL),      # saturates at 65504
    ({}, {"INF_NAN_MODE_FORCE_DISABLE": "1"}, FAIL),
    ({"INF_NAN_MODE_ENABLE": "0"}, {}, PASS),      # no effect on a GPU
    ({"NVIDIA_TF32_OVERRIDE": "0"}, {}, PASS),     # an NPU has no TF32
    ({"NVIDIA_TF32_OVERRIDE": "1"}, {}, FAIL),
    ({"OMP_NUM_THREADS": "8"}, {"OMP_NUM_THREADS": "4"}, PASS),
])
def test_numeric_switches_between_gpu_and_npu_count_by_their_effect(left, right, outcome):
    assert judge(lock(env=left, cuda=GPU), lock(env=right, npu=NPU)).outcome is outcome


def test_numeric_switches_on_unknown_hardware_count_by_their_value():
    assert judge(lock(env={"NVIDIA_TF32_OVERRIDE": "0"}), lock()).outcome is FAIL
    assert judge(lock(env={"NVIDIA_TF32_OVERRIDE": "0"}), lock(), may_differ=("env:NVIDIA_*",)).outcome is PASS


def torch(seen="process", **flags):
    return {"version": "2.6.0", "seen": seen, "flags": flags}


@pytest.mark.parametrize("left, right, outcome", [
    (torch(matmul_precision="highest"), torch(matmul_precision="high"), FAIL),
    (torch(**{"cuda.matmul.allow_tf32": True}), torch(**{"npu.matmul.allow_hf32": False}), FAIL),
    (torch(**{"cuda.matmul.allow_tf32": False}), torch(**{"npu.matmul.allow_hf32": False}), PASS),
    (torch(**{"cudnn.allow_tf32": True}), torch(**{"npu.conv.allow_hf32": True, "cudnn.allow_tf32": False}), PASS),
    (torch(**{"cudnn.benchmark": True}), torch(**{"cudnn.benchmark": False}), PASS),
])
def test_reduced_precision_flags_are_compared_across_vendors(left, right, outcome):
    assert judge(lock(torch=left, cuda=GPU), lock(torch=right, npu=NPU)).outcome is outcome


HIGHEST = {"matmul_precision": "highest"}


@pytest.mark.parametrize("left, right, outcome, said", [
    (torch(**HIGHEST), torch("probe", **HIGHEST), OPEN, "env-flags-unseen"),
    (torch(**HIGHEST), torch("probe", matmul_precision="high"), OPEN, "env-flags-unseen"),
    (torch(**HIGHEST), torch("", **HIGHEST), OPEN, "env-flags-unseen"),
    (torch(**HIGHEST), {}, OPEN, "env-flags-unseen"),
    (torch(**HIGHEST), torch(), OPEN, "env-flags-unseen"),
    (torch(**HIGHEST), {"error": "died"}, OPEN, "env-flags-unseen"),
    (torch(**HIGHEST), torch(default_dtype="float32"), OPEN, "env-flag-one-sided"),
    (torch(**{"cuda.matmul.allow_tf32": True}), torch(**HIGHEST), OPEN, "env-flag-one-sided"),
    (torch("probe", **HIGHEST), torch("probe", **HIGHEST), PASS, "env-flags-probed"),
    (torch("probe", **HIGHEST), torch("probe", matmul_precision="high"), FAIL, "env-regime"),
    (torch("probe", **HIGHEST), {}, PASS, "env-flags-apart"),
    ({}, {}, PASS, None),
])
def test_flags_that_one_side_alone_recorded_are_never_taken_as_equal(left, right, outcome, said):
    """What the program of one side had set, and nobody knows of the other. Both ways round."""
    for sides in ((left, right), (right, left)):
        finding = judge(*(lock(torch=one, cuda=GPU) for one in sides))
        assert finding.outcome is outcome
        flags = {code for code in codes(finding) if code.startswith(("env-flag", "env-regime"))}
        assert said in flags if said else not flags


def test_flags_that_one_side_cannot_record_can_be_declared():
    sides = [lock(torch=torch(**HIGHEST)), lock()]
    assert judge(*sides, overrides={"torch:flags": "another framework"}).outcome is PASS
    assert judge(*sides, may_differ=("torch*",)).outcome is OPEN


def test_reduced_precision_on_hardware_that_was_not_recorded_counts_by_its_value():
    """A container without nvidia-smi: no device is in the lock, the flag is."""
    sides = [lock(torch=torch(**{"cuda.matmul.allow_tf32": value})) for value in (True, False)]
    assert judge(*sides).outcome is FAIL
    assert judge(sides[0], sides[0]).outcome is PASS


@pytest.mark.parametrize("archs, device, runs", [
    (["sm_80"], "sm_80", True), (["sm_80"], "sm_86", True), (["sm_86"], "sm_80", False), (["sm_80"], "sm_90", False),
    (["compute_80"], "sm_90", True), (["compute_90"], "sm_80", False), (["sm_90a"], "sm_90", True),
    (["sm_90a"], "sm_92", False), (["sm_50", "sm_120"], "sm_120", True), (["gfx942"], "sm_90", True),
    ([], "sm_90", True), (["sm_８0"], "sm_90", True),
])
def test_which_device_runs_which_code(archs, device, runs):
    """NVIDIA's rule: machine code runs on its major version from its minor upwards, PTX on anything not older."""
    assert runs_on(tuple(archs), device) is runs


def test_torch_built_for_other_devices_than_present_fails():
    old = {"version": "2.1.0", "built_for": ["sm_70", "sm_80"], "present": ["sm_90"]}
    finding = judge(lock(torch=old), lock())
    assert finding.outcome is FAIL
    assert finding.first_divergence.kind == "architecture"
    assert judge(lock(torch={**old, "built_for": ["sm_80", "sm_90"]}), lock()).outcome is PASS


def test_an_imported_torch_that_is_not_the_installed_one_fails():
    found = lock({"torch": ["2.6.0", "index", "", "binary"]}, torch={"version": "2.6.0+cpu"})
    assert judge(found, found).outcome is PASS
    assert judge(found, {**found, "torch": {"version": "2.5.1"}}).outcome is FAIL


def test_another_build_of_an_extension_is_listed():
    finding = judge(lock(extensions={"op/k": ["aa", []]}), lock(extensions={"op/k": ["bb", []]}))
    assert finding.outcome is PASS
    assert "env-extension-differs" in codes(finding)


def test_the_first_divergence_is_the_most_important_one():
    """Order: version, origin, rank, configuration, tree, switch. Each is removed in turn and the next one is named."""
    left = lock({"datasets": ["3.0", "index", "aa", "pure"]}, configs={"train": config(lr=1)},
                trees={"up": {"commit": "1" * 40, "dirty": 0}}, cuda=GPU)
    right = lock({**package("4.51.0"), "datasets": ["3.0", "index", "bb", "pure"]}, configs={"train": config(lr=2)},
                 env={"INF_NAN_MODE_ENABLE": "0"}, npu=NPU, rank={"rank": 0})
    second = copy.deepcopy(right)
    second["rank"], second["packages"]["accelerate"] = {"rank": 1}, ["1.0", "index", "", "pure"]
    rules = {"must": {"datasets": "*", "transformers": "*"}, "upstream_repo": "up", "upstream_commit": "ecca77b"}
    ranks, seen = [right, second], []
    repairs = [lambda: [one["packages"].update(lock()["packages"]) for one in ranks],
               lambda: [one["packages"].update(datasets=left["packages"]["datasets"]) for one in ranks],
               ranks.pop, lambda: right.update(configs=left["configs"]),
               lambda: left["trees"]["up"].update(commit="ecca77b" + "0" * 33), lambda: right.update(env={})]
    for repair in repairs:
        finding = judge(left, ranks, **rules)
        assert finding.outcome is FAIL
        seen.append((finding.first_divergence.kind, finding.first_divergence.at))
        repair()
    assert seen == [("package", "transformers"), ("origin", "datasets"), ("rank", "candidate rank 1"),
                    ("config", "config:train.lr"), ("tree", "up"), ("env", "INF_NAN_MODE_ENABLE")]
    assert judge(left, ranks, **rules).outcome is PASS


# ---- properties ---------------------------------------------------------------------------------------------------

names = st.sampled_from(["transformers", "datasets", "lerobot", "numpy"])
entries = st.tuples(st.sampled_from(["1.0", "1.0+cu1", "2.0", "odd version"]),
                    st.sampled_from(["index", "vcs", "editable", "archive"]), st.sampled_from(["", "aa", "bb"]),
                    st.sampled_from(["pure", "binary", "?"]),
                    st.fixed_dictionaries({}, optional={"commit": st.sampled_from(["1" * 40, "2" * 40]),
                                                        "modified": st.integers(0, 2),
                                                        "patch": st.sampled_from(["pp", "qq"])})).map(list)
locks = st.builds(lambda packages, env, values: {"packages": packages, "env": env, "configs": {"c": values}},
                  st.dictionaries(names, entries), st.dictionaries(st.sampled_from(LISTED), st.sampled_from("01")),
                  st.dictionaries(st.sampled_from(["lr", "seed", "fp16"]), st.sampled_from([None, 1, 2])).map(
                      lambda values: {"sha256": repr(values), "values": values}))
rule_sets = st.dictionaries(names, st.sampled_from(["*", ">=1", "1.0", "??"]))


@given(locks, locks, rule_sets)
def test_a_verdict_does_not_depend_on_which_side_is_which(left, right, must):
    """No rule here is one-sided (overrides and upstream are not given), so the outcome is symmetric."""
    assert judge(left, right, must=must).outcome is judge(right, left, must=must).outcome


@given(locks, rule_sets)
def test_a_lock_against_itself_never_fails_for_a_difference(one, must):
    finding = judge(one, one, must=must)
    assert finding.outcome is not FAIL or codes(finding) & {"env-outside", "env-origin"}


@given(locks, locks, rule_sets, st.sampled_from(["packages", "configs", "env"]), st.booleans())
def test_dropping_evidence_never_turns_a_verdict_green(left, right, must, section, whole):
    """From either side: a section, or all of a side."""
    before = judge(left, right, must=must)
    if before.outcome is PASS:
        return
    poorer = {key: value for key, value in right.items() if key != section}
    after = judge(left, side("candidate") if whole else poorer, must=must)
    assert after.outcome is not PASS or section == "env"  # an unset variable has a value: its default


anything = st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(string.printable)),
                        lambda inner: st.one_of(st.lists(inner, max_size=4),
                                                st.dictionaries(st.text(max_size=6), inner, max_size=4)), max_leaves=12)
sections = st.sampled_from(("packages", "env", "listed", "configs", "trees", "torch", "cuda", "npu", "extensions"))


@settings(max_examples=200)
@given(anything, st.dictionaries(sections, anything), rule_sets)
def test_a_malformed_document_never_raises_and_never_passes_where_a_rule_needs_it(one, broken, must):
    good = lock()
    for document in (one, broken, {**good, **broken}):
        sides = (side("baseline", good), side("candidate", document))
        policy = Policy(env=EnvRules(must_match={"transformers": "*", **must}, requested={"config:c.lr": "1"}))
        finding = judge_env(*sides, limits={}, floors=Floors(), policy=policy)
        assert finding.outcome is not PASS
        Verdict("L0", "mine", "main", finding).to_json()


# ---- the catalogue ------------------------------------------------------------------------------------------------

def test_every_message_has_both_languages_with_the_same_fields():
    for code, (english, chinese) in MESSAGES.items():
        fields = [{field for _, field, _, _ in string.Formatter().parse(text) if field} for text in (english, chinese)]
        assert fields[0] == fields[1], code
        assert any("\u4e00" <= character <= "\u9fff" for character in chinese), code


def test_every_code_the_judge_can_say_is_in_the_catalogue_and_the_other_way_round():
    import re
    from pathlib import Path

    import pytest_migparity.judges as room
    source = "".join(path.read_text(encoding="utf-8") for path in Path(room.__path__[0]).glob("env*.py"))
    assert set(re.findall(r'"(env-[a-z-]+)"', source)) == set(MESSAGES)


@pytest.mark.parametrize("seen, value, outcome", [
    ("process", True, PASS), ("process", False, FAIL), ("probe", False, OPEN), ("probe", True, OPEN),
])
def test_a_requested_torch_flag_is_judged_in_the_run_never_by_a_probes_defaults(seen, value, outcome):
    sides = [lock(torch=torch(seen, deterministic=value), cuda=GPU) for _ in range(2)]
    assert judge(*sides, requested={"torch:deterministic": "true"}).outcome is outcome
