"""TensorBoard folders, written here by TensorBoard's own writer."""

import builtins
import math

import numpy as np
import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.loss import read_loss
from pytest_migparity.readers.loss_tensorboard import read_tensorboard

pytest.importorskip("tensorboard")


def write(folder, points, tag="training/loss"):
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for step, value in points:
        writer.add_event(Event(step=step, wall_time=1.0, summary=Summary(value=[
            Summary.Value(tag=tag, simple_value=value)])))
    writer.close()


def test_every_point_is_read_in_full_precision(tmp_path):
    """More points than TensorBoard's default reservoir of 10,000 keeps."""
    points = [(step, float(np.float32(1 / 3 + step))) for step in range(12_000)]
    write(tmp_path / "runs", points)
    reading = read_tensorboard(tmp_path)
    assert reading.format == "tensorboard"
    assert reading.table.step.tolist() == list(range(12_000))
    assert reading.table.loss == pytest.approx([value for _, value in points], rel=1e-7)
    assert reading.table.quantum["loss"][0] / reading.table.loss[0] < 1e-6


def test_nan_is_kept_and_a_resume_keeps_the_last(tmp_path):
    write(tmp_path, [(1, 4.0), (2, 3.0), (3, 9.0), (2, 2.5), (3, math.nan)])
    reading = read_tensorboard(tmp_path, step_offset=1)
    assert reading.table.step.tolist() == [0, 1, 2]
    assert reading.table.loss == pytest.approx([4.0, 2.5, math.nan], nan_ok=True)
    assert reading.dropped == 2


def test_event_files_are_known_by_their_content(tmp_path):
    write(tmp_path, [(1, 4.0), (2, 3.0)], tag="lm loss")
    data = next(tmp_path.iterdir()).read_bytes()
    reading = read_loss(data, "whatever.txt")
    assert (reading.format, reading.table.loss.tolist()) == ("tensorboard", [4.0, 3.0])


def test_an_unknown_tag_is_named_with_the_nearest(tmp_path):
    write(tmp_path, [(1, 4.0)], tag="training/vla_loss")
    with pytest.raises(UserError, match="no scalar 'training/vla_los'; did you mean 'training/vla_loss'"):
        read_tensorboard(tmp_path, column="training/vla_los")
    assert read_tensorboard(tmp_path, column="vla_loss").table.loss.tolist() == [4.0]


def test_several_runs_in_one_folder_are_refused(tmp_path):
    write(tmp_path / "a", [(1, 4.0)])
    write(tmp_path / "b", [(1, 4.0)])
    with pytest.raises(UserError, match=r"several runs lie in it \(a, b\)"):
        read_tensorboard(tmp_path)


def test_no_event_file_and_no_scalar_are_named(tmp_path):
    with pytest.raises(ReadError, match="no file named"):
        read_tensorboard(tmp_path)
    with pytest.raises(ReadError, match="nothing there"):
        read_tensorboard(tmp_path / "absent")
    (tmp_path / "events.out.tfevents.1").write_bytes(b"")
    with pytest.raises(ReadError, match="without a scalar"):
        read_tensorboard(tmp_path)


def test_truncated_event_files_give_a_prefix_or_one_error(tmp_path):
    write(tmp_path, [(step, 1.0 + step) for step in range(5)])
    file = next(tmp_path.iterdir())
    data = file.read_bytes()
    for length in range(0, len(data), 7):
        file.write_bytes(data[:length])
        try:
            reading = read_tensorboard(tmp_path)
        except ReadError:
            continue
        assert reading.table.loss.tolist() == [1.0 + step for step in reading.table.step.tolist()]


def test_without_the_package_it_says_how_to_install(tmp_path, monkeypatch):
    write(tmp_path, [(1, 4.0)])
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("tensorboard"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"pip install 'pytest-migparity\[tensorboard\]'"):
        read_tensorboard(tmp_path)
