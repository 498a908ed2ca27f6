"""Which steps the departure weighs and which it does not: long runs, other intervals, runs from one checkpoint."""

import numpy as np
import pytest

from pytest_migparity.core.evidence import Evidence, Policy, Recorded, Trajectory
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, State, Witness
from pytest_migparity.judges.difftraj import judge_loss
from pytest_migparity.judges.loss_departure import SHIPPED, Reference, Scale

LENIENT = Scale({"dense": Reference(1.0, 1.0)}, 2.0, 2.5)  # nothing departs: what fails, fails by its own check
STRICT = Scale({"dense": Reference(5e-6, 1e-4)}, 2.0, 2.5)
LONG = np.arange(1, 301)
LONG_LOSS = 2.0 * np.exp(-LONG / 40) + 0.5 + 0.05 * np.sin(2.3 * LONG)


def table(loss, step=None, interval=1):
    loss = np.asarray(loss, dtype=float)
    step = np.arange(1, loss.size + 1) if step is None else np.asarray(step)
    return Trajectory(step, {"loss": loss}, {"loss": np.zeros(loss.shape)}, interval)


def judge(ours, theirs, scale=SHIPPED, **policy):
    sides = [Evidence(side, "loss", (Recorded(each, Witness(side, "real", side, side)),))
             for side, each in (("baseline", ours), ("candidate", theirs))]
    return judge_loss(*sides, limits=default_limits(LEVELS["L5"]), floors=Floors(), scale=scale,
                      policy=Policy(family="dense", **policy))


def codes(finding):
    return [item.code for item in finding.notes]


def violated(finding):
    return {each.name for each in finding.checks if each.state is State.VIOLATED}


# --- over the long run


@pytest.mark.parametrize(("size", "outcome"), [(2e-2, Outcome.INCONCLUSIVE), (0.09, Outcome.INCONCLUSIVE),
                                               (0.11, Outcome.FAIL)])
def test_what_parts_after_the_weighed_steps_is_no_verdict_up_to_twenty_limits(size, outcome):
    """Equal to step 101, then `size` apart: the tail is `size`, 4, 18 and 22 times its limit of 5e-3."""
    finding = judge(table(LONG_LOSS), table(LONG_LOSS * np.exp(np.where(LONG > 101, size, 0.0))))
    assert finding.outcome is outcome
    assert ("loss-late" in codes(finding))
    assert next(each for each in finding.checks if each.name == "mean").blocked == "loss-check-late"
    assert ("tail" in violated(finding)) == (outcome is Outcome.FAIL)
    assert finding.first_divergence.at == 102


def test_what_parts_within_the_weighed_steps_is_never_put_off():
    finding = judge(table(LONG_LOSS), table(LONG_LOSS * np.exp(np.where(LONG > 60, 2e-2, 0.0))), LENIENT)
    assert finding.outcome is Outcome.FAIL
    assert violated(finding) >= {"tail"}


def test_a_departure_beyond_its_limit_lets_nothing_be_put_off():
    """3e-3 from step 50 on, within every single limit of the first steps, then 2e-2."""
    d = np.where(LONG > 101, 2e-2, np.where(LONG > 50, 3e-3, 0.0))
    finding = judge(table(LONG_LOSS), table(LONG_LOSS * np.exp(d)), STRICT)
    assert finding.outcome is Outcome.FAIL
    assert violated(finding) >= {"departure", "tail", "mean"}
    assert "loss-late" not in codes(finding)


def test_another_order_of_the_data_is_never_put_off():
    noise = np.random.default_rng(0).normal(0, 0.02, 300)
    finding = judge(table(LONG_LOSS), table(LONG_LOSS * np.exp(np.where(LONG > 101, noise * 4, 0.0))), LENIENT)
    assert finding.outcome is Outcome.FAIL
    assert "order" in violated(finding)


# --- other intervals


def tenth(factor=1.0, interval=10, window=1):
    """Step 1 and every tenth."""
    rows = np.append(1, np.arange(interval, 301, interval))
    each = table(LONG_LOSS[rows - 1] * factor, rows, interval=interval)
    return Trajectory(each.step, each.columns, each.quantum, interval, window)


