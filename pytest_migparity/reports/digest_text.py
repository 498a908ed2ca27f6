"""Two digests compared, in words: one line of counts, then a line for every tensor that is not equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_migparity.core.verdict import Note, Outcome

from .messages import say, tell

EQUAL = "equal"


def digest_text(outcome: Outcome, counts: Mapping[str, int], notes: Sequence[Note], lang: str) -> str:
    """`counts` by fault; `notes` in the order in which they are to be read."""
    value_equal = counts.get("value-equal", 0)
    total, equal = sum(counts.values()), counts.get(EQUAL, 0)
    title = say("digest-title", lang, outcome=say(f"outcome-{outcome}", lang), tensors=total, equal=equal,
                value_equal=value_equal, other=total - equal - value_equal)
    shown = [tell(item, lang) for item in notes if item.code != f"digest-{EQUAL}"]
    return "\n".join([title, *(f"  {sentence}" for sentence in shown)])
