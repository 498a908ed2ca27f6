"""From printed rows to a Trajectory: numbers, units in the last place, repeated steps. Shared by all log readers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pytest_migparity.core.errors import UserError, did_you_mean
from pytest_migparity.core.evidence import Trajectory
from pytest_migparity.core.verdict import Note, note

from .errors import ReadError, shown

if TYPE_CHECKING:
    from pytest_migparity.core.evidence import Floats, Ints

NUMBER = re.compile(r"[+-]?(?:(\d{1,400})(?:\.(\d{0,400}))?|\.(\d{1,400}))(?:[eE]([+-]?\d{1,4}))?", re.ASCII)
NON_FINITE = {"nan": "nan", "inf": "inf", "infinity": "inf", "+inf": "inf", "+infinity": "inf", "-inf": "-inf",
              "-infinity": "-inf", "-nan": "nan", "nan(ind)": "nan", "-nan(ind)": "nan", "null": "", "none": "", "": ""}
STEP = re.compile(r"(\d{1,15})(?:\.0{0,6})?", re.ASCII)
LARGEST_STEP = 10**15  # what STEP reads lies below; float64 still tells such steps apart
FINEST_SHARE = 0.9
OTHER_COLUMNS = 64  # beside the judged one: enough for every log seen, and a bound for a hostile one
FULL_DECIMALS = 8  # floats printed in full have about as many or more
LOGGED_ONCE = 0.05  # a resumed log prints most steps once; below this share the whole log is there twice


@dataclass(slots=True)
class Rows:
    """What a reader found, as printed, in file order: each row's step, line number (from 1) and cells by column.

    `open_end` names the column ("step" for the step) whose last cell touches the end of a file without a final newline,
    so that it may have been cut. `dropped` and `repaired` count rows the reader itself gave up or mended. `twice` names
    the columns that one row printed again with another value, with the first line where that happened.
    """

    step: list[str] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    cells: list[Mapping[str, str]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    dropped: int = 0
    repaired: int = 0
    open_end: str = ""
    twice: dict[str, int] = field(default_factory=dict)

    def add(self, line: int, step: str, cells: Mapping[str, str]) -> None:
        """Append one row."""
        self.step.append(step)
        self.line.append(line)
        self.cells.append(cells)

    def columns(self) -> dict[str, None]:
        """The names of all columns, in the order first seen."""
        return dict.fromkeys(name for cells in self.cells for name in cells)


def build(rows: Rows, name: str, column: str, step_offset: int) -> tuple[Trajectory, list[Note], int, int]:
    """(trajectory, notes, rows repaired, rows dropped) of what a reader found.

    `column` becomes the judged `loss`. Rows without a value in it are dropped and reported, NaN and Inf are kept. Of
    repeated steps the last in file order is kept. In the other columns a cell that is empty, or no number, has the
    quantum NaN: nothing was logged there, which is not a logged NaN. Raises ReadError for a value that is no number,
    UserError for a column that is not there and a step_offset that leads out of the steps.
    """
    if abs(step_offset) > LARGEST_STEP:
        raise UserError(f"{name}: step_offset = {step_offset} is no distance between steps; "
                        "give the number to subtract, 0 or 1 as a rule")
    if not rows.step:
        raise ReadError(name, found="no row of the expected form", expected="at least one step with its loss",
                        remedy="did the run reach its first step, and is it the log of this format?")
    known = rows.columns()
    judged = _judged(known, name, column)
    notes, dropped = list(rows.notes), rows.dropped
    if judged in rows.twice:
        notes.append(note("read-value-twice", file=name, column=judged, line=rows.twice[judged]))
    cells, line = [row.get(judged, "") for row in rows.cells], rows.line
    if rows.open_end == "step" or (rows.open_end == judged and _maybe_cut(cells)):
        notes.append(note("read-open-end", file=name, line=line[-1]))
        dropped += 1
        cells, line = cells[:-1], line[:-1]
    kept = [i for i, cell in enumerate(cells) if NON_FINITE.get(cell.strip().lower(), cell)]
    if len(kept) < len(cells):
        gone = len(cells) - len(kept)
        first = next(i for i in range(len(cells)) if i >= len(kept) or kept[i] != i)
        notes.append(note("read-no-value", file=name, rows=gone, column=judged, line=line[first]))
        dropped += gone
    if not kept:
        raise ReadError(name, found=f"no row with a value in {judged!r}", expected="at least one",
                        remedy="did the run reach its first step?")
    step = np.array([_step(rows.step[i], name, line[i]) for i in kept], dtype=np.int64) - step_offset
    if step.min() < 0:
        raise UserError(f"{name}: step_offset = {step_offset} makes the first step {int(step.min())}; "
                        "steps count from 0 or 1: give the number to subtract")
    chosen, repeat_notes, gone = _last_of_each(step, [cells[i] for i in kept], name)
    index = [kept[i] for i in chosen.tolist()]
    values, places = _numbers([cells[i].strip() for i in index], name, judged, [line[i] for i in index])
    columns, quantum = {"loss": values}, {"loss": places}
    for key in [key for key in known if key not in ("loss", judged)][:OTHER_COLUMNS]:
        texts = [rows.cells[i].get(key, "").strip() for i in index]
        columns[key], quantum[key] = _numbers(texts, name, key)
        quantum[key][[not _is_printed(text) for text in texts]] = np.nan
    step = step[chosen]
    table = Trajectory(step, columns, quantum, usual_interval(step))
    return table, [*notes, *repeat_notes], rows.repaired, dropped + gone


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


LOSS_NAMES = ("lm loss", "train/loss", "train_loss", "training/loss", "training loss", "train loss",
              "loss_metrics/global_avg_loss", "loss/train")


def _step(text: str, name: str, line: int) -> int:
    """A printed step number: `12`, `12.0`, `12/100`."""
    number = text.split("/", 1)[0].strip().replace(",", "")
    match = STEP.fullmatch(number)
    if match is None and number.lstrip("-").isdecimal():
        raise ReadError(name, line=line, found=f"step {shown(text)}", expected=f"a step from 0 to below {LARGEST_STEP}",
                        remedy="is it the column of the steps, and is the line whole?")
    if match is None:
        raise ReadError(name, line=line, found=f"step {shown(text)}", expected="a whole number",
                        remedy="an abbreviated step (1K) cannot be recovered: log the number itself")
    return int(match.group(1))


def _is_printed(text: str) -> bool:
    """Is there a value in this cell, a NaN or Inf included?"""
    return NUMBER.fullmatch(text) is not None or bool(NON_FINITE.get(text.lower()))


def _maybe_cut(cells: Sequence[str]) -> bool:
    """May the last value, at the very end of a file without a final newline, lack digits?

    Not where it has as many decimals as all others have (a fixed format), or nearly as many as floats printed in full.
    """
    decimals = [_decimals(cell) for cell in cells]
    others = sorted(decimals[:-1])
    if not others or decimals[-1] < 0:
        return True
    middle = others[len(others) // 2]
    if middle >= FULL_DECIMALS:
        return decimals[-1] < middle - 3
    return decimals[-1] != middle or others[0] != others[-1]


def _decimals(cell: str) -> int:
    match = NUMBER.fullmatch(cell.strip())
    return -1 if match is None or match.group(4) else len(match.group(2) or match.group(3) or "")


def _numbers(texts: list[str], name: str, key: str, lines: list[int] | None = None
             ) -> tuple[Floats, Floats]:
    """(values, units in the last printed place) of one column; NaN for empty cells.

    Fixed notation: 10^-D, D the decimals that a tenth of the column reaches or the row itself, whichever is more:
    printed floats drop trailing zeros (0.116 for 0.1160), and one row with more digits must not speak for the others.
    Exponent notation alike, with the decimals of the mantissa, shifted by the exponent. `lines` given: a cell that is
    no number is a ReadError; else it becomes NaN.
    """
    values = np.full(len(texts), np.nan)
    decimals = np.zeros(len(texts), dtype=np.int64)
    exponent = np.zeros(len(texts), dtype=np.int64)
    notation = np.zeros(len(texts), dtype=np.int64)  # 0 no digits, 1 fixed, 2 exponent
    for i, text in enumerate(texts):
        match = NUMBER.fullmatch(text)
        if match is not None:
            values[i] = float(text)
            decimals[i] = len(match.group(2) or match.group(3) or "")
            notation[i], exponent[i] = (2, int(match.group(4))) if match.group(4) else (1, 0)
        elif text.lower() in NON_FINITE:
            values[i] = float(NON_FINITE[text.lower()] or "nan")
        elif lines is not None:
            raise ReadError(name, line=lines[i], found=f"{key} {shown(text)}", expected="a number, NaN or Inf",
                            remedy="correct or remove the line, or name another column")
    quantum = np.zeros(len(texts))
    for kind in (1, 2):
        rows = notation == kind
        if rows.any():
            usual = np.quantile(decimals[rows], FINEST_SHARE, method="lower")
            places = np.maximum(decimals[rows], usual) - exponent[rows]
            quantum[rows] = 10.0 ** -np.clip(places, -300, 300).astype(np.float64)
    return values, quantum


def _last_of_each(step: Ints, cells: list[str], name: str) -> tuple[Ints, list[Note], int]:
    """(rows to keep, in step order; notes; rows dropped): the last row of each step in file order.

    After a resume a log holds the later steps of the earlier run, then repeats them (casebook C98). Where the resumed
    run ended earlier than the first one, the rows beyond its end belong to a run that was given up: dropped too.
    Nothing says which value counts where a step comes twice in a row with two values (ranks), or where the whole log is
    there twice (two runs, or ranks in blocks): `read-repeat-differs`, on which no judge relies.
    """
    rows = np.arange(step.size)
    if step.size < 2 or bool(np.all(np.diff(step) > 0)):
        return rows, [], 0
    notes: list[Note] = []
    back = np.flatnonzero(np.diff(step) < 0) + 1
    order = np.argsort(step, kind="stable")
    last = np.append(np.diff(step[order]) != 0, True)
    keep = order[last]
    repeated = step.size - keep.size
    if not repeated:
        notes.append(note("read-unsorted", file=name))
        return keep, notes, 0
    gone = 0
    if back.size and np.isin(step[back[-1]:], step[:back[-1]]).any():
        stale = (keep < back[-1]) & (step[keep] > step[back[-1]:].max())
        gone = int(stale.sum())
        keep = keep[~stale]
    same = np.flatnonzero(np.diff(step) == 0)
    differ = [int(i) for i in same if _differ(cells[i], cells[i + 1])]
    if not differ and np.count_nonzero(np.unique(step, return_counts=True)[1] == 1) <= LOGGED_ONCE * order[last].size:
        pairs = zip(order[:-1].tolist(), order[1:].tolist(), strict=True)
        differ = [i for i, j in pairs if step[i] == step[j] and _differ(cells[i], cells[j])]
    if back.size:
        notes.append(note("read-resumed", file=name, restarts=int(back.size), step=int(step[back[0]]),
                          rows=repeated - int(same.size)))
    if gone:
        notes.append(note("read-stale-rows", file=name, rows=gone, step=int(step[back[-1]:].max())))
    if same.size:
        notes.append(note("read-repeated", file=name, rows=int(same.size), step=int(step[same[0]])))
    if differ:
        notes.append(note("read-repeat-differs", file=name, rows=len(differ), step=int(step[differ[0]])))
    return keep, notes, repeated + gone


def _differ(one: str, other: str) -> bool:
    """Do two cells print different values? 0.5 and 0.50 do not."""
    if one.strip() == other.strip():
        return False
    numbers = [float(cell) if NUMBER.fullmatch(cell.strip()) else None for cell in (one, other)]
    return None in numbers or numbers[0] != numbers[1]


def usual_interval(step: Ints) -> int:
    """The commonest distance between logged steps, the smaller of equally common ones; 1 for a single row."""
    if step.size < 2:
        return 1
    distances, counts = np.unique(np.diff(step), return_counts=True)
    return int(distances[np.argmax(counts)])
