"""The kernel of `host.digest_numpy` compiled: the same bits, at the speed of memory, for float32, bfloat16 and float16.

A chunk is passed over twice: in order, at the speed of memory, for extremes, zeros and the multiset, and then, while it
lies in the second-level cache, in rows of 256 lanes for the sums, which from memory would stall on their stride. Leaves
that need the masked float64 path, and other dtypes, are `digest_numpy`'s. Importing this module imports numba and
compiles nothing before the first leaf.
"""

from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np
from numba import njit

from . import digest_numpy as plain
from .digest_numpy import Array, Leaf

from .numba_words import (  # isort: skip
    add, add_short, as_single, as_word, both, from_half, least, least_short, left, longer, most, most_short, mul,
    ordered, ordered_short, right, xor, zero, zero_short,
)  # fmt: skip

_BLOCK = 4096
_CHUNK, _CHUNK_SHORT = 1 << 16, 1 << 15  # elements: 256 and 64 KB; zeros of 16-bit types are counted in 16 bits
_NEAR = 1 << 19  # bytes that a second pass finds in the second-level cache
_W0, _W15, _W16 = np.uint32(0), np.uint32(15), np.uint32(16)
_LANE, _SIGN = np.uint32(255), np.uint32(0x80000000)
_HIGH, _SEED, _TURN = np.uint32(0xFFFF0000), np.uint32(0x9E3779B9), np.uint32(0x85EBCA6B)
_FIRST, _SECOND, _GOLDEN = np.uint32(0x7FEB352D), np.uint32(0x846CA68B), np.uint32(0x9E3779B1)
_ROW = np.uint32(256)
_LOWEST, _HIGHEST = np.uint32(0x80000000), np.uint32(0x7FFFFFFF)
_LOWEST_SHORT, _HIGHEST_SHORT, _NONE_SHORT = np.uint16(0x8000), np.uint16(0x7FFF), np.uint16(0)
_BITS = {"float32": np.uint32, "bfloat16": np.uint16, "float16": np.uint16}

_compiled = njit(nogil=True, boundscheck=False, error_model="numpy")
_inlined = njit(inline="always")


@_inlined
def _mixed(x):
    x = mul(xor(x, right(x, _W16)), _FIRST)
    x = mul(xor(x, right(x, _W15)), _SECOND)
    return xor(x, right(x, _W16))


@_inlined
def _tree(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p):  # noqa: E741
    return (((a + b) + (c + d)) + ((e + f) + (g + h))) + (((i + j) + (k + l)) + ((m + n) + (o + p)))


@_inlined
def _square(x):
    return x * x


@_inlined
def _signed(x, word, place):
    """The float of bits `x`, its sign turned where bit 31 - `place` of `word` is set."""
    return as_single(xor(x, both(left(word, np.uint32(place)), _SIGN)))


@_inlined
def _column(xs, lane, word, totals, squares, sketch):
    """One lane's 16 rows, as bits, into its two sums and its sketch."""
    v = (as_single(xs[0]), as_single(xs[1]), as_single(xs[2]), as_single(xs[3]), as_single(xs[4]), as_single(xs[5]),
         as_single(xs[6]), as_single(xs[7]), as_single(xs[8]), as_single(xs[9]), as_single(xs[10]), as_single(xs[11]),
         as_single(xs[12]), as_single(xs[13]), as_single(xs[14]), as_single(xs[15]))
    totals[lane] += np.float64(_tree(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12],
                                     v[13], v[14], v[15]))
    squares[lane] += np.float64(_tree(
        _square(v[0]), _square(v[1]), _square(v[2]), _square(v[3]), _square(v[4]), _square(v[5]), _square(v[6]),
        _square(v[7]), _square(v[8]), _square(v[9]), _square(v[10]), _square(v[11]), _square(v[12]), _square(v[13]),
        _square(v[14]), _square(v[15])))
    sketch[lane] = _tree(
        _signed(xs[0], word, 31), _signed(xs[1], word, 30), _signed(xs[2], word, 29), _signed(xs[3], word, 28),
        _signed(xs[4], word, 27), _signed(xs[5], word, 26), _signed(xs[6], word, 25), _signed(xs[7], word, 24),
        _signed(xs[8], word, 23), _signed(xs[9], word, 22), _signed(xs[10], word, 21), _signed(xs[11], word, 20),
        _signed(xs[12], word, 19), _signed(xs[13], word, 18), _signed(xs[14], word, 17), _signed(xs[15], word, 16))


@_inlined
def _turned(sketch, block, lanes):
    """A mini-block's 256 lanes, turned by its own amount, into the leaf's; the upper half of `sketch` is scratch."""
    turn = np.int64(both(_mixed(xor(block, _TURN)), _LANE))
    for lane in range(256):
        sketch[lane + 256] = sketch[lane]
    for lane in range(256):
        lanes[lane] += np.float64(sketch[lane + turn])


