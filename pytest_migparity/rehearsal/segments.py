"""Distance between straight segments, in batch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ZERO_LENGTH = 1e-12
"""Squared length (mm^2) under which a segment is a point."""

PARALLEL = 1e-12
"""sin^2 of the angle under which two directions count as parallel."""


def squared_distance(start_1: Floats, span_1: Floats, start_2: Floats, span_2: Floats) -> Floats:
    """Squared distance between segments `start + u * span`, u in [0, 1].

    All arguments have shape (3, ...), coordinates first, in mm; the result has shape (...), in mm^2.
    The closest-point construction is Ericson's (Real-Time Collision Detection, 5.1.9): the unclamped optimum on the
    first segment gives the parameter on the second, which is clamped, which gives the first again. Parallel and
    zero-length segments take their limits. Only elementwise operations: a row's bits do not depend on its batch.
    """
    offset = start_1 - start_2
    length_1, length_2, mixed = _dot(span_1, span_1), _dot(span_2, span_2), _dot(span_1, span_2)
    toward_1, toward_2 = _dot(span_1, offset), _dot(span_2, offset)
    is_line_1, is_line_2 = length_1 > ZERO_LENGTH, length_2 > ZERO_LENGTH
    divisor_1, divisor_2 = np.where(is_line_1, length_1, 1.0), np.where(is_line_2, length_2, 1.0)

    determinant = length_1 * length_2 - mixed * mixed
    parallel = determinant <= PARALLEL * divisor_1 * divisor_2
    free = (mixed * toward_2 - toward_1 * length_2) / np.where(parallel, 1.0, determinant)
    first = np.clip(np.where(parallel, 0.0, free), 0.0, 1.0)
    second = np.clip(np.where(is_line_2, (mixed * first + toward_2) / divisor_2, 0.0), 0.0, 1.0)
    first = np.clip(np.where(is_line_1, (mixed * second - toward_1) / divisor_1, 0.0), 0.0, 1.0)

    between = offset + span_1 * first - span_2 * second
    squared: Floats = _dot(between, between)
    return squared


def _dot(a: Floats, b: Floats) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
