"""The kernel does what its docstring says, to the bit, and a tensor's digest depends on its values and nothing else."""

import hashlib
import importlib.util
import math
import struct

import pytest

np = pytest.importorskip("numpy")

from pytest_migparity.host import digest as digests  # noqa: E402
from pytest_migparity.host import digest_numpy as kernel  # noqa: E402
from pytest_migparity.host import tensors  # noqa: E402
from pytest_migparity.wire.digest import check  # noqa: E402

U32 = 0xFFFFFFFF


def made(count, seed=1):
    """Numbers within +-2^-5 from integer arithmetic alone: the same from every numpy."""
    index = np.arange(count, dtype=np.uint64) + np.uint64(seed * 1000003)
    word = index * np.uint64(0x9E3779B97F4A7C15)
    word ^= word >> np.uint64(32)
    word *= np.uint64(0xD6E8FEB86659FD93)
    word ^= word >> np.uint64(32)
    return ((word >> np.uint64(40)).astype(np.float32) - np.float32(2**23)) * np.float32(2.0**-28)


def one(array, dtype="", algorithm="sha256", level=1):
    return digests.digest_tensor(tensors.of_array("t", array, dtype), level=level, algorithm=algorithm)


# ---- the definition again, with loops and Python's own numbers


def lb(x):
    x ^= x >> 16
    x = x * 0x7FEB352D & U32
    x ^= x >> 15
    x = x * 0x846CA68B & U32
    return x ^ (x >> 16)


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def tree(values, rounded):
    while len(values) > 1:
        values = [rounded(values[i] + values[i + 1]) for i in range(0, len(values), 2)]
    return values[0]


