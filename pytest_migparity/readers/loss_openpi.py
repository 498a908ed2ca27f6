"""Training lines of openpi, by its JAX and by its PyTorch script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .fields import records, values
from .steps import Spacing

if TYPE_CHECKING:
    from .lines import Lines
    from .rows import Rows

_RECORD = re.compile(r"\bStep (\d{1,30}): (?=(?:[A-Za-z_][\w/]{0,60}=[-+.\w]{1,64}, ){0,64}loss=)"
                     r"|\bstep=(\d{1,30}) (?=loss=)", re.ASCII)
_FIELD = re.compile(r"(?<![\w/])([A-Za-z_][\w/]{0,60})=([-+.\w]{1,64}?)(?=s?(?:[,\s\]]|$))", re.ASCII)


class OpenpiReader:
    """`Step 100: grad_norm=0.1234, loss=0.0567, param_norm=1801.2` or `step=100 loss=0.0567 lr=1.00e-05 time=3.1s`.

    The loss is the mean since the last line (of one step in the first), with four decimals. A progress bar may come
    before it on the same line; its count is not used.
    """

    name = "openpi"

    def sniff(self, head: str) -> float:
        """Is there a line of either script in it?"""
        return 1.0 if _RECORD.search(head) else 0.0

    def read(self, lines: Lines, rows: Rows) -> None:
        """One row per training line."""
        spacing, means = Spacing(), True
        number, at, ends = 0, 0, ""
        for number, text in lines:
            for match, rest in records(text, _RECORD):
                row = values(rest, _FIELD, rows, number)
                step = match.group(1) or match.group(2)
                rows.add(number, step, row)
                spacing.add(int(step[:16]))
                means = means and (match.group(1) is not None or "time" in row)
                at, ends = number, next(reversed(row), "step")
        if lines.torn and at == number:
            rows.open_end = ends
        if means:  # a script of one's own that prints `step=1 loss=0.5` prints as a rule that step's loss
            rows.window = spacing.usual
