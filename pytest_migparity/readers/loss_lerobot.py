"""LeRobot's training lines, whose steps are abbreviated from 1000 on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_migparity.core.verdict import note

from .errors import ReadError
from .fields import records, values
from .steps import Proportion, abbreviated

if TYPE_CHECKING:
    from .lines import Lines
    from .rows import Rows

_RECORD = re.compile(r"\bstep:(\d{1,30}[KMBTQ]?) {1,4}(?=smpl:)", re.ASCII)
_FIELD = re.compile(r"(?<![^\s])([A-Za-z_][\w/]{0,60}):([^\s:]{1,64})(?!\S)", re.ASCII)
_LOG_FREQ = re.compile(r"\blog_freq['\"]? {0,2}[:=] {0,2}(\d{1,9})\b", re.ASCII)
_EPOCH = re.compile(r"\d{1,9}\.(\d{1,9})", re.ASCII)
REMEDY = ("print the whole number (train_tracker.steps), or hand in the log from its first line with the printed "
          "configuration ('log_freq': ...)")


class LerobotReader:
    """`INFO 2025-05-28 12:12:40 ts/train.py:232 step:200 smpl:2K ep:3 epch:0.16 loss:7.490 grdn:154.502 lr:1.0e-05`.

    The loss is the mean since the last line, with three decimals. A step of 1000 and more is printed as `1K`; it is
    rebuilt where log_freq is known, no line is missing, and every abbreviation is that of the step rebuilt for it.
    """

    name = "lerobot"

    def sniff(self, head: str) -> float:
        """Is there a line of its metrics tracker in it?"""
        return 1.0 if _RECORD.search(head) else 0.0

    def read(self, lines: Lines, rows: Rows) -> None:
        """One row per line of the metrics tracker; ReadError at an abbreviated step that cannot be rebuilt."""
        steps = _Steps(lines.name)
        rebuilt, number, at, ends = 0, 0, 0, ""
        for number, text in lines:
            steps.declared.update(int(freq) for freq in _LOG_FREQ.findall(text) if len(steps.declared) < 2)
            for match, rest in records(text, _RECORD):
                row = values(rest, _FIELD, rows, number)
                for abbreviation in ("smpl", "ep"):
                    row.pop(abbreviation, None)
                printed = match.group(1)
                step = printed
                if printed[-1].isalpha():
                    step = str(steps.rebuilt(printed, row.get("epoch", ""), number))
                    rebuilt += 1
                elif len(printed) <= 15:
                    steps.printed(int(printed), row.get("epoch", ""))
                rows.add(number, step, row)
                at, ends = number, next(reversed(row), "step")
        if lines.torn and at == number:
            rows.open_end = ends
        rows.window = steps.log_freq
        if rebuilt:
            rows.repaired += rebuilt
            rows.notes.append(note("read-steps-rebuilt", file=lines.name, rows=rebuilt, every=steps.log_freq or 0))


class _Steps:
    """The steps of a log so far, and what they say of the next one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.declared: set[int] = set()
        self._gaps: set[int] = set()
        self._last = 0
        self._epochs = Proportion()

    @property
    def log_freq(self) -> int | None:
        """The distance between lines, where everything that tells it says the same."""
        told = self.declared | self._gaps
        return next(iter(told)) if len(told) == 1 and 0 not in told else None

    def printed(self, step: int, epoch: str) -> None:
        """A step as it is."""
        if step > self._last > 0 and len(self._gaps) < 2:
            self._gaps.add(step - self._last)
        if step < self._last:  # the run was started again
            self._epochs = Proportion()
        self._last = step
        self._fits(epoch)

    def rebuilt(self, printed: str, epoch: str, line: int) -> int:
        """The step behind an abbreviated one: the last and log_freq."""
        freq = self.log_freq
        if freq is None:
            told = sorted(self.declared | self._gaps)
            known = f"log_freq may be {' or '.join(map(str, told[:3]))}" if told else "nothing tells log_freq"
            raise ReadError(self.name, line=line, found=f"step {printed!r}, and {known}",
                            expected="whole step numbers, or steps below 1000 that tell log_freq before it",
                            remedy=REMEDY)
        step = self._last + freq
        if abbreviated(step) != printed:
            raise ReadError(self.name, line=line, found=f"step {printed!r}", remedy=REMEDY,
                            expected=f"{abbreviated(step)!r} (step {step}: the line before and log_freq {freq}); "
                                     "a line is missing, or the run was resumed")
        self._last = step
        if not self._fits(epoch):
            raise ReadError(self.name, line=line, found=f"step {printed!r} at epoch {epoch}", remedy=REMEDY,
                            expected=f"an epoch that is in proportion to step {step}; a line is missing before it")
        return step

    def _fits(self, epoch: str) -> bool:
        match = _EPOCH.fullmatch(epoch)
        return match is None or self._epochs.admits(self._last, float(epoch), len(match.group(1)))
