"""L2: how equal each kind of input must be, and what another draw of the noise looks like."""

from __future__ import annotations

import numpy as np
import pytest
from recordings import codes, draws, event, judged, normal, recording

from pytest_migparity.core.verdict import Outcome, State

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


def given(name, array, **more):
    return recording([event("input", name, array, **more)])


def drawn(array, **meta):
    return recording([event("draw", "noise", array)], **meta)


def figures(finding):
    return {check.name: check.value for check in finding.checks}


@pytest.mark.parametrize("array, other", [
    (np.arange(64), np.where(np.arange(64) == 7, 8, np.arange(64))),
    (np.arange(64, dtype=np.int32), np.arange(64, dtype=np.int32)[::-1]),
    (np.ones((2, 32), np.bool_), np.arange(64).reshape(2, 32) != 63),
    (np.ones((2, 32), np.uint8), (np.arange(64).reshape(2, 32) != 63).astype(np.uint8)),
    (np.ones((4, 480, 640), np.uint8), (np.arange(4 * 480 * 640).reshape(4, 480, 640) != 63).astype(np.uint8)),
    (np.frombuffer(b"pick up the cup.", np.uint8), np.frombuffer(b"pick up the cap.", np.uint8)),
], ids=["int64", "int32", "bool", "mask in bytes", "large mask in bytes", "text in bytes"])
def test_ids_and_masks_must_be_the_same_to_the_bit(array, other):
    finding = judged("L2", given("x", array), given("x", np.ascontiguousarray(other)))
    assert finding.outcome is FAIL
    assert figures(finding) == {"ids": 1}
    assert judged("L2", given("x", array), given("x", array.copy())).outcome is PASS


def test_ids_of_another_width_with_the_same_values_are_the_same():
    ids = draws(1).integers(0, 250000, (4, 48))
    assert judged("L2", given("ids", ids), given("ids", ids.astype(np.int32))).outcome is PASS


@pytest.mark.parametrize("relative, outcome", [(2e-6, PASS), (1e-4, FAIL)])
def test_features_are_held_against_1e_5(relative, outcome):
    array = normal(100, 80)
    noise = normal(100, 80, seed=1)
    other = (array + noise * relative * np.linalg.norm(array) / np.linalg.norm(noise)).astype(np.float32)
    finding = judged("L2", given("state", array), given("state", other))
    assert finding.outcome is outcome
    assert figures(finding)["features"] == pytest.approx(relative, rel=0.3)


@pytest.mark.parametrize("amplitude, outcome", [(0, PASS), (1, INCONCLUSIVE), (8, FAIL)])
def test_pixels_pass_as_rounding_are_open_as_a_decoder_and_fail_as_another_picture(amplitude, outcome):
    """Of a frame around 128 one level everywhere is 1/128 = 8e-3, eight are 6e-2; limits 2e-3 and 2e-2."""
    frame = draws(0).integers(120, 137, (2, 64, 64, 3))
    other = frame + amplitude * draws(1).choice([-1, 1], frame.shape)
    finding = judged("L2", given("frames", frame.astype(np.uint8)), given("frames", other.astype(np.uint8)))
    assert finding.outcome is outcome
    assert figures(finding)["pixels"] == pytest.approx(amplitude / 128, rel=0.3)


def test_channels_in_the_other_order_fail_however_grey_the_picture():
    """RGB for BGR in a frame whose channels are at most one level apart: 1e-3 of the norm, within the limit of pixels."""
    frame = draws(0).integers(120, 137, (2, 64, 64, 1)) + np.array([0, 0, 1])
    swapped = np.ascontiguousarray(frame[..., ::-1])
    assert np.linalg.norm(swapped - frame) / np.linalg.norm(frame) < 7e-3
    frames = (each.astype(np.uint8) for each in (frame, swapped))
    finding = judged("L2", *(given("frames", each) for each in frames))
    assert finding.outcome is not PASS


def test_samples_in_another_order_fail_and_are_named():
    batch = normal(8, 14)
    finding = judged("L2", given("state", batch), given("state", batch[[1, 0, 2, 3, 4, 5, 6, 7]]))
    assert finding.outcome is FAIL
    assert codes(finding) == {"record-permuted"}


def test_two_joints_that_change_places_fail_where_the_sketch_sees_nothing():
    """Joints 9 and 12 of 70 share a lane and a sign."""
    state = normal(70, seed=3)
    other = state.copy()
    other[[9, 12]] = state[[12, 9]]
    finding = judged("L2", given("state", state), given("state", other))
    assert finding.outcome is FAIL
    assert codes(finding) == {"record-permuted"}
    assert figures(finding)["features"] == pytest.approx(0, abs=1e-6)


def test_pixels_that_a_model_gets_as_numbers_are_pixels_where_the_manifest_says_so():
    frame = draws(0).uniform(0, 1, (2, 3, 32, 32)).astype(np.float32)
    sides = given("observation.image", frame), given("observation.image", frame * np.float32(1.001))
    assert judged("L2", *sides).outcome is FAIL
    assert judged("L2", *sides, pixel_names=("*image*",)).outcome is PASS


