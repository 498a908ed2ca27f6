"""What the verbs of `migparity` share: exit codes, the language of what they print, and that no file is overwritten."""

from __future__ import annotations

from pathlib import Path

from .core.errors import UserError
from .core.verdict import Outcome

USAGE = 4
EXIT = {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.INCONCLUSIVE: 12}


def spoken_language(lang: str | None) -> str:
    """The language of `--lang`, or of the locale; UserError for one that nobody speaks here."""
    from .reports.messages import LANGUAGES, language

    if lang is not None and lang not in LANGUAGES:
        raise UserError(f"--lang {lang}: expected {' or '.join(LANGUAGES)}")
    return language(lang)


def refuse_existing(out: Path) -> None:
    """UserError where a file is there already: what somebody made is never overwritten."""
    if out.exists():
        raise UserError(f"{out} exists; move it away or choose another --out")
