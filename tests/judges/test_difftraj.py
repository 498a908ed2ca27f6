"""What the judge of losses must not let through, and what it must not accuse."""

import math
import subprocess
import sys

import numpy as np
import pytest

from pytest_migparity.core.evidence import Evidence, Policy, Recorded, Trajectory
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, State, Verdict, Witness, note
from pytest_migparity.judges.difftraj import floors_of, judge_loss, measure

LIMITS = default_limits(LEVELS["L5"])
STEPS = np.arange(1, 101)
CURVE = 2.0 * np.exp(-STEPS / 40) + 0.5 + 0.05 * np.sin(2.3 * STEPS)


def table(loss, step=STEPS, quantum=0.0, interval=1):
    loss = np.asarray(loss, dtype=float)
    return Trajectory(np.asarray(step), {"loss": loss}, {"loss": np.full(loss.shape, quantum)}, interval)


def evidence(side, *tables, producer="real", sha256="", problems=()):
    runs = tuple(Recorded(each, Witness(side, producer, f"{side}{i}.csv", sha256 or f"{side}{i}"))
                 for i, each in enumerate(tables))
    return Evidence(side, "loss", runs, problems=tuple(problems))


def judge(baseline, candidate, *, limits=LIMITS, floors=None, **policy):
    sides = [each if isinstance(each, Evidence) else evidence(side, each)
             for side, each in (("baseline", baseline), ("candidate", candidate))]
    return judge_loss(*sides, limits=limits, floors=floors or Floors(), policy=Policy(**policy))


def codes(finding):
    return [item.code for item in finding.notes]


def hint(finding):
    return finding.hints[0].code if finding.hints else None


def check(finding, name):
    return next(each for each in finding.checks if each.name == name)


def violated(finding):
    return {each.name for each in finding.checks if each.state is State.VIOLATED}


# --- what passes


def test_other_hardware_passes():
    noise = 1e-6 * np.sin(STEPS * 7.7)
    finding = judge(table(CURVE), table(CURVE * np.exp(noise)), steps=100)
    assert finding.outcome is Outcome.PASS
    assert (finding.coverage.compared, finding.coverage.of) == (100, 100)
    assert finding.first_divergence is None
    assert not finding.hints


def test_every_check_of_the_level_is_reported():
    assert [each.name for each in judge(table(CURVE), table(CURVE)).checks] == list(LEVELS["L5"].checks)


def test_a_log_that_counts_from_zero_covers_its_steps():
    step = np.arange(100)
    assert judge(table(CURVE, step), table(CURVE * (1 + 1e-9), step), steps=100).outcome is Outcome.PASS


def test_steps_beyond_the_recipe_are_left_out_and_said():
    worse = np.where(STEPS > 50, CURVE * 2, CURVE * (1 + 1e-9))
    finding = judge(table(CURVE), table(worse), steps=50)
    assert finding.outcome is Outcome.PASS
    assert "loss-beyond" in codes(finding)
    assert (finding.coverage.compared, finding.coverage.of) == (50, 50)


# --- what fails


def test_figures_by_hand():
    """d is 1e-3 throughout on a curve of three values: every distance is 1e-3, the slope 0."""
    figures = measure(table([3.0, 2.0, 1.0], [1, 2, 3]), table(np.exp(1e-3) * np.array([3.0, 2.0, 1.0]), [1, 2, 3]))
    for name in ("step0", "first3", "final", "mean", "tail"):
        assert figures[name] == pytest.approx(1e-3)
    assert figures["drift"] == pytest.approx(0.0, abs=1e-12)
    assert figures["spearman"] == 1.0
    assert math.isnan(figures["order"])


def test_alignment_is_by_step_never_by_row():
    """The candidate lacks step 50: by row every later pair would be off by one."""
    kept = STEPS != 50
    assert measure(table(CURVE), table(CURVE[kept], STEPS[kept]))["mean"] == 0.0


def test_equal_start_then_growth_names_step_and_optimizer():
    """d = 1e-4 (t - 1): the envelope 2e-5 t is left at step 2 (1e-4 > 4e-5)."""
    finding = judge(table(CURVE), table(CURVE * np.exp(1e-4 * (STEPS - 1))))
    assert finding.outcome is Outcome.FAIL
    assert (finding.first_divergence.kind, finding.first_divergence.at) == ("step", 2)
    assert finding.first_divergence.baseline == CURVE[1]
    assert violated(finding) >= {"tail"}  # the last ten: 9.45e-3, by hand
    assert hint(finding) == "hint-optimizer"


