"""Two digests of one tensor, of different content: which fault it is.

The order of the questions is part of the answer: a fault that leaves exact traces (counts, the multiset of elements) is
asked for before one that is read off the sketch.
"""

from __future__ import annotations

import enum
import math

from pytest_migparity.wire.digest import Stats, TensorDigest

from .digest_relation import Relation

ROUNDED = (0.38, 0.43)  # relative L2 of rounding to nearest, in units of 2^-8 (bfloat16) or 2^-11 (float16)
TRUNCATED = (0.76, 0.86)  # of cutting the bits off; the norm shrinks by .6 to .8 of the unit
_SHRINKS = (-0.9, -0.5)
_STAYS = 0.2
_UNIT = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
_SCALE_FROM = 1e-3  # a factor nearer to 1 than this is not told from noise
_SAME_NORM = 2e-3
_SAME_EXTREME = 4e-3  # one rounding to bfloat16
_SAME_SUM = 0.05  # of the norm


class Fault(enum.StrEnum):
    """What has become of a tensor. EQUAL and VALUE_EQUAL are none."""

    EQUAL = "equal"
    VALUE_EQUAL = "value-equal"
    MISSING = "missing"
    EXTRA = "extra"
    RENAMED = "renamed"
    TIED = "tied"
    SWAPPED = "swapped"
    COPIED = "copied"
    SHAPE = "shape"
    RESHAPED = "reshaped"
    NON_FINITE = "non-finite"
    ZEROED = "zeroed"
    TRANSPOSED = "transposed"
    PERMUTED = "permuted"
    PERMUTED_NOISY = "permuted-noisy"
    NEGATED = "negated"
    SCALED = "scaled"
    ROUNDED = "rounded"
    TRUNCATED = "truncated"
    BELOW_FLOOR = "below-floor"
    DIFFERENT = "different"
    UNMEASURED = "unmeasured"


def fault_of(baseline: TensorDigest, candidate: TensorDigest, measured: Relation | None) -> Fault:
    """The fault between two tensors of one name, neither equal nor value-equal; `measured` relates their sketches."""
    a, b = baseline.stats, candidate.stats
    same_shape = baseline.shape == candidate.shape
    if baseline.size != candidate.size:
        return Fault.SHAPE
    if a is None or b is None:
        return Fault.UNMEASURED if same_shape else Fault.SHAPE
    if (a.nans, a.infs) != (b.nans, b.infs):
        return Fault.NON_FINITE
    if bool(a.l2) != bool(b.l2):
        return Fault.ZEROED
    if baseline.dtype == candidate.dtype and _same_multiset(a, b):
        if not same_shape and a.lanes == b.lanes:
            return Fault.RESHAPED
        return Fault.TRANSPOSED if not same_shape and baseline.shape == candidate.shape[::-1] else Fault.PERMUTED
    if measured is None:
        return Fault.UNMEASURED if same_shape else Fault.SHAPE
    if _permuted_and_noisy(a, b, measured):
        return Fault.PERMUTED_NOISY
    return _numeric(baseline, candidate, measured) if same_shape else Fault.SHAPE


def _same_multiset(a: Stats, b: Stats) -> bool:
    return (a.multiset, a.low, a.high, a.zeros) == (b.multiset, b.low, b.high, b.zeros) and _near(a.l2, b.l2, 1e-6)


def _near(value: float, other: float, share: float) -> bool:
    return abs(value - other) <= share * max(abs(value), abs(other))


def _permuted_and_noisy(a: Stats, b: Stats, measured: Relation) -> bool:
    return (measured.orthogonal and _near(a.l2, b.l2, _SAME_NORM)
            and _near(a.low, b.low, _SAME_EXTREME) and _near(a.high, b.high, _SAME_EXTREME)
            and abs(a.total - b.total) < _SAME_SUM * a.l2)


def _numeric(baseline: TensorDigest, candidate: TensorDigest, measured: Relation) -> Fault:
    off = abs(measured.scale - 1)
    if measured.relative > 3 * measured.floor and off > _SCALE_FROM \
            and measured.residual < 0.02 * off + 2 * measured.residual_floor:
        return Fault.NEGATED if abs(measured.scale + 1) < _SCALE_FROM else Fault.SCALED
    cast = _cast(baseline, candidate, measured)
    if cast is not None:
        return cast
    return Fault.BELOW_FLOOR if measured.relative <= measured.floor else Fault.DIFFERENT


def _cast(baseline: TensorDigest, candidate: TensorDigest, measured: Relation) -> Fault | None:
    """Is the one side, whose values all fit a narrower dtype, like the other brought into it?"""
    held = [side.narrow or side.dtype for side in (baseline, candidate)]
    units = [_UNIT.get(dtype, 0.0) for dtype in held]
    unit = max(units)
    if baseline.stats is None or candidate.stats is None or held[0] == held[1] or measured.floor > ROUNDED[1] * unit:
        return None
    shrinks = candidate.stats.l2 / baseline.stats.l2 - 1 if units[1] == unit else \
        baseline.stats.l2 / candidate.stats.l2 - 1
    if abs(shrinks) <= _STAYS * unit and _meets(measured.low, measured.high, ROUNDED, unit):
        return Fault.ROUNDED
    if measured.relative and _SHRINKS[0] * unit <= shrinks <= _SHRINKS[1] * unit:
        # most of a cut lies along the baseline, where the scale is exact
        exact = math.hypot(measured.scale - 1, measured.residual) / measured.relative
        if _meets(measured.low * exact, measured.high * exact, TRUNCATED, unit):
            return Fault.TRUNCATED
    return None


def _meets(low: float, high: float, span: tuple[float, float], unit: float) -> bool:
    return low <= span[1] * unit and high >= span[0] * unit
