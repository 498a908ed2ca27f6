"""Outputs in files: what is written is read, and what is damaged, hostile or too large is refused in one message."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.host.actions import noise_digests, numbers_digest, write_actions
from pytest_migparity.readers import actions as reader
from pytest_migparity.readers import npz
from pytest_migparity.readers.actions import read_actions
from pytest_migparity.wire.actions import PARQUET_KEY, ActionsError, Meta, parse, render

META = Meta("actions", ("x", "y", "grip"), ("m", "m", ""), 10, "mean-std", "ab" * 8, "npu", "gpu")
VALUES = np.random.default_rng(0).standard_normal((20, 4, 3)).astype(np.float32)
SAMPLES = [f"s{k}" for k in range(20)]


def read(path):
    return read_actions({path.name: lambda: path.open("rb")})


def read_bytes(data, name="actions.npz"):
    return read_actions({name: lambda: io.BytesIO(data)})


def packed(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def document(**changes):
    return json.dumps({**json.loads(render(META)), **changes})


def whole(**changes):
    return {"meta": np.array(render(META)), "values": VALUES, "sample": np.array(SAMPLES), **changes}


def test_what_is_written_is_read(tmp_path):
    noise = np.random.default_rng(1).standard_normal((20, 12)).astype(np.float32)
    write_actions(str(tmp_path / "actions.npz"), VALUES, SAMPLES, META, noise=noise_digests(noise),
                  task=["a", "b"] * 10, state=VALUES[:, 0])
    got = read(tmp_path / "actions.npz")
    assert np.array_equal(got.values[:, 0], VALUES.astype(np.float64))
    assert (got.sample, got.names, got.units) == (tuple(SAMPLES), META.names, META.units)
    assert (got.steps, got.normalisation, got.normalisation_digest) == (10, "mean-std", "ab" * 8)
    assert (got.site, got.trained, got.source, got.kind) == ("npu", "gpu", "policy", "actions")
    assert got.task == ("a", "b") * 10
    assert np.array_equal(got.state, VALUES[:, 0].astype(np.float64))
    assert len(set(got.noise)) == 20
    assert got.of_task("b", ["a", "b"]).sample == tuple(SAMPLES[1::2])


def test_nothing_is_overwritten(tmp_path):
    write_actions(str(tmp_path / "a.npz"), VALUES, SAMPLES, META)
    with pytest.raises(FileExistsError):
        write_actions(str(tmp_path / "a.npz"), VALUES, SAMPLES, META)


def test_candidates_keep_their_axis():
    got = read_bytes(packed(**whole(values=np.zeros((20, 5, 4, 3)))))
    assert got.values.shape == (20, 5, 4, 3)


def test_a_digest_of_noise_is_of_its_float32_numbers():
    """Known by hashlib alone: sha256 of the little-endian bytes, 32 digits of it."""
    import hashlib

    row = np.array([[0.5, -1.25]])
    expected = hashlib.sha256(np.array([0.5, -1.25], "<f4").tobytes()).hexdigest()[:32]
    assert noise_digests(row) == noise_digests(row.astype(">f8")) == [expected]
    assert numbers_digest({"a": 1, "b": [2.0]}) == numbers_digest({"b": np.array([2.0]), "a": np.float32(1)})
    assert numbers_digest({"a": 1}) != numbers_digest({"a": 1.0000001})


# ---- the document


@pytest.mark.parametrize("changes, what", [
    ({"schema": "x"}, "schema"), ({"kind": "poses"}, "kind"), ({"source": "expert"}, "source"),
    ({"steps": -1}, "steps"), ({"steps": 10.0}, "steps"), ({"steps": True}, "steps"), ({"steps": None}, "steps"),
    ({"names": ["x", "x", "y"]}, "names"), ({"names": "xyz"}, "names"), ({"units": ["m"]}, "units"),
    ({"site": ""}, "site"), ({"site": "a\nb"}, "site"), ({"trained": 3}, "trained"), ({"site": "x" * 201}, "site"),
    ({"normalisation": "none"}, "normalisation_digest"), ({"normalisation_digest": ""}, "normalisation_digest"),
    ({"normalisation_digest": "ABCDEF00"}, "normalisation_digest"), ({"extra": 1}, "extra"),
])
def test_a_document_that_breaks_a_rule_is_refused_by_the_key(changes, what):
    with pytest.raises(ActionsError, match=what):
        parse(document(**changes))
    with pytest.raises(UserError, match=r"^actions\.npz: found .*" + what):
        read_bytes(packed(**whole(meta=np.array(document(**changes)))))


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "[" * 100_000])
def test_what_is_no_document_is_refused(text):
    with pytest.raises(ActionsError):
        parse(text)


# ---- arrays that do not fit together


@pytest.mark.parametrize("changes, what", [
    ({"values": VALUES[:19]}, "sample"), ({"values": VALUES[0]}, "shape"), ({"values": VALUES[..., :2]}, "names"),
    ({"values": VALUES.astype(complex)}, "type complex"), ({"values": np.array("x")}, "values"),
    ({"sample": np.array(["s0"] * 20)}, "s0.* twice"), ({"sample": np.array([""] * 20)}, "sample"),
    ({"sample": np.array(["x" * 300] * 20)}, "sample"), ({"sample": np.arange(20.0)}, "sample"),
    ({"noise": np.array(["a"] * 19)}, "noise"), ({"task": np.array([["a"]] * 20)}, "task"),
    ({"state": np.zeros(20)}, "state"), ({"tokens": np.zeros((20, 4))}, "tokens"),
    ({"meta": np.array([render(META)])}, "meta"), ({"meta": np.frombuffer(b"{}", np.uint8)}, "meta"),
    ({"other": VALUES}, "other"),
])
def test_arrays_that_do_not_fit_together_are_refused_by_name(changes, what):
    with pytest.raises(UserError, match=what):
        read_bytes(packed(**whole(**changes)))


@pytest.mark.parametrize("member", ["meta", "values", "sample"])
def test_a_missing_member_is_named(member):
    arrays = whole()
    del arrays[member]
    with pytest.raises(UserError, match=member):
        read_bytes(packed(**arrays))


def test_two_files_are_not_one():
    with pytest.raises(UserError, match="2 files"):
        read_actions({"a.npz": io.BytesIO, "b.npz": io.BytesIO})


def test_logits_have_tokens_for_each_position():
    meta = META._replace(kind="logits", names=(), units=())
    arrays = whole(meta=np.array(render(meta)), values=np.zeros((20, 4, 9)), tokens=np.zeros((20, 4), np.int32))
    assert read_bytes(packed(**arrays)).tokens.shape == (20, 4)
    with pytest.raises(UserError, match="tokens"):
        read_bytes(packed(**{**arrays, "tokens": np.zeros((20, 5), np.int32)}))


# ---- hostile and damaged files


def archive(members, method=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as made:
        for name, data in members:
            made.writestr(name, data)
    return stream.getvalue()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def header(shape, dtype="<f8"):
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (63 - (len(text) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


class Bomb:
    """Unpickling it would raise."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('the pickle was run')",))


