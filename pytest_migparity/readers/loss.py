"""Training logs to trajectories: `read_loss` for one file; TensorBoard folders are `loss_tensorboard`'s."""

from __future__ import annotations

import io
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import BinaryIO

from .lines import Lines
from .reading import Reading, reading_of
from .registry import TENSORBOARD, builtin, choose
from .rows import Rows
from .text import is_tensorboard, nothing_fits, refuse_foreign

_START = 64


def read_loss(source: bytes | Path | BinaryIO, name: str, *, column: str = "loss", format: str | None = None,
              step_offset: int = 0) -> Reading:
    """Read a training log. The format is told by the content, never by `name`, which is for messages only.

    `source`: the file, its bytes, or a seekable binary stream, which is left open. `column`: the series to judge.
    `format`: force a reader. `step_offset`: subtracted from every step (a log that prints step k+1 for step k has 1).
    Raises ReadError for a file that is no log or is broken before its last line, UserError for an unknown column or
    format.
    """
    with ExitStack() as opened:
        stream = io.BytesIO(source) if isinstance(source, bytes) else source
        if isinstance(stream, Path):
            stream = opened.enter_context(stream.open("rb"))
        start = stream.read(_START)
        stream.seek(-len(start), io.SEEK_CUR)
        if format == TENSORBOARD or (format is None and is_tensorboard(start)):
            from .loss_tensorboard import read_events

            return read_events({name: lambda: nullcontext(stream)}, column=column, step_offset=step_offset)
        lines = Lines(stream, name)
        refuse_foreign(lines.head, name)
        reader = choose(lines.head, format)
        if reader is None:
            raise nothing_fits(lines.head, name, ", ".join(sorted([*builtin(), TENSORBOARD])))
        rows = Rows(name)
        reader.read(lines, rows)
        for _ in lines.blocks():  # a reader that stopped early: what is wrong further on must come out
            pass
        return reading_of(rows, reader.name, lines.encoding, column=column, step_offset=step_offset,
                          notes=lines.notes())
