"""How a difference grows: where it changes level, its shape, and whether it doubles like rounding noise does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .loss_departure import window_of
from .traj_align import Aligned

if TYPE_CHECKING:
    from pytest_migparity.core.evidence import Floats

SHAPES = ("constant", "linear", "exponential")
LEAST_POINTS = 8
SMALLEST = 1e-9  # an exact 0 in full precision
START = 2e-6  # |d| of equal starts on two devices (facts/loss.md: 8e-7 for mixtures of experts, 2e-7 dense)
DECADES = 3.0
STRAIGHT = 0.8  # R^2 of ln |d| on the step


@dataclass(frozen=True, slots=True)
class Growth:
    """The shape of |d| after `step`; `doubling` steps per doubling where it is exponential, else 0."""

    shape: str
    step: int
    doubling: float = 0.0


def change_point(size: Floats) -> int:
    """The index that best splits ln |d| into two levels: the least squared error over all splits (Hinkley 1970)."""
    y = np.log(np.maximum(size, SMALLEST))
    n = y.size
    if n < 2:
        return 0
    left = np.arange(1, n)
    total = np.cumsum(y)
    gain = total[:-1] ** 2 / left + (total[-1] - total[:-1]) ** 2 / (n - left)
    return int(left[np.argmax(gain)])


def growth_of(pair: Aligned, onset: int) -> Growth | None:
    """The shape of ln |d| from `onset` on, within the weighed steps: the best of three fits.

    constant: ln |d| = a; linear: ln |d| = a + ln(t - onset + 1); exponential: ln |d| = a + b t. The last one has a
    parameter more and is taken where it halves the squared error of the better of the others. None with few points.
    """
    kept = window_of(pair) & (pair.step >= onset) if pair.usable.any() else pair.usable
    if np.count_nonzero(kept) < LEAST_POINTS:
        return None
    t = (pair.step[kept] - onset).astype(np.float64)
    y = np.log(np.maximum(np.abs(pair.d[kept]), SMALLEST))
    errors = {"constant": _scatter(y), "linear": _scatter(y - np.log1p(t))}
    slope, scatter = _line(t, y)
    best = min(errors, key=lambda name: errors[name])
    if slope > 0 and scatter < errors[best] / 2:
        return Growth("exponential", onset, float(np.log(2) / slope))
    return Growth(best, onset)


def chaotic(pair: Aligned) -> Growth | None:
    """Growth from a rounding error, doubling at a steady rate: what two correct runs of an unstable system do as well.

    From at most 2e-6 at the first points, over three decades and more, on a straight line in ln |d| (R^2 >= 0.8). A bug
    is not so small at its first step. None where the difference does anything else.
    """
    if not pair.usable.any():
        return None
    kept = window_of(pair)
    t, size = pair.step[kept].astype(np.float64), np.maximum(np.abs(pair.d[kept]), SMALLEST)
    if size.size < LEAST_POINTS or size[:3].max() > START or size[0] <= SMALLEST:
        return None
    y = np.log(size)
    slope, scatter = _line(t, y)
    rise = slope * (t[-1] - t[0]) / np.log(10)
    if rise < DECADES or scatter > (1 - STRAIGHT) * _scatter(y):
        return None
    return Growth("exponential", int(pair.step[kept][0]), float(np.log(2) / slope))


def _scatter(y: Floats) -> float:
    return float(np.sum((y - y.mean()) ** 2))


def _line(t: Floats, y: Floats) -> tuple[float, float]:
    """(slope, squared error) of the least-squares line."""
    centred = t - t.mean()
    slope = float(np.dot(centred, y) / np.dot(centred, centred))
    return slope, _scatter(y - slope * centred)
