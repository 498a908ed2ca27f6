"""From printed rows to a Trajectory: the judged column, rows without a value, repeated steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_migparity.core.errors import UserError, did_you_mean
from pytest_migparity.core.evidence import Trajectory
from pytest_migparity.core.verdict import Note, note

from .cells import EMPTY, FIXED, ODD, STEP_DIGITS, Cells
from .errors import ReadError, shown
from .repeats import Kept, last_of_each, usual_interval
from .rows import Rows

if TYPE_CHECKING:
    from pytest_migparity.core.evidence import Floats, Ints

LOSS_NAMES = ("lm loss", "train/loss", "train_loss", "training/loss", "training loss", "train loss",
              "loss_metrics/global_avg_loss", "loss/train")
LARGEST_STEP = 10**STEP_DIGITS
OTHER_COLUMNS = 64  # beside the judged one: enough for every log seen, and a bound for a hostile one
FULL_DECIMALS = 8  # floats printed in full have about as many or more


@dataclass(frozen=True, slots=True)
class Built:
    """A trajectory, the column it judges, and all that was done to the rows on the way."""

    table: Trajectory
    judged: str
    notes: tuple[Note, ...]
    dropped: int
    merged: int


def build(rows: Rows, name: str, column: str, step_offset: int) -> Built:
    """The trajectory of what a reader found.

    `column` becomes the judged `loss`. Rows without a value in it are dropped and reported, NaN and Inf are kept. Of
    repeated steps the last in file order is kept. In the other columns a cell that is empty, or no number, has the
    quantum NaN: nothing was logged there, which is not a logged NaN. Raises ReadError for a value that is no number,
    UserError for a column that is not there and a step_offset that leads out of the steps.
    """
    if abs(step_offset) > LARGEST_STEP:
        raise UserError(f"{name}: step_offset = {step_offset} is no distance between steps; "
                        "give the number to subtract, 0 or 1 as a rule")
    if not len(rows):
        raise ReadError(name, found="no row of the expected form", expected="at least one step with its loss",
                        remedy="did the run reach its first step, and is it the log of this format?")
    known = rows.columns()
    judged = _judged(known, name, column)
    notes, dropped = list(rows.notes), rows.dropped
    if judged in rows.twice:
        notes.append(note("read-value-twice", file=name, column=judged, line=rows.twice[judged]))
    cells, line = rows.take_out(judged), rows.lines()
    kept = np.flatnonzero(cells.kind != EMPTY)
    if rows.open_end == "step" or (rows.open_end == judged and _maybe_cut(cells)):
        notes.append(note("read-open-end", file=name, line=int(line[-1])))
        dropped += 1
        kept, line = kept[kept < line.size - 1], line[:-1]
    if kept.size < line.size:
        gone = np.setdiff1d(np.arange(line.size), kept)
        notes.append(note("read-no-value", file=name, rows=gone.size, column=judged, line=int(line[gone[0]])))
        dropped += gone.size
    if not kept.size:
        raise ReadError(name, found=f"no row with a value in {judged!r}", expected="at least one",
                        remedy="did the run reach its first step?")
    step = _steps(rows, kept, line, name) - step_offset
    if step.min() < 0:
        raise UserError(f"{name}: step_offset = {step_offset} makes the first step {int(step.min())}; "
                        "steps count from 0 or 1: give the number to subtract")
    once = last_of_each(step, cells.take(kept), name)
    index = kept[once.rows]
    _refuse_odd(cells, index, line, name, judged)
    table = _trajectory(rows, cells, judged, index, step[once.rows], once)
    return Built(table, judged, (*notes, *once.notes), dropped + once.dropped, once.merged)


def _trajectory(rows: Rows, judged_cells: Cells, judged: str, index: Ints, step: Ints, once: Kept) -> Trajectory:
    """The columns of the rows `index`: `loss`, and the first others of the log that hold numbers; `rows` gives them up.
    """
    loss = judged_cells.take(index)
    columns: dict[str, Floats] = {"loss": loss.value}
    quantum: dict[str, Floats] = {"loss": loss.quantum()}
    for key in [key for key in rows.columns() if key not in ("loss", judged)][:OTHER_COLUMNS]:
        cells = rows.take_out(key).take(index)
        without = (cells.kind == EMPTY) | (cells.kind == ODD)
        if not without.all():
            columns[key], quantum[key] = cells.value, cells.quantum()
            quantum[key][without] = np.nan
    return Trajectory(step, columns, quantum, usual_interval(step), rows.window or 1, once.joints, once.replaced)


def _judged(columns: Mapping[str, None], name: str, column: str) -> str:
    """The column to judge: exactly, or by case and the usual spellings of a training loss."""
    if column in columns:
        return column
    folded: dict[str, list[str]] = {}
    for key in columns:
        folded.setdefault(key.strip().lower(), []).append(key)
    spellings = (column.lower(), *LOSS_NAMES) if column == "loss" else (column.lower(),)
    for spelling in spellings:
        found = folded.get(spelling, [])
        if len(found) > 1:
            raise UserError(f"{name}: the columns {', '.join(map(shown, found[:5]))} may each be {column[:60]!r}; "
                            'name one in the manifest: column = "..."')
        if found:
            return found[0]
    ends = [key for key in columns if key.endswith((f" - train/{column}", f" - {column}"))]
    if len(ends) == 1:  # a chart of one run, exported by wandb
        return ends[0]
    near = did_you_mean(column, [key[:60] for key in ends or columns][:50])
    raise UserError(f"{name}: there is no column {column[:60]!r}; {near}; "
                    'name it in the manifest: column = "..."')


def _steps(rows: Rows, kept: Ints, line: Ints, name: str) -> Ints:
    """The steps of those rows; ReadError for the first that is none."""
    steps = rows.steps()[kept]
    bad = np.flatnonzero(steps < 0)
    if bad.size:
        row = int(kept[bad[0]])
        text = rows.odd_steps.get(row, "...")
        number = text.split("/", 1)[0].strip().replace(",", "")
        if number.lstrip("-").isdecimal():
            raise ReadError(name, line=int(line[row]), found=f"step {shown(text)}",
                            expected=f"a step from 0 to below {LARGEST_STEP}",
                            remedy="is it the column of the steps, and is the line whole?")
        raise ReadError(name, line=int(line[row]), found=f"step {shown(text)}", expected="a whole number",
                        remedy="an abbreviated step (1K) cannot be recovered: log the number itself")
    return steps


def _refuse_odd(cells: Cells, index: Ints, line: Ints, name: str, judged: str) -> None:
    """ReadError for the first of those rows whose judged cell is no number."""
    bad = index[cells.kind[index] == ODD]
    if bad.size:
        row = int(bad[0])
        raise ReadError(name, line=int(line[row]), found=f"{judged} {shown(cells.odd.get(row, '...'))}",
                        expected="a number, NaN or Inf",
                        remedy="correct or remove the line, or name another column")


def _maybe_cut(cells: Cells) -> bool:
    """May the last value, at the very end of a file without a final newline, lack digits?

    Not where it has as many decimals as all others have (a fixed format), or nearly as many as floats printed in full.
    """
    decimals = np.where(cells.kind == FIXED, cells.decimals, -1)
    others = np.sort(decimals[:-1])
    if not others.size or decimals[-1] < 0:
        return True
    middle = others[others.size // 2]
    if middle >= FULL_DECIMALS:
        return bool(decimals[-1] < middle - 3)
    return bool(decimals[-1] != middle or others[0] != others[-1])
