"""Fixed-sample tests of a difference of two success rates, paired and unpaired, and what sample they need.

Rates are shares, 0 to 1; `margin` is the loss that is still accepted; p-values are one-sided.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
EXACT_UP_TO = 300  # episodes of a side; beyond, the normal approximation of the score is close enough
_NUISANCE = 101  # rates at which the exact test looks for the largest size
POWER = 0.9
_FINEST = 1e-3


def tango_z(lost: float, gained: float, pairs: float, margin: float) -> float:
    """Tango's score statistic (Statistics in Medicine 17, 1998) of paired outcomes; large: no loss of `margin`.

    z = (gained - lost + n margin) / sqrt(n (2 q - margin (1 + margin))), q the chance of a lost pair under the null.
    """
    if pairs <= 0:
        return math.nan
    a, c = 2.0 * pairs, lost * margin * (1.0 + margin)
    b = -gained - lost - (2.0 * pairs - gained + lost) * margin
    q = (math.sqrt(max(b * b - 4.0 * a * c, 0.0)) - b) / (2.0 * a)
    variance = pairs * (2.0 * q - margin * (1.0 + margin))
    shift = gained - lost + pairs * margin
    if variance <= 0:
        return 0.0 if shift == 0 else math.copysign(math.inf, shift)
    return shift / math.sqrt(variance)


def score_z(base: Floats, n_base: int, cand: Floats, n_cand: int, margin: float) -> Floats:
    """Farrington and Manning's score statistic (Statistics in Medicine 9, 1990) of two independent counts.

    `base` and `cand` are numbers of successes, broadcast against each other; large: no loss of `margin`. The variance
    is that of the rates nearest to the data that differ by exactly -margin: the root of a cubic.
    """
    p1, p2 = np.asarray(cand, float) / n_cand, np.asarray(base, float) / n_base
    s, theta = -margin, n_base / n_cand
    a = 1.0 + theta
    b = -(1.0 + theta + p1 + theta * p2 + s * (theta + 2.0))
    c = s * s + s * (2.0 * p1 + theta + 1.0) + p1 + theta * p2
    d = -p1 * s * (1.0 + s)
    v = b**3 / (27.0 * a**3) - b * c / (6.0 * a * a) + d / (2.0 * a)
    u = np.where(v >= 0, 1.0, -1.0) * np.sqrt(np.maximum(b * b / (9.0 * a * a) - c / (3.0 * a), 0.0))
    ratio = np.divide(v, u**3, out=np.zeros_like(v), where=np.abs(u) > 1e-12)
    w = (math.pi + np.arccos(np.clip(ratio, -1.0, 1.0))) / 3.0
    null1 = np.clip(2.0 * u * np.cos(w) - b / (3.0 * a), max(s, 0.0), 1.0 + min(s, 0.0))
    null2 = null1 - s
    variance = null1 * (1 - null1) / n_cand + null2 * (1 - null2) / n_base
    shift = p1 - p2 - s
    far = np.where(np.abs(shift) < 1e-12, 0.0, np.copysign(np.inf, shift))
    result: Floats = np.where(variance > 1e-15, shift / np.sqrt(np.maximum(variance, 1e-15)), far)
    return result


def unpaired_p(base: int, n_base: int, cand: int, n_cand: int, margin: float, *, worse: bool = False) -> float:
    """One-sided p of "the loss is `margin` or more", or with `worse` (margin 0) of "there is no loss".

    The score test's order of outcomes with its exact size, the largest over the unknown rate (Chan 1998), since at
    rates near 0 and 1 the normal approximation passes 25 of 25 where only 29 of 29 is proof; normal for large counts.
    """
    observed = float(score_z(np.array(base), n_base, np.array(cand), n_cand, margin))
    if worse:
        observed = -observed
    if max(n_base, n_cand) > EXACT_UP_TO:
        return float(stats.norm.sf(observed))
    every = score_z(np.arange(n_base + 1.0)[None, :], n_base, np.arange(n_cand + 1.0)[:, None], n_cand, margin)
    extreme = ((-every if worse else every) >= observed - 1e-9).astype(float)
    rate = np.linspace(0.0, 1.0 - margin, _NUISANCE)[:, None]
    chance_cand = stats.binom.pmf(np.arange(n_cand + 1)[None, :], n_cand, rate)
    chance_base = stats.binom.pmf(np.arange(n_base + 1)[None, :], n_base, rate + margin)
    return float(min(1.0, ((chance_cand @ extreme) * chance_base).sum(1).max()))


def unpaired_bound(base: int, n_base: int, cand: int, n_cand: int, alpha: float) -> float:
    """The smallest margin that the score test certifies, by its normal approximation: the bound of the loss."""
    low, high = 0.0, 0.999
    while high - low > _FINEST:
        middle = (low + high) / 2
        p = stats.norm.sf(float(score_z(np.array(base), n_base, np.array(cand), n_cand, middle)))
        low, high = (low, middle) if p <= alpha else (middle, high)
    return high


def lower_bound(successes: int, episodes: int, alpha: float) -> float:
    """Clopper and Pearson's one-sided lower bound of a rate."""
    return 0.0 if successes == 0 else float(stats.beta.ppf(alpha, successes, episodes - successes + 1))


def paired_sample(loss: float, margin: float, discordant: float, alpha: float) -> int:
    """Pairs with which Tango's test decides at power .9: PASS where the loss is 0, FAIL where it is beyond the margin.

    discordant: the share of pairs that are lost or gained. A FAIL must also measure a loss of the margin at least.
    """
    lost, gained = (discordant + loss) / 2, (discordant - loss) / 2
    accepted = 0.0 if loss > 0 else margin
    away = abs(accepted - loss)
    null = _null_deviation_paired(lost, gained, accepted)
    return _needed(null, math.sqrt(max(discordant - loss * loss, 0.0)), away, loss - margin if loss > 0 else math.inf,
                   alpha)


def _null_deviation_paired(lost: float, gained: float, margin: float) -> float:
    """Standard deviation of D under the null nearest to these chances."""
    if margin == 0:
        return math.sqrt(lost + gained)
    b = -gained - lost - (2.0 - gained + lost) * margin
    q = (math.sqrt(max(b * b - 8.0 * lost * margin * (1.0 + margin), 0.0)) - b) / 4.0
    return math.sqrt(max(2.0 * q - margin * (1.0 + margin), 0.0))


def unpaired_sample(rate: float, loss: float, margin: float, alpha: float) -> int:
    """Episodes of each side with which the score test decides at power .9, as `paired_sample`."""
    accepted = 0.0 if loss > 0 else margin
    cand = rate - loss
    large = 1e6
    z = float(score_z(np.array(rate * large), int(large), np.array(cand * large), int(large), accepted))
    away = abs(accepted - loss)
    null = away * math.sqrt(large) / abs(z) if z else 0.0
    return _needed(null, math.sqrt(rate * (1 - rate) + cand * (1 - cand)), away,
                   loss - margin if loss > 0 else math.inf, alpha)


def _needed(null: float, true: float, away: float, beyond: float, alpha: float) -> int:
    """(z_alpha sd_null + z_power sd_true)^2 / away^2, and enough for the estimate itself to be `beyond` the margin."""
    z_alpha, z_power = stats.norm.isf(alpha), stats.norm.ppf(POWER)
    test = ((z_alpha * null + z_power * true) / away) ** 2
    estimate = (z_power * true / beyond) ** 2 if beyond > 0 else math.inf
    most = max(test, estimate)
    return math.ceil(most) if math.isfinite(most) else -1
