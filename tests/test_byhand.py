"""Two logs named by hand: once, with floors, and while they are being written."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from pytest_migparity.byhand import Logs, follow
from pytest_migparity.cli import app
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.evidence import Policy
from pytest_migparity.core.verdict import Outcome, Verdict

STEPS = np.arange(1, 61)
CURVE = 2 * np.exp(-STEPS / 40) + 0.5 + 0.05 * np.sin(2.3 * STEPS)
JITTER = np.sin(STEPS * 7.7)


def write(path, loss, rows=None):
    body = "".join(f"{step},{value:.12f}\n" for step, value in list(zip(STEPS, loss, strict=True))[:rows])
    path.write_text("step,loss\n" + body)
    return path


@pytest.fixture
def logs(tmp_path):
    return Logs(write(tmp_path / "a.csv", CURVE), write(tmp_path / "b.csv", CURVE * np.exp(1e-6 * JITTER)),
                policy=Policy(steps=60, family="dense"))


def test_a_log_that_grows_is_judged_as_it_grows_and_ends_with_the_whole(logs):
    """20 rows, then 40, then all 60: two verdicts so far, then the final one on 60 of 60 steps."""
    good = CURVE * np.exp(1e-6 * JITTER)
    write(logs.candidate, good, 20)
    pending = [40, 60]

    def sleep(_):
        if pending:
            write(logs.candidate, good, pending.pop(0))

    seen = list(follow(logs, every=1.0, sleep=sleep))
    assert [(verdict.finding.coverage.compared, final) for verdict, final in seen] == [(20, False), (40, False), (60, True)]
    assert [verdict.outcome for verdict, _ in seen] == [Outcome.PASS] * 3


def test_a_nan_is_final_at_once(logs):
    write(logs.candidate, np.where(STEPS > 15, np.nan, CURVE), 20)
    (verdict, final), = follow(logs, every=1.0, sleep=lambda _: pytest.fail("waited after a NaN"))
    assert (verdict.outcome, final) == (Outcome.FAIL, True)


def test_a_fail_on_the_first_steps_is_not_final(logs):
    """Of good pairs some fail on 20 steps and pass on 100: the log is followed on."""
    write(logs.candidate, CURVE * 1.05, 20)
    seen = list(follow(logs, every=1.0, sleep=lambda _: write(logs.candidate, CURVE * 1.05)))
    assert [(verdict.outcome, final) for verdict, final in seen] == [(Outcome.FAIL, False), (Outcome.FAIL, True)]


def test_a_run_that_died_ends_inconclusive_when_patience_does(logs):
    """20 of the recipe's 60 steps, and nothing more: never a pass, whatever the first 20 say."""
    write(logs.candidate, CURVE * np.exp(1e-6 * JITTER), 20)
    waited = []
    seen = list(follow(logs, every=1.0, patience=3.0, sleep=waited.append))
    assert [final for _, final in seen] == [False, True]
    assert seen[-1][0].outcome is Outcome.INCONCLUSIVE
    assert len(waited) == 3


def test_a_log_that_is_not_there_yet_is_waited_for(logs):
    logs.candidate.unlink()
    seen = list(follow(logs, every=1.0, sleep=lambda _: write(logs.candidate, CURVE * np.exp(1e-6 * JITTER))))
    assert [final for _, final in seen] == [True]


def test_a_torn_last_line_of_a_log_that_grows_is_no_row(logs):
    good = CURVE * np.exp(1e-6 * JITTER)
    write(logs.candidate, good, 20)
    logs.candidate.write_text(logs.candidate.read_text() + "21,1.")
    verdict, _ = next(follow(logs, every=1.0))
    assert verdict.finding.coverage.compared == 20


def test_reruns_of_the_baseline_measure_floors(logs, tmp_path):
    reruns = tuple(write(tmp_path / f"r{i}.csv", CURVE * np.exp(4e-5 * np.sin(STEPS * (3.1 + i)))) for i in range(2))
    verdict = Logs(logs.baseline, logs.candidate, reruns, policy=logs.policy).judge()
    mean = next(check for check in verdict.finding.checks if check.name == "mean")
    assert mean.limit.floor is not None
    assert mean.limit.floor > 2e-5  # two sines of amplitude 4e-5: mean |d| between 2/pi and 8/pi^2 of 4e-5


@pytest.mark.parametrize("which", ["baseline", "twice"])
def test_a_file_is_no_rerun_of_itself(logs, tmp_path, which):
    rerun = write(tmp_path / "r.csv", CURVE * np.exp(1e-6 * np.sin(STEPS)))
    reruns = (logs.baseline,) if which == "baseline" else (rerun, rerun)
    with pytest.raises(UserError, match="measures no floor"):
        Logs(logs.baseline, logs.candidate, reruns).judge()


def test_the_candidate_as_a_rerun_measures_its_own_difference_and_settles_nothing(logs, tmp_path):
    bad = write(tmp_path / "bad.csv", CURVE * np.exp(1e-3 * STEPS / 60))
    rerun = tmp_path / "rerun.csv"
    rerun.write_text(bad.read_text())
    verdict = Logs(logs.baseline, bad, (rerun,)).judge()
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "rerun-is-run" in [item.code for item in verdict.finding.notes]


def test_runs_that_resume_from_one_checkpoint_are_compared_from_there(logs):
    """The candidate's log begins at step 31: without first_step its first 30 steps are missing."""
    text = logs.candidate.read_text().splitlines()
    logs.candidate.write_text("\n".join([text[0], *text[31:]]) + "\n")
    assert Logs(logs.baseline, logs.candidate, policy=Policy(family="dense")).judge().outcome is Outcome.INCONCLUSIVE
    resumed = Logs(logs.baseline, logs.candidate, policy=Policy(family="dense", first=31)).judge()
    assert resumed.outcome is Outcome.PASS
    assert resumed.finding.coverage.compared == resumed.finding.coverage.of == 30


def test_the_command_prints_a_line_per_growth_and_exits_as_the_verdict(logs):
    result = CliRunner().invoke(app, ["difftraj", str(logs.baseline), str(logs.candidate), "--follow", "--steps", "60",
                                      "--family", "dense", "--json"])
    assert result.exit_code == 0
    assert Verdict.from_json(result.stdout.splitlines()[-1]).outcome is Outcome.PASS
    assert json.loads(result.stdout.splitlines()[-1])["coverage"]["compared"] == 60


def test_a_family_that_nobody_knows_is_the_users_error(logs):
    result = CliRunner().invoke(app, ["difftraj", str(logs.baseline), str(logs.candidate), "--family", "mo"])
    assert isinstance(result.exception, UserError)
    assert "moe" in str(result.exception)
