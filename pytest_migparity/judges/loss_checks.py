"""The eight checks of L5, each measured, blocked with a reason, or blind for its digits."""

from __future__ import annotations

import math

import numpy as np

from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, Limits, limit_for
from pytest_migparity.core.verdict import Check, Note, State, note

from .traj_align import Aligned, Series, head_missing
from .traj_stats import CORRELATIONS, ORDER_STEPS, TAIL_POINTS, resolutions, statistics

SPECS = LEVELS["L5"].checks
NEEDS = {"tail": TAIL_POINTS, "drift": TAIL_POINTS, "spearman": TAIL_POINTS, "order": ORDER_STEPS}


def unmeasured(limits: Limits, floors: Floors, code: str = "loss-check-no-evidence") -> tuple[Check, ...]:
    """All checks, none of them measured, `code` saying why."""
    return tuple(Check(spec.name, math.nan, limit_for(spec, limits, floors), spec.unit, blocked=code)
                 for spec in SPECS.values())


def checks_of(pair: Aligned, a: Series, b: Series, limits: Limits, floors: Floors
              ) -> tuple[tuple[Check, ...], list[Note]]:
    """The checks of one pair, and one note for every reason why one of them could not be measured or resolved.

    A blocked check has the value NaN and a code without parameters; the note beside it says the details.
    """
    if not pair.step.size:
        return unmeasured(limits, floors, "loss-check-no-common"), [note("loss-no-common-steps")]
    figures, digits = statistics(pair), resolutions(pair)
    headless = head_missing(a, b)
    n = int(np.count_nonzero(pair.usable | pair.broken))
    reasons: dict[str, Note] = {}
    checks: list[Check] = []
    for spec in SPECS.values():
        value, blocked = figures[spec.name], ""
        if headless and spec.name in ("step0", "first3"):
            blocked, reason = "loss-check-head", note("loss-head-missing", first=int(pair.step[0]))
        elif 0 < n < NEEDS.get(spec.name, 1):
            needs = NEEDS[spec.name]
            blocked, reason = "loss-check-short", note("loss-short", steps=n, needs=needs, more=needs - n)
        elif math.isnan(value):
            constant = _constant_sides(pair) if spec.name in CORRELATIONS else ""
            blocked = "loss-check-constant" if constant else "loss-check-undefined"
            reason = note("loss-constant", side=constant) if constant else note("loss-undefined", check=spec.name)
        if blocked:
            value = math.nan
            reasons[blocked] = reason  # of several the last asks for the most steps
        checks.append(Check(spec.name, value, limit_for(spec, limits, floors, digits[spec.name]), spec.unit, blocked))
    return tuple(checks), [*reasons.values(), *_digit_notes(checks)]


def _constant_sides(pair: Aligned) -> str:
    """The sides whose losses are all equal: a rank correlation with them is undefined."""
    sides = (("baseline", pair.baseline), ("candidate", pair.candidate))
    return ", ".join(side for side, loss in sides if np.unique(loss[pair.usable]).size == 1)


def _digit_notes(checks: list[Check]) -> list[Note]:
    """Which checks the printed digits blind, and which limits they lifted."""
    measured = [check for check in checks if check.limit is not None and not check.blocked]
    blind = [check for check in measured if check.limit is not None and check.limit.blind]
    lifted = [check for check in measured if check.limit is not None and check.limit.lifted and check not in blind]
    return [note(code, checks=", ".join(check.name for check in chosen),
                 digits=max(check.limit.resolution for check in chosen if check.limit is not None))
            for code, chosen in (("loss-digits-blind", blind), ("loss-digits-lifted", lifted)) if chosen]


def violated(checks: tuple[Check, ...]) -> set[str]:
    """The names of the checks beyond their limits."""
    return {check.name for check in checks if check.state is State.VIOLATED}


def effective(checks: tuple[Check, ...], name: str) -> float:
    """The limit in force of one check."""
    return next(check.limit.effective for check in checks if check.name == name and check.limit is not None)