def test_other_intervals_pass_where_the_common_steps_agree():
    for pair in ((table(LONG_LOSS), tenth(1 + 1e-7)), (tenth(1 + 1e-7), table(LONG_LOSS)),
                 (tenth(interval=5), tenth(1 + 1e-7))):
        finding = judge(*pair)
        assert finding.outcome is Outcome.PASS
        assert "loss-intervals-agree" in codes(finding)
        assert (finding.coverage.compared, finding.coverage.of) == (31, 31)


@pytest.mark.parametrize("theirs", [tenth(1.5), tenth(1 + 1e-3), tenth(1 + 1e-7, window=10)],
                         ids=["another-loss", "a-little-apart", "a-mean-of-ten"])
def test_other_intervals_neither_pass_nor_fail_where_they_do_not(theirs):
    finding = judge(table(LONG_LOSS), theirs)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-intervals" in codes(finding)


def test_a_log_of_every_tenth_step_begins_with_the_tenth():
    """And not with the twentieth: then where training started was logged once."""
    whole = tenth(1 + 1e-7)
    for skipped, outcome in ((1, Outcome.PASS), (2, Outcome.INCONCLUSIVE)):
        later = Trajectory(whole.step[skipped:], {"loss": whole.loss[skipped:]}, {}, 10)
        finding = judge(table(LONG_LOSS), later)
        assert finding.outcome is outcome
        assert ("loss-head-missing" in codes(finding)) == (skipped == 2)


def test_other_intervals_excuse_no_step_of_the_recipe_and_no_hole():
    assert judge(table(LONG_LOSS), tenth(1 + 1e-7), steps=300).outcome is Outcome.INCONCLUSIVE
    assert judge(table(LONG_LOSS), tenth(1 + 1e-7), steps=300, interval=10).outcome is Outcome.INCONCLUSIVE
    whole = tenth(1 + 1e-7)
    kept = whole.step != 150
    holed = Trajectory(whole.step[kept], {"loss": whole.loss[kept]}, {}, 10)
    assert judge(table(LONG_LOSS), holed).outcome is Outcome.INCONCLUSIVE


# --- runs that go on from one checkpoint


def test_runs_that_go_on_from_a_checkpoint_are_judged_from_there():
    """Both start at step 101; the baseline's own log also holds the hundred steps before, of another run."""
    later = slice(100, 300)
    theirs = table(LONG_LOSS[later] * (1 + 1e-7), LONG[later])
    before = np.where(LONG <= 100, 1.3, 1.0)
    assert judge(table(LONG_LOSS[later], LONG[later]), theirs).outcome is Outcome.INCONCLUSIVE
    for ours in (table(LONG_LOSS[later], LONG[later]), table(LONG_LOSS * before, LONG)):
        finding = judge(ours, theirs, first=101, steps=300)
        assert finding.outcome is Outcome.PASS
        assert (finding.coverage.compared, finding.coverage.of) == (200, 200)


def test_the_first_step_after_the_checkpoint_is_the_first():
    later = slice(100, 300)
    worse = np.where(LONG == 101, 1.0011, 1 + 1e-7)
    finding = judge(table(LONG_LOSS[later], LONG[later]), table((LONG_LOSS * worse)[later], LONG[later]), LENIENT,
                    first=101)
    assert finding.outcome is Outcome.FAIL
    assert violated(finding) == {"step0", "spike"}
    assert finding.first_divergence.at == 101


@pytest.mark.parametrize("start", [102, 150])
def test_a_log_that_starts_after_the_checkpoint_lacks_its_first_step(start):
    rows = slice(start - 1, 300)
    finding = judge(table(LONG_LOSS[rows], LONG[rows]), table(LONG_LOSS[rows] * (1 + 1e-7), LONG[rows]), first=101)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-head-missing" in codes(finding)


# --- after the weighed steps


def long(steps=1000, seed=0):
    rng = np.random.default_rng(seed)
    step = np.arange(1, steps + 1)
    base = (2.0 * np.exp(-step / 300) + 0.5) * np.exp(rng.normal(0, 0.03, steps))
    return step, base, base * np.exp(rng.normal(0, 3e-6, steps))


