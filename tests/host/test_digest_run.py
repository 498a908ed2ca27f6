"""A long run is taken up where it was, never with what is stale; shards make the whole digest or a clear error."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest

from pytest_migparity.host import digest_run, progress
from pytest_migparity.host.digest import digest
from pytest_migparity.host.digest_run import Wanted, write_digest
from pytest_migparity.host.digest_shards import merged, write_merged
from pytest_migparity.host.tensor_files import open_tensors
from pytest_migparity.wire.digest import DigestError
from pytest_migparity.wire.digest_text import from_text, read, to_text

ARRAYS = {"a": np.float32(range(60)).reshape(6, 10), "big": np.arange((1 << 20) + 5, dtype=np.float32),
          "b": np.float16([1, -2, np.nan]), "c": np.int64([3, 4]), "empty": np.zeros((0, 2), np.float32)}


@pytest.fixture
def source(tmp_path):
    np.savez(tmp_path / "a.npz", **ARRAYS)
    return tmp_path / "a.npz"


def wanted(source, out, **options):
    return Wanted(str(source), str(source.parent / out), **{"algorithm": "sha256", **options})


def straight(source):
    """The text of the digest, by no run at all."""
    return to_text(digest(open_tensors(str(source)), algorithm="sha256"))


class Stops(BaseException):
    """Somebody pressed Ctrl-C."""


def interrupted(source, monkeypatch, after, **options):
    """A run that ends after some tensors; its journal's path."""
    digested, left = digest_run.digest_tensor, [after]

    def stops(tensor, **words):
        if not left[0]:
            raise Stops
        left[0] -= 1
        return digested(tensor, **words)

    with monkeypatch.context() as patch:
        patch.setattr(digest_run, "digest_tensor", stops)
        patch.setattr("os.cpu_count", lambda: 1)
        with pytest.raises(Stops):
            write_digest(wanted(source, "out", **options))
    assert not (source.parent / "out").exists()
    return source.parent / "out.journal"


def test_a_run_writes_what_digesting_one_tensor_after_the_other_does(source):
    done = write_digest(wanted(source, "out"))
    assert (source.parent / "out").read_text() == straight(source)
    assert (done.size, done.resumed, done.left_out) == (len(straight(source)), 0, ())
    assert sorted(path.name for path in source.parent.iterdir()) == ["a.npz", "out"]


def test_an_interrupted_run_goes_on_with_what_it_had(source, monkeypatch):
    interrupted(source, monkeypatch, after=3)
    done = write_digest(wanted(source, "out"))
    assert done.resumed == 3
    assert done.remarks() == ["3 tensors were taken over from an interrupted run"]
    assert (source.parent / "out").read_text() == straight(source)
    assert not (source.parent / "out.journal").exists()


def test_twice_interrupted_is_taken_over_from_both(source, monkeypatch):
    journal = interrupted(source, monkeypatch, after=2)
    journal.write_bytes(journal.read_bytes()[:-10])  # torn while the second was written
    interrupted(source, monkeypatch, after=2)
    assert write_digest(wanted(source, "out")).resumed == 3
    assert (source.parent / "out").read_text() == straight(source)


def test_a_changed_file_is_digested_anew(source, monkeypatch):
    interrupted(source, monkeypatch, after=3)
    before = os.stat(source)
    np.savez(source, **{**ARRAYS, "c": np.int64([3, 5])})
    assert os.stat(source).st_size == before.st_size
    os.utime(source, ns=(before.st_mtime_ns, before.st_mtime_ns + 1))
    done = write_digest(wanted(source, "out"))
    assert done.resumed == 0
    assert (source.parent / "out").read_text() == straight(source)


def test_other_settings_take_nothing_over(source, monkeypatch):
    pytest.importorskip("xxhash")
    interrupted(source, monkeypatch, after=1)
    assert write_digest(wanted(source, "out", level=0)).resumed == 0
    (source.parent / "out").unlink()
    interrupted(source, monkeypatch, after=1)
    assert write_digest(wanted(source, "out", algorithm="xxh3_128")).resumed == 0


