"""What the judge of L5 says about the evidence: rows in doubt, steps missing, losses broken, numbering in doubt."""

from __future__ import annotations

import numpy as np

from pytest_migparity.core.evidence import Policy, Trajectory
from pytest_migparity.core.verdict import Note, note

from .traj_align import Aligned, Series, constant_shift, ranges

SAME_MEAN = 1e-3  # mean |d| of good pairs ends about here (facts/loss.md: 8.5e-4 at 95 % of another vendor's)
DOUBTFUL = frozenset({"read-chart-grouped", "read-repeat-differs", "read-resume-differs", "read-steps-are-positions",
                      "read-replaced-non-finite", "read-two-formats", "read-value-twice"})


def doubtful(notes: list[Note]) -> bool:
    """Did a reader have to choose between values without knowing which counts? Then nobody knows what was judged."""
    return any(item.code in DOUBTFUL for item in notes)


def window_notes(baseline: Trajectory, candidate: Trajectory) -> list[Note]:
    """Losses that are means over unlike numbers of steps are not one quantity."""
    if baseline.window == candidate.window:
        return []
    return [note("loss-windows", baseline=baseline.window, candidate=candidate.window)]


def coverage_notes(pair: Aligned, a: Series, b: Series, policy: Policy) -> list[Note]:
    """The steps that are missing, by side; empty where everything expected was compared."""
    interval = max(a.interval, b.interval)
    both = np.intersect1d(pair.baseline_missing, pair.candidate_missing)
    groups = (("both", both), ("baseline", np.setdiff1d(pair.baseline_missing, both)),
              ("candidate", np.setdiff1d(pair.candidate_missing, both)))
    notes = []
    for side, missing in groups:
        if missing.size:
            unlisted = pair.unlisted if side == "both" else 0
            notes.append(note("loss-missing", side=side, count=int(missing.size) + unlisted,
                              steps=ranges(missing, interval) + (", ..." if unlisted else "")))
    if notes and policy.steps is not None and a.interval == b.interval > policy.interval:
        notes.append(note("loss-sparse", interval=interval, steps=policy.steps, declared=policy.interval))
    return notes


def broken_notes(pair: Aligned) -> tuple[list[Note], list[Note]]:
    """(losses broken on one side only, pairs whose ratio is undefined on both)."""
    notes: list[Note] = []
    for side, loss in (("baseline", pair.baseline), ("candidate", pair.candidate)):
        bad = pair.broken & ~np.isfinite(loss)
        if bad.any():
            notes.append(note("loss-non-finite", side=side, step=int(pair.step[bad][0]), count=int(bad.sum())))
        bad = pair.broken & np.isfinite(loss) & (loss <= 0)
        if bad.any():
            notes.append(note("loss-not-positive", side=side, step=int(pair.step[bad][0]), count=int(bad.sum())))
    undefined = [note(code, count=int(steps.size), steps=ranges(steps))
                 for code, steps in (("loss-both-non-finite", pair.both_non_finite),
                                     ("loss-both-not-positive", pair.both_not_positive)) if steps.size]
    return notes, undefined


def numbering_notes(pair: Aligned, a: Series, b: Series) -> list[Note]:
    """Why the two sides' step numbers may not mean the same: nothing is shifted silently, it is offered.

    Different logging intervals: a logged loss is often the mean since the last one, so equal steps hold different
    quantities. A constant shift of all steps: said where nothing overlaps, or where the rows agree one to one and the
    steps do not.
    """
    if a.interval != b.interval and min(a.step.size, b.step.size) > 1:
        return [note("loss-intervals", baseline=a.interval, candidate=b.interval)]
    shift = constant_shift(a, b)
    if not shift:
        return []
    n = min(a.loss.size, b.loss.size)
    left, right = a.loss[:n], b.loss[:n]
    usable = (left > 0) & (right > 0) & np.isfinite(left) & np.isfinite(right)
    by_row = np.abs(np.log(right[usable]) - np.log(left[usable])).mean() if usable.any() else np.inf
    by_step = np.abs(pair.d[pair.usable]).mean() if pair.usable.any() else np.inf
    if pair.step.size and not by_row <= SAME_MEAN < by_step:
        return []
    return [note("loss-offset", offset=shift, baseline=int(a.step[0]), candidate=int(b.step[0]))]
