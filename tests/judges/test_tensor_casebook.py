"""Public reports of L1 to L4 (shared/casebook/cases.csv, paraphrased): each row's input, and the verdict it deserves."""

from __future__ import annotations

import numpy as np
import pytest
from recordings import codes, draws, event, identity, judged, normal, recording

from pytest_migparity.core.verdict import Outcome
from pytest_migparity.wire.record import Facts

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
ROUNDING = 2.0**-9  # half a unit of bfloat16, relative


def rounded(array, seed=1, size=ROUNDING):
    """As another implementation in a short format would give it."""
    return (array * (1 + size * draws(seed).uniform(-1, 1, np.shape(array)))).astype(np.float32)


# ---- L1


def test_c11_an_exporter_that_permutes_rows_of_two_of_forty_tensors_fails():
    weights = {f"layers.{k}.weight": normal(64, 32, seed=k) for k in range(40)}
    exported = {**weights, **{name: weights[name][draws(9).permutation(64)] for name in
                              ("layers.7.weight", "layers.31.weight")}}
    finding = judged("L1", identity(weights), identity(exported))
    assert finding.outcome is FAIL
    assert [(item.code, item.params["name"]) for item in finding.notes] == \
        [("digest-permuted", "layers.7.weight"), ("digest-permuted", "layers.31.weight")]
    assert finding.first_divergence.at == "layers.7.weight"
    assert (finding.coverage.compared, finding.coverage.of) == (40, 40)


def test_c78_query_rows_in_the_other_rotary_pairing_fail_by_name():
    heads = normal(8, 2, 16, 64, seed=3)  # (head, half, pair, input)
    baseline = {"q": heads.reshape(256, 64), "v": normal(256, 64, seed=4)}
    candidate = {**baseline, "q": heads.transpose(0, 2, 1, 3).reshape(256, 64).copy()}
    finding = judged("L1", identity(baseline), identity(candidate))
    assert finding.outcome is FAIL
    assert [(item.code, item.params["name"]) for item in finding.notes] == [("digest-permuted", "q")]


def test_c80_equal_sums_and_extremes_do_not_make_two_tensors_the_same():
    a = normal(1000, 10)
    b = a[draws(5).permutation(1000)]
    for figure in (np.sum, np.mean, np.std, np.min, np.max):
        assert figure(a.astype(np.float64)) == pytest.approx(figure(b.astype(np.float64)), rel=1e-12)
    assert judged("L1", identity({"w": a}), identity({"w": b})).outcome is FAIL


def test_c81_five_keys_that_were_never_loaded_fail():
    names = [f"k{k}" for k in range(100)]
    weights = {name: normal(4, 4, seed=k) for k, name in enumerate(names)}
    finding = judged("L1", identity(weights), identity({name: weights[name] for name in names[5:]}))
    assert finding.outcome is FAIL
    assert {check.name: check.value for check in finding.checks} == {"unmatched": 5, "differing": 0}
    assert (finding.coverage.compared, finding.coverage.of, finding.coverage.baseline_only) == (95, 100, 5)


# ---- L2


def test_c14_token_counts_that_differ_fail_before_any_loss_is_looked_at():
    def prompt(length):
        return event("input", "input_ids", draws(length).integers(0, 9000, (1, length)))

    finding = judged("L2", recording([prompt(812), event("input", "b", np.arange(640))]),
                     recording([prompt(813), event("input", "b", np.arange(641))]))
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 0 input input_ids"
    assert {check.name: check.value for check in finding.checks} == {"ids": 2}


def test_c33_images_normalised_twice_fail_and_the_affine_relation_is_named():
    image = (normal(3, 32, 32) - 0.449) / 0.226
    again = ((image - 0.449) / 0.226).astype(np.float32)
    finding = judged("L2", recording([event("input", "observation.images.top", image)]),
                     recording([event("input", "observation.images.top", again)]),
                     pixel_names=("*images*",))
    assert finding.outcome is FAIL
    (hint,) = finding.hints
    assert hint.code == "inputs-affine"
    assert (hint.params["slope"], hint.params["offset"]) == (pytest.approx(1 / 0.226, rel=1e-3),
                                                             pytest.approx(-0.449 / 0.226, abs=0.01))


