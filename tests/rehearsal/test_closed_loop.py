"""The arm through the runner: the same episodes as all at once, whoever simulates them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.rehearsal import closed_loop, demos
from pytest_migparity.rehearsal.arm import CONTROL_PERIOD, MAX_SPEED
from pytest_migparity.rehearsal.policy import initial_weights
from pytest_migparity.rehearsal.rollout import roll_out
from pytest_migparity.rehearsal.teacher import HORIZON, timed
from pytest_migparity.rollouts.run import Order, Run


def first(count):
    held = demos.load("held_out")
    return demos.Demonstrations(held.seeds[:count], held.paths[:count])


def test_the_teachers_replay_succeeds_in_the_environment():
    """The simulator is cleared by a policy of known success before any other is judged."""
    problems = first(12)
    arm = closed_loop.Arm()
    for seed, path in zip(problems.seeds.tolist(), problems.paths, strict=True):
        arm.reset(seed=seed)
        way = timed(path)
        for action in np.diff(way, axis=0) / (MAX_SPEED * CONTROL_PERIOD):
            _, _, ended, _, info = arm.step(action)
            if ended:
                break
        assert info["success"], (seed, info)
        assert info["collisions"] == []


def test_a_problem_that_nobody_solved_is_rejected():
    assert closed_loop.Arm().reset(seed=1)[1] == {"rejected": True}


TRAINED = """
import sys
from pathlib import Path
from pytest_migparity.rehearsal.closed_loop import write_policy
from pytest_migparity.rehearsal.recipe import STANDARD
from pytest_migparity.rehearsal.train import train
write_policy(Path(sys.argv[1]), train(STANDARD, steps=150).weights)
"""


def test_the_runner_and_all_at_once_give_the_same_episodes(tmp_path, monkeypatch):
    problems = first(24)
    monkeypatch.setenv(closed_loop.POLICY, str(tmp_path / "policy.npz"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    subprocess.run([sys.executable, "-c", TRAINED, tmp_path / "policy.npz"], check=True,
                   env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    with np.load(tmp_path / "policy.npz") as arrays:
        weights = arrays["weights"]
    order = Order("pytest_migparity.rehearsal.closed_loop:Arm", [(closed_loop.TASK, int(seed)) for seed in problems.seeds],
                  tmp_path / "rollouts.jsonl", policy="pytest_migparity.rehearsal.closed_loop:policy", horizon=HORIZON,
                  harness=closed_loop.HARNESS)
    ran = {episode.seed: episode for episode in Run(order)()}
    for expected in closed_loop.as_rollouts(problems, roll_out(weights, problems)):
        found = ran[expected.seed]
        assert found.goal_error == pytest.approx(expected.goal_error, abs=1e-3)
        assert found._replace(goal_error=None, init="") == expected._replace(goal_error=None)
    assert {episode.success for episode in ran.values()} == {True, False}
    assert any(episode.collisions for episode in ran.values())


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04"])
def test_a_file_that_is_no_policy_is_refused(tmp_path, monkeypatch, content):
    if content is not None:
        (tmp_path / "p.npz").write_bytes(content)
    monkeypatch.setenv(closed_loop.POLICY, str(tmp_path / "p.npz"))
    with pytest.raises(UserError, match="is no policy of the rehearsal"):
        closed_loop.policy()


def test_weights_of_another_network_are_refused(tmp_path, monkeypatch):
    closed_loop.write_policy(tmp_path / "p.npz", initial_weights(0)[:-1])
    monkeypatch.setenv(closed_loop.POLICY, str(tmp_path / "p.npz"))
    with pytest.raises(UserError, match="expected float32"):
        closed_loop.policy()
