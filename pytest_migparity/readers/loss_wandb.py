"""Charts exported as CSV from Weights & Biases or SwanLab: a step, and columns for each run."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_migparity.core.verdict import note

from .cells import NUMBER
from .errors import ReadError, shown
from .loss_csv import STEP_NAMES
from .steps import Spacing

if TYPE_CHECKING:
    from .lines import Lines
    from .rows import Rows

BOUNDS = ("__MIN", "__MAX")
LINE_LIMIT = 1 << 20
MOST_COLUMNS = 1000
LONGEST_SHOWN = 100
_STEP = re.compile(r"\d{1,15}", re.ASCII)
_SWANLAB = frozenset({"run_id", "experiment_name"})  # of swanlab_runs.csv


class WandbReader:
    """`"Step","run a - train/loss","run a - train/loss__MIN","run a - train/loss__MAX"`.

    The columns keep their names: of several runs the manifest names one, `column = "run a - train/loss"`. A value that
    is not its own minimum and maximum is a mean of a group of runs or of a stretch of steps, which a note says; so it
    does where the chart does not have every logged step.
    """

    name = "wandb"

    def sniff(self, head: str) -> float:
        """Is the first line the header of a chart, or of SwanLab's table of runs?"""
        header = _cells(next((line for line in head.split("\n", 50)[:50] if line.strip()), ""))
        if any(cell.endswith(BOUNDS) for cell in header) or set(header) >= _SWANLAB:
            return 0.95
        return 0.85 if any(" - " in cell for cell in header[1:]) and _step_column(header) is not None else 0.0

    def read(self, lines: Lines, rows: Rows) -> None:
        """One row per step of the chart; ReadError for a table of runs and for a chart over something else."""
        header: list[str] = []
        step, series = 0, list[_Series]()
        number = short = 0
        seen: tuple[int, list[str]] | None = None
        for number, text in lines:
            if not text.strip():
                continue
            found = _cells(text)
            if not header:
                header = found
                step, series = _columns(header, lines.name, number)
                continue
            if short or len(found) > len(header):
                raise _uneven(lines.name, short or number, header)
            if seen is not None:
                _see(series, step, *seen)
            if len(found) < len(header):
                seen, short = None, number
                continue
            seen = number, found
            rows.add(number, found[step], {each.name: found[each.at] for each in series})
        if short and not lines.torn:
            raise _uneven(lines.name, short, header)
        if short:
            rows.dropped += 1
            rows.notes.append(note("read-torn-line", file=lines.name, line=short))
        elif lines.torn:  # the last cell may be cut, be it a value or a maximum
            rows.open_end = "step" if step == len(header) - 1 else header[-1] if header else ""
        elif seen is not None:
            _see(series, step, *seen)
        _remark(series, rows, lines.name)


@dataclass(slots=True)
class _Series:
    """One run's column: where it and its bounds stand in a row, and what was seen of it."""

    name: str
    at: int
    bounds: tuple[int, ...]
    spacing: Spacing = field(default_factory=Spacing)
    apart: int = 0
    line: int = 0


def _see(series: list[_Series], step: int, line: int, found: list[str]) -> None:
    """Take in one whole row: where it has a value, and whether that lies apart from its bounds."""
    for each in series:
        value = found[each.at]
        if value and _STEP.fullmatch(found[step]):
            each.spacing.add(int(found[step]))
        if value and any(found[bound] and _differ(value, found[bound]) for bound in each.bounds):
            each.apart, each.line = each.apart + 1, each.line or line


def _remark(series: list[_Series], rows: Rows, name: str) -> None:
    """Say which columns are means, and which have not every logged step."""
    apart = [each for each in series if each.apart]
    if apart:
        rows.notes.append(note("read-chart-grouped", file=name, column=apart[0].name, columns=len(apart),
                               rows=apart[0].apart, line=apart[0].line))
    uneven = [each for each in series if not each.spacing.regular]
    if uneven:
        rows.notes.append(note("read-chart-sampled", file=name, column=uneven[0].name, columns=len(uneven)))


def _columns(header: list[str], name: str, line: int) -> tuple[int, list[_Series]]:
    """(place of the step, the columns of runs)."""
    if set(header) >= _SWANLAB:
        raise ReadError(name, line=line, found="SwanLab's table of runs: one row for each run, with its last values",
                        expected="the loss step by step",
                        remedy="export the loss chart of the run as CSV, or hand in the training log")
    if len(header) > MOST_COLUMNS:
        raise ReadError(name, line=line, found=f"{len(header)} columns", expected=f"at most {MOST_COLUMNS}",
                        remedy="export the chart with fewer runs")
    twins = [cell for i, cell in enumerate(header) if cell and cell in header[:i]]
    if twins:
        raise ReadError(name, line=line, found=f"two columns named {shown(twins[0])}", expected="each name once",
                        remedy="two runs have one name: export the chart of one of them")
    step = _step_column(header)
    if step is None:
        raise ReadError(name, line=line, found=f"a chart over {shown(header[0])}", expected="a chart over Step",
                        remedy="set the chart's x axis to Step and export it again")
    place = {cell: i for i, cell in enumerate(header)}
    return step, [_Series(cell, i, tuple(place[cell + bound] for bound in BOUNDS if cell + bound in place))
                  for i, cell in enumerate(header)
                  if i != step and cell and not cell.endswith((*BOUNDS, " - _step"))]


def _step_column(header: list[str]) -> int | None:
    return next((i for i, cell in enumerate(header) if cell.lower() in STEP_NAMES), None)


def _cells(line: str) -> list[str]:
    """The cells of one line; a line that is no CSV is one cell."""
    if len(line) > LINE_LIMIT:
        return [line[:LONGEST_SHOWN]]
    try:
        return [cell.strip() for cell in next(csv.reader([line]), [])]
    except csv.Error:
        return [line[:LONGEST_SHOWN]]


def _differ(one: str, other: str) -> bool:
    if one == other:
        return False
    return not (NUMBER.fullmatch(one) and NUMBER.fullmatch(other) and float(one) == float(other))


def _uneven(name: str, line: int, header: list[str]) -> ReadError:
    return ReadError(name, line=line, found="a row of another width", expected=f"{len(header)} cells, as in the header",
                     remedy="export the chart again")
