"""Two trajectories side by side: which steps both have, which are missing, and what each pair of losses is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_migparity.core.evidence import Trajectory

if TYPE_CHECKING:
    from pytest_migparity.core.evidence import Floats, Ints

RANGES_SHOWN = 6
GRID_ROWS = 10
STEPS_LISTED = 100_000  # steps missing on both sides are listed up to here; beyond it they are counted
LARGEST_STEP = 2**53  # float64 tells all steps up to here apart
COARSEST = 1e6  # no |d| of two float64 is above 1455: digits coarser than that hide everything, and sums stay finite


@dataclass(frozen=True, slots=True)
class Series:
    """One side's judged column in step order: `step` strictly increasing, `loss` and `quantum` as long as it."""

    step: Ints
    loss: Floats
    quantum: Floats
    interval: int

    def within(self, first: int | None, last: int | None) -> Series:
        """The rows from step `first` up to and including step `last`; None is no bound."""
        kept = np.ones(self.step.shape, dtype=bool)
        if first is not None:
            kept &= self.step >= first
        if last is not None:
            kept &= self.step <= last
        return Series(self.step[kept], self.loss[kept], self.quantum[kept], self.interval)


@dataclass(frozen=True, slots=True)
class Aligned:
    """The steps both sides logged, and what is missing where.

    `d` is ln(candidate / baseline), +inf where only one side's loss is finite and positive, NaN where neither is.
    `digits` bounds what rounding to the printed digits alone can make of |d|: half a unit in the last place of both
    sides, relative to the loss. `usable` marks the pairs whose `d` is finite; `broken` those where one side alone is
    non-finite or not positive. `expected` counts the steps a complete pair has; `unlisted` of them are missing on both
    sides and in neither list.
    """

    step: Ints
    baseline: Floats
    candidate: Floats
    d: Floats
    digits: Floats
    quantum_a: Floats
    quantum_b: Floats
    usable: np.ndarray[tuple[int], np.dtype[np.bool_]]
    broken: np.ndarray[tuple[int], np.dtype[np.bool_]]
    both_non_finite: Ints
    both_not_positive: Ints
    expected: int
    unlisted: int
    baseline_missing: Ints
    candidate_missing: Ints
    beyond: int


def series_of(table: Trajectory, column: str = "loss") -> Series | None:
    """A column of `table`, sorted by step, the last of equal steps kept; None for a table that is no table.

    Of any column but the loss only the rows that hold a value: a quantum of NaN says that nothing was logged.
    """
    loss = table.columns.get(column)
    step = np.asarray(table.step)
    if loss is None or step.ndim != 1 or np.shape(loss) != step.shape or not np.issubdtype(step.dtype, np.integer):
        return None
    quantum = np.asarray(table.quantum.get(column, np.zeros(step.shape)), dtype=np.float64)
    if quantum.shape != step.shape or (step.size and not -LARGEST_STEP <= step.min() <= step.max() <= LARGEST_STEP):
        return None
    values, step = np.asarray(loss, dtype=np.float64), step.astype(np.int64)
    order = np.argsort(step, kind="stable")
    last = np.append(np.diff(step[order]) != 0, True) if step.size else np.zeros(0, dtype=bool)
    rows = order[last]
    if column != "loss":
        rows = rows[~np.isnan(quantum[rows])]
    units = np.abs(np.nan_to_num(quantum[rows]))
    if column == "loss":
        units = np.maximum(units, _half_precision(values[rows], units))
    return Series(step[rows], values[rows], units, max(1, int(table.interval)))


