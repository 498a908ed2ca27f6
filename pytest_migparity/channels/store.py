"""The verified store: fetched bytes kept by their sha256, written atomically, re-verified whenever they are read."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pytest_migparity.core.errors import UserError

ENV = "MIGPARITY_CACHE"
MOST_BYTES = 2 << 30  # nobody's log is larger, and a hostile one must not fill the disk
_BLOCK = 1 << 20


class StoreError(UserError):
    """The cache folder cannot be used, or what it holds no longer has its hash."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One blob: where it lies, its sha256 and its size in bytes."""

    path: Path
    sha256: str
    bytes: int


def default_root() -> Path:
    """$MIGPARITY_CACHE, else the user's cache folder."""
    if chosen := os.environ.get(ENV):
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("migparity"))


class Store:
    """Content-addressed files under `root`. Safe for several processes at once."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or default_root()

    def _place(self, sha256: str) -> Path:
        return self.root / "store" / sha256[:2] / sha256

    def add(self, stream: BinaryIO, most: int = MOST_BYTES) -> Stored:
        """Keep a stream's bytes, at most `most`: write to a temporary file, then rename it to its hash under a lock."""
        from filelock import FileLock

        temporary = ""
        try:
            folder = self.root / "store"
            folder.mkdir(parents=True, exist_ok=True)
            digest, size = hashlib.sha256(), 0
            with tempfile.NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as part:
                temporary = part.name
                while block := stream.read(_BLOCK):
                    digest.update(block)
                    size += len(block)
                    if size > most:
                        raise StoreError(f"more than {most} bytes: nothing that is read here is that large")
                    part.write(block)
            place = self._place(digest.hexdigest())
            place.parent.mkdir(exist_ok=True)
            with FileLock(f"{folder / place.name[:2]}.lock"):
                os.replace(temporary, place)
            return Stored(place, digest.hexdigest(), size)
        except OSError as error:
            raise StoreError(
                f"the cache {self.root} cannot take the evidence: {error.strerror or error}; "
                f"make room there or name another folder in {ENV}"
            ) from None
        finally:
            if temporary:
                Path(temporary).unlink(missing_ok=True)

    def open(self, stored: Stored) -> BinaryIO:
        """A blob's bytes as a stream, verified again before the first of them is handed out."""
        try:
            stream = stored.path.open("rb")
            found = hashlib.file_digest(stream, "sha256").hexdigest()
            stream.seek(0)
        except OSError as error:
            raise StoreError(f"{stored.path}: {error.strerror or error}; fetch the evidence again") from None
        if found != stored.sha256:
            stream.close()
            raise StoreError(f"{stored.path}: damaged in the cache (its sha256 is another); delete it and run again")
        return stream

    def read(self, stored: Stored) -> bytes:
        """The bytes of a blob, verified again."""
        with self.open(stored) as stream:
            return stream.read()