def test_c44_another_draw_of_the_noise_leaves_everything_open():
    baseline, candidate = (recording([event("input", "state", normal(4, 14)),
                                      event("draw", "noise", normal(4, 50, 32, seed=seed))]) for seed in (1, 2))
    finding = judged("L2", baseline, candidate)
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"inputs-noise-stream"}


def test_c50_frames_of_another_renderer_are_open_without_one_machines_own_spread():
    """Mean difference 1.8 of 255: more than a decoder, less than a wrong picture; the row's own spread is as large."""
    frame = draws(0).integers(40, 215, (4, 64, 64, 3))
    shifted = (frame + draws(1).choice([-2, -2, -2, -1, 1, 2, 2, 2], frame.shape)).astype(np.uint8)
    assert np.abs(shifted.astype(int) - frame).mean() == pytest.approx(1.75, abs=0.1)
    finding = judged("L2", recording([event("input", "frames", frame.astype(np.uint8))]),
                     recording([event("input", "frames", shifted)]))
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"inputs-pixels-doubtful"}


def test_c74_an_equal_seed_is_not_an_equal_stream():
    cpu, cuda = ([-0.6014, -1.0122, *normal(62, seed=10)], [-0.1029, 1.6810, *normal(62, seed=11)])
    finding = judged("L2", recording([event("draw", "noise", np.float32(cpu))], seed="10"),
                     recording([event("draw", "noise", np.float32(cuda))], seed="10"))
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"inputs-seed-equal-stream-not"}


def test_c83_other_token_ids_for_the_same_string_fail():
    finding = judged("L2", recording([event("input", "input_ids", np.array([477]))]),
                     recording([event("input", "input_ids", np.array([188, 48260]))]))
    assert finding.outcome is FAIL


def test_c85_fifteen_pixels_one_level_off_pass():
    photo = draws(0).integers(60, 200, (1, 480, 640)).astype(np.uint8)
    other = photo.copy()
    other.flat[draws(1).choice(307200, 15, replace=False)] += 1
    finding = judged("L2", recording([event("input", "photo", photo)]), recording([event("input", "photo", other)]))
    assert finding.outcome is PASS
    (check,) = finding.checks
    expected = np.sqrt(15) / np.linalg.norm(photo.astype(float))
    assert check.value == pytest.approx(expected, rel=0.6)  # 15 elements in 64 lanes


def test_c86_frames_of_a_decoder_with_a_mean_square_error_of_2_5e_3_fail():
    frame = draws(0).uniform(0, 1, (64, 64, 3)).astype(np.float32)
    other = (frame + np.sqrt(2.5e-3) * normal(64, 64, 3, seed=2)).astype(np.float32)
    finding = judged("L2", recording([event("input", "video", frame)]), recording([event("input", "video", other)]),
                     pixel_names=("video",))
    assert finding.outcome is FAIL


# ---- L3


def outputs(**arrays):
    return [event("output", name, array, depth=depth) for depth, (name, array) in enumerate(arrays.items())]


def test_c09_attention_that_averages_its_values_fails_at_the_vision_encoder():
    value = normal(64, 32)
    mixed = normal(64, 64, seed=1) @ value / 8
    baseline = recording(outputs(text=normal(8, 8), vision=mixed))
    candidate = recording(outputs(text=normal(8, 8), vision=np.tile(value.mean(0), (64, 1))))
    finding = judged("L3", baseline, candidate, precisions=("float16",))
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 0 output vision"


