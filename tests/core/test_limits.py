"""What limit is in force, and when the evidence is too coarse to hold it."""

import math

import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.core.levels import LEVELS, CheckSpec, Direction
from pytest_migparity.core.limits import Declared, Floor, Floors, Limit, declare, limit_for
from pytest_migparity.core.verdict import Check, State

L5 = LEVELS["L5"]
MEAN = CheckSpec("mean", 1e-3, cap=1e-2)
FIRST = CheckSpec("step0", 1e-3, cap=1e-3, measured=5e-5)


def of(floor=None, resolution=0.0, value=1e-3):
    floors = Floors({} if floor is None else {"mean": Floor(floor, "reruns")})
    return limit_for(MEAN, {"mean": Declared(value, "marker")}, floors, resolution)


@pytest.mark.parametrize(("floor", "effective"), [(None, 1e-3), (0.0, 1e-3), (1e-4, 1e-3), (5e-4, 1.5e-3), (1.0, 1e-2)])
def test_effective_limit_is_three_floors_never_below_declared_never_beyond_the_cap(floor, effective):
    assert of(floor).effective == pytest.approx(effective)


def test_a_zero_floor_leaves_the_declared_limit():
    assert of(0.0).effective == of(None).effective == 1e-3


@pytest.mark.parametrize(("resolution", "effective", "lifted", "blind"), [
    (5e-4, 1e-3, False, False),
    (4e-3, 4e-3, True, False),
    (9.9e-3, 9.9e-3, True, False),
    (1.1e-2, 1e-2, True, True),  # more than tenfold
    (math.nan, 1e-3, False, True),
])
def test_coarse_digits_lift_the_limit_and_beyond_tenfold_blind_it(resolution, effective, lifted, blind):
    limit = of(resolution=resolution)
    assert limit.effective == pytest.approx(effective)
    assert (limit.lifted, limit.blind) == (lifted, blind)


def test_a_minimum_is_lifted_towards_zero_not_above_one():
    spec = CheckSpec("order", 0.9, cap=0.5, direction=Direction.MIN)
    limit = limit_for(spec, {"order": Declared(0.9, "marker")}, Floors(), resolution=0.3)
    assert limit.effective == pytest.approx(0.7)
    assert limit.holds(0.71)
    assert not limit.holds(0.69)
    assert limit_for(spec, {"order": Declared(0.9, "marker")}, Floors(), resolution=0.6).blind


@pytest.mark.parametrize(("declared", "floor", "pairs", "effective"), [
    (1e-3, None, 0, 1e-3), (1e-3, 1e-6, 1, 1e-3),  # one pair is no measurement
    (1e-3, 1e-6, 2, 5e-5), (1e-3, 0.0, 2, 5e-5), (1e-3, 2e-5, 2, 2e-4),  # ten floors where that is more
    (1e-3, 5e-4, 9, 1e-3), (1e-5, 1e-6, 2, 1e-5), (1e-5, 2e-5, 2, 6e-5),  # never above what was declared or three floors
])
def test_two_floors_or_more_replace_a_published_limit(declared, floor, pairs, effective):
    floors = Floors({} if floor is None else {"step0": Floor(floor, "reruns", pairs + 1, pairs)})
    limit = limit_for(FIRST, {"step0": Declared(declared, "marker")}, floors)
    assert limit.effective == pytest.approx(effective)


def test_a_reason_outweighs_measured_floors():
    floors = Floors({"step0": Floor(1e-6, "reruns", 3, 3)})
    limit = limit_for(FIRST, {"step0": Declared(5e-4, "manifest", "fused attention")}, floors)
    assert limit.effective == 5e-4


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_never_holds(value):
    assert not of().holds(value)
    assert Check("mean", value, of()).state is State.VIOLATED


def test_a_violation_beyond_coarse_digits_is_still_a_violation():
    assert Check("mean", 0.5, of(resolution=0.02)).state is State.VIOLATED


@pytest.mark.parametrize(("value", "would_pass"), [(3.14e-2, 3.2e-2), (1e-3, 1e-3), (0.0, 0.0), (9.99e-4, 1e-3)])
def test_would_pass_is_the_next_two_digit_limit_above(value, would_pass):
    assert Check("mean", value, of()).would_pass == pytest.approx(would_pass, rel=1e-12)


def test_manifest_limits_replace_the_markers_and_say_so():
    limits = declare(L5, {"mean": 2e-3}, {"mean": Declared(1e-3, "manifest")}, "t.py::test")
    assert limits["mean"] == Declared(1e-3, "manifest", None, None)
    assert limits["step0"] == Declared(1e-3, "default")


def test_a_looser_limit_needs_a_reason_and_keeps_what_it_loosens():
    with pytest.raises(UserError, match=r"\[limits.L5\] mean = 0.02 is looser than 0.01 .*because"):
        declare(L5, {}, {"mean": Declared(2e-2, "manifest")}, "t.py::test")
    limits = declare(L5, {}, {"mean": Declared(2e-2, "manifest", "MoE floor")}, "t.py::test")
    assert limits["mean"].loosens == 1e-2
    with pytest.raises(UserError, match="looser"):
        declare(L5, {}, {"order": Declared(0.8, "manifest")}, "t.py::test")


@pytest.mark.parametrize(("marker", "message"), [
    ({"meen": 1e-3}, "has no limit 'meen'; did you mean 'mean'"),
    ({"mean": "1e-3"}, "finite number"),
    ({"mean": True}, "finite number"),
    ({"mean": math.inf}, "finite number"),
])
def test_marker_limits_are_checked_by_name_and_type(marker, message):
    with pytest.raises(UserError, match=message):
        declare(L5, marker, {}, "t.py::test")


def test_no_declaration_lifts_a_limit_beyond_its_cap():
    assert Limit(declared=0.5, direction=Direction.MAX, source="marker", cap=1e-2).effective == 1e-2
    assert Limit(declared=0.1, direction=Direction.MIN, source="marker", cap=0.5).effective == 0.5


@pytest.mark.parametrize("marker, message", [({"mean": 0.5}, "beyond 0.03"), ({"step0": 2e-3}, "beyond 0.001"), ({"order": 0.1}, "beyond 0.5"),
                                             ({"mean": -1e-3}, "0 or more"), ({"order": 1.1}, "0 to 1")])
def test_a_marker_that_nothing_or_everything_passes_is_refused(marker, message):
    with pytest.raises(UserError, match=message):
        declare(L5, marker, {}, "t.py::test")


def test_a_marker_looser_than_the_published_limit_is_kept_as_loosened():
    assert declare(L5, {"mean": 2e-2}, {}, "t.py::test")["mean"].loosens == 1e-2
    assert declare(L5, {"mean": 1e-4}, {}, "t.py::test")["mean"].loosens is None


@pytest.mark.parametrize(("resolution", "more"), [(0.9e-2, 0), (1.1e-2, 1), (0.9e-1, 1), (1.1e-1, 2), (5.0, 3)])
def test_a_blind_check_says_how_many_more_digits_would_do(resolution, more):
    """A limit of 1e-3 is blind beyond ten times that, below its cap of 5e-2: each digit more is a tenth."""
    limit = Limit(1e-3, Direction.MAX, "default", cap=5e-2, resolution=resolution)
    assert limit.more_digits == more
    assert limit.blind == (more > 0)
