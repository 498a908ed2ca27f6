"""Real runs of one side in a subprocess: artifacts, receipt, environment, and what is refused."""

import hashlib
import json
import math
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.rehearsal import kernels, staged
from pytest_migparity.rehearsal.printed import printed_log
from pytest_migparity.rehearsal.rehearse import rehearse
from pytest_migparity.wire import receipt

RECIPE: dict[str, Any] = {"seed": 1, "steps": 3, "grad_accumulation": 2}


def losses(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One official run with rerun and printed log."""
    out = tmp_path_factory.mktemp("official") / "side"
    rehearse(out, recipe=RECIPE, rerun=True, printed=True)
    return out


def test_a_run_leaves_its_artifacts_and_nothing_else(official: Path) -> None:
    names = {"actions.npz", "actions.rerun1.npz", "artifacts.json", "data.digest", "env.json", "loss.jsonl",
             "loss.rerun1.jsonl", "rank0.record", "rank0.rerun1.record", "rollouts.jsonl", "rollouts.rerun1.jsonl",
             "train.log", "weights.digest"}
    assert {path.name for path in official.iterdir()} == names
    assert [row["step"] for row in losses(official / "loss.jsonl")] == [0, 1, 2]
    first, *others = losses(official / "loss.jsonl")
    assert first.pop("receipt") == "artifacts.json"  # so that a lost receipt is missed
    assert all(set(row) == {"step", "loss", "grad_norm", "lr"} for row in (first, *others))


def test_the_receipt_signs_for_every_file_and_the_recipe(official: Path) -> None:
    signed = receipt.read(str(official))
    assert signed is not None
    assert signed.producer == "rehearsal"
    assert signed.recipe == receipt.recipe_hash(RECIPE)
    for entry in signed.files:
        assert hashlib.sha256((official / entry.path).read_bytes()).hexdigest() == entry.sha256
    assert [(e.path, e.rerun) for e in signed.entries("loss", "main")] == [("loss.jsonl", 0), ("loss.rerun1.jsonl", 1)]
    assert [e.path for e in signed.entries("loss", "printed")] == ["train.log"]


def test_the_other_kernel_changes_bits_and_nothing_more(official: Path) -> None:
    run, rerun = losses(official / "loss.jsonl"), losses(official / "loss.rerun1.jsonl")
    ratios = [abs(math.log(b["loss"] / a["loss"])) for a, b in zip(run, rerun, strict=True)]
    assert 0 < max(ratios) < 1e-6


def test_two_runs_write_the_same_bytes(official: Path, tmp_path: Path) -> None:
    rehearse(tmp_path / "again", recipe=RECIPE)
    assert (tmp_path / "again" / "loss.jsonl").read_bytes() == (official / "loss.jsonl").read_bytes()


def test_the_environment_lock_finds_the_staged_packages(official: Path) -> None:
    text = (official / "env.json").read_text("utf-8")
    assert "arm-kinematics" in text
    assert "arm-telemetry" in text


def test_the_printed_log_is_the_same_run_with_four_decimals(official: Path) -> None:
    lines = (official / "train.log").read_text("utf-8").splitlines()
    first = losses(official / "loss.jsonl")[0]
    assert lines[0].startswith("Step: 1/3 [")
    assert f"- INFO - __main__ - Step 1/3, Epoch 1, Loss {first['loss']:.4f}, VLA_Loss" in lines[0]
    assert "LR 4.00e-05" in lines[0]
    assert len(lines) == 3


def test_a_fault_happens_in_the_run(official: Path, tmp_path: Path) -> None:
    rehearse(tmp_path / "eps", recipe=RECIPE, fault="eps-misplaced")
    good, bad = losses(official / "loss.jsonl"), losses(tmp_path / "eps" / "loss.jsonl")
    assert [a["loss"] == b["loss"] for a, b in zip(good, bad, strict=True)] == [True, False, False]


def test_stale_evidence_signs_for_another_recipe(tmp_path: Path) -> None:
    rehearse(tmp_path / "stale", recipe=RECIPE, fault="stale-evidence")
    signed = receipt.read(str(tmp_path / "stale"))
    assert signed is not None
    assert signed.recipe == receipt.recipe_hash({**RECIPE, "seed": 2})


def test_other_steps_are_another_recipe(tmp_path: Path) -> None:
    rehearse(tmp_path / "short", recipe=RECIPE, steps=1)
    signed = receipt.read(str(tmp_path / "short"))
    assert signed is not None
    assert signed.recipe != receipt.recipe_hash(RECIPE)
    assert len(losses(tmp_path / "short" / "loss.jsonl")) == 1


def test_a_folder_with_anything_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(UserError, match="not empty"):
        rehearse(tmp_path, recipe=RECIPE)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot hold the run"):
        rehearse(tmp_path / "file", recipe=RECIPE)


def test_a_full_disk_is_told_without_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(receipt, "write", full)
    with pytest.raises(UserError, match="No space left"):
        rehearse(tmp_path / "out", recipe=RECIPE, steps=1)
    assert not (tmp_path / "out" / "artifacts.json").exists()


@pytest.mark.parametrize("change", [{"fault": "nonsense"}, {"steps": 0}, {"kernel": "Haswel"}])
def test_a_wrong_request_leaves_nothing(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        rehearse(tmp_path / "out", recipe=RECIPE, **change)
    assert not list(tmp_path.rglob("*.*"))


def test_a_run_that_breaks_is_told_in_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false" if os.path.exists("/bin/false") else "/usr/bin/false")
    with pytest.raises(UserError, match="exit code 1"):
        rehearse(tmp_path / "out", recipe=RECIPE)
    assert list((tmp_path / "out").iterdir()) == []


def test_blas_settings_reach_the_subprocess_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    before = dict(os.environ)
    own = kernels.environment(kernels.DEFAULT, 1)
    other = kernels.environment(kernels.OTHER, 2, [Path("staged")])
    assert "OPENBLAS_CORETYPE" not in own
    assert own["OPENBLAS_NUM_THREADS"] == "1"
    assert other["OPENBLAS_CORETYPE"] == kernels.other_kernel()
    assert other["OPENBLAS_NUM_THREADS"] == "2"
    assert other["PYTHONPATH"].startswith("staged")
    assert dict(os.environ) == before


def test_no_second_kernel_is_the_users_to_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "CANDIDATES", {})
    kernels.other_kernel.cache_clear()
    with pytest.raises(UserError, match="no second BLAS kernel"):
        kernels.environment(kernels.OTHER, 1)
    kernels.other_kernel.cache_clear()


def test_listing_the_catalogue_imports_no_numpy() -> None:
    code = "import sys, pytest_migparity.rehearsal.rehearse; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, env=kernels.environment(kernels.DEFAULT, 1),
                          capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_a_forks_distribution_has_an_origin_and_other_bytes(tmp_path: Path) -> None:
    found = {}
    for origin in ("index", "fork"):
        staged.install(staged.Distribution(staged.KINEMATICS, "1.0.0", origin), tmp_path / origin)
        found[origin] = next(iter(metadata.distributions(path=[str(tmp_path / origin)])))
    assert {name: dist.version for name, dist in found.items()} == {"index": "1.0.0", "fork": "1.0.0"}
    assert found["index"].read_text("direct_url.json") is None
    assert "vcs_info" in json.loads(found["fork"].read_text("direct_url.json") or "{}")
    files = [{f.name: f.hash.value for f in dist.files or [] if f.hash} for dist in found.values()]
    assert files[0]["arm_kinematics.py"] != files[1]["arm_kinematics.py"]
    for dist in found.values():
        for file in dist.files or []:
            assert Path(str(file.locate())).exists()


def test_printed_steps_count_from_one() -> None:
    text = printed_log([{"step": 0, "loss": 0.11604, "grad_norm": 0.95094, "lr": 1e-4}])
    assert "Step 1/1, Epoch 1, Loss 0.1160, VLA_Loss 0.1160, GradNorm 0.9509, LR 1.00e-04, " in text
