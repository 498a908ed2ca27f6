"""Rows that repeat a step: resumed runs, several ranks, runs that were given up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pytest_migparity.core.verdict import Note, note

from .cells import ODD, Cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_migparity.core.evidence import Ints

STRAYS = 100
REPLACED = 1000
RESUMED_APART = 0.05
LOGGED_ONCE = 0.05  # a resumed log prints most steps once; below this share the whole log is there twice


@dataclass(frozen=True, slots=True)
class Kept:
    """`rows` to keep, in step order; what was done, in `notes`, to how many `dropped` rows.

    `joints` are the steps to which a resumed log goes back, `replaced` the losses of an earlier run that it took the
    place of, by step; `merged` counts rows that repeat a step and its value, as
    ranks do that all print.
    """

    rows: Ints
    notes: list[Note] = field(default_factory=list)
    dropped: int = 0
    joints: tuple[int, ...] = ()
    merged: int = 0
    replaced: Mapping[int, float] = field(default_factory=dict)


def last_of_each(step: Ints, cells: Cells, name: str) -> Kept:
    """The last row of each step in file order; `cells` are the judged column's.

    After a resume a log holds the later steps of the earlier run, then repeats them (casebook C98). Where the resumed
    run ended earlier than the first one, the rows beyond its end belong to a run that was given up: dropped too.
    Nothing says which value counts where a step comes twice in a row with two values (ranks), where the whole log is
    there twice (two runs, or ranks in blocks), or where one row goes back and the log does not go on from it:
    `read-repeat-differs`, on which no judge relies. Nor on a resume whose steps have other losses than before, by more
    than 5 %: it did not go on from that run (`read-resume-differs`).
    """
    if step.size < 2 or bool(np.all(np.diff(step) > 0)):
        return Kept(np.arange(step.size))
    back = np.flatnonzero(np.diff(step) < 0) + 1
    order = np.argsort(step, kind="stable")
    last = np.append(np.diff(step[order]) != 0, True)
    keep = order[last]
    repeated = step.size - keep.size
    if not repeated:
        return Kept(keep, [note("read-unsorted", file=name)])
    notes: list[Note] = []
    gone = 0
    if back.size and np.isin(step[back[-1]:], step[:back[-1]]).any():
        stale = (keep < back[-1]) & (step[keep] > step[back[-1]:].max())
        gone = int(stale.sum())
        keep = keep[~stale]
    same = np.flatnonzero(np.diff(step) == 0)
    differ = same[_differ(cells, same, same + 1)]
    once = np.count_nonzero(np.unique(step, return_counts=True)[1] == 1)
    if not differ.size and once <= LOGGED_ONCE * np.count_nonzero(last):
        pairs = np.flatnonzero(~last[:-1])
        differ = order[pairs][_differ(cells, order[pairs], order[pairs + 1])]
    if not differ.size:
        differ = _strays(step, cells, back)
    apart = _apart(step, cells, order, last) if back.size and not differ.size else 0.0
    if apart > RESUMED_APART:
        notes.append(note("read-resume-differs", file=name, apart=apart))
    if back.size:
        notes.append(note("read-resumed", file=name, restarts=int(back.size), step=int(step[back[0]]),
                          rows=repeated - int(same.size), apart=apart))
    if gone:
        notes.append(note("read-stale-rows", file=name, rows=gone, step=int(step[back[-1]:].max())))
    if same.size:
        notes.append(note("read-repeated", file=name, rows=int(same.size), step=int(step[same[0]])))
    if differ.size:
        notes.append(note("read-repeat-differs", file=name, rows=int(differ.size), step=int(step[differ[0]])))
    if _every_rank(step) and not differ.size:
        return Kept(keep, notes, repeated + gone, merged=repeated)
    joints = tuple(np.intersect1d(step[back], step[keep]).tolist())
    replaced = order[np.flatnonzero(~last[:-1])] if back.size else np.zeros(0, dtype=np.int64)
    lost = replaced[~np.isfinite(cells.value[replaced])]
    if lost.size:
        notes.append(note("read-replaced-non-finite", file=name, rows=int(lost.size), step=int(step[lost[0]])))
    before = dict(zip(step[replaced][:REPLACED].tolist(), cells.value[replaced][:REPLACED].tolist(), strict=True))
    return Kept(keep, notes, repeated + gone, joints, int(np.setdiff1d(same, differ).size), before)


def _strays(step: Ints, cells: Cells, back: Ints) -> Ints:
    """Rows that go back alone: the next stands beyond where the log was, and an earlier row of their step differs."""
    inner = back[back < step.size - 1]
    alone = inner[step[inner + 1] > step[inner - 1]]
    found = []
    for row in alone[:STRAYS].tolist():
        before = np.flatnonzero(step[:row] == step[row])
        if before.size and _differ(cells, before[-1:], np.array([row]))[0]:
            found.append(row)
    return np.array(found, dtype=np.int64)


def _apart(step: Ints, cells: Cells, order: Ints, last: NDArray[np.bool_]) -> float:
    """The median of |ln| of what a step printed before a resume and after it; 0 where nothing finite repeats."""
    pairs = np.flatnonzero(~last[:-1])
    a, b = cells.value[order[pairs]], cells.value[order[pairs + 1]]
    good = np.isfinite(a) & np.isfinite(b) & (a > 0) & (b > 0)
    return float(np.median(np.abs(np.log(b[good]) - np.log(a[good])))) if good.any() else 0.0


def _every_rank(step: Ints) -> bool:
    """Does every step come equally often? Ranks that all print do so, in whatever order; a resumed run does not."""
    counts = np.unique(step, return_counts=True)[1]
    return bool(counts.min() == counts.max())


def _differ(cells: Cells, one: Ints, other: Ints) -> NDArray[np.bool_]:
    """Do rows print different values? 0.5 and 0.50 do not, nor do nan and NaN."""
    a, b = cells.value[one], cells.value[other]
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    differ: NDArray[np.bool_] = ~same | (cells.kind[one] == ODD) | (cells.kind[other] == ODD)
    return differ


def usual_interval(step: Ints) -> int:
    """The commonest distance between logged steps, the smaller of equally common ones; 1 for a single row."""
    if step.size < 2:
        return 1
    distances, counts = np.unique(np.diff(step), return_counts=True)
    return int(distances[np.argmax(counts)])
