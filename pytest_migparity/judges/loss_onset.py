"""Where two trajectories first part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_migparity.core.limits import FLOOR_FACTOR, Floors
from pytest_migparity.core.verdict import Check, Divergence

from .loss_checks import violated
from .loss_growth import change_point
from .traj_align import Aligned

if TYPE_CHECKING:
    from pytest_migparity.core.evidence import Floats

SMALLEST = 1e-6  # no floor, however quiet the rerun, makes less than this a divergence
PER_STEP = 2e-5  # see `envelope`
WIDEST = 5e-4


def envelope(pair: Aligned, floors: Floors) -> Floats:
    """The |d| per step that is still called the same; shape of `pair.step`.

    With floors by step: three times the running maximum of the rerun floor, not below the printed digits or 1e-6.
    Without: what other hardware alone does, 2e-5 at the first step and 2e-5 more per step, up to 5e-4. Measured growth
    of |d| over 11 cross-vendor pairs (facts/loss.md): dense 2e-7 at the start, 3e-6 at steps 6-10, 1e-5 at 51-100;
    mixture of experts 8e-7, 2e-5, 2.4e-4; real bugs 3e-5, 6e-4, 1.8e-3: the envelope lies above the first two and below
    the third at every one of these points.
    """
    elapsed = (pair.step - pair.step[0]).astype(np.float64)
    if not floors.by_step:
        widening: Floats = np.minimum(PER_STEP * (1.0 + elapsed), WIDEST)
        return np.maximum(widening, pair.digits)
    steps = np.array(sorted(floors.by_step), dtype=np.int64)
    running = np.maximum.accumulate(np.array([floors.by_step[int(step)] for step in steps]))
    at = np.searchsorted(steps, pair.step, side="right")
    floor = np.where(at > 0, running[np.maximum(at - 1, 0)], 0.0)
    allowed: Floats = np.maximum(np.maximum(FLOOR_FACTOR * floor, pair.digits), SMALLEST)
    return allowed


def first_divergence(pair: Aligned, checks: tuple[Check, ...], floors: Floors) -> Divergence | None:
    """The first step outside the envelope or broken on one side only.

    Where a pair departs inside the envelope, the step at which |d| changes its level (`change_point`). None where no
    check is beyond its limit and no step outside.
    """
    if not pair.step.size:
        return None
    apart = pair.broken | pair.usable & (np.abs(pair.d) > envelope(pair, floors))
    at = np.flatnonzero(apart)
    if not at.size:
        if not violated(checks):
            return None
        usable = np.flatnonzero(pair.usable)
        at = usable[change_point(np.abs(pair.d[usable])):]
    i = int(at[0])
    return Divergence("step", int(pair.step[i]), float(pair.baseline[i]), float(pair.candidate[i]))


def earlier(one: Divergence | None, other: Divergence | None) -> Divergence | None:
    """Of two divergences by step the earlier; the first where they coincide."""
    return min((each for each in (one, other) if each is not None), key=lambda each: int(each.at), default=None)
