"""Metrics lines of torchtitan."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_migparity.core.verdict import note

from .fields import records, values

if TYPE_CHECKING:
    from .lines import Lines
    from .rows import Rows

_RECORD = re.compile(r"(\bvalidate )?\bstep: {1,15}(\d{1,30}) {1,4}(?=loss: )", re.ASCII)
_FIELD = re.compile(r"\b([a-z_]{1,40}): {1,15}([-+.\w]{1,64}?)(?=GiB|%|\s|$)", re.ASCII)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))", re.ASCII)


class TorchtitanReader:
    """`[titan] 2026-01-02 10:00:00,000 - root - INFO - step:  1  loss:  8.04910  grad_norm:  1.2345  tps: 1,234`.

    The loss is that of the printed step, averaged over ranks. Lines of a validation are counted, not read.
    """

    name = "torchtitan"

    def sniff(self, head: str) -> float:
        """Is there a metrics line in it?"""
        return 1.0 if any(match.group(1) is None for match in _RECORD.finditer(head)) else 0.0

    def read(self, lines: Lines, rows: Rows) -> None:
        """One row per metrics line; commas between thousands (tps, tflops) are removed."""
        number, at, ends, validations = 0, 0, "", 0
        for number, text in lines:
            for match, rest in records(text, _RECORD):
                if match.group(1):
                    validations += 1
                    continue
                row = values(_THOUSANDS.sub("", rest), _FIELD, rows, number)
                rows.add(number, match.group(2), row)
                at, ends = number, next(reversed(row), "step")
        if lines.torn and at == number:
            rows.open_end = ends
        if validations:
            rows.dropped += validations
            rows.notes.append(note("read-other-rows", file=lines.name, evals=validations, others=0))
