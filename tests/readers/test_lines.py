"""Bytes to lines, piece by piece: every piece may end anywhere."""

import io
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.readers import lines as lines_module
from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.lines import Lines


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(lines_module, "BLOCK", 7)
    monkeypatch.setattr(lines_module, "HEAD", 5)


def read(data, name="log"):
    found = Lines(io.BytesIO(data), name)
    return list(found), found


TEXT = "# 训练日志\nstep,loss\r\n1,2.5\r2,2.25\n\n\x1b[32m3\x1b[0m,２.0 é\n"
LINES = [(1, "# 训练日志"), (2, "step,loss"), (3, "1,2.5"), (4, "2,2.25"), (5, ""), (6, "3,2.0 é")]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("data", "encoding", "codes"), [
    (TEXT.encode(), "UTF-8", ["read-ansi", "read-wide-digits"]),
    (b"\xef\xbb\xbf" + TEXT.encode(), "UTF-8 with BOM", ["read-bom", "read-ansi", "read-wide-digits"]),
    (b"\xff\xfe" + TEXT.encode("utf-16-le"), "UTF-16", ["read-encoding", "read-ansi", "read-wide-digits"]),
    (b"\xfe\xff" + TEXT.encode("utf-16-be"), "UTF-16", ["read-encoding", "read-ansi", "read-wide-digits"]),
    (TEXT.encode("gbk"), "GBK", ["read-encoding", "read-ansi", "read-wide-digits"]),
])
def test_lines_and_numbers_are_those_of_the_whole_text(data, encoding, codes):
    found, lines = read(data)
    assert found == LINES
    assert (lines.encoding, lines.torn) == (encoding, False)
    assert [item.code for item in lines.notes()] == codes


def test_the_head_takes_nothing_away(small_blocks):
    lines = Lines(io.BytesIO(TEXT.encode()), "log")
    assert lines.head == "# 训练日志\nstep,loss"[:5]
    assert list(lines) == LINES


@pytest.mark.usefixtures("small_blocks")
def test_a_carriage_return_at_the_end_of_a_piece_is_one_line_end():
    assert read(b"123456\r\nabc\r\n")[0] == [(1, "123456"), (2, "abc")]
    assert read(b"123456\rabc\r")[0] == [(1, "123456"), (2, "abc")]


@pytest.mark.parametrize(("data", "torn"), [
    (b"1,2\n3,4", True), (b"1,2\n3,4\n", False), (b"1,2\r", False), (b"1,2\n\x1b[0m", False), (b"1,2\n ", True)])
def test_torn_says_that_the_last_line_has_no_end(data, torn):
    assert read(data)[1].torn is torn


@pytest.mark.parametrize("data", ["1,2\n# 训练".encode()[:-1], "1,2\n# 训练训".encode("gbk")[:-1],
                                  b"\xff\xfe" + "1,2\n# 训练".encode("utf-16-le")[:-1]])
def test_a_torn_last_character_is_dropped_and_said(data):
    found, lines = read(data)
    assert found[0] == (1, "1,2")
    assert found[1][1].startswith("# 训")
    assert "read-torn-text" in [item.code for item in lines.notes()]


@pytest.mark.usefixtures("small_blocks")
def test_a_file_that_turns_from_utf8_to_gbk_says_so():
    found, lines = read("训练\n".encode() + b"1,2.5\n" + "损失\n".encode("gbk"))
    assert [text for _, text in found] == ["训练", "1,2.5", "损失"]
    assert lines.encoding == "UTF-8, then GBK"


@pytest.mark.usefixtures("small_blocks")
def test_bytes_of_no_encoding_are_named_with_their_line():
    with pytest.raises(ReadError, match=r"log, line 4: found bytes that are neither UTF-8 nor GBK \(ff ff ff ff\)"):
        read(b"a\r\nb\rc\nd \xff\xff\xff\xff\n")


@pytest.mark.usefixtures("small_blocks")
def test_a_nul_far_into_the_file_is_refused_with_its_place():
    with pytest.raises(ReadError, match="a NUL byte at offset 22"):
        read(b"1,2.5\n" * 3 + b"1,2.\0\n")


@given(st.lists(st.sampled_from(["a", "1,2", "训", "１", "\r", "\n", "\r\n", "\x1b[0m"]), max_size=40), st.integers(1, 9))
def test_no_size_of_pieces_changes_a_line(pieces, size):
    """Against the plain way: all at once, universal newlines by the standard library."""
    body = "x" + "".join(pieces)
    whole = io.StringIO(body, newline=None).read().replace("\x1b[0m", "").replace("１", "1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "BLOCK", size)
        found, lines = read(body.encode())
    assert "\n".join(line for _, line in found) == whole.removesuffix("\n")
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    assert lines.torn == (not whole.endswith("\n"))


class Endless(io.RawIOBase):
    """A file that never ends."""

    def __init__(self, piece):
        self.piece = piece

    def readable(self):
        return True

    def read(self, size=-1):
        return self.piece * (size // len(self.piece))


def test_a_line_without_end_is_refused_in_bounded_memory():
    tracemalloc.start()
    with pytest.raises(ReadError, match=f"line 1: found a line of more than {lines_module.LONGEST_LINE} bytes"):
        list(Lines(Endless(b"loss "), "log"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * lines_module.LONGEST_LINE
