"""L1: the same weights and data, and were the intended ones really loaded?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_migparity.core.evidence import Evidence, Policy
from pytest_migparity.core.levels import LEVELS, SIDES
from pytest_migparity.core.limits import Floors, Limits, limit_for
from pytest_migparity.core.verdict import Check, Coverage, Divergence, Finding, Note, Outcome, note, settle
from pytest_migparity.wire.digest import Digest, TensorDigest

from .digest_fault import Fault
from .digestmatch import GOOD, Match, TensorMatch, match
from .provenance import Expected, Witnesses, judge_provenance

UNMATCHED = (Fault.MISSING, Fault.EXTRA)
_LISTED = 8
_ROUNDS = {"bfloat16": (2.0**-8, 0.0), "float16": (2.0**-11, 2.0**-25), "float32": (2.0**-24, 0.0)}
"""The most that rounding to a dtype takes from an element: of its value, and beside that (float16 ends at 6e-8)."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What one side says of itself at L1: digests by what they are of (`weights`, `loaded`, `data`), and its start.

    `dropped` is what the map that its tensors were brought through leaves out, each with the reason.
    """

    digests: Mapping[str, Digest] = field(default_factory=dict)
    start: Witnesses | None = None
    dropped: tuple[str, ...] = ()


def judge_identity(baseline: Evidence[Identity], candidate: Evidence[Identity], *,
                   limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """Hold the digests of weights, of what was in memory after loading, and of the data against each other.

    `differing` counts tensors that are not the same values on both sides, `unmatched` those that one side lacks; both
    limits are 0. A cast that the manifest declares passes where the wider side's digest of its own rounded copy is the
    other side's tensor to the bit, and the two are no further apart than rounding brings them. INCONCLUSIVE: a declared
    cast without that proof, no weights, content hashes of two kinds, data or loaded weights that one side alone handed
    in, no data although the recipe names a data set. Raises nothing on bad data.
    """
    sides = (baseline, candidate)
    ours, theirs = (side.runs[0].table.digests for side in sides)
    started, misled, open_ = _started(*(side.runs[0].table.start for side in sides), policy=policy)
    unsure = [problem for side in sides for problem in side.problems]
    unsure += _absent(ours, theirs, policy)
    matches = {what: match(ours[what], theirs[what]) for what in ("weights", "loaded", "data")
               if what in ours and what in theirs}
    unsure += [item for found in matches.values() if found.outcome is Outcome.INCONCLUSIVE for item in found.notes]
    within, without = _loaded(sides, (ours, theirs))
    unsure += without
    proofs = _proofs(ours, theirs, policy)
    bad = {what: [item for item in found.tensors if item.fault not in GOOD and not _declared(item, policy, proofs)]
           for what, found in matches.items()}
    unproved = [item for item in bad.get("weights", ())
                if item.fault is Fault.ROUNDED and policy.cast and _wide_side(item, policy.cast) not in proofs]
    if unproved:
        bad["weights"] = [item for item in bad["weights"] if item not in unproved]
        unsure.append(note("identity-cast-unproved", count=len(unproved), dtype=policy.cast or ""))
    every = [item for found in bad.values() for item in found]
    level = LEVELS["L1"]
    counts = {"unmatched": sum(item.fault in UNMATCHED for item in every)}
    counts["differing"] = len(every) - counts["unmatched"]
    checks = tuple(Check(name, float(counts[name]), limit_for(level.check(name), limits, floors),
                         level.check(name).unit) for name in ("differing", "unmatched")) if matches else ()
    outcome = settle(checks, failed=bool(within) or misled, unsure=bool(unsure) or open_)
    notes = [*unsure, *within, *started]
    for what, found in bad.items():
        notes += _named(what, found)
    notes += [*_mapped(sides), *(item for what, found in matches.items() for item in _accepted(what, found))]
    return Finding(outcome, checks, _coverage(matches.values()), first_divergence=_first(bad), notes=tuple(notes),
                   mode=policy.mode)


def _started(baseline: Witnesses | None, candidate: Witnesses | None, *,
             policy: Policy) -> tuple[list[Note], bool, bool]:
    """What is known of the runs' starts: notes, did one fail, is one open.

    Where neither side says anything it is open only if the manifest does.
    """
    if baseline is None and candidate is None:
        declared = bool(policy.checkpoint) or policy.resume is not None
        return [note("identity-start-unknown")] if declared else [], False, declared
    return judge_provenance(baseline, candidate, Expected(policy.checkpoint, policy.resume, policy.new_tensors))


def _absent(ours: Mapping[str, Digest], theirs: Mapping[str, Digest], policy: Policy) -> list[Note]:
    found = []
    for what in ("weights", "loaded", "data"):
        there = [side for side, digests in (("baseline", ours), ("candidate", theirs)) if what in digests]
        if len(there) == 1:
            found.append(note("identity-one-sided", what=what, side=there[0]))
        elif not there and (what == "weights" or (what == "data" and policy.has_dataset)):
            found.append(note("identity-absent", what=what))
    return found


def _loaded(sides: Sequence[Evidence[Identity]],
            both: Sequence[Mapping[str, Digest]]) -> tuple[list[Note], list[Note]]:
    """(loaders that leave other values in memory than the file holds, what keeps that from being known)."""
    wrong, unsure = [], []
    for side, digests in zip(sides, both, strict=True):
        if not ("weights" in digests and "loaded" in digests):
            continue
        found = match(digests["weights"], digests["loaded"])
        held = {item.name for item in digests["weights"].tensors}
        bad = [item.name for item in found.tensors if item.fault not in (*GOOD, Fault.TIED) and item.name in held]
        if found.outcome is Outcome.INCONCLUSIVE:
            unsure.append(note("identity-loaded-open", side=side.side))
        elif bad:
            wrong.append(note("identity-loaded-differs", side=side.side, count=len(bad), first=min(bad, key=natural)))
    return wrong, unsure


_Proofs = Mapping[str, Mapping[str, TensorDigest]]


def _proofs(ours: Mapping[str, Digest], theirs: Mapping[str, Digest], policy: Policy) -> _Proofs:
    """The digests of a side's copies rounded to the declared dtype, by side and tensor."""
    found = {side: digests.get(f"weights.{policy.cast}") for side, digests in zip(SIDES, (ours, theirs), strict=True)}
    return {side: {tensor.name: tensor for tensor in digest.tensors} for side, digest in found.items() if digest}


