"""What a reader did to a log, in figures: what it was, which rows count, which do not and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_migparity.core.verdict import Note, Scalar

if TYPE_CHECKING:
    from pytest_migparity.core.evidence import Trajectory

SCHEMA = "migparity.readlog/1"
# the notes that say why rows were dropped or mended, and which of their parameters count them (none: it is one row)
DROPPED: Mapping[str, tuple[str, ...]] = {
    "read-torn-line": (), "read-open-end": (), "read-no-value": ("rows",), "read-no-step": ("rows",),
    "read-resumed": ("rows",), "read-stale-rows": ("rows",), "read-repeated": ("rows",),
    "read-other-rows": ("evals", "others"),
}
REPAIRED: Mapping[str, tuple[str, ...]] = {
    "read-thousands": ("rows",), "read-decimal-comma": ("rows",), "read-loose-json": ("rows",),
    "read-steps-rebuilt": ("rows",),
}
OTHER = "other"  # rows that no note counts


@dataclass(frozen=True, slots=True)
class Report:
    """One log as read.

    `kept` rows are in the table; `dropped` and `repaired` count the others and the mended ones by the code of the note
    that says why. `resolution`: for each column the finest and the coarsest unit in the last printed place. Logged is
    every `interval`-th step as a rule, and a printed loss is the mean over `window` steps. `joints`: the first steps
    after each resume. `merged` rows repeat a step with the same value (ranks that all print it). `series` is judged,
    `among` are those that could have been meant as well.
    """

    name: str
    format: str
    encoding: str
    kept: int
    dropped: Mapping[str, int]
    repaired: Mapping[str, int]
    first: int
    last: int
    interval: int
    window: int
    joints: tuple[int, ...]
    merged: int
    series: str
    among: tuple[str, ...]
    resolution: Mapping[str, tuple[float, float]]
    notes: tuple[Note, ...]

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON document: numbers, strings, lists and objects."""
        return {
            "schema": SCHEMA, "file": self.name, "format": self.format, "encoding": self.encoding,
            "rows": {"kept": self.kept, "dropped": dict(self.dropped), "repaired": dict(self.repaired),
                     "merged": self.merged},
            "steps": {"first": self.first, "last": self.last, "interval": self.interval, "window": self.window,
                      "joints": list(self.joints)},
            "series": self.series, "among": list(self.among),
            "resolution": {name: list(units) for name, units in self.resolution.items()},
            "notes": [{"code": item.code, **item.params} for item in self.notes],
        }


def counted(notes: Sequence[Note], codes: Mapping[str, tuple[str, ...]], total: int) -> dict[str, int]:
    """How many of `total` rows each of these notes accounts for; the rest is OTHER."""
    found: dict[str, int] = {}
    for item in notes:
        if item.code in codes:
            rows = sum(_whole(item.params[key]) for key in codes[item.code]) if codes[item.code] else 1
            if rows:
                found[item.code] = found.get(item.code, 0) + rows
    rest = total - sum(found.values())
    return {**found, OTHER: rest} if rest > 0 else found


def _whole(value: Scalar) -> int:
    return int(value) if isinstance(value, int) else 0


def resolution_of(table: Trajectory) -> dict[str, tuple[float, float]]:
    """The finest and the coarsest unit in the last printed place of each column that has printed digits."""
    found = {}
    for name, quantum in table.quantum.items():
        printed = quantum[np.isfinite(quantum) & (quantum > 0)]
        if printed.size:
            found[name] = (float(printed.min()), float(printed.max()))
    return found
