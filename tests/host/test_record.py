"""The recorder without any framework: files that are whole, claimed once, and never larger than they may be."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_migparity.host import record_kept
from pytest_migparity.host.record import Recorder, RecordingExistsError
from pytest_migparity.wire import record as wire
from pytest_migparity.wire.packed import MAX_TEXT


def test_only_chosen_steps_are_recorded_and_each_is_written_at_its_end(tmp_path):
    out = tmp_path / "r.record"
    recorder = Recorder(str(out), steps=[1, 3], rank=1, world_size=2, algorithm="sha256", meta={"seed": "5"})
    for step in range(4):
        assert recorder.begin(step) == (step in (1, 3))
        recorder.event("output", "a", np.full(3, step, np.float32), depth=2)
        recorder.end(loss=float(step))
        if step == 1:
            assert [event.step for event in wire.read(str(out)).events] == [1]
    made = wire.read(str(out))
    assert (made.rank, made.world_size, made.meta) == (1, 2, (("seed", "5"),))
    assert [(event.step, event.depth, event.tensor.stats.high) for event in made.events] == [(1, 2, 1.0), (3, 2, 3.0)]
    assert [(facts.step, facts.loss) for facts in made.facts] == [(1, 1.0), (3, 3.0)]


def test_a_name_that_comes_again_is_numbered(tmp_path):
    recorder = Recorder(str(tmp_path / "r.record"))
    for step in range(2):
        recorder.begin(step)
        recorder.event("output", "a", np.ones(1, np.float32))
        recorder.event("output", "a", np.zeros(1, np.float32))
        recorder.event("input", "a", 2.5)
        recorder.end()
    names = [(event.stage, event.name) for event in wire.read(str(tmp_path / "r.record")).events]
    assert names == [("output", "a"), ("output", "a#1"), ("input", "a")] * 2


def test_given_losses_are_averaged_over_the_step(tmp_path):
    recorder = Recorder(str(tmp_path / "r.record"))
    for step in range(2):
        recorder.begin(step)
        for value in (1.0, 4.0):
            recorder.loss(value + step)
        recorder.end(loss=9.0)
    assert [facts.loss for facts in wire.read(str(tmp_path / "r.record")).facts] == [2.5, 3.5]


def test_two_recorders_of_one_name_do_not_write_over_each_other(tmp_path):
    first, second = (Recorder(str(tmp_path / "r.record"), rank=rank, world_size=2) for rank in range(2))
    for recorder in (first, second):
        recorder.begin(0)
        recorder.event("input", "a", np.ones(1, np.float32))
    first.end()
    with pytest.raises(RecordingExistsError, match="is there already"):
        second.end()
    assert wire.read(str(tmp_path / "r.record")).rank == 0


def test_a_step_that_never_ended_is_told(tmp_path):
    recorder = Recorder(str(tmp_path / "r.record"))
    recorder.begin(0)
    recorder.event("input", "a", np.ones(1, np.float32))
    recorder.close()
    made = wire.read(str(tmp_path / "r.record"))
    assert made.unrecorded == (("step 0", "the run ended before the step did"),)


def test_a_full_recording_can_be_read_and_lists_what_did_not_fit(tmp_path, monkeypatch):
    monkeypatch.setattr("pytest_migparity.host.record._ROOM", MAX_TEXT // 20)
    recorder = Recorder(str(tmp_path / "r.record"), algorithm="sha256")
    random = np.random.default_rng(0)
    recorder.begin(0)
    for index in range(500):
        recorder.event("grad", f"model.layers.{index}.self_attn.q_proj.weight", random.standard_normal(300) * index)
    recorder.end()
    text = (tmp_path / "r.record").read_text()
    assert MAX_TEXT // 40 < len(text) < MAX_TEXT // 20  # the estimate is an upper one, and no wild one
    made = wire.from_text(text)
    assert 300 < len(made.events) < 500
    assert len(made.unrecorded) == 500 - len(made.events)


def test_kept_tensors_stay_within_their_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(record_kept, "MOST", 1000)
    recorder = Recorder(str(tmp_path / "r.record"), keep=["x*"])
    recorder.begin(0)
    for name in ("x/../0", "y", "x1", "x2"):
        recorder.event("input", name, np.arange(60, dtype=np.float64))
    recorder.end()
    recorder.close()
    names = sorted(path.name for path in (tmp_path / "r.record.kept").iterdir())
    assert names == ["00000-step0-input-x_.._0.npy", "00001-step0-input-x1.npy"]
    assert (np.load(tmp_path / "r.record.kept" / names[1]) == np.arange(60)).all()
    assert dict(wire.read(str(tmp_path / "r.record")).meta)["kept"] == "2 tensors, 1 left out beyond 0 MiB"
