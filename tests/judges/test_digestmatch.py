"""Every fault of a tensor is named for what it is; the interval holds the true difference as often as it says."""

import math

import numpy as np
import pytest

from pytest_migparity.core.verdict import Outcome
from pytest_migparity.host.digest import digest
from pytest_migparity.host.tensors import of_array
from pytest_migparity.judges.digest_fault import Fault
from pytest_migparity.judges.digest_relation import relation
from pytest_migparity.judges.digestmatch import match
from pytest_migparity.reports.messages import LANGUAGES, catalogue, tell
from pytest_migparity.wire.digest import Stats
from pytest_migparity.wire.digest_text import from_text, to_text

RNG = np.random.default_rng(20)


def noise(*shape):
    return RNG.standard_normal(shape)


def bits_of(values, *, cut=False):
    """float32 as bfloat16 bits: to nearest even, or cut off."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    nearest = np.uint32(0) if cut else np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return ((bits + nearest) >> np.uint32(16)).astype(np.uint16)


def back(bits):
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


class BF16:
    """Marks bits as bfloat16."""

    def __init__(self, values, *, cut=False):
        self.bits = bits_of(values, cut=cut)


def side(level=1, algorithm="sha256", **arrays):
    """A side as it arrives: through the text."""
    tensors = [of_array(name.replace("_", "."), array.bits, "bfloat16") if isinstance(array, BF16)
               else of_array(name.replace("_", "."), array) for name, array in arrays.items()]
    return from_text(to_text(digest(tensors, level=level, algorithm=algorithm)))


def only(baseline, candidate):
    (found,) = match(side(t=baseline), side(t=candidate)).tensors
    return found


def with_norm(change, values, share):
    """`change` brought to the relative L2 `share` of `values`."""
    return change * (share * np.linalg.norm(values.astype(float)) / np.linalg.norm(change))


def edited(values, where, put):
    values = values.copy()
    values.reshape(-1)[where] = put
    return values


LAWS = {
    "student": (RNG.standard_t(4, (192, 256)) * 0.02).astype(np.float32),
    "normal": (noise(192, 256) * 0.02).astype(np.float32),
    "outlier columns": (noise(192, 256) * 0.02 * np.where(np.arange(256) % 41 == 3, 40, 1)).astype(np.float32),
}
FAULTS = {
    "cast to bfloat16": (BF16, Fault.ROUNDED),
    "cast to bfloat16 and back": (lambda x: back(bits_of(x)), Fault.ROUNDED),
    "cast to float16": (lambda x: x.astype(np.float16), Fault.ROUNDED),
    "cut to bfloat16": (lambda x: BF16(x, cut=True), Fault.TRUNCATED),
    "noise 1e-3": (lambda x: (x + with_norm(noise(*x.shape), x, 1e-3)).astype(np.float32), Fault.DIFFERENT),
    "noise 0.1": (lambda x: (x + with_norm(noise(*x.shape), x, 0.1)).astype(np.float32), Fault.DIFFERENT),
    "noise 1e-2, then bfloat16": (lambda x: BF16((x + with_norm(noise(*x.shape), x, 1e-2)).astype(np.float32)), Fault.DIFFERENT),
    "noise 1e-6": (lambda x: (x + with_norm(noise(*x.shape), x, 1e-6)).astype(np.float32), Fault.BELOW_FLOOR),
    "transposed": (lambda x: np.ascontiguousarray(x.T), Fault.TRANSPOSED),
    "transposed and in bfloat16": (lambda x: BF16(np.ascontiguousarray(x.T)), Fault.PERMUTED_NOISY),
    "reshaped": (lambda x: x.reshape(96, 512), Fault.RESHAPED),
    "rows permuted": (lambda x: x[RNG.permutation(len(x))], Fault.PERMUTED),
    "heads swapped": (lambda x: x.reshape(8, 24, 256)[[1, 0, *range(2, 8)]].reshape(x.shape), Fault.PERMUTED),
    "rope layout": (lambda x: x.reshape(8, 2, 12, 256).swapaxes(1, 2).reshape(x.shape), Fault.PERMUTED),
    "rolled by one": (lambda x: np.roll(x.reshape(-1), 1).reshape(x.shape), Fault.PERMUTED),
    "rows permuted, and noise 1.6e-3": (lambda x: (x[::-1] + with_norm(noise(*x.shape), x, 1.6e-3)).astype(np.float32), Fault.PERMUTED_NOISY),
    "scaled by 1.01": (lambda x: x * np.float32(1.01), Fault.SCALED),
    "scaled by 2": (lambda x: x * 2, Fault.SCALED),
    "scaled by 1/8": (lambda x: x / 8, Fault.SCALED),
    "scaled by -1/8": (lambda x: x / -8, Fault.SCALED),
    "negated": (lambda x: -x, Fault.NEGATED),
    "half of the rows negated": (lambda x: np.concatenate([x[:96], -x[96:]]), Fault.DIFFERENT),
    "a block zeroed": (lambda x: edited(x, slice(4096, 8192), 0), Fault.DIFFERENT),
    "an exponent bit": (lambda x: edited(x, 777, x.reshape(-1)[777] + np.linalg.norm(x)), Fault.DIFFERENT),
    "a low bit": (lambda x: edited(x, 777, np.nextafter(x.reshape(-1)[777], np.float32(9))), Fault.BELOW_FLOOR),
    "a NaN": (lambda x: edited(x, 5, np.nan), Fault.NON_FINITE),
    "an Inf": (lambda x: edited(x, 5, np.inf), Fault.NON_FINITE),
    "all zero": (np.zeros_like, Fault.ZEROED),
    "one column by 1.5": (lambda x: x * np.where(np.arange(256) == 99, np.float32(1.5), np.float32(1)), Fault.DIFFERENT),
    "rank 8": (lambda x: (x + with_norm(noise(192, 8) @ noise(8, 256), x, 0.01)).astype(np.float32), Fault.DIFFERENT),
    "another draw": (lambda x: x.reshape(-1)[RNG.integers(0, x.size, x.size)].reshape(x.shape), Fault.DIFFERENT),
    "cut short": (lambda x: x[:-1], Fault.SHAPE),
    "other shape and noise": (lambda x: (x + with_norm(noise(*x.shape), x, 0.5)).astype(np.float32).reshape(96, 512), Fault.SHAPE),
    "unmeasurable": (lambda x: edited(x.astype(float), 5, 1e300), Fault.UNMEASURED),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_named(law, name):
    make, fault = FAULTS[name]
    found = only(LAWS[law], make(LAWS[law]))
    assert found.fault == fault, found
    for lang in LANGUAGES:
        assert tell(found.note(), lang).startswith("t")


@pytest.mark.parametrize("name", [name for name in FAULTS if FAULTS[name][1] in (Fault.DIFFERENT, Fault.SCALED, Fault.NEGATED)])
def test_the_interval_holds_the_true_difference_of_each_fault(name):
    """Ten draws of each: with 95 % each, more than three misses among ten are one chance in a thousand."""
    missed = 0
    for _ in range(10):
        values = (noise(192, 256) * 0.02).astype(np.float32)
        other = FAULTS[name][0](values)
        found = only(values, other)
        plain = back(other.bits) if isinstance(other, BF16) else other
        true = np.linalg.norm(plain.astype(float) - values) / np.linalg.norm(values.astype(float))
        missed += not found.relation.low <= true <= found.relation.high
    assert missed <= 3


def test_the_interval_holds_the_true_difference_as_often_as_it_says():
    """Random laws, sizes and differences; 95 % of 800 is 760, with a standard deviation of 6."""
    rng, held, off = np.random.default_rng(5), 0, []
    for trial in range(800):
        size = int(rng.integers(200, 9000))
        values = (rng.standard_t(4, size) if trial % 2 else rng.standard_normal(size) + rng.normal()).astype(np.float32)
        change = rng.standard_normal(size) * (rng.random(size) < rng.choice([1.0, 0.1]))
        other = (values + with_norm(change, values, 10 ** rng.uniform(-3, 0.3))).astype(np.float32)
        true = np.linalg.norm(other.astype(float) - values) / np.linalg.norm(values.astype(float))
        found = only(values, other).relation
        held += found.low <= true <= found.high
        off.append(found.relative / true - 1)
    assert 0.93 <= held / 800 <= 0.97
    assert 0.15 <= math.sqrt(np.mean(np.square(off))) <= 0.19  # 1 / sqrt(2 x 16) is .18


def test_the_formulas_by_hand():
    """Two sides of norm 1 and .5: the units are 2^-13 and 2^-14 (the next powers of two are 2 and 1)."""
    a = Stats(1.0, 0.0, 0.0, 1.0, 0, 0, 0, (0, 0), (4096, *[0] * 15))  # lanes .5, 0, ...
    b = Stats(0.5, 0.0, 0.0, 1.0, 0, 0, 0, (0, 0), (4096, 4096, *[0] * 14))  # lanes .25, .25, 0, ...
    found = relation(a, b)
    rounding = 16 * (4**-13 + 4**-14) / 12
    squared = 0.25**2 + 0.25**2
    assert found.relative == pytest.approx(math.sqrt(squared - rounding), rel=1e-12)
    assert found.floor == pytest.approx(math.sqrt(rounding), rel=1e-12)
    # two lanes were reached; chi-square of 2 degrees of freedom is -2 ln(1 - p): .0506 (.025), 7.378 (.975)
    assert found.low == pytest.approx(math.sqrt(squared * 2 / (-2 * math.log(0.025)) - rounding), rel=1e-9)
    assert found.high == pytest.approx(math.sqrt(squared * 2 / (-2 * math.log(0.975))), rel=1e-9)
    assert found.cosine == 1.0  # (1 + .25 - .125) / 1 = 1.125, which no cosine is
    assert found.scale == pytest.approx(0.5 * 0.25 / 0.25, rel=1e-12)
    assert found.residual == pytest.approx(0.25 / 0.5, rel=1e-12)
    assert found.residual_floor == pytest.approx(math.sqrt(16 * (0.25 * 4**-13 + 4**-14) / 12) / 0.5, rel=1e-12)


@pytest.mark.parametrize("share", [1e-4, 2e-4])
def test_the_interval_holds_near_its_floor(share):
    """Here the lanes' rounding is as large as the difference: 95 % of 300, and not 80 (7 standard deviations)."""
    rng, held = np.random.default_rng(8), 0
    for _ in range(300):
        values = rng.standard_normal(3000).astype(np.float32)
        other = (values + with_norm(rng.standard_normal(3000), values, share)).astype(np.float32)
        found = only(values, other).relation
        assert found.low < 4e-4
        held += found.low <= np.linalg.norm(other - values) / np.linalg.norm(values) <= found.high
    assert held >= 0.92 * 300


