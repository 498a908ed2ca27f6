"""Which steps must be there whatever was declared, and numbers at the ends of their range."""

import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_migparity.core.evidence import Evidence, Policy, Recorded, Trajectory
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, Verdict, Witness, note
from pytest_migparity.judges.difftraj import floors_of, judge_loss
from pytest_migparity.judges.loss_notes import DOUBTFUL
from pytest_migparity.judges.traj_align import ranges
from pytest_migparity.readers.repeats import usual_interval

LIMITS = default_limits(LEVELS["L5"])


def evidence(side, step, loss, quantum=0.0, repairs=()):
    step = np.asarray(step)
    table = Trajectory(step, {"loss": np.asarray(loss, dtype=float)}, {"loss": np.full(step.shape, quantum)},
                       usual_interval(step))
    return Evidence(side, "loss", (Recorded(table, Witness(side, "real", side, side), repairs),))


def curve(step):
    step = np.asarray(step, dtype=float)
    return 2.0 * np.exp(-step / 40) + 0.5 + 0.05 * np.sin(2.3 * step)


def judge(ours, theirs, **policy):
    return judge_loss(evidence("baseline", *ours), evidence("candidate", *theirs), limits=LIMITS, floors=Floors(),
                      policy=Policy(**policy))


def alike(step, **policy):
    """Both sides logged these steps, and agree."""
    return judge((step, curve(step)), (step, curve(step) * (1 + 1e-7)), **policy)


# --- a declared interval never excuses what the logs themselves promise


@pytest.mark.parametrize(("steps", "interval"), [(50, 50), (50, 25), (1000, 100_000), (1000, 1000), (10**30, 10**30)])
def test_a_log_of_every_step_that_ends_early_is_not_covered_by_a_wide_interval(steps, interval):
    finding = alike(np.arange(1, 22), steps=steps, interval=interval)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert (finding.coverage.compared, finding.coverage.of) == (21, min(steps, 2**53))


@pytest.mark.parametrize("step", [np.arange(1, 301), np.arange(5, 301, 5), np.arange(10, 301, 10),
                                  np.append(1, np.arange(10, 301, 10)), np.arange(9, 300, 10), np.arange(0, 300, 10)])
def test_a_log_as_dense_as_declared_or_denser_passes(step):
    """Every step, every fifth, every tenth: from 10, with the first one added, from 9 and from 0."""
    assert alike(step, steps=300, interval=10).outcome is Outcome.PASS


@given(st.sets(st.integers(1, 60), min_size=20), st.integers(1, 200))
def test_what_passes_covers_the_recipe_at_its_own_interval(kept, interval):
    step = np.array(sorted(kept))
    finding = alike(step, steps=60, interval=interval)
    if finding.outcome is Outcome.PASS:
        stride = min(interval, usual_interval(step))
        assert finding.coverage.compared == finding.coverage.of >= 60 // stride
        assert step[0] <= stride
        assert step[-1] > 60 - stride
        assert np.diff(step).max() <= stride


@given(st.sets(st.integers(1, 60), min_size=20, max_size=59))
def test_rows_dropped_on_both_sides_never_pass_where_every_step_was_declared(kept):
    assert alike(np.array(sorted(kept)), steps=60).outcome is Outcome.INCONCLUSIVE


def test_weak_mode_knows_the_interval():
    step = np.arange(10, 301, 10)
    sides = [Evidence(side, "loss", tuple(
        evidence(f"{side}{i}", step, curve(step) * (1 + 1e-4 * shift * i)).runs[0] for i in range(5)))
        for side, shift in (("baseline", 1.0), ("candidate", -1.0))]
    finding = judge_loss(*sides, limits=LIMITS, floors=Floors(), policy=Policy(mode="weak", steps=300, interval=10))
    assert "loss-weak-uneven" not in [item.code for item in finding.notes]


# --- holes are counted, not built


