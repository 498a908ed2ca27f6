"""L4: is one optimizer step the same? Loss, gradients, clipping, updates, skipped steps, the optimizer's state."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence

from pytest_migparity.core.evidence import Evidence, Policy
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, Limits, limit_for
from pytest_migparity.core.verdict import Check, Coverage, Divergence, Finding, Note, Outcome, note, settle
from pytest_migparity.wire.record import Facts

from .event_relation import EPSILON, apart
from .forward import broken_outright, in_units, inputs_parted, one_sided_nan, unmeasured
from .inputs import STAGES as GIVEN
from .recorded import (
    LISTED,
    Pair,
    Pairs,
    Run,
    comparable,
    facts_of,
    first_step,
    held,
    incomparable,
    listed,
    one_sided,
    pairs_of,
    resolved,
)

GRADIENTS = ("grad", "grad-reduced", "grad-clipped")
_RANKS_AGREE = 16  # units of eps: an all-reduce leaves every rank the same sum, whatever the order


def judge_step(baseline: Evidence[Run], candidate: Evidence[Run], *,
               limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """Hold the recorded optimizer steps of two sides against each other.

    At the first step, where weights and inputs are equal: `loss`, relative; `grad`, the largest distance of a
    parameter's gradient in units of 1.03^depth * eps; `update`, the largest relative distance of a parameter's update.
    A step that moved no weight, such as a warm-up's, leaves them equal for the next.

    At every recorded step: `clip`, the largest relative difference of the clip factor; `skipped`, the steps that one
    side left out; `moved`, the largest difference of the share of elements that an update moved at all; `state`, the
    optimizer's tensors of another dtype. FAIL: a check beyond its limit, a loss or gradient that is NaN, Inf or zero on
    one side only, ranks of one side that disagree after reduction. INCONCLUSIVE: what only one side recorded, inputs of
    the first step that differ, recordings that begin with different steps, no gradient, loss or update that moved a
    weight, instrumented against plain runs. Raises nothing on bad data.
    """
    ours, theirs = baseline.runs[0].table, candidate.runs[0].table
    starts = [first_step(run) for run in (ours, theirs)]
    start = max((step for step in starts if step is not None), default=0)
    pairs = pairs_of(ours, theirs, (*GRADIENTS, "update", "state", "loss"), policy.skipped)
    facts = _both(facts_of(ours), facts_of(theirs))
    parted = inputs_parted(pairs_of(ours, theirs, GIVEN, policy.skipped), policy)
    until = min((pair.a.step for pair in parted), default=None)
    first = pairs.at(start, max(start, min(_still_equal(facts, start), sys.maxsize if until is None else until - 1)))
    unsure = [*baseline.problems, *candidate.problems, *comparable(baseline, candidate, policy.world_size),
              *one_sided(pairs), *_one_sided_facts(ours, theirs), *_vacuous(pairs, first, facts, start)]
    if starts[0] != starts[1]:
        unsure.append(note("step-other-start", **{side: "none" if step is None else step for side, step in
                                                  zip(("baseline", "candidate"), starts, strict=True)}))
    if until is not None:
        unsure.append(note("forward-inputs-differ", where=parted[0].where))
        facts = {key: both for key, both in facts.items() if key[1] < max(until, start + 1)}
    numbers = _Numbers(limits, floors, policy)
    loss, tensors, bad = numbers.loss(facts, start), *numbers.tensors(first)
    counted, where, doubts = numbers.counted(facts, pairs)
    checks = (*loss, *tensors, *counted)
    wrong = broken_outright(first.pairs)
    certain = [*_broken_losses(facts), *(item for side, run in (("baseline", ours), ("candidate", theirs))
                                         for item in ranks_apart(side, run))]
    outcome = settle(checks, failed=bool(wrong or certain), unsure=bool(unsure or doubts))
    open_ = (starts[0] != starts[1] or (until is not None and until <= start)) \
        and not (certain or one_sided_nan(first.pairs))
    if outcome is Outcome.FAIL and (open_ or incomparable(unsure)):
        outcome = Outcome.INCONCLUSIVE  # another input gives another gradient: L2 says which
    marked = {id(pair) for pair in (*wrong, *bad)}
    worst = [pair for pair in first.pairs if id(pair) in marked]
    notes = [*unsure, *doubts, *certain, *(pair.note() for pair in worst[:LISTED]), *(item[1] for item in where)]
    return Finding(outcome, checks, _coverage(pairs), first_divergence=_first(loss, worst, where, facts, start),
                   notes=tuple(notes), mode=policy.mode)


_BothFacts = Mapping[tuple[int, int], tuple[Facts, Facts]]


def _both(ours: Mapping[tuple[int, int], Facts], theirs: Mapping[tuple[int, int], Facts]) -> _BothFacts:
    """The steps that both sides recorded, by rank and step, in order of the steps."""
    return {key: (ours[key], theirs[key]) for key in sorted(ours, key=lambda key: (key[1], key[0])) if key in theirs}


def _still_equal(facts: _BothFacts, start: int) -> int:
    """The last step from `start` on that both sides began with equal weights: no recorded step before moved any."""
    moved: dict[int, bool] = {}
    for (_, step), both in facts.items():
        moved[step] = moved.get(step, False) or any(each.moved != 0 for each in both)
    last = start
    while not moved.get(last, True) and last + 1 in moved:
        last += 1
    return last


def _one_sided_facts(ours: Run, theirs: Run) -> list[Note]:
    """Steps whose numbers one side alone states."""
    keys = [facts_of(run).keys() for run in (ours, theirs)]
    found = []
    for side, alone in (("baseline", keys[0] - keys[1]), ("candidate", keys[1] - keys[0])):
        if alone:
            found.append(note("step-facts-one-sided", side=side, count=len(alone), step=min(step for _, step in alone)))
    return found


def _vacuous(pairs: Pairs, first: Pairs, facts: _BothFacts, start: int) -> list[Note]:
    """What proves nothing: no gradient, no update that moved a weight, NaN on both sides, no loss, none above zero."""
    found = []
    if not any(pair.a.stage in GRADIENTS and pair.apart.fault != "vacuous" for pair in first.pairs):
        found.append(note("step-nothing"))
    if not (any(pair.a.stage == "update" and pair.apart.fault != "vacuous" for pair in pairs.pairs)
            or any(a.moved or b.moved for a, b in facts.values())):
        found.append(note("step-no-update"))
    broken = [pair.where for pair in first.pairs if pair.apart.broken]
    if broken:
        found.append(note("record-broken-alike", names=listed(broken)))
    losses = [(step, a.loss, b.loss) for (_, step), (a, b) in facts.items()
              if a.loss is not None and b.loss is not None]
    if not any(step == start for step, _, _ in losses):
        found.append(note("step-no-loss", step=start))
    vacuous = [row for row in losses if not (_sound(row[1]) or _sound(row[2]))]
    found += [note("step-loss-vacuous", step=step, baseline=a, candidate=b) for step, a, b in vacuous[:1]]
    return found


def _sound(loss: float) -> bool:
    return math.isfinite(loss) and loss != 0


def _broken_losses(facts: _BothFacts) -> list[Note]:
    """A loss that is zero or not finite on one side: a masked NaN is never a good loss."""
    rows = [(step, a.loss, b.loss) for (_, step), (a, b) in facts.items()
            if a.loss is not None and b.loss is not None and _sound(a.loss) != _sound(b.loss)]
    return [note("step-loss-broken", step=step, baseline=a, candidate=b) for step, a, b in rows[:1]]


class _Numbers:
    """The checks of L4 under one set of limits."""

    def __init__(self, limits: Limits, floors: Floors, policy: Policy) -> None:
        self._limits, self._floors, self._policy = limits, floors, policy

    def _check(self, name: str, value: float) -> Check:
        spec = LEVELS["L4"].check(name)
        return Check(name, value, limit_for(spec, self._limits, self._floors), spec.unit)

    def loss(self, facts: _BothFacts, start: int) -> tuple[Check, ...]:
        """The relative difference of the first step's loss; the largest over the ranks."""
        found = [abs(b.loss - a.loss) / abs(a.loss)
                 for (_, step), (a, b) in facts.items()
                 if step == start and a.loss is not None and b.loss is not None and _sound(a.loss) and _sound(b.loss)]
        return (self._check("loss", max(found)),) if found else ()

    def tensors(self, first: Pairs) -> tuple[tuple[Check, ...], list[Pair]]:
        """The checks of gradients and updates at the first step, and the pairs that break one."""
        checks, bad = [], []
        for name, stages in (("grad", GRADIENTS), ("update", ("update",))):
            of_stage = [pair for pair in first.pairs if pair.a.stage in stages]
            rows = [(pair, self._size(name, pair, pair.apart.relative), self._size(name, pair, pair.apart.floor))
                    for pair in resolved(of_stage)]
            blocked = unmeasured(of_stage)
            if rows or blocked:
                check, broken = held(LEVELS["L4"].check(name), rows, self._limits, self._floors, blocked=blocked)
                checks.append(check)
                bad += broken
        return tuple(checks), bad

    def _size(self, name: str, pair: Pair, value: float) -> float:
        return in_units(pair, value, self._policy) if name == "grad" else value

    def counted(self, facts: _BothFacts, pairs: Pairs
                ) -> tuple[tuple[Check, ...], list[tuple[Divergence, Note]], list[Note]]:
        """clip, skipped, moved and state; where each is first broken; and what only one side states."""
        checks, where, unsure = [], [], [*_parameters(facts)]
        for name in ("loss", "clip", "skipped", "moved"):
            rows = [(step, _stated(name, a), _stated(name, b)) for (_, step), (a, b) in facts.items()]
            known = [(step, a, b) for step, a, b in rows if a is not None and b is not None]
            if any((a is None) != (b is None) for _, a, b in rows):
                unsure.append(note("step-one-sided", name=name))
            if name == "loss" or not known:
                continue  # a loss is held against its limit at the first step alone
            broken = [step for step, a, b in known if not (math.isfinite(a) or math.isfinite(b))]
            if broken:
                unsure.append(note("record-broken-alike", names=f"step {broken[0]} {name}"))
            values = [_distance(name, a, b) for _, a, b in known]
            check = self._check(name, sum(values) if name == "skipped" else max(values))
            checks.append(check)
            assert check.limit is not None
            for (step, a, b), value in zip(known, values, strict=True):
                if not check.limit.holds(value):
                    where.append((Divergence("step", step, a, b),
                                  note("step-fact-differs", name=name, step=step, baseline=a, candidate=b)))
                    break
        states = [pair for pair in pairs.pairs if pair.a.stage == "state"]
        if states:
            other = [pair for pair in states if pair.a.tensor.dtype != pair.b.tensor.dtype]
            checks.append(self._check("state", float(len(other))))
            where += [(Divergence("tensor", pair.where, pair.a.tensor.dtype, pair.b.tensor.dtype),
                       note("step-state-dtype", where=pair.where, baseline=pair.a.tensor.dtype,
                            candidate=pair.b.tensor.dtype)) for pair in other[:1]]
        return tuple(checks), where, unsure


