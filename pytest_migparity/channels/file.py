"""`file:` a folder of artifacts, or one artifact, on this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from pytest_migparity.core.errors import UserError

MOST_FILES = 10_000


class ChannelError(UserError):
    """The site cannot be reached, or does not hold what was asked of it."""


@dataclass(frozen=True, slots=True)
class FileChannel:
    """A site on this machine. `root` may be a single file: then that is all the site has."""

    url: str
    root: Path

    @classmethod
    def at(cls, url: str, base: Path) -> FileChannel:
        """`file:relative`, `file:/absolute` or `file:///absolute`; a relative one starts at `base`."""
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost"):
            raise UserError(f"site {url!r} names the host {parts.netloc!r}; file: is this machine only")
        return cls(url, base / Path(unquote(parts.path)).expanduser())

    def names(self) -> list[str]:
        """Files below the root, links that lead out of it left out."""
        if self.root.is_file():
            return [self.root.name]
        if not self.root.is_dir():
            raise ChannelError(f"{self.url}: there is no such folder or file")
        found: list[str] = []
        for folder, folders, files in os.walk(self.root):
            folders.sort()
            found += [(Path(folder) / file).relative_to(self.root).as_posix() for file in files]
            if len(found) > MOST_FILES:
                raise ChannelError(f"{self.url}: more than {MOST_FILES} files; name the folder of the artifacts")
        return sorted(name for name in found if self._inside(name))

    def _inside(self, name: str) -> bool:
        return (self.root / name).resolve().is_relative_to(self.root.resolve())

    def open(self, name: str) -> BinaryIO:
        """One file's bytes; never a file outside the root."""
        path = self.root if self.root.is_file() else self.root / name
        if self.root.is_dir() and not self._inside(name):
            raise ChannelError(f"{self.url}: {name!r} leads out of the site")
        try:
            return path.open("rb")
        except OSError as error:
            raise ChannelError(f"{self.url}: {name}: {error.strerror or error}") from None
