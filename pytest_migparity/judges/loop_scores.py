"""Secondary scores, 0 to 1: a bound of their loss that holds at every number of pairs.

The same game as for success, with any D from -1 to 1 and a uniform mixture of five fixed bets in place of Kelly's.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FRACTIONS = np.array([0.05, 0.15, 0.35, 0.65, 0.95])
_FINEST = 1e-3


def score_bound(difference: NDArray[np.float64], alpha: float) -> float:
    """The smallest loss of the mean score that pairs, in the fixed order, reject at error rate `alpha`; NaN if none."""
    if not len(difference) or not _rejects(difference, 1.0 - _FINEST, alpha):
        return math.nan
    low, high = -1.0, 1.0 - _FINEST
    while high - low > _FINEST:
        middle = (low + high) / 2
        low, high = (low, middle) if _rejects(difference, middle, alpha) else (middle, high)
    return high


def _rejects(difference: NDArray[np.float64], loss: float, alpha: float) -> bool:
    """Does capital against "the mean of D is -loss or less" ever reach 1/alpha? Capital falls as `loss` falls."""
    bets = FRACTIONS / (1.0 - loss)
    capital = np.cumsum(np.log1p(bets[:, None] * (difference + loss)[None, :]), axis=1)
    highest = capital.max(0)
    mixture = highest + np.log(np.exp(capital - highest).mean(0))
    return bool(mixture.max() >= math.log(1 / alpha))