@_compiled
def scan32(bits, counts):
    """counts: least and greatest ordered value, zeros, the two multiset sums, all bits together; of float32 bits."""
    low, high, zeros, first, second = _HIGHEST, _LOWEST, _W0, _W0, _W0
    for index in range(bits.size):
        x = bits[index]
        key = ordered(x)
        low, high, zeros = least(low, key), most(high, key), add(zeros, zero(x))
        term = xor(x, right(x, _W16))
        first, second = add(first, term), add(second, mul(term, term))
    counts[0], counts[1] = min(counts[0], np.int64(np.int32(low))), max(counts[1], np.int64(np.int32(high)))
    counts[2] += np.int64(zeros)
    counts[3], counts[4] = counts[3] + np.int64(first), counts[4] + np.int64(second)


@_compiled
def scan16(bits, counts):
    """As `scan32`, of bfloat16 or float16 bits; at most 2^16 - 1 of them."""
    low, high, zeros, first, second = _HIGHEST_SHORT, _LOWEST_SHORT, _NONE_SHORT, _W0, _W0
    for index in range(bits.size):
        key = ordered_short(bits[index])
        low, high, zeros = least_short(low, key), most_short(high, key), add_short(zeros, zero_short(bits[index]))
    for index in range(bits.size):
        term = mul(longer(bits[index]), _GOLDEN)
        term = xor(term, right(term, _W15))
        first, second = add(first, term), add(second, mul(term, term))
    counts[0], counts[1] = min(counts[0], np.int64(np.int16(low))), max(counts[1], np.int64(np.int16(high)))
    counts[2] += np.int64(zeros)
    counts[3], counts[4] = counts[3] + np.int64(first), counts[4] + np.int64(second)


@_inlined
def _rows(x, c):
    return (x[c], x[256 + c], x[512 + c], x[768 + c], x[1024 + c], x[1280 + c], x[1536 + c], x[1792 + c], x[2048 + c],
            x[2304 + c], x[2560 + c], x[2816 + c], x[3072 + c], x[3328 + c], x[3584 + c], x[3840 + c])


