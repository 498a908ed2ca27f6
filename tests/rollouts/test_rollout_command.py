"""The command: from a factory to a file that L7 takes, and a run that ends with its answer."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pytest_migparity.cli import app
from pytest_migparity.core.errors import UserError
from pytest_migparity.decided import Decided, in_order
from pytest_migparity.wire.rollouts import Episode, from_text, to_line

HERE = str(Path(__file__).parent)


@pytest.fixture(autouse=True)
def toy_on_the_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([HERE, *sys.path]))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")


def rollout(*words):
    return CliRunner().invoke(app, ["rollout", "--env", "toy_loop:Line", "--policy", "toy_loop:Forward", *map(str, words)])


def test_a_plan_is_run_and_run_again_costs_nothing(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps([{"task": "line", "seed": seed} for seed in range(6)]))
    words = ("--plan", tmp_path / "plan.json", "--out", tmp_path / "r.jsonl", "--horizon", 30)
    done = rollout(*words)
    assert done.exit_code == 0, done.output
    assert "6 of 6 episodes, 6 succeeded, 0 without an outcome" in done.output
    before = (tmp_path / "r.jsonl").read_bytes()
    assert "6 of an earlier run" in rollout(*words).output
    assert (tmp_path / "r.jsonl").read_bytes() == before


def test_episodes_run_in_the_order_in_which_they_are_judged(tmp_path):
    rollout("--task", "line", "--seeds", "0-19", "--out", tmp_path / "r.jsonl", "--workers", 1)
    ran = [(episode.task, episode.seed) for episode in from_text((tmp_path / "r.jsonl").read_text()).episodes]
    assert ran == in_order(("line", seed) for seed in range(20))
    assert ran != sorted(ran)


@pytest.mark.parametrize("horizon, outcome, code", [(40, "PASS", 0), (1, "FAIL", 1)])
def test_a_run_ends_as_soon_as_the_level_is_decided(tmp_path, horizon, outcome, code):
    """All succeed on both sides: 34 pairs certify a margin of .10; none does: sooner."""
    with (tmp_path / "base.jsonl").open("w") as stream:
        for seed in range(200):
            stream.write(to_line(Episode("line", seed, True, steps=5, harness="h")))
    done = rollout("--task", "line", "--seeds", "0-199", "--out", tmp_path / "r.jsonl", "--horizon", horizon,
                   "--harness", "h", "--until-decided", tmp_path / "base.jsonl", "--workers", 1)
    assert done.exit_code == code, done.output
    assert f"L7 so far: {outcome}" in done.output
    assert len(from_text((tmp_path / "r.jsonl").read_text()).episodes) <= 34


def test_episodes_beyond_the_first_that_has_not_ended_are_not_looked_at(tmp_path):
    """What ends early is not a random choice: short episodes may be the failed ones."""
    planned = in_order(("line", seed) for seed in range(100))
    (tmp_path / "base.jsonl").write_text("".join(to_line(Episode("line", seed, True, harness="h")) for seed in range(100)))
    decided = Decided(tmp_path / "base.jsonl", planned, 0.1, 0.05)
    failed = [Episode(task, seed, False, harness="h") for task, seed in planned]
    assert not decided(failed[1:])
    assert decided(failed)
    assert decided.outcome == "FAIL"


@pytest.mark.parametrize("words, said", [
    (("--seeds", "9-1"), "expected first-last"), (("--seeds", "all"), "expected first-last"), ((), "either --plan FILE"),
    (("--plan", "absent.json"), "absent.json: No such file"),
    (("--seeds", "0-1", "--until-decided", "absent.jsonl"), "absent.jsonl: No such file"),
    (("--seeds", "0-1", "--until-decided", "r.jsonl"), "not its own baseline")])
def test_a_mistake_is_said(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    done = rollout("--out", "r.jsonl", *words)
    assert isinstance(done.exception, UserError)
    assert said in str(done.exception)
    assert not (tmp_path / "r.jsonl").exists()


@pytest.mark.parametrize("plan", ["{}", "[1]", '[{"task": "a"}]', "nonsense"])
def test_a_plan_that_is_none_is_refused(tmp_path, plan):
    (tmp_path / "plan.json").write_text(plan)
    assert "expected a JSON list" in str(rollout("--out", tmp_path / "r", "--plan", tmp_path / "plan.json").exception)
