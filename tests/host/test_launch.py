"""Unpatched programs under the launcher: keyed draws repeat, what is drawn outside is told, the tree stays as it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pytest_migparity.host.launch import main
from pytest_migparity.wire import receipt, record

torch = pytest.importorskip("torch")
pytest.importorskip("tensorboard")
pytestmark = pytest.mark.slow  # once, not again with workers

HERE = Path(__file__).parent / "launched"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A source tree of its own, under git, as the working folder."""
    place = tmp_path / "upstream"
    shutil.copytree(HERE, place, ignore=shutil.ignore_patterns("__pycache__"))
    (place / ".gitignore").write_text("runs/\n")
    for words in (["init", "-q"], ["add", "-A"],
                  ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "upstream"]):
        subprocess.run(["git", *words], cwd=place, check=True)
    monkeypatch.chdir(place)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return place


def launch(out, *words, ranks=0, options=()):
    python = [sys.executable]
    if ranks:
        python += ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    return main(["--out", str(out), "--seed", "3", *options, "--", *python, *words])


def losses(out):
    return [json.loads(line)["loss"] for line in (out / "loss.jsonl").read_text().splitlines()]


def files(place):
    return {str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in place.rglob("*") if path.is_file() and ".git" not in path.parts and "runs" not in path.parts}


def test_keyed_draws_repeat_where_the_programs_own_generator_does_not(tree, tmp_path):
    before = files(tree)
    for out, moved in (("a", "0"), ("b", "5")):
        assert launch(tmp_path / out, "train.py", "--before", moved) == 0
        # the same program unlaunched: its losses depend on where the generator stands
        plain = subprocess.run([sys.executable, "-B", "train.py", "--before", moved], check=True, capture_output=True)
        (tmp_path / f"{out}.txt").write_bytes(plain.stdout)
    assert losses(tmp_path / "a") == losses(tmp_path / "b")
    assert len(set(losses(tmp_path / "a"))) == 4
    assert (tmp_path / "a.txt").read_text() != (tmp_path / "b.txt").read_text()
    told = receipt.read(str(tmp_path / "a"))
    assert told.draws == receipt.Draws("keyed", {"flow:sample_noise normal": 4, "flow:sample_time _sample_dirichlet": 4},
                                       {})
    assert [(entry.kind, entry.path, entry.series) for entry in told.files] == [("loss", "loss.jsonl", "main")]
    assert files(tree) == before
    assert told.tree == "clean"
    assert len(told.commit) == 40


def test_losses_are_those_of_the_draws_the_key_gives(tree, tmp_path):
    """Worked out here: Philox keyed by sha256 of seed/rank/step/stream/call, noise first and then the flow time."""
    assert launch(tmp_path / "a", "train.py", "--steps", "1", options=["--draw", "noise=flow:sample_noise",
                                                                     "--draw", "time=flow:sample_time"]) == 0
    sys.path.insert(0, str(HERE))
    try:
        from flow import FlowPolicy
        from train import Episodes
    finally:
        sys.path.remove(str(HERE))

    def generator(stream):
        key = hashlib.sha256(f"3/0/0/{stream}/0".encode()).digest()[:16]
        return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))

    gammas = generator("time").standard_gamma(np.tile([1.5, 1.0], (8, 1)))
    time = torch.from_numpy((gammas / gammas.sum(1, keepdims=True))[:, 0].astype(np.float32)) * 0.999 + 0.001
    noise = torch.from_numpy(generator("noise").standard_normal((8, 6)).astype(np.float32))
    torch.manual_seed(0)
    model, rows = FlowPolicy(), [Episodes()[index] for index in range(8)]
    batch = {key: torch.stack([row[key] for row in rows]) for key in rows[0]}
    assert losses(tmp_path / "a") == pytest.approx([float(model(batch, noise, time)["loss"].detach())], rel=1e-6)


def test_every_rank_and_worker_is_reached_and_ranks_draw_different_numbers(tree, tmp_path):
    for out, moved in (("a", "0"), ("b", "2")):
        assert launch(tmp_path / out, "train.py", "--workers", "1", "--before", moved, ranks=2,
                      options=["--record", "0"]) == 0
    assert losses(tmp_path / "a") == losses(tmp_path / "b")
    told = receipt.read(str(tmp_path / "a"))
    assert told.draws.mode == "keyed"
    assert told.draws.wrapped == {"flow:sample_noise normal": 8, "flow:sample_time _sample_dirichlet": 8}
    assert [entry.path for entry in told.entries("forward")] == ["rank0.record", "rank1.record"]
    made = [record.read(str(tmp_path / "a" / f"rank{rank}.record")) for rank in range(2)]
    noise = [next(event.tensor.hash for event in item.events if event.stage == "draw") for item in made]
    assert noise[0] != noise[1]
    assert [item.world_size for item in made] == [2, 2]
    assert all(item.unrecorded == () for item in made)


