"""A closer look at one tensor names the block that differs; a rounded copy is what torch's own cast gives."""

import numpy as np
import pytest

pytest.importorskip("scipy", reason="judges run where scipy is")

from pytest_migparity.host.digest import digest
from pytest_migparity.host.digest_numpy import LEAF
from pytest_migparity.host.tensors import of_array
from pytest_migparity.host.zoom import BLOCK, cast_of, parts_of, rounded, zoomed
from pytest_migparity.judges.digest_fault import Fault
from pytest_migparity.judges.digestmatch import match


def differing(a, b, level=1):
    found = match(digest(a, level=level, algorithm="sha256"), digest(b, level=level, algorithm="sha256"))
    return [item.name for item in found.tensors if item.fault is not Fault.EQUAL]


def test_one_flipped_bit_is_found_in_four_closer_looks():
    good = np.random.default_rng(0).standard_normal(3 * LEAF + 5000).astype(np.float32)
    bad = good.copy()
    place = 2 * LEAF + 7 * BLOCK + 123
    bad.view(np.uint32)[place] ^= 1
    whole = [of_array("w", good), of_array("w", bad)]
    assert differing(whole[:1], whole[1:]) == ["w"]
    wanted, name = [(2 * LEAF, 3 * LEAF), (place - 123, place - 123 + BLOCK), (place - 59, place + 5),
                    (place, place + 1)], "w"
    for (first, last), parts in zip(wanted, (4, 256, 64, 64), strict=True):
        looks = [zoomed([tensor], name) for tensor in whole]
        assert [len(look) for look in looks] == [parts, parts]
        (name,) = differing(*looks, level=0)
        assert name == f"w[{first}:{last}]"


def test_the_tensor_alone_keeps_its_shape_and_is_named_as_a_part():
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    (part,) = zoomed([of_array("v", array + 1), of_array("w", array)], "w[:]")
    assert (part.name, part.shape) == ("w[0:12]", (3, 4))
    assert np.array_equal(next(part.leaves()), array.reshape(-1))


@pytest.mark.parametrize("name", ["v", "v[:]", "w[5:5]", "w[5:4]", "w[0:13]", "w[:4]", "w[-1:4]", "w[0:12"])
def test_what_is_no_part_is_named(name):
    with pytest.raises(ValueError, match=r"no tensor or part|is no part"):
        zoomed([of_array("w", np.arange(12))], name)


def test_a_part_across_two_leaves_is_refused():
    with pytest.raises(ValueError, match="elements of one leaf of 1048576, of the 1048580"):
        zoomed([of_array("w", np.zeros(LEAF + 4, np.uint8))], f"w[{LEAF - 1}:{LEAF + 1}]")


@pytest.mark.parametrize("size", [1, BLOCK, BLOCK + 1, LEAF, LEAF + 1])
def test_parts_hold_every_element_once_and_in_order(size):
    array = np.arange(size, dtype=np.int32)
    parts = parts_of(of_array("w", array))
    assert np.array_equal(np.concatenate([leaf for part in parts for leaf in part.leaves()]), array)
    assert [part.size for part in parts] == [len(next(part.leaves())) for part in parts]


@pytest.mark.parametrize("dtype, target", [("float32", "bfloat16"), ("float32", "float16"), ("float64", "float32"),
                                           ("float64", "float16"), ("float16", "bfloat16"), ("bfloat16", "float16")])
def test_a_rounded_copy_is_torchs_cast(dtype, target):
    torch = pytest.importorskip("torch")
    drawn = np.random.default_rng(1).standard_t(2, 20000) * np.repeat([1e-42, 1e-7, 1, 1e4, 1e38], 4000)
    drawn[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1 + 2.0**-8]  # the last lies half way between two bfloat16
    with np.errstate(all="ignore"):
        held = torch.from_numpy(drawn).to(getattr(torch, dtype))
    cast = held.to(getattr(torch, target))
    mine = held.view(torch.int16).numpy().view(np.uint16) if dtype == "bfloat16" else held.numpy()
    bits = rounded(mine, dtype, target)
    if cast.element_size() == 2:
        theirs, ours = cast.view(torch.int16).numpy().view(np.uint16), bits.view(np.uint16)
    else:
        theirs, ours = cast.numpy().view(np.uint32), bits.view(np.uint32)
    nan = torch.isnan(cast).numpy()
    assert np.array_equal(theirs[~nan], ours[~nan])
    assert nan.sum() == 1


def test_a_digest_of_the_rounded_copy_proves_the_cast():
    drawn = np.random.default_rng(2).standard_normal((300, 40)).astype(np.float32)
    other = of_array("w", rounded(drawn, "float32", "bfloat16"), "bfloat16")
    assert differing([cast_of(of_array("w", drawn), "bfloat16")], [other], level=0) == []
    assert differing([of_array("w", drawn)], [other]) == ["w"]


def test_a_cast_to_something_wider_or_of_integers_is_refused():
    with pytest.raises(ValueError, match="int32 is not cast"):
        cast_of(of_array("w", np.arange(3, dtype=np.int32)), "bfloat16")
    with pytest.raises(ValueError, match="cast the other side's"):
        cast_of(of_array("w", np.zeros(3, np.float16)), "float32")