def _half_precision(values: Floats, quantum: Floats) -> Floats:
    """One unit in the last place of bfloat16 or float16 where all losses lie on its grid, whatever was printed; else 0.

    bfloat16 has 8 bits of mantissa, float16 11: a loss of 2.484375 printed with ten digits is known to 2^-6 all the
    same.
    """
    finite = np.isfinite(values) & (values != 0)
    if np.count_nonzero(finite) < GRID_ROWS or np.unique(values[finite]).size < GRID_ROWS // 2:
        return np.zeros(values.shape)
    size = np.abs(values[finite])
    for bits in (8, 11):
        with np.errstate(all="ignore"):
            unit = np.exp2(np.floor(np.log2(size)) - (bits - 1))
            off = np.abs(size - np.round(size / unit) * unit)
        if np.all(off <= quantum[finite] / 2 + 1e-12 * size) and np.all(quantum[finite] < unit / 4):
            grid = np.zeros(values.shape)
            grid[finite] = unit
            return grid
    return np.zeros(values.shape)


def last_expected(baseline: Series, candidate: Series, steps: int | None) -> int | None:
    """The last step that `steps` training steps have: steps count from 0 when either side logged a step 0."""
    if steps is None:
        return None
    return steps - 1 if any(side.step.size and side.step[0] <= 0 for side in (baseline, candidate)) else steps


def align(baseline: Series, candidate: Series, steps: int | None = None, interval: int = 1, first: int | None = None
          ) -> Aligned:
    """Pair the two sides by step, never by row.

    `steps` is how many training steps must be covered; what lies beyond is left out and counted in `beyond`. Of them
    every `interval`-th is expected, or as many as the logs themselves print where that is more often: a declaration
    that is too wide never excuses a step. Without `steps` every step either side logged is expected (`_asked`), and
    those that both sides skipped: a distance wider than either side's usual interval is a hole. `first`: what lies
    before is no part of the question; both sides go on from one checkpoint.
    """
    last = last_expected(baseline, candidate, None if steps is None else min(steps, LARGEST_STEP))
    beyond = sum(int(np.count_nonzero(side.step > last)) for side in (baseline, candidate)) if last is not None else 0
    a, b = baseline.within(first, last), candidate.within(first, last)
    step, rows_a, rows_b = np.intersect1d(a.step, b.step, assume_unique=True, return_indices=True)
    left, right = a.loss[rows_a], b.loss[rows_b]
    half_a, half_b = a.quantum[rows_a] / 2, b.quantum[rows_b] / 2

    finite_a, finite_b = np.isfinite(left), np.isfinite(right)
    good_a, good_b = finite_a & (left > 0), finite_b & (right > 0)
    usable = good_a & good_b
    with np.errstate(all="ignore"):
        same_print = finite_a & finite_b & (np.abs(left - right) <= half_a + half_b)  # 0.0000 against 0.0001
        d = np.log(np.where(usable, right, 1.0)) - np.log(np.where(usable, left, 1.0))
        digits = half_a / np.where(good_a, left, np.nan) + half_b / np.where(good_b, right, np.nan)
    broken = (good_a != good_b) & ~same_print | (finite_a != finite_b)
    d = np.where(usable, d, np.where(broken, np.inf, np.nan))
    neither = ~usable & ~broken
    union = np.union1d(a.step, b.step) if last is not None else _asked(a, b)
    holes, count = _holes(*_grid(a, b, union, last, interval, first))
    return Aligned(
        step=step, baseline=left, candidate=right, d=d,
        digits=np.minimum(np.nan_to_num(digits, nan=COARSEST), COARSEST),
        quantum_a=2 * half_a, quantum_b=2 * half_b, usable=usable, broken=broken,
        both_non_finite=step[neither & ~finite_a & ~finite_b],
        both_not_positive=step[neither & finite_a & finite_b], expected=union.size + count,
        unlisted=count - holes.size,
        baseline_missing=np.union1d(np.setdiff1d(union, a.step), holes),
        candidate_missing=np.union1d(np.setdiff1d(union, b.step), holes), beyond=beyond,
    )


