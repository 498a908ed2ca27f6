"""Two digests compared, in words: one line of counts, then a line for every tensor that is not equal."""

from __future__ import annotations

import shlex
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


def refined_text(outcome: Outcome, notes: Sequence[Note], asks: Sequence[tuple[str, Sequence[str]]], lang: str) -> str:
    """What is named, then a command for each (side, options) of `asks`, quoted for a shell."""
    lines = [say(f"outcome-{outcome}", lang), *(f"  {tell(item, lang)}" for item in notes)]
    for index, (side, options) in enumerate(asks):
        lines.append(say("digest-next", lang, side=say(f"side-{side}", lang), options=shlex.join(options)))
        if options not in [later for _, later in asks[index + 1:]]:
            cast = f" --cast {options[options.index('--cast') + 1]}" if "--cast" in options else ""
            lines.append(say(f"digest-then-{'both' if side == 'both' else 'one'}", lang, cast=cast))
    return "\n".join(lines if asks else [*lines, say("digest-named", lang)])