def test_a_shard_proves_nothing():
    part = side(a=A)._replace(part="0/2 of " + "0" * 16)
    for one, other in ((part, side(a=A)), (side(a=A), part), (part, part)):
        found = match(one, other)
        assert (found.outcome, found.tensors) == (Outcome.INCONCLUSIVE, ())
        assert "migparity merge" in tell(found.notes[0], "en")


def test_a_saturated_lane_measures_nothing():
    a = Stats(1.0, 0.0, 0.0, 1.0, 0, 0, 0, (0, 0), (32767, *[0] * 15))
    b = a._replace(lanes=(1, *[0] * 15))
    assert relation(a, b) is None
    assert relation(b, a) is None


# ---- values and names


def test_the_same_values_in_a_wider_dtype_are_value_equal():
    values = back(bits_of(LAWS["student"]))
    for other in (values, values.astype(np.float64)):
        assert only(BF16(values), other).fault == Fault.VALUE_EQUAL
        assert only(other, BF16(values)).fault == Fault.VALUE_EQUAL
    assert only(np.int32([1, 2]), np.int64([1, 2])).fault == Fault.VALUE_EQUAL
    assert match(side(t=BF16(values)), side(t=values)).outcome is Outcome.PASS


def test_a_low_bit_beside_an_upcast_is_not_value_equal():
    """The sketch resolves 1e-4; only a hash of the values can prove them equal."""
    values = back(bits_of(LAWS["student"]))
    flipped = edited(values, 777, np.nextafter(values.reshape(-1)[777], np.float32(9)))
    assert only(BF16(values), flipped).fault == Fault.BELOW_FLOOR


