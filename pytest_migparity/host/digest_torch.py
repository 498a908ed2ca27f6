"""The kernel of `host.digest_numpy` in torch operations: the same bits, computed where the tensor is.

For float32, bfloat16 and float16 the device adds up the trees of each mini-block, in float32 and in their fixed order;
what is left, three rows of 256 numbers a mini-block, comes to the host, which adds them in float64, in order. Other
dtypes, and leaves that need the masked float64 path, are copied and left to `digest_numpy`. Importing this module
imports torch.
"""

from typing import Any, Optional, Tuple

import numpy as np
import torch

from . import digest_numpy as plain
from .digest_numpy import Array, Leaf

_BLOCK, _ROWS, _LANES = 4096, 16, 256
KINDS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_SIGN, _SEED, _TURN = -0x80000000, 0x9E3779B9 - (1 << 32), 0x85EBCA6B - (1 << 32)
_FIRST, _SECOND = 0x7FEB352D, 0x846CA68B - (1 << 32)
_GOLDEN = 0x9E3779B1 - (1 << 32)


def measure(elements: Array, dtype: str, first: int) -> Optional[Leaf]:
    """As `digest_numpy.measure`, and to the same bits."""
    if dtype not in KINDS or not elements.size:
        return plain.measure(elements, dtype, first)
    held = np.ascontiguousarray(elements)
    bits = torch.from_numpy(held.view(np.int16) if held.dtype.itemsize == 2 else held)
    return measure_tensor(bits.view(KINDS[dtype]) if held.dtype.itemsize == 2 else bits, dtype, first) \
        or plain.measure(elements, dtype, first)


def measure_tensor(elements: Any, dtype: str, first: int) -> Optional[Leaf]:
    """Measure up to 2^20 elements of a flat torch tensor, on its own device.

    None where float32 would not do: the caller copies them to the host then.
    """
    values = elements.float()
    whole = bool(torch.isfinite(values).all())
    largest = float(values.abs().max()) if whole else 0.0
    if not whole or (largest and not plain.SAFE[0] < largest < plain.SAFE[1]):
        return None
    low, high = _extremes(values)
    zeros = int((values == 0).sum())
    multiset = _multiset(elements, dtype)
    missing = -values.numel() % _BLOCK
    rows = torch.nn.functional.pad(values, (0, missing)).view(-1, _ROWS, _LANES)
    sums = [part.cpu().numpy().astype(np.float64) for part in _trees(rows, first // _BLOCK)]
    lanes = [np.add.accumulate(part, axis=0)[-1] for part in sums]
    return Leaf(plain.in_order(lanes[0]), plain.in_order(lanes[1]), low, high, zeros, 0, 0, multiset, lanes[2])


def _trees(rows: Any, first: int) -> Tuple[Any, Any, Any]:
    """(blocks, 256) float32 each: sums, sums of squares, and the turned lanes of the sketch."""
    block = torch.arange(first, first + len(rows), dtype=torch.int64, device=rows.device).to(torch.int32)
    column = torch.arange(_LANES, dtype=torch.int32, device=rows.device)
    words = _mixed(block[:, None] * _LANES + _SEED + column)
    turn = (_mixed(block ^ _TURN) & 255).long()
    bits = rows.view(torch.int32)
    signed = [(bits[:, row] ^ ((words << (31 - row)) & _SIGN)).view(torch.float32) for row in range(_ROWS)]
    plain_rows = [rows[:, row] for row in range(_ROWS)]
    index = (column[None].long() + turn[:, None]) & 255
    return (_tree(plain_rows), _tree([row * row for row in plain_rows]), torch.gather(_tree(signed), 1, index))


def _tree(rows: Any) -> Any:
    while len(rows) > 1:
        rows = [left + right for left, right in zip(rows[::2], rows[1::2])]
    return rows[0]


def _right(x: Any, places: int) -> Any:
    """Logical shift: torch shifts the sign in."""
    return (x >> places) & ((1 << (32 - places)) - 1)


def _mixed(x: Any) -> Any:
    x = x ^ _right(x, 16)
    x = x * _FIRST
    x = x ^ _right(x, 15)
    x = x * _SECOND
    return x ^ _right(x, 16)


def _extremes(values: Any) -> Tuple[float, float]:
    """Least and greatest, -0 before 0."""
    bits = values.view(torch.int32)
    order = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return float(values[order.argmin()]), float(values[order.argmax()])


def _multiset(elements: Any, dtype: str) -> Tuple[int, int]:
    """Two sums mod 2^32 over the elements' bits, the same in any order; 32-bit products wrap."""
    if dtype == "float32":
        bits = elements.view(torch.int32)
        terms = bits ^ _right(bits, 16)
    else:
        terms = (elements.view(torch.int16).int() & 0xFFFF) * _GOLDEN
        terms = terms ^ _right(terms, 15)
    return (int(terms.sum(dtype=torch.int64)) & 0xFFFFFFFF, int((terms * terms).sum(dtype=torch.int64)) & 0xFFFFFFFF)
