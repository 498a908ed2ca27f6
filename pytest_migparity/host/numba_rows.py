"""One lane of a mini-block at a time: its 16 rows to their sum, their sum of squares and their sketch.

Rows are handed on as tuples of 16, which a compiler keeps in registers. Importing this module imports numba.
"""

import numpy as np
from numba import njit

from .numba_words import as_single, both, from_half, left, mul, right, xor

_W15, _W16 = np.uint32(15), np.uint32(16)
_SIGN, _HIGH = np.uint32(0x80000000), np.uint32(0xFFFF0000)
_FIRST, _SECOND = np.uint32(0x7FEB352D), np.uint32(0x846CA68B)

_inlined = njit(inline="always")


@_inlined
def mixed(x):
    """Lb of `digest_numpy`: a word to a well-mixed one."""
    x = mul(xor(x, right(x, _W16)), _FIRST)
    x = mul(xor(x, right(x, _W15)), _SECOND)
    return xor(x, right(x, _W16))


def _each(change):
    """`change` of each of 16 rows."""
    @_inlined
    def changed(r):
        return (change(r[0]), change(r[1]), change(r[2]), change(r[3]), change(r[4]), change(r[5]), change(r[6]),
                change(r[7]), change(r[8]), change(r[9]), change(r[10]), change(r[11]), change(r[12]), change(r[13]),
                change(r[14]), change(r[15]))

    return changed


@_inlined
def _tree(r):
    return (((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))) + (
        ((r[8] + r[9]) + (r[10] + r[11])) + ((r[12] + r[13]) + (r[14] + r[15])))


@_inlined
def _square(x):
    return x * x


@_inlined
def _low(x):
    """The even one of two bfloat16 in a word, as float32 bits."""
    return left(x, _W16)


@_inlined
def _high(x):
    return both(x, _HIGH)


singles, squares, evens, odds, halves = (_each(change) for change in (as_single, _square, _low, _high, from_half))


@_inlined
def _signed(x, word, place):
    """The float of bits `x`, its sign turned where bit 31 - `place` of `word` is set."""
    return as_single(xor(x, both(left(word, np.uint32(place)), _SIGN)))


@_inlined
def column(r, lane, at, word, sums):
    """One lane's 16 rows, as bits: their sum, the sum of their squares, and at `at` their sketch."""
    v = singles(r)
    sums[lane], sums[256 + lane] = _tree(v), _tree(squares(v))
    sums[at] = _tree((
        _signed(r[0], word, 31), _signed(r[1], word, 30), _signed(r[2], word, 29), _signed(r[3], word, 28),
        _signed(r[4], word, 27), _signed(r[5], word, 26), _signed(r[6], word, 25), _signed(r[7], word, 24),
        _signed(r[8], word, 23), _signed(r[9], word, 22), _signed(r[10], word, 21), _signed(r[11], word, 20),
        _signed(r[12], word, 19), _signed(r[13], word, 18), _signed(r[14], word, 17), _signed(r[15], word, 16)))


@_inlined
def rows(x, c):
    """Lane `c` of a mini-block of 4096 elements."""
    return (x[c], x[256 + c], x[512 + c], x[768 + c], x[1024 + c], x[1280 + c], x[1536 + c], x[1792 + c], x[2048 + c],
            x[2304 + c], x[2560 + c], x[2816 + c], x[3072 + c], x[3328 + c], x[3584 + c], x[3840 + c])


@_inlined
def pairs(x, j):
    """Lanes `2 * j` and `2 * j + 1` of a mini-block of 2048 words of two elements."""
    return (x[j], x[128 + j], x[256 + j], x[384 + j], x[512 + j], x[640 + j], x[768 + j], x[896 + j], x[1024 + j],
            x[1152 + j], x[1280 + j], x[1408 + j], x[1536 + j], x[1664 + j], x[1792 + j], x[1920 + j])
