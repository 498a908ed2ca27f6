"""Network, gradients, features and rounding, against closed forms and finite differences."""

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_migparity.rehearsal import features, policy, precision, train
from pytest_migparity.rehearsal.arm import JOINT_HIGH, JOINT_LOW
from pytest_migparity.rehearsal.dataset import ACTION_SIZE, rows_of_steps, samples
from pytest_migparity.rehearsal.recipe import Recipe
from pytest_migparity.rehearsal.variant import OFFICIAL, Variant


def batch(rows: int = 6) -> train.Batch:
    """A small random batch."""
    random = np.random.default_rng(5)
    seen, target, noise = (
        random.standard_normal((rows, size), dtype=np.float32) for size in (features.FEATURES, ACTION_SIZE, ACTION_SIZE)
    )
    return train.Batch(seen, target, noise, random.random(rows, dtype=np.float32))


def reference_loss(weights: NDArray[np.float64], data: train.Batch, variant: Variant) -> float:
    """The loss, written out in float64 without any of the policy's code."""
    t = data.time.astype(np.float64)[:, None]
    noise, target = data.noise.astype(np.float64), data.target.astype(np.float64)
    angle = t * np.pi * np.array([1, 2, 4, 8])
    x = np.concatenate([(1 - t) * noise + t * target, data.seen, np.sin(angle), np.cos(angle)], 1)
    at = 0
    sizes = [100, 256, 256, 256, 48]
    for k in range(4):
        a, b = sizes[k], sizes[k + 1]
        x = x @ weights[at : at + a * b].reshape(a, b) + weights[at + a * b : at + a * b + b]
        at += a * b + b
        if k < 3:
            gelu = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
            x = np.maximum(x, 0) if variant.activation == "relu" else gelu
    return float(((x - (target - noise)) ** 2).mean())


@pytest.mark.parametrize("variant", [OFFICIAL, Variant(activation="relu")], ids=["gelu", "relu"])
def test_gradient_agrees_with_finite_differences(variant: Variant) -> None:
    data = batch()
    weights = policy.initial_weights(0)
    for layer in policy.layers(weights):
        layer.bias[...] = np.random.default_rng(2).normal(size=len(layer.bias)) * 0.1
    loss, gradient = train.flow_loss(weights, data, variant)
    assert loss == pytest.approx(reference_loss(weights.astype(np.float64), data, variant), rel=1e-5)
    random = np.random.default_rng(8)
    for direction in random.normal(size=(6, policy.PARAMETERS)):
        direction /= np.linalg.norm(direction)
        up, down = (reference_loss(weights + sign * 1e-5 * direction, data, variant) for sign in (1, -1))
        assert gradient @ direction == pytest.approx((up - down) / 2e-5, rel=2e-3, abs=1e-6)


def test_gradient_of_each_layer_agrees_with_finite_differences() -> None:
    data = batch()
    weights = policy.initial_weights(0)
    _, gradient = train.flow_loss(weights, data)
    sizes = [100 * 256, 256, 256 * 256, 256, 256 * 256, 256, 256 * 48, 48]
    for end, size in zip(np.cumsum(sizes), sizes, strict=True):
        direction = np.zeros(policy.PARAMETERS)
        part = gradient[end - size : end].astype(np.float64)
        direction[end - size : end] = part / np.linalg.norm(part)
        up, down = (reference_loss(weights + sign * 1e-4 * direction, data, OFFICIAL) for sign in (1, -1))
        assert np.linalg.norm(part) == pytest.approx((up - down) / 2e-4, rel=1e-3)


def test_micro_batches_average_to_the_whole_batch() -> None:
    weights, data = policy.initial_weights(0), batch(8)
    whole = train._step_gradient(weights, data, Recipe(grad_accumulation=1, batch_size=8), OFFICIAL, 1.0)
    parts = train._step_gradient(weights, data, Recipe(grad_accumulation=4, batch_size=8), OFFICIAL, 1.0)
    assert parts[0] == pytest.approx(whole[0], rel=1e-6)
    np.testing.assert_allclose(parts[1], whole[1], atol=1e-6)


