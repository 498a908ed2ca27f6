"""`file:` a folder of artifacts, or one artifact, on this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from pytest_migparity.core.errors import UserError
from pytest_migparity.wire import receipt

MOST_FILES = 10_000
RECEIPT = receipt.NAME


class ChannelError(UserError):
    """The site cannot be reached, or does not hold what was asked of it."""


@dataclass(frozen=True, slots=True)
class FileChannel:
    """A site on this machine. `root` may be a single file: then that, and a receipt beside it, is all the site has."""

    url: str
    root: Path

    @classmethod
    def at(cls, url: str, base: Path) -> FileChannel:
        """`file:relative`, `file:/absolute` or `file:///absolute`; a relative one starts at `base`.

        A `#` or `?` belongs to the name: cut off as a URL's would be, it would silently lead to another folder.
        """
        path, host = url.partition(":")[2], ""
        if path.startswith("//"):
            host, slash, rest = path[2:].partition("/")
            path = slash + rest
        if host not in ("", "localhost"):
            raise UserError(f"site {url!r} names the host {host!r}; file: is this machine only")
        try:
            return cls(url, base / Path(unquote(path)).expanduser())
        except RuntimeError as error:  # ~nobody
            raise UserError(f"site {url!r}: {error}; write the folder's path in full") from None

    @property
    def single(self) -> bool:
        """Is the site one file, named as such?"""
        return self.root.is_file()

    def names(self) -> list[str]:
        """Regular files below the root. Left out: links that lead out of it or nowhere, and pipes, which never end."""
        try:
            if self.root.is_file():
                return sorted(name for name in {self.root.name, RECEIPT} if (self.root.parent / name).is_file())
            if not self.root.is_dir():
                raise ChannelError(f"{self.url}: there is no such folder or file")
            return self._walk()
        except OSError as error:
            raise ChannelError(f"{self.url}: {error.filename or self.root}: {error.strerror or error}") from None

    def _walk(self) -> list[str]:
        def unreadable(error: OSError) -> None:
            raise error  # half a listing would let one file stand in for another

        found: list[str] = []
        for folder, folders, files in os.walk(self.root, onerror=unreadable):
            folders.sort()
            found += [(Path(folder) / file).relative_to(self.root).as_posix() for file in files]
            if len(found) > MOST_FILES:
                raise ChannelError(f"{self.url}: more than {MOST_FILES} files; name the folder of the artifacts")
        return sorted(name for name in found if self._inside(name) and (self.root / name).is_file())

    def _inside(self, name: str) -> bool:
        try:
            return (self.root / name).resolve().is_relative_to(self.root.resolve())
        except RuntimeError:  # a link to itself, before Python 3.13
            return False

    def open(self, name: str) -> BinaryIO:
        """One file's bytes; never a file outside the root."""
        path = self.root.parent / name if self.root.is_file() else self.root / name
        if not (name in self.names() if self.root.is_file() else self._inside(name)):
            raise ChannelError(f"{self.url}: {name!r} leads out of the site")
        if path.exists() and not path.is_file():
            raise ChannelError(f"{self.url}: {name}: no regular file")
        try:
            return path.open("rb")
        except OSError as error:
            raise ChannelError(f"{self.url}: {name}: {error.strerror or error}") from None
