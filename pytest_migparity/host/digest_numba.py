"""The kernel of `host.digest_numpy` compiled: the same bits, at the speed of memory, for float32, bfloat16 and float16.

A chunk is passed over twice: in order, for extremes, zeros and the multiset, and then, while it lies in the first-level
cache, in rows of 256 lanes for the sums, which from memory would stall on their stride; the second pass fetches the
next chunk meanwhile. Loops over elements hold 32-bit numbers alone: with one of 64 bits among them the compiler halves
all its vectors. Leaves that need the masked float64 path, and other dtypes, are `digest_numpy`'s. Importing this module
imports numba and compiles nothing before the first leaf.
"""

import struct
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np
from numba import njit

from . import digest_numpy as plain
from . import xxh3
from .digest_numpy import Array, Leaf

from .numba_rows import column, evens, halves, mixed, odds, pairs, rows  # isort: skip
from .numba_words import (  # isort: skip
    add, add_short, as_word, both, fetch, least, least_short, longer, most, most_short, mul,
    ordered, ordered_short, right, xor, zero, zero_short,
)  # fmt: skip

_BLOCK = 4096
_CHUNK = 1 << 14  # bytes: a chunk and the one fetched meanwhile are in the first-level cache
_NEAR = 1 << 18  # bytes that the hash finds in the second-level cache
_W0, _W15, _W16 = np.uint32(0), np.uint32(15), np.uint32(16)
_LANE, _SEED, _TURN = np.uint32(255), np.uint32(0x9E3779B9), np.uint32(0x85EBCA6B)
_GOLDEN = np.uint32(0x9E3779B1)
_ROW = np.uint32(256)
_LOWEST, _HIGHEST = np.uint32(0x80000000), np.uint32(0x7FFFFFFF)
_LOWEST_SHORT, _HIGHEST_SHORT, _NONE_SHORT = np.uint16(0x8000), np.uint16(0x7FFF), np.uint16(0)
_BITS = {"float32": np.uint32, "bfloat16": np.uint16, "float16": np.uint16}

_compiled = njit(nogil=True, boundscheck=False, error_model="numpy")
_inlined = njit(inline="always")


@_inlined
def _turn(block):
    """By how many lanes a mini-block's sketch is turned."""
    return np.int64(both(mixed(xor(block, _TURN)), _LANE))


@_compiled
def add_lanes(sums, block, leaf):
    """A mini-block's sums into the leaf's: of its 256 lanes the sum, the sum of squares and the sketch, turned."""
    turn = _turn(block)
    for lane in range(256):
        sums[768 + lane] = sums[512 + lane]
    for lane in range(512):
        leaf[lane] += np.float64(sums[lane])
    for lane in range(256):
        leaf[512 + lane] += np.float64(sums[512 + turn + lane])


@_compiled
def add_split(sums, block, leaf):
    """As `add_lanes`, with the 128 even lanes of each before the odd ones: an odd turn exchanges them."""
    turn = _turn(block)
    odd = turn % 2
    even_from, odd_from = 512 + 256 * odd + turn // 2, 768 - 255 * odd + turn // 2
    for lane in range(128):
        sums[640 + lane] = sums[512 + lane]
        sums[896 + lane] = sums[768 + lane]
    for lane in range(512):
        leaf[lane] += np.float64(sums[lane])
    for lane in range(128):
        leaf[512 + lane] += np.float64(sums[even_from + lane])
    for lane in range(128):
        leaf[640 + lane] += np.float64(sums[odd_from + lane])


@_inlined
def _fetched(words, start):
    """Bring 1 KB of `words` from `start` on near; past their end nothing is read."""
    for line in range(16):
        fetch(words, np.int64(start + 16 * line))  # type: ignore[call-arg]


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


@_compiled
def sums32(bits, number, block, sums):
    """Mini-block `number` of float32 bits, the `block`-th of its tensor, into the sums of its 256 lanes."""
    x, start = bits[number * 4096:(number + 1) * 4096], add(mul(block, _ROW), _SEED)
    for group in range(0, 256, 16):
        _fetched(bits, (number + 1) * 4096 + 16 * group)
        for c in range(group, group + 16):
            column(rows(x, c), c, 512 + c, mixed(add(start, as_word(np.int64(c)))), sums)


