"""Learning rate, skipped steps and gradient norm beside the loss: what fails although the losses agree."""

import math

import numpy as np
import pytest

from pytest_migparity.core.evidence import Evidence, Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, State, Verdict, Witness
from pytest_migparity.judges.difftraj import judge_loss
from pytest_migparity.readers.loss import read_loss

LIMITS = default_limits(LEVELS["L5"])
N = 100
LOSS = [2.0 * np.exp(-t / 40) + 0.5 + 0.05 * np.sin(2.3 * t) for t in range(1, N + 1)]
COSINE = [1e-4 * min(1.0, (t + 1) / 10) * 0.5 * (1 + math.cos(math.pi * t / N)) for t in range(N)]
NORM = [0.2 + 1e-3 * t for t in range(N)]


def side(name, factor, **columns):
    """A CSV with these columns, as printed."""
    head = ",".join(["step", "loss", *columns])
    rows = [",".join([str(t + 1), repr(float(LOSS[t] * factor)), *(str(column[t]) for column in columns.values())])
            for t in range(N)]
    table = read_loss("\n".join([head, *rows, ""]).encode(), name).table
    return Evidence(name, "loss", (Recorded(table, Witness(name, "real", name, name)),))


def judge(ours, theirs, factor=1 + 1e-7):
    finding = judge_loss(side("baseline", 1.0, **ours), side("candidate", factor, **theirs), limits=LIMITS,
                         floors=Floors(), policy=Policy(steps=N))
    assert Verdict.from_json(Verdict("L5", "m", "main", finding).to_json()).outcome is finding.outcome
    return finding


def codes(finding):
    return [item.code for item in finding.notes]


def at(column, value, *steps):
    return [value if t + 1 in steps else each for t, each in enumerate(column)]


# --- non-finite on one side


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("column", ["grad_norm", "lr"])
def test_a_channel_that_one_side_alone_lost_fails_at_its_step(column, value):
    good = {"grad_norm": NORM, "lr": COSINE}[column]
    for pair in ((good, at(good, value, 7, 9)), (at(good, value, 7, 9), good)):
        finding = judge(*({column: each} for each in pair))
        assert finding.outcome is Outcome.FAIL
        assert finding.first_divergence.at == 7
        note = next(item for item in finding.notes if item.code == "loss-channel-non-finite")
        assert (note.params["count"], note.params["step"]) == (2, 7)


def test_all_norms_nan_on_one_side_fails_from_the_first_step():
    finding = judge({"grad_norm": NORM}, {"grad_norm": ["nan"] * N})
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence.at == 1
    assert finding.hints[0].code == "hint-non-finite"


def test_both_sides_overflow_alike():
    """Dynamic loss scaling starts with overflows: both sides print inf and skip."""
    assert judge({"grad_norm": at(NORM, "inf", 1, 2)}, {"grad_norm": at(NORM, "inf", 1, 2)}).outcome is Outcome.PASS


@pytest.mark.parametrize("empty", ["", "null", "-"])
def test_a_norm_that_was_not_logged_is_no_nan(empty):
    assert judge({"grad_norm": NORM}, {"grad_norm": at(NORM, empty, 1, 7, 9)}).outcome is Outcome.PASS


def test_the_earlier_divergence_is_the_first():
    """The loss parts at step 1 and the norm at step 7, then the other way round."""
    assert judge({"grad_norm": NORM}, {"grad_norm": at(NORM, "nan", 7)}, factor=1.1).first_divergence.at == 1
    assert judge({"grad_norm": NORM}, {"grad_norm": at(NORM, "nan", 1)}, factor=1.1).first_divergence.at == 1


# --- the learning rate


def test_three_times_the_learning_rate_fails_though_the_loss_agrees():
    finding = judge({"lr": COSINE}, {"lr": [3 * each for each in COSINE]})
    assert finding.outcome is Outcome.FAIL
    assert (finding.first_divergence.at, finding.first_divergence.candidate) == (1, pytest.approx(3e-5))
    assert finding.hints[0].code == "hint-lr"
    assert not [check for check in finding.checks if check.state is State.VIOLATED]


def test_another_decay_fails_where_it_begins():
    """Constant to step 50; then one side decays by 1 % a step."""
    theirs = [1e-4 * 0.99 ** max(0, t - 49) for t in range(N)]
    assert judge({"lr": ["1.0000e-04"] * N}, {"lr": [f"{each:.4e}" for each in theirs]}).first_divergence.at == 51


def test_any_learning_rate_column_counts():
    assert judge({"expert_lr": COSINE}, {"expert_lr": [2 * each for each in COSINE]}).outcome is Outcome.FAIL


@pytest.mark.parametrize("theirs", [
    [f"{each:.2e}" for each in COSINE], [repr(float(np.float32(each))) for each in COSINE],
    [repr(each + 3e-11) for each in COSINE],
], ids=["three-digits", "float32", "arithmetic-in-float32"])
def test_digits_and_float32_are_no_other_schedule(theirs):
    assert judge({"lr": COSINE}, {"learning_rate": theirs}).outcome is Outcome.PASS


def test_a_rate_reported_one_row_later_leaves_it_open():
    """Before or after the scheduler's step: the log cannot say which was applied."""
    finding = judge({"lr": COSINE}, {"lr": [*COSINE[1:], 0.0]})
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-lr-one-late" in codes(finding)
    assert judge({"lr": [0.0, *COSINE[:-1]]}, {"lr": COSINE}).outcome is Outcome.INCONCLUSIVE


def test_one_digit_cannot_vouch_for_a_learning_rate():
    finding = judge({"lr": ["1e-04"] * N}, {"lr": ["2e-04"] * N})
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-lr-digits" in codes(finding)


# --- skipped steps, figures, absent columns


def test_a_step_that_one_side_skipped_fails():
    finding = judge({"skipped": [0] * N}, {"number of skipped iterations": at([0] * N, 1, 12)})
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence.at == 12
    assert finding.hints[0].code == "hint-skipped"


def test_gradient_norms_are_figures_without_a_limit():
    """ln 1.5 at the first step, ln 1.1 at the others."""
    theirs = [each * (1.5 if t == 0 else 1.1) for t, each in enumerate(NORM)]
    finding = judge({"grad_norm": NORM}, {"grad_norm": theirs})
    figures = {check.name: check for check in finding.checks if check.state is State.FIGURE}
    assert figures["grad_norm0"].value == pytest.approx(math.log(1.5))
    assert figures["grad_norm_mean"].value == pytest.approx((math.log(1.5) + 99 * math.log(1.1)) / 100)
    assert finding.outcome is Outcome.PASS


def test_a_column_of_one_side_is_said_and_not_compared():
    finding = judge({"lr": COSINE, "grad_norm": NORM}, {"grad_norm": NORM})
    assert finding.outcome is Outcome.PASS
    note = next(item for item in finding.notes if item.code == "loss-channel-absent")
    assert dict(note.params) == {"side": "candidate", "columns": "lr"}
