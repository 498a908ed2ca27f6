"""What an environment and a policy of the user's must offer, and how their factories are found."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.core.errors import UserError

Array = NDArray[Any]
Observation = Mapping[str, Array]


class Environment(Protocol):
    """A gymnasium environment: one episode after the other, each begun by its seed.

    `info` of `step` says how the episode goes: `success` or `is_success` (in effect if it was true once), and, where
    the environment knows them, `first_collision` (step), `collisions` (names of pairs), `goal_error`, `interventions`,
    `success_safe`, `score`, `rejected` (of `reset`: the planner refused this seed).
    """

    def reset(self, *, seed: int) -> tuple[Any, Mapping[str, Any]]:
        """Begin the episode of a seed: observation and info."""

    def step(self, action: Array) -> tuple[Any, Any, bool, bool, Mapping[str, Any]]:
        """Observation, reward, terminated, truncated, info."""


class Policy(Protocol):
    """A policy that gives chunks of actions for many observations at once.

    `noise_shape` is what it starts from for one observation, () where it draws none; `executed` how many actions of a
    chunk are carried out before it is asked again.
    """

    noise_shape: tuple[int, ...]
    executed: int

    def act(self, observations: Observation, noise: Array) -> Array:
        """Chunks (n, horizon, dimensions) for observations and noise of n rows each."""


def factory(named: str, option: str) -> Callable[..., Any]:
    """The callable `MODULE:NAME`, also of a module in the working folder; UserError names what is not there."""
    module, _, name = named.partition(":")
    if not module or not name:
        raise UserError(f"{option} {named}: expected MODULE:FACTORY, e.g. my_robot.sim:make_env")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise UserError(f"{option} {named}: {module} cannot be imported: {error}") from None
    except AttributeError:
        raise UserError(f"{option} {named}: {module} has no {name}") from None
    if not callable(found):
        raise UserError(f"{option} {named}: it is {type(found).__name__}, expected a function or class")
    result: Callable[..., Any] = found
    return result


def as_observation(seen: Any) -> dict[str, Array]:
    """An observation as arrays by name; one array is called `observation`. TypeError for anything else."""
    named = seen if isinstance(seen, Mapping) else {"observation": seen}
    arrays = {str(name): np.asarray(value) for name, value in named.items()}
    odd = [name for name, array in arrays.items() if array.dtype.kind not in "biuf"]
    if odd:
        raise TypeError(f"observation {odd[0]!r} is {arrays[odd[0]].dtype}, expected numbers")
    return arrays