def test_unequal_start_points_at_weights_or_forward():
    finding = judge(table(CURVE), table(CURVE + 1e-2))
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence.at == 1
    assert hint(finding) == "hint-forward"


def test_constant_ratio_points_at_reduction():
    finding = judge(table(CURVE), table(CURVE * 4 / 3))
    assert hint(finding) == "hint-constant-ratio"
    assert finding.hints[0].params["ratio"] == pytest.approx(4 / 3)


def test_other_data_order_points_at_the_loader():
    trend = 2.0 * np.exp(-STEPS / 40) + 0.5
    noise = np.random.default_rng(0).normal(0, 0.02, (2, 100))
    noise[:, 0] = 0
    finding = judge(table(trend + noise[0]), table(trend + noise[1]))
    assert finding.outcome is Outcome.FAIL
    assert hint(finding) == "hint-data-order"
    assert check(finding, "order").value < 0.5


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("side", [0, 1])
def test_one_sided_non_finite_fails_at_its_step(bad, side):
    losses = [CURVE.copy(), CURVE.copy()]
    losses[side][11:] = bad
    finding = judge(table(losses[0]), table(losses[1]))
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence.at == 12
    assert hint(finding) == "hint-non-finite"
    assert Verdict.from_json(Verdict("L5", "m", "main", finding).to_json()).outcome is Outcome.FAIL


def test_divergence_before_the_overflow_is_the_first():
    loss = CURVE * np.exp(np.where(STEPS >= 5, 1e-2, 0.0))
    loss[30:] = math.nan
    assert judge(table(CURVE), table(loss)).first_divergence.at == 5


def test_one_sided_negative_loss_fails():
    loss = CURVE.copy()
    loss[40] = -0.1
    finding = judge(table(CURVE), table(loss))
    assert finding.outcome is Outcome.FAIL
    assert "loss-not-positive" in codes(finding)


# --- what proves nothing


def test_both_sides_broken_alike_prove_nothing():
    loss = CURVE.copy()
    loss[50:] = math.nan
    finding = judge(table(loss), table(loss))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-both-non-finite" in codes(finding)
    assert (finding.coverage.compared, finding.coverage.of) == (50, 100)


def test_losses_that_are_not_positive_have_no_ratio():
    finding = judge(table(CURVE - 5), table(CURVE - 5))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-both-not-positive" in codes(finding)


def test_a_zero_within_the_printed_digits_is_not_called_a_difference():
    """0.0000 against 0.0001 with four decimals: the same number may stand behind both."""
    left, right = CURVE.copy(), CURVE.copy()
    left[99], right[99] = 0.0, 0.0001
    assert judge(table(left, quantum=1e-4), table(right, quantum=1e-4)).outcome is Outcome.INCONCLUSIVE


def test_constant_losses_prove_nothing():
    finding = judge(table(np.full(100, 0.7)), table(np.full(100, 0.7)))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-constant" in codes(finding)


def test_one_file_handed_in_twice_proves_nothing():
    sides = [evidence(side, table(CURVE), producer="manual", sha256="ab" * 32) for side in ("baseline", "candidate")]
    finding = judge(*sides)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-same-file" in codes(finding)


def test_a_rehearsal_repeated_on_one_machine_is_bitwise_equal_and_passes():
    sides = [evidence(side, table(CURVE), producer="rehearsal", sha256="ab" * 32) for side in ("baseline", "candidate")]
    finding = judge(*sides)
    assert finding.outcome is Outcome.PASS
    assert "loss-identical" in codes(finding)


def test_missing_steps_are_named_with_their_side():
    kept = (STEPS < 40) | (STEPS > 43)
    finding = judge(table(CURVE), table(CURVE[kept], STEPS[kept]))
    assert finding.outcome is Outcome.INCONCLUSIVE
    missing = next(item for item in finding.notes if item.code == "loss-missing")
    assert dict(missing.params) == {"side": "candidate", "count": 4, "steps": "40-43"}
    assert (finding.coverage.compared, finding.coverage.of, finding.coverage.baseline_only) == (96, 100, 4)


def test_steps_missing_on_both_sides_are_missed():
    kept = STEPS != 50
    finding = judge(table(CURVE[kept], STEPS[kept]), table(CURVE[kept] * (1 + 1e-9), STEPS[kept]))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert next(item for item in finding.notes if item.code == "loss-missing").params["side"] == "both"


def test_both_sides_shorter_than_the_recipe_do_not_pass():
    finding = judge(table(CURVE), table(CURVE * (1 + 1e-9)), steps=200)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert finding.coverage.of == 200