def _stated(name: str, facts: Facts) -> float | None:
    if name == "moved":
        return None if facts.moved is None or not facts.parameters else facts.moved / facts.parameters
    value = {"loss": facts.loss, "clip": facts.clip_factor, "skipped": facts.skipped}[name]
    return None if value is None else float(value)


def _parameters(facts: _BothFacts) -> list[Note]:
    """Sides that train different numbers of weights: equal shares of them are not the same."""
    rows = [(step, a.parameters, b.parameters) for (_, step), (a, b) in facts.items()
            if a.parameters is not None and b.parameters is not None and a.parameters != b.parameters]
    return [note("step-parameters", step=step, baseline=a, candidate=b) for step, a, b in rows[:1]]


def _distance(name: str, a: float, b: float) -> float:
    """How far two numbers of a step are apart; a number against none is beyond any limit."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf if math.isfinite(a) or math.isfinite(b) else 0.0
    if name == "clip":
        return abs(b - a) / max(abs(a), abs(b)) if a or b else 0.0
    return abs(b - a)


def ranks_apart(side: str, run: Run) -> list[Note]:
    """Gradients that should be the same on every rank after the reduction, and are not: needs no other side."""
    found: list[Note] = []
    if len(run) < 2:
        return found
    reduced = [{(event.step, event.name): event for event in recording.events if event.stage == "grad-reduced"}
               for recording in run]
    for key, event in reduced[0].items():
        for recording, others in zip(run[1:], reduced[1:], strict=True):
            other = others.get(key)
            if other is None:
                continue
            far = apart(event, other)
            allowed = _RANKS_AGREE * EPSILON.get(event.tensor.dtype, EPSILON["float32"])
            if not far.equal and (far.fault not in ("", "vacuous") or far.low > allowed):
                found.append(note("step-ranks-differ", side=side, step=key[0], name=key[1], rank=recording.rank,
                                  relative=far.relative))
                return found
    return found


def _first(loss: Sequence[Check], worst: Sequence[Pair], where: Sequence[tuple[Divergence, Note]],
           facts: _BothFacts, start: int) -> Divergence | None:
    """The loss comes before the gradients, these before the updates; then facts by step."""
    if any(check.limit is not None and not check.limit.holds(check.value) for check in loss):
        a, b = next(both for (_, step), both in facts.items() if step == start and both[0].loss != both[1].loss)
        return Divergence("step", f"{start}: loss", a.loss or 0.0, b.loss or 0.0)
    if worst:
        return worst[0].divergence()
    return min((item for item, _ in where), key=lambda item: item.at if isinstance(item.at, int) else start,
               default=None)


def _coverage(pairs: Pairs) -> Coverage:
    return Coverage("tensors", sum(pair.apart.fault not in ("vacuous", "unmeasured") for pair in pairs.pairs),
                    pairs.total, len(pairs.baseline_only), len(pairs.candidate_only))
