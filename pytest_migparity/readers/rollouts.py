"""Episodes of the closed loop, in whichever form a project's evaluation left them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import BinaryIO

from pytest_migparity.core.errors import UserError
from pytest_migparity.core.verdict import Note
from pytest_migparity.wire import rollouts as wire
from pytest_migparity.wire.rollouts import RolloutError, Rollouts

from .rollouts_counts import is_counts, read_counts
from .rollouts_json import read_document
from .rollouts_text import (
    RESULT,
    ROBOMIMIC,
    ROBOTWIN,
    VIDEO,
    XPOLICYLAB,
    read_libero,
    read_result,
    read_robomimic,
    read_robotwin,
    read_videos,
    read_xpolicylab,
)
from .text import refuse_bytes, refuse_foreign, unix_lines, without_ansi

MAX_BYTES = 1 << 28
Files = Mapping[str, Callable[[], BinaryIO]]


def read_rollouts(files: Files) -> tuple[Rollouts, tuple[Note, ...]]:
    """The episodes of one run's files, and what was done to read them; UserError names file and line.

    Several files are parts of one run (one for each worker or task) and are read in the order of their names.
    """
    parts = [_read(name, opened) for name, opened in sorted(files.items())]
    tables = [table for table, _ in parts]
    if len(tables) == 1:
        return parts[0]
    if any(table.from_counts for table in tables):
        raise UserError(f"{', '.join(sorted(files))}: several files, and not all of them list episodes; leave the one "
                        "that is meant")
    try:
        whole = wire.rollouts_of(episode for table in tables for episode in table.episodes)
    except RolloutError as error:
        raise UserError(f"{', '.join(sorted(files))}: {error}") from None
    unpaired = next((table.unpaired for table in tables if table.unpaired), whole.unpaired)
    return whole._replace(unpaired=unpaired), tuple(note for _, repairs in parts for note in repairs)


def _read(name: str, opened: Callable[[], BinaryIO]) -> tuple[Rollouts, tuple[Note, ...]]:
    with opened() as stream:
        raw = stream.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise UserError(f"{name}: larger than {MAX_BYTES >> 20} MiB, which no list of episodes is")
    refuse_bytes(raw[:4096], name)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{name}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    text = without_ansi(unix_lines(text))
    refuse_foreign(text, name)
    for fits, reader in _FORMATS:
        if fits(text):
            return reader(text, name), ()
    try:
        return wire.from_text(text), ()
    except RolloutError as error:
        raise UserError(f"{name}: {error}") from None


def _document(text: str) -> bool:
    """One JSON document over several lines, or one line with the keys of one."""
    start = text.lstrip()
    if not start.startswith("{"):
        return False
    first = start.split("\n", 1)[0].rstrip()
    return first == "{" or any(f'"{key}"' in first for key in ("per_task", "per_episode", "episodes",
                                                                          "num_attempts"))


def _videos(text: str) -> bool:
    return VIDEO.fullmatch(text.strip().split("\n", 1)[0].rsplit("/", 1)[-1]) is not None


def _libero(text: str) -> bool:
    return "Starting episode " in text and "Success: " in text


_FORMATS: tuple[tuple[Callable[[str], object], Callable[[str, str], Rollouts]], ...] = (
    (_document, read_document), (ROBOTWIN.search, read_robotwin), (XPOLICYLAB.search, read_xpolicylab),
    (_libero, read_libero), (RESULT.search, read_result), (ROBOMIMIC.search, read_robomimic), (_videos, read_videos),
    (is_counts, read_counts))
"""What tells a format, and its reader, in the order in which they are asked; episodes of ours come last."""
