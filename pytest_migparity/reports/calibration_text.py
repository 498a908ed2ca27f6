"""Measured floors on one screen: the table, what it says of a further pair, and what was not written."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from pytest_migparity.core.levels import LEVELS, CheckSpec, Direction
from pytest_migparity.core.limits import FLOOR_FACTOR
from pytest_migparity.core.verdict import Note

from .messages import say, tell
from .verdict_text import number

_WIDTH = 100


def calibration_text(document: Mapping[str, Any], lang: str) -> str:
    """The calibration that `document` is (`migparity.calibration/1`), in words."""
    runs, steps, confidence = document["runs"], document["steps"], document["confidence"]
    lines = [say("calibrate-title", lang, level=document["level"], runs=len(runs), pairs=document["pairs"],
                 steps=steps["count"], first=steps["first"], last=steps["last"])]
    lines += [f"  {run['name']} (sha256 {run['sha256'][:12]})" for run in runs]
    share = Fraction(confidence["at_least"]).limit_denominator(len(runs))
    said = [say("calibrate-confidence", lang, runs=len(runs), disjoint=confidence["disjoint_pairs"], share=str(share),
                factor=int(FLOOR_FACTOR))]
    said += _refused(document, lang)
    said += [tell(Note(item["code"], item["params"]), lang) for item in document["notes"]]
    return "\n".join([*lines, "", _table(document["floors"], lang), "", *(f"  {sentence}" for sentence in said)])


def _refused(document: Mapping[str, Any], lang: str) -> list[str]:
    refused = [row for row in document["floors"] if row["refused"]]
    if not refused:
        return []
    checks = LEVELS[document["level"]].checks
    beyond = [f"{row['name']} {number(row['value'])} > {number(_cap(checks[row['name']]))}"
              for row in refused if row["name"] in checks]
    figures = [row["name"] for row in refused if row["name"] not in checks]
    said = [say("calibrate-refused", lang, floors=", ".join(beyond))]
    return said + ([say("calibrate-refused-figures", lang, names=", ".join(figures))] if figures else [])


def _cap(spec: CheckSpec) -> float:
    """The largest floor a manifest accepts; of a correlation a distance from 1."""
    return spec.cap if spec.direction is Direction.MAX else 1.0 - spec.cap


def written_text(changed: Mapping[str, Sequence[str]], file: str, level: str, lang: str) -> str:
    """What a manifest now says that it did not say before."""
    lines = [say("calibrate-written", lang, file=file, table=table, level=level, checks=", ".join(checks))
             for table, checks in changed.items()]
    return "\n".join(lines) or say("calibrate-unchanged", lang, file=file)


def _table(floors: Sequence[Mapping[str, Any]], lang: str) -> str:
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=None, padding=(0, 2, 0, 2), pad_edge=True)
    for column in ("check", "floor", "runs", "pairs", "limit"):
        grid.add_column(say(f"calibrate-column-{column}", lang), justify="left" if column == "check" else "right")
    for row in floors:
        grid.add_row(row["name"], number(row["value"]), str(row["runs"]), str(row["pairs"]), _limit(row, lang))
    out = io.StringIO()
    Console(file=out, width=_WIDTH, color_system=None, legacy_windows=False, markup=False).print(grid)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


def _limit(row: Mapping[str, Any], lang: str) -> str:
    if row["limit"] is None:
        return say("calibrate-weighed", lang)
    shown = number(row["limit"])
    return shown if row["direction"] == Direction.MAX else say("calibrate-least", lang, limit=shown)
