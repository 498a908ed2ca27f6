"""How far apart two recorded tensors are, where the sketch alone would not say it.

A tensor of up to 64 elements has a lane for each. Of the first elements of a larger one 9 and 12 share one of its 64
lanes with one sign, 3 and 9 with opposite ones.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from recordings import draws, event, normal

from pytest_migparity.judges.event_relation import apart


def far(array, other, dtype=""):
    return apart(*(event("output", "x", np.asarray(each), dtype=dtype) for each in (array, other)))


def spread(size=70, **places):
    """Zeros, but for some places, and as much in the first as makes the norm 1."""
    array = np.zeros(size, np.float32)
    for place, value in places.items():
        array[int(place.removeprefix("at"))] = value
    array[0] = math.sqrt(1 - float(array @ array))
    return array


def test_the_lanes_of_the_docstring_are_shared():
    lanes = {}
    for place in (3, 9, 12):
        one = np.zeros(70, np.float32)
        one[place] = 1
        fine = event("output", "x", one).fine
        (lane,) = np.flatnonzero(fine)
        lanes[place] = (int(lane), fine[lane])
    assert lanes[9] == lanes[12]
    assert lanes[3] == (lanes[9][0], -lanes[9][1])


def test_the_sum_bounds_what_cancels_out_in_the_sketch():
    """.1 more in two elements of 70: (.2 - .01) / sqrt(70) = .023 at the least; the truth is .1418."""
    found = far(spread(), spread(at3=0.1, at9=0.1))
    least = (0.2 - (1 - math.sqrt(0.98))) / math.sqrt(70)
    assert found.relative == pytest.approx(least, rel=1e-3)
    assert found.low == found.relative <= found.high
    assert found.cosine == pytest.approx(1 - least**2 / 2, abs=1e-5)


def test_the_interval_holds_what_only_the_sum_shows():
    """The sketch sees nothing at all; the truth is .1414, the sum says .2 / sqrt(70) = .024."""
    other = spread()
    other[[3, 9]] = 0.1
    found = far(spread(), other)
    assert found.low == found.relative == found.high == pytest.approx(0.2 / math.sqrt(70), rel=1e-3)


@pytest.mark.parametrize("size", [1, 14, 64])
def test_of_a_small_tensor_every_element_counts_for_itself(size):
    """Also where two would share a lane of a larger one: the distance is exact but for the lanes' rounding."""
    array = normal(size, seed=5)
    other = array.copy()
    other[[min(place, size - 1) for place in (3, 9, 12)]] *= np.float32(1.001)
    found = far(array, other)
    true = np.linalg.norm(other.astype(np.float64) - array) / np.linalg.norm(array.astype(np.float64))
    assert found.relative == pytest.approx(true, rel=1e-3)


@pytest.mark.parametrize("sign", [1, -1], ids=["the least element", "the greatest element"])
def test_the_extremes_bound_what_cancels_out_in_sketch_and_sum(sign):
    """.3 more in one element and less in another, norm and sum nearly kept: at least .3; the truth is .4346."""
    found = far(sign * spread(), sign * spread(at9=0.3, at12=-0.3))
    assert found.relative == pytest.approx(0.3, rel=1e-3)
    assert found.low == found.relative <= found.high


@pytest.mark.parametrize("bits", [12, 16], ids=["extremes", "sum"])
def test_numbers_that_are_rounded_apart_on_their_way_bound_nothing(bits):
    """Just below and just above the middle of two numbers of so many bits: 4e-7 apart, sent as 5e-4 or 3e-5 apart."""
    middle = 1 + 2.0**-bits
    found = far(np.float32([middle - 2.0**-23]), np.float32([middle + 2.0**-22]))
    assert found.relative == pytest.approx(3 * 2.0**-23, abs=1e-7)


def test_rounding_of_numbers_far_from_zero_stays_rounding():
    for seed in range(40):
        array = (1000 + normal(64, seed=seed)).astype(np.float32)
        other = (array * (1 + 1e-7 * draws(seed).uniform(-1, 1, 64))).astype(np.float32)
        true = np.linalg.norm(other.astype(np.float64) - array) / np.linalg.norm(array.astype(np.float64))
        assert far(array, other).relative < max(2 * true, 2e-7)


# ---- the same elements in another order


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_two_elements_that_change_places_are_found_by_the_multiset(dtype):
    array = normal(14, seed=3).astype(dtype)
    other = array.copy()
    other[[9, 12]] = array[[12, 9]]
    assert far(array, other).fault == "permuted"


def test_rows_in_another_order_are_a_permutation_in_any_format():
    for dtype in ("float32", "float16", "int64", "uint8"):
        array = (100 * np.abs(normal(64, 64))).astype(dtype)
        assert far(array, np.ascontiguousarray(array[draws(1).permutation(64)])).fault == "permuted"


@pytest.mark.parametrize("stored", ["bfloat16", "float32"])
def test_two_roundings_that_trade_places_are_none(stored):
    """Of 4096 elements with 7 bits one steps up where another steps down between the same two values."""
    bits = (0x3F80 + draws(1).integers(0, 128, 4096)).astype(np.uint16)
    bits[:2] = 0x3F80, 0x3F81
    other = bits.copy()
    other[:2] = bits[1::-1]
    sides = [bits, other]
    if stored == "float32":
        sides = [(each.astype(np.uint32) << 16).view(np.float32) for each in sides]
    found = far(*sides, dtype=stored)
    assert found.fault == ""
    assert found.relative == pytest.approx(math.sqrt(2) * 2.0**-7 / math.sqrt(4096 * (1.5**2 + 1 / 12)), rel=0.1)


def test_other_elements_with_the_norm_and_the_sum_of_the_first_are_no_permutation():
    array = np.float32([1, 2, 3, 4])
    assert far(array, np.float32([4, 3, 2, 1]) * np.float32(1.25)).fault == ""
    assert far(array, array[::-1].copy()).fault == "permuted"