def faults(baseline, candidate, level=1):
    found = match(side(level, **baseline), side(level, **candidate))
    assert found.outcome is (Outcome.PASS if set(found.counts) <= {"equal", "value-equal"} else Outcome.FAIL)
    return {item.name: (item.fault, item.other) for item in found.tensors if item.fault is not Fault.EQUAL}


A, B, C, D = (noise(8, 8).astype(np.float32) for _ in range(4))
ONES = np.ones(8, np.float32)


@pytest.mark.parametrize("baseline, candidate, wanted", [
    ({"a": A, "b": B}, {"a": A, "b": B}, {}),
    ({"a": A, "b": B}, {"a": A}, {"b": (Fault.MISSING, "")}),
    ({"a": A}, {"a": A, "b": B}, {"b": (Fault.EXTRA, "")}),
    ({"a": A, "b": B}, {"a": A, "c": B}, {"b": (Fault.RENAMED, "c")}),
    ({"a": A, "b": B}, {"a": B, "b": A}, {"a": (Fault.SWAPPED, "b"), "b": (Fault.SWAPPED, "a")}),
    ({"a": A, "b": B}, {"a": A, "b": A}, {"b": (Fault.COPIED, "a")}),
    ({"a": A, "b": B, "c": C}, {"a": B, "b": C, "c": A}, {"a": (Fault.COPIED, "b"), "b": (Fault.COPIED, "c"), "c": (Fault.COPIED, "a")}),
    ({"embed": A, "head": A}, {"embed": A}, {"head": (Fault.TIED, "embed")}),
    ({"embed": A}, {"embed": A, "head": A}, {"head": (Fault.TIED, "embed")}),
    ({"embed": A, "head": A}, {"embed": B}, {"head": (Fault.MISSING, ""), "embed": (Fault.DIFFERENT, "")}),
    ({"a": ONES, "b": ONES}, {"a": ONES}, {"b": (Fault.MISSING, "")}),
    ({"a": A, "b": ONES, "c": C[0]}, {"a": A, "b": ONES, "c": ONES}, {"c": (Fault.DIFFERENT, "")}),
    ({"x_a": A, "x_b": A}, {"y_a": A, "y_b": A}, {"x.a": (Fault.RENAMED, "y.a"), "x.b": (Fault.RENAMED, "y.b")}),
    ({"x_a": A, "x_b": B}, {"y_a": BF16(back(bits_of(A))), "y_b": B}, {"x.a": (Fault.MISSING, ""), "y.a": (Fault.EXTRA, ""), "x.b": (Fault.RENAMED, "y.b")}),
    ({"a": BF16(A)}, {"b": back(bits_of(A))}, {"a": (Fault.RENAMED, "b")}),
    ({"a": A}, {"a": A.T[:, :].copy().T.reshape(4, 16)}, {"a": (Fault.RESHAPED, "")}),
    ({"a": ONES}, {"a": -ONES}, {"a": (Fault.NEGATED, "")}),
    ({"a": np.float32(1.0).reshape(())}, {"a": np.float32(3.0).reshape(())}, {"a": (Fault.SCALED, "")}),
    ({"a": np.int64([1, 2, 3])}, {"a": np.int64([3, 1, 2])}, {"a": (Fault.PERMUTED, "")}),
    ({"a": np.int64([1, 5, 6])}, {"a": np.int64([2, 3, 7])}, {"a": (Fault.DIFFERENT, "")}),  # the same sum and sum of squares
    ({"a": np.zeros((0, 3), np.float32)}, {"a": np.zeros((0, 4), np.float32)}, {"a": (Fault.RESHAPED, "")}),
])
def test_names_and_contents_tell_what_became_of_a_tensor(baseline, candidate, wanted):
    assert faults(baseline, candidate) == wanted


def test_level_0_tells_names_and_contents_and_no_more():
    assert faults({"a": A, "b": B}, {"a": A, "c": B}, level=0) == {"b": (Fault.RENAMED, "c")}
    assert faults({"a": A}, {"a": A * 2}, level=0) == {"a": (Fault.UNMEASURED, "")}
    mixed = match(side(0, a=A, b=B), side(1, a=A, b=2 * B))
    assert [item.fault for item in mixed.tensors] == [Fault.EQUAL, Fault.UNMEASURED]


def test_digests_of_two_hashes_are_not_compared(monkeypatch):
    two = match(side(a=A), side(a=A)._replace(algorithm="xxh3_128"))
    assert (two.outcome, two.tensors) == (Outcome.INCONCLUSIVE, ())
    assert "--hash sha256" in tell(two.notes[0], "en")


def test_a_side_without_tensors_proves_nothing():
    for one, other in ((side(), side()), (side(a=A), side()), (side(), side(a=A))):
        assert match(one, other).outcome is Outcome.INCONCLUSIVE


def test_every_fault_has_its_sentence():
    assert [fault for fault in Fault if f"digest-{fault}" not in catalogue() and fault is not Fault.EQUAL] == []
