"""Are the reruns reruns? A run of another seed, another numbering or a broken one would lift every limit."""

from __future__ import annotations

import numpy as np

from pytest_migparity.core.evidence import Evidence, Trajectory
from pytest_migparity.core.levels import LEVELS, Direction
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Note, note

from .loss_checks import checks_of
from .loss_notes import doubtful
from .traj_align import align, constant_shift, series_of

LEVEL = LEVELS["L5"]


def rerun_problems(baseline: Evidence[Trajectory], steps: int | None = None) -> list[Note]:
    """Why a rerun cannot measure a floor for this baseline: with any of them the level settles nothing.

    It must log the baseline's steps, hold finite losses wherever the baseline does, leave no doubt as to which rows
    count, and lie within the caps of L5 and the limit of `order`: what is further away is no repetition.
    """
    return [problem for rerun in baseline.reruns for problem in _problems(baseline, rerun.table, rerun.witness.name,
                                                                         list(rerun.repairs), steps)]


def _problems(baseline: Evidence[Trajectory], rerun: Trajectory, name: str, repairs: list[Note], steps: int | None
              ) -> list[Note]:
    a, b = series_of(baseline.runs[0].table), series_of(rerun)
    if a is None or b is None or not a.step.size or not b.step.size:
        return [note("rerun-unusable", file=name, why="no rows")]
    if doubtful(repairs):
        return [note("rerun-unusable", file=name, why="rows in doubt")]
    pair = align(a, b, steps)
    if constant_shift(a, b) or not pair.usable.any() or pair.baseline_missing.size or pair.candidate_missing.size:
        return [note("rerun-unusable", file=name, why="other steps")]
    if pair.broken.any():
        return [note("rerun-unusable", file=name, why="NaN or Inf")]
    checks, _ = checks_of(pair, a, b, default_limits(LEVEL), Floors())
    for check in checks:
        spec = LEVEL.check(check.name)
        most = spec.default if check.name == "order" else spec.cap
        if check.limit is None or check.blocked or not np.isfinite(check.value):
            continue
        if check.value < most if spec.direction is Direction.MIN else check.value > most:
            return [note("rerun-apart", file=name, check=check.name, value=check.value, most=most)]
    return []
