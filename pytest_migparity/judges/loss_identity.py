"""Agreement that proves nothing: one run handed in for both sides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pytest_migparity.core.evidence import Recorded, Trajectory
from pytest_migparity.core.verdict import Note, note

from .traj_align import Aligned, series_of

if TYPE_CHECKING:
    Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]

FULL_PRECISION = 1e-7  # one unit in the last place, relative to the loss: 8 significant digits or more
EQUAL_STEPS = 20
EQUAL_SHARE = 0.5
CLOCK = frozenset({"time", "elapsed", "throughput", "tflop", "tflops", "tps", "steptime", "seconds", "sec", "ms"})
GLUED = 10  # rows in a row: two devices agree to the last digit at 3 of 100 steps at most


def identity_notes(baseline: Recorded[Trajectory], candidate: Recorded[Trajectory], pair: Aligned
                   ) -> tuple[list[Note], list[Note]]:
    """(agreement that proves nothing, remarks) where the two sides' losses are the same to the last digit.

    A file agrees with itself whatever the port does, so the question is whether two runs stand behind the two logs.
    One sha256: no. Losses equal in 8 printed digits or more, at 20 steps or more and at over half of all: two devices
    do not do that. Another vendor's full-precision losses part within 2e-7 at the first steps (facts/loss.md); over its
    11 such pairs at most 3 of 100 steps are equal, never 20. What does it is a copy, or the same device again.

    The same device again is a fair question to `migparity difftraj`, and a run that repeats itself to the bit answers
    it with a pass, if the logs show that it ran twice: another column (a step's time, a gradient norm) that differs
    where the losses do not, or a resume whose steps had other losses before. Which devices ran is L0's question. Two
    bare columns of equal losses show nothing of the kind, and a migration must not pass on them: INCONCLUSIVE. This
    finds mistakes (a copy, a log that goes on from the other side's), not forgeries.

    A stretch of equal rows in logs that otherwise differ is part of one pasted into the other. It may be the start: two
    logs of one run up to a resume. Then say where they go on from one checkpoint (first_step).

    Fewer digits can be equal honestly: a remark, unless a clock is equal too. Step times that agree to the last digit
    are one run's, whatever its losses say. A rehearsal runs both sides on one machine, repeatable by design, and
    is never taken for the model's verdict: a remark too.
    """
    rehearsed = baseline.witness.producer == candidate.witness.producer == "rehearsal"
    sha256 = baseline.witness.sha256
    if sha256 and sha256 == candidate.witness.sha256 and not rehearsed:
        return [note("loss-same-file", sha256=sha256[:12])], []
    with np.errstate(all="ignore"):
        equal = pair.usable & (np.abs(pair.candidate - pair.baseline) <= (pair.quantum_a + pair.quantum_b) / 2)
        fine = np.maximum(pair.quantum_a / pair.baseline, pair.quantum_b / pair.candidate) <= FULL_PRECISION
    many = int(np.count_nonzero(equal & fine))
    if not rehearsed and (clock := _one_clock(baseline.table, candidate.table)):
        return [note("loss-one-clock", column=clock)], []
    copied = many >= EQUAL_STEPS and many > EQUAL_SHARE * np.count_nonzero(pair.usable)
    if copied and not rehearsed and not _two_runs(baseline, candidate, pair, equal & fine):
        return [note("loss-copied", count=many, steps=int(np.count_nonzero(pair.usable)))], []
    glued = _longest(equal & fine, GLUED)
    if glued is not None and not rehearsed and not copied and not _two_runs(baseline, candidate, pair, equal & fine):
        first, last = int(pair.step[glued[0]]), int(pair.step[glued[1]])
        return [note("loss-glued", count=glued[1] - glued[0] + 1, steps=f"{first}-{last}")], []
    exact = pair.usable.any() and bool(np.array_equal(pair.baseline[pair.usable], pair.candidate[pair.usable]))
    return [], [note("loss-identical", steps=int(pair.usable.sum()))] if exact else []


def _one_clock(baseline: Trajectory, candidate: Trajectory) -> str:
    """The column of times that both logs share to the last digit at 20 steps in a row; empty where none is."""
    for column in baseline.columns.keys() & candidate.columns.keys():
        words = set(re.split(r"[^a-z0-9]+", column.lower()))
        a, b = series_of(baseline, column), series_of(candidate, column)
        if not words & CLOCK or a is None or b is None:
            continue
        _, i, j = np.intersect1d(a.step, b.step, assume_unique=True, return_indices=True)
        stretch = _longest(a.loss[i] == b.loss[j], EQUAL_STEPS)
        if stretch is not None:
            ticks = a.loss[i][stretch[0]: stretch[1] + 1]
            if np.unique(ticks).size > EQUAL_SHARE * ticks.size:
                return column
    return ""


def _longest(equal: Mask, least: int) -> tuple[int, int] | None:
    """(first, last) of the longest run of equal rows, where it is `least` rows or more."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], equal, [False]]).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    if not starts.size:
        return None
    i = int(np.argmax(ends - starts))
    return (int(starts[i]), int(ends[i]) - 1) if ends[i] - starts[i] >= least else None


def _two_runs(baseline: Recorded[Trajectory], candidate: Recorded[Trajectory], pair: Aligned, equal: Mask) -> bool:
    """Does anything in the two logs, where their losses are equal, show that two runs wrote them?

    Another column that differs there, or losses before a resume that are not the other log's.
    """
    if _own_past(baseline.table, candidate.table) or _own_past(candidate.table, baseline.table):
        return True
    steps = pair.step[equal]
    for column in baseline.table.columns.keys() & candidate.table.columns.keys() - {"loss"}:
        a, b = series_of(baseline.table, column), series_of(candidate.table, column)
        if a is None or b is None:
            continue
        common, i, j = np.intersect1d(a.step, b.step, assume_unique=True, return_indices=True)
        kept = np.isin(common, steps, assume_unique=True)
        left, right = a.loss[i][kept], b.loss[j][kept]
        with np.errstate(all="ignore"):
            if np.any(np.abs(left - right) > (a.quantum[i] + b.quantum[j])[kept] / 2):
                return True
    return False


def _own_past(one: Trajectory, other: Trajectory) -> bool:
    """Did a resume of `one` replace losses that are not the other log's? Then it ran before, by itself."""
    theirs = series_of(other)
    if theirs is None or one.replaced == other.replaced:
        return False
    rows = zip(theirs.step.tolist(), theirs.loss.tolist(), theirs.quantum.tolist(), strict=True)
    losses = {step: (loss, unit) for step, loss, unit in rows}
    return any(step in losses and abs(loss - losses[step][0]) > losses[step][1] for step, loss in one.replaced.items())
