"""The first line of a run: which model, and whose evidence is about to be judged."""

from __future__ import annotations

from pathlib import Path

from .core.levels import SIDES
from .reports.messages import say
from .selection import Chosen
from .wire import receipt


def announcement(chosen: Chosen, lang: str) -> str:
    """One line for one model. Looks at receipts on this machine only; what is elsewhere is named by its site."""
    producers: dict[str, str] = {}
    for side in SIDES:
        url = chosen.site(side)
        base = Path.cwd() if url else chosen.path.parent
        producers[side] = _producer(url or chosen.manifest.side(side).site, base)
    name = chosen.manifest.name
    title = chosen.manifest.model.title or name
    if set(producers.values()) == {"rehearsal"}:
        return say("announce-rehearsal", lang, model=f"{name}@rehearsal" if name != "rehearsal" else name, title=title)
    return say("announce-real", lang, model=name, title=title, **producers)


def _producer(url: str, base: Path) -> str:
    from .channels.file import FileChannel
    from .core.errors import UserError

    if not url.startswith("file:"):
        return url
    try:
        channel = FileChannel.at(url, base)
        found = receipt.read(str(channel.root)) if channel.root.is_dir() else None
        return found.producer if found else "manual" if channel.names() else "none"
    except receipt.ReceiptError:
        return "unreadable receipt"
    except UserError:
        return "none"
