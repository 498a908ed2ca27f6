"""Training and closed loop: reproducible, and as good as promised."""

import numpy as np
import pytest

from pytest_migparity.rehearsal import demos, rollout
from pytest_migparity.rehearsal.policy import PARAMETERS, initial_weights
from pytest_migparity.rehearsal.recipe import SCHEDULE_STEPS, Recipe
from pytest_migparity.rehearsal.train import train
from pytest_migparity.rehearsal.variant import Variant

FEW = Recipe(steps=6)


def few_problems(count: int) -> demos.Demonstrations:
    """The first evaluation problems."""
    held_out = demos.load("held_out")
    return demos.Demonstrations(held_out.seeds[:count], held_out.paths[:count])


def test_two_runs_have_equal_bits() -> None:
    first, second = train(FEW), train(FEW)
    assert first.log == second.log
    assert first.weights.tobytes() == second.weights.tobytes()


def test_a_shorter_run_is_the_start_of_a_longer_one() -> None:
    assert train(FEW, steps=3).log == train(FEW).log[:3]


def test_loss_falls_and_the_hard_batch_exceeds_the_clip() -> None:
    recipe = Recipe(steps=40)
    log = train(recipe).log
    assert [record.step for record in log] == list(range(40))
    assert np.mean([r.loss for r in log[-5:]]) < 0.8 * np.mean([r.loss for r in log[:5]])
    assert [r.step for r in log if r.grad_norm > recipe.clip_norm] == [recipe.hard_step]


def test_overflow_skips_the_update_and_halves_the_scale() -> None:
    log = train(FEW, Variant(matmul="float16", loss_scale=2.0**26)).log
    finite = [bool(np.isfinite(record.grad_norm)) for record in log]
    assert not finite[0]
    assert finite[-1]
    assert finite == sorted(finite)
    assert np.isfinite([record.loss for record in log]).all()


def test_an_untrained_run_leaves_the_weights_alone() -> None:
    assert np.array_equal(train(FEW, Variant(train=False)).weights, initial_weights(FEW.seed))


def test_noise_depends_on_seed_and_query_alone() -> None:
    assert np.array_equal(rollout.noise(5, 2), rollout.noise(5, 2))
    assert not np.array_equal(rollout.noise(5, 2), rollout.noise(5, 3))
    assert not np.array_equal(rollout.noise(5, 2), rollout.noise(6, 2))


def test_euler_integrates_a_constant_velocity_exactly() -> None:
    weights = np.zeros(PARAMETERS, np.float32)
    weights[-48:] = 2.0  # the last bias: velocity 2 everywhere
    start, seen = np.ones((3, 48), np.float32), np.zeros((3, 44), np.float32)
    for steps in (9, 10):
        np.testing.assert_allclose(rollout.act(weights, seen, start, Variant(euler_steps=steps)), 1.5, rtol=1e-6)


def test_an_arm_that_stands_still_neither_succeeds_nor_collides() -> None:
    episodes = rollout.roll_out(initial_weights(0), few_problems(8), Variant(zero_output=True))
    assert not episodes.success.any()
    assert not episodes.collision.any()
    assert (episodes.commands == 80).all()


def test_episodes_repeat_bit_for_bit() -> None:
    first, second = (rollout.roll_out(initial_weights(0), few_problems(16)) for _ in range(2))
    assert np.array_equal(first.tip_error, second.tip_error)
    assert np.array_equal(first.least_gap, second.least_gap)


@pytest.mark.slow
def test_the_trained_policy_reaches_82_percent() -> None:
    trained = train(Recipe(steps=SCHEDULE_STEPS))
    episodes = rollout.roll_out(trained.weights, demos.load("held_out"))
    assert len(episodes.success) == 256
    assert episodes.success.mean() >= 0.82
    assert not (episodes.success & episodes.collision).any()
