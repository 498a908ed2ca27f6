"""Where a side's artifacts are: a URL, and the channel that reads it. Other schemes come in by entry point."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import BinaryIO, Protocol

from pytest_migparity.core.errors import UserError, did_you_mean

from .file import FileChannel

GROUP = "migparity.channels"


class Channel(Protocol):
    """What a channel must do. Names are relative, with forward slashes, and never leave the site."""

    def names(self) -> list[str]:
        """Every file at the site, sorted; ChannelError when the site cannot be reached."""
        ...

    def open(self, name: str) -> BinaryIO:
        """A stream of one file's bytes."""
        ...


def open_site(url: str, base: Path) -> Channel:
    """The channel of a site's URL; `base` is what a relative `file:` starts from."""
    check_url(url)
    scheme = url.partition(":")[0]
    if scheme == "file":
        return FileChannel.at(url, base)
    opener: Callable[[str], Channel] = entry_points(group=GROUP)[scheme].load()
    return opener(url)


def check_url(url: str) -> None:
    """Refuse a site's URL that no channel here can read, before anything is collected."""
    scheme, colon, _ = url.partition(":")
    if not colon:
        raise UserError(f"site {url!r} is no URL; for a folder or file on this machine write file:{url}")
    if scheme == "file":  # asking every installed package for its entry points costs more than all else here
        return
    known = {"file", *(point.name for point in entry_points(group=GROUP))}
    if scheme not in known:
        raise UserError(f"site {url!r}: no channel for {scheme}: here; {did_you_mean(scheme, known)}")