def test_a_good_long_run_passes_in_every_stretch():
    step, ours, theirs = long()
    assert judge(table(ours, step), table(theirs, step)).outcome is Outcome.PASS


@pytest.mark.parametrize(("rows", "factor", "outcome", "code"), [
    (slice(500, 506), 400.0, Outcome.FAIL, "loss-block-apart"),  # an explosion
    (slice(500, 540), 2.0, Outcome.FAIL, "loss-block-apart"),
    (slice(500, 502), 1.02, Outcome.INCONCLUSIVE, "loss-block-apart"),
], ids=["explosion", "doubled-for-forty-steps", "two-odd-rows"])
def test_bad_steps_in_mid_run_are_found(rows, factor, outcome, code):
    step, ours, theirs = long()
    theirs[rows] *= factor
    finding = judge(table(ours, step), table(theirs, step))
    assert finding.outcome is outcome
    assert code in codes(finding)


def test_another_stream_of_data_in_mid_run_is_found():
    """A twentieth of the run: `order` over all of it is still .93."""
    step, ours, theirs = long(2000)
    theirs[1000:1100] = long(2000, seed=5)[1][1000:1100]
    finding = judge(table(ours, step), table(theirs, step))
    assert finding.outcome is Outcome.FAIL
    assert "loss-block-order" in codes(finding)


def test_state_that_a_resume_lost_is_found():
    step, ours, theirs = long()
    theirs[500:] *= np.exp(3e-4)
    plain = table(theirs, step)
    resumed = Trajectory(plain.step, plain.columns, plain.quantum, joints=(501,))
    finding = judge(table(ours, step), resumed)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert [(item.params["side"], item.params["step"]) for item in finding.notes if item.code == "loss-joint"] == [
        ("candidate", 501)]


@pytest.mark.parametrize(("size", "outcome"), [(2e-3, Outcome.INCONCLUSIVE), (5e-4, Outcome.PASS)])
def test_a_lasting_difference_that_begins_after_the_weighed_steps_is_no_pass_above_a_thousandth(size, outcome):
    step, ours, theirs = long()
    theirs[102:] *= np.exp(size)
    finding = judge(table(ours, step), table(theirs, step))
    assert finding.outcome is outcome
    assert ("loss-late" in codes(finding)) == (outcome is Outcome.INCONCLUSIVE)


def test_a_plateau_has_no_order():
    """One batch fitted: 2e-7 of noise on a loss that does not move any more; facts: other data move d as the loss."""
    step = np.arange(1, 601)
    ours = 0.05 + 2 * np.exp(-step / 20)
    theirs = ours * np.exp(np.random.default_rng(1).normal(0, 1e-6, 600))
    finding = judge(table(ours, step), table(theirs, step))
    assert finding.outcome is Outcome.PASS
    assert next(each for each in finding.checks if each.name == "order").limit is None


@pytest.mark.parametrize("places", [6, 12])
def test_losses_of_bfloat16_settle_nothing_fine(places):
    """A step of the grid is 2^-8 to 2^-7 of the loss: neither a spike nor a copy."""
    rng = np.random.default_rng(2)
    ours = 2.0 * np.exp(-np.arange(1, 201) / 80) + 0.5

    def grid(loss):
        unit = np.exp2(np.floor(np.log2(loss)) - 7)
        rounded = np.round(np.round(loss / unit) * unit, places)
        return Trajectory(np.arange(1, 201), {"loss": rounded}, {"loss": np.full(200, 10.0**-places)})

    finding = judge(grid(ours), grid(ours * np.exp(rng.normal(0, 2e-4, 200))))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert not {"loss-copied", "loss-glued"} & set(codes(finding))
    assert not violated(finding)


def test_logs_of_unequal_length_that_count_from_0_and_from_1_are_offered_the_shift():
    step, ours, theirs = long()
    finding = judge(table(ours[:900], step[:900] - 1), table(theirs, step))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-offset" in codes(finding)