@pytest.mark.parametrize("data, what", [
    (b"", "npz|zip"), (b"hello", "zip"), (packed(**whole())[:-40], "zip"), (b"PK\x03\x04" + b"\0" * 40, "zip"),
    (archive([("values.npy", npy(np.array([Bomb()], object)))]), "pickle"),
    (archive([("values.npy", header((4, 3)) + pickle.dumps(Bomb()))]), "values"),
    (archive([("values.npy", header((1 << 40, 3)))]), "elements"),
    (archive([("values.npy", header((-1, 3)))]), "shape"),
    (archive([("values.npy", header((2, 2)) + b"\0" * 31)]), "31 bytes"),
    (archive([("values.npy", header((2, 2)) + b"\0" * 33)]), "33 bytes"),
    (archive([("values.npy", b"\x93NUMPY\x09\x00" + b"\0" * 80)]), "version"),
    (archive([("values.npy", b"no npy")]), "header"),
    (archive([("values.npy", header("__import__('os')"))]), "header"),
    (archive([("../values.npy", npy(VALUES))]), "member"),
    (archive([("values.txt", b"1")]), "member"),
    (archive([("values.npy", npy(VALUES))], zipfile.ZIP_LZMA), "packed in another way"),
])
def test_a_hostile_or_damaged_file_is_refused_in_one_line(data, what):
    with pytest.raises(UserError, match=what) as caught:
        read_bytes(data)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_twice_is_refused():
    with pytest.raises(UserError, match="two members"):
        read_bytes(archive([("values.npy", npy(VALUES)), ("values.npy", npy(VALUES))]))


