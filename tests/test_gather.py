"""From a site to a stream: logs are never held in memory, and one state of a file is judged."""

import hashlib
import tracemalloc

import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.core.verdict import Witness
from pytest_migparity.gather import Wanted, gather, read_in_place
from pytest_migparity.trainlog import read_log, read_trajectory

NOISE = "INFO saving a checkpoint, which is long and of no interest to anybody " * 4 + "\n"
RECORD = "iteration {0}/9999 | consumed samples: 8 | loss: {1} | grad norm: 12.500 |\n"


@pytest.fixture
def long_log(tmp_path):
    """32 MB, of which 4,000 lines are records."""
    path = tmp_path / "site" / "train.log"
    path.parent.mkdir()
    with path.open("w") as file:
        for step in range(1, 4001):
            file.write(RECORD.format(step, f"{1 + 1 / step:.6f}") + NOISE * 29)
    return path


def test_a_log_is_streamed_from_the_store(long_log, tmp_path, monkeypatch):
    monkeypatch.setenv("MIGPARITY_CACHE", str(tmp_path / "cache"))
    read_log(read_in_place(long_log))  # what is imported on the way is not the log's
    tracemalloc.start()
    found = gather("file:site", tmp_path, Wanted("loss", "main"), "")
    recorded = read_trajectory(found.files, found.witness("baseline", found.files[0]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.problems == ()
    assert recorded.witness.sha256 == hashlib.sha256(long_log.read_bytes()).hexdigest()
    assert recorded.table.step.tolist() == list(range(1, 4001))
    assert long_log.stat().st_size > 30e6
    assert peak < 12e6


def test_evidence_damaged_in_the_cache_is_refused_when_it_is_opened(long_log, tmp_path, monkeypatch):
    monkeypatch.setenv("MIGPARITY_CACHE", str(tmp_path / "cache"))
    found = gather("file:site", tmp_path, Wanted("loss", "main"), "")
    blob = next(path for path in (tmp_path / "cache").rglob(found.files[0].sha256))
    blob.write_bytes(blob.read_bytes().replace(b"loss: 2.0", b"loss: 1.0"))
    with pytest.raises(UserError, match="damaged in the cache"):
        read_trajectory(found.files, Witness("baseline", "manual", "train.log", ""))


def test_a_log_named_by_hand_is_judged_as_it_was(tmp_path):
    """It may still be written to while it is read."""
    path = tmp_path / "train.log"
    path.write_text(RECORD.format(1, "2.5"))
    files = read_in_place(path)
    path.write_text(RECORD.format(1, "9.5"))
    assert read_log(files).table.loss.tolist() == [2.5]
    assert files[0].sha256 == hashlib.sha256(RECORD.format(1, "2.5").encode()).hexdigest()


def test_event_files_are_opened_one_after_the_other(tmp_path, monkeypatch):
    """A long run leaves more of them than a process may have open."""
    resource = pytest.importorskip("resource")
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    monkeypatch.setenv("MIGPARITY_CACHE", str(tmp_path / "cache"))
    for step in range(80):
        writer = EventFileWriter(str(tmp_path / "site"), filename_suffix=f".{step:03}")
        writer.add_event(Event(step=step, wall_time=1.0, summary=Summary(value=[
            Summary.Value(tag="loss", simple_value=step / 4)])))
        writer.close()
    found = gather("file:site", tmp_path, Wanted("loss", "main"), "")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    read_log(found.files)  # what is imported on the way opens files too
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        table = read_log(found.files).table
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert table.loss.tolist() == [step / 4 for step in range(80)]
