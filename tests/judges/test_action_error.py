"""L6 on actions: what must be the same before numbers, the figures by hand, three outcomes, and what proves nothing."""

from dataclasses import replace

import numpy as np
import pytest
from outputs import chunks, codes, judged, outputs, values

from pytest_migparity.core.outputs import ActionRules
from pytest_migparity.core.verdict import Outcome, State

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


def spread(array):
    """Every dimension scaled to a standard deviation of exactly 1 and a mean of 0."""
    flat = array - array.mean((0, 1))
    return flat / flat.std((0, 1))


def apart(size, **more):
    """A pair whose dimensions differ by `size` std everywhere."""
    a = spread(chunks())
    return judged(outputs(a), outputs(a + size, **more))


# ---- three outcomes


@pytest.mark.parametrize("size, outcome", [
    (0.02, PASS), (0.0499, PASS), (0.0501, INCONCLUSIVE), (0.3, INCONCLUSIVE), (0.499, INCONCLUSIVE), (0.501, FAIL),
    (1.6, FAIL),
])
def test_below_a_twentieth_of_a_std_passes_above_a_half_fails_and_between_the_task_must_tell(size, outcome):
    finding = apart(size)
    assert finding.outcome is outcome
    assert values(finding)["close"] == pytest.approx(size)
    if outcome is INCONCLUSIVE:
        assert [check.blocked for check in finding.checks if check.state is State.BLIND] == ["action-ask-L7"]


def test_a_floor_lifts_what_is_close_up_to_its_cap_and_never_what_is_far():
    a = spread(chunks())
    assert judged(outputs(a), outputs(a + 0.1), floors={"close": 0.04}).outcome is PASS  # 3 x .04 = .12
    assert judged(outputs(a), outputs(a + 0.16), floors={"close": 0.4}).outcome is INCONCLUSIVE  # capped at .15
    assert judged(outputs(a), outputs(a + 0.6), floors={"far": 1.0, "close": 1.0}).outcome is FAIL


def test_one_value_in_three_hundred_that_is_far_off_is_open_and_not_passed():
    a = spread(chunks(60))
    b = a.copy()
    b[7, 2, 1] += 3.0
    finding = judged(outputs(a), outputs(b + 1e-4))
    assert finding.outcome is INCONCLUSIVE
    assert {check.name: check.blocked for check in finding.checks if check.blocked} == {"worst": "action-rare"}
    assert finding.first_divergence is None or finding.first_divergence.at.startswith("dim 1")


def test_the_dimension_that_is_wrong_is_named_with_its_values_where_it_is_worst():
    a = spread(chunks())
    b = a + 1e-3
    b[..., 2] = -a[..., 2]
    finding = judged(outputs(a, names=("x", "y", "gripper")), outputs(b, names=("x", "y", "gripper")))
    assert finding.outcome is FAIL
    sample, step = divmod(int(np.abs(a[..., 2]).argmax()), a.shape[1])
    assert finding.first_divergence.at == f"gripper of sample s{sample} at {step}"
    assert finding.first_divergence.baseline == -finding.first_divergence.candidate
    (hint,) = finding.hints
    assert (hint.params["name"], hint.params["slope"]) == ("gripper", pytest.approx(-1))


# ---- figures


def test_the_figures_are_those_of_a_hand_calculation():
    """Two dimensions of std 2 and 1; errors of .1 and of .03, with one of .5 and one of -.2."""
    a = np.zeros((16, 2, 2))
    a[::2, :, 0], a[1::2, :, 0], a[::2, :, 1], a[1::2, :, 1] = 2, -2, 1, -1
    b = a.copy()
    b[..., 0] += 0.1
    b[..., 1] += 0.03
    b[3, 1, 0] = a[3, 1, 0] + 0.5
    b[5, 0, 1] = a[5, 0, 1] - 0.2
    got = values(judged(outputs(a), outputs(b)))
    assert got["close"] == pytest.approx(max(0.5 / 2, 0.2 / 1))  # of 32 values the p99 is the largest
    assert got["worst"] == pytest.approx(0.25)
    assert got["max_abs"] == pytest.approx(0.5)
    assert got["mean_abs"] == pytest.approx((31 * 0.1 + 0.5 + 31 * 0.03 + 0.2) / 64)
    assert got["rmse"] == pytest.approx(np.sqrt((31 * 0.01 + 0.25 + 31 * 9e-4 + 0.04) / 64))
    rows = a.reshape(16, -1), b.reshape(16, -1)
    least = min(np.dot(x, y) / np.linalg.norm(x) / np.linalg.norm(y) for x, y in zip(*rows, strict=True))
    assert got["cosine"] == pytest.approx(least)


def test_the_p99_leaves_one_value_in_a_hundred_beyond_it():
    a = spread(chunks(200, 1, 1))
    b = a + 0.01
    b[:2] += 0.3  # 2 of 200 are one in a hundred
    assert values(judged(outputs(a), outputs(b)))["close"] == pytest.approx(0.01)
    b[2] += 0.3
    assert values(judged(outputs(a), outputs(b)))["close"] == pytest.approx(0.31)


