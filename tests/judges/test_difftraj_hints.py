"""How a difference grows, and what the judge suggests from it."""

import numpy as np
import pytest

from pytest_migparity.core.evidence import Evidence, Policy, Recorded, Trajectory
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floor, Floors, default_limits
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.judges.difftraj import judge_loss
from pytest_migparity.judges.loss_growth import change_point, chaotic, growth_of
from pytest_migparity.judges.traj_align import align, series_of

N = 100
STEPS = np.arange(1, N + 1)
LOSS = 2.0 * np.exp(-STEPS / 40) + 0.5 + 0.05 * np.sin(2.3 * STEPS)


def table(loss, joints=(), **columns):
    return Trajectory(STEPS, {"loss": loss, **columns}, {"loss": np.zeros(N)}, joints=joints)


def pair(d):
    return align(*(series_of(table(loss)) for loss in (LOSS, LOSS * np.exp(d))))


def judge(ours, theirs, floors=None):
    sides = [Evidence(side, "loss", (Recorded(each, Witness(side, "real", side, side)),))
             for side, each in (("baseline", ours), ("candidate", theirs))]
    return judge_loss(*sides, limits=default_limits(LEVELS["L5"]), floors=floors or Floors(),
                      policy=Policy(steps=N, family="dense"))


def hints(finding):
    return [item.code for item in finding.hints]


# --- the shape


def test_the_change_point_is_where_the_level_changes():
    assert change_point(np.array([1e-6] * 30 + [1e-3] * 70)) == 30
    assert change_point(np.array([1e-6] * 99 + [1e-3])) == 99


@pytest.mark.parametrize(("d", "shape", "doubling"), [
    (np.full(N, 1e-3), "constant", 0.0), (1e-5 * STEPS, "linear", 0.0), (1e-6 * 2.0 ** (STEPS / 10), "exponential", 10.0),
])
def test_the_shape_is_the_curve_that_made_it(d, shape, doubling):
    found = growth_of(pair(d), 1)
    assert (found.shape, found.step) == (shape, 1)
    assert found.doubling == pytest.approx(doubling, rel=1e-6)


def test_seven_points_have_no_shape():
    assert growth_of(pair(1e-5 * STEPS), 94) is None
    assert growth_of(pair(1e-5 * STEPS), 93) is not None


# --- growth from a rounding error


def doubling(start, decades):
    return start * 10.0 ** (decades * (STEPS - 1) / (N - 1))


def test_growth_from_rounding_alone_is_no_verdict_without_a_rerun():
    """1e-6 to 1.6e-3, a factor of two every 99 lg 2 / 3.2 = 9.31 steps: correct runs of an unstable system do that."""
    d = doubling(1e-6, 3.2)
    assert chaotic(pair(d)).doubling == pytest.approx(99 * np.log10(2) / 3.2, rel=1e-6)
    finding = judge(table(LOSS), table(LOSS * np.exp(d)))
    assert finding.outcome is Outcome.INCONCLUSIVE
    said = next(item for item in finding.notes if item.code == "loss-chaos")
    assert said.params["doubling"] == pytest.approx(9.31, abs=0.01)


def test_with_a_rerun_growth_is_held_against_it():
    d = doubling(1e-6, 3.2)
    floors = Floors({"late": Floor(1e-6, "reruns", 2, 1), "noise": Floor(1e-3, "reruns", 2, 1)})
    assert judge(table(LOSS), table(LOSS * np.exp(d)), floors).outcome is Outcome.FAIL


@pytest.mark.parametrize("d", [doubling(5e-6, 3.2), doubling(1e-6, 2.8), np.where(STEPS == 1, 0, doubling(1e-6, 3.2)),
                               np.maximum(1e-6, 1e-3 * (STEPS > 30)), np.full(N, 1e-3)],
                         ids=["starts-too-large", "under-three-decades", "equal-at-first", "a-jump", "constant"])
def test_what_else_grows_is_no_rounding_error(d):
    assert chaotic(pair(d)) is None
    assert judge(table(LOSS), table(LOSS * np.exp(d))).outcome is Outcome.FAIL


def test_growth_that_leaves_a_single_limit_behind_fails_whatever_it_grew_from():
    """To 1e-2 at the end: a tail of 8 to 9e-3, over 5e-3."""
    d = doubling(1e-6, 4.0)
    assert chaotic(pair(d)) is not None
    assert judge(table(LOSS), table(LOSS * np.exp(d))).outcome is Outcome.FAIL


# --- causes


NOISE = np.random.default_rng(5).normal(0, 0.02, 2 * N)


@pytest.mark.parametrize("shift", [3, -3, 1, 16])
def test_the_same_data_some_steps_late_is_told_from_other_data(shift):
    trend = 2.0 * np.exp(-STEPS / 400)
    ours, theirs = (table(trend + NOISE[50 + by:50 + by + N]) for by in (0, -shift))
    finding = judge(ours, theirs)
    assert finding.outcome is Outcome.FAIL
    told = next(item for item in finding.hints if item.code == "hint-shift")
    assert told.params["shift"] == shift
    other = judge(ours, table(trend + NOISE[::-1][:N]))
    assert "hint-data-order" in hints(other)
    assert "hint-shift" not in hints(other)


@pytest.mark.parametrize("side", [0, 1])
def test_a_divergence_at_a_resume_names_it(side):
    d = np.where(STEPS >= 50, 1e-2, 0.0) + 1e-7 * np.sin(STEPS)
    joints = [(), ()]
    joints[side] = (49,)
    finding = judge(table(LOSS, joints[0]), table(LOSS * np.exp(d), joints[1]))
    assert finding.first_divergence.at == 50
    assert (finding.hints[0].code, finding.hints[0].params["step"]) == ("hint-resume", 49)
    earlier = judge(table(LOSS, (40,)), table(LOSS * np.exp(d)))
    assert "hint-resume" not in hints(earlier)


def test_a_divergence_at_the_end_of_the_warm_up_names_it():
    rate = 1e-4 * np.minimum(1.0, STEPS / 10)
    d = np.where(STEPS >= 11, 1e-2, 0.0) + 1e-7 * np.sin(STEPS)
    finding = judge(table(LOSS, lr=rate), table(LOSS * np.exp(d), lr=rate))
    assert finding.first_divergence.at == 11
    assert (finding.hints[0].code, finding.hints[0].params["step"]) == ("hint-lr-change", 10)


@pytest.mark.parametrize(("step0", "expected"), [(2.5e-3, True), (5e-4, False), (3e-2, False)])
def test_another_random_stream_has_a_size_of_its_own(step0, expected):
    """The same model under other noise starts 1e-3 to 2e-2 apart; weights or forward may start anywhere."""
    found = hints(judge(table(LOSS), table(LOSS * np.exp(step0))))
    assert "hint-forward" in found
    assert ("hint-other-stream" in found) == expected


def test_a_pass_has_no_hints():
    assert hints(judge(table(LOSS), table(LOSS * np.exp(1e-7 * np.sin(STEPS))))) == []
