"""Rotations of pose actions: any of the usual representations to matrices, and the angle between two."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LEAST = 1e-8  # a shorter quaternion or column has no direction


def matrices(kind: str, values: Floats) -> Floats:
    """Rotation matrices (..., 3, 3) of `values` (..., size), by `core.outputs.ROTATIONS`; NaN for what is no rotation.

    axis-angle by Rodrigues' formula; a quaternion is normalised first; of a 6D representation (Zhou et al. 2019) the
    first column is normalised, the second made orthogonal to it, the third their cross product.
    """
    if kind == "axis-angle":
        return _rodrigues(values)
    if kind == "rotation-6d":
        return _from_columns(values)
    x, y, z, w = np.moveaxis(values if kind == "quaternion" else np.roll(values, -1, -1), -1, 0)
    return _from_quaternion(x, y, z, w)


def geodesic(a: Floats, b: Floats) -> Floats:
    """The angle (...,) in rad, 0 to pi, of the rotation between matrices (..., 3, 3).

    2 asin(|A - B| / sqrt 8) by the Frobenius norm, which keeps all digits at small angles, where acos keeps half.
    """
    chord = np.sqrt(((a - b) ** 2).sum((-2, -1)) / 8)
    angle: Floats = 2 * np.arcsin(np.minimum(chord, 1))
    return angle


def rotation_spread(rotations: Floats) -> float:
    """Root mean square angle in rad from the mean rotation (the nearest to the mean matrix, by its SVD)."""
    flat = rotations.reshape(-1, 3, 3)
    u, _, v = np.linalg.svd(flat.mean(0))
    mean = u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ v))]) @ v
    return float(np.sqrt((geodesic(flat, mean) ** 2).mean()))


def turn_about(axis: Floats, angle: Floats) -> Floats:
    """Matrices (n, 3, 3) of turns by `angle` (n,) about one axis (3,)."""
    return _rodrigues(angle[:, None] * (axis / np.linalg.norm(axis)))


def _rodrigues(vector: Floats) -> Floats:
    angle = np.linalg.norm(vector, axis=-1)[..., None, None]
    cross = _cross_matrix(vector)
    first, second = np.sinc(angle / np.pi), np.sinc(angle / (2 * np.pi)) ** 2 / 2  # sin t / t, (1 - cos t) / t^2
    turned: Floats = np.eye(3) + first * cross + second * (cross @ cross)
    return turned


def _cross_matrix(vector: Floats) -> Floats:
    x, y, z = np.moveaxis(vector, -1, 0)
    nought = np.zeros_like(x)
    return _stacked([[nought, -z, y], [z, nought, -x], [-y, x, nought]])


def _from_quaternion(x: Any, y: Any, z: Any, w: Any) -> Floats:
    norm = np.sqrt(x * x + y * y + z * z + w * w)
    norm = np.where(norm > _LEAST, norm, np.nan)
    x, y, z, w = x / norm, y / norm, z / norm, w / norm
    return _stacked([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def _from_columns(values: Floats) -> Floats:
    first = _unit(values[..., :3])
    second = values[..., 3:]
    second = _unit(second - (first * second).sum(-1, keepdims=True) * first)
    columns: Floats = np.stack([first, second, np.cross(first, second)], -1)
    return columns


def _unit(vector: Floats) -> Floats:
    norm = np.linalg.norm(vector, axis=-1, keepdims=True)
    unit: Floats = vector / np.where(norm > _LEAST, norm, np.nan)
    return unit


def _stacked(rows: list[list[Any]]) -> Floats:
    matrix: Floats = np.stack([np.stack(row, -1) for row in rows], -2)
    return matrix
