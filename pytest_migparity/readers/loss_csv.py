"""Tables: CSV, TSV, semicolons, or two columns between blanks, with or without a header."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pytest_migparity.core.verdict import note

from .cells import NON_FINITE, NUMBER, STEP
from .errors import ReadError, shown
from .lines import Lines
from .rows import Rows

STEP_NAMES = ("step", "steps", "global_step", "iteration", "iterations", "iter", "current_steps", "train/global_step",
              "trainer/global_step", "_step")
DELIMITERS = (",", "\t", ";", "|")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3}){1,10}(?:\.\d{0,40})?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,40},\d{1,40}(?:[eE][+-]?\d{1,4})?", re.ASCII)
CELL_LIMIT = 1 << 17


class CsvReader:
    """One row per logged step; lines that begin with `#` are comments."""

    name = "csv"

    def sniff(self, head: str) -> float:
        """A header with a step column, or two numbers in the first line."""
        first = next((line for line in head.split("\n", 200) if line.strip() and not line.startswith("#")), "")
        if len(first) > CELL_LIMIT:
            return 0.0
        cells = _split(first, _delimiter(first))
        if _step_column(cells) is not None and len(cells) > 1:
            return 0.8
        return 0.5 if len(cells) >= 2 and STEP.fullmatch(cells[0]) and _is_number(cells[1]) else 0.0

    def read(self, lines: Lines, rows: Rows) -> None:
        """The table as printed; a torn last row is dropped, a row of another width elsewhere is an error."""
        header: _Header | None = None
        broken: ReadError | None = None
        for first, block in lines.blocks():
            numbers, printed = _printed(block, first)
            if header is None and printed:
                header = _header(printed[0], numbers[0], lines.name)
                if header.named:
                    numbers, printed = numbers[1:], printed[1:]
            if header is None or not printed:
                continue
            if broken is not None:
                raise broken
            cells = _table(printed, header.delimiter)
            broken = _misfit(cells, numbers, printed, len(header.names), lines.name)
            if broken is not None:
                numbers, cells = numbers[:-1], cells[:-1]
            if cells:
                columns = dict(zip(header.names, zip(*cells, strict=True), strict=True))
                rows.extend(numbers, columns.pop(header.names[header.step]), columns)
        if header is None:
            raise ReadError(lines.name, found="comments only", expected="a header and rows",
                            remedy="export step,loss as CSV")
        if broken is not None:
            rows.dropped += 1
            rows.notes.append(note("read-torn-line", file=lines.name, line=broken.line or 0))
        elif lines.torn:
            rows.open_end = "step" if header.step == len(header.names) - 1 else header.names[-1]
        _commas(rows, lines.name, header.delimiter)


class _Header(NamedTuple):
    """The columns of a table; `named` says that its first line names them."""

    names: list[str]
    step: int
    delimiter: str
    named: bool


def _header(line: str, number: int, name: str) -> _Header:
    delimiter = _delimiter(line)
    cells = _split(line, delimiter)
    step = _step_column(cells)
    if step is not None:
        _refuse_twins(cells, step, name, number)
        return _Header(cells, step, delimiter, True)
    if len(cells) >= 2 and STEP.fullmatch(cells[0]):
        return _Header(["step", "loss", *(f"column {i}" for i in range(3, len(cells) + 1))], 0, delimiter, False)
    raise ReadError(name, line=number, found=f"columns {shown(', '.join(cells))}",
                    expected=f"one of them named {', '.join(STEP_NAMES[:4])}",
                    remedy="rename the column that holds the step")


def _printed(block: str, first: int) -> tuple[Sequence[int], list[str]]:
    """(numbers, texts) of the lines that are neither blank nor comments."""
    lines = block.split("\n")
    if not lines[-1]:
        del lines[-1]
    if all(lines) and "#" not in block and not any(map(str.isspace, lines)):
        return range(first, first + len(lines)), lines
    kept = [(number, line) for number, line in enumerate(lines, first)
            if line and not line.startswith("#") and not line.isspace()]
    return [number for number, _ in kept], [line for _, line in kept]


def _misfit(cells: list[list[str]], numbers: Sequence[int], printed: list[str], width: int,
            name: str) -> ReadError | None:
    """The error for the last line, if it is too short: it may be torn. Raises it for any other line of another width.
    """
    if {width}.issuperset(map(len, cells)):
        return None
    wrong = next(i for i, row in enumerate(cells) if len(row) != width)
    error = ReadError(name, line=numbers[wrong], found=f"{len(cells[wrong])} cells: {shown(printed[wrong])}",
                      expected=f"{width}, as in the header", remedy="correct or remove the line")
    if len(cells[wrong]) > width or wrong + 1 < len(cells):
        raise error
    return error


def _table(lines: list[str], delimiter: str) -> list[list[str]]:
    """The cells of each line."""
    if delimiter and any('"' in line for line in lines):
        try:
            cells = list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
        except csv.Error:
            cells = []
        if len(cells) == len(lines):  # no quote reaches into another line
            return cells
        return [_split(line, delimiter) if len(line) <= CELL_LIMIT * 8 else [] for line in lines]
    return [line.split(delimiter or None) if len(line) <= CELL_LIMIT * 8 else [] for line in lines]


def _delimiter(line: str) -> str:
    """The separator the line has most of; "" for blanks."""
    count, best = max((line.count(mark), mark) for mark in DELIMITERS)
    return best if count else ""


def _split(line: str, delimiter: str) -> list[str]:
    if not delimiter:
        return line.split()
    if '"' not in line:
        return [cell.strip() for cell in line.split(delimiter)]
    try:
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in cells]


def _step_column(header: list[str]) -> int | None:
    names = [cell.lower() for cell in header]
    return next((names.index(known) for known in STEP_NAMES if known in names), None)


def _refuse_twins(header: list[str], step: int, name: str, line: int) -> None:
    """ReadError for two columns of one name, or two steps: which of them counts, nothing says."""
    steps = header[step].lower()
    named = Counter(steps if cell.lower() == steps else cell for cell in header if cell)
    twin, count = named.most_common(1)[0]
    if count > 1:
        raise ReadError(name, line=line, found=f"{count} columns named {shown(twin)}", expected="each name once",
                        remedy="keep the one that is meant, or give the others another name")


def _is_number(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None or text.lower() in NON_FINITE


def _commas(rows: Rows, name: str, delimiter: str) -> None:
    """Read thousands commas, and decimal commas where the comma does not separate cells, column by column."""
    for key in rows.columns():
        cells = {row: cell for row, cell in rows.odd(key).items() if "," in cell}
        if not cells:
            continue
        thousands = all(_THOUSANDS.fullmatch(cell) for cell in cells.values())
        if not thousands and (delimiter == "," or not all(_DECIMAL_COMMA.fullmatch(cell) for cell in cells.values())):
            continue
        if thousands and delimiter != "," and not any("." in cell for cell in cells.values()) \
                and not rows.column(key).decimals.any():
            row, cell = next(iter(cells.items()))
            raise ReadError(name, line=int(rows.lines()[row]), found=f"{key} {shown(cell)}", expected="a number",
                            remedy="is the comma for decimals or thousands? write a decimal point")
        rows.mend(key, {row: cell.replace(",", "" if thousands else ".") for row, cell in cells.items()})
        rows.repaired += len(cells)
        rows.notes.append(note("read-thousands" if thousands else "read-decimal-comma", file=name, column=key,
                               rows=len(cells)))
