"""Tables: CSV, TSV, semicolons, or two columns between blanks, with or without a header."""

from __future__ import annotations

import csv
import re
from collections import Counter

from pytest_migparity.core.verdict import note

from .errors import ReadError, shown
from .rows import NON_FINITE, NUMBER, STEP, Rows

STEP_NAMES = ("step", "steps", "global_step", "iteration", "iterations", "iter", "current_steps", "train/global_step",
              "trainer/global_step", "_step")
DELIMITERS = (",", "\t", ";", "|")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3}){1,10}(?:\.\d{0,40})?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,40},\d{1,40}(?:[eE][+-]?\d{1,4})?", re.ASCII)
CELL_LIMIT = 1 << 17


class CsvReader:
    """One row per logged step; lines that begin with `#` are comments."""

    name = "csv"

    def sniff(self, text: str) -> float:
        """A header with a step column, or two numbers in the first line."""
        first = next((line for line in text.split("\n", 200) if line.strip() and not line.startswith("#")), "")
        if len(first) > CELL_LIMIT:
            return 0.0
        cells = _split(first, _delimiter(first))
        if _step_column(cells) is not None and len(cells) > 1:
            return 0.8
        return 0.5 if len(cells) >= 2 and STEP.fullmatch(cells[0]) and _is_number(cells[1]) else 0.0

    def rows(self, text: str, name: str) -> Rows:
        """The table as printed; a torn last row is dropped, a row of another width elsewhere is an error."""
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1)
                 if line.strip() and not line.startswith("#")]
        if not lines:
            raise ReadError(name, found="comments only", expected="a header and rows", remedy="export step,loss as CSV")
        delimiter = _delimiter(lines[0][1])
        header = _split(lines[0][1], delimiter)
        step = _step_column(header)
        if step is None:
            if not (len(header) >= 2 and STEP.fullmatch(header[0])):
                raise ReadError(name, line=lines[0][0], found=f"columns {shown(', '.join(header))}",
                                expected=f"one of them named {', '.join(STEP_NAMES[:4])}",
                                remedy="rename the column that holds the step")
            header, step = ["step", "loss", *(f"column {i}" for i in range(3, len(header) + 1))], 0
        else:
            _refuse_twins(header, step, name, lines[0][0])
            lines = lines[1:]
        found = Rows()
        if not text.endswith("\n"):
            found.open_end = "step" if step == len(header) - 1 else header[-1]
        for position, (number, line) in enumerate(lines):
            cells = _split(line, delimiter) if len(line) <= CELL_LIMIT * 8 else []
            if len(cells) != len(header):
                if position == len(lines) - 1 and len(cells) < len(header):
                    found.dropped += 1
                    found.open_end = ""
                    found.notes.append(note("read-torn-line", file=name, line=number))
                    continue
                raise ReadError(name, line=number, found=f"{len(cells)} cells: {shown(line)}",
                                expected=f"{len(header)}, as in the header", remedy="correct or remove the line")
            found.add(number, cells[step], {key: cell for i, (key, cell) in enumerate(zip(header, cells, strict=True))
                                            if i != step})
        _commas(found, name, delimiter)
        return found


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


def _commas(found: Rows, name: str, delimiter: str) -> None:
    """Read thousands commas, and decimal commas where the comma does not separate cells, column by column."""
    with_comma: dict[str, list[int]] = {}
    for i, row in enumerate(found.cells):
        for key, cell in row.items():
            if "," in cell:
                with_comma.setdefault(key, []).append(i)
    for key, rows in with_comma.items():
        cells = [found.cells[i][key] for i in rows]
        thousands = all(_THOUSANDS.fullmatch(cell) for cell in cells)
        if not thousands and (delimiter == "," or not all(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)):
            continue
        if thousands and delimiter != "," and not any("." in row.get(key, "") for row in found.cells):
            raise ReadError(name, line=found.line[rows[0]], found=f"{key} {shown(cells[0])}", expected="a number",
                            remedy="is the comma for decimals or thousands? write a decimal point")
        for i, cell in zip(rows, cells, strict=True):
            found.cells[i] = {**found.cells[i], key: cell.replace(",", "" if thousands else ".")}
        found.repaired += len(rows)
        found.notes.append(note("read-thousands" if thousands else "read-decimal-comma", file=name, column=key,
                                rows=len(rows)))