def test_noise_that_is_given_as_an_input_is_noise_where_the_manifest_says_so():
    sides = given("x_t", normal(4, 50, 32)), given("x_t", normal(4, 50, 32, seed=1))
    assert judged("L2", *sides).outcome is FAIL
    finding = judged("L2", *sides, noise_names=("x_*",))
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"inputs-noise-stream"}


# ---- another draw, or noise that was changed


@pytest.mark.parametrize("times", [1, 4])
def test_of_one_random_number_nobody_can_say_whether_it_was_changed(times):
    """A batch may share one flow time: .2 on one side and .9 on the other may be two draws."""
    finding = judged("L2", drawn(np.full(times, 0.2, np.float32)), drawn(np.full(times, 0.9, np.float32)))
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"inputs-noise-stream"}


@pytest.mark.parametrize("draw", [lambda random: random.standard_normal((4, 7)), lambda random: random.random(4),
                                  lambda random: random.random(2),
                                  lambda random: 0.001 + 0.999 * random.beta(1.5, 1.0, 8),
                                  lambda random: random.integers(0, 1000, 64),
                                  lambda random: random.permutation(64), lambda random: random.random(64) < 0.5],
                         ids=["batch of 4", "flow time", "of two", "beta", "timesteps", "shuffle", "dropout mask"])
def test_another_draw_of_any_kind_is_open(draw):
    for seed in range(20):
        one, other = (np.asarray(draw(draws(100 + 2 * seed + number))) for number in range(2))
        assert judged("L2", drawn(one), drawn(other)).outcome is INCONCLUSIVE


@pytest.mark.parametrize("factor", [1.2, 0.8, -1.0, 2.0])
def test_noise_scaled_is_no_other_draw(factor):
    """Of 3200 normal numbers the norms of two draws are equal to 1.3 % (one standard deviation)."""
    array = normal(64, 50)
    finding = judged("L2", drawn(array), drawn(np.float32(factor) * array))
    assert finding.outcome is FAIL
    assert figures(finding) == {"noise": 1}
    (item,) = finding.notes
    assert float(item.params["scale"]) == pytest.approx(factor, rel=1e-4)


def test_noise_of_another_shape_or_with_nan_fails():
    array = normal(4, 50)
    broken = np.where(np.arange(50) == 3, np.nan, array).astype(np.float32)
    for other in (array[:, :49], broken, np.zeros_like(array)):
        assert judged("L2", drawn(array), drawn(np.ascontiguousarray(other))).outcome is FAIL


def test_two_draws_with_equal_seeds_say_so_and_with_other_seeds_do_not():
    for seeds, code in ((("7", "7"), "inputs-seed-equal-stream-not"), (("7", "8"), "inputs-noise-stream"),
                        (("", ""), "inputs-noise-stream")):
        finding = judged("L2", *(drawn(normal(50, seed=number), **({"seed": seed} if seed else {}))
                                 for number, seed in enumerate(seeds)))
        assert codes(finding) == {code}


# ---- what proves nothing, and what was not measured


def test_what_one_side_alone_was_given_is_open():
    both = event("input", "state", normal(4, 14))
    finding = judged("L2", recording([both, event("input", "mask", np.ones(4, np.bool_))]), recording([both]))
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"record-one-sided"}


def test_inputs_of_nothing_but_zeros_prove_nothing():
    zero = np.zeros((4, 14), np.float32)
    finding = judged("L2", given("state", zero), given("state", zero))
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"inputs-vacuous"}
    assert codes(judged("L2", recording(), recording())) == {"inputs-nothing"}


def test_a_tensor_that_could_not_be_measured_is_open_and_excuses_no_other():
    def plain(array):
        made = event("input", "odd", array)
        return made._replace(fine=(), tensor=made.tensor._replace(stats=None, narrow="", values=""))

    array, state = normal(8, 8), normal(4, 14, seed=1)
    finding = judged("L2", recording([plain(array)]), recording([plain(-array)]))
    assert finding.outcome is INCONCLUSIVE
    assert [check.state for check in finding.checks] == [State.BLIND]
    sides = (recording([plain(each), event("input", "state", other)]) for each, other in ((array, state), (-array, -state)))
    assert judged("L2", *sides).outcome is FAIL


def test_a_coarse_recording_is_held_to_what_it_resolves():
    """16 lanes in 16 bits end at 1e-4 and more: beyond ten times the limit of features nothing can be said of them."""
    def coarse(array):
        return event("input", "coarse", array)._replace(fine=())

    array = normal(100, 80)
    array *= np.float32(1.001 * 2**6 / np.linalg.norm(array))  # just above a power of two the lanes are coarsest
    other = (array * (1 + 3e-5 * normal(100, 80, seed=2))).astype(np.float32)
    beside = event("input", "fine", normal(8, 8)), event("input", "fine", normal(8, 8) * np.float32(1 + 2e-6))
    finding = judged("L2", recording([coarse(array), beside[0]]), recording([coarse(other), beside[1]]))
    assert finding.outcome is INCONCLUSIVE
    assert [check.state for check in finding.checks] == [State.BLIND]
