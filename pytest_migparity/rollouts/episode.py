"""One episode: an environment driven by a policy that is asked for chunks of actions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pytest_migparity.wire.rollouts import Episode

from .contract import Array, Environment, as_observation
from .noise import noise_of, stream_of

Ask = Callable[[Mapping[str, Array], Array, int, int], Array]
"""(observation, noise, seed, query) -> chunk (horizon, dimensions)."""


def run_episode(environment: Environment, ask: Ask, task: str, seed: int, *, noise_shape: tuple[int, ...],
                executed: int, horizon: int, harness: str) -> Episode:
    """Drive one episode to its end or to `horizon` steps. Raises what environment or policy raise."""
    seen, info = environment.reset(seed=seed)
    observation = as_observation(seen)
    told = Told()
    initial = _digest(observation)
    if info.get("rejected"):
        return Episode(task, seed, None, error="rejected", init=initial, harness=harness, horizon=horizon)
    steps, ended, chunk = 0, False, np.zeros((0, 0))
    while steps < horizon and not ended:
        if steps % executed == 0:
            noise = noise_of(seed, steps // executed, noise_shape)
            chunk = ask(observation, noise, seed, steps // executed)
            if chunk.ndim != 2 or len(chunk) < executed or not np.isfinite(chunk).all():
                broken = "" if np.isfinite(chunk).all() else " with NaN or Inf"
                raise ValueError(f"the policy gave actions of shape {chunk.shape}{broken}, expected at least "
                                 f"{executed} finite ones (horizon, dimensions)")
        seen, _, terminated, truncated, info = environment.step(chunk[steps % executed])
        observation = as_observation(seen)
        steps += 1
        told.hear(info)
        ended = bool(terminated or truncated)
    return told.episode(task, seed, steps, init=initial, noise=stream_of(seed, noise_shape),
                        timeout=not ended, harness=harness, horizon=horizon)


class Told:
    """What `info` said of an episode: success once is success, the last word counts for the rest."""

    def __init__(self) -> None:
        self._success: bool | None = None
        self._last: dict[str, Any] = {}

    def hear(self, info: Mapping[str, Any]) -> None:
        """One step's `info`."""
        for key in ("success", "is_success"):
            if key in info:
                self._success = bool(self._success) or bool(info[key])
        for key in ("first_collision", "goal_error", "interventions", "success_safe", "score", "collisions"):
            if info.get(key) is not None:
                self._last[key] = info[key]

    def episode(self, task: str, seed: int, steps: int, **more: Any) -> Episode:
        """The episode as it ended; ValueError where nobody said whether it succeeded."""
        if self._success is None:
            raise ValueError("the environment's info holds neither \"success\" nor \"is_success\"")
        numbers: dict[str, Any] = {key: float(self._last[key]) for key in ("first_collision", "goal_error", "score")
                                   if key in self._last and math.isfinite(float(self._last[key]))}
        if "interventions" in self._last:
            numbers["interventions"] = int(self._last["interventions"])
        safe = bool(self._last["success_safe"]) if "success_safe" in self._last else None
        pairs = tuple(sorted(map(str, self._last["collisions"]))) if "collisions" in self._last else None
        return Episode(task, seed, self._success, steps=steps, success_safe=safe, collisions=pairs, **numbers, **more)


def _digest(observation: Mapping[str, Array]) -> str:
    """16 hex digits of the first observation: what tells two sides that their initial states differ."""
    held = hashlib.sha256()
    for name in sorted(observation):
        array = np.ascontiguousarray(observation[name])
        held.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        held.update(array.tobytes())
    return held.hexdigest()[:16]
