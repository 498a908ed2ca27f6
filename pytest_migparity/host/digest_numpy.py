"""One leaf of a tensor (2^20 elements) to statistics and 256 sketch lanes, in numpy; the same bits on every machine.

Element i of the tensor, in C order, lies in mini-block m = i // 4096, row r = (i % 4096) // 256, lane c = i % 256. Sums
run over the 16 rows as a balanced binary tree in float32, then over the mini-blocks of the leaf in float64, m
ascending. In the sketch bit r of the word lb(256 m + c + 0x9E3779B9) turns an element's sign, and lane c of mini-block
m is added to lane (c - rho) & 255 with rho = lb(m ^ 0x85EBCA6B) & 255.

Where float32 would not do, the same trees run in float64 over the elements with NaN and Inf as zero: a leaf that holds
either, or whose largest magnitude is outside 1e+-15; integers; float64, unless all of the leaf are float32 numbers.
"""

import math
from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

LEAF = 1 << 20  # elements
LANES = 256
_BLOCK = 4096  # elements of a mini-block: 16 rows of 256 lanes
_PART = 64  # mini-blocks at a time: what is worked on stays below 16 MB
SAFE = (1e-15, 1e15)  # within these float32 squares neither vanish nor overflow
_MEASURABLE = (1e-140, 1e140)  # and float64 squares
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_FLOATS = ("bfloat16", "float16", "float32", "float64")
_MEASURED = (*_FLOATS, "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")

Array = Any  # numpy.ndarray; numpy's own generics need Python 3.10


class Leaf(NamedTuple):
    """What is known of a leaf. Sums and extremes are over its finite elements; `lanes` is float64, 256 of them."""

    total: float
    squares: float
    low: float
    high: float
    zeros: int
    nans: int
    infs: int
    multiset: Tuple[int, int]
    lanes: Array


def storage(dtype: str) -> Any:
    """The numpy type in which elements of a digest's dtype are handed over; bfloat16, float8 and complex64 as bits."""
    if dtype in ("float16", "float32", "float64") or dtype.startswith(("int", "uint")):
        return np.dtype(dtype).newbyteorder("<")
    return np.dtype({"bfloat16": "<u2", "complex64": "<u8"}.get(dtype, "u1"))