def test_a_high_cosine_does_not_excuse_a_scaled_axis():
    """Cosine > .99 and half a std apart: the gate that others use would pass it."""
    a = spread(chunks(60, 5, 7))
    a[..., 0] *= 0.2  # a small dimension that carries the grasp
    b = a.copy()
    b[..., 0] *= 1.4
    finding = judged(outputs(a), outputs(b))
    assert values(finding)["cosine"] > 0.99
    assert finding.outcome is FAIL


def test_an_error_that_doubles_each_step_grows_by_two():
    a = spread(chunks(30, 6, 2))
    finding = judged(outputs(a), outputs(a + 1e-4 * 2.0 ** np.arange(6)[:, None]))
    assert values(finding)["growth"] == pytest.approx(2.0)


def test_gripper_commands_that_turned_are_counted_on_the_declared_side_of_the_threshold():
    a, b = spread(chunks(50, 2, 1)), None
    a = np.where(a > 0, 1.0, 0.0)
    b = a.copy()
    b[3, 0, 0] = 1 - b[3, 0, 0]
    rules = ActionRules(gripper=("g",), threshold=0.5)
    assert values(judged(outputs(a, names=("g",)), outputs(b, names=("g",)), rules=rules))["flips"] == 1 / 100
    assert "flips" not in values(judged(outputs(a), outputs(b)))


def test_an_undeclared_dimension_of_the_manifest_leaves_the_level_open():
    finding = judged(outputs(spread(chunks())), outputs(spread(chunks()) + 1e-3), rules=ActionRules(gripper=("claw",)))
    assert finding.outcome is INCONCLUSIVE
    assert "action-undeclared" in codes(finding)


def test_best_of_k_and_diversity_by_hand():
    """Two candidates at -1 and 1 on every dimension; the other side's both at 1: one is 0 away, the other 2."""
    a = np.zeros((20, 2, 1, 1))
    a[:, 0], a[:, 1] = -1, 1
    b = np.ones_like(a)
    got = values(judged(outputs(a), outputs(b)))
    assert got["best_of_k"] == pytest.approx(((2 + 0) / 2 + 0) / 2)
    assert got["diversity"] == 0
    again = values(judged(outputs(a), outputs(a[:, ::-1] + 1e-9)))
    assert again["best_of_k"] == pytest.approx(0, abs=1e-8)
    assert again["diversity"] == pytest.approx(1)


# ---- what must be the same before any number is


BASE = outputs(spread(chunks()), names=("x", "y", "z"), units=("m", "m", "m"))


@pytest.mark.parametrize("code, change", [
    ("action-noise", {"noise": ("other", *BASE.noise[1:])}),
    ("action-noise-unsaid", {"noise": ()}),
    ("action-steps", {"steps": 11}),
    ("action-normalisation", {"normalisation": "q01-q99", "normalisation_digest": "ab" * 8}),
    ("action-samples", {"sample": ("other", *BASE.sample[1:])}),
    ("action-names", {"names": ("x", "z", "y")}),
    ("action-names", {"units": ("mm", "m", "m")}),
    ("action-shapes", {"values": BASE.values[:, :, :4]}),
    ("action-shapes", {"values": np.repeat(BASE.values, 2, 1)}),
    ("action-replayed", {"source": "replay"}),
    ("action-kinds", {"kind": "embeddings"}),
    ("action-labels", {"label": tuple("ab" * 20)}),
])
def test_another_question_is_named_and_nothing_is_judged(code, change):
    """Even where the numbers agree to the bit."""
    finding = judged(BASE, replace(BASE, **change))
    assert (finding.outcome, finding.checks, finding.coverage.compared) == (INCONCLUSIVE, (), 0)
    assert code in codes(finding)


def test_fewer_samples_on_one_side_are_not_compared_as_far_as_they_go():
    finding = judged(BASE, BASE.rows(range(39)))
    assert finding.outcome is INCONCLUSIVE
    assert (finding.coverage.of, finding.coverage.baseline_only) == (40, 1)


def test_a_model_without_sampler_needs_no_noise():
    a = replace(BASE, steps=0, noise=())
    assert judged(a, replace(a, values=a.values + 1e-3)).outcome is PASS


# ---- whose question is answered


@pytest.mark.parametrize("ours, theirs, code", [
    (("gpu", "gpu"), ("npu", "npu"), "action-whole-stack"),
    (("gpu", "gpu"), ("gpu", "npu"), "action-weights-only"),
    (("gpu", "gpu"), ("npu", "gpu"), "action-inference-only"),
])
def test_the_verdict_names_the_question_it_answers(ours, theirs, code):
    a = replace(BASE, site=ours[0], trained=ours[1])
    finding = judged(a, replace(a, site=theirs[0], trained=theirs[1], values=a.values + 1e-3))
    assert finding.outcome is PASS
    assert code in codes(finding)


