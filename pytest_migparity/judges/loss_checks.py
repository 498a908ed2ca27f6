"""The checks of L5, each measured, blocked with a reason, or blind for its digits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import FLOOR_FACTOR, Floors, Limit, Limits, limit_for
from pytest_migparity.core.verdict import Check, Note, State, note

from .loss_departure import LEAST_POINTS, SHIPPED, Departure, Scale, hidden, known, pooled, span, window_of
from .loss_growth import Growth
from .traj_align import Aligned, Series, head_missing, head_of
from .traj_stats import CORRELATIONS, ORDER_STEPS, TAIL_POINTS, moves, resolutions, statistics

SPECS = LEVELS["L5"].checks
NEEDS = {"tail": TAIL_POINTS, "drift": TAIL_POINTS, "spearman": TAIL_POINTS, "order": LEAST_POINTS}
LATE = 20.0
LASTING = 1e-3  # tail and drift of good long runs without floors: 3.4e-4 and 6.1e-4 at most
HIDDEN = 8.0  # printed digits hide steady differences up to so many times what rounding makes of |d| (fuzzed)


def unmeasured(limits: Limits, floors: Floors, code: str = "loss-check-no-evidence") -> tuple[Check, ...]:
    """All checks, none of them measured, `code` saying why."""
    return tuple(Check(spec.name, math.nan, limit_for(spec, limits, floors), spec.unit, blocked=code)
                 for spec in SPECS.values())


def checks_of(pair: Aligned, a: Series, b: Series, limits: Limits, floors: Floors, first: int | None = None
              ) -> tuple[tuple[Check, ...], list[Note]]:
    """The checks of one pair, and one note for every reason why one of them could not be measured or resolved.

    A blocked check has the value NaN and a code without parameters; the note beside it says the details.
    """
    if not pair.step.size:
        blank = unmeasured(limits, floors, "loss-check-no-common")
        return tuple(check for check in blank if check.name != "departure"), [note("loss-no-common-steps")]
    figures, digits = statistics(pair), resolutions(pair)
    headless = head_missing(a, b, first)
    n = int(np.count_nonzero(pair.usable | pair.broken))
    moving = pair.usable.sum() > 1 and moves(pair.d[pair.usable], pair.baseline[pair.usable])
    reasons: dict[str, Note] = {}
    checks: list[Check] = []
    for spec in (spec for spec in SPECS.values() if spec.name != "departure"):
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
        if not blocked and spec.name == "order" and (n < ORDER_STEPS or (value < spec.default and not moving)):
            checks.append(Check(spec.name, value, unit=spec.unit))  # a figure that says nothing either way
            continue
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
    notes = []
    for code, chosen in (("loss-digits-blind", blind), ("loss-digits-lifted", lifted)):
        limits = [check.limit for check in chosen if check.limit is not None]
        if limits:
            notes.append(note(code, checks=", ".join(check.name for check in chosen), more=max(
                limit.more_digits for limit in limits), digits=max(limit.resolution for limit in limits)))
    return notes


def violated(checks: tuple[Check, ...]) -> set[str]:
    """The names of the checks beyond their limits."""
    return {check.name for check in checks if check.state is State.VIOLATED}


def departure_check(figures: Departure | None, points: int, limits: Limits, floors: Floors, family: str | None,
                    scale: Scale = SHIPPED, chaos: Growth | None = None) -> tuple[Check, list[Note]]:
    """The departure held against its limits: clear, beyond, or blocked in between, with what would decide it.

    Without a family the lowest departure of all families must be beyond, and the highest clear. A difference that
    doubled steadily from a rounding error (`chaos`) is beyond nothing until a floor says how far good runs part.
    """
    spec = SPECS["departure"]
    limit = limit_for(spec, limits, floors)
    if limit.declared == spec.default:
        limit = replace(limit, declared=scale.beyond)
    if figures is None:
        needs = note("loss-short", steps=points, needs=LEAST_POINTS, more=max(0, LEAST_POINTS - points))
        return Check(spec.name, math.nan, limit, spec.unit, blocked="loss-check-short"), [needs]
    if HIDDEN * figures.digits > SPECS["tail"].default:  # what is left to see, `tail` sees as well
        limit = replace(limit, resolution=2 * limit.cap)
    low, high = span(figures, family, floors, scale)
    clear = min(scale.clear, limit.declared)
    wild = chaos if low > limit.effective and "late" not in floors.by_check else None
    if wild is not None:
        return (Check(spec.name, low, limit, spec.unit, blocked="loss-check-chaos"),
                [note("loss-chaos", doubling=wild.doubling, departure=low)])
    under = hidden(figures, family, floors, scale)
    if high <= clear and under > limit.declared:
        return (Check(spec.name, high, limit, spec.unit, blocked="loss-check-doubt"),
                [note("loss-departure-hidden", departure=high, under=under)])
    notes = _digits_of(figures, limit, floors, family, scale)
    if low > limit.declared or high <= clear or limit.blind:
        return Check(spec.name, low if low > limit.declared else high, limit, spec.unit), notes
    code = "loss-departure-doubt" if family in scale.references else "loss-departure-family"
    return (Check(spec.name, high, limit, spec.unit, blocked="loss-check-doubt"),
            [note(code, low=low, high=high, clear=clear, beyond=limit.declared)])


def _digits_of(figures: Departure, limit: Limit, floors: Floors, family: str | None, scale: Scale) -> list[Note]:
    """What the printed digits take from the departure: all of it, or what lies below them."""
    if limit.blind:
        more = max(1, math.ceil(math.log10(HIDDEN * figures.digits / SPECS["tail"].default)))
        return [note("loss-digits-blind", checks="departure", digits=figures.digits, more=more)]
    usual = min(pooled(floors, "late", scale.references[name].late) for name in known(family, scale))
    hides = HIDDEN * figures.digits
    return [note("loss-departure-digits", hides=hides)] if figures.digits > 10**usual else []


def late(checks: tuple[Check, ...], departure: Check, pair: Aligned) -> tuple[Check, ...]:
    """`checks`, those blocked that part the sides in the long run only, where the departure is not beyond.

    Good pairs go on parting (facts/loss.md: over whole runs good and bad are much harder to tell apart): a check beyond
    its limit over the whole run and within it over the weighed first steps is no verdict. Up to LATE limits: of the
    labelled good pairs none goes beyond twelve. Nor is it a pass where the run ends, or drifts, further apart than good
    ones do that start alike (LASTING), since the departure has not weighed those steps.
    """
    if departure.state is State.VIOLATED or not pair.usable.any() or np.array_equal(window_of(pair), pair.usable):
        return checks
    early = statistics(head_of(pair, window_of(pair)))
    return tuple(replace(check, blocked="loss-check-late")
                 if _only_late(check, early[check.name]) or _lasting(check, early[check.name]) else check
                 for check in checks)


def _lasting(check: Check, early: float) -> bool:
    if check.name not in ("tail", "drift") or check.limit is None or check.blocked:
        return False
    usual = max(LASTING, FLOOR_FACTOR * (check.limit.floor or 0.0))
    return bool(early <= usual < check.value <= check.limit.effective)


def _only_late(check: Check, early: float) -> bool:
    limit = check.limit
    if limit is None or check.state is not State.VIOLATED or check.name == "order" or not limit.holds(early):
        return False
    apart, allowed = ((1 - check.value, 1 - limit.effective) if check.name in CORRELATIONS
                      else (check.value, limit.effective))
    return bool(apart <= LATE * allowed)
