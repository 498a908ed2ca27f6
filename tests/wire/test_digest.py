"""A digest is read back as it was written, whatever a forum does to its blanks; anything else is one clear error."""

import base64
import contextlib
import hashlib
import json
import math
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_migparity.wire.digest import Digest, DigestError, Stats, TensorDigest, as_sent, check, step
from pytest_migparity.wire.digest_text import from_text, read, to_text
from pytest_migparity.wire.packed import MAX_TABLE, MAX_TEXT

STATS = Stats(2.5, -1.0, -2.0, 0.5, 1, 0, 0, 4294967295, tuple(range(-8, 8)))
WEIGHT = TensorDigest("a.weight", "float32", (2, 3), "0123456789abcdef", STATS)
COUNTER = TensorDigest("b", "int64", (), "f" * 16, STATS._replace(l2=3.0, low=3.0, high=3.0, zeros=0), "uint8", "e" * 16)
DIGEST = Digest(1, "sha256", (WEIGHT, COUNTER))


def packed(head, columns=b""):
    """A text whose first line is true, around a table of the caller's."""
    return framed(json.dumps(head).encode() + b"\n" + columns)


def framed(table):
    data = zlib.compress(table)
    checksum = hashlib.sha256(data).hexdigest()[:16]
    return f"migparity.digest/1 bytes={len(data)} sha256={checksum}\n{base64.b85encode(data).decode()}\n"


def head(**changes):
    return {"level": 0, "hash": "sha256", "names": ["a"], "kinds": [["float32", [2]]], "kind": [0], **changes}


def level1(columns, **changes):
    return packed(head(level=1, unmeasured=[], wide=[], narrow=[], **changes), b"\x01" * 8 + columns)


def row(l2=1.0, total=1.0, low=0.0, high=1.0, zeros=1, nans=0, infs=0, lanes=(1,) * 16):
    """The statistics of one tensor as the table holds them: of the lanes the low bytes, then the high ones."""
    both = struct.pack("<16h", *lanes)
    return struct.pack("<4f3QI", l2, total, low, high, zeros, nans, infs, 5) + both[::2] + both[1::2]


floats = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def tensors(draw, level):
    dtype = draw(st.sampled_from(["float32", "bfloat16", "float64", "int8", "float8_e4m3"]))
    shape = tuple(draw(st.lists(st.integers(1, 1 << 15), max_size=4)))
    item = TensorDigest(draw(st.text("abc.0éあ", min_size=1, max_size=9)), dtype, shape, draw(st.binary(min_size=8, max_size=8)).hex())
    if not level or draw(st.booleans()):
        return item
    low, high = sorted((draw(floats), draw(floats)))
    stats = Stats(as_sent(draw(st.floats(1e-200, 1e200))), as_sent(draw(floats)), low, high, 0, 0, 0,
                  draw(st.integers(0, 2**32 - 1)),
                  tuple(draw(st.lists(st.integers(-32767, 32767), min_size=16, max_size=16))))
    return item._replace(stats=stats, **({"narrow": "bool", "values": "ab" * 8} if draw(st.booleans()) else {}))


@st.composite
def digests(draw):
    level = draw(st.integers(0, 1))
    items = {item.name: item for item in draw(st.lists(tensors(level), max_size=5))}
    return Digest(level, draw(st.sampled_from(["sha256", "xxh3_128"])), tuple(items[name] for name in sorted(items)))


@given(digests())
def test_what_was_written_is_read_to_the_last_bit(digest):
    assert from_text(to_text(digest)) == digest


def test_blanks_and_line_ends_of_a_forum_do_no_harm():
    text = to_text(DIGEST)
    assert text.isascii()
    assert from_text("\n\n" + text.replace("\n", "\r\n    ")) == DIGEST
    first, body = text.split("\n", 1)
    joined = "".join(body.split())
    assert from_text(first + " " + " ".join(joined[at:at + 7] for at in range(0, len(joined), 7))) == DIGEST


@settings(max_examples=300)
@given(st.data())
def test_any_other_change_is_noticed(data):
    text = to_text(DIGEST)
    at = data.draw(st.integers(0, len(text.rstrip()) - 1))
    put = data.draw(st.sampled_from(["", "&amp;", "x", "Z", "\x00", "é", "0"]))
    changed = text[:at] + put + text[at + 1:]
    if "".join(changed.split()) != "".join(text.split()) or text[at] == " ":
        with pytest.raises(DigestError):
            from_text(changed)


@settings(max_examples=300)
@given(st.binary(max_size=300), st.booleans())
def test_no_table_makes_anything_but_a_digest_or_a_clear_error(noise, behind_a_head):
    table = json.dumps(head(level=1, unmeasured=[], wide=[], narrow=[])).encode() + b"\n" + noise if behind_a_head else noise
    found = DIGEST
    with contextlib.suppress(DigestError):
        found = from_text(framed(table))
        check(found)
    assert isinstance(found, Digest)


