"""A simulator that nobody here wrote: FetchPickAndPlace, a policy trained here, and sides of it that are spoilt or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium_robotics")

from pytest_migparity.core.evidence import Evidence, Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.decided import Decided, in_order
from pytest_migparity.host.actions import write_actions
from pytest_migparity.judges.action_error import judge_actions
from pytest_migparity.readers.actions import read_actions
from pytest_migparity.rollouts.noise import digest_of, noise_of
from pytest_migparity.rollouts.run import Order, Run
from pytest_migparity.wire.actions import Meta

HERE = Path(__file__).parent
EPISODES = in_order(("pick-and-place", seed) for seed in range(200))
PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("fetch")]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The trained policy, and the baseline's 200 episodes."""
    folder = tmp_path_factory.mktemp("fetch")
    settings = {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "FETCH_POLICY": str(folder / "policy.npz"),
                "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        trained = subprocess.run([sys.executable, HERE / "fetch.py", folder / "policy.npz"], capture_output=True,
                                 text=True, check=False)
        assert trained.returncode == 0, trained.stderr[-2000:]
        done = Run(order(folder / "baseline.jsonl"))()
        assert 0.7 <= np.mean([episode.success for episode in done]) < 1
        yield folder


def order(out):
    return Order("fetch:Fetch", EPISODES, out, policy="fetch:Policy", workers=2, rows=4, horizon=50,
                 harness="FetchPickAndPlace-v4")


@pytest.mark.parametrize("variant, outcome", [
    ("bf16", PASS), ("euler-11", PASS), ("axis-scaled", FAIL), ("int4-weights", FAIL), ("stale-normalisation", FAIL)])
def test_a_spoilt_side_fails_and_a_harmless_one_passes_before_all_episodes_ran(home, monkeypatch, variant, outcome):
    monkeypatch.setenv("FETCH_VARIANT", variant)
    decided = Decided(home / "baseline.jsonl", EPISODES, 0.1, 0.05)
    done = Run(order(home / f"{variant}.jsonl"), enough=decided)()
    assert decided.outcome is outcome
    assert len(done) < len(EPISODES)
    assert all(episode.success is not None for episode in done)


@pytest.mark.parametrize("variant, outcome, said", [
    ("", PASS, "action-part"), ("euler-11", INCONCLUSIVE, "action-steps"), ("axis-scaled", FAIL, "action-part")])
def test_the_level_below_asks_for_rollouts_where_it_cannot_tell(home, monkeypatch, variant, outcome, said):
    """Eleven sampler steps are named before any number is worked out; a scaled axis needs no rollout."""
    sys.path.insert(0, str(HERE))
    try:
        import fetch
    finally:
        sys.path.remove(str(HERE))
    seen = np.stack([fetch.Fetch().reset(seed=seed)[0] for seed in range(24)])
    noise = np.stack([noise_of(seed, 0, (fetch.OUT,)) for seed in range(24)])
    tables = []
    for side, name in (("baseline", ""), ("candidate", variant)):
        monkeypatch.setenv("FETCH_VARIANT", name)
        values = fetch.Policy().act({"observation": seen}, noise) * (1 if side == "baseline" else 1 + 1e-6)
        path = home / f"{side}-{name}-{variant}.npz"
        meta = Meta("actions", ("x", "y", "z", "grip"), (), 11 if name == "euler-11" else 10, "none", "", side, side)
        write_actions(str(path), values, [str(seed) for seed in range(24)], meta,
                      noise=[digest_of(each) for each in noise])
        tables.append(read_actions({path.name: lambda path=path: path.open("rb")}))
    sides = [Evidence(side, "actions", (Recorded(table, Witness(side, "real", side, side)),))
             for side, table in zip(("baseline", "candidate"), tables, strict=True)]
    finding = judge_actions(*sides, limits=default_limits(LEVELS["L6"]), floors=Floors(), policy=Policy())
    assert finding.outcome is outcome, finding.notes
    assert said in {item.code for item in finding.notes}
