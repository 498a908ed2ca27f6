"""What holds for every pair of trajectories, and the statistics against scipy's."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from pytest_migparity.core.evidence import Evidence, Policy, Recorded, Trajectory
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.judges import traj_stats
from pytest_migparity.judges.difftraj import floors_of, judge_loss, measure
from pytest_migparity.judges.loss_weak import equivalence

LIMITS = default_limits(LEVELS["L5"])
DISTANCES = ("step0", "first3", "final", "mean", "tail", "drift")
N = 40


def table(loss, step=None):
    loss = np.asarray(loss, dtype=float)
    step = np.arange(1, loss.size + 1) if step is None else np.asarray(step)
    return Trajectory(step, {"loss": loss}, {"loss": np.zeros(loss.shape)})


def judge(baseline, candidate, steps=N):
    sides = [Evidence(side, "loss", (Recorded(each, Witness(side, "real", side, side)),))
             for side, each in (("baseline", baseline), ("candidate", candidate))]
    return judge_loss(*sides, limits=LIMITS, floors=Floors(), policy=Policy(steps=steps))


def losses(draw):
    """A falling curve with a texture: distinct positive values."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return 3.0 * np.exp(-np.arange(N) / draw(st.floats(5, 100))) + 0.3 + rng.uniform(0, 0.2, N)


curves = st.composite(losses)()
differences = st.builds(lambda seed, size, kind: _difference(seed, 10.0**size, kind), st.integers(0, 2**32 - 1),
                        st.floats(-8, -1), st.sampled_from(["noise", "growth", "offset", "late", "swing"]))


def _difference(seed, size, kind):
    t = np.arange(N)
    return size * {"noise": np.random.default_rng(seed).normal(size=N), "growth": t / N, "offset": np.ones(N),
                   "late": (t == N - 1).astype(float), "swing": np.sin(t * 2 * np.pi / 8)}[kind]


@given(curves, differences)
def test_swapping_the_sides_changes_no_statistic_and_never_pass_into_fail(curve, d):
    """The departure weighs the baseline's movement: at a limit's edge one way may be in doubt, no more."""
    one, other = measure(table(curve), table(curve * np.exp(d))), measure(table(curve * np.exp(d)), table(curve))
    assert one == pytest.approx(other, rel=1e-12, abs=1e-15)
    there, back = judge(table(curve), table(curve * np.exp(d))), judge(table(curve * np.exp(d)), table(curve))
    assert {there.outcome, back.outcome} != {Outcome.PASS, Outcome.FAIL}


@given(curves, differences, st.floats(-6, 6))
def test_units_do_not_matter(curve, d, power):
    scale = 10.0**power
    plain = measure(table(curve), table(curve * np.exp(d)))
    scaled = measure(table(curve * scale), table(curve * np.exp(d) * scale))
    assert scaled == pytest.approx(plain, rel=1e-6, abs=1e-12)


@given(curves, differences, st.floats(1.01, 50))
def test_distances_grow_with_the_injected_difference(curve, d, factor):
    small = measure(table(curve), table(curve * np.exp(d)))
    large = measure(table(curve), table(curve * np.exp(d * factor)))
    for name in DISTANCES:
        assert large[name] == pytest.approx(small[name] * factor, rel=1e-6, abs=1e-12)


@given(curves, differences, st.randoms(use_true_random=False))
def test_row_order_does_not_matter(curve, d, random):
    step = list(range(1, N + 1))
    mixed = random.sample(step, N)
    rows = np.array(mixed) - 1
    other = curve * np.exp(d)
    assert judge(table(curve), table(other)) == judge(table(curve), table(other[rows], mixed))


masks = st.lists(st.booleans(), min_size=N, max_size=N).map(np.array)


@given(curves, differences, masks, masks)
def test_dropping_rows_never_passes_where_the_recipe_says_how_many(curve, d, keep_a, keep_b):
    assume(not (keep_a.all() and keep_b.all()))
    step = np.arange(1, N + 1)
    finding = judge(table(curve[keep_a], step[keep_a]), table((curve * np.exp(d))[keep_b], step[keep_b]))
    assert finding.outcome is not Outcome.PASS


@given(curves, differences, masks, st.booleans())
def test_dropping_rows_of_one_side_never_passes_without_a_recipe(curve, d, keep, ours):
    assume(not keep.all())
    step = np.arange(1, N + 1)
    other = curve * np.exp(d)
    whole, part = (other, curve) if ours else (curve, other)
    pair = (table(whole), table(part[keep], step[keep]))
    assert judge(*pair, steps=None).outcome is not Outcome.PASS
    assert judge(*reversed(pair), steps=None).outcome is not Outcome.PASS


@given(curves, differences, masks, masks, st.sampled_from([math.nan, math.inf, -math.inf]))
def test_non_finite_losses_never_pass_and_one_sided_ones_fail(curve, d, bad_a, bad_b, value):
    assume(bad_a.any() or bad_b.any())
    a, b = np.where(bad_a, value, curve), np.where(bad_b, value, curve * np.exp(d))
    finding = judge(table(a), table(b))
    assert finding.outcome is not Outcome.PASS
    if (bad_a != bad_b).any():
        assert finding.outcome is Outcome.FAIL
        assert finding.first_divergence.at <= 1 + int(np.flatnonzero(bad_a != bad_b)[0])


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=30),
       st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=30), st.sampled_from(["strict", "weak", "?"]))
