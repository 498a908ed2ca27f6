"""Training samples from demonstrations, and the order in which steps read them."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.rehearsal.arm import CONTROL_PERIOD, JOINTS, MAX_SPEED, Floats
from pytest_migparity.rehearsal.demos import load
from pytest_migparity.rehearsal.recipe import Recipe
from pytest_migparity.rehearsal.teacher import timed
from pytest_migparity.rehearsal.variant import Variant

CHUNK = 8
"""Commands predicted at once."""
ACTION_SIZE = CHUNK * JOINTS
ACTION_SCALE = 2.0
"""Network targets are joint velocities as a fraction of MAX_SPEED, times this."""

COPIES = 2
"""Each demonstration is used once as it is, and once displaced, with actions that lead back to the path."""
DISPLACEMENT = 0.05
"""rad, standard deviation; less near the goal."""
RETURN_STEPS = 6
DATASET_STREAM = 3
ORDER_STREAM = 11

CORRUPTED_ROW = 17
"""Which sample of the batch `Variant.corrupted_step` spoils."""


@dataclass(frozen=True, slots=True)
class Samples:
    """joints, goal: (n, 6) rad; actions: (n, 48) float32, chunks of 8 velocities / MAX_SPEED * ACTION_SCALE."""

    joints: Floats
    goal: Floats
    actions: NDArray[np.float32]


@cache
def samples() -> Samples:
    """Every sample of the packaged training demonstrations, in a fixed order."""
    random = np.random.default_rng(DATASET_STREAM)
    ahead = np.arange(CHUNK + 1)
    fading = np.clip(1 - ahead / RETURN_STEPS, 0, 1)[None, :, None]
    joints, goals, actions = [], [], []
    for path in load("training").paths:
        way = timed(path)
        steps = len(way) - 1
        held = np.concatenate([way, np.repeat(way[-1:], CHUNK, 0)])  # stay at the goal
        planned = held[np.arange(steps)[:, None] + ahead]
        room = np.minimum(1, 0.15 + 2 * np.abs(way[-1] - way[:-1]).max(1)[:, None])
        for copy in range(COPIES):
            shift = random.normal(size=(steps, JOINTS)) * (DISPLACEMENT if copy else 0) * room
            desired = planned + shift[:, None] * fading
            velocity = (desired[:, 1:] - desired[:, :-1]) / CONTROL_PERIOD / MAX_SPEED
            joints.append(desired[:, 0])
            actions.append(np.clip(velocity, -1, 1).reshape(steps, ACTION_SIZE))
            goals.append(np.repeat(way[-1:], steps, 0))
    scaled = np.concatenate(actions).astype(np.float32) * np.float32(ACTION_SCALE)
    return Samples(np.concatenate(joints), np.concatenate(goals), scaled)


def rows_of_steps(recipe: Recipe, variant: Variant, steps: int, count: int) -> NDArray[np.int64]:
    """Dataset rows that each step reads: (steps, batch size). `count` is the size of the dataset.

    Rows are shuffled anew by (seed, epoch); an epoch's last incomplete batch is dropped.
    """
    per_epoch = count // recipe.batch_size
    wanted = steps + variant.loader_offset
    batches = [
        np.random.default_rng([recipe.seed + variant.order_seed, ORDER_STREAM, epoch])
        .permutation(count)[: per_epoch * recipe.batch_size]
        .reshape(per_epoch, recipe.batch_size)
        for epoch in range(-(-wanted // per_epoch))
    ]
    return np.concatenate(batches)[variant.loader_offset : wanted]
