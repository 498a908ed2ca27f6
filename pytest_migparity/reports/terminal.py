"""The terminal summary: one table, then the answer. rich lays out the columns, wide characters included."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import groupby

from pytest_migparity.core.answer import answer_for
from pytest_migparity.core.levels import Direction
from pytest_migparity.core.verdict import Verdict

from .messages import say, tell
from .verdict_text import check_line, headline, level_title, number, title, word


def answers(verdicts: Sequence[Verdict], enough: Mapping[str, Sequence[str]], lang: str) -> list[str]:
    """One line for each model: was accuracy lost?"""
    lines = []
    for model, group in groupby(verdicts, key=lambda verdict: verdict.model):
        answer = answer_for(list(group), enough.get(model, ()))
        remarks = ("; " if lang == "en" else "；").join(tell(item, lang) for item in answer.remarks)
        lines.append(say(f"answer-{answer.lost.value}", lang, model=answer.model, remarks=remarks))
    return lines


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
    """Every limit that was loosened, by whom and why, or lifted to the printed digits; of passing verdicts too."""
    return [f"{title(verdict, lang)}: {' '.join(check_line(check, lang).split())}"
            for verdict in verdicts for check in verdict.finding.checks
            if check.limit is not None and (check.limit.lifted or check.limit.loosens is not None)]


def summary(verdicts: Sequence[Verdict], enough: Mapping[str, Sequence[str]], *, lang: str, missing: Mapping[str, str],
            not_needed: Sequence[str], levels: Sequence[str], width: int) -> list[str]:
    """The section's lines; the answer is the last."""
    lines = [*table(verdicts, lang, width).splitlines(), *remarks(verdicts, lang)] if verdicts else []
    if not_needed:
        lines.append(say("text-not-needed", lang, names=", ".join(not_needed)))
    lines += [say("text-waits", lang, nodeid=nodeid, why=why) for nodeid, why in missing.items()]
    if verdicts:
        return [*lines, *answers(verdicts, enough, lang)]
    if not missing and levels:
        lines.append(say("text-levels", lang, levels=", ".join(levels)))
    return [*lines, say("text-no-verdict", lang)]
