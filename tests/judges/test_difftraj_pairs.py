"""Real labelled pairs (shared/data/loss): another vendor's chip, and the bugs of one trainer.

What a rerun and a family add: with both every pair is decided, and rightly; with neither nothing is decided wrongly.
"""

import csv
from pathlib import Path

import pytest

from pytest_migparity.core.evidence import Evidence, Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.judges.difftraj import floors_of_pairs, judge_loss
from pytest_migparity.readers.loss import read_loss

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "loss"
pytestmark = pytest.mark.skipif(not (DATA / "cases.csv").is_file(),
                                reason="the labelled pairs (shared/data/loss) are not beside this checkout")


def pairs(wanted):
    if not (DATA / "cases.csv").is_file():
        return [pytest.param({}, id="absent")]
    with (DATA / "cases.csv").open(encoding="utf-8", newline="") as file:
        return [pytest.param(row, id=row["case"]) for row in csv.DictReader(file) if wanted(row)]


def table(name):
    return read_loss((DATA / "runs" / name).read_bytes(), name).table


def judge(row, *, known):
    """The pair of a row; `known`: with its family and with the reruns that the row lists."""
    sides = [Evidence(side, "loss", (Recorded(table(row[side]), Witness(side, "manual", row[side], row[side])),))
             for side in ("baseline", "candidate")]
    floors = [tuple(table(name) for name in pair.split("|")) for pair in row["floors"].split()] if known else []
    family = ("moe" if "moe" in row["baseline_path"] else "dense") if known else None
    return judge_loss(*sides, limits=default_limits(LEVELS["L5"]),
                      floors=floors_of_pairs(floors) if floors else Floors(), policy=Policy(family=family))


GOOD = pairs(lambda row: row["relation"] == "cross-hw same-init")
BAD = pairs(lambda row: row["label"] == "neg" and row["repo"] == "pytorch/torchtitan")


def test_the_data_holds_the_pairs_the_claims_are_about():
    assert (len(GOOD), len(BAD)) == (11, 16)
    assert all(len(case.values[0]["floors"].split()) >= 2 for case in [*GOOD, *BAD])


@pytest.mark.parametrize("row", GOOD)
def test_another_vendors_chip_passes(row):
    finding = judge(row, known=True)
    assert finding.outcome is Outcome.PASS
    assert finding.first_divergence is None
    assert judge(row, known=False).outcome is not Outcome.FAIL


@pytest.mark.parametrize("row", BAD)
def test_a_torchtitan_bug_fails_and_is_located(row):
    finding = judge(row, known=True)
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence is not None
    assert finding.hints
    assert judge(row, known=False).outcome is not Outcome.PASS


def test_the_expert_bias_bug_parts_at_step_2():
    """Mixture-of-experts bias never updated: bitwise equal at step 1, apart by 2e-3 at step 2 (7.330540, 7.345610)."""
    finding = judge(next(case.values[0] for case in BAD if case.id == "torchtitan-0036"), known=True)
    assert finding.outcome is Outcome.FAIL
    first = finding.first_divergence
    assert (first.kind, first.at, first.baseline, first.candidate) == ("step", 2, 7.330539703369141, 7.345609664916992)
    assert finding.hints[0].code == "hint-optimizer"