def test_any_floats_raise_nothing(a, b, mode):
    sides = [Evidence(side, "loss", (Recorded(table(each), Witness(side, "real", side, "")),))
             for side, each in (("baseline", a), ("candidate", b))]
    finding = judge_loss(*sides, limits=LIMITS, floors=Floors(), policy=Policy(mode=mode))
    if not np.isfinite([*a, *b]).all():
        assert finding.outcome is not Outcome.PASS
    assert all(np.isfinite(floor.value) for floor in floors_of([table(a), table(b)]).by_check.values())


# --- against scipy


ties = st.lists(st.integers(1, 12), min_size=3, max_size=60)


@given(ties, st.integers(0, 2**32 - 1))
def test_spearman_is_scipys_with_ties(values, seed):
    a = np.array(values, dtype=float)
    b = np.random.default_rng(seed).integers(1, 9, a.size).astype(float)
    assume(np.unique(a).size > 1 and np.unique(b).size > 1)
    assert traj_stats.spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)


@given(ties)
def test_tie_reliability_is_scipys_tie_correction(values):
    a = np.array(values, dtype=float)
    assert traj_stats.tie_reliability(a) == pytest.approx(stats.tiecorrect(stats.rankdata(a)), abs=1e-12)


@given(ties)
def test_mid_ranks_correlate_with_full_ranks_as_the_docstring_says(values):
    """The closed form behind the resolution of spearman: corr(any full ranking, mid-ranks) = sqrt(reliability)."""
    a = np.array(values, dtype=float)
    assume(np.unique(a).size > 1)
    full = np.empty(a.size)
    full[np.argsort(a, kind="stable")] = np.arange(a.size)
    expected = math.sqrt(traj_stats.tie_reliability(a))
    assert np.corrcoef(full, stats.rankdata(a))[0, 1] == pytest.approx(expected, abs=1e-9)


@given(curves, differences, masks)
def test_drift_is_scipys_slope_over_the_run(curve, d, keep):
    assume(keep.sum() >= 3)
    step = np.arange(1, N + 1)[keep]
    x = (step - step[0]) / (step[-1] - step[0])
    figures = measure(table(curve[keep], step), table((curve * np.exp(d))[keep], step))
    assert figures["drift"] == pytest.approx(abs(stats.linregress(x, d[keep]).slope), rel=1e-6, abs=1e-12)


@given(curves, curves)
def test_order_is_scipys_spearman_of_first_differences(a, b):
    expected = stats.spearmanr(np.diff(np.log(a)), np.diff(np.log(b))).statistic
    assert measure(table(a), table(b))["order"] == pytest.approx(expected, abs=1e-12)


@given(curves, st.integers(0, 2**32 - 1), st.sampled_from([1e-4, 1e-3, 1e-2]))
def test_rounding_alone_stays_within_the_stated_resolution(a, seed, quantum):
    """Both sides print one and the same curve, each with its own error of up to half a unit."""
    errors = np.random.default_rng(seed).uniform(-quantum / 2, quantum / 2, (2, N))
    sides = [traj_stats.series_of(Trajectory(np.arange(1, N + 1), {"loss": a + e}, {"loss": np.full(N, quantum)}))
             for e in errors]
    pair = traj_stats.align(*sides)
    figures, digits = traj_stats.statistics(pair), traj_stats.resolutions(pair)
    for name in DISTANCES:
        assert figures[name] <= digits[name] * (1 + quantum) + 1e-12, name


def test_attenuation_of_order_agrees_with_a_simulation():
    """Mean Spearman of first differences of one curve printed twice with dither, against the formula."""
    rng = np.random.default_rng(1)
    n, quantum = 400, 8e-3
    curve = 1.0 + 0.02 * rng.normal(size=n)
    observed, stated = [], []
    for _ in range(60):
        sides = [np.round((curve + shift) / quantum) * quantum for shift in rng.uniform(0, quantum, 2)]
        observed.append(stats.spearmanr(*(np.diff(np.log(side)) for side in sides)).statistic)
        stated.append(math.sqrt(math.prod(
            traj_stats.difference_reliability(side, np.full(n, quantum)) for side in sides)))
    assert 1 - np.mean(stated) == pytest.approx(1 - np.mean(observed), rel=0.25)
    assert np.mean(observed) < 0.99  # the digits do matter in this example


@given(st.lists(st.floats(-1, 1), min_size=5, max_size=12, unique=True),
       st.lists(st.floats(-1, 1), min_size=5, max_size=12, unique=True))
def test_equivalence_interval_is_scipys_welch_interval(a, b):
    a, b = np.array(a), np.array(b)
    assume(a.std() > 1e-6 and b.std() > 1e-6)
    result = equivalence(a, b)
    interval = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.90)
    assert (result.lower, result.upper) == pytest.approx((interval.low, interval.high), rel=1e-6, abs=1e-9)
