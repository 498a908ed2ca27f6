"""One log as read, whatever format it was in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_migparity.core.evidence import Trajectory
from pytest_migparity.core.verdict import Note

from .report import DROPPED, REPAIRED, Report, counted, resolution_of
from .rows import Rows
from .table import build


@dataclass(frozen=True, slots=True)
class Reading:
    """One log as read: the table, the format it was in, and what the reader did to it (rows mended, rows given up).

    `report` says the same in figures, with all that was found on the way.
    """

    table: Trajectory
    format: str
    report: Report
    repairs: tuple[Note, ...] = ()
    repaired: int = 0
    dropped: int = 0


    def doubting(self, doubt: Note) -> Reading:
        """The same reading with one more note."""
        return replace(self, repairs=(*self.repairs, doubt), report=replace(
            self.report, notes=(*self.report.notes, doubt)))


def reading_of(rows: Rows, format: str, encoding: str, *, column: str, step_offset: int,
               notes: Sequence[Note] = ()) -> Reading:
    """Rows as printed to a Reading; `notes` say what was done to the file before it had rows."""
    built = build(rows, rows.name, column, step_offset)
    table, said = built.table, (*notes, *built.notes)
    series = rows.series or built.judged
    report = Report(
        rows.name, format, encoding, table.step.size, counted(said, DROPPED, built.dropped),
        counted(said, REPAIRED, rows.repaired), int(table.step[0]), int(table.step[-1]), table.interval, table.window,
        table.joints, built.merged, series,
        tuple(key for key in rows.columns() if _is_loss(key) and key not in (built.judged, series)),
        resolution_of(table), said)
    return Reading(table, format, report, said, rows.repaired, built.dropped)


def _is_loss(key: str) -> bool:
    return "loss" in key.lower() and "scale" not in key.lower()
