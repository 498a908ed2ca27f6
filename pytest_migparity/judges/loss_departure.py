"""Departure: how far beyond good pairs of its kind a pair lies, from three figures that a reviewer can redo by hand.

Over the first 100 steps, d[t] = ln(candidate[t] / baseline[t]):

    late      mean |d| over the last fifth of the points (at least 3)
    jump      standard deviation of the first differences of d
    movement  standard deviation of the first differences of ln baseline

    departure = lg(late / floor of late) + 5/2 lg(late / jump) + 1/2 lg((jump / movement) / floor of jump / movement)
                + 1/4 where num_zeros moved by more than 40 % at the first step - the family's allowance

in decades; 0 is a typical good pair. Rounding noise jumps from step to step, a bug stays: at equal size the steadier
difference is the worse one (second term). A difference counts for more where the loss itself hardly moves (third).
Two good pairs may be 10^2 apart in `late` while 100 of 113 test cases never are, so the limits are on this sum and not
on `late`. The floors are what reruns of one side show, pooled in logarithms with two reruns' worth of the reference of
the model's family: (sum of lg floor + 2 lg reference) / (number of floor pairs + 2). References and limits were fitted
on 453 labelled real pairs, cross-validated by test case: benchmarks/loss_power.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_migparity.core.limits import Floors

from .traj_align import Aligned

if TYPE_CHECKING:
    from pytest_migparity.core.evidence import Floats

    Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]

WINDOW = 100  # steps; over whole runs good and bad pairs are much harder to tell apart (facts/loss.md)
WINDOW_POINTS = 20  # a sparse log is judged over this many points where 100 steps hold fewer
LEAST_POINTS = 10
LARGEST_FLOOR = 1e-3  # reruns further apart than this excuse nothing more
LEAST = 5e-7  # full-precision logs: differences below this are called equal
TRIMMED = 0.1
NOISE_RANGE = (1e-3, 2.0)
REFERENCE_PAIRS = 2.0
SMOOTHNESS_WEIGHT = 2.5
NOISE_WEIGHT = 0.5
ZEROS_WEIGHT = 0.25
ZEROS_MOVED = 0.4


@dataclass(frozen=True, slots=True)
class Departure:
    """The three figures of one pair; `digits` is what rounding alone can make of |d|, the mean over the window.

    `steady` is the jump without its largest tenth, two rows at least: a few odd rows must not hide a steady difference
    behind their noise (no labelled good pair but one does that). `zeros_moved`: num_zeros of the gradient differs by
    more than 40 % at the first step.
    """

    late: float
    jump: float
    steady: float
    movement: float
    digits: float
    points: int
    zeros_moved: bool = False

    @property
    def noise(self) -> float:
        """Jump over movement, kept within 1e-3 .. 2."""
        if not self.movement > 0:
            return NOISE_RANGE[1]
        return float(np.clip(self.jump / self.movement, *NOISE_RANGE))


@dataclass(frozen=True, slots=True)
class Reference:
    """A family's good pairs: geometric means of `late` and `noise`, and the allowance in decades.

    The allowance makes one limit fit all families: good and bad pairs of mixtures of experts part at less than those of
    dense models do, since their floors are higher and the bugs are not.
    """

    late: float
    noise: float
    allowance: float = 0.0


@dataclass(frozen=True, slots=True)
class Scale:
    """The fitted constants: a reference per family, and the limits: up to `clear` good, beyond `beyond` bad."""

    references: Mapping[str, Reference]
    clear: float
    beyond: float


SHIPPED = Scale(
    {"dense": Reference(4.1e-6, 1.7e-3, 0.05), "moe": Reference(9.3e-5, 1.0e-2, -0.6),
     "dropout": Reference(9.7e-5, 2.3e-2, 1.7)},
    clear=1.9, beyond=2.35,
)


def departure_of(pair: Aligned, zeros: tuple[float, float] | None = None) -> Departure | None:
    """The figures of one pair; None with fewer than 10 finite points. `zeros`: num_zeros of both at the first step."""
    if not pair.usable.any():
        return None
    kept = window_of(pair)
    d, digits = pair.d[kept], pair.digits[kept]
    if d.size < LEAST_POINTS:
        return None
    baseline = np.log(pair.baseline[kept])
    moved = zeros is not None and (max(zeros) + 1) / (min(zeros) + 1) > 1 + ZEROS_MOVED
    rounding = float(digits.mean()) / 3  # the mean |d| that rounding both sides leaves
    least = max(LEAST, rounding)
    return Departure(late=max(float(np.abs(d[-late_points(d.size):]).mean()), least),
                     jump=max(float(np.diff(d).std()), least),
                     steady=max(_spread(np.diff(d)), least), movement=float(np.diff(baseline).std()),
                     digits=float(digits.mean()), points=int(d.size), zeros_moved=moved)


def window_of(pair: Aligned) -> Mask:
    """The usable rows that are weighed: the first 100 steps, or 20 points where those are more."""
    number = np.cumsum(pair.usable)
    first = pair.step[int(np.argmax(pair.usable))]
    kept: Mask = pair.usable & ((pair.step <= first + WINDOW) | (number <= WINDOW_POINTS))
    return kept


def _spread(jumps: Floats) -> float:
    """Standard deviation without the largest tenth by size, two at least: one odd row makes two jumps."""
    kept = np.argsort(np.abs(jumps), kind="stable")[: jumps.size - max(2, int(TRIMMED * jumps.size))]
    return float(jumps[kept].std())


def late_points(n: int) -> int:
    """How many of n points are late: the last fifth, at least three."""
    return max(3, n // 5)


def decades(figures: Departure, reference: Reference, floors: Floors) -> float:
    """The departure of one pair against one family's reference and the measured floors."""
    late = pooled(floors, "late", reference.late)
    noise = pooled(floors, "noise", reference.noise)
    late = max(late, float(np.log10(max(figures.digits, LEAST))))
    return float(np.log10(figures.late) - late + SMOOTHNESS_WEIGHT * np.log10(figures.late / figures.jump)
                 + NOISE_WEIGHT * (np.log10(figures.noise) - noise) + ZEROS_WEIGHT * figures.zeros_moved
                 - reference.allowance)


def pooled(floors: Floors, name: str, reference: float) -> float:
    """The floor in force, as lg: measured floors and the family's reference, weighted by their numbers of pairs."""
    floor = floors.by_check.get(name)
    pairs = 0 if floor is None else floor.pairs
    least, largest = (LEAST, LARGEST_FLOOR) if name == "late" else NOISE_RANGE
    measured = 0.0 if floor is None else pairs * float(np.log10(min(max(floor.value, least), largest)))
    return float((measured + REFERENCE_PAIRS * np.log10(reference)) / (pairs + REFERENCE_PAIRS))


def span(figures: Departure, family: str | None, floors: Floors, scale: Scale = SHIPPED) -> tuple[float, float]:
    """(lowest, highest) departure: equal for a known family; over all families where nobody said which it is."""
    found = [decades(figures, scale.references[name], floors) for name in known(family, scale)]
    return min(found), max(found)


def known(family: str | None, scale: Scale) -> list[str]:
    """The families that a model may be of: its own, or all."""
    return [family] if family is not None and family in scale.references else list(scale.references)


def hidden(figures: Departure, family: str | None, floors: Floors, scale: Scale = SHIPPED) -> float:
    """The lowest departure without the noise of the largest jumps."""
    return span(replace(figures, jump=figures.steady), family, floors, scale)[0]


def geometric_mean(values: Floats) -> float:
    """The exponential of the mean logarithm."""
    return float(np.exp(np.log(values).mean()))
