"""L6 from two sites to a verdict: tasks, receipts, floors, what is missing, and the conformance test itself."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from evidence_kit import REPO

from pytest_migparity.assess import assess
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import default_limits
from pytest_migparity.core.manifest import load_manifest
from pytest_migparity.core.outputs import ActionRules, Chain, Pose
from pytest_migparity.core.verdict import Outcome
from pytest_migparity.host.actions import noise_digests, write_actions
from pytest_migparity.sides import Side
from pytest_migparity.wire import receipt
from pytest_migparity.wire.actions import Meta
from pytest_migparity.wire.receipt import Receipt, recipe_hash

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
MANIFEST = """
[model]
name = "arm"
[baseline]
site = "file:baseline"
[candidate]
site = "file:candidate"
"""
TASKS = "[tasks.pick]\n[tasks.place]\n"
VALUES = np.random.default_rng(0).standard_normal((40, 5, 3))
NOISE = noise_digests(np.random.default_rng(1).standard_normal((40, 15)))
SAMPLES = [f"s{k}" for k in range(40)]
NAMES = ("x", "y", "gripper")
TASK = ["pick", "place"] * 20


def write(folder: Path, values=VALUES, name="actions.npz", site=None, task=TASK):
    folder.mkdir(parents=True, exist_ok=True)
    where = site or {"baseline": "H100", "candidate": "910B"}[folder.name]
    meta = Meta("actions", NAMES, ("m", "m", ""), 10, "none", "", where, where)
    write_actions(str(folder / name), values, SAMPLES, meta, noise=NOISE, task=task)


def signed(home: Path):
    expected = recipe_hash(load_manifest(home / "model.toml").recipe.canonical())
    for side in ("baseline", "candidate"):
        files = [receipt.entry_for(str(home / side), path.name, "actions", "", int("rerun1" in path.name))
                 for path in sorted((home / side).glob("actions*"))]
        receipt.write(str(home / side), Receipt("real", expected, tuple(files)))


def verdict(home: Path, task="main"):
    manifest = load_manifest(home / "model.toml")
    handles = [Side(manifest, side, home).actions(task) for side in ("baseline", "candidate")]
    return assess("L6", *handles, manifest=manifest, limits=default_limits(LEVELS["L6"]))


def codes(found):
    return [item.code for item in found.finding.notes]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """One model, both sides with actions a thousandth of a std apart."""
    (tmp_path / "model.toml").write_text(MANIFEST)
    write(tmp_path / "baseline")
    write(tmp_path / "candidate", VALUES + 1e-3)
    return tmp_path


def test_manual_files_of_the_usual_name_are_judged_and_marked(home):
    found = verdict(home)
    assert (found.outcome, found.producers) == (PASS, ("manual",))
    assert (found.finding.coverage.compared, found.finding.coverage.of, found.finding.coverage.unit) == (40, 40, "samples")
    assert "action-whole-stack" in codes(found)


def test_each_task_is_judged_by_its_own_samples(home):
    (home / "model.toml").write_text(MANIFEST + TASKS)
    wrong = VALUES + 1e-3
    wrong[1::2, :, 2] *= -1
    (home / "candidate" / "actions.npz").unlink()
    write(home / "candidate", wrong)
    assert [verdict(home, task).outcome for task in ("pick", "place")] == [PASS, FAIL]
    assert verdict(home, "place").finding.coverage.of == 20


def test_a_file_that_does_not_say_which_samples_are_a_tasks_is_open(home):
    (home / "model.toml").write_text(MANIFEST + TASKS)
    (home / "candidate" / "actions.npz").unlink()
    write(home / "candidate", VALUES + 1e-3, task=None)
    found = verdict(home, "pick")
    assert found.outcome is INCONCLUSIVE
    assert "actions-task-unsaid" in codes(found)


def test_a_task_without_samples_is_open_and_an_undeclared_one_the_users_error(home):
    (home / "model.toml").write_text(MANIFEST + "[tasks.pour]\n")
    found = verdict(home, "pour")
    assert found.outcome is INCONCLUSIVE
    assert codes(found).count("actions-task-absent") == 2
    with pytest.raises(UserError, match="no task 'stack'"):
        verdict(home, "stack")


def test_no_actions_are_open_and_say_what_is_missing(home):
    (home / "candidate" / "actions.npz").unlink()
    found = verdict(home)
    assert found.outcome is INCONCLUSIVE
    assert "evidence-missing-names" in codes(found)


def test_a_damaged_file_is_open_and_says_which(home):
    path = home / "candidate" / "actions.npz"
    path.write_bytes(path.read_bytes()[:-50])
    found = verdict(home)
    assert found.outcome is INCONCLUSIVE
    assert codes(found) == ["evidence-unreadable"]


def test_a_rerun_of_the_baseline_lifts_what_is_close(home):
    """A rerun .03 std away makes .06 std ordinary: 3 x .03; without it the same pair is open."""
    deviation = VALUES.std((0, 1))
    (home / "candidate" / "actions.npz").unlink()
    write(home / "candidate", VALUES + 0.06 * deviation)
    assert verdict(home).outcome is INCONCLUSIVE
    write(home / "baseline", VALUES - 0.03 * deviation, "actions.rerun1.npz")
    signed(home)
    found = verdict(home)
    assert found.outcome is PASS
    close = next(check for check in found.finding.checks if check.name == "close")
    assert (close.limit.floor, close.limit.effective) == (pytest.approx(0.03), pytest.approx(0.09))


def test_the_candidates_own_actions_as_the_baselines_rerun_excuse_nothing(home):
    (home / "candidate" / "actions.npz").unlink()
    other = VALUES + 0.06 * VALUES.std((0, 1))
    write(home / "candidate", other)
    write(home / "baseline", other, "actions.rerun1.npz", site="another file")
    signed(home)
    found = verdict(home)
    assert found.outcome is INCONCLUSIVE
    assert "rerun-is-run" in codes(found)


def test_a_file_that_is_not_the_receipts_is_open(home):
    signed(home)
    (home / "candidate" / "actions.npz").unlink()
    write(home / "candidate", VALUES + 2e-3)
    assert "receipt-hash-differs" in codes(verdict(home))
    assert verdict(home).outcome is INCONCLUSIVE


def test_the_manifest_reads_actions_as_it_says(home):
    (home / "model.toml").write_text(MANIFEST + """
