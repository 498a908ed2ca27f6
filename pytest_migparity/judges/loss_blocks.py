"""What happens after the weighed first steps: stretches of another stream, bad steps, a resume that lost its state.

Good long runs (16 of the labelled pairs) part slowly: in every stretch of 100 points a dense model's step-to-step
changes correlate at .999, no row is beyond 2.5e-3 and 40 medians, and the median of |d| stays below 1.5e-3; models that
draw masks reach .88, 8e-2 and 8e-2 after thousands of steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_migparity.core.evidence import Trajectory
from pytest_migparity.core.verdict import Note, note

from .loss_departure import window_of
from .traj_align import Aligned
from .traj_stats import ORDER_STEPS, SPIKES, moves, spearman

BLOCK = 100
ORDER = 0.5, 0.9  # bad below the first, in doubt below the second
APART = 0.1, 1e-2  # largest |d| of odd rows, or the median of |d|: bad beyond the first, in doubt beyond the second
JOINT_ROWS = 20
JOINT_JUMP = 10.0
JOINT_LEAST = 1e-4


@dataclass(frozen=True, slots=True)
class Blocks:
    """Notes that fail, and that leave open."""

    failed: tuple[Note, ...] = ()
    unsure: tuple[Note, ...] = ()


def blocks_of(pair: Aligned, tables: tuple[Trajectory, Trajectory]) -> Blocks:
    """The worst stretch after the weighed steps, by order, odd rows and size; and each resume that changed the size."""
    rows = np.flatnonzero(pair.usable)
    start = int(np.count_nonzero(window_of(pair))) if rows.size else 0
    failed: list[Note] = []
    unsure: list[Note] = []
    worst_order, worst_apart = (1.0, 0), (0.0, 0)
    for at in range(start, rows.size, BLOCK // 2):
        part = rows[max(0, min(at, rows.size - BLOCK)): at + BLOCK]
        if part.size < ORDER_STEPS:
            continue
        step, d = int(pair.step[part[0]]), np.abs(pair.d[part])
        a, b = np.diff(np.log(pair.baseline[part])), np.diff(np.log(pair.candidate[part]))
        order = spearman(a, b) if moves(pair.d[part], pair.baseline[part]) else 1.0
        middle = float(np.median(d))
        apart = max(middle, float(d.max()) if d.max() > SPIKES * middle else 0.0)
        worst_order = min(worst_order, (1.0 if np.isnan(order) else order, step))
        worst_apart = max(worst_apart, (apart, step))
    if worst_order[0] < ORDER[1]:
        (failed if worst_order[0] < ORDER[0] else unsure).append(
            note("loss-block-order", step=worst_order[1], order=worst_order[0]))
    if worst_apart[0] > APART[1]:
        (failed if worst_apart[0] > APART[0] else unsure).append(
            note("loss-block-apart", step=worst_apart[1], apart=worst_apart[0]))
    return Blocks(tuple(failed), (*unsure, *_joints(pair, rows, tables)))


def _joints(pair: Aligned, rows: np.ndarray, tables: tuple[Trajectory, Trajectory]) -> list[Note]:
    """Resumes after which the sides are ten times as far apart as before: state that was not restored."""
    found = []
    step, d = pair.step[rows], np.abs(pair.d[rows])
    for side, table in zip(("baseline", "candidate"), tables, strict=True):
        for joint in table.joints:
            at = int(np.searchsorted(step, joint))
            before, after = d[max(0, at - JOINT_ROWS): at], d[at: at + JOINT_ROWS]
            if before.size and after.size and after.mean() > max(JOINT_LEAST, JOINT_JUMP * before.mean()):
                found.append(note("loss-joint", side=side, step=joint, before=float(before.mean()),
                                  after=float(after.mean())))
    return found
