"""Closed-loop evaluation: the policy drives the arm from start to goal; an episode ends at the goal or a collision."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.rehearsal.arm import (
    CONTROL_PERIOD,
    JOINT_HIGH,
    JOINT_LOW,
    JOINTS,
    MAX_SPEED,
    Floats,
    tip_position,
)
from pytest_migparity.rehearsal.cell import OBSTACLE_KINDS, build_cell
from pytest_migparity.rehearsal.dataset import ACTION_SCALE, ACTION_SIZE, CHUNK
from pytest_migparity.rehearsal.demos import Demonstrations
from pytest_migparity.rehearsal.features import FEATURES, as_seen, features
from pytest_migparity.rehearsal.policy import forward, network_input
from pytest_migparity.rehearsal.precision import Singles
from pytest_migparity.rehearsal.teacher import HORIZON, motion_gaps
from pytest_migparity.rehearsal.variant import OFFICIAL, Variant
from pytest_migparity.rollouts.noise import noise_of

EXECUTED = 4
"""Commands of a chunk that are executed before the policy is asked again."""
REACHED = 30.0
"""mm between tip and goal at which an episode succeeds."""
OVERTRAVEL = 0.1
GAP_CAP = 60.0


@dataclass(frozen=True, slots=True)
class Episodes:
    """Outcome of n episodes: success and collision (n,), least gap and last tip error (n,) in mm, length (n,).

    `touched` are the names of what had collided when each ended.
    """

    success: NDArray[np.bool_]
    collision: NDArray[np.bool_]
    least_gap: Floats
    tip_error: Floats
    commands: NDArray[np.int64]
    touched: tuple[tuple[str, ...], ...] = ()


def noise(seed: int, query: int) -> Singles:
    """The noise (48,) that the policy starts from at an episode's `query`: a function of (seed, query) alone."""
    start: Singles = noise_of(int(seed), query, (ACTION_SIZE,))
    return start


def pushed(q: Floats, action: Floats) -> tuple[Floats, Floats]:
    """(joints (n, 6) after one command, least gap (n, groups) in mm on the way) for actions (n, 6) within -1 and 1."""
    moved = np.clip(q + action * MAX_SPEED * CONTROL_PERIOD, JOINT_LOW - OVERTRAVEL, JOINT_HIGH + OVERTRAVEL)
    return moved, motion_gaps(q, moved, GAP_CAP).min(0)


def touching(gaps: Floats) -> list[str]:
    """Names of the groups that touch, from one configuration's gaps (groups,)."""
    groups = build_cell().groups
    return [f"link {i} - {OBSTACLE_KINDS[other] if kind == 'obstacle' else f'link {other}'}"
            for (i, kind, other), gap in zip(groups, gaps.tolist(), strict=True) if gap <= 0]


def act(weights: Singles, seen: Singles, start: Singles, variant: Variant = OFFICIAL) -> Singles:
    """Integrate the flow from noise `start` (n, 48) with Euler steps: chunks (n, 48) of velocities / MAX_SPEED."""
    chunk = start.copy()
    for k in range(variant.euler_steps):
        time = np.full(len(chunk), k / variant.euler_steps, np.float32)
        velocity, _ = forward(weights, network_input(chunk, seen, time), variant)
        chunk = chunk + np.float32(1 / variant.euler_steps) * velocity
    if variant.zero_output:
        return np.zeros_like(chunk)
    return chunk * np.float32(1 / ACTION_SCALE)


def roll_out(weights: Singles, problems: Demonstrations, variant: Variant = OFFICIAL) -> Episodes:
    """Drive every problem, all of them at once.

    The network always sees a full batch, ended episodes included: a matrix product's bits depend on its row count
    (a single row even takes another path), and an episode must not depend on how long others live.
    """
    q, goal = problems.start.copy(), problems.goal
    target = tip_position(goal)
    count = len(q)
    alive = np.ones(count, bool)
    success, collision = np.zeros(count, bool), np.zeros(count, bool)
    least_gap, error = np.full(count, GAP_CAP), np.linalg.norm(target - tip_position(q), axis=1)
    commands = np.zeros(count, np.int64)
    touched: list[tuple[str, ...]] = [()] * count
    seen = np.zeros((count, FEATURES), np.float32)
    chunk = np.zeros((count, CHUNK, JOINTS))
    for step in range(HORIZON):
        live = np.flatnonzero(alive)
        if not len(live):
            break
        if step % EXECUTED == 0:
            seen[live] = as_seen(features(q[live], goal[live]), q[live], goal[live], variant)
            start = np.stack([noise(seed, step // EXECUTED) for seed in problems.seeds])
            actions = act(weights, seen, start, variant).astype(np.float64)
            chunk = np.clip(actions.reshape(count, CHUNK, JOINTS), -1, 1)
        moved, gaps = pushed(q[live], chunk[live, step % EXECUTED])
        gap = gaps.min(1)
        for index, one in zip(live[gap <= 0], gaps[gap <= 0], strict=True):
            touched[index] = tuple(touching(one))
        q[live] = moved
        commands[live] = step + 1
        least_gap[live] = np.minimum(least_gap[live], gap)
        error[live] = np.linalg.norm(target[live] - tip_position(moved), axis=1)
        collision[live] = gap <= 0
        success[live] = (gap > 0) & (error[live] < REACHED)
        alive[live] = ~(collision[live] | success[live])
    return Episodes(success, collision, least_gap, error, commands, tuple(touched))
