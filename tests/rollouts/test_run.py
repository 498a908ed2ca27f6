"""Many episodes: what every one comes to, whoever else runs, whatever dies in between, and however often it is started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.rollouts.devices import rendering
from pytest_migparity.rollouts.run import Order, Run
from pytest_migparity.wire.rollouts import from_text

HERE = str(Path(__file__).parent)
EPISODES = [("line", seed) for seed in range(12)]


@pytest.fixture(autouse=True)
def toy_on_the_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([HERE, *sys.path]))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")


def order(out, **changes):
    found = {"env": "toy_loop:Line", "policy": "toy_loop:Forward", "episodes": EPISODES, "out": out, "horizon": 6,
             "harness": "toy 1"}
    return Order(**{**found, **changes})


def by_hand(seed, horizon=6):
    """(success, steps) from the published noise: Philox keyed by seed and query, standard normal, float32."""
    at, steps = -float(seed % 5), 0
    while steps < horizon and at < 1:
        if steps % 2 == 0:
            random = np.random.Generator(np.random.Philox(key=np.array([seed, steps // 2], np.uint64)))
            moves = [0.25, abs(random.standard_normal((2,), np.float32)[1])]
        at += float(np.float64(moves[steps % 2]))
        steps += 1
    return at >= 1, steps


def outcomes(episodes):
    return {episode.seed: (episode.success, episode.steps) for episode in episodes}


EXPECTED = {seed: by_hand(seed) for _, seed in EPISODES}


@pytest.mark.parametrize("workers, rows", [(1, 1), (2, 2), (2, 5)])
def test_every_episode_comes_out_as_by_hand_however_many_run_at_once(tmp_path, monkeypatch, workers, rows):
    monkeypatch.setenv("TOY_ROWS", str(rows))
    Run(order(tmp_path / "r.jsonl", workers=workers, rows=rows))()
    found = from_text((tmp_path / "r.jsonl").read_text()).episodes
    assert outcomes(found) == EXPECTED
    assert {success for success, _ in EXPECTED.values()} == {True, False}
    one = found[0]
    assert (one.task, one.harness, one.horizon, one.collisions) == ("line", "toy 1", 6, ("arm-table",))
    assert len({episode.noise for episode in found}) == len(EPISODES)
    assert len({episode.init for episode in found}) == len(EPISODES)


def test_a_worker_that_dies_costs_no_episode(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_DEADLY", "3")
    monkeypatch.setenv("TOY_ONCE", str(tmp_path / "died"))
    assert outcomes(Run(order(tmp_path / "r.jsonl"))()) == EXPECTED
    assert (tmp_path / "died").exists()


@pytest.mark.parametrize("how, said", [("TOY_DEADLY", "exit code 9"), ("TOY_ODD", "the gripper fell off")])
def test_an_episode_that_kills_its_worker_again_counts_as_a_crash_with_its_reason(tmp_path, monkeypatch, how, said):
    monkeypatch.setenv(how, "3")
    found = {episode.seed: episode for episode in Run(order(tmp_path / "r.jsonl"))()}
    assert (found[3].success, found[3].error) == (None, "crash")
    assert said in found[3].reason
    assert outcomes(found.values()) == {**EXPECTED, 3: (None, None)}


def test_a_seed_that_the_planner_refuses_is_kept_as_such(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_REJECTED", "3")
    found = {episode.seed: episode for episode in Run(order(tmp_path / "r.jsonl"))()}
    assert (found[3].success, found[3].error) == (None, "rejected")


def test_a_policy_server_that_dies_is_started_again_and_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_SERVER_DIES", str(tmp_path / "died"))
    assert outcomes(Run(order(tmp_path / "r.jsonl"))()) == EXPECTED
    assert (tmp_path / "died").exists()


def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path):
    """Killed outright, workers and all; the line that was being written is run again, no other."""
    out = tmp_path / "r.jsonl"
    code = ("import toy_loop, sys; from pathlib import Path; from pytest_migparity.rollouts.run import Order, Run\n"
            "import os; Run(Order('toy_loop:Line', [('line', seed) for seed in range(12)], Path(sys.argv[1]),"
            " policy='toy_loop:Forward', horizon=6, harness='toy 1'),"
            " told=lambda episode: os.kill(os.getpid(), 9) if Path(sys.argv[1]).read_text().count(chr(10)) == 5 else None)()")
    ended = subprocess.run([sys.executable, "-c", code, out], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    kept = out.read_text()
    assert kept.count("\n") == 5
    out.write_text(kept + '{"task": "line", "se')
    run = Run(order(out))
    assert outcomes(run()) == EXPECTED
    assert (run.resumed, run.torn) == (5, '{"task": "line", "se')
    assert out.read_text().startswith(kept)
    assert len(from_text(out.read_text()).episodes) == 12


def test_a_killed_runs_processes_end_by_themselves(tmp_path):
    """A worker whose employer is gone reads the end of its input; it does not wait for ever."""
    worker = subprocess.Popen([sys.executable, "-m", "pytest_migparity.rollouts.server", "--policy", "toy_loop:Forward",
                               "--socket", str(tmp_path / "s")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert b"serves" in worker.stdout.readline()
    worker.stdin.close()
    assert worker.wait(timeout=20) == 0
    worker.stdout.close()


@pytest.mark.parametrize("changes, said", [
    ({"harness": "toy 2"}, "name another --out"), ({"horizon": 7}, "name another --out"),
    ({"episodes": EPISODES[1:]}, "seed 0, which is not planned"), ({"episodes": [*EPISODES, EPISODES[0]]}, "planned twice"),
    ({"env": "toy_loop:Nothing"}, "toy_loop has no Nothing"), ({"policy": "no_such_module:x"}, "cannot be imported"),
    ({"policy": "toy_loop"}, "expected MODULE:FACTORY"), ({"server": "ws://127.0.0.1:1"}, "either --policy"),
    ({"policy": "toy_loop:lazy", "out": "other"}, "no weights here"),
    ({"policy": "os:getcwd", "out": "other"}, "a str has no noise_shape, executed, act"),
    ({"env": "os:getcwd", "out": "other"}, "a str has no reset and no step"),
    ({"env": "toy_loop:lazy", "out": "other"}, "it could not be made: RuntimeError: no weights here")])
def test_a_mistake_is_said_and_nothing_is_written(tmp_path, changes, said):
    out = tmp_path / "r.jsonl"
    Run(order(out, episodes=EPISODES[:1]))()
    before = out.read_text()
    if "out" in changes:
        changes = {**changes, "out": tmp_path / "other"}
    with pytest.raises(UserError, match=said):
        Run(order(**{"out": out, "episodes": EPISODES, **changes}))()
    assert out.read_text() == before
    assert not (tmp_path / "other").exists() or (tmp_path / "other").read_text() == ""


def test_a_run_whose_every_episode_crashes_ends_after_a_few(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_BROKEN", "1")
    with pytest.raises(UserError, match=r"the first 4 episodes all crashed, the last with: .*the arm is not plugged in"):
        Run(order(tmp_path / "r.jsonl"))()
    assert 4 <= len(from_text((tmp_path / "r.jsonl").read_text()).episodes) <= 5


def test_a_file_that_holds_something_else_is_kept(tmp_path):
    (tmp_path / "r.jsonl").write_text("my notes\n")
    with pytest.raises(UserError, match="name another --out"):
        Run(order(tmp_path / "r.jsonl"))()
    assert (tmp_path / "r.jsonl").read_text() == "my notes\n"


def test_a_run_ends_as_soon_as_it_is_enough(tmp_path):
    found = Run(order(tmp_path / "r.jsonl", workers=1), enough=lambda done: len(done) >= 4)()
    assert [episode.seed for episode in found] == [0, 1, 2, 3]


def websocket(tmp_path):
    server = subprocess.Popen([sys.executable, "-m", "pytest_migparity.rollouts.server", "--policy", "toy_loop:Forward",
                               "--rows", "2", "--port", "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return server, json.loads(server.stdout.readline())["serves"]


def test_a_policy_on_another_host_gives_the_same_episodes(tmp_path):
    pytest.importorskip("websockets")
    server, address = websocket(tmp_path)
    try:
        assert outcomes(Run(order(tmp_path / "r.jsonl", policy="", server=address))()) == EXPECTED
    finally:
        server.kill()
        server.wait()
        server.stdin.close()
        server.stdout.close()


def test_a_server_that_drops_the_noise_is_refused(tmp_path):
    """As openpi's own server does: its episodes could be paired with nobody's."""
    serve = pytest.importorskip("websockets.sync.server").serve
    import threading

    from pytest_migparity.rollouts.client import Client, PolicyError
    from pytest_migparity.rollouts.frames import from_frame, to_frame

    def converse(connection):
        for frame in connection:
            head, _ = from_frame(frame)
            reply = {"noise_shape": [2], "executed": 2} if head["ask"] == "hello" else \
                {"seed": head["seed"], "query": head["query"]}
            connection.send(to_frame(reply, {} if head["ask"] == "hello" else {"chunk": np.zeros((2, 2))}))

    with serve(converse, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = Client(f"ws://127.0.0.1:{server.socket.getsockname()[1]}")
        with pytest.raises(PolicyError, match="did not start from the noise"):
            client.ask({"place": np.zeros(1)}, np.zeros(2, np.float32), 1, 0)
        client.close()
        server.shutdown()


@pytest.mark.parametrize("settings, expected", [
    ({}, ["", ""]), ({"MUJOCO_GL": "egl"}, ["", ""]), ({"MUJOCO_GL": "egl", "CUDA_VISIBLE_DEVICES": "4,6"}, ["4", "6"]),
    ({"PYOPENGL_PLATFORM": "egl", "CUDA_VISIBLE_DEVICES": "3"}, ["3", "3"]),
    ({"MUJOCO_GL": "egl", "CUDA_VISIBLE_DEVICES": "4,6", "MUJOCO_EGL_DEVICE_ID": "6"}, ["", ""])])
def test_a_simulator_renders_on_a_device_that_it_may_see(settings, expected):
    assert [rendering(worker, settings).get("MUJOCO_EGL_DEVICE_ID", "") for worker in (0, 1)] == expected


@pytest.mark.parametrize("settings", [
    {"CUDA_VISIBLE_DEVICES": "4,6", "MUJOCO_EGL_DEVICE_ID": "0"}, {"CUDA_VISIBLE_DEVICES": "GPU-9a0b"}])
def test_a_device_that_is_not_shown_is_refused(settings):
    with pytest.raises(UserError, match="MUJOCO_EGL_DEVICE_ID"):
        rendering(0, {"MUJOCO_GL": "egl", **settings})