@_compiled
def sums32(bits, first, totals, squares, lanes):
    """Whole mini-blocks of float32 bits, the first of which is number `first` of its tensor."""
    sketch = np.empty(512, np.float32)
    for number in range(bits.size // 4096):
        x = bits[number * 4096:(number + 1) * 4096]
        block = as_word(np.int64(first + number))
        start = add(mul(block, _ROW), _SEED)
        for c in range(256):
            _column(_rows(x, c), c, _mixed(add(start, as_word(np.int64(c)))), totals, squares, sketch)
        _turned(sketch, block, lanes)


@_inlined
def _halves(x, c):
    return (from_half(x[c]), from_half(x[256 + c]), from_half(x[512 + c]), from_half(x[768 + c]),
            from_half(x[1024 + c]), from_half(x[1280 + c]), from_half(x[1536 + c]), from_half(x[1792 + c]),
            from_half(x[2048 + c]), from_half(x[2304 + c]), from_half(x[2560 + c]), from_half(x[2816 + c]),
            from_half(x[3072 + c]), from_half(x[3328 + c]), from_half(x[3584 + c]), from_half(x[3840 + c]))


@_compiled
def sums_half(bits, first, totals, squares, lanes):
    """As `sums32`, of float16 bits."""
    sketch = np.empty(512, np.float32)
    for number in range(bits.size // 4096):
        x = bits[number * 4096:(number + 1) * 4096]
        block = as_word(np.int64(first + number))
        start = add(mul(block, _ROW), _SEED)
        for c in range(256):
            _column(_halves(x, c), c, _mixed(add(start, as_word(np.int64(c)))), totals, squares, sketch)
        _turned(sketch, block, lanes)


@_inlined
def _pairs(x, j):
    return (x[j], x[128 + j], x[256 + j], x[384 + j], x[512 + j], x[640 + j], x[768 + j], x[896 + j], x[1024 + j],
            x[1152 + j], x[1280 + j], x[1408 + j], x[1536 + j], x[1664 + j], x[1792 + j], x[1920 + j])


@_inlined
def _even(p):
    return (left(p[0], _W16), left(p[1], _W16), left(p[2], _W16), left(p[3], _W16), left(p[4], _W16), left(p[5], _W16),
            left(p[6], _W16), left(p[7], _W16), left(p[8], _W16), left(p[9], _W16), left(p[10], _W16),
            left(p[11], _W16), left(p[12], _W16), left(p[13], _W16), left(p[14], _W16), left(p[15], _W16))


@_inlined
def _odd(p):
    return (both(p[0], _HIGH), both(p[1], _HIGH), both(p[2], _HIGH), both(p[3], _HIGH), both(p[4], _HIGH),
            both(p[5], _HIGH), both(p[6], _HIGH), both(p[7], _HIGH), both(p[8], _HIGH), both(p[9], _HIGH),
            both(p[10], _HIGH), both(p[11], _HIGH), both(p[12], _HIGH), both(p[13], _HIGH), both(p[14], _HIGH),
            both(p[15], _HIGH))


@_compiled
def sums_brain(bits, first, totals, squares, lanes):
    """As `sums32`, of bfloat16 bits: two neighbours in one word, so that no element is converted.

    In `totals` and `squares` the even lanes come before the odd ones.
    """
    words = bits.view(np.uint32)
    split, sketch = np.empty(256, np.float32), np.empty(512, np.float32)
    for number in range(words.size // 2048):
        x = words[number * 2048:(number + 1) * 2048]
        block = as_word(np.int64(first + number))
        start = add(mul(block, _ROW), _SEED)
        for j in range(128):
            pairs = _pairs(x, j)
            even, odd = as_word(np.int64(2 * j)), as_word(np.int64(2 * j + 1))
            _column(_even(pairs), j, _mixed(add(start, even)), totals, squares, split)
            _column(_odd(pairs), j + 128, _mixed(add(start, odd)), totals, squares, split)
        for j in range(128):
            sketch[2 * j] = split[j]
            sketch[2 * j + 1] = split[j + 128]
        _turned(sketch, block, lanes)


def _passes(scan, sums, chunk):
    """Both passes over a leaf of whole mini-blocks, chunk by chunk, as one compiled call."""
    def passes(bits, first, counts, totals, squares, lanes):
        for start in range(0, bits.size, chunk):
            part = bits[start:start + chunk]
            scan(part, counts)
            sums(part, first + start // 4096, totals, squares, lanes)

    return _compiled(passes)


_KERNELS: Dict[str, Tuple[Any, Any, Any]] = {
    "float32": (_passes(scan32, sums32, _CHUNK), scan32, sums32),
    "bfloat16": (_passes(scan16, sums_brain, _CHUNK_SHORT), scan16, sums_brain),
    "float16": (_passes(scan16, sums_half, _CHUNK_SHORT), scan16, sums_half),
}
_LANES_IN_ORDER = {"bfloat16": np.arange(256).reshape(128, 2).T.ravel().argsort()}


def measure(elements: Array, dtype: str, first: int,
            seen: Optional[Callable[[Array], object]] = None) -> Optional[Leaf]:
    """As `digest_numpy.measure`, and to the same bits; `seen` is given the elements too, while they are near."""
    if dtype not in _KERNELS or not elements.size:
        if seen:
            seen(elements)
        return plain.measure(elements, dtype, first)
    passes, scan, sums = _KERNELS[dtype]
    bits, block = elements.view(_BITS[dtype]), first // _BLOCK
    counts = np.array([1 << 40, -(1 << 40), 0, 0, 0], np.int64)
    totals, squares, lanes = np.zeros(256), np.zeros(256), np.zeros(256)
    whole = bits.size - bits.size % _BLOCK
    for start in range(0, whole, _NEAR // bits.itemsize):
        part = bits[start:min(start + _NEAR // bits.itemsize, whole)]
        passes(part, block + start // _BLOCK, counts, totals, squares, lanes)
        if seen:
            seen(part)
    if whole < bits.size:
        if seen:
            seen(bits[whole:])
        rest = np.zeros(_BLOCK, bits.dtype)
        rest[:bits.size - whole] = bits[whole:]
        scan(bits[whole:], counts)
        sums(rest, block + whole // _BLOCK, totals, squares, lanes)
    if dtype in _LANES_IN_ORDER:
        totals, squares = totals[_LANES_IN_ORDER[dtype]], squares[_LANES_IN_ORDER[dtype]]
    return _leaf(elements, dtype, first, counts, totals, squares, lanes)


def _leaf(elements: Array, dtype: str, first: int, counts: Array, totals: Array, squares: Array,
          lanes: Array) -> Optional[Leaf]:
    """The leaf, where its numbers are such that float32 trees are right; else the masked path's."""
    low, high = (_value(int(counts[index]), dtype) for index in (0, 1))
    sound = abs(low) < plain.SAFE[1] and abs(high) < plain.SAFE[1]  # NaN is not less either
    if not sound or 0 < max(abs(low), abs(high)) <= plain.SAFE[0]:
        return plain.measure(elements, dtype, first)
    return Leaf(plain.in_order(totals), plain.in_order(squares), low, high, int(counts[2]), 0, 0,
                (int(counts[3]) & 0xFFFFFFFF, int(counts[4]) & 0xFFFFFFFF), lanes)


def _value(key: int, dtype: str) -> float:
    """The float whose ordered value is `key`."""
    if dtype == "float32":
        bits = key if key >= 0 else (key ^ 0x7FFFFFFF) & 0xFFFFFFFF
        return float(np.uint32(bits).view(np.float32))
    bits = key if key >= 0 else (key ^ 0x7FFF) & 0xFFFF
    short = np.array([bits], np.uint16)
    return float(plain.widened(short if dtype == "bfloat16" else short.view(np.float16), dtype)[0])
