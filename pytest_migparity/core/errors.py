"""Errors that are the user's to fix."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """A mistake in what the user gave us, told in one message: what, where, what was expected, what to do.

    Shown without a traceback everywhere.
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The remedy for a misspelled name: the nearest known one, or all of them."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}" if names else "none is defined"