def test_c10_a_mask_that_is_ignored_beyond_512_fails_at_the_first_long_probe_only():
    lengths = (137, 600, 1000, 1500, 3000)
    attended = {length: normal(length, 16, seed=length) for length in lengths}
    baseline = recording([event("output", "attention", attended[length], step)
                          for step, length in enumerate(lengths)])
    candidate = recording([event("output", "attention", rounded(attended[length]) if length < 512 else
                                 attended[length] + 0.4 * normal(length, 16, seed=1), step)
                           for step, length in enumerate(lengths)])
    short = judged("L3", recording(baseline.events[:1]), recording(candidate.events[:1]), precisions=("bfloat16",))
    assert short.outcome is PASS, "a single short probe cannot see it"
    finding = judged("L3", baseline, candidate, precisions=("bfloat16",))
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 1 output attention"


def test_c22_the_first_operation_that_differs_is_named():
    qk, softmax, pv = (normal(2, 64, 200, seed=seed) for seed in (1, 2, 3))
    finding = judged("L3", recording(outputs(qk=qk, softmax=softmax, pv=pv)),
                     recording(outputs(qk=qk, softmax=softmax, pv=pv + 0.1)), precisions=("float16",))
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 0 output pv"


def test_c23_three_quarters_of_the_elements_off_by_up_to_a_third_fail_in_bfloat16():
    truth = normal(131072)
    fp16 = recording([event("output", "attention", truth)])
    good = rounded(truth, size=1e-3)
    assert judged("L3", fp16, recording([event("output", "attention", good)]),
                  precisions=("float16",)).outcome is PASS
    off = np.where(draws(4).random(truth.size) < 0.735, draws(5).uniform(-0.345, 0.345, truth.size), 0)
    bad = (truth + off).astype(np.float32)
    assert judged("L3", fp16, recording([event("output", "attention", bad)]),
                  precisions=("bfloat16",)).outcome is FAIL


def test_c71_a_convolution_with_another_sum_fails():
    positive = np.abs(normal(4096))
    baseline, candidate = (positive * (total / positive.sum()) for total in (10433.31, 1619.30))
    finding = judged("L3", recording(outputs(conv=baseline)), recording(outputs(conv=candidate)))
    assert finding.outcome is FAIL
    (item,) = finding.notes
    assert float(item.params["scale"]) == pytest.approx(1619.30 / 10433.31, abs=1e-4)


def test_c72_a_layer_that_is_wrong_from_batch_nine_on_fails_at_that_probe():
    batches = {batch: normal(batch, 256, seed=batch) for batch in (8, 9)}
    finding = judged("L3", recording([event("output", "linear", array, step)
                                      for step, array in enumerate(batches.values())]),
                     recording([event("output", "linear", batches[8], 0),
                                event("output", "linear", batches[9] + 0.53 * normal(9, 256, seed=3), 1)]))
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 1 output linear"


def test_c76_padded_positions_count_only_where_no_mask_says_otherwise():
    """The row is inconclusive without a mask; ours fails there: nothing in it says that the positions do not count."""
    hidden = normal(8, 16, 64)
    mask = np.arange(16) < np.array([16, 9, 12, 4, 16, 7, 3, 10])[:, None]
    zeroed, computed = hidden * mask[..., None], np.where(mask[..., None], rounded(hidden), 1.7).astype(np.float32)
    share = float(mask.mean())
    valid = judged("L3", recording([event("output", "h", zeroed[mask], valid=share)]),
                   recording([event("output", "h", computed[mask], valid=share)]), precisions=("bfloat16",))
    assert valid.outcome is PASS
    unmasked = judged("L3", recording([event("output", "h", zeroed)]), recording([event("output", "h", computed)]),
                      precisions=("bfloat16",))
    assert unmasked.outcome is FAIL


