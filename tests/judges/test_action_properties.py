"""L6 under change: of order, of side, of unit, of the size of an error, and of what evidence is left."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outputs import judged, outputs, values

from pytest_migparity.core.outputs import ActionRules, Pose
from pytest_migparity.core.verdict import Outcome

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
RANK = {PASS: 0, INCONCLUSIVE: 1, FAIL: 2}
QUIET = settings(deadline=None, derandomize=True, database=None, max_examples=60)
ABSOLUTE = ("max_abs", "mean_abs", "rmse")
RELATIVE = ("close", "far", "worst", "cosine", "growth", "best_of_k", "diversity")
SYMMETRIC = ("max_abs", "mean_abs", "rmse", "cosine", "flips", "turn", "turn_max", "best_of_k")
NAMES = ("x", "rx", "ry", "rz", "g")
RULES = ActionRules(gripper=("g",), poses=(Pose("axis-angle", ("rx", "ry", "rz")),))
SIZES = st.floats(-4, 0.5).map(lambda power: 10.0**power)


@st.composite
def pairs(draw, dims=5):
    """A pair of chunks with one or two candidates, and an error of some shape and size on the candidate's."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (draw(st.integers(14, 40)), draw(st.integers(1, 2)), draw(st.integers(1, 5)), dims)
    a = random.standard_normal(shape)
    error = random.standard_normal(shape) * (random.random(shape) < draw(st.sampled_from([0.02, 0.3, 1.0])))
    error *= np.where(np.arange(dims) < draw(st.integers(1, dims)), 1, 0)
    return a, error + 1e-9 * random.standard_normal(shape)


def verdict(a, b, rules=None):
    return judged(outputs(a, names=NAMES), outputs(b, names=NAMES), rules=rules)


@QUIET
@given(pairs(), SIZES, st.randoms(use_true_random=False))
def test_the_order_of_the_samples_changes_nothing(pair, size, random):
    a, error = pair
    ours, theirs = outputs(a, names=NAMES), outputs(a + size * error, names=NAMES)
    order = list(range(len(a)))
    random.shuffle(order)
    first, mixed = judged(ours, theirs, rules=RULES), judged(ours, theirs.rows(order), rules=RULES)
    assert mixed == first
    both = judged(ours.rows(order), theirs.rows(order), rules=RULES)
    assert both.outcome is first.outcome
    assert values(both) == pytest.approx(values(first), rel=1e-9, nan_ok=True)


@QUIET
@given(pairs(), SIZES)
def test_the_other_way_round_the_symmetric_figures_stay(pair, size):
    a, error = pair
    b = a + size * error
    one, other = values(verdict(a, b, RULES)), values(verdict(b, a, RULES))
    assert {name: other[name] for name in SYMMETRIC if name in one and name != "best_of_k"} == \
        pytest.approx({name: one[name] for name in SYMMETRIC if name in one and name != "best_of_k"}, rel=1e-9, abs=1e-12)


@QUIET
@given(pairs(), SIZES, st.integers(-20, 20).map(lambda power: 2.0**power))  # which rounds nothing
def test_another_unit_scales_the_absolute_figures_and_nothing_else(pair, size, unit):
    a, error = pair
    b = a + size * error
    one, other = verdict(a, b), verdict(unit * a, unit * b)
    assert other.outcome is one.outcome
    for name in ABSOLUTE:
        assert values(other)[name] == pytest.approx(unit * values(one)[name], rel=1e-12)
    for name in RELATIVE:
        if name in values(one):
            assert values(other)[name] == pytest.approx(values(one)[name], rel=1e-9, abs=1e-12, nan_ok=True), name


@QUIET
@given(pairs(), SIZES, st.floats(1, 30))
def test_a_larger_error_never_helps(pair, size, more):
    a, error = pair
    small, large = verdict(a, a + size * error), verdict(a, a + more * size * error)
    assert RANK[large.outcome] >= RANK[small.outcome]
    for name in (*ABSOLUTE, "close", "worst"):
        assert values(large)[name] >= values(small)[name] * (1 - 1e-9)


@QUIET
@given(pairs(), st.floats(0.6, 30), st.integers(0, 4))
def test_an_error_of_more_than_half_a_std_in_any_dimension_is_never_passed(pair, size, k):
    a, _ = pair
    b = a.copy()
    b[..., k] += size * a[..., k].std()
    assert verdict(a, b).outcome is FAIL


@QUIET
@given(pairs(), SIZES, st.sampled_from(["noise", "steps", "names", "normalisation", "sample", "cut", "nan"]), st.data())
def test_what_is_taken_away_or_changed_never_makes_a_pass(pair, size, what, data):
    a, error = pair
    ours, theirs = outputs(a, names=NAMES), outputs(a + size * error, names=NAMES)
    before = judged(ours, theirs).outcome
    row = data.draw(st.integers(0, len(a) - 1))
    torn = theirs.values.copy()
    torn[row, 0, 0, 0] = np.nan
    other = {
        "noise": lambda: replace(theirs, noise=(*theirs.noise[:row], "?", *theirs.noise[row + 1:])),
        "steps": lambda: replace(theirs, steps=9), "names": lambda: replace(theirs, names=NAMES[::-1]),
        "normalisation": lambda: replace(theirs, normalisation="min-max", normalisation_digest="0" * 16),
        "sample": lambda: replace(theirs, sample=(*theirs.sample[:row], "?", *theirs.sample[row + 1:])),
        "cut": lambda: theirs.rows([k for k in range(len(a)) if k != row]),
        "nan": lambda: replace(theirs, values=torn),
    }[what]()
    after = judged(ours, other).outcome
    assert after is not PASS
    assert before in (PASS, INCONCLUSIVE, FAIL)