def test_a_log_without_its_first_step_does_not_pass():
    tail = slice(10, None)
    finding = judge(table(CURVE[tail], STEPS[tail]), table(CURVE[tail] * (1 + 1e-9), STEPS[tail]))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert check(finding, "step0").state is State.BLIND
    assert "loss-head-missing" in codes(finding)


def test_a_log_with_an_interval_begins_at_its_interval():
    step = STEPS * 10
    assert judge(table(CURVE, step, interval=10), table(CURVE * (1 + 1e-9), step, interval=10)).outcome is Outcome.PASS


def test_different_intervals_are_not_compared():
    """A loss logged every tenth step is often a mean of ten: not the quantity of one step."""
    every = np.arange(10, 101, 10)
    finding = judge(table(CURVE), table(CURVE[every - 1] * 1.5, every, interval=10))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-intervals" in codes(finding)


def test_numbering_off_by_one_is_offered_not_shifted_and_not_accused():
    finding = judge(table(CURVE, STEPS - 1), table(CURVE * (1 + 1e-9), STEPS))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert next(item for item in finding.notes if item.code == "loss-offset").params["offset"] == 1


@pytest.mark.parametrize("n", [0, 1, 2, 3, 9])
def test_short_logs_say_how_many_steps_are_needed(n):
    finding = judge(table(CURVE[:n], STEPS[:n]), table(CURVE[:n] * (1 + 1e-9), STEPS[:n]))
    assert finding.outcome is Outcome.INCONCLUSIVE
    if n:
        short = next(item for item in finding.notes if item.code == "loss-short")
        assert (short.params["needs"], short.params["more"]) == (10, 10 - n)


@pytest.mark.parametrize(("n", "state"), [(10, State.FIGURE), (19, State.FIGURE), (20, State.OK)])
def test_order_is_a_figure_until_twenty_points_say_something(n, state):
    """At n = 19 two unrelated orders still correlate at .24 of standard deviation: no limit is held against it."""
    finding = judge(table(CURVE[:n], STEPS[:n]), table(CURVE[:n] * (1 + 1e-9), STEPS[:n]))
    assert finding.outcome is Outcome.PASS
    assert check(finding, "order").state is state
    swapped = CURVE[:n].copy()
    swapped[3::2] = swapped[3::2] + np.where(np.arange(swapped[3::2].size) % 2, 0.02, -0.02)
    assert ("order" in violated(judge(table(CURVE[:n], STEPS[:n]), table(swapped, STEPS[:n])))) <= (n == 20)


def test_no_evidence_says_which_side():
    finding = judge(Evidence("baseline", "loss"), table(CURVE))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert finding.notes[0] == note("loss-no-evidence", side="baseline")


def test_evidence_with_problems_neither_passes_nor_fails():
    stale = note("recipe-differs", kind="loss")
    for loss in (CURVE * (1 + 1e-9), CURVE * 2):
        finding = judge(table(CURVE), evidence("candidate", table(loss), problems=[stale]))
        assert finding.outcome is Outcome.INCONCLUSIVE
        assert stale in finding.notes


def test_several_runs_in_strict_mode_are_refused():
    finding = judge(evidence("baseline", table(CURVE), table(CURVE)), table(CURVE))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-several-runs" in codes(finding)


@pytest.mark.parametrize("broken", [
    Trajectory(STEPS, {}, {}), Trajectory(STEPS[:5], {"loss": CURVE}, {}), Trajectory(STEPS, {"loss": CURVE}, {}),
    Trajectory(STEPS, {"loss": CURVE}, {"loss": CURVE[:3]}), Trajectory(STEPS * 1.5, {"loss": CURVE}, {}),
    Trajectory(np.zeros((2, 2), dtype=int), {"loss": np.zeros((2, 2))}, {}),
])
def test_malformed_tables_raise_nothing(broken):
    finding = judge(broken, table(CURVE * (1 + 1e-9)))
    assert finding.outcome is (Outcome.PASS if broken.columns and broken.step is STEPS and not broken.quantum
                               else Outcome.INCONCLUSIVE)


# --- single statistics, floors


def test_mean_alone_beyond_its_limit_fails():
    """Whole periods of 2e-2, equal at first: mean |d| is 97 % of 2e-2 x .6155 (by hand), tail 0, no order lost."""
    swing = 2e-2 * np.sin(2 * np.pi * STEPS / 10)
    swing[:3] = 0.0
    finding = judge(table(CURVE), table(CURVE * np.exp(swing)))
    assert finding.outcome is Outcome.FAIL
    assert check(finding, "mean").value == pytest.approx(2e-2 * (10 * 0.61554 - 0.24899) / 10, rel=1e-4)
    assert violated(finding) - {"departure"} == {"mean"}


