"""Logits, tokens, embeddings, boxes and masks at L6: figures by hand and by scipy, collapse, near ties."""

from dataclasses import replace

import numpy as np
import pytest
from outputs import codes, judged, outputs, values
from scipy import special, stats

from pytest_migparity.core.verdict import Outcome, State
from pytest_migparity.judges.region_error import iou

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


def draws(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# ---- logits


def logits(values_, **fields):
    return outputs(values_, kind="logits", **fields)


def test_logits_that_are_near_pass_and_state_what_reports_state():
    a = draws(20, 4, 50)
    got = judged(logits(a), logits(a + 0.01 * draws(20, 4, 50, seed=1)))
    assert got.outcome is PASS
    assert {"max_abs", "mean_abs", "cosine", "top1", "top5"} <= values(got).keys()


def test_the_divergence_is_scipys():
    a, b = draws(20, 4, 30), draws(20, 4, 30) + 0.3 * draws(20, 4, 30, seed=1)
    expected = special.rel_entr(special.softmax(a, 2), special.softmax(b, 2)).sum(2)
    got = values(judged(logits(a), logits(b)))
    assert got["kl"] == pytest.approx(expected.mean())
    assert got["kl_max"] == pytest.approx(expected.max())


def test_a_shift_of_all_classes_is_no_difference():
    a = draws(20, 4, 30)
    got = values(judged(logits(a), logits(a + draws(20, 4, 1, seed=2))))
    assert got["close"] == pytest.approx(0, abs=1e-12)
    assert got["kl"] == pytest.approx(0, abs=1e-12)


def test_first_choices_that_turn_in_a_near_tie_are_explained_and_others_are_not():
    """Classes 0 and 1 lead by far; their margin is .01 std in the tie, and one whole std elsewhere."""
    a = np.tile(np.linspace(-1, 1, 40), (20, 3, 1))
    scale = a.std()
    a[..., 0], a[..., 1] = 5.0, 5.0 - 0.01 * scale
    b = a.copy()
    b[4, 1, 1] += 0.02 * scale
    near = judged(logits(a), logits(b + 1e-9 * draws(20, 3, 40)))
    assert near.outcome is PASS
    assert (values(near)["top1"], values(near)["flips"]) == (pytest.approx(59 / 60), 0)
    clear = a.copy()
    clear[..., 1] = 4.0
    turned = clear.copy()
    turned[4, 1, :2] = 4.0, 5.0
    got = judged(logits(clear), logits(turned))
    assert values(got)["flips"] == pytest.approx(1 / 60)
    assert got.outcome is INCONCLUSIVE


def test_five_first_choices_are_counted_whatever_their_order():
    a = np.tile(np.arange(10.0), (15, 1, 1)) + 1e-3 * draws(15, 1, 10)
    b = a.copy()
    b[..., [9, 8]] = b[..., [8, 9]]
    assert values(judged(logits(a), logits(b)))["top5"] == 1
    b[..., 5], b[..., 4] = a[..., 4], a[..., 5]
    got = values(judged(logits(a), logits(b)))
    assert (got["top1"], got["top5"]) == (0, pytest.approx(0.8))


def test_what_follows_where_texts_part_has_another_context():
    a = draws(20, 6, 30)
    b = a + 1e-3
    b[3, 3:] = draws(3, 30, seed=3)
    text = np.zeros((20, 6), int)
    other = text.copy()
    other[3, 2] = 7
    got = judged(logits(a, tokens=text), logits(b + 1e-4 * draws(20, 6, 30), tokens=other))
    assert got.outcome is PASS
    assert "action-texts-part" in codes(got)
    assert judged(logits(a), logits(b)).outcome is not PASS


def test_masked_classes_are_left_out_and_one_sided_ones_fail():
    a = draws(20, 2, 30)
    a[..., 4:9] = -np.inf
    b = np.where(np.isinf(a), a, a + 1e-3 * draws(20, 2, 30, seed=1))
    assert judged(logits(a), logits(b)).outcome is PASS
    b[2, 1, 5] = 0
    assert judged(logits(a), logits(b)).outcome is FAIL


def test_logits_without_a_preference_prove_nothing():
    got = judged(logits(np.ones((20, 2, 30))), logits(np.ones((20, 2, 30)) * 2))
    assert got.outcome is INCONCLUSIVE
    assert "action-collapsed" in codes(got)


def test_equal_texts_pass_and_texts_that_part_are_open():
    a = np.random.default_rng(0).integers(0, 900, (20, 12))
    b = a.copy()
    assert judged(outputs(a, kind="tokens"), outputs(b, kind="tokens")).outcome is PASS
    b[7, 5:] += 1
    got = judged(outputs(a, kind="tokens"), outputs(b, kind="tokens"))
    assert got.outcome is INCONCLUSIVE
    assert values(got)["flips"] == 1 / 20
    (item,) = [item for item in got.notes if item.code == "action-text-parts"]
    assert (item.params["name"], item.params["position"]) == ("s7", 5)


# ---- embeddings


def embeddings(values_, **fields):
    return outputs(values_, kind="embeddings", **fields)


def test_embeddings_of_another_machine_pass_and_the_rank_correlation_is_scipys():
    a = draws(60, 16)
    b = a + 0.01 * draws(60, 16, seed=1)
    got = judged(embeddings(a), embeddings(b))
    assert got.outcome is PASS
    unit = [side / np.linalg.norm(side, axis=1)[:, None] for side in (a, b)]
    upper = np.triu_indices(60, 1)
    expected = stats.spearmanr(*[(each @ each.T)[upper] for each in unit]).statistic
    assert values(got)["spearman"] == pytest.approx(expected)


def test_the_distance_is_in_units_of_the_spread_about_the_mean():
    a = np.concatenate([np.eye(20), -np.eye(20)])  # mean 0, every vector 1 from it
    b = a + np.eye(20)[0] * 0.2
    assert values(judged(embeddings(a), embeddings(b)))["close"] == pytest.approx(0.2)


def test_neighbours_that_were_exchanged_are_counted():
    """Two clusters of eight; one vector moves from the first to the second: of each list of seven one or all change."""
    near = 0.05 * draws(16, 8, seed=2)
    a = near.copy()
    a[:8, 0] += 1
    a[8:, 1] += 1
    b = a.copy()
    b[0, 0] -= 1
    b[0, 1] += 1
    got = judged(embeddings(a, label=tuple("a" * 8 + "b" * 8)), embeddings(b, label=tuple("a" * 8 + "b" * 8)))
    assert got.outcome is FAIL
    seven = values(got)["neighbours"]
    assert seven <= (7 * 6 / 7 + 8) / 16
    assert (values(got)["same_label_baseline"], values(got)["same_label_candidate"]) == (1, pytest.approx(15 / 16, abs=0.1))


@pytest.mark.parametrize("collapsed", [np.zeros((30, 8)), 1e-8 * draws(30, 8), np.outer(np.arange(1, 31.0), np.ones(8))])
def test_collapsed_embeddings_prove_nothing_on_both_sides_and_fail_on_one(collapsed):
    both = judged(embeddings(collapsed), embeddings(collapsed * (1 + 1e-9)))
    assert both.outcome is INCONCLUSIVE
    assert "action-collapsed" in codes(both)
    assert judged(embeddings(draws(30, 8, seed=5)), embeddings(collapsed)).outcome is FAIL


# ---- boxes and masks


def test_the_overlap_of_boxes_by_hand():
    a = np.array([[0.0, 0, 2, 2], [0, 0, 0, 5]])
    b = np.array([[1.0, 1, 3, 3], [0, 0, 2, 2], [5, 5, 6, 6]])
    assert iou(a, b) == pytest.approx(np.array([[1 / 7, 1, 0], [0, 0, 0]]))


def boxes(values_):
    return outputs(values_, kind="boxes")


def some_boxes(samples=20, count=3, seed=0):
    low = np.random.default_rng(seed).uniform(0, 100, (samples, count, 2))
    return np.concatenate([low, low + 40], 2)


def test_boxes_in_another_order_are_the_same_boxes():
    a = some_boxes()
    got = judged(boxes(a), boxes(a[:, ::-1] + 0.1))
    assert got.outcome is PASS
    shared = 39.9**2  # moved by .1 both ways
    assert values(got)["iou_least"] == pytest.approx(shared / (2 * 1600 - shared))


def test_a_box_that_one_side_lacks_fails_and_one_that_both_lack_does_not():
    a = some_boxes()
    b = a + 0.01
    a[3, 2], b[3, 2] = np.nan, np.nan
    assert judged(boxes(a), boxes(b)).outcome is PASS
    b[:, 1] = np.nan
    assert judged(boxes(a), boxes(b)).outcome is FAIL
    nothing = np.full_like(a, np.nan)
    assert judged(boxes(nothing), boxes(nothing)).outcome is INCONCLUSIVE


def test_half_a_box_is_broken():
    a = some_boxes()
    b = a + 0.01
    b[0, 0, 3] = np.nan
    assert judged(boxes(a), boxes(b)).outcome is FAIL


def test_masks_by_hand():
    a = np.zeros((20, 4, 4))
    a[:, :2] = 1
    b = a.copy()
    b[:, 2, 0] = 1  # 8 of 9
    got = judged(outputs(a, kind="masks"), outputs(b, kind="masks"))
    assert values(got)["close"] == pytest.approx(1 / 9)
    assert got.outcome is INCONCLUSIVE
    assert [check.blocked for check in got.checks if check.state is State.BLIND] == ["action-ask-L7"]
    empty = np.zeros_like(a)
    assert judged(outputs(empty, kind="masks"), outputs(empty, kind="masks")).outcome is INCONCLUSIVE
    assert judged(outputs(a, kind="masks"), outputs(empty, kind="masks")).outcome is FAIL


def test_labels_follow_their_samples():
    a = embeddings(draws(20, 4), label=tuple("ab" * 10))
    mixed = replace(a, values=a.values + 1e-3).rows(list(range(19, -1, -1)))
    assert judged(a, mixed).outcome is PASS


def test_one_vector_of_zeros_on_both_sides_proves_nothing():
    a = draws(30, 8)
    a[4] = 0
    b = a + 1e-3 * draws(30, 8, seed=1)
    b[4] = 0
    got = judged(embeddings(a), embeddings(b))
    assert got.outcome is INCONCLUSIVE
    assert "action-collapsed" in codes(got)