def test_damage_to_the_journal_costs_time_and_changes_no_digest(source, monkeypatch):
    text = straight(source)
    whole = interrupted(source, monkeypatch, after=4).read_bytes()
    assert whole.count(b"\n") == 5
    for at in range(0, len(whole), 97):
        mangled = bytearray(whole)
        mangled[at] ^= 0x11
        (source.parent / "out.journal").write_bytes(bytes(mangled))
        assert write_digest(wanted(source, "out")).resumed >= 2
        assert (source.parent / "out").read_text() == text
        (source.parent / "out").unlink()


def test_a_file_that_changes_while_it_is_digested_is_no_evidence(source, monkeypatch):
    digested = digest_run.digest_tensor

    def changes(tensor, **words):
        os.utime(source, ns=(1, 1))
        return digested(tensor, **words)

    monkeypatch.setattr(digest_run, "digest_tensor", changes)
    with pytest.raises(ValueError, match="changed while it was digested"):
        write_digest(wanted(source, "out"))
    assert not (source.parent / "out").exists()


def test_fewer_elements_than_the_shape_says_are_no_evidence(source, monkeypatch):
    opened = digest_run.open_source(str(source))
    torn = [tensor._replace(shape=(7, 10)) if tensor.name == "a" else tensor for tensor in opened.tensors]
    monkeypatch.setattr(digest_run, "open_source", lambda path: opened._replace(tensors=torn))
    with pytest.raises(ValueError, match="a: 60 elements were read, its shape has 70"):
        write_digest(wanted(source, "out"))
    assert not (source.parent / "out").exists()


def test_what_is_no_tensor_is_named(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.ones(2), "step": 3, "optimizer": {"lr": 0.1}}, tmp_path / "a.pt")
    done = write_digest(wanted(tmp_path / "a.pt", "out"))
    assert [item.name for item in done.digest.tensors] == ["w"]
    assert done.remarks() == ["2 entries are no tensors and not digested: step, optimizer.lr"]


def shards(source, amount):
    found = []
    for index in range(amount):
        write_digest(wanted(source, f"s{index}", shard=f"{index}/{amount}"))
        found.append(str(source.parent / f"s{index}"))
    return found


@pytest.mark.parametrize("amount", [1, 3, 7])
def test_all_shards_in_any_order_make_the_digest_of_the_whole(source, amount):
    parts = shards(source, amount)
    write_merged([*parts[::-1], parts[0]], str(source.parent / "out"))
    assert (source.parent / "out").read_text() == straight(source)
    names = [item.name for part in parts for item in read(part, part=True).tensors]
    assert sorted(names) == sorted(ARRAYS)


def test_shards_share_the_bytes(tmp_path):
    np.savez(tmp_path / "a.npz", **{f"layer{index}": np.zeros(100 * size) for index, size in enumerate((1, 5, 2, 4, 3, 3))})
    sizes = [sum(item.size for item in read(part, part=True).tensors) for part in shards(tmp_path / "a.npz", 3)]
    assert sizes == [600, 600, 600]  # 5 + 1, 4 + 2, 3 + 3


def test_a_shard_is_never_taken_for_the_whole(source):
    (part, *_) = shards(source, 2)
    with pytest.raises(DigestError, match="only shard 0/2"):
        read(part)
    with pytest.raises(DigestError, match="only shard 0/2"):
        from_text((source.parent / "s0").read_text())
    assert read(part, part=True).part.startswith("0/2 of ")


def of_shards(source):
    return [(name, read(name, part=True)) for name in shards(source, 3)]


def without_a_tensor(parts):
    name, last = max(parts, key=lambda part: len(part[1].tensors))
    return [(name, last._replace(tensors=last.tensors[1:])), *(part for part in parts if part[0] != name)]


def same_name(parts):
    (name, first), (_, second), *_ = parts
    other = first.tensors[0]._replace(hash="0" * 16)
    return [*parts, (name + "again", second._replace(tensors=(other,)))]


