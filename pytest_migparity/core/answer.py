"""The answer: what the verdicts of one model mean together. From verdicts alone; rendered by reports."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Sequence
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


def answer_for(model: str, verdicts: Sequence[Verdict], enough: Iterable[str] = (),
               unjudged: Collection[str] = ()) -> Answer:
    """The answer for one model (DESIGN, "The answer").

    `enough` are the levels that settle it; where none is declared, every level that was judged must agree. A gate of
    `enough` that was not judged is said beside the answer; any other level of `enough` leaves it at "cannot tell", and
    so does each of `unjudged`: cases ("L5[b]") that were selected, or declared beside others of their level, and have
    no verdict. L0 explains a loss but measures none: without a judged level above it the answer is "cannot tell" too.
    """
    worst = _by_level(verdicts)
    failed = [level for level, outcome in worst.items() if outcome is Outcome.FAIL and level != "L0"]
    unsure = [level for level, outcome in worst.items() if outcome is Outcome.INCONCLUSIVE]
    settled = worst.get("L7") is Outcome.PASS
    if settled and "L6" in unsure:
        unsure.remove("L6")
    required = set(enough) or set(worst)
    missing = sorted(required - set(worst))
    stacks_differ = worst.get("L0") is Outcome.FAIL
    remarks: list[Note] = []
    if failed:
        first = failed[0]
        affected = not (settled and first in ("L3", "L4", "L5", "L6"))
        remarks.append(_where(first, verdicts))
        if stacks_differ:
            remarks.append(_stacks("answer-cause-not-separated", verdicts))
        if not affected:
            remarks.append(note("answer-task-unaffected", level=first))
        lost = Lost.YES if affected else Lost.NO
    elif blocking := [level for level in unsure if level in required]:
        lost = Lost.CANNOT_TELL
        remarks += [note("answer-level-cannot-tell", level=level) for level in blocking]
    elif set(missing) - set(GATES) or unjudged:
        lost = Lost.CANNOT_TELL
    elif not set(worst) - {"L0"}:
        lost = Lost.CANNOT_TELL
        remarks.append(note("answer-only-environment"))
    else:
        lost = Lost.NO
        remarks.append(note("answer-agree", levels=", ".join(level for level in worst if worst[level] is Outcome.PASS)))
        remarks += [note("answer-level-cannot-tell", level=level) for level in unsure]
    if stacks_differ and not failed:
        remarks.append(_stacks("answer-stacks-differ", verdicts))
    return Answer(_display(model, verdicts), lost, (*remarks, *_caveats(verdicts, missing, unjudged)))


def _caveats(verdicts: Sequence[Verdict], missing: Sequence[str], unjudged: Collection[str]) -> list[Note]:
    """What the answer does not rest on, and whose evidence it rests on."""
    remarks = []
    gates = ["L0"] if all(verdict.level != "L0" for verdict in verdicts) else []
    if not_checked := sorted({*missing, *unjudged, *gates}):
        remarks.append(note("answer-not-checked", levels=", ".join(not_checked)))
    if loosened := sum(1 for verdict in verdicts for check in verdict.finding.checks
                       if check.limit is not None and check.limit.loosens is not None):
        remarks.append(note("answer-loosened", count=loosened))
    remarks += [note(f"answer-{producer}") for producer in ("rehearsal", "manual")
                if any(producer in verdict.producers for verdict in verdicts)]
    return remarks


def _display(model: str, verdicts: Sequence[Verdict]) -> str:
    return max([model, *(verdict.display for verdict in verdicts)], key=len)


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
