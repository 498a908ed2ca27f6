"""The steps of Hugging Face's printed dicts, from the progress bar beside them or from logging_steps."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from itertools import pairwise

_BAR = re.compile(r"(?<![\d/])(\d{1,12})/(\d{1,12}) \[\d", re.ASCII)
_LOGGING = re.compile(r"\blogging_steps['\"]?\s{0,2}[:= ]\s{0,2}(\d{1,9})(?![\d.])", re.ASCII)
_FIRST = re.compile(r"\blogging_first_step['\"]?\s{0,2}[:= ]\s{0,2}[Tt]rue\b")
_TOTAL = re.compile(r"\bTotal optimization steps = ([\d,]{1,15})", re.ASCII)
_RESUMED = re.compile(r"\bfrom global step [1-9]"
                      r"|\bresume_from_checkpoint['\"]?\s{0,2}[:=]\s{0,2}(?!None|null|[Ff]alse|\s)", re.ASCII)
BARS = 16  # bars of different lengths that are followed: that of the training, those of evaluations
UNKNOWN = -1


@dataclass(slots=True)
class _Bar:
    """One progress bar: where it was seen last before each record, and where first after it."""

    before: array[int] = field(default_factory=lambda: array("q"))
    after: array[int] = field(default_factory=lambda: array("q"))
    last: int = UNKNOWN

    def see(self, count: int, records: int, glued: bool) -> None:
        """The bar stands at `count`, after so many records; `glued` to the next one, it says nothing of the last."""
        self.last = count
        if not glued and len(self.after) < records:
            self.after.extend([UNKNOWN] * (records - 1 - len(self.after)))
            self.after.append(count)

    def record(self, records: int) -> None:
        """One more record, after so many."""
        self.before.extend([UNKNOWN] * (records - len(self.before)))
        self.before.append(self.last)
        self.last = UNKNOWN


class HfSteps:
    """What a log tells of its records' steps, text by text in file order."""

    def __init__(self) -> None:
        self.records = 0
        self._bars: dict[int, _Bar] = {}
        self._logging: set[int] = set()
        self._totals: set[int] = set()
        self._first = self._resumed = False

    def see(self, text: str, *, glued: bool = False) -> None:
        """Text between records; `glued`: it stands before a record on the same line."""
        for match in _BAR.finditer(text):
            total = int(match.group(2))
            bar = self._bars.get(total)
            if bar is None and len(self._bars) < BARS:
                bar = self._bars[total] = _Bar()
            if bar is not None:
                bar.see(int(match.group(1)), self.records, glued)
        if "logging_" in text and len(self._logging) < 2:
            self._logging.update(map(int, _LOGGING.findall(text)))
            self._first = self._first or _FIRST.search(text) is not None
        if "global step" in text or "resume_from" in text:
            self._resumed = self._resumed or _RESUMED.search(text) is not None
        if "Total opt" in text and len(self._totals) < 2:
            self._totals.update(int(total.replace(",", "") or 0) for total in _TOTAL.findall(text))

    def record(self) -> None:
        """One record."""
        for bar in self._bars.values():
            bar.record(self.records)
        self.records += 1

    def from_bar(self) -> list[int] | None:
        """The steps by the progress bar; None where no bar, or more than one, counts in even logging steps.

        A bar that is drawn too seldom lags behind the record below it; after a record it is always drawn anew. Where
        both readings are even, the one that begins with the first logging step is right.
        """
        found: list[list[int]] = []
        for bar in self._bars.values():
            for series in (bar.before, bar.after):
                steps = _even(series.tolist(), self.records)
                if steps is not None and steps not in found:
                    found.append(steps)
        if len(found) > 1:
            found = [steps for steps in found if steps[0] in (1, min(_gaps(steps), default=0))]
        return found[0] if len(found) == 1 else None

    def from_logging(self) -> list[int] | None:
        """The steps by the logging_steps that the log holds; None where they are contradicted or not the only ones."""
        if len(self._logging) != 1 or self._resumed:
            return None
        every = next(iter(self._logging))
        extra = int(self._first and every > 1)
        steps = [1] * extra + [every * i for i in range(1, self.records + 1 - extra)]
        beyond = any(steps[-1] > total for total in self._totals) or not every
        return None if beyond else steps


def _even(counts: list[int], records: int) -> list[int] | None:
    """The counts as steps, where they are every L-th step (the first may be step 1); a lost last one is added.

    A count may go back, to another multiple of L: the run was resumed.
    """
    grid = [0, *counts[1:]] if counts[:1] == [1] else counts  # step 1 is logged on request, out of the row
    gaps = _gaps(grid)
    if not gaps or UNKNOWN in counts:
        return None
    every = max(set(gaps), key=gaps.count)
    if len(counts) == records - 1:
        counts, grid = [*counts, counts[-1] + every], [*grid, grid[-1] + every]
    even = all(count % every == 0 for count in grid) and min(counts) > 0
    joined = all(after - before in (0, every) or after < before for before, after in pairwise(grid))
    return counts if len(counts) == records and even and joined else None


def _gaps(counts: list[int]) -> list[int]:
    """The distances between counts, where they go on."""
    return [after - before for before, after in pairwise(counts) if after > before]
