"""L4: each number of an optimizer step, with values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from recordings import codes, draws, event, judged, normal, recording

from pytest_migparity.core.verdict import Outcome, State
from pytest_migparity.wire.record import Facts

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
GRAD, UPDATE = normal(40, 30, seed=5), 1e-3 * normal(40, 30, seed=6)
ALL = {"loss": 2.0, "clip_factor": 0.5, "moved": 1200, "parameters": 1200, "skipped": False}


def tensors(grad=GRAD, update=UPDATE, step=0, stage="grad"):
    return [event(stage, "w", grad, step), event("update", "w", update, step)]


def steps(*facts, events=None, **more):
    """A recording of one step's tensors, and the facts of as many steps as are given."""
    return recording(tensors() if events is None else events,
                     [Facts(number, **{**ALL, **each}) for number, each in enumerate(facts)], **more)


def figures(finding):
    return {check.name: check.value for check in finding.checks}


def states(finding):
    return {check.name: check.state for check in finding.checks}


def test_equal_steps_pass_with_every_check():
    finding = judged("L4", steps({}), steps({}))
    assert finding.outcome is PASS
    assert figures(finding) == dict.fromkeys(("loss", "grad", "update", "clip", "skipped", "moved"), 0.0)


@pytest.mark.parametrize("name, change, value, outcome", [
    ("loss", {"loss": 2.001}, 5e-4, PASS),
    ("loss", {"loss": 2.004}, 2e-3, FAIL),
    ("clip", {"clip_factor": 0.504}, 1 - 0.5 / 0.504, PASS),
    ("clip", {"clip_factor": 0.6}, 1 - 0.5 / 0.6, FAIL),
    ("clip", {"clip_factor": 1.0}, 0.5, FAIL),
    ("moved", {"moved": 1194}, 6 / 1200, PASS),
    ("moved", {"moved": 1000}, 200 / 1200, FAIL),
    ("moved", {"moved": 0}, 1.0, FAIL),
    ("skipped", {"skipped": True}, 1, FAIL),
])
def test_a_number_of_the_step_is_held_against_its_limit(name, change, value, outcome):
    finding = judged("L4", steps({}), steps(change))
    assert figures(finding)[name] == pytest.approx(value, rel=1e-9)
    assert states(finding)[name] is (State.OK if outcome is PASS else State.VIOLATED)
    assert finding.outcome is outcome


def test_a_gradient_is_held_in_units_of_precision_and_an_update_relatively():
    """3 and 9 eps of float32; .02 and .2 of an update."""
    def off(array, relative):
        noise = draws(8).standard_normal(array.shape)
        return (array + noise * relative * np.linalg.norm(array) / np.linalg.norm(noise)).astype(np.float32)

    for size, update, outcome in ((3, 0.02, PASS), (9, 0.02, FAIL), (3, 0.2, FAIL)):
        other = tensors(off(GRAD, size * 2.0**-21), off(UPDATE, update))
        finding = judged("L4", steps({}), steps({}, events=other))
        assert figures(finding)["grad"] == pytest.approx(size, rel=0.3)
        assert figures(finding)["update"] == pytest.approx(update, rel=0.3)
        assert finding.outcome is outcome


@pytest.mark.parametrize("stage", ["grad", "grad-reduced", "grad-clipped"])
@pytest.mark.parametrize("change", [np.negative, lambda x: np.ascontiguousarray(x[::-1]), lambda x: 0 * x,
                                    lambda x: 2 * x], ids=["negated", "reversed", "zero", "doubled"])