json_values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
                           lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2), max_leaves=6)


@settings(max_examples=300)
@given(st.sampled_from(["level", "hash", "names", "kinds", "kind", "unmeasured", "wide", "narrow"]), json_values)
def test_no_value_of_any_key_makes_anything_but_a_digest_or_a_clear_error(key, value):
    full = head(level=1, unmeasured=[], wide=[], narrow=[])
    found = DIGEST
    with contextlib.suppress(DigestError):
        found = from_text(packed({**full, key: value}, b"\x01" * 8 + row()))
        check(found)
    assert isinstance(found, Digest)


@pytest.mark.parametrize("text, message", [
    ("", "first line"),
    ("<html>", "first line"),
    (to_text(DIGEST).replace("digest/1", "digest/2"), "this is migparity.digest/2"),
    (to_text(DIGEST)[:-30], "cut short"),
    (to_text(DIGEST).replace("sha256=", "sha256=0", 1)[:90], "first line"),
    ("migparity.digest/1 bytes=3 sha256=0123456789abcdef\n\x80", "mangled"),
    (framed(b"\n" * (MAX_TABLE + 1)), f"more than {MAX_TABLE}"),
    (" " * (MAX_TEXT + 1), "larger than"),
    (framed(b"[" * 100_000), "not JSON"),
    (packed([]), "level"),
    (packed(head(level=True)), "level"),
    (packed(head(level=2)), "level"),
    (packed(head(kind=[])), "1 names and 0 kinds"),
    (packed(head(kind=[1]), b"\0" * 8), "kind 1"),
    (packed(head(kinds=[7]), b"\0" * 8), "kind 0"),
    (packed(head(hash="md5"), b"\0" * 8), "md5"),
    (packed(head(names=[""]), b"\0" * 8), "printable"),
    (packed(head(names=["a\x1b[2J"]), b"\0" * 8), "printable"),
    (packed(head(names=["a", "a"], kind=[0, 0]), b"\0" * 16), "each once"),
    (packed(head(kinds=[["float4", [2]]]), b"\0" * 8), "float4"),
    (packed(head(kinds=[["float32", [-1]]]), b"\0" * 8), "no shape"),
    (packed(head(kinds=[["float32", [2**62, 4]]]), b"\0" * 8), "no shape"),
    (packed(head(), b"\0" * 7), "ends 1 bytes before"),
    (packed(head(), b"\0" * 9), "by 1 bytes"),
    (level1(row()[:-1]), "ends 1 bytes before"),
    (level1(row(l2=math.nan)), "finite"),
    (level1(row(l2=-1.0)), "finite"),
    (level1(row(low=2.0)), "in order"),
    (level1(row(zeros=3)), "3 zeros"),
    (level1(row(zeros=2**64 - 1)), "zeros"),
    (level1(row(l2=0.0)), "norm 0"),
    (level1(row(zeros=2)), "norm 1"),
    (level1(row(lanes=(-32768,) * 16)), "lanes"),
])
def test_a_text_that_lies_is_refused_by_what_is_wrong(text, message):
    with pytest.raises(DigestError, match=message) as caught:
        from_text(text)
    assert len(str(caught.value)) < 400


def test_the_rows_above_are_read_when_they_do_not_lie():
    (item,) = from_text(level1(row())).tensors
    assert item == TensorDigest("a", "float32", (2,), "01" * 8, Stats(1.0, 1.0, 0.0, 1.0, 1, 0, 0, 5, (1,) * 16))


def test_a_file_is_named_in_its_error(tmp_path):
    with pytest.raises(DigestError, match="absent"):
        read(str(tmp_path / "absent"))
    (tmp_path / "torn").write_text(to_text(DIGEST)[:-9])
    with pytest.raises(DigestError, match=r"torn: holds .* cut short"):
        read(str(tmp_path / "torn"))
    (tmp_path / "whole").write_text(to_text(DIGEST))
    assert read(str(tmp_path / "whole")) == DIGEST


def test_the_unit_of_the_lanes_is_that_of_the_next_power_of_two():
    assert step(1.0) == 2 * 2 / 2**15  # frexp(1) = .5 x 2^1; 8 / sqrt(16) = 2
    assert step(0.99) == 2 / 2**15
    assert step(1.0, 64) == 2 / 2**15
    assert step(0.0) == 0.0


def test_a_norm_beyond_float32_keeps_its_size():
    assert as_sent(1e300) == 1e300
    assert as_sent(1e-300) == 1e-300
    assert as_sent(0.1) == struct.unpack("<f", struct.pack("<f", 0.1))[0]