@pytest.mark.parametrize("change, message", [
    (lambda parts: parts[:1], "shard 1/3, 2/3 is missing"),
    (lambda parts: [parts[0], (parts[1][0], parts[1][1]._replace(part=""))], "is a whole digest"),
    (lambda parts: [parts[0], (parts[1][0], parts[1][1]._replace(level=0))], "level 0, and 1"),
    (lambda parts: [parts[0], (parts[1][0], parts[1][1]._replace(algorithm="xxh3_128"))], "hash xxh3_128, and sha256"),
    (lambda parts: [parts[0], (parts[1][0], parts[1][1]._replace(part="1/3 of " + "0" * 16))], "checkpoint 3 of 0000"),
    (lambda parts: [parts[0], (parts[1][0], parts[1][1]._replace(part=parts[1][1].part.replace("/3", "/4")))], "not of one"),
    (lambda parts: [parts[0], (parts[1][0], parts[1][1]._replace(layout="0" * 16))], "layout 0000000000000000, and none"),
    (without_a_tensor, "all 3 shards together are not the tensors"),
    (same_name, "two digests of the tensor big"),
])
def test_shards_that_do_not_make_a_whole_are_refused(source, change, message):
    with pytest.raises(DigestError, match=message):
        merged(change(of_shards(source)))


@pytest.mark.parametrize("shard", ["3/3", "-1/3", "1", "1/0", "a/b", "1/3/5", "01/3"])
def test_a_shard_that_is_none_is_refused(source, shard):
    with pytest.raises(ValueError, match="expected i/n with i from 0"):
        write_digest(wanted(source, "out", shard=shard))


@pytest.mark.parametrize("part", ["2/2 of 0123456789abcdef", "0/2", "0/2 of 01", 7])
def test_a_digest_of_no_possible_part_is_refused(source, part):
    with pytest.raises(DigestError, match="its part is"):
        to_text(digest(open_tensors(str(source)), algorithm="sha256")._replace(part=part))


@pytest.mark.parametrize("layout", ["0123", "0123456789ABCDEF", 7])
def test_a_digest_of_no_possible_map_is_refused(source, layout):
    with pytest.raises(DigestError, match="its layout is"):
        to_text(digest(open_tensors(str(source)), algorithm="sha256")._replace(layout=layout))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_shows_on_a_terminal_alone(source, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    write_digest(wanted(source, "a"))
    assert sys.stderr.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress, "_EVERY", 0)
    write_digest(wanted(source, "b"))
    shown = sys.stderr.getvalue().split("\r")
    assert shown[-1] == "digest: 100 % of 0.0 GB\n"
    assert len(shown) >= 6


def test_progress_is_tqdms_where_it_is_installed(source, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    write_digest(wanted(source, "a"))
    assert "digest: 100%" in sys.stderr.getvalue()


MEMORY = """
import re, sys
from pytest_migparity.host.digest_run import Wanted, write_digest

def most():
    return int(re.search("VmHWM:\\s+([0-9]+) kB", open("/proc/self/status").read())[1])

write_digest(Wanted(sys.argv[1], sys.argv[1] + ".d", 0, "sha256"))
open("/proc/self/clear_refs", "w").write("5")  # the peak, which began as the parent's, begins anew
before = most()
write_digest(Wanted(sys.argv[2], sys.argv[2] + ".d", 0, "sha256"))
print((most() - before) // 1024)
"""


def grown(small, large):
    """MiB that a process grows by when it digests `large` after `small`."""
    done = subprocess.run([sys.executable, "-c", MEMORY, small, large], capture_output=True, text=True, check=True)
    return int(done.stdout)


linux = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the peak of memory")


@linux
def test_mapped_files_leave_the_memory_of_the_process_as_they_are_read(tmp_path):
    for name, size in (("small", 1 << 22), ("large", 600 << 20)):
        head = b'{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (size // 4, size)
        with open(tmp_path / f"{name}.safetensors", "wb") as stream:
            stream.write(len(head).to_bytes(8, "little") + head)
            stream.truncate(8 + len(head) + size)
    assert grown(tmp_path / "small.safetensors", tmp_path / "large.safetensors") < 256  # MiB, of 600


@linux
def test_a_pytorch_file_leaves_the_memory_of_the_process_as_it_is_read(tmp_path):
    torch = pytest.importorskip("torch")
    for name, size in (("small.pt", 1 << 20), ("large.pt", 75 << 20)):
        torch.save({"w": torch.zeros(size)}, tmp_path / name)
    assert grown(tmp_path / "small.pt", tmp_path / "large.pt") < 200  # MiB, of 300