def by_loops(values, first, rounded):
    """(sum, sum of squares, lanes) of a leaf whose numbers are `values`; `rounded` is float32's rounding, or none."""
    values = [*values, *[0.0] * (-len(values) % 4096)]
    sums, squares, lanes = [0.0] * 256, [0.0] * 256, [0.0] * 256
    for block in range(len(values) // 4096):
        m = first // 4096 + block
        signed = []
        for c in range(256):
            rows = [values[block * 4096 + r * 256 + c] for r in range(16)]
            word = lb((256 * m + c + 0x9E3779B9) & U32)
            signed.append(tree([-x if word >> r & 1 else x for r, x in enumerate(rows)], rounded))
            sums[c] += tree(rows, rounded)
            squares[c] += tree([rounded(x * x) for x in rows], rounded)
        rho = lb(m ^ 0x85EBCA6B) & 255
        for c in range(256):
            lanes[c] += signed[(c + rho) & 255]
    total = square = 0.0
    for c in range(256):
        total += sums[c]
        square += squares[c]
    return total, square, lanes


def bfloat16_bits(values):
    bits = values.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("first", [0, 5 * 4096, 3 << 20])
def test_the_kernel_is_its_definition_to_the_bit(dtype, first):
    values = made(2 * 4096 + 300)
    stored = bfloat16_bits(values) if dtype == "bfloat16" else values.astype(dtype)
    numbers = (stored.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else stored
    leaf = kernel.measure(stored, dtype, first)
    total, squares, lanes = by_loops([float(x) for x in numbers], first, single)
    assert (leaf.total, leaf.squares, leaf.lanes.tolist()) == (total, squares, lanes)
    assert (leaf.low, leaf.high) == (float(min(numbers)), float(max(numbers)))


@pytest.mark.parametrize("dtype, values", [
    ("float64", np.linspace(-1, 1, 5000) / 3),
    ("float32", np.float32([1e20, -3e38, 2.0, 1e-30] * 1100)),
    ("float32", np.float32([math.nan, 1.5, -math.inf, math.inf, -2.25] * 1000)),
    ("float16", np.float16([math.nan, 1.5, -math.inf, 0.0] * 1100)),
    ("float32", np.float32([1e-16, -1e-17] * 2500)),
    ("int64", np.arange(5000) * 2**40 - 7),
    ("uint8", np.arange(5000).astype(np.uint8)),
    ("bool", np.arange(5000) % 3 == 0),
])
def test_where_float32_would_not_do_the_same_trees_run_in_float64(dtype, values):
    leaf = kernel.measure(next(tensors.leaves_of(values, kernel.storage(dtype))), dtype, 4096)
    numbers = [float(x) if math.isfinite(x) else 0.0 for x in values.tolist()]
    total, squares, lanes = by_loops(numbers, 4096, float)
    assert (leaf.total, leaf.squares, leaf.lanes.tolist()) == (total, squares, lanes)
    assert leaf.zeros == sum(x == 0 for x in values.tolist())
    assert leaf.nans == sum(math.isnan(x) for x in values.tolist())
    assert leaf.infs == sum(math.isinf(x) for x in values.tolist())
    finite = [float(x) for x in values.tolist() if math.isfinite(x)]
    assert (leaf.low, leaf.high) == (min(finite), max(finite))


def test_multisets_are_the_sums_of_the_definition():
    values = made(1000)
    for dtype, bits, term in [
        ("float32", values.view(np.uint32), lambda u: u ^ (u >> 16)),
        ("float16", values.astype(np.float16).view(np.uint16), lambda u: (u * 0x9E3779B1 & U32) ^ ((u * 0x9E3779B1 & U32) >> 15)),
        ("int32", values.view(np.uint32), lb),
        ("int64", values.view(np.uint64), lambda u: lb((u & U32) ^ lb(u >> 32))),
    ]:
        terms = [term(int(u)) for u in bits]
        wanted = (sum(terms) & U32, sum(t * t for t in terms) & U32)
        assert kernel.measure(bits.view(dtype), dtype, 0).multiset == wanted


# ---- the prototype that the figures were measured with (numba; its outputs for `made`)

def avalanche(x):
    """lowbias32 as its author wrote it, in whole numbers."""
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return x ^ (x >> 16)


PROTOTYPE = [  # dtype, count, sha256 of the 256 lanes, sum, sum of squares, min, max, zeros, multiset
    ("float32", 1, "2974b50947dcf659", "-0x1.4a8d400000000p-8", "0x1.aad0760000000p-16", -0.005043819546699524, -0.005043819546699524, 0, (3148217605, 1887756825)),
    ("bfloat16", 1, "58ea07aebc301b49", "-0x1.4a00000000000p-8", "0x1.a964000000000p-16", -0.005035400390625, -0.005035400390625, 0, (2141537630, 3254242948)),
    ("float16", 1, "9a812f531c8839ae", "-0x1.4a80000000000p-8", "0x1.aaae400000000p-16", -0.00504302978515625, -0.00504302978515625, 0, (4206522749, 1072928521)),
    ("float32", 4097, "47f46e71dc333bf2", "0x1.ce1d920000000p-2", "0x1.631c0d29c0000p+0", -0.03120584413409233, 0.031244933605194092, 0, (437508551, 2242393855)),
    ("bfloat16", 4097, "0713c7068b821147", "0x1.cc26180000000p-2", "0x1.631518b900000p+0", -0.03125, 0.03125, 0, (2123653420, 2103696780)),
    ("float16", 4097, "a3ca35ac0d373a98", "0x1.ce099c0000000p-2", "0x1.631c148000000p+0", -0.0312042236328125, 0.03125, 0, (2716590189, 4062520213)),
    ("float32", 1060921, "3d31e471edf4c33c", "-0x1.4e16af5400000p+2", "0x1.590997cf9bfc5p+8", -0.031249985098838806, 0.03124995529651642, 0, (1913040905, 1107140909)),
    ("bfloat16", 1060921, "4f7781ac6762b849", "-0x1.51bb621000000p+2", "0x1.590a04ac0cf40p+8", -0.03125, 0.03125, 0, (2345999608, 3215159080)),
    ("float16", 1060921, "27d373d76305624c", "-0x1.4e02a28000000p+2", "0x1.59099442fbcbdp+8", -0.03125, 0.03125, 2, (2059922223, 1375746317)),
]


@pytest.mark.parametrize("dtype, count, lanes, total, squares, low, high, zeros, multiset", PROTOTYPE)
def test_the_same_bits_as_the_prototype(dtype, count, lanes, total, squares, low, high, zeros, multiset):
    values = made(count)
    stored = bfloat16_bits(values) if dtype == "bfloat16" else values.astype(dtype)
    leaves = [kernel.measure(part, dtype, number * kernel.LEAF)
              for number, part in enumerate(tensors.leaves_of(stored, kernel.storage(dtype)))]
    summed = np.zeros(256)
    for leaf in leaves:
        summed = summed + leaf.lanes
    assert hashlib.sha256(summed.astype("<f8").tobytes()).hexdigest()[:16] == lanes
    assert math.fsum(leaf.total for leaf in leaves) == float.fromhex(total)
    assert math.fsum(leaf.squares for leaf in leaves) == float.fromhex(squares)
    assert (min(leaf.low for leaf in leaves), max(leaf.high for leaf in leaves)) == (low, high)
    assert tuple(sum(leaf.multiset[which] for leaf in leaves) & 0xFFFFFFFF for which in (0, 1)) == multiset
    stats = one(stored, dtype).stats
    assert stats.zeros == zeros
    assert stats.low == pytest.approx(low, rel=2**-12)
    assert stats.multiset == avalanche(multiset[0] ^ avalanche(multiset[1]))


# ---- tensors


def hashed(text, *leaves):
    """The content hash by its definition."""
    return hashlib.sha256(text.encode() + b"".join(hashlib.sha256(leaf).digest() for leaf in leaves)).hexdigest()[:16]


def test_the_hash_is_over_dtype_shape_and_leaves():
    values = made((1 << 20) + 5)
    assert one(values).hash == hashed("float32 1048581\n", values[:1 << 20].tobytes(), values[1 << 20:].tobytes())
    assert one(values[:6].reshape(2, 3)).hash == hashed("float32 2x3\n", values[:6].tobytes())
    assert one(np.float32(3)[()].reshape(())).hash == hashed("float32 \n", np.float32(3).tobytes())


def test_strides_and_byte_order_leave_no_trace():
    values = made(24).reshape(4, 6)
    for other in (np.asfortranarray(values), values.astype(">f4"), np.repeat(values, 2, axis=1)[:, ::2]):
        assert one(other) == one(values)
    assert one(values.T) == one(np.ascontiguousarray(values.T)) != one(values)


@pytest.mark.parametrize("array, l2, total, low, high, zeros", [
    (np.float32(-3.0).reshape(()), 3.0, -3.0, -3.0, -3.0, 0),
    (np.zeros((0, 7), np.float32), 0.0, 0.0, 0.0, 0.0, 0),
    (np.int64([3, -4, 0]), 5.0, -1.0, -4.0, 3.0, 1),
    (np.array([True, False, True, True, True]), 2.0, 4.0, 0.0, 1.0, 1),
    (np.float32([math.nan, math.inf]), 0.0, 0.0, 0.0, 0.0, 0),
    (np.float64([3e100, 4e100]), 5e100, 7e100, 3e100, 4e100, 0),
    (np.uint64([2**64 - 1]), 2.0**64, 2.0**64, 2.0**64, 2.0**64, 0),
])
def test_statistics_by_hand(array, l2, total, low, high, zeros):
    found = digests.digest([tensors.of_array("t", array)], algorithm="sha256")
    check(found)
    stats = found.tensors[0].stats
    assert stats.l2 == pytest.approx(l2, rel=1e-15)
    assert (stats.total, stats.low, stats.high, stats.zeros) == (pytest.approx(total, rel=1e-15), low, high, zeros)


@pytest.mark.parametrize("array, dtype", [
    (np.float64([1e300, 1.0]), "float64"), (np.float64([1e-300]), "float64"),
    (np.uint8([1, 2]), "float8_e4m3"), (np.uint64([5]), "complex64"),
])
def test_what_cannot_be_measured_keeps_its_hash(array, dtype):
    found = one(array, dtype)
    assert found.stats is None
    assert found.hash == hashed(f"{dtype} {array.size}\n", array.tobytes())


@pytest.mark.parametrize("array, dtype", [
    (np.array([object()]), ""), (np.array(["a"]), ""), (np.array([1j]), ""), (np.zeros(2, "V2"), ""),
    (np.zeros(2, "datetime64[s]"), ""), (np.zeros(2, np.float32), "bfloat16"), (np.zeros(2, np.longdouble), ""),
])
def test_other_types_are_refused(array, dtype):
    with pytest.raises(ValueError, match="not a type that is digested"):
        tensors.of_array("t", array, dtype)


def test_the_lanes_are_folded_and_rounded_as_defined():
    values = made(5000)
    stats = one(values).stats
    _, _, lanes = by_loops([float(x) for x in values], 0, single)
    order = sorted(range(256), key=lambda c: lb(c ^ 0x1B873593))
    signed = [-lanes[c] if lb(c ^ 0x5BD1E995) & 1 else lanes[c] for c in order]
    unit = 2.0 ** math.frexp(stats.l2)[1] * 8 / 4 / 2**15
    assert stats.lanes == tuple(round(sum(signed[16 * k:16 * k + 16]) / unit) for k in range(16))
    sixteen, sixty_four = (digests.folded(np.array(lanes), amount) for amount in (16, 64))
    assert sixteen == pytest.approx(sixty_four.reshape(16, 4).sum(1), rel=1e-12)


# ---- the same values in another dtype


def values_of(array, dtype=""):
    found = one(array, dtype)
    return (found.narrow, found.values) if found.narrow else (found.dtype, found.hash)


def test_the_same_values_in_any_dtype_are_known_by_one_hash():
    values = made((1 << 20) + 7)
    bits = bfloat16_bits(values)
    upcast = (bits.astype(np.uint32) << 16).view(np.float32)
    assert values_of(upcast) == values_of(upcast.astype(np.float64)) == values_of(bits, "bfloat16")
    assert values_of(values) == values_of(values.astype(np.float64)) == ("float32", one(values).hash)
    half = values.astype(np.float16)
    assert values_of(half) == values_of(half.astype(np.float32)) == values_of(half.astype(np.float64))
    assert len({values_of(values), values_of(half), values_of(upcast)}) == 3
    assert one(upcast).stats == one(upcast.astype(np.float64)).stats._replace(multiset=one(upcast).stats.multiset)


def test_one_element_in_the_last_leaf_that_is_no_bfloat16_decides():
    values = np.ones((1 << 20) + 7, np.float32)
    assert one(values).narrow == "bfloat16"
    values[-1] = 1 + 2**-9
    assert one(values).narrow == "float16"
    values[-1] = 1 + 2**-20
    assert one(values).narrow == ""


@pytest.mark.parametrize("values, narrow", [
    ([0, 1], "bool"), ([0, 255], "uint8"), ([-1, 127], "int8"), ([0, 256], "uint16"), ([-1, 128], "int16"),
    ([0, 2**31], "uint32"), ([-1, 2**31 - 1], "int32"), ([0, 2**63 - 1], "uint64"), ([-1, 2**40], ""),
])
def test_integers_are_narrowed_to_what_holds_them(values, narrow):
    found = one(np.int64(values))
    assert found.narrow == narrow
    if narrow:
        assert found.values == one(np.array(values).astype(narrow)).hash


@pytest.mark.parametrize("odd", [-0.0, math.nan, math.inf, 1e-45, 70000.0, 6e-8])
def test_no_value_is_narrowed_that_would_not_come_back_to_the_bit(odd):
    single = np.float32([1.5, odd])
    for target in ("bfloat16", "float16"):
        shorter = kernel.narrowed(single, "float32", target)
        if shorter is not None:
            back = (shorter.astype(np.uint32) << 16).view(np.float32) if target == "bfloat16" else shorter.astype(np.float32)
            assert back.tobytes() == single.tobytes()
    assert (kernel.narrowed(single, "float32", "bfloat16") is None) == bool((single.view(np.uint32) & 0xFFFF).any())


def test_level_0_has_no_numbers():
    found = one(made(5), level=0)
    assert (found.stats, found.narrow) == (None, "")
    assert found.hash == one(made(5)).hash


def test_the_algorithm_is_that_of_the_machine_unless_asked_for(monkeypatch):
    there = importlib.util.find_spec("xxhash") is not None
    assert digests.algorithm_here() == ("xxh3_128" if there else "sha256")

    class Stub:
        @staticmethod
        def xxh3_128(data=b""):
            return hashlib.md5(data)

    monkeypatch.setitem(__import__("sys").modules, "xxhash", Stub)
    assert digests.digest([tensors.of_array("t", made(3))]).algorithm == "xxh3_128"
    asked = digests.digest([tensors.of_array("t", made(3))], algorithm="sha256")
    assert (asked.algorithm, asked.tensors[0].hash) == ("sha256", one(made(3)).hash)
    monkeypatch.setitem(__import__("sys").modules, "xxhash", None)
    assert digests.algorithm_here() == "sha256"
    with pytest.raises(ImportError):
        digests.digest([tensors.of_array("t", made(3))], algorithm="xxh3_128")