def test_time_features_are_harmonics() -> None:
    np.testing.assert_allclose(policy.time_features(np.array([0.5], np.float32))[0],
                               [1, 0, 0, 0, 0, -1, 1, 1], atol=1e-5)  # fmt: skip


def test_learning_rate_warms_up_and_falls_to_zero() -> None:
    recipe = Recipe()
    assert train.learning_rate(recipe, 0) == pytest.approx(4e-5)
    assert train.learning_rate(recipe, 1300) == pytest.approx(2e-3)
    assert train.learning_rate(recipe, 2600) == pytest.approx(0, abs=1e-12)


def test_one_update_is_adamw_by_hand() -> None:
    recipe = Recipe()
    weights, gradient = np.array([2.0, -1.0], np.float32), np.array([0.5, -0.01], np.float32)
    state = train._Optimizer(np.zeros(2, np.float32), np.zeros(2, np.float32))
    train._update(weights, gradient, 0.1, state, np.array([1, 0], np.float32), recipe, OFFICIAL)
    # the first update of Adam is one learning rate against the gradient's sign; only entry 0 decays
    np.testing.assert_allclose(weights, [2 * (1 - 0.1 * 0.01) - 0.1, -1 + 0.1], rtol=1e-5)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(1.0, 1.0), (1 + 2**-8, 1.0), (1 + 3 * 2**-8, 1 + 2**-6), (1 + 2**-8 + 2**-20, 1 + 2**-7),
     (-(2.0**120) * 1.005, -(2.0**120) * 1.0078125)],
)  # fmt: skip
def test_bfloat16_rounds_to_nearest_even(value: float, rounded: float) -> None:
    found = precision.to_bfloat16(np.array([value], np.float32))[0]
    assert float(found) == rounded


def test_float16_overflows_to_infinity() -> None:
    assert precision.to_float16(np.array([65504.0, 70000.0], np.float32)).tolist() == [65504.0, np.inf]


def test_int8_keeps_the_largest_weight_and_zero_columns() -> None:
    weight = np.array([[1.0, 0.0], [-0.5, 0.0]], np.float32)
    np.testing.assert_allclose(precision.to_int8(weight), [[1.0, 0], [-0.5, 0]], atol=1 / 254)


def test_feature_names_point_where_the_catalogue_points() -> None:
    assert [features.NAMES[k] for k in (6, 11, 19)] == ["joint_0", "joint_5", "joint_error_1"]
    assert [features.NAMES[k] for k in (25, 28, 31)] == ["goal_y", "tip_y", "tip_error_y"]


def test_features_at_the_goal_have_no_error() -> None:
    q = np.random.default_rng(4).uniform(JOINT_LOW, JOINT_HIGH, (50, 6))
    at_goal = features.features(q, q)
    assert np.abs(at_goal).max() <= 2.0
    errors = [k for k, name in enumerate(features.NAMES) if "error" in name]
    assert not at_goal[:, errors].any()
    joints = [features.NAMES.index(f"joint_{k}") for k in range(6)]
    np.testing.assert_allclose(at_goal[:, joints], 2 * (q - JOINT_LOW) / (JOINT_HIGH - JOINT_LOW) - 1, atol=1e-6)


def test_an_epoch_reads_no_row_twice_and_the_next_is_shuffled_anew() -> None:
    recipe = Recipe(batch_size=10)
    rows = rows_of_steps(recipe, OFFICIAL, 20, 105)
    assert len(set(rows[:10].ravel().tolist())) == 100
    assert not np.array_equal(rows[:10], rows[10:])
    ahead = rows_of_steps(recipe, Variant(loader_offset=1), 19, 105)
    assert np.array_equal(ahead, rows[1:])


def test_samples_lead_back_to_the_path() -> None:
    data = samples()
    assert data.actions.dtype == np.float32
    assert np.abs(data.actions).max() <= 2.0
    assert len(data.joints) == len(data.goal) == len(data.actions) > 200_000
