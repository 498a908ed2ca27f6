"""Bytes of a log as text: decoded, or refused by the name of what they are."""

from __future__ import annotations

import codecs
import re
import unicodedata

from pytest_migparity.core.verdict import Note, note

from .errors import ReadError, shown

MAX_BYTES = 128 * 1024 * 1024  # in memory a log takes about ten times its size
MAGIC = (
    (b"\x89PNG", "a PNG picture"), (b"\xff\xd8\xff", "a JPEG picture"), (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive (xlsx, npz and .pt files are such)"), (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstandard archive"), (b"BZh", "a bzip2 archive"), (b"\xfd7zXZ", "an xz archive"),
    (b"7z\xbc\xaf", "a 7z archive"), (b"\x89HDF", "an HDF5 file"), (b"\x93NUMPY", "a numpy array"),
    (b"PAR1", "a Parquet file"), (b"\x7fELF", "an executable"), (b"\x80\x02", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"), (b"\x80\x05", "a Python pickle"), (b"SQLite format 3", "an SQLite database"),
)
LOG = "a training log as text"
_WIDE = re.compile(r"(?![0-9])\d")  # digits of another script, full-width ones (U+FF10) above all
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,32}[A-Za-z]")
_EVENTS = re.compile(rb".{8}.{4}\x09.{8}[\x10\x1a\x2a]", re.DOTALL)  # length, CRC, wall_time, then step or version


def is_tensorboard(data: bytes) -> bool:
    """Does `data` begin like a TensorBoard event file?"""
    return _EVENTS.match(data) is not None


def decode(data: bytes, name: str) -> tuple[str, list[Note]]:
    """The text of `data` with unix line ends and no terminal codes, and a note for each thing that was undone.

    UTF-8 with or without BOM and UTF-16 with BOM are read; GBK (GB 18030) where UTF-8 fails. A last character torn by
    truncation is dropped; full-width digits become plain ones. Raises ReadError for empty, oversized and binary data.
    """
    if not data.strip(b" \t\r\n\x00\xef\xbb\xbf"):
        what = "an empty file" if not data else f"{len(data)} bytes without a single character"
        raise ReadError(name, found=what, expected=LOG, remedy="did the run write it? fetch it again")
    if len(data) > MAX_BYTES:
        raise ReadError(name, found=f"{len(data)} bytes", expected=f"at most {MAX_BYTES}",
                        remedy="cut the log down to its loss lines (grep) and hand that in")
    for magic, what in MAGIC:
        if data.startswith(magic):
            raise ReadError(name, found=what, expected=LOG, remedy="hand in the log itself, unpacked")
    text, notes = _characters(data, name)
    plain = _ANSI.sub("", text)
    if plain != text:
        notes.append(note("read-ansi", file=name))
    if not plain.isascii():
        plain, count = _WIDE.subn(lambda match: str(unicodedata.decimal(match[0])), plain)
        if count:
            notes.append(note("read-wide-digits", file=name, digits=count))
    return plain.replace("\r\n", "\n").replace("\r", "\n"), notes


def _characters(data: bytes, name: str) -> tuple[str, list[Note]]:
    for bom, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(bom):
            try:
                return data[2:].decode(encoding), [note("read-encoding", file=name, encoding="UTF-16")]
            except UnicodeDecodeError:
                whole = data[2: 2 + (len(data) - 2) // 2 * 2].decode(encoding, errors="replace")
                return whole, [note("read-encoding", file=name, encoding="UTF-16"), note("read-torn-text", file=name)]
    at = data.find(b"\0")
    if at >= 0:
        raise ReadError(name, found=f"binary data (a NUL byte at offset {at})", expected=LOG,
                        remedy="hand in the text log, saved as UTF-8")
    body = data.removeprefix(codecs.BOM_UTF8)
    notes = [note("read-bom", file=name)] if body is not data and len(body) < len(data) else []
    try:
        return body.decode("utf-8"), notes
    except UnicodeDecodeError as error:
        if error.start >= len(body) - 3 and error.reason == "unexpected end of data":
            return body[: error.start].decode("utf-8"), [*notes, note("read-torn-text", file=name)]
        bad = error.start
    try:
        return body.decode("gb18030"), [*notes, note("read-encoding", file=name, encoding="GBK")]
    except UnicodeDecodeError:
        line = body.count(b"\n", 0, bad) + 1
        raise ReadError(name, line=line, found=f"bytes that are neither UTF-8 nor GBK ({body[bad: bad + 4].hex(' ')})",
                        expected=LOG, remedy="save it as UTF-8") from None


def refuse_foreign(text: str, name: str) -> None:
    """ReadError for texts that are plainly something else than a log."""
    head = text.lstrip()[:400].lower()
    if head.startswith(("<!doctype", "<html", "<?xml")) or "<html" in head:
        raise ReadError(name, found="an HTML page (a login or error page saved under the log's name?)", expected=LOG,
                        remedy="download the raw file")
    if head.startswith("version https://git-lfs"):
        raise ReadError(name, found="a Git LFS pointer", expected=LOG, remedy="fetch the file behind it: git lfs pull")


def nothing_fits(text: str, name: str, known: str) -> ReadError:
    """The error for a text no reader recognises."""
    first = next((line for line in text.split("\n", 50)[:50] if line.strip()), "")
    return ReadError(name, line=1, found=shown(first), expected=f"one of the formats {known}",
                     remedy='name it in the manifest (format = "...") or export step,loss as CSV')
