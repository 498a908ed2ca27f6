"""One verdict for the person who must act, and as JUnit properties."""

from __future__ import annotations

import math

from pytest_migparity.core.levels import Direction
from pytest_migparity.core.verdict import Check, Outcome, Scalar, State, Verdict

from .messages import catalogue, say, tell


def number(value: float) -> str:
    """A figure in the width that every report uses."""
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4f}" if 0.1 <= abs(value) < 10 else f"{value:.1e}"


def _scalar(value: Scalar) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def word(code: str, fallback: str, lang: str) -> str:
    """A label in the reader's language, or the name itself where it has none."""
    return say(code, lang) if code in catalogue() else fallback


def level_title(verdict: Verdict, lang: str) -> str:
    """`L5 loss`, with the case where it is not the only one."""
    case = "" if verdict.case == "main" else f" [{verdict.case}]"
    return f"{verdict.level} {say(f'level-{verdict.level}', lang)}{case}"


def title(verdict: Verdict, lang: str) -> str:
    """`lingbot · L5 loss · FAIL`."""
    return f"{verdict.display} · {level_title(verdict, lang)} · {say(f'outcome-{verdict.outcome}', lang)}"


def so_far(verdict: Verdict, lang: str) -> str:
    """One line on logs that are still being written."""
    finding = verdict.finding
    departure = next((check.value for check in finding.checks if check.name == "departure"), math.nan)
    return say("text-so-far", lang, steps=finding.coverage.compared, outcome=say(f"outcome-{verdict.outcome}", lang),
               departure=number(departure))


def check_line(check: Check, lang: str) -> str:
    """Value, limit, where the limit came from, and what would pass."""
    if check.limit is None:
        return f"{check.name}  {number(check.value)}"
    limit = check.limit
    shown = say("limit-max" if limit.direction is Direction.MAX else "limit-min", lang, limit=number(limit.effective))
    reasons = [word(f"source-{limit.source}", limit.source, lang)]
    if limit.loosens is not None:
        reasons.append(say("limit-loosened", lang, loosens=number(limit.loosens), because=limit.because or "-"))
    if limit.lifted:
        reasons.append(say("limit-digits", lang, declared=number(limit.declared)))
    elif limit.effective != limit.declared and limit.floor:
        reasons.append(say("limit-floor", lang, floor=number(limit.floor)))
    parts = [f"{check.name:<9}  {number(check.value):<8}", f"{shown} ({'; '.join(reasons)})"]
    if check.blocked:
        parts.append(word(check.blocked, check.blocked, lang))
    elif check.state is State.BLIND:
        parts.append(say("check-blind", lang))
    elif check.state is State.VIOLATED and math.isfinite(check.would_pass):
        parts.append(say("check-would-pass", lang, value=number(check.would_pass)))
    return "   ".join(parts)


def verdict_text(verdict: Verdict, again: str, lang: str, *, every_check: bool = False) -> str:
    """What differs, by how much, limit, where it starts, the likely cause, the command to see it again."""
    finding = verdict.finding
    lines = [title(verdict, lang)]
    wanted = [check for check in finding.checks if every_check or check.state in (State.VIOLATED, State.BLIND)]
    lines += [f"  {check_line(check, lang)}" for check in wanted]
    if first := finding.first_divergence:
        lines.append("  " + say("text-first", lang, kind=word(f"kind-{first.kind}", first.kind, lang), at=first.at,
                                baseline=_scalar(first.baseline), candidate=_scalar(first.candidate)))
    lines += [f"  {tell(item, lang)}" for item in finding.notes]
    if finding.hints:
        lines.append("  " + say("text-likely", lang, hint="; ".join(tell(item, lang) for item in finding.hints)))
    coverage = finding.coverage
    covered = say("text-covered", lang, compared=coverage.compared, of=coverage.of,
                  unit=word(f"unit-{coverage.unit}", coverage.unit, lang))
    if coverage.repaired or coverage.dropped:
        covered += "; " + say("text-covered-rows", lang, repaired=coverage.repaired, dropped=coverage.dropped)
    lines.append(f"  {covered}")
    lines += ["  " + say("text-evidence", lang, side=say(f"side-{item.side}", lang), name=item.name,
                         producer=say(f"producer-{item.producer}", lang), sha256=item.sha256[:12])
              for item in verdict.evidence]
    if again:
        lines.append("  " + say("text-again", lang, command=again))
    return "\n".join(lines)


def properties(verdict: Verdict) -> list[tuple[str, str]]:
    """JUnit properties: the stable identity of the check, the outcome, where it first went wrong, every figure."""
    first = verdict.finding.first_divergence
    pairs = [
        ("migparity.check", f"{verdict.level}[{verdict.model}-{verdict.case}]"),
        ("migparity.model", verdict.display),
        ("migparity.level", verdict.level),
        ("migparity.case", verdict.case),
        ("migparity.outcome", verdict.outcome.value),
        ("migparity.first_divergence", f"{first.kind} {first.at}" if first else ""),
        ("migparity.evidence", " ".join(f"{item.side}={item.producer}:{item.sha256}" for item in verdict.evidence)),
    ]
    pairs += [(f"migparity.value.{check.name}", repr(check.value)) for check in verdict.finding.checks]
    return pairs


def headline(verdict: Verdict) -> Check | None:
    """The check that decides: the worst violated one, else a blind one, else the one nearest to its limit."""
    judged = [check for check in verdict.finding.checks if check.limit is not None]
    if not judged:
        return None
    rank = {State.VIOLATED: 2, State.BLIND: 1} if verdict.outcome is not Outcome.PASS else {}
    return max(judged, key=lambda check: (rank.get(check.state, 0), _used(check)))


def _used(check: Check) -> float:
    """How much of its limit a value uses up: 1 is all of it."""
    assert check.limit is not None
    allowed, used = check.limit.effective, check.value
    if check.limit.direction is Direction.MIN:
        allowed, used = 1.0 - allowed, 1.0 - used
    if not math.isfinite(used):
        return math.inf
    return used / allowed if allowed > 0 else (math.inf if used > 0 else 0.0)
