"""Training logs to trajectories: `read_loss` for one file's bytes; TensorBoard folders are `loss_tensorboard`'s."""

from __future__ import annotations

from .reading import Reading, reading_of
from .registry import TENSORBOARD, builtin, choose
from .text import decode, is_tensorboard, nothing_fits, refuse_foreign


def read_loss(data: bytes, name: str, *, column: str = "loss", format: str | None = None,
              step_offset: int = 0) -> Reading:
    """Read a training log. The format is told by the content, never by `name`, which is for messages only.

    `column`: the series to judge. `format`: force a reader. `step_offset`: subtracted from every step (a log that
    prints step k+1 for step k has 1). Raises ReadError for a file that is no log or is broken before its last line,
    UserError for an unknown column or format.
    """
    if format == TENSORBOARD or (format is None and is_tensorboard(data)):
        from .loss_tensorboard import read_events

        return read_events({name: data}, column=column, step_offset=step_offset)
    text, notes = decode(data, name)
    refuse_foreign(text, name)
    reader = choose(text, format)
    if reader is None:
        raise nothing_fits(text, name, ", ".join(sorted([*builtin(), TENSORBOARD])))
    return reading_of(reader.rows(text, name), name, reader.name, column, step_offset, notes)
