"""What a log may look like as bytes and as text: files that are plainly something else, text without its dress."""

from __future__ import annotations

import re
import unicodedata

from .errors import ReadError, shown

LOG = "a training log as text"
_MAGIC = (
    (b"\x89PNG", "a PNG picture"), (b"\xff\xd8\xff", "a JPEG picture"), (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive (xlsx, npz and .pt files are such)"), (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstandard archive"), (b"BZh", "a bzip2 archive"), (b"\xfd7zXZ", "an xz archive"),
    (b"7z\xbc\xaf", "a 7z archive"), (b"\x89HDF", "an HDF5 file"), (b"\x93NUMPY", "a numpy array"),
    (b"PAR1", "a Parquet file"), (b"\x7fELF", "an executable"), (b"\x80\x02", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"), (b"\x80\x05", "a Python pickle"), (b"SQLite format 3", "an SQLite database"),
)
_WIDE = re.compile(r"(?![0-9])\d")  # digits of another script, full-width ones (U+FF10) above all
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,32}[A-Za-z]")
_EVENTS = re.compile(rb".{8}.{4}\x09.{8}[\x10\x1a\x2a]", re.DOTALL)  # length, CRC, wall_time, then step or version


def is_tensorboard(start: bytes) -> bool:
    """Does a file that begins with `start` look like a TensorBoard event file?"""
    return _EVENTS.match(start) is not None


def refuse_bytes(start: bytes, name: str) -> None:
    """ReadError for a file that begins with `start` (a few thousand bytes, or all there are) and is no text."""
    if not start.strip(b" \t\r\n\x00\xef\xbb\xbf"):
        what = "an empty file" if not start else f"{len(start)} bytes without a single character"
        raise ReadError(name, found=what, expected=LOG, remedy="did the run write it? fetch it again")
    for magic, what in _MAGIC:
        if start.startswith(magic):
            raise ReadError(name, found=what, expected=LOG, remedy="hand in the log itself, unpacked")


def refuse_foreign(head: str, name: str) -> None:
    """ReadError for texts that are plainly something else than a log."""
    head = head.lstrip()[:400].lower()
    if head.startswith(("<!doctype", "<html", "<?xml")) or "<html" in head:
        raise ReadError(name, found="an HTML page (a login or error page saved under the log's name?)", expected=LOG,
                        remedy="download the raw file")
    if head.startswith("version https://git-lfs"):
        raise ReadError(name, found="a Git LFS pointer", expected=LOG, remedy="fetch the file behind it: git lfs pull")


def nothing_fits(head: str, name: str, known: str) -> ReadError:
    """The error for a text no reader recognises."""
    first = next((line for line in head.split("\n", 50)[:50] if line.strip()), "")
    return ReadError(name, line=1, found=shown(first), expected=f"one of the formats {known}",
                     remedy='name it in the manifest (format = "...") or export step,loss as CSV')


def unix_lines(text: str) -> str:
    """CRLF and CR to newlines; `text` holds whole lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def without_ansi(text: str) -> str:
    """Terminal codes removed."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def plain_digits(text: str) -> tuple[str, int]:
    """(digits of other scripts made plain ones, how many there were)."""
    if text.isascii():
        return text, 0
    return _WIDE.subn(lambda match: str(unicodedata.decimal(match[0])), text)