def test_a_gradient_that_is_wrong_at_one_stage_fails_there(stage, change):
    sides = (steps({}, events=[*tensors(), event(stage, "v", each)]) for each in (GRAD, change(GRAD).astype(np.float32)))
    finding = judged("L4", *sides)
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == f"step 0 {stage} v"


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_clip_factor_that_is_no_number_fails_at_any_step(wrong, place):
    good = [{}, {}, {}]
    bad = [{"clip_factor": wrong} if number == place else {} for number in range(3)]
    for pair in ((steps(*good), steps(*bad)), (steps(*bad), steps(*good))):
        finding = judged("L4", *pair)
        assert finding.outcome is FAIL
        assert finding.first_divergence.at == place
    alike = judged("L4", steps(*bad), steps(*bad))
    assert alike.outcome is INCONCLUSIVE
    assert codes(alike) == {"record-broken-alike"}


@pytest.mark.parametrize("loss", [0.0, math.nan, math.inf])
def test_a_loss_that_is_no_loss_fails_on_one_side_and_is_open_on_both(loss):
    for bad in ([{"loss": loss}], [{}, {"loss": loss}]):
        good = [{} for _ in bad]
        assert judged("L4", steps(*good), steps(*bad)).outcome is FAIL
        assert judged("L4", steps(*bad), steps(*good)).outcome is FAIL
        alike = judged("L4", steps(*bad), steps(*bad))
        assert alike.outcome is INCONCLUSIVE
        assert "step-loss-vacuous" in codes(alike)


# ---- what one side alone states


@pytest.mark.parametrize("name, told", [("clip_factor", "clip"), ("skipped", "skipped"), ("moved", "moved"),
                                        ("loss", "loss")])
def test_a_number_of_one_side_alone_is_open(name, told):
    silent = steps({}, {name: None})
    for pair in ((steps({}, {}), silent), (silent, steps({}, {}))):
        finding = judged("L4", *pair)
        assert finding.outcome is INCONCLUSIVE
        assert [item.params["name"] for item in finding.notes if item.code == "step-one-sided"] == [told]


def test_a_loss_that_one_rank_does_not_state_is_open():
    ranks = [tuple(steps({"loss": loss}, rank=rank, world=2) for rank, loss in enumerate(losses))
             for losses in ((2.0, 2.0), (2.0, None))]
    assert judged("L4", ranks[0], ranks[0]).outcome is PASS
    assert judged("L4", *ranks).outcome is INCONCLUSIVE


def test_steps_that_one_side_does_not_tell_of_are_open():
    """A candidate that leaves out the steps that it skipped has skipped none of those that it tells of."""
    baseline = steps(*[{}] * 20)
    finding = judged("L4", baseline, steps({}))
    assert finding.outcome is INCONCLUSIVE
    (item,) = finding.notes
    assert (item.code, item.params) == ("step-facts-one-sided", {"side": "baseline", "count": 19, "step": 1})


def test_equal_shares_of_other_numbers_of_weights_are_open():
    half = steps({"moved": 600, "parameters": 600})
    finding = judged("L4", steps({}), half)
    assert finding.outcome is INCONCLUSIVE
    assert figures(finding)["moved"] == 0
    assert codes(finding) == {"step-parameters"}


def test_tensors_of_one_side_alone_are_open():
    more = steps({}, events=[*tensors(), event("grad", "head.bias", normal(8))])
    for pair in ((steps({}), more), (more, steps({}))):
        finding = judged("L4", *pair)
        assert finding.outcome is INCONCLUSIVE
        assert codes(finding) == {"record-one-sided"}


# ---- what proves nothing


def test_updates_that_move_nothing_on_either_side_prove_nothing():
    still = {"moved": 0}
    for events in (tensors(update=0 * UPDATE), tensors()[:1]):
        finding = judged("L4", steps(still, events=events), steps(still, events=events))
        assert finding.outcome is INCONCLUSIVE
        assert codes(finding) == {"step-no-update"}


def test_no_update_recorded_is_no_equal_update():
    facts = [Facts(0, loss=2.0)]
    alone = recording(tensors()[:1], facts)
    assert codes(judged("L4", alone, alone)) == {"step-no-update"}
    assert judged("L4", recording(tensors(), facts), recording(tensors(), facts)).outcome is PASS


