"""Digests and recordings as our own tools write them: what a side says of its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import BinaryIO

from pytest_migparity.core.errors import UserError
from pytest_migparity.wire import digest_text, record
from pytest_migparity.wire.digest import Digest, DigestError
from pytest_migparity.wire.names import part_of
from pytest_migparity.wire.packed import MAX_TEXT
from pytest_migparity.wire.record import RecordError, Recording

DIGESTED = ("weights", "loaded", "data")
CASTS = ("bfloat16", "float16", "float32")

Files = Mapping[str, Callable[[], BinaryIO]]


def read_digests(files: Files) -> dict[str, Digest]:
    """Digests by what they are of, which their file's name says; UserError names the file.

    `weights.bfloat16.digest` is of the weights rounded to bfloat16, the proof of a cast.
    """
    found: dict[str, Digest] = {}
    for name, opened in files.items():
        what = PurePosixPath(name).name.removesuffix(".digest")
        if what not in (*DIGESTED, *(f"weights.{cast}" for cast in CASTS)):
            raise UserError(f"{name}: a digest is called {' or '.join(f'{each}.digest' for each in DIGESTED)}, or "
                            "weights.DTYPE.digest for weights rounded to another dtype")
        if what in found:
            raise UserError(f"{name}: there are two digests of the {what}; leave the one that is meant")
        try:
            digest = digest_text.from_text(_text(opened))
        except DigestError as error:
            raise UserError(f"{name}: {error}") from None
        part = next((item.name for item in digest.tensors if part_of(item.name)), None)
        if part is not None:
            raise UserError(f"{name}: it holds {part}, a part of a tensor (--zoom), expected the whole checkpoint")
        found[what] = digest
    return found


def read_recordings(files: Files) -> tuple[Recording, ...]:
    """One run's recordings in order of their ranks; UserError names the file, and ranks that come twice."""
    by_rank: dict[int, tuple[str, Recording]] = {}
    for name, opened in files.items():
        try:
            recording = record.from_text(_text(opened))
        except RecordError as error:
            raise UserError(f"{name}: {error}") from None
        if recording.rank in by_rank:
            raise UserError(f"{name} and {by_rank[recording.rank][0]} are both of rank {recording.rank}; leave the one "
                            "that is meant")
        by_rank[recording.rank] = (name, recording)
    return tuple(recording for _, (_, recording) in sorted(by_rank.items()))


def _text(opened: Callable[[], BinaryIO]) -> str:
    with opened() as stream:
        return stream.read(MAX_TEXT + 1).decode("ascii", "replace")
