"""Weak mode of L5: noise or seed differ between the sides, so only several runs per side say anything."""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from pytest_migparity.core.evidence import Evidence, Policy, Recorded, Trajectory
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, Limits, limit_for
from pytest_migparity.core.verdict import Check, Coverage, Finding, Note, Outcome, note

from .loss_channels import channels_of
from .loss_notes import doubtful
from .traj_align import align, last_expected, series_of
from .traj_stats import tail_points

if TYPE_CHECKING:
    from pytest_migparity.core.evidence import Floats

RUNS = 5  # facts/loss.md: at least five seeds per side
SAME_STEPS = 20
ALPHA = 0.05
SPEC = LEVELS["L5"].checks["tail"]


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Welch's interval for mean(b) - mean(a) at 1 - 2 alpha: two one-sided tests at `alpha` each (Schuirmann 1987)."""

    difference: float
    lower: float
    upper: float

    @property
    def margin(self) -> float:
        """The smallest margin for which both one-sided tests reject."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def at_least(self) -> float:
        """The smallest |difference| inside the interval."""
        return max(0.0, self.lower, -self.upper)


def equivalence(a: Floats, b: Floats, alpha: float = ALPHA) -> Equivalence:
    """TOST by Welch's t: variances may differ (Welch-Satterthwaite degrees of freedom). Needs two values a side."""
    from scipy.special import stdtrit  # only weak mode pays for scipy

    va, vb = a.var(ddof=1) / a.size, b.var(ddof=1) / b.size
    difference, error = float(b.mean() - a.mean()), math.sqrt(va + vb)
    if error == 0.0:
        return Equivalence(difference, difference, difference)
    freedom = (va + vb) ** 2 / (va**2 / (a.size - 1) + vb**2 / (b.size - 1))
    half = float(stdtrit(freedom, 1.0 - alpha)) * error
    return Equivalence(difference, difference - half, difference + half)


def judge_weak(sides: tuple[Evidence[Trajectory], Evidence[Trajectory]], notes: list[Note], *,
               limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """Are the sides' tail means of ln loss equivalent within the limit of `tail`? Never pointwise.

    The value of `tail` is the smallest margin at which the runs would be equivalent. PASS says "statistically
    compatible", never "the same". FAIL: the whole interval lies beyond the limit, runs of one side only are broken, or
    the sides train by another learning rate.
    INCONCLUSIVE: fewer than five different runs on a side, runs that do not cover the same steps, no spread between
    runs, an interval that reaches over the limit.
    """
    limit = limit_for(SPEC, limits, floors)
    tails = [np.array([_tail(run, policy) for run in side.runs]) for side in sides]
    broken = [bool(np.isnan(tail).any()) for tail in tails]
    reasons = [*_runs_missing(sides), *_uneven(sides, policy)]
    value, blocked, outcome = math.nan, "loss-check-weak" if reasons else "", Outcome.INCONCLUSIVE
    if not reasons and broken[0] != broken[1]:
        value, outcome = math.inf, Outcome.FAIL
        reasons = [note("loss-weak-broken", side=sides[broken.index(True)].side)]
    elif not reasons and any(broken):
        blocked, reasons = "loss-check-undefined", [note("loss-undefined", check=SPEC.name)]
    elif not reasons:
        result = equivalence(tails[0], tails[1])
        value = result.margin
        shown = {"difference": result.difference, "lower": result.lower, "upper": result.upper,
                 "limit": limit.effective}
        if result.lower == result.upper:
            blocked, reasons = "loss-check-weak", [note("loss-weak-no-spread")]
        elif result.margin <= limit.effective:
            outcome, reasons = Outcome.PASS, [note("loss-weak-compatible", **shown)]
        elif result.at_least > limit.effective:
            outcome, reasons = Outcome.FAIL, [note("loss-weak-apart", **shown)]
        else:
            blocked, reasons = "loss-check-weak", [note("loss-weak-wide", **shown)]
    if all(side.runs for side in sides) and (rates := _rates(sides)):
        reasons, outcome = [*reasons, *rates], Outcome.FAIL
    if any(side.problems for side in sides) or doubtful(notes):
        outcome = Outcome.INCONCLUSIVE
    runs = [run for side in sides for run in side.runs]
    coverage = Coverage("runs", int(sum(np.isfinite(tail).sum() for tail in tails)), max(len(runs), 2 * RUNS),
                        repaired=sum(run.repaired for run in runs), dropped=sum(run.dropped for run in runs))
    return Finding(outcome, (Check("tail", value, limit, SPEC.unit, blocked=blocked),), coverage,
                   notes=(*notes, *reasons), mode="weak")


def _rates(sides: tuple[Evidence[Trajectory], ...]) -> list[Note]:
    """Learning rates that differ between the sides' first runs: an input of training, whatever the seeds are."""
    ours, theirs = (side.runs[0].table for side in sides)
    a, b = series_of(ours), series_of(theirs)
    if a is None or b is None or not a.step.size or not b.step.size:
        return []
    return [item for item in channels_of(ours, theirs, align(a, b)).failed if item.code == "loss-lr-differs"]


def _tail(run: Recorded[Trajectory], policy: Policy) -> float:
    """Mean ln loss over the last tenth of the recipe's steps; NaN where any loss is not finite and positive."""
    series = series_of(run.table)
    if series is not None:
        series = series.within(policy.first, last_expected(series, series, policy.steps))
    if series is None or not series.step.size or not np.all(np.isfinite(series.loss) & (series.loss > 0)):
        return math.nan
    return float(np.log(series.loss[-tail_points(series.loss.size):]).mean())


def _runs_missing(sides: tuple[Evidence[Trajectory], ...]) -> list[Note]:
    """Sides with fewer than five *different* runs: a run handed in twice counts once, in whatever file.

    Runs with another seed differ in their first digits; 20 equal losses in a row are one run, however few the digits.
    """
    notes: list[Note] = []
    seen: dict[str, str] = {}
    for side in sides:
        different = 0
        for run in side.runs:
            series = series_of(run.table)
            marks = [run.witness.sha256] if run.witness.sha256 else []
            if series is not None and (series.loss.size >= SAME_STEPS or not marks):
                marks.append(sha256(series.step.tobytes() + series.loss.tobytes()).hexdigest())
            other = next((seen[mark] for mark in marks if mark in seen), None)
            if other is not None:
                notes.append(note("loss-weak-repeated", side=side.side, name=run.witness.name, other=other))
                continue
            seen.update(dict.fromkeys(marks, run.witness.name))
            different += 1
        if different < RUNS:
            notes.append(note("loss-weak-needs", side=side.side, runs=different, more=RUNS - different))
    return sorted(notes, key=lambda item: item.code != "loss-weak-needs")


def _uneven(sides: tuple[Evidence[Trajectory], ...], policy: Policy) -> list[Note]:
    """Do all runs cover the same steps, and all that are asked for?"""
    tables = [series_of(run.table) for side in sides for run in side.runs]
    present = [table for table in tables if table is not None and table.step.size]
    if not present:
        return []
    even = all(np.array_equal(table.step, present[0].step) for table in present)
    whole = align(present[0], present[0], policy.steps, policy.interval).baseline_missing.size == 0
    return [] if even and whole and len(present) == len(tables) else [note("loss-weak-uneven")]
