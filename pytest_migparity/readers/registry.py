"""The training-log formats: ours, and what other packages plug in under the entry point group `migparity.readers`."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Protocol, runtime_checkable

from pytest_migparity.core.errors import UserError, did_you_mean

from .lines import Lines
from .rows import Rows

GROUP = "migparity.readers"
TENSORBOARD = "tensorboard"  # no text format: loss_tensorboard reads it


@runtime_checkable
class LogReader(Protocol):
    """One training-log format. What it is given is decoded, with unix line ends and without terminal codes."""

    name: str

    def sniff(self, head: str) -> float:
        """How surely `head` (the first 64 Ki characters) is of this format, 0..1. Must be fast on hostile text."""
        ...

    def read(self, lines: Lines, rows: Rows) -> None:
        """Every row that carries a step, as printed, in file order, into `rows.add(line, step, cells)`.

        ReadError, naming the line, where it cannot.
        """
        ...


def builtin() -> dict[str, LogReader]:
    """Our own formats by name."""
    from .loss_csv import CsvReader
    from .loss_deepspeed import DeepspeedReader
    from .loss_hf import HfStateReader
    from .loss_hf_stdout import HfStdoutReader
    from .loss_jsonl import JsonlReader
    from .loss_lerobot import LerobotReader
    from .loss_lines import LingbotReader, MegatronReader
    from .loss_mllog import MllogReader
    from .loss_openpi import OpenpiReader
    from .loss_torchtitan import TorchtitanReader
    from .loss_wandb import WandbReader

    readers: tuple[LogReader, ...] = (
        LingbotReader(), MegatronReader(), LerobotReader(), OpenpiReader(), TorchtitanReader(), MllogReader(),
        HfStateReader(), WandbReader(), JsonlReader(), HfStdoutReader(), CsvReader(), DeepspeedReader())
    return {reader.name: reader for reader in readers}


def plugged_in() -> dict[str, LogReader]:
    """Formats of other packages: each entry point is a class or function that returns a LogReader.

    UserError names the distribution whose entry point does not load or is no reader.
    """
    found: dict[str, LogReader] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        owner = point.dist.name if point.dist is not None else "an unknown package"
        try:
            reader = point.load()()
        except Exception as error:
            raise UserError(f"the log reader {point.name!r} of {owner} does not load: {error!r}; "
                            f"update or uninstall {owner}") from error
        if not isinstance(reader, LogReader):
            raise UserError(f"the log reader {point.name!r} of {owner} has no name, sniff and read: "
                            f"see pytest_migparity.readers.registry.LogReader; update or uninstall {owner}")
        found[point.name] = reader
    return found


def choose(head: str, wanted: str | None) -> LogReader | None:
    """The reader named `wanted`, else the one surest of `head`, the first 64 Ki characters; None where no format fits.

    Formats of other packages count where they are named, or where none of ours fits: installing one never changes how
    a log of ours is read. UserError for a name that nobody knows.
    """
    readers = builtin()
    if wanted is not None:
        if wanted not in readers:
            readers = {**plugged_in(), **readers}
        if wanted not in readers:
            raise UserError(f"there is no log format {wanted!r}; {did_you_mean(wanted, [*readers, TENSORBOARD])}")
        return readers[wanted]
    return _surest(readers, head) or _surest(plugged_in(), head)


def _surest(readers: dict[str, LogReader], head: str) -> LogReader | None:
    scores = {name: reader.sniff(head) for name, reader in readers.items()}
    best = max(scores, key=lambda name: scores[name], default=None)
    return readers[best] if best is not None and scores[best] > 0 else None
