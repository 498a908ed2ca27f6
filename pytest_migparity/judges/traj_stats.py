"""The statistics of a pair of trajectories, what rounding alone can make of each, and floors from reruns.

d[t] = ln(candidate[t] / baseline[t]). Which of them separate good pairs from bad on 1,228 real ones: facts/loss.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from pytest_migparity.core.evidence import Trajectory
from pytest_migparity.core.limits import Floor, Floors

from .loss_departure import LEAST, LEAST_POINTS, Departure, departure_of, geometric_mean, window_of
from .traj_align import Aligned, align, series_of

if TYPE_CHECKING:
    from pytest_migparity.core.evidence import Floats

NAMES = ("step0", "first3", "spike", "final", "mean", "tail", "drift", "spearman", "order")
CORRELATIONS = ("spearman", "order")
TAIL_SHARE = 0.1
TAIL_POINTS = 3
SPIKES = 30.0
MOVES = 0.1
LEAST_MOVE = 1e-4
ORDER_STEPS = 20  # fewer first differences say little: at n = 20 the null's standard deviation is still .24


def ranks(values: Floats) -> Floats:
    """Ranks from 1, equal values sharing their mean rank."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean_rank: Floats = (ends - (counts - 1) / 2.0)[group]
    return mean_rank


def spearman(a: Floats, b: Floats) -> float:
    """Spearman's rank correlation; NaN where a side has no two different values."""
    if a.size < 2:
        return float("nan")
    x, y = ranks(a), ranks(b)
    x, y = x - x.mean(), y - y.mean()
    norm = np.sqrt(np.dot(x, x) * np.dot(y, y))
    return float(np.clip(np.dot(x, y) / norm, -1.0, 1.0)) if norm > 0 else float("nan")


def tail_points(n: int) -> int:
    """How many of n points are the tail: the last tenth, at least three."""
    return min(n, max(TAIL_POINTS, int(np.ceil(TAIL_SHARE * n))))


def slope_weights(step: Floats) -> Floats:
    """The w with which sum(w * d) is the least-squares slope of d over x = (step - first) / (last - first)."""
    x = (step - step[0]) / (step[-1] - step[0])
    centred = x - x.mean()
    weights: Floats = centred / np.dot(centred, centred)
    return weights


def statistics(pair: Aligned) -> dict[str, float]:
    """The eight figures beside the departure; NaN where one is not defined, inf where one side alone is broken."""
    kept = pair.usable | pair.broken
    d, step = pair.d[kept], pair.step[kept].astype(np.float64)
    size = np.abs(d)
    figures = dict.fromkeys(NAMES, float("nan"))
    if not size.size:
        return figures
    figures["step0"] = float(size[0]) if kept[0] else float("nan")
    figures["first3"] = float(size[:3].max())
    figures["spike"] = spike(pair)
    figures["final"] = float(size[-1]) if kept[-1] else float("nan")
    figures["mean"] = float(size.mean())
    if size.size >= TAIL_POINTS:
        figures["tail"] = float(abs(d[-tail_points(size.size):].mean()))
        figures["drift"] = float(abs(np.dot(slope_weights(step), d))) if np.isfinite(d).all() else float("inf")
    a, b = pair.baseline[pair.usable], pair.candidate[pair.usable]
    if a.size >= TAIL_POINTS:
        figures["spearman"] = spearman(a, b)
    if a.size >= LEAST_POINTS:
        figures["order"] = spearman(np.diff(np.log(a)), np.diff(np.log(b)))
    return figures


def moves(d: Floats, baseline: Floats) -> bool:
    """Does d jump by a tenth of what ln baseline does, and by 1e-4? Else the ranks of its changes are rounding's.

    Other data move d as much as the loss. On a plateau, as where one batch is fitted, nothing moves but roundings.
    """
    return bool(np.diff(d).std() >= max(MOVES * float(np.diff(np.log(baseline)).std()), LEAST_MOVE))


def spike(pair: Aligned) -> float:
    """The largest |d| of the weighed steps where it is beyond 30 medians of |d|, else 0: odd rows among good ones.

    After them the sides agree again: where the last row is such a one the difference grew, which is no spike. Good
    pairs have such rows below 1e-3 only. A median below what rounding leaves counts as that.
    """
    kept = window_of(pair) | pair.broken if pair.usable.any() else pair.broken
    size, digits = np.abs(pair.d[kept]), pair.digits[kept]
    usual = max(float(np.median(size)), float(digits.mean()) / 3, LEAST)
    return float(size.max()) if size.max() > SPIKES * usual >= size[-1] else 0.0


def resolutions(pair: Aligned) -> dict[str, float]:
    """The largest value each statistic could take from rounding alone, were both sides equal before printing.

    For the distances: |d| is moved by at most digits[t]; a mean by at most their mean, a slope sum(w d) by at most
    sum(|w| digits). For the correlations the distance from 1, by Spearman's attenuation formula (1904): two noisy
    readings of one quantity correlate at sqrt(reliability_a * reliability_b). In ranks, rounding ties values, and full
    ranks correlate with mid-ranks at exactly sqrt(1 - sum(t^3 - t) / (n^3 - n)), t the sizes of the tied groups
    (Kendall's tie correction): that square is the reliability of the losses. First differences are not only tied but
    moved, by up to h = half a quantum at either end: see `difference_reliability`.
    """
    kept = pair.usable
    figures = dict.fromkeys(NAMES, 0.0)
    digits = pair.digits[kept]
    if not digits.size:
        return figures
    figures["step0"], figures["final"] = float(digits[0]), float(digits[-1])
    figures["first3"], figures["mean"] = float(digits[:3].max()), float(digits.mean())
    figures["spike"] = float(digits.max())
    if digits.size >= TAIL_POINTS:
        figures["tail"] = float(digits[-tail_points(digits.size):].mean())
        weights = np.abs(slope_weights(pair.step[kept].astype(np.float64)))
        figures["drift"] = float(np.dot(weights[weights > 0], digits[weights > 0]))
    sides = ((pair.baseline[kept], pair.quantum_a[kept]), (pair.candidate[kept], pair.quantum_b[kept]))
    if digits.size >= TAIL_POINTS:
        figures["spearman"] = _attenuation(*(tie_reliability(loss) for loss, _ in sides))
    if digits.size >= LEAST_POINTS:
        figures["order"] = _attenuation(*(difference_reliability(loss, quantum) for loss, quantum in sides))
    return figures


