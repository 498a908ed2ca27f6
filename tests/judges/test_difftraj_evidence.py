"""Logs that agree and are not what they should be: rows pasted in, other quantities, another recipe, other gradients."""

import numpy as np
import pytest

from pytest_migparity.core.evidence import Evidence, Policy, Recorded, Trajectory
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.judges.difftraj import judge_loss

N = 100
STEPS = np.arange(1, N + 1)
LOSS = 2.0 * np.exp(-STEPS / 40) + 0.5 + 0.05 * np.sin(2.3 * STEPS)
OTHER = LOSS * (1 + 1e-7 * np.where(STEPS % 2, 1.0, -1.0))  # another device's


def table(loss, quantum=0.0, window=1, **columns):
    columns = {"loss": loss, **{name: np.broadcast_to(np.asarray(column, dtype=float), N)
                                for name, column in columns.items()}}
    return Trajectory(STEPS, columns, {"loss": np.full(N, quantum)}, window=window)


def judge(ours, theirs, producer="real", **policy):
    sides = [Evidence(side, "loss", (Recorded(each, Witness(side, producer, side, side)),))
             for side, each in (("baseline", ours), ("candidate", theirs))]
    return judge_loss(*sides, limits=default_limits(LEVELS["L5"]), floors=Floors(),
                      policy=Policy(steps=N, family="dense", **policy))


def said(finding, code):
    return [dict(item.params) for item in finding.notes if item.code == code]


def test_the_pair_that_every_test_here_spoils_passes():
    assert judge(table(LOSS), table(OTHER)).outcome is Outcome.PASS


# --- rows of one log in the other


@pytest.mark.parametrize(("first", "last"), [(41, 52), (1, 10), (91, 100), (1, 45)])
def test_a_stretch_of_the_other_sides_rows_proves_nothing(first, last):
    glued = np.where((first <= STEPS) & (last >= STEPS), LOSS, OTHER)
    for pair in ((table(LOSS), table(glued)), (table(glued), table(LOSS))):
        finding = judge(*pair)
        assert finding.outcome is Outcome.INCONCLUSIVE
        assert said(finding, "loss-glued") == [{"count": last - first + 1, "steps": f"{first}-{last}"}]


def test_nine_equal_rows_are_still_two_devices():
    finding = judge(table(LOSS), table(np.where((STEPS > 40) & (STEPS < 50), LOSS, OTHER)))
    assert finding.outcome is Outcome.PASS


@pytest.mark.parametrize("case", ["another step time", "few digits", "a rehearsal"])
def test_equal_rows_that_two_runs_may_write_are_no_paste(case):
    glued = np.where(STEPS > 70, LOSS, OTHER)
    ours, theirs = table(LOSS), table(glued)
    if case == "another step time":
        ours, theirs = table(LOSS, step_time=1.0), table(glued, step_time=2.0)
    if case == "few digits":
        ours, theirs = table(LOSS.round(6), 1e-6), table(glued.round(6), 1e-6)
    finding = judge(ours, theirs, "rehearsal" if case == "a rehearsal" else "real")
    assert finding.outcome is Outcome.PASS
    assert said(finding, "loss-glued") == []


# --- other quantities


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_means_over_unlike_numbers_of_steps_neither_pass_nor_fail(factor):
    finding = judge(table(LOSS), table(OTHER * factor, window=10))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert said(finding, "loss-windows") == [{"baseline": 1, "candidate": 10}]


def test_other_gradients_at_the_first_step_do_not_pass_whatever_the_losses_say():
    finding = judge(table(LOSS, num_zeros=1000), table(OTHER, num_zeros=1500))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert said(finding, "loss-zeros-moved") == [{"share": pytest.approx(500 / 1001), "baseline": 1000.0, "candidate": 1500.0}]
    assert judge(table(LOSS, num_zeros=1000), table(OTHER, num_zeros=1399)).outcome is Outcome.PASS


@pytest.mark.parametrize("counts", [(0, 100_000), (100_000, 0)])
def test_zeros_where_the_other_side_has_none_do_not_pass(counts):
    finding = judge(*(table(loss, num_zeros=count) for loss, count in zip((LOSS, OTHER), counts, strict=True)))
    assert finding.outcome is not Outcome.PASS


# --- another recipe


def samples(per_step):
    return np.cumsum(np.broadcast_to(per_step, N))


def test_samples_per_step_are_the_recipes_and_the_same_on_both_sides():
    good = judge(table(LOSS, samples=samples(8)), table(OTHER, samples=samples(8)), recipe={"global_batch_size": 8.0})
    assert good.outcome is Outcome.PASS
    other = judge(table(LOSS, samples=samples(8)), table(OTHER, samples=samples(16)))
    assert other.outcome is Outcome.INCONCLUSIVE
    assert said(other, "loss-batches-differ") == [{"baseline": 8.0, "candidate": 16.0}]
    neither = judge(table(LOSS, samples=samples(8)), table(OTHER, samples=samples(8)), recipe={"global_batch_size": 16.0})
    assert neither.outcome is Outcome.INCONCLUSIVE
    assert said(neither, "loss-recipe-batch") == [{"side": side, "found": 8.0, "expected": 16.0}
                                                  for side in ("baseline", "candidate")]


@pytest.mark.parametrize("column", ["samples", "tokens"])
def test_a_counter_that_jumps_is_another_runs(column):
    jumping = samples(np.where(STEPS == 60, 9, 8))
    finding = judge(table(LOSS, **{column: samples(8)}), table(OTHER, **{column: jumping}))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert said(finding, "loss-counter-jumps") == [{"side": "candidate", "column": column, "step": 60}]


@pytest.mark.parametrize("name", ["lr", "learning_rate"])
def test_a_learning_rate_above_the_recipes_is_another_recipes(name):
    """Both sides warm up to 2e-4 over 50 steps, where the recipe's peak is 1e-4: above it from step 26 on."""
    rate = 2e-4 * np.minimum(1.0, STEPS / 50)
    finding = judge(table(LOSS, lr=rate), table(OTHER, lr=rate), recipe={name: 1e-4})
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert [(each["side"], each["step"]) for each in said(finding, "loss-recipe-lr")] == [("baseline", 26),
                                                                                         ("candidate", 26)]
    assert judge(table(LOSS, lr=rate), table(OTHER, lr=rate), recipe={name: 2e-4}).outcome is Outcome.PASS


def test_a_worse_log_of_another_recipe_still_fails():
    finding = judge(table(LOSS, samples=samples(8)), table(OTHER * 1.1, samples=samples(16)))
    assert finding.outcome is Outcome.FAIL
