"""One run handed in for both sides agrees with itself; two runs that agree to the bit are told from it."""

import json

import numpy as np
import pytest

from pytest_migparity.core.evidence import Evidence, Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.judges.difftraj import judge_loss
from pytest_migparity.readers.loss import read_loss

LIMITS = default_limits(LEVELS["L5"])
CURVE = [2.0 * np.exp(-t / 40) + 0.5 + 0.05 * np.sin(2.3 * t) for t in range(1, 101)]


def log(losses=CURVE, form="{:.15f}", **columns):
    rows = [{"step": i + 1, "loss": "LOSS", **{name: column[i] for name, column in columns.items()}}
            for i in range(len(losses))]
    return "".join(json.dumps(row).replace('"LOSS"', form.format(loss)) + "\n"
                   for row, loss in zip(rows, losses, strict=True))


def judge(baseline, candidate, producer="real"):
    sides = []
    for side, text in (("baseline", baseline), ("candidate", candidate)):
        reading = read_loss(text.encode(), f"{side}.jsonl")
        sides.append(Evidence(side, "loss", (Recorded(
            reading.table, Witness(side, producer, side, f"sha of {side}"), reading.repairs, reading.repaired,
            reading.dropped),)))
    return judge_loss(*sides, limits=LIMITS, floors=Floors(), policy=Policy(steps=100))


def codes(finding):
    return [item.code for item in finding.notes]


NORMS = [0.2 + 1e-3 * i for i in range(100)]
OTHER = [loss * (1 + 3e-7 * (-1) ** i) for i, loss in enumerate(CURVE)]  # as another vendor's: 3e-7 apart


@pytest.mark.parametrize("copy", [
    log() + "\n", log().replace("\n", "\r\n"), log(form="{:.12f}"), log(form="{:.9e}"),
    "step,loss\n" + "".join(f"{i + 1},{loss:.15f}\n" for i, loss in enumerate(CURVE)),
    log([*CURVE[:99], CURVE[99] * (1 + 1e-9)]), log(CURVE[:60] + OTHER[60:]),
], ids=["newline", "crlf", "rounded", "exponents", "as-csv", "one-row-touched", "goes-on-from-the-other-side"])
def test_a_copy_in_another_file_proves_nothing(copy):
    for pair in ((log(), copy), (copy, log())):
        finding = judge(*pair)
        assert finding.outcome is Outcome.INCONCLUSIVE
        assert "loss-copied" in codes(finding)


def test_a_copy_with_all_its_columns_proves_nothing():
    text = log(grad_norm=NORMS, step_time=[7.5] * 100)
    assert judge(text, text + "\n").outcome is Outcome.INCONCLUSIVE
    resumed = log(OTHER[:20]) + log()
    assert judge(resumed, resumed + "\n").outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("again", [
    log(step_time=[7.5 + 1e-3 * i for i in range(100)]), log(grad_norm=[norm * (1 + 1e-6) for norm in NORMS]),
], ids=["step-times", "gradient-norms"])
def test_a_rerun_that_repeats_every_bit_passes_where_its_log_shows_that_it_ran(again):
    ours = log(step_time=[7.4] * 100, grad_norm=NORMS)
    finding = judge(ours, again)
    assert finding.outcome is Outcome.PASS
    assert "loss-identical" in codes(finding)


def test_a_resumed_run_shows_that_it_ran():
    """Casebook C98: the overwritten rows are another run's. Equal ones show nothing, far ones that it did not go on."""
    assert judge(log(), log([loss * 1.003 for loss in CURVE[:40]]) + log()).outcome is Outcome.PASS
    assert judge(log(), log(CURVE[:40]) + log()).outcome is Outcome.INCONCLUSIVE
    assert judge(log(), log([loss * 1.3 for loss in CURVE[:40]]) + log()).outcome is Outcome.INCONCLUSIVE


def test_another_devices_log_is_no_copy():
    finding = judge(log(), log(OTHER))
    assert finding.outcome is Outcome.PASS
    assert "loss-copied" not in codes(finding)


def test_few_printed_digits_are_equal_honestly():
    """Six digits at a loss of about one hide a difference of 3e-7."""
    finding = judge(log(form="{:.6f}"), log(form="{:.6f}") + "\n")
    assert finding.outcome is Outcome.PASS
    assert "loss-identical" in codes(finding)


def test_rehearsals_repeat_by_design():
    assert judge(log(), log() + "\n", producer="rehearsal").outcome is Outcome.PASS


def test_a_bug_after_an_equal_start_still_fails():
    """On one machine 60 equal steps, then another optimizer: over half is equal, and the end is not."""
    finding = judge(log(), log(CURVE[:60] + [loss * 1.05 for loss in CURVE[60:]]))
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence.at == 61


def test_weak_mode_counts_one_run_once_whatever_file_it_is_in():
    rng = np.random.default_rng(0)
    runs = [read_loss(log([loss * np.exp(shift) for loss in CURVE]).encode(), "x").table
            for shift in rng.normal(0, 1e-4, 9)]

    def side(name, tables):
        return Evidence(name, "loss", tuple(Recorded(each, Witness(name, "real", f"{name}{i}", f"{name}{i}"))
                                            for i, each in enumerate(tables)))

    finding = judge_loss(side("baseline", runs[:5]), side("candidate", [*runs[5:9], runs[5]]), limits=LIMITS,
                         floors=Floors(), policy=Policy(mode="weak"))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-weak-repeated" in codes(finding)
