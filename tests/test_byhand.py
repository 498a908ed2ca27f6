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


# --- what a reviewer got past the judge


def jsonl(path, loss, **columns):
    rows = [{"step": int(step), "loss": float(value), **{name: values[i] for name, values in columns.items()}}
            for i, (step, value) in enumerate(zip(range(1, len(loss) + 1), loss, strict=True))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("writer", [write, jsonl])
def test_a_nan_of_the_candidate_fails_from_the_file_on(tmp_path, writer, bad):
    broken = np.where(STEPS == 31, bad, CURVE)
    logs = Logs(writer(tmp_path / "a", CURVE), writer(tmp_path / "b", broken), policy=Policy(family="dense"))
    assert logs.judge().outcome is Outcome.FAIL


@pytest.mark.parametrize(("rerun", "code"), [
    (CURVE * np.exp(0.03 * np.sin(5.7 * STEPS)), "rerun-apart"), (np.where(STEPS == 9, np.nan, CURVE), "rerun-unusable"),
    (np.where(STEPS == 60, 1e6, CURVE), "rerun-apart")], ids=["another-seed", "broken", "exploded"])
def test_what_is_no_rerun_lifts_no_limit(logs, tmp_path, rerun, code):
    write(logs.candidate, CURVE * np.exp(0.02 * np.sin(9.1 * STEPS)))
    assert logs.judge().outcome is Outcome.FAIL
    loosened = Logs(logs.baseline, logs.candidate, (write(tmp_path / "r.csv", rerun),), policy=logs.policy).judge()
    assert loosened.outcome is Outcome.INCONCLUSIVE
    assert code in [item.code for item in loosened.finding.notes]


def resumed(tmp_path, past):
    """A candidate that resumes at step 31 after `past`, then runs 9e-4 off the baseline."""
    head, own = past[:40], CURVE * np.exp(9e-4)
    text = "".join(f"{k},{x:.12f}\n" for k, x in zip(range(1, 41), head, strict=True))
    text += "".join(f"{k},{x:.12f}\n" for k, x in zip(range(31, 61), own[30:], strict=True))
    (tmp_path / "b.csv").write_text("step,loss\n" + text)
    return Logs(write(tmp_path / "a.csv", CURVE), tmp_path / "b.csv", policy=Policy(family="dense")).judge()


def test_a_log_that_goes_on_from_the_baselines_own_does_not_pass_on_its_rows(tmp_path):
    verdict = resumed(tmp_path, CURVE)
    assert verdict.outcome is not Outcome.PASS
    assert {"loss-glued", "loss-copied"} & {item.code for item in verdict.finding.notes}


def test_a_nan_that_a_resume_replaced_is_not_forgotten(tmp_path):
    verdict = resumed(tmp_path, np.where(STEPS == 38, np.nan, CURVE * np.exp(9e-4)))
    assert "read-replaced-non-finite" in [item.code for item in verdict.finding.notes]
    assert verdict.outcome is not Outcome.PASS


@pytest.mark.parametrize("name", ["lr", "lr_0", "lr/group_0", "train/lr0", "LearningRate", "lr-AdamW/pg1"])
def test_a_learning_rate_twice_as_large_fails_under_any_name(tmp_path, name):
    ours = jsonl(tmp_path / "a.jsonl", CURVE, **{name: [1.25e-4] * 60})
    theirs = jsonl(tmp_path / "b.jsonl", CURVE * np.exp(1e-6 * JITTER), **{name: [2.5e-4] * 60})
    assert Logs(ours, theirs, policy=Policy(family="dense")).judge().outcome is Outcome.FAIL


def test_a_counter_that_changes_alike_on_both_sides_is_no_doubt(tmp_path):
    """A ramp of the batch size at step 30, and the same sequence lengths: stronger evidence of equal data than none."""
    samples = np.cumsum(np.where(STEPS < 30, 8, 16)).tolist()
    ours = jsonl(tmp_path / "a.jsonl", CURVE, samples=samples)
    theirs = jsonl(tmp_path / "b.jsonl", CURVE * np.exp(1e-6 * JITTER), samples=samples)
    assert Logs(ours, theirs, policy=Policy(family="dense")).judge().outcome is Outcome.PASS
    other = jsonl(tmp_path / "c.jsonl", CURVE * np.exp(1e-6 * JITTER), samples=(8 * STEPS).tolist())
    verdict = Logs(ours, other, policy=Policy(family="dense")).judge()
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert [item.params["step"] for item in verdict.finding.notes if item.code == "loss-counter-jumps"] == [30]


def test_an_injected_timestep_is_no_clock(tmp_path):
    flow = np.random.default_rng(4).uniform(0, 1, 60).tolist()
    ours = jsonl(tmp_path / "a.jsonl", CURVE, timestep_mean=flow)
    theirs = jsonl(tmp_path / "b.jsonl", CURVE * np.exp(1e-6 * JITTER), timestep_mean=flow)
    assert Logs(ours, theirs, policy=Policy(family="dense")).judge().outcome is Outcome.PASS


def test_steps_of_logs_that_print_every_third_step(tmp_path):
    """Nobody declared an interval here: the one that both logs have is it."""
    rows = [(k, x) for k, x in zip(STEPS.tolist(), CURVE.tolist(), strict=True) if k % 3 == 0]
    for name, factor in (("a", 1.0), ("b", 1 + 1e-7)):
        (tmp_path / name).write_text("step,loss\n" + "".join(f"{k},{x * factor:.12f}\n" for k, x in rows))
    verdict = Logs(tmp_path / "a", tmp_path / "b", policy=Policy(steps=60, family="dense")).judge()
    assert verdict.outcome is Outcome.PASS
    assert (verdict.finding.coverage.compared, verdict.finding.coverage.of) == (20, 20)


@pytest.mark.parametrize(("ours", "theirs", "code"), [
    ([1.0] * 60, [100.0] * 60, "loss-norm-apart"), ([1.0] * 60, [0.0] * 60, "loss-norm-zero"),
    ([1.0] * 60, [1.2] * 60, "")], ids=["a-hundred-times", "zero", "a-fifth"])
def test_gradient_norms_far_apart_keep_the_loss_from_passing(tmp_path, ours, theirs, code):
    verdict = Logs(jsonl(tmp_path / "a.jsonl", CURVE, grad_norm=ours),
                   jsonl(tmp_path / "b.jsonl", CURVE * np.exp(1e-6 * JITTER), grad_norm=theirs),
                   policy=Policy(family="dense")).judge()
    assert verdict.outcome is (Outcome.INCONCLUSIVE if code else Outcome.PASS)
    assert not code or code in [item.code for item in verdict.finding.notes]


def test_a_rate_reported_before_and_after_the_scheduler_every_tenth_step_is_no_other_schedule(tmp_path):
    """Rows of every tenth step: one side prints the rate of the step, the other the next one's."""
    step = np.arange(10, 610, 10)
    loss = 2 * np.exp(-step / 400) + 0.5 + 0.05 * np.sin(2.3 * step)
    for name, late, noise in (("a", 0, 0.0), ("b", 1, 1e-6)):
        rows = [{"step": int(k), "loss": float(x), "lr": 1.234567e-4 * (1 - (int(k) + late) / 1000)}
                for k, x in zip(step, loss * np.exp(noise * np.sin(7.7 * step)), strict=True)]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    verdict = Logs(tmp_path / "a", tmp_path / "b", policy=Policy(family="dense")).judge()
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "loss-lr-one-late" in [item.code for item in verdict.finding.notes]


def test_a_rerun_with_rows_in_doubt_lifts_no_limit(logs, tmp_path):
    """Two ranks print every step with two losses: nobody knows which of them repeats the baseline."""
    text = "".join(f"{k},{x:.12f}\n{k},{x * 1.0001:.12f}\n" for k, x in zip(STEPS, CURVE, strict=True))
    (tmp_path / "ranks.csv").write_text("step,loss\n" + text)
    verdict = Logs(logs.baseline, logs.candidate, (tmp_path / "ranks.csv",), policy=logs.policy).judge()
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "rerun-unusable" in [item.code for item in verdict.finding.notes]
