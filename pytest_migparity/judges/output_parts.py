"""Errors of outputs in units of the baseline's own spread, and the checks that hold them against the limits of L6."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, Limits, limit_for
from pytest_migparity.core.verdict import Check, Divergence, Note, note

from .recorded import listed

Floats = NDArray[np.float64]

ASK = "action-ask-L7"
RARE = "action-rare"
_CONSTANT = 1e-6  # a spread below this part of the largest value is what arithmetic leaves of a constant


@dataclass(frozen=True, slots=True)
class Part:
    """One thing whose error has a size of its own: a dimension, a rotation, a set of logits, of boxes.

    `error`: absolute errors [sample, ...], NaN where there is nothing to compare. `scale`: what they are set in
    proportion to, the baseline's standard deviation over samples; 0 where it has none. `baseline` and `candidate` are
    the values behind them, of the same shape, where there are such.
    """

    name: str
    error: Floats
    scale: float
    unit: str = ""
    baseline: Floats | None = None
    candidate: Floats | None = None

    def quantile(self, share: float) -> float:
        """The least error seen that no more than `1 - share` of the errors exceed."""
        seen = self.error[np.isfinite(self.error)]
        return float(np.quantile(seen, share, method="inverted_cdf")) if seen.size else math.nan

    @property
    def p99(self) -> float:
        """The error that at most one value in a hundred exceeds, in units of the scale."""
        return self._scaled(self.quantile(0.99))

    @property
    def worst(self) -> float:
        """The largest error, in units of the scale."""
        return self._scaled(self.quantile(1.0))

    @property
    def rmse(self) -> float:
        """Root of the mean squared error, in the part's own unit."""
        return float(np.sqrt(np.nanmean(self.error**2)))

    def _scaled(self, error: float) -> float:
        if error == 0:
            return 0.0
        return error / self.scale if self.scale > 0 else math.inf

    def place(self) -> tuple[int, ...]:
        """Where the largest error is: sample and what follows."""
        filled = np.where(np.isfinite(self.error), self.error, -1.0)
        return tuple(int(k) for k in np.unravel_index(int(filled.argmax()), filled.shape))


def spread(values: Floats) -> float:
    """Standard deviation of one dimension over samples; of a constant its own size, and 0 for a constant 0.

    A constant that is not 0 is its own yardstick: five per cent of it are close.
    """
    if not values.size:
        return 0.0
    largest, deviation = float(np.abs(values).max()), float(values.std())
    return deviation if deviation > _CONSTANT * largest else largest


def varies(values: Floats) -> bool:
    """Is there more than one value, beyond what arithmetic leaves of a constant?"""
    return bool(values.size) and float(values.std()) > _CONSTANT * float(np.abs(values).max())


def chosen(sample: Sequence[str], mask: Any) -> tuple[str, ...]:
    """The samples where the mask is set."""
    return tuple(name for name, wanted in zip(sample, mask.tolist(), strict=True) if wanted)


def finite_rows(a: Floats, b: Floats, sample: Sequence[str]) -> tuple[list[Note], list[Note], NDArray[np.bool_]]:
    """(what fails: NaN or Inf on one side only; what is open: on both; which samples are whole on both sides)."""
    fine = [np.isfinite(side).reshape(len(side), -1) for side in (a, b)]
    one, both = (fine[0] != fine[1]).any(1), (~fine[0] & ~fine[1]).any(1)
    broken = [note("action-broken", side=side, count=int(rows.sum()), names=listed(chosen(sample, rows)))
              for side, rows in (("baseline", (fine[1] & ~fine[0]).any(1)), ("candidate", (fine[0] & ~fine[1]).any(1)))
              if rows.any()]
    unsure = [note("action-broken-alike", count=int(both.sum()), names=listed(chosen(sample, both)))] \
        if both.any() else []
    return broken, unsure, np.asarray(~one & ~both, bool)


def figures_of(a: Floats, b: Floats) -> dict[str, float]:
    """The figures that every public report states: max_abs, mean_abs, rmse, and the least cosine of a sample."""
    error = np.abs(b - a)
    return {"max_abs": float(error.max()), "mean_abs": float(error.mean()), "rmse": float(np.sqrt((error**2).mean())),
            "cosine": least_cosine(a, b)}


def least_cosine(a: Floats, b: Floats) -> float:
    """The least cosine between two sides' rows; a row of zeros on one side alone has 0, on both none."""
    x, y = a.reshape(len(a), -1), b.reshape(len(b), -1)
    sizes = np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1)
    seen = (sizes[0] > 0) | (sizes[1] > 0)
    product = sizes[0] * sizes[1]
    cosine = np.where(product > 0, (x * y).sum(1) / np.where(product > 0, product, 1), 0.0)[seen]
    return float(np.clip(cosine.min(), -1, 1)) if cosine.size else math.nan


@dataclass(frozen=True, slots=True)
class Measured:
    """What one kind of output gave: parts with a scale, other graded numbers by check, figures for the reader.

    `unsure` keep the level from passing, `broken` fail it, `notes` and `hints` tell. `compared` are the samples of
    the rows of the parts.
    """

    parts: tuple[Part, ...]
    compared: tuple[str, ...]
    graded: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    unsure: tuple[Note, ...] = ()
    broken: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()
    hints: tuple[Note, ...] = ()
    beyond: Mapping[str, str] = field(default_factory=dict)
    """Why a graded number beyond its limit leaves the level open, where that is not that the task must tell."""


def checks_of(measured: Measured, limits: Limits, floors: Floors) -> tuple[Check, ...]:
    """Every check of the evidence, then the figures.

    Only `far` can be violated: between `close` and `far`, and beyond any other limit, L6 cannot tell, so that the check
    is blocked with the reason.
    """
    level = LEVELS["L6"]
    values: dict[str, tuple[float, str]] = {}
    if measured.parts:
        p99 = max((part.p99 for part in measured.parts if not math.isnan(part.p99)), default=math.nan)
        worst = max((part.worst for part in measured.parts if not math.isnan(part.worst)), default=math.nan)
        values = {"close": (p99, ASK), "far": (p99, ""), "worst": (worst, RARE)}
    values |= {name: (value, measured.beyond.get(name, ASK)) for name, value in measured.graded.items()}
    checks = []
    for name, (value, why) in values.items():
        spec = level.check(name)
        limit = limit_for(spec, limits, floors)
        open_ = why and not limit.holds(value)
        checks.append(Check(name, value, limit, spec.unit, why if open_ else ""))
    figures = tuple(Check(name, value, unit=_UNITS.get(name, "")) for name, value in measured.figures.items())
    return (*checks, *figures)


_UNITS = {"growth": "x per step", "turn_max": "rad", "reach_max": "m"}


def worst_part(parts: Sequence[Part]) -> Part | None:
    """The part that is furthest apart by p99, then by its largest error."""
    seen = [part for part in parts if not math.isnan(part.p99)]
    return max(seen, key=lambda part: (part.p99, part.worst), default=None)


def divergence_of(part: Part, sample: Sequence[str]) -> Divergence:
    """The part, and the values at its largest error."""
    place = part.place()
    where = f"{part.name} of sample {sample[place[0]]}"
    inner = [str(k) for k, length in zip(place[1:], part.error.shape[1:], strict=True) if length > 1]
    where += f" at {', '.join(inner)}" if inner else ""
    if part.baseline is None or part.candidate is None:
        return Divergence("dimension", where, 0.0, float(part.error[place]))
    return Divergence("dimension", where, float(part.baseline[place]), float(part.candidate[place]))
