"""Rounding float32 arrays to coarser number formats, the way an accelerator's matrix unit would."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.rehearsal.variant import Number

Singles = NDArray[np.float32]
Rounding = Callable[[Singles], Singles]


def to_bfloat16(x: Singles) -> Singles:
    """Nearest bfloat16, ties to even, as float32. For finite input."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    return ((bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)).view(np.float32)


def to_float16(x: Singles) -> Singles:
    """Nearest float16 as float32; beyond 65504 it is infinite."""
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


def to_int8(weight: Singles) -> Singles:
    """Weights (rows, columns) as 8-bit integers with one scale per column, and back."""
    scale = np.abs(weight).max(0) / np.float32(127)
    scale = np.where(scale > 0, scale, np.float32(1))
    return (np.round(weight / scale) * scale).astype(np.float32)


def rounding(number: Number) -> Rounding | None:
    """The rounding of a format; None where float32 stays as it is."""
    return {"float32": None, "bfloat16": to_bfloat16, "float16": to_float16}[number]
