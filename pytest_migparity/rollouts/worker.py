"""A worker's own process: simulates the episodes it is told, one after the other.

    python -m pytest_migparity.rollouts.worker --env MODULE:FACTORY --server ADDRESS --horizon N --harness TEXT

Each line of stdin is `{"task": ..., "seed": ...}`; each is answered on stdout by the line of the episode. What the
simulator prints goes to stderr. A fault of the environment or the policy ends the process: whoever started it counts.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
from typing import TextIO

from pytest_migparity.core.errors import UserError
from pytest_migparity.wire.rollouts import to_line

from .client import Client, PolicyError
from .contract import Environment, factory
from .episode import run_episode

MISTAKE = 4


def made(named: str, task: str) -> Environment:
    """The environment of a task: the factory is given the task's name where it takes an argument.

    UserError where there is none to be had: that is no episode's fault.
    """
    make = factory(named, "--env")
    try:
        takes_task = bool(inspect.signature(make).parameters)
    except (TypeError, ValueError):
        takes_task = False
    try:
        environment: Environment = make(task) if takes_task else make()
    except Exception as error:
        raise UserError(f"--env {named}: it could not be made: {type(error).__name__}: {error}") from None
    lacking = [name for name in ("reset", "step") if not callable(getattr(environment, name, None))]
    if lacking:
        raise UserError(f"--env {named}: a {type(environment).__name__} has no {' and no '.join(lacking)}; expected a "
                        "gymnasium environment")
    return environment


def main(words: list[str] | None = None) -> int:
    """Simulate until stdin ends; 4 for a mistake of the user's, 1 where environment or policy failed."""
    parser = argparse.ArgumentParser(prog="rollout-worker", description=main.__doc__)
    for name in ("--env", "--server", "--harness"):
        parser.add_argument(name, required=True)
    parser.add_argument("--horizon", type=int, required=True)
    asked = parser.parse_args(words)
    said = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        _work(asked, said)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return MISTAKE
    except PolicyError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _work(asked: argparse.Namespace, said: TextIO) -> None:
    client = Client(asked.server)
    environments: dict[str, Environment] = {}
    for line in sys.stdin:
        order = json.loads(line)
        task = str(order["task"])
        if task not in environments:
            environments[task] = made(asked.env, task)
        episode = run_episode(environments[task], client.ask, task, int(order["seed"]),
                              noise_shape=client.noise_shape, executed=client.executed, horizon=asked.horizon,
                              harness=asked.harness)
        said.write(to_line(episode))
        said.flush()
    client.close()


if __name__ == "__main__":
    sys.exit(main())