@pytest.mark.parametrize(("steps", "of"), [(None, 20 * 10**6 + 21), (10**12, 10**12)])
def test_holes_of_millions_of_steps_cost_nothing_and_are_counted(steps, of):
    """1 to 21, then 20 steps 10^6 apart: with the recipe's 10^12 likewise, nothing but 41 steps is there."""
    step = np.concatenate([np.arange(1, 22), 21 + 10**6 * np.arange(1, 21)])
    tracemalloc.start()
    start = time.process_time()
    finding = judge((step, np.linspace(3, 1, 41)), (step, np.linspace(3, 1, 41) * (1 + 1e-7)), steps=steps)
    took, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert (finding.coverage.compared, finding.coverage.of) == (41, of)
    assert next(item for item in finding.notes if item.code == "loss-missing").params["count"] == of - 41
    assert took < 2
    assert peak < 64 * 2**20


def test_steps_of_one_side_beside_uncounted_holes_are_counted_by_side():
    step = np.concatenate([np.arange(1, 31), [10**7, 10**7 + 1]])
    finding = judge((step, curve(step)), (step[:-1], curve(step[:-1])))
    missing = {item.params["side"]: item.params["count"] for item in finding.notes if item.code == "loss-missing"}
    assert missing == {"both": 10**7 - 31, "candidate": 1}
    assert (finding.coverage.baseline_only, finding.coverage.candidate_only) == (1, 0)


def test_many_ranges_are_named_by_the_first_few():
    assert ranges(np.array([], dtype=int)) == ""
    assert ranges(np.array([3, 4, 5, 9, 20, 21])) == "3-5, 9, 20-21"
    assert ranges(np.array([10, 20, 30, 50]), 10) == "10-30, 50"
    start = time.process_time()
    assert ranges(np.arange(0, 4_000_000, 2)) == "0, 2, 4, 6, 8, 10, ... (1999994 more)"
    assert time.process_time() - start < 1


@pytest.mark.parametrize("step", [2**63 - 40 + np.arange(40), -(2**63) + np.arange(40),
                                  np.arange(40, dtype=np.uint64) + 2**63])
def test_steps_that_no_run_has_are_no_evidence(step):
    table = Trajectory(step, {"loss": np.linspace(2, 1, 40)}, {})
    sides = [Evidence(side, "loss", (Recorded(table, Witness(side, "real", side, side)),))
             for side in ("baseline", "candidate")]
    assert judge_loss(*sides, limits=LIMITS, floors=Floors(), policy=Policy()).outcome is Outcome.INCONCLUSIVE


# --- the ends of float64; warnings are errors here


LARGE, SMALL, DENORMAL = 1.7e308, 1e-300, 5e-324


@pytest.mark.parametrize("quantum", [0.0, 1e-300, 1.0, 1e300, np.inf, np.nan])
@pytest.mark.parametrize(("ours", "theirs"), [(LARGE, DENORMAL), (DENORMAL, LARGE), (LARGE, 1.0), (SMALL, 1.0),
                                              (LARGE, -LARGE), (DENORMAL, DENORMAL), (LARGE, LARGE), (0.0, DENORMAL)])
@pytest.mark.parametrize("shift", [0, 1])
def test_losses_at_the_ends_of_their_range_raise_and_warn_nothing(ours, theirs, quantum, shift):
    step = np.arange(1, 31)
    texture = 1 - 0.4 * curve(step) / 3
    finding = judge((step, ours * texture, quantum), (step + shift, theirs * texture, quantum))
    assert (finding.outcome is Outcome.FAIL) <= (ours != theirs)
    assert finding.outcome is not Outcome.PASS
    Verdict.from_json(Verdict("L5", "m", "main", finding).to_json())
    floors_of([evidence("x", step, ours * texture, quantum).runs[0].table,
               evidence("x", step, theirs * texture, quantum).runs[0].table])


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(finite, finite, finite), min_size=20, max_size=40), st.sampled_from(["strict", "weak"]))
def test_any_finite_losses_and_quanta_raise_and_warn_nothing(rows, mode):
    a, b, quantum = np.array(rows).T
    step = np.arange(1, len(rows) + 1)
    sides = [Evidence(side, "loss", tuple(Recorded(
        Trajectory(step, {"loss": loss, "lr": loss, "grad_norm": loss}, {"loss": quantum, "lr": quantum}),
        Witness(side, "real", side, f"{side}{i}")) for i in range(1 if mode == "strict" else 5)))
        for side, loss in (("baseline", a), ("candidate", b))]
    finding = judge_loss(*sides, limits=LIMITS, floors=Floors(), policy=Policy(mode=mode))
    if not ((a > 0) & (b > 0)).all():
        assert finding.outcome is not Outcome.PASS


