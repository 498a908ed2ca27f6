"""What a rule of the environment says, and the declarations that can excuse it."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pytest_migparity.core.evidence import EnvRules
from pytest_migparity.core.verdict import Divergence, Note, note

from .envview import normal, show

SIDES = ("baseline", "candidate")


class Grade(enum.Enum):
    """What a remark does to the verdict: a mismatch fails it, an unsure one leaves it open, a remark informs."""

    MISMATCH = 0
    UNSURE = 1
    REMARK = 2


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that a rule found."""

    grade: Grade
    note: Note
    divergence: Divergence | None = None


def remark(code: str, **params: str | int) -> Remark:
    """For the reader."""
    return Remark(Grade.REMARK, note(code, **params))


def unsure(code: str, **params: str | int) -> Remark:
    """Something that must be known is not."""
    return Remark(Grade.UNSURE, note(code, **params))


def parted(code: str, kind: str, at: str, baseline: object, candidate: object, *, open_: bool = False,
           **params: str | int) -> Remark:
    """The sides differ at `at`; `open_` where that says they cannot be compared rather than that one is wrong."""
    left, right = show(baseline), show(candidate)
    return Remark(Grade.UNSURE if open_ else Grade.MISMATCH, note(code, baseline=left, candidate=right, **params),
                  Divergence(kind, at, left, right))


@dataclass(frozen=True, slots=True)
class Excuses:
    """The declared exceptions. Names are packages, or carry their kind: env:NAME, config:NAME.key, torch:flag."""

    rules: EnvRules

    def reason(self, name: str) -> str | None:
        """Why the candidate may differ here, where the manifest says so."""
        wanted = _key(name)
        for declared, reason in self.rules.overrides.items():
            if _key(declared) == wanted:
                return reason
        return None

    def tolerated(self, name: str) -> bool:
        """Does a may_differ pattern cover the name? A package's never covers an option, nor the other way round."""
        wanted, kind = _key(name), _kind(name)
        return any(_kind(pattern) == kind and fnmatchcase(wanted, _key(pattern)) for pattern in self.rules.may_differ)

    def apply(self, name: str, remarks: Iterator[Remark] | list[Remark], *, may_differ: bool = True) -> list[Remark]:
        """`remarks` about `name`, turned into plain remarks where the difference was declared."""
        found = list(remarks)
        if all(item.grade is Grade.REMARK for item in found):
            return found
        reason = self.reason(name)
        if reason is None and not (may_differ and self.tolerated(name)):
            return found
        said = next((item.divergence for item in found if item.divergence), None)
        left, right = (show(said.baseline), show(said.candidate)) if said else ("?", "?")
        if reason is None:
            return [remark("env-may-differ", count=1, listed=f"{name} {left} -> {right}")]
        return [remark("env-waived", name=name, reason=reason, baseline=left, candidate=right)]


def _kind(name: str) -> str:
    """The prefix that makes a name or pattern an option's, "" for a package."""
    return next((prefix for prefix in ("env:", "config:", "torch:", "extension:") if name.startswith(prefix)), "")


def _key(name: str) -> str:
    """Package names in their PEP 503 form (patterns too), everything else as it stands."""
    return name if _kind(name) else normal(name)


def listing(items: list[str], limit: int = 12) -> str:
    """The first items in one line, and how many more there are."""
    head = ", ".join(items[:limit])
    return head if len(items) <= limit else f"{head}, ... (+{len(items) - limit})"