def _wide_side(item: TensorMatch, cast: str) -> str:
    """The side that has still to be rounded; empty where both or neither is of that dtype."""
    wide = [side for side, tensor in zip(SIDES, (item.baseline, item.candidate), strict=True)
            if tensor is not None and tensor.dtype != cast]
    return wide[0] if len(wide) == 1 else ""


def _declared(item: TensorMatch, policy: Policy, proofs: _Proofs) -> bool:
    """Is this difference one that the manifest declares: a tied tensor that one side leaves out, or a proved cast?"""
    if item.fault is Fault.TIED:
        return policy.tied_left_out
    wide = _wide_side(item, policy.cast) if policy.cast else ""
    rounded = proofs.get(wide, {}).get(item.name)
    other = item.candidate if wide == "baseline" else item.baseline
    return rounded is not None and other is not None \
        and (other.dtype, other.shape, other.hash) == (rounded.dtype, rounded.shape, rounded.hash) \
        and _rounding_explains(item, rounded.dtype)


def _rounding_explains(item: TensorMatch, dtype: str) -> bool:
    """Is the difference no larger than rounding makes it? A proof of other weights, such as last week's, is none."""
    far, wide = item.relation, item.baseline
    if far is None or wide is None or wide.stats is None:
        return True
    unit, least = _ROUNDS[dtype]
    return far.low <= max(unit + least * math.sqrt(wide.size) / wide.stats.l2, 2 * far.floor)


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Names in the order of their numbers: layer 2 before layer 10."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name))


def _named(what: str, bad: Sequence[TensorMatch]) -> list[Note]:
    ordered = sorted(bad, key=lambda item: natural(item.name))
    found = [item.note() for item in ordered[:_LISTED]]
    if len(ordered) > _LISTED:
        found.append(note("identity-more", what=what, count=len(ordered) - _LISTED))
    return found


def _accepted(what: str, found: Match) -> list[Note]:
    """What passed without being the same bytes: the reader should know."""
    equal = found.counts[Fault.VALUE_EQUAL.value]
    return [note("identity-value-equal", what=what, count=equal)] if equal else []


def _mapped(sides: Sequence[Evidence[Identity]]) -> list[Note]:
    """Whose tensors were brought to the other's names and layout, and what was left out on the way."""
    found = []
    for side in sides:
        held = side.runs[0].table
        for layout in sorted({digest.layout for digest in held.digests.values() if digest.layout}):
            found.append(note("identity-mapped", side=side.side, layout=layout, dropped="; ".join(held.dropped) or "-"))
    return found


def _first(bad: Mapping[str, Sequence[TensorMatch]]) -> Divergence | None:
    for what, found in bad.items():
        if found:
            item = min(found, key=lambda item: natural(item.name))
            shown = [("absent" if tensor is None else f"{tensor.dtype} {list(tensor.shape)} {tensor.hash}")
                     for tensor in (item.baseline, item.candidate)]
            return Divergence("tensor", item.name if what == "weights" else f"{what}: {item.name}", *shown)
    return None


def _coverage(matches: Iterable[Match]) -> Coverage:
    tensors = [item for found in matches for item in found.tensors]
    sides = [sum(item.candidate is None for item in tensors), sum(item.baseline is None for item in tensors)]
    return Coverage("tensors", len(tensors) - sum(sides), len(tensors), *sides)