def test_floors_are_the_largest_over_pairs_of_reruns():
    runs = [table(CURVE), table(CURVE * np.exp(1e-4)), table(CURVE * np.exp(-2e-4))]
    floors = floors_of(runs)
    assert floors.of("mean") == pytest.approx(3e-4)
    assert floors.of("spearman") == pytest.approx(0.0, abs=1e-12)
    assert floors.by_step[7] == pytest.approx(3e-4)
    assert floors.by_check["mean"].runs == 3


def test_a_broken_rerun_sets_no_floor():
    broken = CURVE.copy()
    broken[3] = math.nan
    assert floors_of([table(CURVE), table(broken)]) == Floors()


def test_first_divergence_with_floors_is_beyond_three_times_the_running_floor():
    """Floor 1e-5 from step 1 on (a single loud rerun step); d is 2e-5 to step 39, then 4e-5."""
    floors = Floors({}, {1: 1e-5, 2: 0.0})
    d = np.where(STEPS < 40, 2e-5, 4e-5)
    d[60:] = 2e-2
    finding = judge(table(CURVE), table(CURVE * np.exp(d)), floors=floors)
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence.at == 40


# --- printed digits


def printed(decimals):
    """As LingBot v2 prints: a loss that falls from .31 to .12."""
    return table(np.round(0.116 + 0.2 * np.exp(-STEPS / 20) + 0.01 * np.sin(STEPS), decimals), quantum=10.0**-decimals)


def test_four_decimals_resolve_the_limits_at_a_loss_of_a_tenth_and_blind_the_departure():
    """Half a unit of each side is 1e-4 in all: 3e-4 at the first step, 8.6e-4 at the end, 7e-4 in the mean."""
    finding = judge(printed(4), printed(4))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert check(finding, "step0").limit.resolution == pytest.approx(1e-4 / printed(4).loss[0])
    assert [each.name for each in finding.checks if each.state is State.BLIND] == ["departure"]
    twice = table(2 * printed(4).loss, quantum=1e-4)
    assert judge(twice, twice).outcome is Outcome.PASS


def test_three_decimals_cannot_resolve_the_first_step():
    """3.1e-3 is three times the limit of step0, which nothing loosens."""
    finding = judge(printed(3), printed(3))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert check(finding, "step0").state is State.BLIND
    assert check(finding, "step0").limit.resolution == pytest.approx(1e-3 / printed(3).loss[0])
    assert check(finding, "mean").state is State.OK
    blind = [item.params["checks"] for item in finding.notes if item.code == "loss-digits-blind"]
    assert "step0" in ", ".join(map(str, blind))


def test_digits_slightly_too_coarse_lift_the_limit_and_say_so():
    """Four decimals, the last ten losses at .0196 and more: the tail's digits are 1e-4 / .0198, over its 5e-3."""
    loss = np.where(STEPS > 90, 0.0196 + 1e-4 * (STEPS % 5), np.round(CURVE, 4))
    finding = judge(table(loss, quantum=1e-4), table(loss, quantum=1e-4))
    assert finding.outcome is Outcome.PASS
    assert check(finding, "tail").limit.effective == pytest.approx(np.mean(1e-4 / loss[90:]))
    assert next(item for item in finding.notes if item.code == "loss-digits-lifted").params["checks"] == "spike, tail"


# --- weak mode


def runs_of(side, count, shift=0.0, spread=1e-4, seed=0):
    offsets = np.random.default_rng(seed).normal(shift, spread, count)
    return evidence(side, *(table(CURVE * np.exp(offset)) for offset in offsets))


@pytest.mark.parametrize(("theirs", "outcome", "code"), [
    ({"count": 5}, Outcome.PASS, "loss-weak-compatible"),
    ({"count": 5, "shift": 1e-2}, Outcome.FAIL, "loss-weak-apart"),
    ({"count": 5, "spread": 5e-3}, Outcome.INCONCLUSIVE, "loss-weak-wide"),
    ({"count": 3}, Outcome.INCONCLUSIVE, "loss-weak-needs"),
])
def test_weak_mode_asks_for_equivalence_of_the_tails(theirs, outcome, code):
    finding = judge(runs_of("baseline", 6), runs_of("candidate", **theirs, seed=1), mode="weak")
    assert finding.outcome is outcome
    assert code in codes(finding)
    assert finding.mode == "weak"
    assert [each.name for each in finding.checks] == ["tail"]


def test_weak_mode_counts_a_repeated_run_once():
    twice = Evidence("candidate", "loss", runs_of("candidate", 4, seed=1).runs * 2)
    finding = judge(runs_of("baseline", 5), twice, mode="weak")
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert next(item for item in finding.notes if item.code == "loss-weak-needs").params["more"] == 1


