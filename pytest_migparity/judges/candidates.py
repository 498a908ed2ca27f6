"""Several candidates sampled for one input: the best of them, and whether they are still different from each other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def candidate_figures(a: Floats, b: Floats) -> dict[str, float]:
    """`best_of_k` and `diversity` of chunks [sample, candidate, horizon, dim]; nothing where one was sampled.

    Distances are root mean squares over a chunk, each dimension in units of the baseline's standard deviation.
    `best_of_k`: from each of the baseline's candidates to the nearest of the candidate side's, and back, on average:
    no pairing of draws is needed. `diversity`: how far the candidate side's own lie apart, over how far the
    baseline's do; 0 is one answer K times, NaN where the baseline's are one already.
    """
    count = a.shape[1]
    if count < 2:
        return {}
    deviation = a.std((0, 1, 2))
    used = deviation > 0
    x, y = ((side[..., used] / deviation[used]).reshape(len(a), count, -1) for side in (a, b))
    if not x.shape[-1]:
        return {}
    across = _distances(x, y)
    best = float((across.min(2).mean() + across.min(1).mean()) / 2)
    apart = [float(_distances(side, side).sum() / (len(side) * count * (count - 1))) for side in (x, y)]
    return {"best_of_k": best, "diversity": apart[1] / apart[0] if apart[0] > 0 else math.nan}


def _distances(x: Floats, y: Floats) -> Floats:
    """Root mean square distances [sample, i, j] of every two candidates; one row of them at a time."""
    return np.stack([np.sqrt(((x[:, i, None] - y) ** 2).mean(-1)) for i in range(x.shape[1])], 1)
