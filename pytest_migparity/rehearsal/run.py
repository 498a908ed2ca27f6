"""One side's run, inside the subprocess that `rehearse` prepared: trains, and writes the log or the environment lock.

    python -m pytest_migparity.rehearsal.run --recipe JSON [--fault NAME] [--loss FILE] [--tensors DIR] [--env FILE]

Not to be started by hand: BLAS kernel, threads and installed packages come from the environment of this process.
"""

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pytest_migparity.rehearsal.faults import fault_named
from pytest_migparity.rehearsal.recipe import recipe_from
from pytest_migparity.rehearsal.staged import KINEMATICS, TELEMETRY
from pytest_migparity.rehearsal.variant import Variant
from pytest_migparity.wire import receipt


def main(arguments: list[str] | None = None) -> None:
    """Write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", required=True, help="the manifest's [recipe], as JSON")
    parser.add_argument("--fault", help="an entry of the catalogue; left out: the official run")
    parser.add_argument("--loss", type=Path, help="where the loss log goes")
    parser.add_argument("--tensors", type=Path, help="where what else the logged run leaves goes")
    parser.add_argument("--env", type=Path, help="where the environment lock goes")
    asked = parser.parse_args(arguments)
    if asked.loss:
        write_loss(asked.loss, json.loads(asked.recipe), fault_named(asked.fault).variant, asked.tensors)
    if asked.env:
        write_env(asked.env, json.loads(asked.recipe))


def write_loss(path: Path, recipe: dict[str, Any], variant: Variant, tensors: Path | None = None) -> None:
    """Train and write one JSON object per step: step (from 0), loss, grad_norm, lr, each float with all its digits.

    The first also names the receipt that will lie beside the log. Into the folder `tensors` go the digests of weights
    and data, the recording of chosen steps of this very run, the actions of the policy that it trained, and its
    episodes in closed loop.
    """
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        raise SystemExit("the BLAS settings are not in the environment: start this through rehearse()")
    from pytest_migparity.rehearsal.acted import write_acted
    from pytest_migparity.rehearsal.policy import initial_weights
    from pytest_migparity.rehearsal.rolled import write_rolled
    from pytest_migparity.rehearsal.train import train
    from pytest_migparity.rehearsal.watch import Watch, write_digests

    standard = recipe_from(recipe)
    watch = None if tensors is None else Watch(standard, tensors)
    trained = train(standard, variant, watch=watch)
    if tensors is not None:
        write_digests(tensors, initial_weights(standard.seed, variant))
        write_acted(tensors, trained.weights, variant)
        write_rolled(tensors, trained.weights, variant)
    records = [asdict(record) for record in trained.log]
    records[0]["receipt"] = receipt.NAME
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8", newline="\n")


def write_env(path: Path, recipe: dict[str, Any]) -> None:
    """Lock the environment of this very process; the effective configuration is the recipe with its defaults.

    A receipt will lie beside it, and the lock says so: a folder whose receipt was lost can be told from one without.
    The staged packages' files are held against their recorded hashes. torch is not looked for: nothing here uses it.
    """
    from pytest_migparity.host.envlock import collect, render

    with TemporaryDirectory() as folder:
        effective = Path(folder) / "recipe.json"
        effective.write_text(json.dumps(asdict(recipe_from(recipe))), encoding="utf-8")
        lock = collect(packages=(KINEMATICS, TELEMETRY), configs=[("recipe", str(effective))], torch=False)
    lock["receipt"] = receipt.NAME
    path.write_text(render(lock), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
