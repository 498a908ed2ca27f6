"""The arm as an environment and a policy for `migparity rollout`, and the same episodes all at once as evidence.

MIGPARITY_REHEARSAL_POLICY=policy.npz migparity rollout --env pytest_migparity.rehearsal.closed_loop:Arm
--policy pytest_migparity.rehearsal.closed_loop:policy ...
"""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.core.errors import UserError
from pytest_migparity.rehearsal import demos
from pytest_migparity.rehearsal.arm import JOINTS, tip_position
from pytest_migparity.rehearsal.dataset import ACTION_SIZE, CHUNK
from pytest_migparity.rehearsal.faults import fault_named
from pytest_migparity.rehearsal.features import as_seen, features
from pytest_migparity.rehearsal.policy import PARAMETERS
from pytest_migparity.rehearsal.precision import Singles
from pytest_migparity.rehearsal.rollout import EXECUTED, REACHED, Episodes, act, pushed, touching
from pytest_migparity.rehearsal.teacher import HORIZON
from pytest_migparity.rehearsal.variant import OFFICIAL, Variant
from pytest_migparity.rollouts.noise import stream_of
from pytest_migparity.wire.rollouts import Episode

POLICY = "MIGPARITY_REHEARSAL_POLICY"
TASK = "reach"
HARNESS = "rehearsal arm 1"


class Arm:
    """One held-out problem of the arm, named by its seed; an action is six joint velocities over their limits."""

    def __init__(self) -> None:
        self._q = self._goal = np.zeros((1, JOINTS))
        self._steps = 0

    def reset(self, *, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin the problem of a seed; one that nobody could solve is rejected."""
        place = _places().get(seed)
        self._steps = 0
        if place is None:
            return self._seen(), {"rejected": True}
        problems = demos.load("held_out")
        self._q, self._goal = problems.start[place:place + 1], problems.goal[place:place + 1]
        return self._seen(), {}

    def step(self, action: NDArray[Any]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Move for one control period; the episode ends at the goal or at a collision."""
        self._q, gaps = pushed(self._q, np.clip(np.asarray(action, np.float64), -1, 1)[None])
        self._steps += 1
        error = float(np.linalg.norm(tip_position(self._goal) - tip_position(self._q)))
        collided = bool(gaps.min() <= 0)
        reached = not collided and error < REACHED
        info: dict[str, Any] = {"success": reached, "goal_error": error, "collisions": touching(gaps[0])}
        if collided:
            info["first_collision"] = self._steps
        return self._seen(), 0.0, collided or reached, False, info

    def _seen(self) -> dict[str, Any]:
        return {"joints": self._q[0].copy(), "goal": self._goal[0].copy()}


class FlowPolicy:
    """The trained network as the side in question runs it: its sampler, its precision, its features."""

    noise_shape: tuple[int, ...] = (ACTION_SIZE,)
    executed = EXECUTED

    def __init__(self, weights: Singles, variant: Variant = OFFICIAL) -> None:
        self._weights, self._variant = weights, variant

    def act(self, observations: Mapping[str, NDArray[Any]], start: NDArray[Any]) -> NDArray[np.float64]:
        """Chunks (n, 8, 6) of joint velocities over their limits."""
        q, goal = observations["joints"], observations["goal"]
        seen = as_seen(features(q, goal), q, goal, self._variant)
        chunk = act(self._weights, seen, start, self._variant).astype(np.float64)
        return np.clip(chunk.reshape(len(q), CHUNK, JOINTS), -1, 1)


def write_policy(path: Path, weights: Singles, fault: str | None = None) -> None:
    """Write what `policy` reads: the weights, and the fault that their side runs with."""
    with path.open("xb") as stream:
        np.savez(stream, weights=weights, fault=np.array(fault or ""))


def policy() -> FlowPolicy:
    """The policy in the file that MIGPARITY_REHEARSAL_POLICY names."""
    path = os.environ.get(POLICY, "")
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            weights, fault = arrays["weights"], str(arrays["fault"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise UserError(f"{POLICY} = {path!r} is no policy of the rehearsal: {error}") from None
    if weights.shape != (PARAMETERS,) or weights.dtype != np.float32:
        raise UserError(f"{POLICY} = {path!r} holds {weights.dtype} {weights.shape}, expected float32 ({PARAMETERS},)")
    return FlowPolicy(weights, fault_named(fault or None).variant)


def as_rollouts(problems: demos.Demonstrations, ran: Episodes) -> list[Episode]:
    """Episodes that `roll_out` drove all at once, as lines of `rollouts.jsonl`."""
    found = []
    for index, seed in enumerate(problems.seeds.tolist()):
        collided = bool(ran.collision[index])
        steps = int(ran.commands[index])
        found.append(Episode(
            TASK, seed, bool(ran.success[index]), steps=steps, goal_error=float(ran.tip_error[index]),
            first_collision=float(steps) if collided else None, collisions=ran.touched[index],
            timeout=not (collided or bool(ran.success[index])), harness=HARNESS, horizon=HORIZON,
            noise=stream_of(seed, (ACTION_SIZE,))))
    return found


@cache
def _places() -> Mapping[int, int]:
    return {seed: place for place, seed in enumerate(demos.load("held_out").seeds.tolist())}