def test_a_flipped_bit_is_caught_by_the_checksum():
    data = bytearray(packed(**whole()))
    data[data.index(VALUES.tobytes()) + 17] ^= 1
    with pytest.raises(UserError, match="damaged"):
        read_bytes(bytes(data))


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch):
    """64 MiB of zeros in 64 KiB, against a bound of 1 MiB: the size is known from the archive's own table."""
    bomb = archive([("values.npy", header((1 << 23,)) + bytes(1 << 26))], zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1 << 17
    monkeypatch.setattr(npz, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(npz.zipfile.ZipFile, "open", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(UserError, match=r"67108864|67108992"):
        read_bytes(bomb)


def test_a_text_of_great_width_is_bounded():
    with pytest.raises(UserError, match="elements"):
        read_bytes(archive([("sample.npy", header((1 << 20,), "<U100"))]))


def test_no_file_of_random_bytes_is_anything_but_refused():
    draw, good = np.random.default_rng(0), packed(**whole())
    for _ in range(150):
        data = bytearray(good)
        for place in draw.integers(0, len(data), 6):
            data[place] = draw.integers(256)
        try:
            got = read_bytes(bytes(data))
        except UserError:
            continue
        assert np.array_equal(got.values[:, 0], VALUES, equal_nan=True), "other numbers were read without a word"


# ---- parquet

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def write_parquet(path, meta=META, **columns):
    rows = {"values": VALUES.tolist(), "sample": SAMPLES, **columns}
    table = pyarrow.table({name: column for name, column in rows.items() if column is not None})
    parquet.write_table(table.replace_schema_metadata({PARQUET_KEY: render(meta)} if meta else {}), path)
    return path


def test_parquet_holds_the_same(tmp_path):
    got = read(write_parquet(tmp_path / "a.parquet", noise=[f"n{k}" for k in range(20)], state=VALUES[:, 0].tolist()))
    assert np.array_equal(got.values[:, 0], VALUES.astype(np.float64))
    assert (got.noise[3], got.steps, got.site) == ("n3", 10, "npu")
    assert got.state.shape == (20, 3)


@pytest.mark.parametrize("changes, what", [
    ({"meta": None}, PARQUET_KEY), ({"other": [1] * 20}, "other"), ({"values": None}, "values"),
    ({"values": [[[0.0] * 3] * (1 + k % 2) for k in range(20)]}, "lengths"),
    ({"values": [[[None, 1.0, 2.0]] * 4] * 20}, "null"), ({"sample": [None] * 20}, "sample"),
    ({"sample": ["s" * 5000] * 20}, "200 characters"), ({"values": ["x"] * 20}, "values"),
])
def test_a_parquet_file_that_does_not_fit_is_refused(tmp_path, changes, what):
    with pytest.raises(UserError, match=what):
        read(write_parquet(tmp_path / "a.parquet", **changes))


def test_a_torn_parquet_file_is_refused_and_a_large_one_too(tmp_path, monkeypatch):
    from pytest_migparity.readers import actions_parquet

    path = write_parquet(tmp_path / "a.parquet")
    data = path.read_bytes()
    with pytest.raises(UserError, match="no whole parquet"):
        read_bytes(data[:-30], "a.parquet")
    monkeypatch.setattr(actions_parquet, "MAX_VALUES", 100)
    with pytest.raises(UserError, match="at most 100 values"):
        read(path)


def test_the_reader_never_unpickles():
    source = "".join(Path(module.__file__).read_text("utf-8") for module in (npz, reader))
    assert "np.load" not in source
    assert "pickle." not in source