def measure(elements: Array, dtype: str, first: int) -> Optional[Leaf]:
    """Measure up to 2^20 `elements` of `storage(dtype)`, the first of which is number `first` of its tensor.

    None where there is nothing to measure: float8, complex, or finite magnitudes beyond 1e+-140.
    """
    if dtype not in _MEASURED:
        return None
    values = widened(elements, dtype)
    exact = values.dtype.itemsize == 4
    finite = np.isfinite(values)
    whole = bool(finite.all())
    kept = values if whole else np.where(finite, values, values.dtype.type(0))
    largest = float(np.abs(kept).max()) if kept.size else 0.0
    if largest and not _MEASURABLE[0] < largest < _MEASURABLE[1]:
        return None
    if exact and not (whole and (largest == 0 or SAFE[0] < largest < SAFE[1])):
        kept = kept.astype(np.float64)
    low, high = _extremes(elements, values[finite], dtype)
    total, squares, lanes = _sums(kept, first // _BLOCK)
    nans = int(np.isnan(values).sum())
    return Leaf(total, squares, low, high, int((values == 0).sum()), nans, int(values.size - finite.sum()) - nans,
                _multiset(elements, dtype), lanes)


def widened(elements: Array, dtype: str) -> Array:
    """The elements as numbers: float32 where that holds them all, else float64 (integers always)."""
    if dtype == "bfloat16":
        return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype == "bool":
        return (elements != 0).astype(np.float64)
    if dtype == "float64":
        shorter = narrowed(elements, dtype, "float32")
        return elements.astype(np.float64, copy=False) if shorter is None else shorter
    return elements.astype(np.float32 if dtype in _FLOATS else np.float64, copy=False)


def narrowed(elements: Array, dtype: str, target: str) -> Optional[Array]:
    """The same elements as bits of a narrower dtype, or None where one of them is not exactly a `target`."""
    if dtype not in _FLOATS:
        bound = (0, 1) if target == "bool" else (np.iinfo(target).min, np.iinfo(target).max)
        fits = not elements.size or (int(elements.min()) >= bound[0] and int(elements.max()) <= bound[1])
        return elements.astype(storage(target)) if fits else None
    if dtype == "float32" and (elements.view(np.uint32) & np.uint32(0x1FFF)).any():
        return None  # neither type has that many digits
    with np.errstate(all="ignore"):
        if dtype == "float64":
            shorter = elements.astype(np.float32)
            if not _same(shorter.astype(np.float64), elements):
                return None
            return shorter if target == "float32" else narrowed(shorter, "float32", target)
        if target == "bfloat16":
            bits = elements.astype(np.float32, copy=False).view(np.uint32)
            return None if (bits & np.uint32(0xFFFF)).any() else (bits >> np.uint32(16)).astype(np.uint16)
        half = elements.astype(np.float16)
        return half if _same(half.astype(np.float32), elements) else None


def _same(left: Array, right: Array) -> bool:
    """Equal to the bit: NaN equals itself, and -0 is not 0."""
    bits = _BITS[left.dtype.itemsize]
    return bool(np.array_equal(left.view(bits), right.view(bits)))


def _extremes(elements: Array, finite: Array, dtype: str) -> Tuple[float, float]:
    """Least and greatest of the finite elements, -0 before 0; inf and -inf where there are none."""
    if not finite.size:
        return math.inf, -math.inf
    if dtype not in _FLOATS:
        return float(elements.min()), float(elements.max())
    signed = np.dtype("i%d" % finite.dtype.itemsize)
    bits = finite.view(signed)
    order = bits ^ ((bits >> signed.type(8 * signed.itemsize - 1)) & signed.type(np.iinfo(signed).max))
    return float(finite[order.argmin()]), float(finite[order.argmax()])


def mixed(words: Array) -> Array:
    """lb: uint32 to well-mixed uint32, one to one."""
    words = words ^ (words >> np.uint32(16))
    words = words * np.uint32(0x7FEB352D)
    words ^= words >> np.uint32(15)
    words *= np.uint32(0x846CA68B)
    return words ^ (words >> np.uint32(16))


def _multiset(elements: Array, dtype: str) -> Tuple[int, int]:
    """Two sums over the elements' bits, the same in any order."""
    bits = elements.view(_BITS[elements.dtype.itemsize])
    if bits.dtype.itemsize == 8:
        low, high = (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)
        terms = mixed(low ^ mixed(high))
    elif dtype == "float32":
        terms = bits ^ (bits >> np.uint32(16))
    elif bits.dtype.itemsize == 4:
        terms = mixed(bits)
    else:
        terms = bits.astype(np.uint32) * np.uint32(0x9E3779B1)
        terms ^= terms >> np.uint32(15)
    return int(terms.sum(dtype=np.uint64)) & 0xFFFFFFFF, int((terms * terms).sum(dtype=np.uint64)) & 0xFFFFFFFF


def _sums(kept: Array, first_block: int) -> Tuple[float, float, Array]:
    """(sum, sum of squares, sketch lanes) of finite float32 or float64 numbers, by trees in their own precision."""
    blocks = math.ceil(kept.size / _BLOCK)
    kind = kept.dtype.type
    lanes = np.zeros((3, LANES))  # of sums, of sums of squares, of the sketch
    column = np.arange(LANES, dtype=np.uint32)
    for start in range(0, blocks, _PART):
        part = kept[start * _BLOCK:(start + _PART) * _BLOCK]
        if part.size % _BLOCK:
            part = np.concatenate([part, np.zeros(-part.size % _BLOCK, kind)])
        rows = part.reshape(-1, 16, LANES)
        block = (first_block + start + np.arange(len(rows), dtype=np.uint64)).astype(np.uint32)
        words = mixed(block[:, None] * np.uint32(256) + np.uint32(0x9E3779B9) + column)
        turn = mixed(block ^ np.uint32(0x85EBCA6B)) & np.uint32(255)
        signed = [np.where(words >> np.uint32(row) & np.uint32(1), -rows[:, row], rows[:, row]) for row in range(16)]
        plain = [rows[:, row] for row in range(16)]
        sketch = np.take_along_axis(_tree(signed), (column[None] + turn[:, None] & np.uint32(255)).astype(np.intp), 1)
        three = np.stack([_tree(plain), _tree([row * row for row in plain]), sketch], axis=1).astype(np.float64)
        for each in three:  # one after the other: numpy promises no order for sum()
            lanes += each
    return in_order(lanes[0]), in_order(lanes[1]), lanes[2]


def in_order(numbers: Array) -> float:
    """Their sum, one after the other: numpy promises no order for sum()."""
    return float(np.add.accumulate(numbers)[-1]) + 0.0


def _tree(rows: Any) -> Array:
    while len(rows) > 1:
        rows = [left + right for left, right in zip(rows[::2], rows[1::2])]
    return rows[0]
