"""The held-out problems driven by the policy that a run trained: the evidence of L7."""

import os
from pathlib import Path

from pytest_migparity.rehearsal.closed_loop import as_rollouts
from pytest_migparity.rehearsal.demos import load
from pytest_migparity.rehearsal.precision import Singles
from pytest_migparity.rehearsal.rollout import roll_out
from pytest_migparity.rehearsal.variant import OFFICIAL, Variant
from pytest_migparity.wire.rollouts import NAME, to_line


def write_rolled(folder: Path, weights: Singles, variant: Variant = OFFICIAL) -> None:
    """Write `rollouts.jsonl`: every problem once, all of them driven at once, with noise keyed by (problem, query)."""
    problems = load("held_out")
    kernel = f"CPU, kernel {os.environ.get('OPENBLAS_CORETYPE', 'default')}"
    lines = [to_line(episode._replace(device=kernel)) for episode in
             as_rollouts(problems, roll_out(weights, problems, variant))]
    (folder / NAME).write_text("".join(lines), encoding="utf-8", newline="\n")
