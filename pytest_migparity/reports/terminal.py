"""The terminal summary: one table, then the answer. rich lays out the columns, wide characters included."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from pytest_migparity.core.answer import Answer
from pytest_migparity.core.levels import Direction
from pytest_migparity.core.verdict import Outcome, Verdict

from .messages import say, tell
from .verdict_text import check_line, headline, level_title, number, title, word


def answer_line(answer: Answer, lang: str) -> str:
    """Was accuracy lost?"""
    remarks = ("; " if lang == "en" else "；").join(tell(item, lang) for item in answer.remarks)
    return say(f"answer-{answer.lost.value}", lang, model=answer.model, remarks=remarks)


def table(verdicts: Sequence[Verdict], lang: str, width: int) -> str:
    """A row for each verdict: model, level and case, outcome, the figure nearest its limit, what was compared."""
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("model", "level", "outcome", "figure", "coverage"):
        grid.add_column(say(f"column-{name}", lang), overflow="fold", no_wrap=name in ("model", "outcome"))
    for verdict in verdicts:
        grid.add_row(*_row(verdict, lang))
    out = io.StringIO()
    Console(file=out, width=max(width, 96), color_system=None, legacy_windows=False, markup=False).print(grid)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines() if line.strip())


def _row(verdict: Verdict, lang: str) -> tuple[str, ...]:
    check, coverage = headline(verdict), verdict.finding.coverage
    figure = "-"
    if check is not None and check.limit is not None:
        sign = "<=" if check.limit.direction is Direction.MAX else ">="
        figure = f"{check.name} {number(check.value)} ({sign} {number(check.limit.effective)})"
    return (verdict.display, level_title(verdict, lang), say(f"outcome-{verdict.outcome}", lang), figure,
            f"{coverage.compared}/{coverage.of} {word(f'unit-{coverage.unit}', coverage.unit, lang)}")


def remarks(verdicts: Sequence[Verdict], lang: str) -> list[str]:
    """What stands beside the verdicts: each limit that was loosened, or lifted by digits or a floor; what passed so."""
    lines = []
    for verdict in verdicts:
        found = [" ".join(check_line(check, lang).split()) for check in verdict.finding.checks
                 if check.limit is not None and (check.limit.loosens is not None
                                                 or check.limit.effective != check.limit.declared)]
        if verdict.outcome is Outcome.PASS:  # what did not pass has said it all in its own text
            found += [tell(item, lang) for item in verdict.finding.notes if item.code != "loss-digits-lifted"]
        lines += [f"{title(verdict, lang)}: {line}" for line in found]
    return lines


def summary(verdicts: Sequence[Verdict], answers: Sequence[Answer], *, lang: str, missing: Mapping[str, str],
            not_needed: Sequence[str], levels: Sequence[str], width: int) -> list[str]:
    """The section's lines; the answer is the last."""
    lines = [*table(verdicts, lang, width).splitlines(), *remarks(verdicts, lang)] if verdicts else []
    if not_needed:
        lines.append(say("text-not-needed", lang, names=", ".join(not_needed)))
    lines += not_judged(missing, lang)
    if not missing and not verdicts and levels:
        lines.append(say("text-levels", lang, levels=", ".join(levels)))
    if not answers:
        lines.append(say("text-no-verdict", lang))
    return [*lines, *(answer_line(answer, lang) for answer in answers)]


def not_judged(missing: Mapping[str, str], lang: str) -> list[str]:
    """A line for each selected level test whose verdict does not stand."""
    return [say("text-waits", lang, nodeid=nodeid, why=why) for nodeid, why in missing.items()]