[actions]
gripper = ["gripper"]
threshold = 0.5
poses = [{ kind = "axis-angle", dimensions = ["rx", "ry", "rz"] }]
[actions.kinematics]
joints = ["x"]
dh = [[1, 0, 0, 0.5]]
""")
    assert load_manifest(home / "model.toml").policy().actions == ActionRules(
        ("gripper",), 0.5, (Pose("axis-angle", ("rx", "ry", "rz")),), Chain(("x",), dh=((1, 0, 0, 0.5),)))


@pytest.mark.parametrize("table, what", [
    ('poses = [{ kind = "euler", dimensions = ["a", "b", "c"] }]', "poses"),
    ('poses = [{ kind = "quaternion", dimensions = ["a", "b", "c"] }]', "4 different"),
    ('kinematics = { joints = ["x"], dh = [[1, 0, 0]] }', "dh"),
    ('kinematics = { joints = ["x", "y"], dh = [[1, 0, 0, 0]] }', "2 joints"),
    ('kinematics = { joints = ["x"], links = [{ axis = [0, 0, 0] }] }', "nowhere"),
    ('kinematics = { joints = ["x"], links = [{ axis = [0, 0, 1] }], scale = [1, 2] }', "scale"),
    ('threshold = inf', "threshold"),
    ('grippers = ["x"]', "unknown key"),
])
def test_a_mistake_in_the_manifest_is_named(home, table, what):
    (home / "model.toml").write_text(f"{MANIFEST}[actions]\n{table}\n")
    with pytest.raises(UserError, match=what):
        load_manifest(home / "model.toml")


@pytest.mark.slow
def test_the_conformance_test_has_a_case_for_each_task_and_says_what_to_do(home):
    fixtures = home / "fixtures" / "arm"
    fixtures.mkdir(parents=True)
    for name in ("baseline", "candidate"):
        shutil.move(home / name, fixtures / name)
    (fixtures / "model.toml").write_text(MANIFEST + TASKS)
    (fixtures / "candidate" / "actions.npz").unlink()
    wrong = VALUES + 1e-3
    wrong[1::2] += 0.2
    write(fixtures / "candidate", wrong)
    done = subprocess.run([sys.executable, "-m", "pytest", "-m", "L6", "--migparity-model", "arm", "-p",
                           "no:cacheprovider", "--migparity-lang", "en"], cwd=home, capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": str(REPO)})
    assert done.returncode == 12, done.stdout + done.stderr
    assert "arm · L6 action error [place] · INCONCLUSIVE" in done.stdout
    assert "ask L7" in done.stdout
    assert "accuracy lost? CANNOT TELL" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("side", ["baseline", "candidate"])
@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "bits", "other side's", "other samples", "other noise"])
def test_no_damage_to_a_signed_site_makes_a_pass(home, side, damage):
    """From a pair that passes: the receipt knows its file, and a file with a new receipt is still another question."""
    signed(home)
    assert verdict(home).outcome is PASS
    path = home / side / "actions.npz"
    data = path.read_bytes()
    other = home / ("candidate" if side == "baseline" else "baseline") / "actions.npz"
    if damage == "gone":
        path.unlink()
    elif damage in ("other samples", "other noise"):
        path.unlink()
        meta = Meta("actions", NAMES, ("m", "m", ""), 10, "none", "", "H100" if side == "baseline" else "910B", "x")
        changed = damage == "other noise"
        write_actions(str(path), VALUES + 1e-3, SAMPLES if changed else [f"t{k}" for k in range(40)], meta,
                      noise=NOISE[::-1] if changed else NOISE)
        signed(home)
    else:
        middle = len(data) // 2
        path.write_bytes({"empty": b"", "cut": data[:middle], "other side's": other.read_bytes(),
                          "bits": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1:]}[damage])
    assert verdict(home).outcome is INCONCLUSIVE