def test_weak_mode_fails_where_one_side_breaks():
    theirs = runs_of("candidate", 4, seed=1)
    broken = CURVE.copy()
    broken[90] = math.nan
    both = Evidence("candidate", "loss", (*theirs.runs, *evidence("x", table(broken)).runs))
    assert judge(runs_of("baseline", 5), both, mode="weak").outcome is Outcome.FAIL


def test_weak_mode_wants_runs_of_one_length():
    theirs = [table(CURVE * (1 + 1e-4 * i)) for i in range(4)] + [table(CURVE[:50], STEPS[:50])]
    finding = judge(runs_of("baseline", 5), evidence("candidate", *theirs), mode="weak")
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-weak-uneven" in codes(finding)


def test_weak_runs_without_spread_prove_nothing():
    sides = [evidence(side, *[table(CURVE)] * 5) for side in ("baseline", "candidate")]
    assert judge(*sides, mode="weak").outcome is Outcome.INCONCLUSIVE


# --- cost


def test_a_cold_verdict_imports_neither_scipy_nor_pandas():
    code = ("import sys, pytest_migparity.judges.difftraj, pytest_migparity.readers.loss as r\n"
            "r.read_loss(b'step,loss\\n1,2.0\\n', 'x')\n"
            "print([m for m in ('scipy', 'pandas', 'tensorboard') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("first, declared, outcome", [(10, 10, "PASS"), (0, 10, "PASS"), (1, 10, "PASS"),
                                                      (10, 1, "INCONCLUSIVE"), (10, 5, "INCONCLUSIVE"),
                                                      (20, 10, "INCONCLUSIVE")])
def test_a_log_of_every_tenth_step_covers_the_recipe_only_where_that_was_declared(first, declared, outcome):
    """300 steps, logged every tenth from `first`; the steps in between are not missing if nobody promised them."""
    steps = np.arange(first, 301, 10)
    loss = 2.0 * np.exp(-steps / 90) + 0.2 + 0.05 * np.sin(2.3 * steps)
    sides = [Evidence(side, "loss", (Recorded(
        Trajectory(steps, {"loss": loss * ratio}, {"loss": np.zeros(steps.size)}, 10),
        Witness(side, "real", "loss.csv", side)),)) for side, ratio in (("baseline", 1.0), ("candidate", 1.0 + 1e-6))]
    finding = judge_loss(*sides, limits=default_limits(LEVELS["L5"]), floors=Floors(),
                         policy=Policy(steps=301 if first == 0 else 300, interval=declared))
    assert finding.outcome == outcome


def test_the_tail_is_the_signed_mean_of_the_last_tenth():
    """50 steps: d is 0 up to the 45th, then 2e-3, 2e-3, 2e-3, 2e-3, -2e-3: their mean is 1.2e-3, by hand."""
    step = np.arange(50)
    loss = 2.0 * np.exp(-step / 30) + 0.2 + 0.05 * np.sin(2.3 * step)
    d = np.zeros(50)
    d[45:] = [2e-3, 2e-3, 2e-3, 2e-3, -2e-3]
    pair = [Trajectory(step, {"loss": one}, {"loss": np.zeros(50)}) for one in (loss, loss * np.exp(d))]
    assert measure(*pair)["tail"] == pytest.approx(1.2e-3, rel=1e-9)


def test_weak_mode_judges_the_recipes_steps_and_the_learning_rate():
    """Six runs a side. Equal over the recipe's 50 steps, a third worse after them; then another learning rate."""
    rng = np.random.default_rng(8)

    def runs(side, rate=1e-4):
        found = []
        for i in range(6):
            each = table(CURVE * np.exp(rng.normal(0, 1e-4, 100)) * np.where(STEPS > 50, 1.0 + (side == "candidate") / 3, 1))
            rates = {"lr": np.full(100, rate)}
            found.append(Recorded(Trajectory(each.step, {**each.columns, **rates}, {**each.quantum, "lr": np.zeros(100)}),
                                  Witness(side, "real", f"{side}{i}", f"{side}{i}")))
        return Evidence(side, "loss", tuple(found))

    assert judge(runs("baseline"), runs("candidate"), mode="weak").outcome is Outcome.FAIL
    assert judge(runs("baseline"), runs("candidate"), mode="weak", steps=50).outcome is Outcome.PASS
    finding = judge(runs("baseline"), runs("candidate", 3e-4), mode="weak", steps=50)
    assert finding.outcome is Outcome.FAIL
    assert "loss-lr-differs" in codes(finding)