def head_of(pair: Aligned, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Aligned:
    """`pair` cut down to some of its steps; what is missing is the whole pair's."""
    return replace(pair, **{name: getattr(pair, name)[rows] for name in (
        "step", "baseline", "candidate", "d", "digits", "quantum_a", "quantum_b", "usable", "broken")})


def _asked(a: Series, b: Series) -> Ints:
    """The steps that both sides should have where no recipe says: all that either logged.

    Where one side logs every few steps only, those steps of the other that lie on its grid.
    """
    union: Ints = np.union1d(a.step, b.step)
    if a.interval == b.interval or min(a.step.size, b.step.size) < 2:
        return union
    coarse = a if a.interval > b.interval else b
    phases, counts = np.unique(coarse.step % coarse.interval, return_counts=True)
    asked: Ints = union[np.isin(union, coarse.step) | (union % coarse.interval == phases[np.argmax(counts)])]
    return asked


def _grid(a: Series, b: Series, union: Ints, last: int | None, interval: int, begin: int | None) -> tuple[Ints, int]:
    """(points, stride): between two of the points every stride-th step is missing; `union` is what either side logged.

    With a recipe the points are those of its steps that were logged, and its two ends. A log starts at 0, at 1, or at
    its first interval (10, or 9 where steps count from 0), and goes on from there by that interval.
    """
    if last is None:
        return union, max(a.interval, b.interval)
    stride = max(1, min(interval, LARGEST_STEP, *(side.interval for side in (a, b) if side.step.size > 1)))
    phases, counts = np.unique(union % stride, return_counts=True)
    phase = int(phases[np.argmax(counts)]) if union.size else 1
    first = phase if phase == stride - 1 else 1
    if phase == 0:
        first = stride if union[0] > 0 else 0
    if begin is not None:
        first = begin + (phase - begin) % stride
    total = max(0, (last - first) // stride + 1)
    logged = union[(union >= first) & (union % stride == first % stride)]
    return np.concatenate([[first - stride], logged, [first + stride * total]]).astype(np.int64), stride


def _holes(points: Ints, stride: int) -> tuple[Ints, int]:
    """(the first of the steps that are missing between `points`, how many are missing in all)."""
    if points.size < 2:
        return np.zeros(0, dtype=np.int64), 0
    number = (np.diff(points) - 1) // stride
    ends = np.cumsum(number)
    listed = np.diff(np.minimum(np.append(0, ends), STEPS_LISTED))
    nth = np.arange(1, listed.sum() + 1) - np.repeat(np.cumsum(listed) - listed, listed)
    return np.repeat(points[:-1], listed) + stride * nth, int(ends[-1])


def head_missing(a: Series, b: Series, first: int | None = None) -> bool:
    """Is the first step that both sides should have absent? A log starts at 0, at 1, or at its first interval.

    Runs that go on from one checkpoint start at `first`, or within an interval from there; of two intervals the wider
    one's first step is the first that both have.
    """
    a, b = a.within(first, None), b.within(first, None)
    if not a.step.size or not b.step.size:
        return True
    asked = _asked(a, b)
    starts = [asked[np.isin(asked, side.step)] for side in (a, b)]
    if not all(start.size for start in starts) or starts[0][0] != starts[1][0]:
        return True
    interval = max(1, a.interval, b.interval)
    return int(starts[0][0]) > (interval if first is None else first + interval - 1)


def constant_shift(a: Series, b: Series) -> int:
    """The candidate's step number minus the baseline's where rows correspond one to one at another number; else 0."""
    n = min(a.step.size, b.step.size)
    if n < 2:
        return 0
    shifts = b.step[:n] - a.step[:n]
    return int(shifts[0]) if np.all(shifts == shifts[0]) else 0


def ranges(steps: Ints, interval: int = 1) -> str:
    """Step numbers as text: `3-7, 12, 40-100`, at most a handful of ranges."""
    if not steps.size:
        return ""
    breaks = np.flatnonzero(np.diff(steps) > interval)
    firsts, lasts = steps[np.append(0, breaks + 1)], steps[np.append(breaks, -1)]
    shown = zip(firsts[:RANGES_SHOWN].tolist(), lasts[:RANGES_SHOWN].tolist(), strict=True)
    parts = [f"{first}-{last}" if last > first else f"{first}" for first, last in shown]
    more = firsts.size - RANGES_SHOWN
    return ", ".join(parts) + (f", ... ({more} more)" if more > 0 else "")
