"""What L7 costs, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .messages import say


def plan_text(document: Mapping[str, Any], lang: str) -> str:
    """A line for each margin; the one that is judged by is marked."""
    lines = [say("plan-head", lang, rate=document["rate"], alpha=document["alpha"]),
             say("plan-columns", lang, correlations="   ".join(f"{each:g}" for each in document["correlations"]))]
    for row in document["rows"]:
        mark = "*" if row["margin"] == document["declared"] else " "
        paired = "".join(f"{each:>7}" for each in row["paired"])
        lines.append(f"{mark} {row['margin']:<6.3g}{paired}{row['unpaired']:>12}")
    return "\n".join([*lines, say("plan-foot", lang)])