def test_two_runs_of_one_machine_compare_no_migration():
    a = replace(BASE, site="a100", trained="a100")
    finding = judged(a, replace(a, values=a.values + 1e-3))
    assert finding.outcome is INCONCLUSIVE
    assert "action-one-machine" in codes(finding)
    assert judged(a, replace(a, values=a.values + 1e-3), producer="rehearsal").outcome is PASS


def test_two_machines_that_agree_in_every_bit_are_one_file_handed_in_twice():
    assert judged(BASE, BASE).outcome is INCONCLUSIVE
    assert codes(judged(BASE, BASE)) >= {"action-identical"}
    assert judged(BASE, BASE, producer="rehearsal").outcome is PASS


# ---- what proves nothing, and what is broken


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_sided_nan_or_inf_fails_whatever_the_rest_says(bad):
    torn = BASE.values.copy()
    torn[4, 0, 1, 2] = bad
    for pair in ((BASE, replace(BASE, values=torn)), (replace(BASE, values=torn), BASE)):
        finding = judged(*pair)
        assert finding.outcome is FAIL
        assert "action-broken" in codes(finding)
        assert (finding.coverage.compared, finding.coverage.dropped) == (39, 1)


def test_nan_on_both_sides_at_one_place_proves_nothing():
    torn = BASE.values.copy()
    torn[4, 0, 1, 2] = np.nan
    finding = judged(replace(BASE, values=torn), replace(BASE, values=torn + 1e-3))
    assert finding.outcome is INCONCLUSIVE
    assert "action-broken-alike" in codes(finding)


def test_nan_everywhere_on_both_sides_is_open_and_does_not_crash():
    nothing = replace(BASE, values=np.full_like(BASE.values, np.nan))
    assert judged(nothing, nothing).outcome is INCONCLUSIVE


def test_outputs_that_are_the_same_whatever_the_input_prove_nothing():
    still = replace(BASE, values=np.broadcast_to(BASE.values[:1, :, :1], BASE.values.shape).copy())
    finding = judged(still, replace(still, values=still.values * 1.001))
    assert finding.outcome is INCONCLUSIVE
    assert "action-collapsed" in codes(finding)


def test_all_zeros_on_both_sides_prove_nothing():
    zeros = replace(BASE, values=np.zeros_like(BASE.values))
    assert judged(zeros, replace(zeros, values=-zeros.values)).outcome is INCONCLUSIVE


def test_a_candidate_that_collapsed_to_the_mean_fails():
    mean = np.broadcast_to(BASE.values.mean(0), BASE.values.shape)
    finding = judged(BASE, replace(BASE, values=mean.copy()))
    assert finding.outcome is FAIL


def test_a_constant_dimension_is_held_against_its_own_size():
    a = BASE.values.copy()
    a[..., 1] = 4.0
    b = a + 1e-3
    assert judged(replace(BASE, values=a), replace(BASE, values=b)).outcome is PASS
    b[..., 1] = 4.0 * 1.3
    finding = judged(replace(BASE, values=a), replace(BASE, values=b))
    assert finding.outcome is INCONCLUSIVE
    assert values(finding)["close"] == pytest.approx(0.3)


def test_a_padded_dimension_of_zeros_is_fine_while_it_stays_so_and_open_where_it_moves():
    a = BASE.values.copy()
    a[..., 2] = 0
    b = a + 1e-3
    b[..., 2] = 0
    finding = judged(replace(BASE, values=a), replace(BASE, values=b))
    assert finding.outcome is PASS
    assert "action-constant" in codes(finding)
    b[3, 0, 0, 2] = 1e-7
    finding = judged(replace(BASE, values=a), replace(BASE, values=b))
    assert finding.outcome is INCONCLUSIVE
    assert "action-no-scale" in codes(finding)


def test_thirteen_samples_are_too_few_for_a_pass_and_fourteen_are_enough():
    """(1 - 1/5)^13 = .055 and (1 - 1/5)^14 = .044."""
    few, enough = BASE.rows(range(13)), BASE.rows(range(14))
    assert judged(few, replace(few, values=few.values + 1e-3)).outcome is INCONCLUSIVE
    assert judged(enough, replace(enough, values=enough.values + 1e-3)).outcome is PASS


def test_no_samples_at_all():
    empty = BASE.rows([])
    finding = judged(empty, empty)
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"action-nothing"}


def test_a_dimension_without_any_scale_is_open_and_gives_no_infinite_figure():
    a = BASE.values.copy()
    a[..., 2] = 0
    b = a + 1e-3
    finding = judged(replace(BASE, values=a), replace(BASE, values=b))
    assert finding.outcome is INCONCLUSIVE
    assert "action-no-scale" in codes(finding)
    assert all(np.isfinite(value) for value in values(finding).values())


def test_an_axis_scaled_by_a_tenth_is_hinted_at_by_its_slope():
    b = BASE.values * np.array([1.0, 1.1, 1.0]) + 1e-4
    (hint,) = judged(BASE, replace(BASE, values=b)).hints
    assert (hint.code, hint.params["name"], hint.params["slope"]) == ("action-affine", "y", pytest.approx(1.1))
