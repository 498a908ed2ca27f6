"""Real labelled pairs (shared/data/loss) under the published limits, without floors."""

import csv
from pathlib import Path

import pytest

from pytest_migparity.core.evidence import Evidence, Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.judges.difftraj import judge_loss
from pytest_migparity.readers.loss import read_loss

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "loss"
pytestmark = pytest.mark.skipif(not (DATA / "cases.csv").is_file(),
                                reason="the labelled pairs (shared/data/loss) are not beside this checkout")


def pairs(wanted):
    if not (DATA / "cases.csv").is_file():
        return [pytest.param("", "", id="absent")]
    with (DATA / "cases.csv").open(encoding="utf-8", newline="") as file:
        return [pytest.param(row["baseline"], row["candidate"], id=row["case"])
                for row in csv.DictReader(file) if wanted(row)]


def judge(baseline, candidate):
    sides = []
    for side, name in (("baseline", baseline), ("candidate", candidate)):
        reading = read_loss((DATA / "runs" / name).read_bytes(), name)
        sides.append(Evidence(side, "loss", (Recorded(reading.table, Witness(side, "manual", name, name)),)))
    return judge_loss(*sides, limits=default_limits(LEVELS["L5"]), floors=Floors(), policy=Policy())


GOOD = pairs(lambda row: row["relation"] == "cross-hw same-init")
BAD = pairs(lambda row: row["label"] == "neg" and row["repo"] == "pytorch/torchtitan")


def test_the_data_holds_the_pairs_the_claims_are_about():
    assert (len(GOOD), len(BAD)) == (11, 16)


@pytest.mark.parametrize(("baseline", "candidate"), GOOD)
def test_another_vendors_chip_passes(baseline, candidate):
    """facts/loss.md: with mean at 1e-3 all 11 pass."""
    assert judge(baseline, candidate).outcome is Outcome.PASS


@pytest.mark.parametrize(("baseline", "candidate"), BAD)
def test_a_torchtitan_bug_fails_and_is_located(baseline, candidate):
    finding = judge(baseline, candidate)
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence is not None
    assert finding.hints


def test_the_expert_bias_bug_parts_at_step_2():
    """Mixture-of-experts bias never updated: bitwise equal at step 1, apart by 2e-3 at step 2 (7.345610, 7.330539)."""
    finding = judge("0fe4805f5602.csv", "51f082e9b408.csv")
    assert finding.outcome is Outcome.FAIL
    first = finding.first_divergence
    assert (first.kind, first.at, first.baseline, first.candidate) == ("step", 2, 7.345609664916992, 7.330539703369141)
    assert finding.hints[0].code == "hint-optimizer"


def test_a10g_against_mi350x_passes():
    assert judge("94976aa89cba.csv", "31a0672567c8.csv").outcome is Outcome.PASS