@_compiled
def sums_half(bits, number, block, sums):
    """As `sums32`, of float16 bits."""
    x, start = bits[number * 4096:(number + 1) * 4096], add(mul(block, _ROW), _SEED)
    words = bits[:bits.size // 2 * 2].view(np.uint32)
    for group in range(0, 256, 32):
        _fetched(words, (number + 2) * 2048 + 8 * group)
        for c in range(group, group + 32):
            column(halves(rows(x, c)), c, 512 + c, mixed(add(start, as_word(np.int64(c)))), sums)


@_compiled
def sums_brain(bits, number, block, sums):
    """As `sums32`, of bfloat16 bits: two neighbours in one word, so that no element is converted.

    Even lanes come before odd ones.
    """
    words = bits[:bits.size // 2 * 2].view(np.uint32)
    x, start = words[number * 2048:(number + 1) * 2048], add(mul(block, _ROW), _SEED)
    for group in range(0, 128, 16):
        _fetched(words, (number + 2) * 2048 + 16 * group)
        for j in range(group, group + 16):
            column(evens(pairs(x, j)), j, 512 + j, mixed(add(start, as_word(np.int64(2 * j)))), sums)
        for j in range(group, group + 16):
            column(odds(pairs(x, j)), 128 + j, 768 + j, mixed(add(start, as_word(np.int64(2 * j + 1)))), sums)


@_compiled
def unhashed(state, start, size):
    """Stands in for the library of xxh3, where that is missing."""


_hashed = xxh3.UPDATE if xxh3.AVAILABLE else unhashed


def _passes(scan, summed, added, size):
    """Both passes over mini-blocks `start` to `end` of a leaf, chunk by chunk, as one compiled call.

    `state` is the address of an xxh3 state that is given their bytes while they are near, or 0.
    """
    chunk, near = _CHUNK // size // _BLOCK, _NEAR // size // _BLOCK

    def passes(bits, start, end, first, counts, leaf, state):
        sums = np.empty(1024, np.float32)
        for begin in range(start, end, near):
            stop = min(begin + near, end)
            for number in range(begin, stop):
                if (number - begin) % chunk == 0:
                    scan(bits[number * 4096:min(number + chunk, stop) * 4096], counts)
                block = as_word(np.int64(first + number))
                summed(bits, number, block, sums)
                added(sums, block, leaf)
            if state:
                part = bits[begin * 4096:stop * 4096]
                _hashed(state, part.ctypes.data, part.size * size)

    return _compiled(passes)


_KERNELS: Dict[str, Tuple[Any, Any]] = {
    "float32": (_passes(scan32, sums32, add_lanes, 4), scan32),
    "bfloat16": (_passes(scan16, sums_brain, add_split, 2), scan16),
    "float16": (_passes(scan16, sums_half, add_lanes, 2), scan16),
}
_LANES_IN_ORDER = np.arange(256).reshape(128, 2).T.ravel().argsort()  # of lanes of which the even come first
_UNSEEN = np.array([1 << 40, -(1 << 40), 0, 0, 0], np.int64)


def measure(elements: Array, dtype: str, first: int,
            seen: Optional[Callable[[Array], object]] = None) -> Optional[Leaf]:
    """As `digest_numpy.measure`, and to the same bits; `seen` is given the elements too, while they are near.

    Where `seen` is the `update` of an `xxh3.State`, compiled code gives them, and the interpreter is let alone.
    """
    if dtype not in _KERNELS or not elements.size:
        if seen:
            seen(elements)
        return plain.measure(elements, dtype, first)
    passes, scan = _KERNELS[dtype]
    bits, block = elements.view(_BITS[dtype]), first // _BLOCK
    counts, sums = np.array(_UNSEEN), np.zeros(768)
    owner = getattr(seen, "__self__", None)
    state = owner.address if isinstance(owner, xxh3.State) else 0
    whole = bits.size // _BLOCK
    step = _NEAR // bits.itemsize // _BLOCK if seen and not state else whole
    for start in range(0, whole, max(step, 1)):
        end = min(start + step, whole)
        passes(bits, start, end, block, counts, sums, state)
        if seen and not state:
            seen(bits[start * _BLOCK:end * _BLOCK])
    last = bits[whole * _BLOCK:]
    if last.size:
        if seen:
            seen(last)
        padded = np.zeros(_BLOCK, bits.dtype)
        padded[:last.size] = last
        passes(padded, 0, 1, block + whole, counts.copy(), sums, 0)
        scan(last, counts)
    lanes = sums.reshape(3, 256)
    return _leaf(elements, dtype, first, counts, lanes[:, _LANES_IN_ORDER] if dtype == "bfloat16" else lanes)


def _leaf(elements: Array, dtype: str, first: int, counts: Array, lanes: Array) -> Optional[Leaf]:
    """The leaf, where its numbers are such that float32 trees are right; else the masked path's."""
    least_key, most_key, zeros, *multiset = counts.tolist()
    low, high = _value(least_key, dtype), _value(most_key, dtype)
    sound = abs(low) < plain.SAFE[1] and abs(high) < plain.SAFE[1]  # NaN is not less either
    if not sound or 0 < max(abs(low), abs(high)) <= plain.SAFE[0]:
        return plain.measure(elements, dtype, first)
    return Leaf(plain.in_order(lanes[0]), plain.in_order(lanes[1]), low, high, zeros, 0, 0,
                (multiset[0] & 0xFFFFFFFF, multiset[1] & 0xFFFFFFFF), lanes[2])


def _value(key: int, dtype: str) -> float:
    """The float whose ordered value is `key`."""
    if dtype == "float32":
        bits = key if key >= 0 else (key ^ 0x7FFFFFFF) & 0xFFFFFFFF
        return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])
    bits = key if key >= 0 else (key ^ 0x7FFF) & 0xFFFF
    if dtype == "bfloat16":
        return float(struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0])
    return float(struct.unpack("<e", bits.to_bytes(2, "little"))[0])
