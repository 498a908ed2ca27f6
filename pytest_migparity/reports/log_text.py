"""What a reader made of one training log, on one screen."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_migparity.core.evidence import Trajectory
from pytest_migparity.core.verdict import Note

from .messages import say, tell

MOST_COLUMNS = 6
ENDS = 3  # rows shown from each end
_WIDTH = 120


def log_text(document: Mapping[str, Any], table: Trajectory, notes: Sequence[Note], lang: str) -> str:
    """The report that `document` is (see `readers.report`), its notes in words, the first and the last rows."""
    rows, steps = document["rows"], document["steps"]
    lines = [" · ".join((document["file"], document["format"], document["encoding"])),
             say("readlog-rows", lang, kept=rows["kept"], dropped=sum(rows["dropped"].values()),
                 repaired=sum(rows["repaired"].values()), merged=rows["merged"]),
             say("readlog-steps", lang, first=steps["first"], last=steps["last"], interval=steps["interval"])]
    if steps["window"] > 1:
        lines.append(say("readlog-window", lang, window=steps["window"]))
    if steps["joints"]:
        lines.append(say("readlog-joints", lang, joints=_few(steps["joints"])))
    lines.append(say("readlog-series", lang, series=document["series"]))
    if document["among"]:
        lines.append(say("readlog-among", lang, among=_few(document["among"])))
    lines.append(say("readlog-resolution", lang, resolution=_few(
        [f"{name} {_units(*units)}" for name, units in document["resolution"].items()]) or "-"))
    return "\n  ".join([*lines, *(tell(item, lang) for item in notes)]) + "\n\n" + _ends(table)


def _few(items: Sequence[object]) -> str:
    shown = ", ".join(map(str, items[:MOST_COLUMNS]))
    return shown if len(items) <= MOST_COLUMNS else f"{shown}, ... ({len(items)})"


def _units(finest: float, coarsest: float) -> str:
    return f"{finest:.0e}" if finest == coarsest else f"{finest:.0e}..{coarsest:.0e}"


def _ends(table: Trajectory) -> str:
    """The first and the last rows, laid out by rich."""
    from rich.console import Console
    from rich.table import Table

    names = list(table.columns)[:MOST_COLUMNS]
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("step", *names):
        grid.add_column(name, justify="right", overflow="fold")
    size = table.step.size
    for row in range(size):
        if row < ENDS or row >= size - ENDS:
            grid.add_row(str(table.step[row]), *(_cell(table, name, row) for name in names))
        elif row == ENDS:
            grid.add_row("...")
    out = io.StringIO()
    Console(file=out, width=_WIDTH, color_system=None, legacy_windows=False, markup=False).print(grid)
    return "\n".join(f"  {line.rstrip()}" for line in out.getvalue().splitlines())


def _cell(table: Trajectory, name: str, row: int) -> str:
    """A value as finely as it was printed, "-" where nothing was."""
    value, quantum = float(table.columns[name][row]), float(table.quantum[name][row])
    if math.isnan(quantum):
        return "-"
    return f"{value:.6g}" if not math.isfinite(value) or quantum < 1e-6 * abs(value) else f"{value:.10g}"
