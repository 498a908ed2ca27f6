"""One log as read, whatever format it was in."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_migparity.core.evidence import Trajectory
from pytest_migparity.core.verdict import Note

from .rows import Rows, build


@dataclass(frozen=True, slots=True)
class Reading:
    """One log as read: the table, the format it was in, and what the reader did to it (rows mended, rows given up)."""

    table: Trajectory
    format: str
    repairs: tuple[Note, ...] = ()
    repaired: int = 0
    dropped: int = 0


def reading_of(rows: Rows, name: str, format: str, column: str, step_offset: int, notes: list[Note]) -> Reading:
    """Rows as printed to a Reading."""
    table, more, repaired, dropped = build(rows, name, column, step_offset)
    return Reading(table, format, (*notes, *more), repaired, dropped)
