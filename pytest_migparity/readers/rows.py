"""The sink of all log readers: rows as printed, kept as arrays. `table` makes the Trajectory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pytest_migparity.core.verdict import Note

from .cells import Cells, read_cells, read_steps
from .errors import ReadError

if TYPE_CHECKING:
    from pytest_migparity.core.evidence import Ints

MOST_ROWS = 1 << 24
MOST_CELLS = 1 << 26  # about 2 GB once they are a table; a million steps of Megatron are 13 million
MOST_COLUMNS = 1024
MOST_ODD = 1 << 22  # cells with commas, which are kept as text until a format has read them
LONGEST_NAME = 500
_BUFFER = 4096  # rows
_BUFFER_CELLS = 1 << 16


class _Block(NamedTuple):
    line: Ints
    step: Ints
    columns: dict[str, Cells]


class Rows:
    """What a reader found, in file order: each row's step, line number (from 1) and cells by column, as printed.

    Rows become arrays every few thousand, so that memory grows with the table alone; ReadError where that grows beyond
    any log. `notes` say what the reader mended or gave up, `dropped` and `repaired` count those rows. `open_end` names
    the column ("step" for the step) whose last cell touches the end of a file without a final newline, so that it may
    have been cut. `twice` names the columns that one row printed again with another value, with the first line where
    that happened. `window`: a printed loss is the mean over that many steps; None where the format does not say.
    `series`: what the judged column is called in the log, where the reader itself chose it.
    """

    def __init__(self, name: str = "log") -> None:
        self.name = name
        self.notes: list[Note] = []
        self.dropped = 0
        self.repaired = 0
        self.open_end = ""
        self.twice: dict[str, int] = {}
        self.window: int | None = None
        self.series = ""
        self.odd_steps: dict[int, str] = {}
        self._buffer: list[tuple[int, str, Mapping[str, str]]] = []
        self._blocks: list[_Block] = []
        self._columns: dict[str, None] = {}
        self._waiting = 0  # cells in the buffer
        self._size = 0
        self._cells = 0
        self._odd = 0

    def add(self, line: int, step: str, cells: Mapping[str, str]) -> None:
        """Append one row."""
        self._buffer.append((line, step, cells))
        self._waiting += len(cells)
        if len(self._buffer) >= _BUFFER or self._waiting >= _BUFFER_CELLS:
            self._compact()

    def extend(self, line: Sequence[int] | Ints, step: Sequence[str],
               columns: Mapping[str, Sequence[str] | Cells]) -> None:
        """Append many rows with the same columns at once, each as long as `line`."""
        self._compact()
        self._bound(columns)
        if len(line):
            cells = {name: texts if isinstance(texts, Cells) else read_cells(texts) for name, texts in columns.items()}
            self._append(np.asarray(line, np.int64), step, cells)

    def _compact(self) -> None:
        if not self._buffer:
            return
        rows, self._buffer, self._waiting = self._buffer, [], 0
        names = dict.fromkeys(name for _, _, cells in rows for name in cells)
        self._bound(names)
        columns = {name: read_cells([cells.get(name, "") for _, _, cells in rows]) for name in names}
        self._append(np.fromiter((line for line, _, _ in rows), np.int64, len(rows)), [step for _, step, _ in rows],
                     columns)

    def _append(self, line: Ints, step: Sequence[str], columns: dict[str, Cells]) -> None:
        self._bound(columns)
        steps, odd = read_steps(step)
        self.odd_steps.update({self._size + row: text for row, text in odd.items()})
        self._columns.update(dict.fromkeys(columns))
        self._blocks.append(_Block(line, steps, columns))
        self._size += line.size
        self._cells += line.size * len(columns)
        self._odd += sum(len(cells.odd) for cells in columns.values())
        for found, most, what in ((self._size, MOST_ROWS, "rows"), (self._cells, MOST_CELLS, "values"),
                                  (self._odd, MOST_ODD, "cells that are no plain numbers")):
            if found > most:
                raise ReadError(self.name, line=int(line[-1]), found=f"more than {most} {what} up to here",
                                expected="a training log", remedy="cut the log down to the steps that are compared")

    def _bound(self, names: Mapping[str, object]) -> None:
        new = [name for name in names if name not in self._columns]
        if len(self._columns) + len(new) > MOST_COLUMNS or any(len(name) > LONGEST_NAME for name in new):
            raise ReadError(self.name, found=f"more than {MOST_COLUMNS} columns, or a name of more than {LONGEST_NAME} "
                            "characters", expected="a training log",
                            remedy="cut it down to the columns that are compared")

    def __len__(self) -> int:
        return self._size + len(self._buffer)

    def columns(self) -> dict[str, None]:
        """The names of all columns, in the order first seen."""
        self._compact()
        return dict(self._columns)

    def lines(self) -> Ints:
        """The line number of each row."""
        self._compact()
        return np.concatenate([block.line for block in self._blocks]) if self._blocks else np.zeros(0, np.int64)

    def steps(self) -> Ints:
        """The step of each row; -1 where `odd_steps` has what is printed there."""
        self._compact()
        return np.concatenate([block.step for block in self._blocks]) if self._blocks else np.zeros(0, np.int64)

    def column(self, name: str) -> Cells:
        """One column, empty where a row lacks it."""
        self._compact()
        return Cells.joined([block.columns.get(name) or Cells.empty(block.line.size) for block in self._blocks])

    def take_out(self, name: str) -> Cells:
        """As `column`, for the last time: its memory is given back."""
        cells = self.column(name)
        for block in self._blocks:
            block.columns.pop(name, None)
        return cells

    def odd(self, name: str) -> dict[int, str]:
        """The texts of one column that are no numbers, by row."""
        self._compact()
        found, start = {}, 0
        for block in self._blocks:
            if name in block.columns:
                found.update({start + row: text for row, text in block.columns[name].odd.items()})
            start += block.line.size
        return found

    def mend(self, name: str, texts: Mapping[int, str]) -> None:
        """Read those rows' cells of one column anew, as `texts` has them."""
        start = 0
        for block in self._blocks:
            stop = start + block.line.size
            mine = {row - start: text for row, text in texts.items() if start <= row < stop}
            if mine:
                block.columns[name].mend(mine)
            start = stop
