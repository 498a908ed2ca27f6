"""Dumps of statistics, judged by our rules: L3 by what modules and operations gave, L1 and L4 by weights and gradients.

Outputs that agree in extremes, mean and norm over a whole forward pass are evidence, because a permuted weight changes
what comes after it. Weights and gradients that do are none: they can fail a level, never pass it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

from pytest_migparity.core.dumped import SCALARS, Dump
from pytest_migparity.core.evidence import Evidence, Policy
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, Limits, limit_for
from pytest_migparity.core.verdict import Check, Finding, Note, Outcome, note, settle

from .dump_pairs import DumpPair, Key, Metrics, content, dump_pairs, key_of, unchanged_steps
from .event_relation import EPSILON
from .recorded import LISTED, same_file

_SAME_WEIGHT = 1e-5  # what printing and another order of a sum in float32 leave of a norm or a mean
_SCALED = 1e-3
_EVERY_OPERATION = ("L1", "mix")  # the levels of a dump that show what happens between two modules


def judge_dumped_forward(baseline: Evidence[Dump], candidate: Evidence[Dump], *,
                         limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """L3: hold the outputs of two dumps against each other, at the steps that both began with the weights they loaded.

    `error` is the largest distance of the statistics in units of 1.03^depth * eps, `norm` the largest |ln| of a ratio
    of norms, `cosine` the least cosine where a comparison gives one. FAIL too: another shape, NaN or Inf on one side,
    another number passed to an operation. INCONCLUSIVE: outputs that one side alone has (unless the manifest says why),
    inputs of the model that differ, no statistics, NaN on both sides, nothing but zeros. A PASS says that it rests on
    statistics. Raises nothing on bad data.
    """
    return judge_outputs(baseline.runs[0].table, candidate.runs[0].table, _doubts(baseline, candidate, policy),
                         limits=limits, floors=floors, policy=policy)


def judge_outputs(ours: Dump, theirs: Dump, doubts: Sequence[Note], metrics: Metrics = MappingProxyType({}), *,
                  limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """As `judge_dumped_forward`, of two tables. `doubts` keep it from passing; `metrics` as in `dump_pairs`."""
    pairs = dump_pairs(ours, theirs, ("output",), policy, metrics)
    unsure = [*doubts, *pairs.open()]
    checks, beyond = checks_of(pairs.pairs, limits, floors, policy, level="L3")
    walked = dump_pairs(ours, theirs, ("input", "output"), policy, metrics).pairs
    bad = _first_apart(walked, beyond, ours, checks[0], policy)
    wrong = [pair for pair, origin in bad if pair.wrong or origin == "inner"]
    outcome = settle(checks, failed=bool(wrong), unsure=bool(unsure))
    if bad and bad[0][1] == "given":
        unsure.append(note("forward-inputs-differ", where=bad[0][0].where))
        broken = any(pair.fault == "non-finite" for pair in pairs.pairs)
        outcome = Outcome.FAIL if broken else Outcome.INCONCLUSIVE  # another input gives another output
    elif bad and bad[0][1] == "inner":
        unsure.append(note("dump-between", where=bad[0][0].where))
    notes = [*unsure, *basis(pairs.pairs), *_later(ours, theirs), *(pair.note() for pair, _ in bad[:LISTED])]
    return Finding(outcome, checks, pairs.coverage(), first_divergence=bad[0][0].divergence() if bad else None,
                   notes=tuple(notes), mode=policy.mode)


def judge_dumped_weights(baseline: Evidence[Dump], candidate: Evidence[Dump], *,
                         limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """L1: statistics of weights can fail, never pass: equal ones do not see a permutation. Equal checksums do."""
    pairs = dump_pairs(baseline.runs[0].table, candidate.runs[0].table, ("weight",), policy)
    unsure = [*_doubts(baseline, candidate, policy), *pairs.open()]
    if policy.has_dataset:
        unsure.append(note("identity-absent", what="data"))
    bad = [pair for pair in pairs.pairs
           if pair.wrong or (not pair.fault and pair.distance > _same_weight(pair, policy))]
    cast = [pair for pair in pairs.pairs if _is_cast(pair, policy)]
    if cast:
        unsure.append(note("identity-cast-unproved", count=len(cast), dtype=policy.cast or ""))
    level = LEVELS["L1"]
    counts = {"differing": len(bad), "unmatched": len(pairs.baseline_only) + len(pairs.candidate_only)}
    checks = tuple(Check(name, float(value), limit_for(level.check(name), limits, floors), level.check(name).unit)
                   for name, value in counts.items()) if pairs.pairs else ()
    unproved = sum(not pair.exact for pair in pairs.pairs)
    if unproved:
        unsure.append(note("dump-weights-statistics", count=unproved))
    notes = [*unsure, *_by_checksum(pairs.pairs), *(_scaled(pair) or pair.note() for pair in bad[:LISTED])]
    if len(bad) > LISTED:
        notes.append(note("identity-more", what="weights", count=len(bad) - LISTED))
    return Finding(settle(checks, unsure=bool(unsure)), checks, pairs.coverage(),
                   first_divergence=bad[0].divergence() if bad else None, notes=tuple(notes), mode=policy.mode)


def judge_dumped_step(baseline: Evidence[Dump], candidate: Evidence[Dump], *,
                      limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """L4: gradients of the first step can fail, never pass: a dump shows neither clipping, nor updates, nor the loss.

    INCONCLUSIVE too where the inputs of the model already differ: that is L2's to fail.
    """
    ours, theirs = baseline.runs[0].table, candidate.runs[0].table
    pairs = dump_pairs(ours, theirs, ("grad",), policy)
    unsure = [*_doubts(baseline, candidate, policy), *pairs.open(),
              note("dump-step-statistics", count=len(pairs.pairs))]
    checks, beyond = checks_of(pairs.pairs, limits, floors, policy, level="L4")
    bad = [pair for pair in pairs.pairs if pair.wrong or pair.key in beyond]
    outcome = settle(checks, failed=any(pair.wrong for pair in bad), unsure=True)
    inputs = _first_apart(dump_pairs(ours, theirs, ("input",), policy).pairs, frozenset(), ours, checks[0], policy)
    if inputs and inputs[0][1] == "given":
        unsure.append(note("forward-inputs-differ", where=inputs[0][0].where))
        outcome = Outcome.INCONCLUSIVE
    notes = [*unsure, *(pair.note() for pair in bad[:LISTED])]
    return Finding(outcome, checks, pairs.coverage(), first_divergence=bad[0].divergence() if bad else None,
                   notes=tuple(notes), mode=policy.mode)


def checks_of(pairs: Sequence[DumpPair], limits: Limits, floors: Floors, policy: Policy, *,
              level: str) -> tuple[tuple[Check, ...], frozenset[Key]]:
    """The checks of L3 (error, norm, and cosine where known) or L4 (grad), and the keys of pairs that break one."""
    measured = [pair for pair in pairs if not pair.fault]
    known = [pair for pair in measured if not math.isnan(pair.cosine)]
    error = "error" if level == "L3" else "grad"
    values: dict[str, list[tuple[float, DumpPair]]] = {
        error: [(pair.in_units(pair.distance, policy), pair) for pair in measured]}
    if level == "L3":
        values["norm"] = [(max(pair.stretch - 2 * pair.blur, 0.0), pair) for pair in measured]
        values |= {"cosine": [(pair.cosine, pair) for pair in known]} if known else {}
    blur = {error: max((pair.in_units(pair.blur, policy) for pair in measured), default=0.0)}
    checks = []
    beyond: set[Key] = set()
    for name, found in values.items():
        spec = LEVELS[level].check(name)
        limit = limit_for(spec, limits, floors, blur.get(name, 0.0))
        worst = (min if name == "cosine" else max)((value for value, _ in found), default=math.nan)
        checks.append(Check(name, worst, limit, spec.unit, "" if found else "forward-unmeasured"))
        beyond |= {pair.key for value, pair in found if not limit.holds(value)}
    return tuple(checks), frozenset(beyond)


def basis(pairs: Sequence[DumpPair]) -> list[Note]:
    """What the comparison rests on, where that is less than the tensors themselves."""
    found = _by_checksum(pairs)
    rest = sum(not pair.fault and not pair.exact and math.isnan(pair.cosine) for pair in pairs)
    if rest:
        found.append(note("dump-statistics", count=rest))
    other = [pair for pair in pairs if pair.a.dtype != pair.b.dtype]
    if other:
        found.append(note("dump-dtypes", count=len(other), where=other[0].where, baseline=other[0].a.dtype,
                          candidate=other[0].b.dtype))
    return found


def _by_checksum(pairs: Sequence[DumpPair]) -> list[Note]:
    exact = sum(pair.exact for pair in pairs)
    return [note("dump-checksums", count=exact)] if exact else []


def _doubts(baseline: Evidence[Dump], candidate: Evidence[Dump], policy: Policy) -> list[Note]:
    """Why two dumps are not two whole dumps of the same thing."""
    found = [item for side in (baseline, candidate) for item in (*side.problems, *side.runs[0].repairs)
             if item.code != "dump-skipped"]
    for side in (baseline, candidate):
        ranks = sorted({tensor.rank for tensor in side.runs[0].table.tensors})
        if policy.world_size and ranks != list(range(policy.world_size)):
            found.append(note("record-ranks", side=side.side, ranks=", ".join(map(str, ranks[:LISTED])),
                              expected=policy.world_size, world=len(ranks)))
    return [*found, *same_file(baseline, candidate)]


def _later(ours: Dump, theirs: Dump) -> list[Note]:
    """That later steps, which begin with updated weights, were not held against each other."""
    steps = unchanged_steps(ours, theirs)
    later = {tensor.step for dump in (ours, theirs) for tensor in dump.tensors if tensor.step >= steps.stop}
    return [note("dump-later", step=steps.stop - 1, count=len(later))] if later and steps else []


def _first_apart(pairs: Sequence[DumpPair], beyond: frozenset[Key], ours: Dump, error: Check,
                 policy: Policy) -> list[tuple[DumpPair, str]]:
    """The pairs that differ, in the order of execution, with the origin of those that are inputs.

    Parameters are left out: L1 speaks of those, and the outputs they lead to are here.
    """
    origins = _origins(ours)
    found = []
    for pair in pairs:
        origin = origins.get(pair.key, "")
        parted = not pair.fault and bool(origin) and error.limit is not None and not error.limit.holds(
            pair.in_units(pair.distance, policy))
        if origin != "weight" and (pair.wrong or parted or pair.key in beyond):
            found.append((pair, origin))
    return found


def _origins(dump: Dump) -> dict[Key, str]:
    """Where each input of an operation or module comes from, as far as statistics tell one tensor from another.

    `weight`: a parameter; `argument`: a Python number; `given`: handed to the model, as is every input of the first
    module, and in a dump of every operation what no operation gave; `inner`: computed between two modules; empty: the
    output of a module or operation before it, of which that one speaks.
    """
    weights = {content(tensor) for tensor in dump.tensors if tensor.stage == "weight"}
    seen: dict[tuple[int, int], set[tuple[object, ...]]] = {}
    begun: set[tuple[int, int]] = set()
    found = {}
    every = dump.level in _EVERY_OPERATION
    for tensor in dump.tensors:
        place, held = (tensor.step, tensor.rank), content(tensor)
        known = seen.setdefault(place, set())
        if tensor.stage == "output":
            begun.add(place)
        elif tensor.stage == "input":
            new = held not in known
            found[key_of(tensor)] = (
                "argument" if tensor.dtype in SCALARS else
                "weight" if held in weights or (every and new and tensor.trained) else
                "given" if place not in begun or (every and new) else "inner" if new else "")
        if tensor.stage in ("input", "output"):
            known.add(held)
    return found


def _is_cast(pair: DumpPair, policy: Policy) -> bool:
    """Is this weight one that the manifest declares to be rounded on one side?"""
    return pair.a.dtype != pair.b.dtype and policy.cast in (pair.a.dtype, pair.b.dtype)


def _same_weight(pair: DumpPair, policy: Policy) -> float:
    """By how much the statistics of a weight may differ: by the rounding of a declared cast, else by printing alone."""
    return EPSILON.get(policy.cast or "", _SAME_WEIGHT) if _is_cast(pair, policy) else _SAME_WEIGHT


def _scaled(pair: DumpPair) -> Note | None:
    """All four statistics by one factor: the tensor was scaled."""
    a, b = pair.a, pair.b
    if pair.fault or not a.norm:
        return None
    factor = b.norm / a.norm
    off = max(abs(b.low - factor * a.low), abs(b.high - factor * a.high)) / max(abs(a.low), abs(a.high), 1e-300)
    if off > 0.02 * abs(factor - 1) or abs(factor - 1) < _SCALED:
        return None
    return note("dump-scaled", where=pair.where, factor=f"{factor:.5f}")