def test_no_gradient_and_no_loss_prove_nothing():
    alone = recording(tensors()[1:], [Facts(0, moved=3, parameters=9)])
    assert judged("L4", alone, alone).outcome is INCONCLUSIVE
    assert codes(judged("L4", alone, alone)) == {"step-nothing", "step-no-loss"}
    nothing = judged("L4", recording(), recording())
    assert nothing.outcome is INCONCLUSIVE


# ---- which steps begin with equal weights


def warmed_up(second):
    """A warm-up from 0: the first step moves nothing, the second does."""
    events = [*tensors(update=0 * UPDATE), *tensors(second, step=1)]
    return steps({"moved": 0}, {}, {}, events=events)


def test_a_step_that_moved_nothing_leaves_the_next_to_be_judged():
    assert judged("L4", warmed_up(GRAD), warmed_up(GRAD)).outcome is PASS
    finding = judged("L4", warmed_up(GRAD), warmed_up(1.01 * GRAD))
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 1 grad w"


def test_gradients_after_an_update_are_not_held_against_anybody():
    sides = (steps({}, {}, events=[*tensors(), *tensors(second, step=1)]) for second in (GRAD, 1.01 * GRAD))
    assert judged("L4", *sides).outcome is PASS


def test_a_warm_up_with_other_inputs_in_its_second_step_is_judged_before_it():
    def side(seed, second):
        made = warmed_up(second)
        given = [event("input", "x", normal(4, 4, seed=each), step) for step, each in ((0, 1), (1, seed))]
        return made._replace(events=(*given, *made.events))

    finding = judged("L4", side(2, GRAD), side(3, 2 * GRAD))
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"forward-inputs-differ"}


def test_recordings_that_begin_with_other_steps_are_open():
    def later(array):
        return recording(tensors(array, step=1), [Facts(1, **ALL)])

    finding = judged("L4", steps({}, {}, events=[*tensors(), *tensors(step=1)]), later(2 * GRAD))
    assert finding.outcome is INCONCLUSIVE
    assert "step-other-start" in codes(finding)


# ---- ranks


def test_ranks_that_disagree_after_the_reduction_fail_on_their_side():
    def side(*arrays):
        return tuple(steps({}, events=tensors(array, stage="grad-reduced"), rank=rank, world=2)
                     for rank, array in enumerate(arrays))

    assert judged("L4", side(GRAD, GRAD), side(GRAD, GRAD)).outcome is PASS
    finding = judged("L4", side(GRAD, GRAD), side(GRAD, 1.1 * GRAD))
    assert finding.outcome is FAIL
    (item,) = [item for item in finding.notes if item.code == "step-ranks-differ"]
    assert (item.params["side"], item.params["rank"]) == ("candidate", 1)
    assert float(item.params["relative"]) == pytest.approx(0.1, rel=0.01)


def test_instruments_on_any_rank_are_instruments():
    plain = tuple(steps({}, rank=rank, world=2) for rank in range(2))
    finding = judged("L4", plain, (plain[0], steps({}, rank=1, world=2, instruments="dump")))
    assert finding.outcome is INCONCLUSIVE
    (item,) = finding.notes
    assert (item.code, item.params) == ("record-instrumented", {"baseline": "none", "candidate": "dump, none"})


def test_a_gradient_that_could_not_be_measured_excuses_no_other():
    made = event("grad", "odd", GRAD)
    odd = [made._replace(fine=(), tensor=made.tensor._replace(stats=None, narrow="", values="", hash=letter * 16))
           for letter in "ab"]
    sides = [steps({}, events=[odd[0], *tensors()]), steps({}, events=[odd[1], *tensors()])]
    finding = judged("L4", *sides)
    assert finding.outcome is INCONCLUSIVE
    assert states(finding)["grad"] is State.BLIND
    assert judged("L4", sides[0], steps({}, events=[odd[1], *tensors(2 * GRAD)])).outcome is FAIL
