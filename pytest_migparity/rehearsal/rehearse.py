"""Run one side of the embedded model for real, in a subprocess, and leave its artifacts and receipt in a folder."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from pytest_migparity.core.errors import UserError
from pytest_migparity.rehearsal.faults import NO_FAULT, Fault, fault_named
from pytest_migparity.rehearsal.kernels import DEFAULT, OTHER, environment
from pytest_migparity.rehearsal.printed import printed_log
from pytest_migparity.rehearsal.recipe import recipe_from
from pytest_migparity.rehearsal.staged import install
from pytest_migparity.wire import receipt

LOSS, RERUN, PRINTED, ENV = "loss.jsonl", "loss.rerun1.jsonl", "train.log", "env.json"
WEIGHTS, DATA, RECORD, RECORD_AGAIN = "weights.digest", "data.digest", "rank0.record", "rank0.rerun1.record"
ACTED, ACTED_AGAIN = "actions.npz", "actions.rerun1.npz"
ROLLED, ROLLED_AGAIN = "rollouts.jsonl", "rollouts.rerun1.jsonl"
RECORDED = ("inputs", "forward", "step")  # the kinds of evidence that one recording is
SERIES, PRINTED_SERIES = "main", "printed"
ERROR_LINES = 5


def rehearse(
    out: Path,
    *,
    recipe: Mapping[str, Any],
    fault: str | None = None,
    kernel: str | None = None,
    steps: int | None = None,
    rerun: bool = False,
    printed: bool = False,
) -> None:
    """Train one side and write its log, environment lock, digests, recording and receipt into `out`.

    These are `loss.jsonl`, `env.json`, `weights.digest`, `data.digest`, `rank0.record`, `actions.npz`,
    `rollouts.jsonl` and `artifacts.json`.

    recipe: a manifest's [recipe]; its hash goes into the receipt. steps: run this many instead (another recipe, so
    another hash). kernel: BLAS kernel of the run ("default", "other", or an OPENBLAS_CORETYPE); None leaves it to the
    fault. rerun: repeat the side on another kernel as `loss.rerun1.jsonl`, `rank0.rerun1.record`, `actions.rerun1.npz`
    and `rollouts.rerun1.jsonl`, the honest floor. printed: the same run once more as LingBot-VLA v2 prints it,
    `train.log`, as series "printed".

    Nothing is ever overwritten: raises UserError if `out` holds anything, and where the run fails.
    """
    chosen = fault_named(fault)
    asked = dict(recipe) if steps is None else {**recipe, "steps": steps}
    recipe_from(asked)  # a recipe that cannot be run is told before the run
    own_kernel = kernel or chosen.host.kernel
    try:
        _claim(out)
        _record(out, asked, chosen, own_kernel, rerun=rerun, printed=printed)
        _write_receipt(out, asked, chosen)
    except OSError as error:
        raise UserError(f"{out} cannot hold the run: {error.strerror}; name another folder with --out") from error


def _claim(out: Path) -> None:
    """Make the folder, or refuse one that is not empty."""
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise UserError(f"{out} is not empty; evidence is never overwritten: name a new folder with --out")


def _record(out: Path, recipe: dict[str, Any], fault: Fault, kernel: str, *, rerun: bool, printed: bool) -> None:
    """Run the side and move what it wrote into `out` once all of it is there."""
    with tempfile.TemporaryDirectory(prefix=".rehearsal-", dir=out) as scratch:
        work, stage = Path(scratch) / "artifacts", Path(scratch) / "packages"
        work.mkdir()
        for package in fault.host.packages:
            install(package, stage)
        order = ["--recipe", json.dumps(recipe), *(["--fault", fault.name] if fault is not NO_FAULT else [])]
        settings = environment(kernel, fault.host.threads, [stage])
        _run([*order, "--loss", str(work / LOSS), "--tensors", str(work), "--env", str(work / ENV)], settings)
        if rerun:
            repeat = OTHER if kernel == DEFAULT else DEFAULT
            again = Path(scratch) / "again"
            again.mkdir()
            _run([*order, "--loss", str(work / RERUN), "--tensors", str(again)],
                 environment(repeat, fault.host.threads, [stage]))
            os.replace(again / RECORD, work / RECORD_AGAIN)
            os.replace(again / ACTED, work / ACTED_AGAIN)
            os.replace(again / ROLLED, work / ROLLED_AGAIN)
        if printed:
            records = [json.loads(line) for line in (work / LOSS).read_text("utf-8").splitlines()]
            (work / PRINTED).write_text(printed_log(records), encoding="utf-8", newline="\n")
        for file in sorted(work.iterdir()):
            os.replace(file, out / file.name)


def _run(arguments: list[str], settings: dict[str, str]) -> None:
    command = [sys.executable, "-P", "-m", "pytest_migparity.rehearsal.run", *arguments]
    done = subprocess.run(command, check=False, env=settings, capture_output=True, text=True)
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-ERROR_LINES:])
        raise UserError(f"the rehearsal's run ended with exit code {done.returncode}:\n{last}")


def _write_receipt(out: Path, recipe: dict[str, Any], fault: Fault) -> None:
    """List what lies in `out`. A stale fault signs for a recipe with another seed."""
    if fault.stale:
        recipe = {**recipe, "seed": recipe.get("seed", 0) + 1}
    places = [(ENV, "env", "", 0), (WEIGHTS, "weights", "", 0), (DATA, "data", "", 0),
              *((RECORD, kind, "", 0) for kind in RECORDED), *((RECORD_AGAIN, kind, "", 1) for kind in RECORDED),
              (ACTED, "actions", "", 0), (ACTED_AGAIN, "actions", "", 1),
              (ROLLED, "rollouts", "", 0), (ROLLED_AGAIN, "rollouts", "", 1),
              (LOSS, "loss", SERIES, 0), (RERUN, "loss", SERIES, 1), (PRINTED, "loss", PRINTED_SERIES, 0)]  # fmt: skip
    entries = tuple(
        receipt.entry_for(str(out), name, kind, series, rerun)
        for name, kind, series, rerun in places
        if (out / name).exists()
    )
    document = receipt.Receipt(
        producer="rehearsal",
        recipe=receipt.recipe_hash(recipe),
        files=entries,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        tool=f"pytest-migparity {_version()}",
    )
    receipt.write(str(out), document)


def _version() -> str:
    try:
        return metadata.version("pytest-migparity")
    except metadata.PackageNotFoundError:  # run from a bare checkout
        return "unknown"
