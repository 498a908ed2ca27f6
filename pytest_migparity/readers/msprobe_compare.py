"""Comparison tables of Ascend msprobe (`compare_result_*.csv`): both sides' statistics row by row, in every mode.

The metrics are taken; msprobe's own `Result` and `Err_message` are not looked at. NPU is the candidate, Bench the
baseline. Cells hold numbers, `None`, `N/A`, `Nan`, `unsupported`, `too large`.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from pytest_migparity.core.dumped import Compared, Comparison, DumpedTensor
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.verdict import Note, note

from .msprobe_dump import number, tensor_of

MAX_BYTES = 1 << 28  # a row with its call stack takes 600 bytes
_SIDES = {"candidate": "NPU", "baseline": "Bench"}
_ABSENT = ("", "N/A", "None")
_STATISTICS = ("min", "max", "mean", "l2norm")
_RANK = re.compile(r"rank([0-9]{1,6})")
_STEP = re.compile(r"step([0-9]{1,9})")
_SHAPE = re.compile(r"[\[(]\s*(?:[0-9]{1,15}\s*,?\s*)*[\])]")


def read_comparison(stream: BinaryIO, name: str) -> tuple[Comparison, tuple[Note, ...]]:
    """The rows of one table, and a note of those that name no tensor. Step and rank come from the file's name.

    UserError names the file that is no such table, too large, cut, or two tables in one.
    """
    text = io.TextIOWrapper(io.BufferedReader(_Bounded(stream, name)), encoding="utf-8-sig", errors="replace",
                            newline="")
    table = csv.reader(text)
    header = _next(table, name, 1)
    columns = {title.strip().lower(): place for place, title in enumerate(header or ())}
    for title in ("NPU Name", "Bench Name"):
        if title.lower() not in columns:
            raise UserError(f"{name}: no comparison table of msprobe: its first line has no column {title!r} "
                            "(an .xlsx must be saved as .csv first)")
    place = _place(name)
    rows: list[Compared] = []
    named: set[str] = set()
    skipped = 0
    line = 1
    while (cells := _next(table, name, line + 1)) is not None:
        line += 1
        if len(cells) != len(columns):
            raise UserError(f"{name}, row {line}: {len(cells)} cells, expected {len(columns)}; the table is cut or "
                            "edited")
        row = {title: cells[column].strip() for title, column in columns.items()}
        sides = {side: _tensor(row, prefix, place) for side, prefix in _SIDES.items()}
        if not any(sides.values()):
            skipped += 1
            continue
        called = next(tensor.name for tensor in (sides["baseline"], sides["candidate"]) if tensor)
        if called in named:
            raise UserError(f"{name}, row {line}: {called} is compared twice; the table is edited, or two lie together")
        named.add(called)
        rows.append(Compared(sides["baseline"], sides["candidate"], _metric(row, "cosine"), _metric(row, "eucdist")))
    if not rows:
        raise UserError(f"{name}: the table has no row with a tensor")
    return Comparison(tuple(rows)), (note("dump-skipped", file=name, count=skipped),) if skipped else ()


class _Bounded(io.RawIOBase):
    """At most MAX_BYTES of a stream; UserError beyond, and NUL bytes are blanks."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._name, self._left = stream, name, MAX_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(min(len(buffer), 1 << 16)) or b""
        self._left -= len(block)
        if self._left < 0:
            raise UserError(f"{self._name}: larger than {MAX_BYTES} bytes")
        buffer[:len(block)] = block.replace(b"\0", b" ")
        return len(block)


def _next(table: Iterator[list[str]], name: str, line: int) -> list[str] | None:
    """The next row; None at the end. A cell of more than 128 Ki characters is refused."""
    try:
        return next(table, None)
    except csv.Error as error:
        raise UserError(f"{name}, row {line}: not CSV: {error}") from None


def _place(name: str) -> tuple[int, int]:
    found = [pattern.search(PurePosixPath(name).name) for pattern in (_STEP, _RANK)]
    step, rank = (int(match[1]) if match else 0 for match in found)
    return step, rank


def _tensor(row: Mapping[str, str], side: str, place: tuple[int, int]) -> DumpedTensor | None:
    """One side's half of a row; None where the side lacks the tensor or the row is of something else."""
    name, shape = row[f"{side} name".lower()], row.get(f"{side} tensor shape".lower(), "")
    if name in _ABSENT or not _SHAPE.fullmatch(shape):
        return None
    numbers = tuple(number(row.get(f"{side} {key}".lower(), "")) for key in _STATISTICS)
    return tensor_of(*place, _stage(name), name[:512], row.get(f"{side} dtype".lower()),
                     tuple(int(size) for size in re.findall(r"[0-9]+", shape)), numbers,
                     row.get(f"{side} md5".lower(), ""), trained=row.get(f"{side} requires_grad".lower()) == "True")


def _stage(name: str) -> str:
    """What a tensor is, by msprobe's name for it."""
    if ".backward" in name or ".parameters_grad" in name:
        return "grad"
    if ".parameters." in name:
        return "weight"
    return "output" if ".output" in name else "input"


def _metric(row: Mapping[str, str], column: str) -> float:
    value = number(row.get(column, ""))
    return math.nan if value is None else value
