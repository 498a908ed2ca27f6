"""L3: at which module do the activations first part? Module outputs, in execution order, of steps before any update.

Both sides start these steps from the same weights and inputs, so that what remains is arithmetic: the L2 distance of a
module's output over its norm is held against 4 * 1.03^depth * eps, Megatron-LM's published bound for two
implementations of one layer stack, eps being the machine epsilon of the declared precision.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np

from pytest_migparity.core.evidence import Evidence, Policy
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, Limits
from pytest_migparity.core.verdict import Check, Coverage, Finding, Note, Outcome, note, settle

from .event_relation import epsilon
from .inputs import STAGES as GIVEN
from .recorded import (
    LISTED,
    Pair,
    Pairs,
    Run,
    comparable,
    first_update,
    held,
    incomparable,
    listed,
    one_sided,
    pairs_of,
    resolved,
)

GROWTH = 1.03
"""What rounding may grow by from one module to the next."""
_DEEPEST = 100  # modules; a recorder counts every call, and 1.03^500 would excuse anything


def judge_forward(baseline: Evidence[Run], candidate: Evidence[Run], *,
                  limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """Hold the outputs of two models' modules against each other, at the steps that both began unchanged.

    `error` is the largest distance in units of 1.03^depth * eps, `cosine` the least cosine, `norm` the largest |ln| of
    a ratio of norms. FAIL: a check beyond its limit, an output of another shape or order, NaN or Inf or only zeros on
    one side. INCONCLUSIVE: modules on one side only (unless the manifest says why), inputs that already differ, outputs
    that prove nothing (all zero, NaN on both sides), sides whose first update is not the same step, nothing recorded.
    Raises nothing on bad data.
    """
    ours, theirs = baseline.runs[0].table, candidate.runs[0].table
    updates = [first_update(run) for run in (ours, theirs)]
    last = min((step for step in updates if step is not None), default=sys.maxsize)
    pairs = pairs_of(ours, theirs, ("output",), policy.skipped).at(0, last)
    unsure = [*baseline.problems, *candidate.problems, *comparable(baseline, candidate, policy.world_size),
              *one_sided(pairs), *_vacuous(pairs)]
    if updates[0] != updates[1]:
        unsure.append(note("forward-other-update", **{side: "none" if step is None else step for side, step in
                                                      zip(("baseline", "candidate"), updates, strict=True)}))
    parted = inputs_parted(pairs_of(ours, theirs, GIVEN, policy.skipped).at(0, last), policy)
    if parted:
        unsure.append(note("forward-inputs-differ", where=parted[0].where))
    compared = [pair for pair in pairs.pairs if pair.apart.fault != "vacuous"]
    wrong = broken_outright(compared)
    checks, beyond = checks_of(compared, limits, floors, policy, "L3")
    marked = {id(pair) for pair in (*wrong, *beyond)}
    bad = [pair for pair in compared if id(pair) in marked]
    outcome = settle(checks, failed=bool(wrong), unsure=bool(unsure))
    if outcome is Outcome.FAIL and (incomparable(unsure) or (parted and not one_sided_nan(pairs.pairs))):
        outcome = Outcome.INCONCLUSIVE  # another input gives another output: L2 says which
    notes = [*unsure, *(pair.note() for pair in bad[:LISTED])]
    return Finding(outcome, (*checks, *_growth(compared)),
                   Coverage("modules", len(compared), pairs.total, len(pairs.baseline_only), len(pairs.candidate_only)),
                   first_divergence=bad[0].divergence() if bad else None, notes=tuple(notes), mode=policy.mode)


def inputs_parted(given: Pairs, policy: Policy) -> list[Pair]:
    """Inputs and draws of the step that rounding alone does not explain."""
    found = []
    for pair in given.pairs:
        allowed = 4 * epsilon(policy.precisions, pair.a)
        if not pair.apart.equal and (pair.apart.fault not in ("", "vacuous")
                                     or pair.apart.relative > max(allowed, 2 * pair.apart.floor)):
            found.append(pair)
    return found


def broken_outright(pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs with a difference that no limit speaks about: shape, order, NaN or Inf or nothing but zeros on one side."""
    return [pair for pair in pairs if pair.apart.fault in ("shape", "non-finite", "zeroed", "permuted")]


def one_sided_nan(pairs: Sequence[Pair]) -> bool:
    """Has one side NaN or Inf where the other has not? No other input excuses that."""
    return any(pair.apart.fault == "non-finite" for pair in pairs)


def in_units(pair: Pair, value: float, policy: Policy) -> float:
    """A relative distance in units of 1.03^depth * eps."""
    return value / (GROWTH**min(pair.a.depth, _DEEPEST) * epsilon(policy.precisions, pair.a))


def checks_of(pairs: Sequence[Pair], limits: Limits, floors: Floors, policy: Policy,
              level: str) -> tuple[tuple[Check, ...], list[Pair]]:
    """error, cosine and norm over all pairs, and the pairs that break one of them."""
    measured = resolved(pairs)
    rows = {"error": [(pair, in_units(pair, pair.apart.relative, policy), in_units(pair, pair.apart.floor, policy))
                      for pair in measured],
            "cosine": [(pair, pair.apart.cosine, pair.apart.floor**2 / 2) for pair in measured],
            "norm": [(pair, abs(math.log(pair.apart.norm_ratio)), 0.0) for pair in measured]}
    blocked = unmeasured(pairs) if measured else "forward-unmeasured"
    found = [held(LEVELS[level].check(name), each, limits, floors, blocked=blocked) for name, each in rows.items()]
    return tuple(check for check, _ in found), [pair for _, broken in found for pair in broken]


def unmeasured(pairs: Sequence[Pair]) -> str:
    """The reason that keeps a check from passing where something of its pairs could not be measured, else nothing."""
    return "forward-unmeasured" if any(pair.apart.fault == "unmeasured" for pair in pairs) else ""


def _vacuous(pairs: Pairs) -> list[Note]:
    found = []
    if not pairs.pairs:
        found.append(note("forward-nothing"))
    elif all(pair.apart.fault == "vacuous" for pair in pairs.pairs):
        found.append(note("forward-vacuous"))
    broken = [pair.where for pair in pairs.pairs if pair.apart.broken]
    if broken:
        found.append(note("record-broken-alike", names=listed(broken)))
    if pairs.pairs and pairs.pairs[-1].apart.fault == "vacuous" and len(found) == 0:
        found.append(note("forward-vacuous-output", where=pairs.pairs[-1].where))
    return found


def _growth(pairs: Sequence[Pair]) -> tuple[Check, ...]:
    """The figure `growth`: the factor by which the distance grows per module, by least squares of its logarithm."""
    points = [(pair.a.depth, math.log(pair.apart.relative)) for pair in pairs
              if not pair.apart.fault and pair.apart.relative > pair.apart.floor]
    if len({depth for depth, _ in points}) < 3:
        return ()
    depth, size = np.array(points).T
    return (Check("growth", float(np.exp(np.polyfit(depth, size, 1)[0])), unit="x per module"),)
