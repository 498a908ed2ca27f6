"""Dumps of statistics, judged by our rules: L3 by what modules and operations gave, L1 by what is said of weights.

Extremes, mean and norm are blind to any reordering and, mean apart, to signs. Outputs that agree in all four over a
whole forward pass are evidence, because a permuted weight changes what comes after it; weights that do are none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pytest_migparity.core.dumped import Dump, DumpedTensor
from pytest_migparity.core.evidence import Evidence, Policy
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, Limits, limit_for
from pytest_migparity.core.verdict import Check, Coverage, Divergence, Finding, Note, Scalar, note, settle

from .event_relation import EPSILON
from .forward import GROWTH
from .recorded import LISTED, listed, same_file

_SAME_WEIGHT = 1e-5  # what printing and another order of a sum in float32 leave of a norm or a mean
_SCALED = 1e-3

_Key = tuple[int, int, str, str]


@dataclass(frozen=True, slots=True)
class _Pair:
    a: DumpedTensor
    b: DumpedTensor
    depth: int
    fault: str
    distance: float

    @property
    def where(self) -> str:
        """Step, stage and name, and the rank where it is not the first."""
        return f"{f'rank {self.a.rank} ' if self.a.rank else ''}step {self.a.step} {self.a.stage} {self.a.name}"

    def note(self) -> Note:
        """In what the two differ."""
        params: dict[str, Scalar] = {"where": self.where, "distance": self.distance}
        for side, tensor in (("baseline", self.a), ("candidate", self.b)):
            params[side] = (f"{tensor.dtype} {list(tensor.shape)}" if self.fault == "shape" else
                            f"{tensor.low:.6g} .. {tensor.high:.6g}, mean {tensor.mean:.6g}, norm {tensor.norm:.6g}")
        return Note(f"dump-{self.fault or 'apart'}", params)


def judge_dumped_forward(baseline: Evidence[Dump], candidate: Evidence[Dump], *,
                         limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """L3: hold the outputs of two dumps against each other.

    `error` is the largest of the relative differences of norm and extremes and of the difference of means over the root
    mean square, in units of 1.03^depth * eps; equal checksums are equal tensors. FAIL too: another shape, NaN or Inf on
    one side. INCONCLUSIVE: outputs that one side alone has, no statistics, nothing but zeros. A PASS says that it rests
    on statistics.
    """
    pairs, alone = _paired(baseline.runs[0].table, candidate.runs[0].table, ("output",), policy)
    given, _ = _paired(baseline.runs[0].table, candidate.runs[0].table, ("input",), policy)
    unsure = [item for side in (baseline, candidate) for item in (*side.problems, *side.runs[0].repairs)
              if item.code != "dump-skipped"]
    unsure += [*_open(pairs, alone), *same_file(baseline, candidate)]
    spec = LEVELS["L3"].check("error")
    measured = [pair for pair in pairs if not pair.fault]
    values = [pair.distance / (GROWTH**pair.depth * _epsilon(pair, policy)) for pair in measured]
    check = Check("error", max(values, default=math.nan), limit_for(spec, limits, floors), spec.unit,
                  "" if measured else "forward-unmeasured")
    assert check.limit is not None
    wrong = [pair for pair in pairs if pair.fault in ("shape", "non-finite")]
    bad = [pair for pair in pairs if pair in wrong or
           (not pair.fault and not check.limit.holds(pair.distance / (GROWTH**pair.depth * _epsilon(pair, policy))))]
    notes = [*unsure, note("dump-statistics", count=len(measured)), *(pair.note() for pair in bad[:LISTED])]
    if given and given[0].fault in ("shape", "non-finite"):
        notes.append(given[0].note())
    return Finding(settle((check,), failed=bool(wrong), unsure=bool(unsure)), (check,), _coverage(pairs, alone),
                   first_divergence=_divergence(bad[0]) if bad else None, notes=tuple(notes), mode=policy.mode)


def judge_dumped_weights(baseline: Evidence[Dump], candidate: Evidence[Dump], *,
                         limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """L1: statistics of weights can fail, never pass: equal ones do not see a permutation."""
    pairs, alone = _paired(baseline.runs[0].table, candidate.runs[0].table, ("weight",), policy)
    unsure = [*baseline.problems, *candidate.problems, *_open(pairs, alone)]
    bad = [pair for pair in pairs if pair.fault in ("shape", "non-finite") or
           (not pair.fault and pair.distance > _SAME_WEIGHT)]
    level = LEVELS["L1"]
    checks = tuple(Check(name, float(value), limit_for(level.check(name), limits, floors), level.check(name).unit)
                   for name, value in (("differing", len(bad)), ("unmatched", sum(map(len, alone)))))
    unsure.append(note("dump-weights-statistics", count=len(pairs)))
    notes = [*unsure, *(_scaled(pair) or pair.note() for pair in bad[:LISTED])]
    return Finding(settle(checks, unsure=True), checks, _coverage(pairs, alone),
                   first_divergence=_divergence(bad[0]) if bad else None, notes=tuple(notes), mode=policy.mode)


def _paired(ours: Dump, theirs: Dump, stages: tuple[str, ...],
            policy: Policy) -> tuple[list[_Pair], tuple[list[str], list[str]]]:
    """Pairs in the baseline's order, and the names that one side alone has."""
    one, other = _by_key(ours, stages, policy), _by_key(theirs, stages, policy)
    depths: dict[tuple[int, int], int] = {}
    pairs = []
    for key, tensor in one.items():
        depth = depths.get(key[:2], 0)
        depths[key[:2]] = depth + 1
        if key in other:
            pairs.append(_compared(tensor, other[key], depth))
    return pairs, ([key[3] for key in one if key not in other], [key[3] for key in other if key not in one])