def _attenuation(a: float, b: float) -> float:
    return 1.0 - float(np.sqrt(a * b))


def tie_reliability(values: Floats) -> float:
    """1 - sum(t^3 - t) / (n^3 - n): the share of rank variance that survives the ties among n values."""
    counts = np.unique(values, return_counts=True)[1].astype(np.float64)
    n = float(values.size)
    return 1.0 - float(np.sum(counts**3 - counts)) / (n**3 - n)


def difference_reliability(loss: Floats, quantum: Floats) -> float:
    """The share of rank variance of the first differences of ln loss that survives rounding the losses to `quantum`.

    A printed loss errs uniformly within +- q/2, so ln loss by q/loss in width, and a first difference by the sum of two
    such errors: triangular, half-width h, variance h^2 / 6 for equal widths. With w neighbours within +- h the local
    density is w / 2h per unit, so the rank errs with variance (w / 2h)^2 h^2 / 6 = w^2 / 24, against (n^2 - 1) / 12
    of all ranks: reliability 1 - mean(w^2 - 1) / (2 (n^2 - 1)), not below 0.
    """
    with np.errstate(over="ignore"):
        width = quantum / loss
    change = np.diff(np.log(loss))
    half = (width[1:] + width[:-1]) / 2
    ordered = np.sort(change)
    near = np.searchsorted(ordered, change + half, "right") - np.searchsorted(ordered, change - half, "left")
    n = float(change.size)
    return max(0.0, 1.0 - float(np.mean(near.astype(np.float64) ** 2 - 1.0)) / (2.0 * (n * n - 1.0)))


def measure(baseline: Trajectory, candidate: Trajectory, steps: int | None = None) -> Mapping[str, float]:
    """The statistics of one pair, by check name; NaN where one cannot be computed. Raises nothing."""
    a, b = series_of(baseline), series_of(candidate)
    if a is None or b is None:
        return dict.fromkeys(NAMES, float("nan"))
    return statistics(align(a, b, steps))


def floors_of(runs: Sequence[Trajectory], steps: int | None = None, source: str = "reruns") -> Floors:
    """How far reruns of one side are apart, over all pairs of `runs`; see `floors_of_pairs`."""
    return floors_of_pairs(list(combinations(runs, 2)), steps, source, runs=len(runs))


def floors_of_pairs(pairs: Sequence[tuple[Trajectory, Trajectory]], steps: int | None = None, source: str = "reruns", *,
                    runs: int | None = None) -> Floors:
    """What pairs of good runs of one stack show: the largest of each statistic, and |d| by step.

    A floor of a correlation is its distance from 1; those of `late` and `noise` are geometric means, in which one odd
    pair counts for one, and to which a pair equal to the last digit adds nothing: that a device repeats itself does
    not say how far another one may be. A pair that broke (non-finite, nothing in common) measures nothing and sets no
    floor: a broken rerun must not loosen a limit.
    """
    largest: dict[str, float] = {}
    by_step: dict[int, float] = {}
    figures: list[Departure] = []
    measured = 0
    for a, b in ((series_of(one), series_of(other)) for one, other in pairs):
        if a is None or b is None:
            continue
        pair = align(a, b, steps)
        if pair.broken.any() or not pair.usable.any():
            continue
        measured += 1
        for name, value in statistics(pair).items():
            apart = 1.0 - value if name in CORRELATIONS else value
            if np.isfinite(apart):
                largest[name] = max(apart, largest.get(name, 0.0))
        for step, size in zip(pair.step[pair.usable].tolist(), np.abs(pair.d[pair.usable]).tolist(), strict=True):
            by_step[step] = max(size, by_step.get(step, 0.0))
        if pair.d[pair.usable].any():
            figures += [each for each in (departure_of(pair),) if each is not None]
    count = runs if runs is not None else 2 * len(pairs)
    floors = {name: Floor(value, source, count, measured) for name, value in largest.items()}
    if figures:
        for name, values in (("late", [each.late for each in figures]), ("noise", [each.noise for each in figures])):
            floors[name] = Floor(geometric_mean(np.array(values)), source, count, len(figures))
    return Floors(floors, by_step)


def first_zeros(baseline: Trajectory, candidate: Trajectory, pair: Aligned) -> tuple[float, float] | None:
    """num_zeros of both sides at the first common step; None where one of them did not log it there."""
    found = []
    for table in (baseline, candidate):
        zeros = series_of(table, "num_zeros")
        at = np.flatnonzero(zeros.step == pair.step[0]) if zeros is not None and pair.step.size else np.zeros(0)
        if zeros is None or not at.size or not np.isfinite(zeros.loss[at[0]]):
            return None
        found.append(float(zeros.loss[at[0]]))
    return found[0], found[1]
