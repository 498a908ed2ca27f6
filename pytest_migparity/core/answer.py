"""The answer: what the verdicts of one model mean together. From verdicts alone; rendered by reports."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .verdict import Note, Outcome, Verdict, note

GATES = ("L0", "L1", "L2")  # they explain a loss or its absence; what they leave open is said, and measures nothing


class Lost(enum.StrEnum):
    """Was accuracy lost?"""

    NO = "no"
    YES = "yes"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Answer:
    """The run in one line for one model: `remarks` are said in their order."""

    model: str
    lost: Lost
    remarks: tuple[Note, ...]


def answer_for(verdicts: Sequence[Verdict], enough: Iterable[str] = ()) -> Answer:
    """The answer for one model (DESIGN, "The answer").

    `enough` are the levels that settle it; where none is declared, every level that was judged must agree. A gate of
    `enough` that was not judged is said beside the answer; any other level of `enough` leaves it at "cannot tell". L0
    explains a loss but measures none: without a judged level above it the answer is "cannot tell" too.
    """
    if not verdicts:
        raise ValueError("no verdict, no answer")
    worst = _by_level(verdicts)
    failed = [level for level, outcome in worst.items() if outcome is Outcome.FAIL and level != "L0"]
    unsure = [level for level, outcome in worst.items() if outcome is Outcome.INCONCLUSIVE]
    settled = "L7" in worst and worst["L7"] is Outcome.PASS
    if settled and "L6" in unsure:
        unsure.remove("L6")
    required = set(enough) or set(worst)
    measured = [level for level in worst if level != "L0"]
    missing = sorted(required - set(worst))
    remarks: list[Note] = []
    if failed:
        first = failed[0]
        affected = settled and first in ("L3", "L4", "L5", "L6")
        remarks.append(_where(first, verdicts))
        if worst.get("L0") is Outcome.FAIL:
            remarks.append(_stacks("answer-cause-not-separated", verdicts))
        if affected:
            remarks.append(note("answer-task-unaffected", level=first))
        lost = Lost.NO if affected else Lost.YES
    elif blocking := [level for level in unsure if level in required]:
        lost = Lost.CANNOT_TELL
        remarks += [note("answer-level-cannot-tell", level=level) for level in blocking]
    elif set(missing) - set(GATES):
        lost = Lost.CANNOT_TELL
    elif not measured:
        lost = Lost.CANNOT_TELL
        remarks.append(note("answer-only-environment"))
        if worst["L0"] is Outcome.FAIL:
            remarks.append(_stacks("answer-stacks-differ", verdicts))
    else:
        lost = Lost.NO
        remarks.append(note("answer-agree", levels=", ".join(level for level in worst if worst[level] is Outcome.PASS)))
        if worst.get("L0") is Outcome.FAIL:
            remarks.append(_stacks("answer-stacks-differ", verdicts))
        remarks += [note("answer-level-cannot-tell", level=level) for level in unsure]
    not_checked = sorted({*missing, *(["L0"] if "L0" not in worst else [])})
    if not_checked:
        remarks.append(note("answer-not-checked", levels=", ".join(not_checked)))
    if loosened := sum(1 for verdict in verdicts for check in verdict.finding.checks
                       if check.limit is not None and check.limit.loosens is not None):
        remarks.append(note("answer-loosened", count=loosened))
    if any("rehearsal" in verdict.producers for verdict in verdicts):
        remarks.append(note("answer-rehearsal"))
    if any("manual" in verdict.producers for verdict in verdicts):
        remarks.append(note("answer-manual"))
    return Answer(_display(verdicts), lost, tuple(remarks))


def _display(verdicts: Sequence[Verdict]) -> str:
    shown = sorted({verdict.display for verdict in verdicts}, key=len)
    return shown[-1]


def _by_level(verdicts: Iterable[Verdict]) -> dict[str, Outcome]:
    """The worst outcome of each level, in the ladder's order."""
    rank = [Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL]
    worst: dict[str, Outcome] = {}
    for verdict in sorted(verdicts, key=lambda verdict: verdict.level):
        worst[verdict.level] = max(worst.get(verdict.level, Outcome.PASS), verdict.outcome, key=rank.index)
    return worst


def _where(level: str, verdicts: Sequence[Verdict]) -> Note:
    failed = [verdict for verdict in verdicts if verdict.level == level and verdict.outcome is Outcome.FAIL]
    first = failed[0].finding.first_divergence
    if first is None:
        return note("answer-first-at", level=level, case=failed[0].case)
    return note("answer-first-at-where", level=level, case=failed[0].case, kind=first.kind, at=first.at)


def _stacks(code: str, verdicts: Sequence[Verdict]) -> Note:
    names = [verdict.finding.first_divergence.at for verdict in verdicts
             if verdict.level == "L0" and verdict.outcome is Outcome.FAIL and verdict.finding.first_divergence]
    return note(code, names=", ".join(str(name) for name in names) or "L0")
