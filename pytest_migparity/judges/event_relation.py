"""Two recorded tensors of one name: equal, broken, or how far apart, as finely as both recordings resolve it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pytest_migparity.wire.digest import Stats, TensorDigest
from pytest_migparity.wire.record import FINE_LANES, Event

from .digest_relation import relation, sketched

_FINE_FLOOR = 5e-8  # of the norm: what float32 trees round off the float32 lanes of one side (facts/tensors.md)
_FINE_UNIT = _FINE_FLOOR * math.sqrt(12 / FINE_LANES)
_SUM_ROUNDING = 2.0**-21  # of the norm: norms and sums are added up in float32, 16 elements at a time

EPSILON = {"float64": 2.0**-50, "float32": 2.0**-21, "tf32": 2.0**-10, "hf32": 2.0**-10, "float16": 2.0**-10,
           "bfloat16": 2.0**-7, "float8_e4m3": 2.0**-3, "float8_e5m2": 2.0**-2}
"""What rounding is to each precision: machine epsilon as torch.finfo gives it (the distance from 1 to the next number),
for 32 and 64 bits four times that. A short format rounds what it stores, whatever the sum's length; in a long one the
order of a sum decides, and that alone was 1.5 to 5.5 epsilons between three BLAS kernels, for 256 to 8192 terms."""


@dataclass(frozen=True, slots=True)
class Apart:
    """A candidate tensor against its baseline.

    `relative` is the L2 distance over the baseline's norm, with 95 % between `low` and `high`; below `floor` nothing is
    resolved. `scale` brings the baseline nearest to the candidate; `orthogonal`: the cosine may be 0. `fault` is empty
    for numbers that can be held against a limit, `vacuous` where agreement proves nothing (all zero or empty on both
    sides), else what is wrong outright: `shape`, `non-finite`, `zeroed`, `permuted` (the same elements in another
    order), `unmeasured`. `broken`: both sides hold the same number of NaN and Inf.
    """

    relative: float = 0.0
    low: float = 0.0
    high: float = 0.0
    floor: float = 0.0
    cosine: float = 1.0
    norm_ratio: float = 1.0
    scale: float = 1.0
    orthogonal: bool = False
    fault: str = ""
    equal: bool = False
    broken: bool = False


def apart(a: Event, b: Event) -> Apart:
    """How far the candidate's tensor `b` is from the baseline's `a`."""
    one, other = a.tensor, b.tensor
    sides = (one.stats, other.stats)
    broken = any(stats is not None and stats.nans + stats.infs > 0 for stats in sides)
    if a.valid != b.valid:
        return Apart(math.inf, math.inf, math.inf, fault="shape", broken=broken)
    if same_content(one, other):
        empty = one.size == 0 or (one.stats is not None and one.stats.zeros == one.size)
        return Apart(fault="vacuous" if empty else "", equal=True, broken=broken)
    if one.shape != other.shape:
        return Apart(math.inf, math.inf, math.inf, fault="shape")
    if one.stats is None or other.stats is None:
        return Apart(math.inf, 0.0, math.inf, math.inf, fault="unmeasured")
    if (one.stats.nans, one.stats.infs) != (other.stats.nans, other.stats.infs):
        return Apart(math.inf, math.inf, math.inf, fault="non-finite")
    if bool(one.stats.l2) != bool(other.stats.l2):
        return Apart(math.inf, math.inf, math.inf, fault="zeroed", broken=broken)
    if not one.stats.l2:
        return Apart(fault="vacuous", broken=broken)
    return _measured(a, b, broken)


def same_content(one: TensorDigest, other: TensorDigest) -> bool:
    """The same elements to the bit, or the same values in two dtypes."""
    if one.shape != other.shape:
        return False
    if (one.dtype, one.hash) == (other.dtype, other.hash):
        return True
    contents = [(item.narrow or item.dtype, item.values or item.hash) for item in (one, other)]
    return contents[0] == contents[1]


def _measured(a: Event, b: Event, broken: bool) -> Apart:
    one, other = a.tensor.stats, b.tensor.stats
    assert one is not None
    assert other is not None
    ratio = other.l2 / one.l2
    if a.fine and b.fine:
        units = (_FINE_UNIT * one.l2, _FINE_UNIT * other.l2)
        found = sketched(np.asarray(a.fine), np.asarray(b.fine), (one.l2, other.l2), units)
    else:
        found = relation(one, other)
    if found is None:
        return Apart(math.inf, 0.0, math.inf, math.inf, norm_ratio=ratio, fault="unmeasured", broken=broken)
    least = _at_least(one, other, a.tensor.size) / one.l2
    bound = (1 / ratio + ratio - least**2 / ratio) / 2
    far = Apart(max(found.relative, least), max(found.low, least), max(found.high, least), found.floor,
                min(found.cosine, max(bound, -1.0)), ratio, found.scale, found.orthogonal, broken=broken)
    return replace(far, fault="permuted") if _permuted(a.tensor, b.tensor, far) else far


def _at_least(one: Stats, other: Stats, size: int) -> float:
    """What the L2 distance is at the least, by norms, sums (Cauchy and Schwarz) and extremes, less their rounding.

    In a tensor of a few elements two that share a lane may cancel out in the sketch; in these they do not.
    """
    sums = _gap(one.total, other.total, 16) / math.sqrt(size)
    gaps = (abs(one.l2 - other.l2), sums, _gap(one.low, other.low, 12), _gap(one.high, other.high, 12))
    return max(max(gaps) - _SUM_ROUNDING * max(one.l2, other.l2), 0.0)


def _gap(value: float, other: float, bits: int) -> float:
    """How far two numbers that travel with so many bits are apart at the least."""
    return abs(value - other) - (abs(value) + abs(other)) * 2.0**-bits


def _permuted(one: TensorDigest, other: TensorDigest, far: Apart) -> bool:
    """Are these the same elements in another order?

    A short format has few values, and among many elements two may by rounding take each other's: there the distance
    must be more than rounding as well.
    """
    a, b = one.stats, other.stats
    if a is None or b is None or not math.isclose(a.l2, b.l2, rel_tol=1e-6) \
            or (a.multiset, a.low, a.high, a.zeros) != (b.multiset, b.low, b.high, b.zeros):
        return False
    resolved = one.dtype in ("float32", "float64") and not one.narrow
    return resolved or one.size <= FINE_LANES or far.relative > EPSILON["bfloat16"]


def epsilon(declared: tuple[str, ...], a: Event) -> float:
    """The rounding that a difference is held against: of the coarsest declared precision, else the baseline's.

    A recording that was made in a precision nobody declared is held against the baseline's own numbers.
    """
    chosen = [EPSILON[name] for name in declared if name in EPSILON]
    return max(chosen) if chosen else EPSILON.get(a.tensor.dtype, EPSILON["float32"])
