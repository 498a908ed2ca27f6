"""Single rules of L2 to L4, each with numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from recordings import codes, draws, event, judged, normal, recording

from pytest_migparity.core.verdict import Outcome
from pytest_migparity.wire.record import Facts

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
EPS = 2.0**-21


def apart(array, size, seed=9):
    """The array with a dense difference of that relative L2 size."""
    noise = draws(seed).standard_normal(array.shape)
    return (array + noise * size * np.linalg.norm(array) / np.linalg.norm(noise)).astype(np.float32)


def test_the_limit_grows_with_depth_as_rounding_does():
    """6.5 eps: beyond 4 x 1.03^0, within 4 x 1.03^20 = 7.2."""
    array = normal(400, 300)
    other = apart(array, 6.5 * EPS)
    outcomes = [judged("L3", recording([event("output", "x", array, depth=depth)]),
                       recording([event("output", "x", other, depth=depth)])).outcome for depth in (0, 20)]
    assert outcomes == [FAIL, PASS]


def test_other_inputs_leave_l3_open_but_not_nan():
    given, out = normal(8, 8), normal(8, 8, seed=1)
    good = recording([event("input", "x", given), event("output", "y", out)])
    other = recording([event("input", "x", given + 1), event("output", "y", out * 2)])
    finding = judged("L3", good, other)
    assert finding.outcome is INCONCLUSIVE
    assert "forward-inputs-differ" in codes(finding)
    broken = out.copy()
    broken[0, 0] = np.nan
    assert judged("L3", good, recording([event("input", "x", given + 1), event("output", "y", broken)])).outcome is FAIL
    agreeing = recording([event("input", "x", given + 1), event("output", "y", out)])
    assert judged("L3", good, agreeing).outcome is INCONCLUSIVE, "an output that ignores its input proves nothing"


def step(given=(0, 1), clip=(1.0, 0.5), **state):
    """Two steps: inputs by seed, clip factors."""
    events = [event("input", "x", normal(4, 4, seed=seed), step=number) for number, seed in enumerate(given)]
    events.insert(1, event("grad", "w", normal(8, 8, seed=5)))
    events += [event("state", name, array) for name, array in state.items()]
    return recording(events, [Facts(number, loss=1.0, clip_factor=factor, moved=64, parameters=64)
                              for number, factor in enumerate(clip)])


def test_facts_after_an_input_that_differs_are_not_held_against_anybody():
    finding = judged("L4", step(), step(given=(0, 7), clip=(1.0, 0.1)))
    assert finding.outcome is INCONCLUSIVE
    assert {check.name: check.value for check in finding.checks}["clip"] == 0.0
    assert judged("L4", step(), step(clip=(1.0, 0.1))).outcome is FAIL


def test_optimizer_state_of_another_dtype_fails():
    moment = normal(8, 8, seed=6)
    finding = judged("L4", step(exp_avg=moment), step(exp_avg=moment.astype(np.float16)))
    assert finding.outcome is FAIL
    assert {check.name: check.value for check in finding.checks}["state"] == 1
    assert judged("L4", step(exp_avg=moment), step(exp_avg=moment)).outcome is PASS


def noise(array):
    return recording([event("draw", "noise", array)])


@pytest.mark.parametrize("change", [lambda x: x * 1.1, lambda x: -x, lambda x: x + 0.2, lambda x: np.roll(x, 1),
                                    lambda x: x[::-1], lambda x: apart(x, 1e-3), np.zeros_like])
def test_noise_that_was_changed_fails(change):
    drawn = normal(64, 50)
    assert judged("L2", noise(drawn), noise(change(drawn).astype(np.float32))).outcome is FAIL


@pytest.mark.parametrize("draw", [lambda random: random.standard_normal(4 * 50), lambda random: random.random(64),
                                  lambda random: random.beta(1.5, 1.0, 64), lambda random: random.random(4)])
def test_another_draw_is_open_and_named(draw):
    for seed in range(20):
        one, other = (draw(draws(2 * seed + number)).astype(np.float32) for number in range(2))
        finding = judged("L2", noise(one), noise(other))
        assert finding.outcome is INCONCLUSIVE, seed
        assert codes(finding) == {"inputs-noise-stream"}


def test_noise_of_another_spread_is_no_other_draw():
    drawn = normal(64, 50)
    finding = judged("L2", noise(drawn), noise(1.5 * normal(64, 50, seed=8)))
    assert finding.outcome is FAIL