def test_c77_a_rotary_layout_shows_at_a_later_position_only():
    def turned(position, *, halves):
        q = normal(4, 16, seed=7)
        angle = position * 10000.0 ** (-np.arange(8) / 8)
        first, second = (q[:, :8], q[:, 8:]) if halves else (q[:, ::2], q[:, 1::2])
        a, b = first * np.cos(angle) - second * np.sin(angle), first * np.sin(angle) + second * np.cos(angle)
        out = np.empty_like(q)
        if halves:
            out[:, :8], out[:, 8:] = a, b
        else:
            out[:, ::2], out[:, 1::2] = a, b
        return out

    baseline, candidate = (recording([event("output", "q_rope", turned(position, halves=halves), step)
                                      for step, position in enumerate((0, 5))]) for halves in (True, False))
    finding = judged("L3", baseline, candidate)
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 1 output q_rope"


# ---- L4


def gradients(stage="grad", **arrays):
    return [event(stage, name, array) for name, array in arrays.items()]


def test_c01_gradients_that_part_in_the_reduction_fail_there():
    local, reduced = normal(64, 64), normal(64, 64, seed=1)
    wrong = np.ascontiguousarray(reduced.T)  # a bucket view with another stride
    facts = [Facts(0, loss=1.3)]
    sides = [tuple(recording([*gradients("grad", w=local), *gradients("grad-reduced", w=after)], facts, rank, 2)
                   for rank in range(2)) for after in (reduced, wrong)]
    finding = judged("L4", *sides)
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 0 grad-reduced w"


def test_c06_a_run_of_exact_zeros_is_no_good_loss():
    grads = gradients(w=normal(8, 8))
    finding = judged("L4", recording(grads, [Facts(step, loss=1.9 - 0.01 * step) for step in range(0, 60, 20)]),
                     recording(grads, [Facts(0, loss=1.9), Facts(20, loss=0.0), Facts(40, loss=float("nan"))]))
    assert finding.outcome is FAIL
    (item,) = [item for item in finding.notes if item.code == "step-loss-broken"]
    assert (item.params["step"], item.params["candidate"]) == (20, 0.0)


def test_c08_skipped_steps_fail_whatever_the_losses_say():
    grads = gradients(w=normal(8, 8))
    baseline = recording(grads, [Facts(step, loss=5.0 - 0.01 * step, skipped=step == 3) for step in range(20)])
    candidate = recording(grads, [Facts(step, loss=5.0 - 0.01 * step, skipped=step in range(2, 16))
                                  for step in range(20)])
    finding = judged("L4", baseline, candidate)
    assert finding.outcome is FAIL
    assert {check.name: check.value for check in finding.checks}["skipped"] == 13
    assert finding.first_divergence.at == 2


def test_c60_ranks_that_disagree_after_the_reduction_fail_without_another_side():
    facts = [Facts(0, loss=1.0, moved=16, parameters=16)]
    good, bad = (tuple(recording(gradients("grad-reduced", w=np.full((4, 4), value, np.float32)), facts, rank, 2)
                       for rank, value in enumerate(values)) for values in ((0.1942, 0.1942), (0.2206, 0.2123)))
    finding = judged("L4", bad, bad)
    assert finding.outcome is FAIL
    assert codes(finding) == {"step-ranks-differ"}
    assert [item.params["relative"] for item in finding.notes] == [pytest.approx(0.0083 / 0.2206, rel=0.3)] * 2
    assert judged("L4", good, good).outcome is PASS


def test_c63_weights_that_do_not_move_fail_though_the_gradients_agree():
    grads = gradients(w=normal(768))
    finding = judged("L4", recording(grads, [Facts(0, loss=1.0, moved=603, parameters=768)]),
                     recording(grads, [Facts(0, loss=1.0, moved=0, parameters=768)]))
    assert finding.outcome is FAIL
    assert {check.name: check.value for check in finding.checks}["moved"] == pytest.approx(603 / 768)


def test_c94_a_dump_on_one_side_is_not_compared_with_a_plain_run():
    grads, facts = gradients(w=normal(16)), [Facts(0, loss=1.0, grad_norm=1.7, moved=16, parameters=16)]
    finding = judged("L4", recording(grads, facts), recording(grads, facts, instruments="msprobe dump, level L0"))
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"record-instrumented"}