def test_a_workers_own_draws_are_keyed_where_they_are_named(tree, tmp_path):
    assert launch(tmp_path / "a", "train.py", "--workers", "1", options=["--draw", "train:__getitem__", "--draw",
                                                                       "__main__:__getitem__", "--draw", "flow:*"]) == 0
    told = receipt.read(str(tmp_path / "a"))
    keyed = {site: count for site, count in told.draws.wrapped.items() if "__getitem__" in site}
    assert set(keyed) == {"__main__:__getitem__ randn", "__main__:__getitem__ rand"}
    assert min(keyed.values()) >= 32


def test_dropout_and_unnamed_draws_make_the_run_weak_mode_evidence(tree, tmp_path):
    assert launch(tmp_path / "a", "train.py", "--dropout", "0.1") == 0
    assert launch(tmp_path / "b", "train.py", options=["--draw", "flow:sample_noise"]) == 0
    dropped, unnamed = (receipt.read(str(tmp_path / name)).draws for name in "ab")
    assert (dropped.mode, unnamed.mode) == ("unkeyed", "unkeyed")
    assert list(dropped.outside.values()) == [4]
    assert next(iter(dropped.outside)).endswith("dropout")
    assert unnamed.outside == {"flow:sample_time _sample_dirichlet": 4}
    assert unnamed.wrapped == {"flow:sample_noise normal": 4}


def test_a_program_that_never_reported_is_not_called_keyed(tree, tmp_path):
    assert main(["--out", str(tmp_path / "a"), "--", sys.executable, "-I", "-c", "import torch"]) == 0
    assert receipt.read(str(tmp_path / "a")).draws == receipt.Draws(
        "unkeyed", {}, {}, ("0 of 1 ranks reported optimizer steps",))


def test_scalars_of_loggers_are_written_in_full(tree, tmp_path):
    assert launch(tmp_path / "a", "logged.py", options=["--logger", "tracking:Tracker.log_metrics"]) == 0
    rows = [json.loads(line) for line in (tmp_path / "a" / "loss.jsonl").read_text().splitlines()]
    single = [float(np.float32(1 / 3 + step)) for step in range(3)]
    assert [row for row in rows if row["step"] < 10] == [{"step": step, "loss": single[step]} for step in range(3)]
    assert [row for row in rows if row["step"] >= 10] == [
        {"step": step + 10, "grad_norm": 0.1, "loss": 1.0 / 7} for step in range(3)]


def test_the_hosts_own_sitecustomize_still_runs(tree, tmp_path, monkeypatch):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins\nbuiltins.OWN = 'own'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    code = f"open({str(tmp_path / 'said')!r}, 'w').write(OWN); import sys; sys.exit(7)"
    assert main(["--out", str(tmp_path / "a"), "--", sys.executable, "-c", code]) == 7
    assert (tmp_path / "said").read_text() == "own"


def test_ctrl_c_stops_the_whole_group(tree, tmp_path):
    code = ("import os, subprocess, sys, time\n"
            f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
            f"open({str(tmp_path / 'new')!r}, 'w').write(str(child.pid))\n"
            f"os.rename({str(tmp_path / 'new')!r}, {str(tmp_path / 'pid')!r})\n"
            "time.sleep(600)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_migparity.host.launch", "--out", str(tmp_path / "a"), "--", sys.executable, "-c",
         code], env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE)
    while not (tmp_path / "pid").exists():
        assert process.poll() is None
        time.sleep(0.05)
    child = int((tmp_path / "pid").read_text())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not alive(child)
    assert receipt.read(str(tmp_path / "a")).draws.mode == "unkeyed"


def alive(pid):
    """Does the process run? One that nobody has waited for yet does not."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except (FileNotFoundError, ProcessLookupError):
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize(("words", "said"), [
    (["--out", "x"], "no command"),
    (["--out", "x", "--draw", "sample_noise", "--", "true"], "names no function"),
    (["--out", "x", "--record", "a", "--", "true"], "no list of steps"),
    (["--out", ".", "--", "true"], "is not empty"),
    (["--out", "x", "--", "no-such-program-here"], "cannot be started"),
    (["--out", "x", "--config", "c.json", "--", "true"], "'draw' is not a setting"),
])
def test_a_mistake_is_told_and_nothing_is_left(tree, capfd, words, said):
    Path("c.json").write_text('{"draw": []}')
    assert main(words) == 4
    assert said in capfd.readouterr().err
    assert not Path("x").is_dir() or not os.listdir("x")
