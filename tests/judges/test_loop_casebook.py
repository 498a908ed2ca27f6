"""Public reports that L7 should judge right: the casebook's rows, from files as their authors had them."""

import csv
import io

import pytest
from episodes import codes, counted, judged
from evidence_kit import SHARED

from pytest_migparity.core.errors import UserError
from pytest_migparity.core.verdict import Outcome
from pytest_migparity.readers.rollouts import read_rollouts
from pytest_migparity.wire.rollouts import Episode, Rollouts

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


@pytest.fixture(autouse=True)
def expected(request):
    """The verdict that the casebook's row asks for."""
    book = SHARED / "casebook" / "cases.csv"
    if not book.is_file():
        pytest.skip("the casebook is not beside this checkout")
    with book.open(encoding="utf-8", newline="") as stream:
        row = next(row for row in csv.DictReader(stream) if row["id"] == request.node.name.split("_")[1].split("[")[0])
    assert row["level_code"] == "L7"
    return Outcome(row["verdict_code"].upper())


def table(text):
    return read_rollouts({"rollouts.csv": lambda: io.BytesIO(text.encode())})[0]


def test_C03_ten_points_of_an_answer_score(expected):
    """579 of 900 against 487 of 900; the same two rates without N are refused."""
    assert judged(counted(579, 900), counted(487, 900)).outcome is expected is FAIL
    with pytest.raises(UserError, match="without its number of episodes"):
        table("task,rate\nmmmu,0.64285\n")


def test_C20_a_score_below_the_standard_of_a_deployment(expected):
    """152 of 198 on the standard, 133 of 198 here: 9.6 points, so that a margin of .05 is needed to call it a loss."""
    finding = judged(counted(152, 198), counted(133, 198), margin=0.05)
    assert finding.outcome is expected is FAIL
    assert judged(counted(152, 198), counted(133, 198)).outcome is INCONCLUSIVE, "within .10 it may still lie"


def test_C36_ten_episodes_from_one_state(expected):
    """10 tasks of 10 episodes that all start from their task's first state: N is 10."""
    sides = [[Episode(f"t{at // 10}", at, at % 50 >= lost, init=f"state {at // 10}", harness="lerobot")
              for at in range(100)] for lost in (1, 5)]
    finding = judged(*sides)
    assert finding.outcome is expected is INCONCLUSIVE
    assert (finding.coverage.compared, finding.coverage.dropped) == (10, 180)
    assert "loop-repeated" in codes(finding)


def test_C38_other_numbers_of_environments(expected):
    sides = [[Episode("pick", at, at < good, envs=envs, harness="isaac") for at in range(50)]
             for good, envs in ((34, 5), (21, 10))]
    finding = judged(*sides)
    assert finding.outcome is expected is INCONCLUSIVE
    assert [item.params["what"] for item in finding.notes if item.code == "loop-protocol"] == ["envs"]


@pytest.mark.parametrize("base, cand", [(2, 1), (0, 0)])
def test_C40_two_dozen_episodes_that_hardly_succeed(expected, base, cand):
    finding = judged(counted(base, 24), counted(cand, 24))
    assert finding.outcome is expected is INCONCLUSIVE
    assert "loop-vacuous" in codes(finding)


def test_C42_a_rate_that_is_no_whole_count(expected):
    with pytest.raises(UserError, match=r"43\.9% of 500 episodes: 219\.5 successes"):
        table("task,rate,episodes\nlibero,43.9%,500\n")
    assert expected is INCONCLUSIVE, "evidence that cannot be read is"


def test_C49_three_runs_that_spread(expected):
    runs = [counted(good, 5000) for good in (4351, 4280, 4180, 4135)]
    finding = judged(runs[0], runs[1], reruns=((), runs[2:]))
    assert finding.outcome is expected is INCONCLUSIVE
    assert "loop-runs-spread" in codes(finding)


def test_C51_a_policy_that_never_succeeds_on_another_card(expected):
    assert judged(counted(58, 100), counted(1, 100)).outcome is expected is FAIL


def test_C53_one_category_explains_it(expected):
    """Six categories of about 1438 within 5 points, one at 245 of 1400 against 1106 of 1400."""
    sides = []
    for broken in (1106, 245):
        rows = [episode for at in range(6) for episode in counted(720, 1438, f"category {at}").episodes]
        sides.append(Rollouts((*rows, *counted(broken, 1400, "camera").episodes), "only counts are known", True))
    finding = judged(*sides, margin=0.05)
    assert finding.outcome is expected is FAIL
    assert finding.first_divergence.at == "camera"
    assert [item.params["task"] for item in finding.notes if item.code == "loop-task-lost"] == ["camera"]
