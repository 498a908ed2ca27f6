"""What happens to a log's bytes before somebody hands them in.

A mangling makes other bytes of a log, and draws what it does from a `random.Random`: a seed tells it all. `others` are
logs from which it takes what does not belong there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random

MOST = 1 << 16  # bytes of a mangled log
_DECIMAL = re.compile(rb"\d{1,15}\.\d{1,20}(?:[eE][+-]\d\d)?")
_PLACES = re.compile(rb"(\d{1,15}\.)(\d{1,20})")

Mangling = Callable[[bytes, Sequence[bytes], Random], bytes]


def drop(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Lines are lost: one, a block, or many."""
    lines = data.splitlines(keepends=True)
    begin, end = _block(lines, draw)
    share = draw.choice((0.0, 0.1, 0.5))
    if share:
        return b"".join(line for line in lines if draw.random() >= share)
    return b"".join(lines[:begin] + lines[end:])


def duplicate(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Lines come again: at once, or as a block further down."""
    lines = data.splitlines(keepends=True)
    begin, end = _block(lines, draw)
    if draw.random() < 0.5:
        at = draw.randint(end, len(lines))
        return b"".join(lines[:at] + lines[begin:end] + lines[at:])
    return b"".join(line for i, line in enumerate(lines) for _ in range(1 + (begin <= i < end)))


def reorder(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Lines in another order: two swapped, all shuffled, a block moved, upside down."""
    lines = data.splitlines(keepends=True)
    begin, end = _block(lines, draw)
    how = draw.randrange(4)
    if how == 0 and lines:
        i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
    elif how == 1:
        draw.shuffle(lines)
    elif how == 2:
        block, rest = lines[begin:end], lines[:begin] + lines[end:]
        at = draw.randint(0, len(rest))
        lines = rest[:at] + block + rest[at:]
    else:
        lines.reverse()
    return b"".join(lines)


def glue(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Rows of another log: behind the last, before the first, or in between."""
    lines, theirs = data.splitlines(keepends=True), draw.choice(others).splitlines(keepends=True)
    begin, end = _block(theirs, draw)
    at = draw.choice((0, len(lines), draw.randint(0, len(lines))))
    return b"".join(lines[:at] + theirs[begin:end] + lines[at:])


def concatenate(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Two whole logs, one behind the other."""
    pair = [data, draw.choice(others)]
    draw.shuffle(pair)
    return b"".join(pair)


def join_lines(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Line ends are lost: one, or many."""
    share = draw.choice((0.02, 0.5, 1.0))
    return b"".join(line.rstrip(b"\r\n") if draw.random() < share else line for line in data.splitlines(keepends=True))


def truncate(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Cut anywhere, inside a character of several bytes above all; or the beginning is lost."""
    inside = [i for i, byte in enumerate(data) if 0x80 <= byte < 0xC0]
    at = draw.choice(inside) if inside and draw.random() < 0.3 else draw.randint(0, len(data))
    return data[at:] if draw.random() < 0.3 else data[:at]


def re_encode(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Another encoding, a byte-order mark, other line ends."""
    text = data.decode("utf-8", "replace")
    return draw.choice((
        lambda: text.encode("utf-16"), lambda: text.encode("utf-16-be"), lambda: b"\xfe\xff" + text.encode("utf-16-be"),
        lambda: text.encode("gbk", "replace"), lambda: b"\xef\xbb\xbf" + data, lambda: data.replace(b"\n", b"\r\n"),
        lambda: data.replace(b"\n", b"\r"), lambda: text.encode("latin-1", "replace"),
        lambda: data.replace(b"\n", b"\x1b[0m\n")))()


def not_finite(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """A number, or each of a tenth of them, becomes none that is finite."""
    word = draw.choice((b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"-Infinity", b"null", b"None", b"", b"1e400", b"0.0",
                        b"N/A", b"-nan(ind)"))
    return _numbers(data, lambda _: word, draw)


def other_numbers(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """A number, or each of a tenth of them, becomes another."""
    return _numbers(data, lambda match: b"%d.%04d" % (draw.randrange(12), draw.randrange(10_000)), draw)


def commas(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Decimal commas, or commas between thousands; what a comma separated, a semicolon may separate now."""
    separator = draw.choice((b",", b";", b"\t"))
    data = data.replace(b",", separator)
    if draw.random() < 0.5:
        return _DECIMAL.sub(lambda match: match[0].replace(b".", b","), data)
    return _numbers(data, lambda match: b"%d,%03d.5" % (draw.randrange(1, 12), draw.randrange(1000)), draw)


def ranks(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Every line is printed by two or three ranks: equal or not, in turns or in blocks, or glued on one line."""
    count, differ, how = draw.choice((2, 3)), draw.random() < 0.5, draw.randrange(4)
    theirs = [data, *(_jittered(data, draw) if differ else data for _ in range(count - 1))]
    lines = [log.splitlines(keepends=True) for log in theirs]
    if how == 0:
        return b"".join(theirs)
    turns = [[b"[rank%d]: " % rank + line if how == 1 else line for rank, line in enumerate(turn)]
             for turn in zip(*lines, strict=True)]
    if how == 2:
        return b"".join(b"".join(line.rstrip(b"\r\n") for line in turn) + b"\n" for turn in turns)
    return b"".join(line for turn in turns for line in turn)


def fewer_digits(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """Every number is rounded to so many decimals."""
    return rounded(data, draw.randrange(5))


def rounded(data: bytes, places: int) -> bytes:
    """`data` with at most so many decimals in its numbers."""
    return _PLACES.sub(lambda match: b"%.*f" % (places, float(match[0])) if len(match[2]) > places else match[0], data)


def flip(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """A few bytes become others."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8)) if found else 0):
        found[draw.randrange(len(found))] = draw.choice((draw.randrange(256), draw.choice(b"0123456789.,-eE \n\r\t\"'{}[]:|=")))
    return bytes(found)


def splice(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """A piece of another log in the middle, cut without regard to lines."""
    theirs, at = draw.choice(others), draw.randint(0, len(data))
    begin = draw.randint(0, len(theirs))
    return data[:at] + theirs[begin: begin + draw.choice((8, 64, 1024, MOST))] + data[at + draw.choice((0, 0, 16)):]


def stretch(data: bytes, others: Sequence[bytes], draw: Random) -> bytes:
    """One piece comes very often, or a line or a number is very long."""
    at = draw.randint(0, len(data))
    piece = draw.choice((b"9", b" ", b"\n", b"\r", b"{", b"[", b'"', b"'", b"|", b",", b"0.", b"nan, ", b"step", b"\x1b[", b"- ",
                         b"=", "１".encode(), data[at: at + draw.choice((1, 3, 20, 200))]))
    return data[:at] + piece * draw.choice((2, 100, 20_000 // max(1, len(piece)))) + data[at:]


MANGLINGS: Mapping[str, Mangling] = {each.__name__: each for each in (
    drop, duplicate, reorder, glue, concatenate, join_lines, truncate, re_encode, not_finite, other_numbers, commas,
    ranks, fewer_digits, flip, splice, stretch)}


def mangled(data: bytes, names: Sequence[str], others: Sequence[bytes], seed: int) -> bytes:
    """`data` after the manglings of these names, one after the other; at most 64 KiB of it."""
    draw = Random(seed)
    for name in names:
        data = MANGLINGS[name](data, others, draw)[:MOST]
    return data


def _block(lines: Sequence[bytes], draw: Random) -> tuple[int, int]:
    """(begin, end) of some lines: one, or a stretch of any length."""
    begin = draw.randint(0, len(lines))
    return begin, min(begin + 1, len(lines)) if draw.random() < 0.3 else draw.randint(begin, len(lines))


def _numbers(data: bytes, better: Callable[[re.Match[bytes]], bytes], draw: Random) -> bytes:
    found = list(_DECIMAL.finditer(data))
    chosen = draw.choice(found).start() if found and draw.random() < 0.5 else None
    return _DECIMAL.sub(lambda match: better(match) if match.start() == chosen or (
        chosen is None and draw.random() < 0.1) else match[0], data)


def _jittered(data: bytes, draw: Random) -> bytes:
    """Every decimal differs in its last places."""
    return _PLACES.sub(lambda match: b"%.*f" % (len(match[2]), float(match[0]) * (1 + draw.uniform(-0.01, 0.01))), data)
