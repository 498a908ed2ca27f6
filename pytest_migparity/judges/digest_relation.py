"""What two sketches say of the difference between two tensors: relative L2 with its interval, cosine, scale.

A sketch of k lanes is k signed sums, so that with D = S_baseline - S_candidate the expectation of r^2 = |D|^2 is the
squared L2 distance of the tensors, and k r^2 over it is near chi-square with k degrees of freedom (Alon, Matias and
Szegedy, "The space complexity of approximating the frequency moments", 1996; Charikar, Chen and Farach-Colton, "Finding
frequent items in data streams", 2002). Lanes that travel as integers of unit q add F^2 = k (q_b^2 + q_c^2) / 12 to r^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from pytest_migparity.wire.digest import SATURATED, Stats, step

CONFIDENCE = 0.95
Lanes = NDArray[np.float64]
_SURE = 0.999
_CLEAR = 10  # floors; from here on a lane without a difference is one that no changed element fell into


@dataclass(frozen=True, slots=True)
class Relation:
    """A candidate tensor against its baseline. Distances are over the norm of the baseline, `residual` over its own.

    `low` and `high` hold the true relative L2 with 95 %; below `floor` the lanes' own rounding decides. `scale` is the
    factor that brings the baseline nearest to the candidate, `residual` what then is left, and `residual_floor` what of
    it rounding makes. `orthogonal`: the true cosine may be 0 (99.9 %).
    """

    relative: float
    low: float
    high: float
    floor: float
    cosine: float
    scale: float
    residual: float
    residual_floor: float
    orthogonal: bool


def relation(baseline: Stats, candidate: Stats) -> Relation | None:
    """Measure the difference; None where a norm is 0 or a lane is saturated.

    relative = sqrt(max(r^2 - F^2, 0)) / |A|
    interval = sqrt(max(r^2 k / chi2(k, .975) - F^2, 0)) / |A| to sqrt(max(r^2, F^2) k / chi2(k, .025)) / |A|
    cosine   = (|A|^2 + |B|^2 - r^2) / (2 |A| |B|)
    scale    = <S_A, S_B> / <S_A, S_A>, residual = |scale S_A - S_B| / |B|

    r^2 varies with all that it holds, rounding included, so F^2 comes off the lower end after chi-square: taken off
    before, one interval in five missed differences near the floor. The upper end keeps it, since lanes that no changed
    element fell into are rounded alike (both: benchmarks/digest_accuracy.py). A clear difference that leaves lanes
    untouched comes from few places: k in the interval is then the number of lanes it reached, since fewer sums spread
    more.
    """
    if not (baseline.l2 and candidate.l2) or SATURATED in {abs(lane) for lane in (*baseline.lanes, *candidate.lanes)}:
        return None
    units = step(baseline.l2), step(candidate.l2)
    return sketched(np.asarray(baseline.lanes) * units[0], np.asarray(candidate.lanes) * units[1],
                    (baseline.l2, candidate.l2), units)


def sketched(a: Lanes, b: Lanes, norms: tuple[float, float], units: tuple[float, float]) -> Relation | None:
    """`relation` of lanes in the elements' own unit, known to `units` on each side; None where the baseline's are 0."""
    (norm, own), (unit_a, unit_b) = norms, units
    if not a.any():
        return None
    lanes = a.size
    squared = float(np.square(a - b).sum())
    rounding = lanes * (unit_a**2 + unit_b**2) / 12
    beyond = max(squared - rounding, 0.0)
    reached = lanes
    if beyond > _CLEAR**2 * rounding:
        reached = int((np.abs(a - b) > max(unit_a, unit_b) / 2).sum())
    low, high = (each / reached for each in _quantiles(reached, CONFIDENCE))
    least, most = (each / lanes for each in _quantiles(lanes, _SURE))
    scale = float(a @ b) / float(a @ a)
    cosine = (norm / own + own / norm - squared / norm / own) / 2
    return Relation(
        relative=float(np.sqrt(beyond)) / norm,
        low=float(np.sqrt(max(squared / high - rounding, 0.0))) / norm,
        high=float(np.sqrt(max(squared, rounding) / low)) / norm,
        floor=float(np.sqrt(rounding)) / norm,
        cosine=min(max(cosine, -1.0), 1.0),
        scale=scale,
        residual=float(np.linalg.norm(scale * a - b)) / own,
        residual_floor=float(np.sqrt(lanes * ((scale * unit_a) ** 2 + unit_b**2) / 12)) / own,
        orthogonal=least <= squared / (norm**2 + own**2) <= most)


@cache
def _quantiles(lanes: int, confidence: float) -> tuple[float, float]:
    tail = (1 - confidence) / 2
    return float(chi2.ppf(tail, lanes)), float(chi2.ppf(1 - tail, lanes))
