"""One training log, a file or a TensorBoard folder, as a trajectory, and the report of how it was read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .core.errors import UserError
from .core.evidence import Recorded, Trajectory
from .core.verdict import Witness

if TYPE_CHECKING:
    from .gather import GatheredFile
    from .readers.reading import Reading


def read_trajectory(files: Sequence[GatheredFile], witness: Witness, column: str = "loss", format: str | None = None,
                    step_offset: int = 0) -> Recorded[Trajectory]:
    """One training log as read: one file, or one TensorBoard folder's event files. UserError where it is no log."""
    reading = read_log(files, column, format, step_offset)
    return Recorded(reading.table, witness, reading.repairs, reading.repaired, reading.dropped)


def read_log(files: Sequence[GatheredFile], column: str = "loss", format: str | None = None,
             step_offset: int = 0) -> Reading:
    """As `read_trajectory`, with the report of what the reader did."""
    if all("tfevents" in file.name for file in files):
        from .readers.loss_tensorboard import read_events

        return read_events({file.name: file.open for file in files}, column=column, step_offset=step_offset)
    if len(files) > 1:
        raise UserError(f"{', '.join(file.name for file in files)}: one training log is one file, or event files")
    from .readers.loss import read_loss

    with files[0].open() as stream:
        return read_loss(stream, files[0].name, column=column, format=format, step_offset=step_offset)