def _by_key(dump: Dump, stages: tuple[str, ...], policy: Policy) -> Mapping[_Key, DumpedTensor]:
    return {(tensor.step, tensor.rank, tensor.stage, tensor.name): tensor for tensor in dump.tensors
            if tensor.stage in stages and not any(fnmatchcase(tensor.name, pattern) for pattern in policy.skipped)}


def _compared(a: DumpedTensor, b: DumpedTensor, depth: int) -> _Pair:
    if a.shape != b.shape:
        return _Pair(a, b, depth, "shape", math.inf)
    if a.checksum and a.checksum == b.checksum and a.dtype == b.dtype:
        return _Pair(a, b, depth, "", 0.0)
    sides = [(tensor.low, tensor.high, tensor.mean, tensor.norm) for tensor in (a, b)]
    known = [any(not math.isnan(value) for value in side) for side in sides]
    finite = [all(map(math.isfinite, side)) for side in sides]
    if not all(known) and not any(finite):
        return _Pair(a, b, depth, "unknown", math.nan)
    if finite[0] != finite[1]:
        return _Pair(a, b, depth, "non-finite", math.inf)
    if not finite[0]:
        return _Pair(a, b, depth, "broken", math.nan)
    if a.norm == b.norm == 0:
        return _Pair(a, b, depth, "vacuous", 0.0)
    return _Pair(a, b, depth, "", _distance(a, b))


def _distance(a: DumpedTensor, b: DumpedTensor) -> float:
    """The largest of: norms, over the baseline's; extremes, over its largest; means, over its root mean square."""
    largest = max(abs(a.low), abs(a.high), 1e-300)
    mean_square = max(a.norm / math.sqrt(max(math.prod(a.shape), 1)), 1e-300)
    return max(abs(b.norm - a.norm) / max(a.norm, 1e-300), abs(b.low - a.low) / largest, abs(b.high - a.high) / largest,
               abs(b.mean - a.mean) / mean_square)


def _epsilon(pair: _Pair, policy: Policy) -> float:
    chosen = [EPSILON[name] for name in policy.precisions if name in EPSILON]
    return max(chosen) if chosen else EPSILON.get(pair.a.dtype, EPSILON["float32"])


def _open(pairs: list[_Pair], alone: tuple[list[str], list[str]]) -> list[Note]:
    found = [note("record-one-sided", side=side, count=len(names), names=listed(names))
             for side, names in zip(("baseline", "candidate"), alone, strict=True) if names]
    for fault, code in (("unknown", "dump-unknown"), ("broken", "record-broken-alike")):
        names = [pair.where for pair in pairs if pair.fault == fault]
        if names:
            found.append(note(code, names=listed(names)))
    if not pairs:
        found.append(note("forward-nothing"))
    elif all(pair.fault == "vacuous" for pair in pairs):
        found.append(note("forward-vacuous"))
    return found


def _scaled(pair: _Pair) -> Note | None:
    """All four statistics by one factor: the tensor was scaled."""
    a, b = pair.a, pair.b
    if pair.fault or not a.norm:
        return None
    factor = b.norm / a.norm
    off = max(abs(b.low - factor * a.low), abs(b.high - factor * a.high)) / max(abs(a.low), abs(a.high), 1e-300)
    if off > 0.02 * abs(factor - 1) or abs(factor - 1) < _SCALED:
        return None
    return note("dump-scaled", where=pair.where, factor=f"{factor:.5f}")


def _divergence(pair: _Pair) -> Divergence:
    if pair.fault == "shape":
        return Divergence("tensor", pair.where, f"{list(pair.a.shape)}", f"{list(pair.b.shape)}")
    return Divergence("tensor", pair.where, pair.a.norm, pair.b.norm)


def _coverage(pairs: list[_Pair], alone: tuple[list[str], list[str]]) -> Coverage:
    return Coverage("tensors", sum(pair.fault not in ("vacuous", "unknown") for pair in pairs),
                    len(pairs) + sum(map(len, alone)), len(alone[0]), len(alone[1]))