def test_a_ratio_beyond_float64_is_a_finite_difference():
    """ln(1.7e308 / 5e-324) = 1454.5: no float64 holds the ratio, the logarithms do."""
    step = np.arange(1, 31)
    texture = np.linspace(1, 0.9, 30)
    finding = judge((step, np.full(30, DENORMAL)), (step, LARGE * texture))
    assert next(check for check in finding.checks if check.name == "step0").value == pytest.approx(1454.5, abs=0.5)


def test_half_a_million_steps_are_judged_in_seconds():
    step = np.arange(1, 500_001)
    noise = 1e-7 * np.random.default_rng(0).normal(size=step.size)
    loss = 2 + np.sin(step * 0.7) + 1e-7 * step
    start = time.process_time()
    assert judge((step, loss), (step, loss * (1 + noise)), steps=500_000).outcome is Outcome.PASS
    assert time.process_time() - start < 5


# --- what the readers did


@pytest.mark.parametrize("code", ["read-resumed", "read-torn-line", "read-no-value", "read-repeated", "read-thousands"])
@pytest.mark.parametrize("side", [0, 1])
def test_a_pass_says_what_the_readers_did(code, side):
    step = np.arange(1, 41)
    repairs = [(), ()]
    repairs[side] = (note(code, file="x"),)
    finding = judge((step, curve(step), 0.0, repairs[0]), (step, curve(step) * (1 + 1e-7), 0.0, repairs[1]))
    assert finding.outcome is Outcome.PASS
    assert repairs[side][0] in finding.notes


@pytest.mark.parametrize("code", sorted(DOUBTFUL))
@pytest.mark.parametrize("factor", [1 + 1e-7, 1.5])
@pytest.mark.parametrize("side", [0, 1])
def test_rows_in_doubt_neither_pass_nor_fail(code, factor, side):
    step = np.arange(1, 41)
    repairs = [(), ()]
    repairs[side] = (note(code, file="x"),)
    finding = judge((step, curve(step), 0.0, repairs[0]), (step, curve(step) * factor, 0.0, repairs[1]))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert repairs[side][0] in finding.notes


def test_weak_mode_does_not_trust_rows_in_doubt():
    step = np.arange(1, 41)
    rng = np.random.default_rng(0)

    def runs(side, repairs):
        return Evidence(side, "loss", tuple(evidence(f"{side}{i}", step, curve(step) * np.exp(shift), 0.0, repairs
                                                     ).runs[0] for i, shift in enumerate(rng.normal(0, 1e-4, 5))))

    for repairs, outcome in (((), Outcome.PASS), ((note("read-repeat-differs", file="x"),), Outcome.INCONCLUSIVE)):
        finding = judge_loss(runs("baseline", ()), runs("candidate", repairs), limits=LIMITS, floors=Floors(),
                             policy=Policy(mode="weak"))
        assert finding.outcome is outcome


@given(st.integers(2, 4), st.integers(20, 40), st.booleans())
def test_ranks_in_one_log_are_never_judged_by_one_of_them(ranks, n, blocks):
    """Every step once per rank, each rank with its own loss: row by row, or rank after rank."""
    from pytest_migparity.readers.loss import read_loss

    rows = [(step, rank) for step in range(1, n + 1) for rank in range(ranks)]
    rows = sorted(rows, key=lambda row: row[::-1]) if blocks else rows
    text = "step,loss\n" + "".join(f"{step},{curve(step) * (1.5 if rank else 1.0):.9f}\n" for step, rank in rows)
    reading = read_loss(text.encode(), "ranks.csv")
    assume(reading.table.step.size == n)
    step = np.arange(1, n + 1)
    for last in (1.0, 1.5):
        ours = evidence("baseline", step, curve(step) * last * (1 + 1e-7))
        theirs = Evidence("candidate", "loss", (Recorded(
            reading.table, Witness("candidate", "real", "ranks", "ranks"), reading.repairs),))
        finding = judge_loss(ours, theirs, limits=LIMITS, floors=Floors(), policy=Policy())
        assert finding.outcome is Outcome.INCONCLUSIVE
