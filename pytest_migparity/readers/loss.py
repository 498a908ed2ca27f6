"""Training logs to trajectories: `read_loss` for one file; TensorBoard folders are `loss_tensorboard`'s."""

from __future__ import annotations

import io
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pytest_migparity.core.errors import UserError
from pytest_migparity.core.verdict import Note, note

from .lines import Lines
from .reading import Reading, reading_of
from .registry import TENSORBOARD, builtin, choose
from .rows import Rows
from .text import is_tensorboard, nothing_fits, refuse_foreign

_START = 64
SURE = 0.5  # how surely a head is of a format
ROWS = 3
TABLES = {"csv", "wandb"}  # one is the other without its header
GUESSED = ("read-steps-are-positions", "read-steps-from-bar", "read-steps-from-engine", "read-steps-from-logging")
SAME = 1e-3  # one loss printed in two ways


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
        head = lines.head
        refuse_foreign(head, name)
        reader = choose(head, format)
        if reader is None:
            raise nothing_fits(head, name, ", ".join(sorted([*builtin(), TENSORBOARD])))
        rows = Rows(name)
        reader.read(lines, rows)
        for _ in lines.blocks():  # a reader that stopped early: what is wrong further on must come out
            pass
        reading = reading_of(rows, reader.name, lines.encoding, column=column, step_offset=step_offset,
                             notes=lines.notes())
        other = _also(head, name, reading) if format is None else None
        return reading if other is None else reading.doubting(other)


def _also(head: str, name: str, reading: Reading) -> Note | None:
    """Does the beginning of the file hold rows of another of our formats, with other losses?

    Some programs print one loss in two ways; a log that was pasted into another one differs.
    """
    for other in builtin().values():
        if other.name == reading.format or {other.name, reading.format} == TABLES:
            continue
        theirs = "".join(f"{line}\n" for line in head.split("\n")[:-1] if other.sniff(line) >= SURE)
        rows = Rows(name)
        try:
            other.read(Lines(io.BytesIO(theirs.encode()), name), rows)
            found = reading_of(rows, other.name, "UTF-8", column="loss", step_offset=0).table
        except UserError:
            continue
        if any(item.code in GUESSED for item in rows.notes):
            continue
        _, i, j = np.intersect1d(found.step, reading.table.step, return_indices=True)
        if found.step.size >= ROWS and not (i.size and np.allclose(found.loss[i], reading.table.loss[j], rtol=SAME,
                                                                        equal_nan=True)):
            return note("read-two-formats", file=name, format=reading.format, other=other.name, rows=found.step.size)
    return None
