"""Codes to sentences, in English and Chinese. Each room's codes have a module of their own here."""

from __future__ import annotations

import locale
import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from pytest_migparity.core.verdict import Note, Scalar

LANGUAGES = ("en", "zh")
_MODULES = ("actions", "answer", "calibrate", "closedloop", "digest", "dumped", "env", "evidence", "identity", "labels",
            "loss", "reading", "readlog", "tensors")


@cache
def catalogue() -> Mapping[str, tuple[str, str]]:
    """Every message by its code: (English, Chinese) templates for str.format."""
    merged: dict[str, tuple[str, str]] = {}
    for name in _MODULES:
        messages: Mapping[str, tuple[str, str]] = import_module(f".{name}", __name__).MESSAGES
        twice = merged.keys() & messages.keys()
        if twice:
            raise ValueError(f"message codes defined twice: {sorted(twice)}")
        merged.update(messages)
    return merged


def language(chosen: str | None = None) -> str:
    """The reader's language: as chosen, else from the locale (LC_ALL, LC_MESSAGES, LANG), else English."""
    if chosen in LANGUAGES:
        return str(chosen)
    named = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), None)
    return "zh" if (named or locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"


def say(code: str, lang: str, **params: Scalar) -> str:
    """One sentence. A code that nobody wrote down is shown as it is, with its parameters, rather than hidden."""
    template = catalogue().get(code)
    if template is None:
        return " ".join([code, *(f"{key}={value}" for key, value in sorted(params.items()))])
    return template[LANGUAGES.index(lang)].format(**{key: _shown(key, value, lang) for key, value in params.items()})


def _shown(key: str, value: Scalar, lang: str) -> Scalar:
    """Floats in three digits; the name of a side in the reader's language."""
    if key == "side" and f"side-{value}" in catalogue():
        return say(f"side-{value}", lang)
    return f"{value:.3g}" if isinstance(value, float) else value


def tell(item: Note, lang: str) -> str:
    """A note as a sentence."""
    return say(item.code, lang, **item.params)
