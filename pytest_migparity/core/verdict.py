"""Findings and verdicts, and the one JSON form in which a verdict travels."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from .levels import Direction
from .limits import Limit

SCHEMA = "migparity.verdict/1"

Scalar = str | int | float | bool


class Outcome(enum.StrEnum):
    """What a level says."""

    PASS = "PASS"  # noqa: S105  the outcome, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


class State(enum.StrEnum):
    """What one check says; `figure` is a number for the reader, without a limit."""

    OK = "ok"
    VIOLATED = "violated"
    BLIND = "blind"
    FIGURE = "figure"


@dataclass(frozen=True, slots=True)
class Note:
    """A remark as a code with parameters; reports.messages renders it in the reader's language."""

    code: str
    params: Mapping[str, Scalar] = field(default_factory=dict)


def note(code: str, **params: Scalar) -> Note:
    """A Note, written short."""
    return Note(code, params)


@dataclass(frozen=True, slots=True)
class Check:
    """One measured number held against one limit. `blocked` says why it could not be measured at all."""

    name: str
    value: float
    limit: Limit | None = None
    unit: str = ""
    blocked: str = ""

    @property
    def state(self) -> State:
        """ok, violated, blind where the evidence cannot resolve the limit, figure where there is none."""
        if self.limit is None:
            return State.FIGURE
        if self.blocked:
            return State.BLIND
        if not self.limit.holds(self.value):
            return State.VIOLATED
        return State.BLIND if self.limit.blind else State.OK

    @property
    def would_pass(self) -> float:
        """The tightest limit of two digits that this value would meet."""
        if self.limit is None or not math.isfinite(self.value):
            return math.nan
        if self.limit.direction is Direction.MIN:
            return math.floor(max(-1.0, min(1.0, self.value)) * 1e3) / 1e3  # a correlation
        shown = f"{max(self.value, 0.0):.1e}"
        if float(shown) >= self.value:
            return float(shown)
        return float(Decimal(shown) + Decimal(f"0.1e{shown.partition('e')[2]}"))


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where the two sides first part: `kind` is step, tensor, task, dimension or package; `at` names it."""

    kind: str
    at: str | int
    baseline: Scalar
    candidate: Scalar


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was compared, out of what."""

    unit: str
    compared: int
    of: int
    baseline_only: int = 0
    candidate_only: int = 0
    repaired: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """What a judge found, before it is set in its context."""

    outcome: Outcome
    checks: tuple[Check, ...]
    coverage: Coverage
    first_divergence: Divergence | None = None
    notes: tuple[Note, ...] = ()
    hints: tuple[Note, ...] = ()
    mode: str = "strict"


def settle(checks: tuple[Check, ...], *, failed: bool = False, unsure: bool = False) -> Outcome:
    """FAIL if anything failed, else INCONCLUSIVE if anything is blind, missing, or nothing was measured, else PASS."""
    states = [check.state for check in checks if check.limit is not None]
    if failed or State.VIOLATED in states:
        return Outcome.FAIL
    return Outcome.INCONCLUSIVE if unsure or not states or State.BLIND in states else Outcome.PASS


@dataclass(frozen=True, slots=True)
class Witness:
    """Whose evidence one side's is: producer, file name and hash, recipe and order of its receipt."""

    side: str
    producer: str
    name: str
    sha256: str
    recipe: str = ""
    commit: str = ""
    order: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finding in its context."""

    level: str
    model: str
    case: str
    finding: Finding
    evidence: tuple[Witness, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """PASS, FAIL or INCONCLUSIVE."""
        return self.finding.outcome

    @property
    def producers(self) -> tuple[str, ...]:
        """Who produced the evidence: real, rehearsal, manual."""
        return tuple(sorted({witness.producer for witness in self.evidence}))

    @property
    def display(self) -> str:
        """The model as every report shows it: `lingbot@rehearsal` wherever rehearsal evidence took part."""
        return f"{self.model}@rehearsal" if "rehearsal" in self.producers and self.model != "rehearsal" else self.model

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no blanks, non-finite numbers as strings, no times."""
        finding = self.finding
        data = {
            "schema": SCHEMA,
            "level": self.level,
            "model": self.model,
            "case": self.case,
            "outcome": finding.outcome.value,
            "mode": finding.mode,
            "checks": [_check_to_dict(check) for check in finding.checks],
            "first_divergence": _plain(finding.first_divergence),
            "coverage": _plain(finding.coverage),
            "notes": [_plain(item) for item in finding.notes],
            "hints": [_plain(item) for item in finding.hints],
            "evidence": [_plain(item) for item in self.evidence],
        }
        text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
        return text.encode("utf-8", "backslashreplace").decode()  # foreign file names may hold surrogates

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        """Read a verdict back; ValueError for any other schema."""
        data = json.loads(text)
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError(f"not a {SCHEMA} document")
        first = data["first_divergence"]
        finding = Finding(
            outcome=Outcome(data["outcome"]),
            checks=tuple(_check_from_dict(item) for item in data["checks"]),
            coverage=Coverage(**data["coverage"]),
            first_divergence=None if first is None else Divergence(**_revive(first)),
            notes=tuple(Note(item["code"], _revive(item["params"])) for item in data["notes"]),
            hints=tuple(Note(item["code"], _revive(item["params"])) for item in data["hints"]),
            mode=data["mode"],
        )
        return cls(data["level"], data["model"], data["case"], finding,
                   tuple(Witness(**item) for item in data["evidence"]))


_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _plain(value: Any) -> Any:
    """Dataclasses and mappings to JSON values."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value


def _revive(data: dict[str, Any]) -> dict[str, Any]:
    return {key: _NON_FINITE.get(value, value) if isinstance(value, str) else value for key, value in data.items()}


def _check_to_dict(check: Check) -> dict[str, Any]:
    limit = None if check.limit is None else {**_plain(check.limit), "effective": _number(check.limit.effective)}
    return {"name": check.name, "value": _number(check.value), "unit": check.unit, "blocked": check.blocked,
            "state": check.state.value, "would_pass": _number(check.would_pass), "limit": limit}


def _check_from_dict(data: dict[str, Any]) -> Check:
    limit = data["limit"]
    if limit is not None:
        limit = _revive({key: value for key, value in limit.items() if key != "effective"})
        limit = Limit(**{**limit, "direction": Direction(limit["direction"])})
    value = data["value"]
    return Check(data["name"], _NON_FINITE[value] if isinstance(value, str) else value, limit, data["unit"],
                 data["blocked"])
