"""What one process collected, and the marks that a level test's report carries home: plain strings for xdist."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

VERDICT = "migparity.verdict"  # the JUnit property, and the name under which a verdict crosses xdist


@dataclass(slots=True)
class Collected:
    """Level names seen, level tests selected (node id -> model, level, case), and levels the manifest does not need."""

    levels: set[str] = field(default_factory=set)
    selected: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    not_needed: set[str] = field(default_factory=set)

    def pack(self) -> str:
        """As one string."""
        return json.dumps([sorted(self.levels), self.selected, sorted(self.not_needed)])

    def add(self, packed: str) -> None:
        """What a worker packed."""
        levels, selected, not_needed = json.loads(packed)
        self.levels.update(levels)
        self.selected.update({nodeid: tuple(case) for nodeid, case in selected.items()})
        self.not_needed.update(not_needed)


COLLECTED: pytest.StashKey[Collected] = pytest.StashKey()


def verdicts_in(report: pytest.TestReport) -> list[str]:
    """The verdict documents that a report carries."""
    return [str(value) for name, value in report.user_properties if name == VERDICT]


def outcome_of(verdict: str) -> str:
    """PASS, FAIL or INCONCLUSIVE, without reading the rest of the document into types."""
    return str(json.loads(verdict)["outcome"])


def tag(report: pytest.TestReport, call: pytest.CallInfo[None], level: str) -> None:
    """Mark a level test's report; never leave green what judged nothing or passed over its own verdict."""
    from .outcomes import Inconclusive

    marks = vars(report)
    marks["migparity_level"] = level
    if call.when != "call":
        return
    outcomes = {outcome_of(verdict) for verdict in verdicts_in(report)}
    if call.excinfo is not None:
        if call.excinfo.errisinstance(Inconclusive):
            marks["migparity_outcome"] = "INCONCLUSIVE"
    elif report.passed and outcomes != {"PASS"}:
        report.outcome = "failed"
        report.longrepr = (f"{report.nodeid} passed over a verdict of {', '.join(sorted(outcomes - {'PASS'}))}"
                           if outcomes else
                           f"{report.nodeid} passed without a verdict: it never called judge(baseline, candidate)")
        if "FAIL" not in outcomes:
            marks["migparity_outcome"] = "INCONCLUSIVE"
