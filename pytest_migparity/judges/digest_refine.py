"""What the two sides send next, so that a difference between their tensors is named, to the element if need be.

Level 0 names the tensors that differ, level 1 of those which fault each has. Where a fault does not say which elements
it changed, the parts of the tensor are compared in turn: leaves, blocks, pieces, elements (`host.zoom`). A rounding is
proved by the digest of the wider side's rounded copy. Each step is a few KB; none reads the other side's tensors.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_migparity.core.verdict import Note, Outcome, note
from pytest_migparity.wire.digest import ITEMSIZE, Digest, TensorDigest
from pytest_migparity.wire.names import part_of

from .digest_fault import Fault
from .digestmatch import GOOD, Match, TensorMatch, match
from .identity import natural

_SOMEWHERE = (Fault.DIFFERENT, Fault.BELOW_FLOOR, Fault.NON_FINITE, Fault.UNMEASURED)  # these do not say where
_FEW = 8  # tensors asked for one by one; more, and level 1 of all of them is one answer
_LEAF = 1 << 20
_MOST = 64  # leaves that travel with statistics: 5 KB
_FLOATS = ("float64", "float32", "float16", "bfloat16")
_BITS = {"float32": ("<f", "<I", 0), "bfloat16": ("<f", "<I", 16), "float16": ("<e", "<H", 0)}


@dataclass(frozen=True, slots=True)
class Ask:
    """A digest to make: the options of `digest`, on the side `baseline` or `candidate`, or on `both`."""

    side: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refined:
    """What two digests leave open (`asks`, none where all is named) and what they name (`notes`)."""

    outcome: Outcome
    asks: tuple[Ask, ...] = ()
    notes: tuple[Note, ...] = ()


def refine(baseline: Digest, candidate: Digest, *, cast: str = "") -> Refined:
    """Say what to send next. `cast`: both digests are of copies rounded to this dtype, and so will the next be.

    Raises nothing on digests that cannot be compared; they are INCONCLUSIVE, with the reason.
    """
    found = match(baseline, candidate)
    bad = sorted((item for item in found.tensors if item.fault not in GOOD), key=lambda item: natural(item.name))
    common = ("--hash", baseline.algorithm)
    asks: list[Ask] = []
    notes = list(found.notes)
    if found.outcome is Outcome.INCONCLUSIVE:
        if baseline.algorithm != candidate.algorithm:
            asks = [Ask("both", ("--hash", "sha256"))]
    elif bad and all(part_of(item.name) for item in found.tensors):
        notes += _places(found, bad)
        asks = _closer(found, bad, cast, common)
    elif bad:
        measured = min(baseline.level, candidate.level) > 0
        notes += [item.note() for item in bad if item.fault is not Fault.UNMEASURED or measured][:_FEW]
        casts = [item for item in bad if _is_cast(item)]
        rest = [item for item in bad if item not in casts]
        asks = _proofs(casts, common) + (_zoom if measured else _statistics)(rest, cast, common)
    elif cast:
        notes.append(note("digest-equal-rounded", dtype=cast))
    return Refined(found.outcome, tuple(asks), tuple(notes))


def _cast(cast: str) -> tuple[str, ...]:
    return ("--cast", cast) if cast else ()


def _is_cast(item: TensorMatch) -> bool:
    """May it be the other side's tensor, brought into a shorter dtype?"""
    return (item.fault in (Fault.ROUNDED, Fault.UNMEASURED) and item.baseline is not None
            and item.candidate is not None and bool(_narrower(item.baseline, item.candidate)))


def _proofs(casts: Sequence[TensorMatch], common: tuple[str, ...]) -> list[Ask]:
    """The rounded copies that would prove a cast: of each side that does not hold that dtype already."""
    asks: dict[Ask, None] = {}
    for item in casts:
        assert item.baseline is not None
        assert item.candidate is not None
        target = _narrower(item.baseline, item.candidate)
        for side, tensor in (("baseline", item.baseline), ("candidate", item.candidate)):
            if tensor.dtype != target:
                asks[Ask(side, ("--cast", target, "--level", "0", *common))] = None
    return list(asks)


def _narrower(a: TensorDigest, b: TensorDigest) -> str:
    """The shorter of two float dtypes of the same elements; empty where they are of one kind, or not floats."""
    held = [item.narrow or item.dtype for item in (a, b)]
    if a.shape != b.shape or held[0] == held[1] or not set(held) <= set(_FLOATS):
        return ""
    return min(reversed(held), key=lambda dtype: ITEMSIZE[dtype])  # of two that are as long, the candidate's


def _statistics(bad: Sequence[TensorMatch], cast: str, common: tuple[str, ...]) -> list[Ask]:
    """Level 1 of the tensors that differ."""
    names = [item.name for item in bad if item.fault is Fault.UNMEASURED]
    if len(names) > _FEW:
        return [Ask("both", ("--level", "1", *_cast(cast), *common))]
    return [Ask("both", ("--zoom", f"{name}[:]", "--level", "1", *_cast(cast), *common)) for name in names]


def _zoom(bad: Sequence[TensorMatch], cast: str, common: tuple[str, ...]) -> list[Ask]:
    """The parts of the first tensor, or part, of which it is open where it differs."""
    item = next((item for item in bad if item.fault in _SOMEWHERE and _size(item) > 1), None)
    if item is None or item.baseline is None or item.candidate is None:
        return []
    size = _size(item)
    leaves = size > _LEAF
    level = "1" if size <= 64 or (leaves and size <= _MOST * _LEAF) else "0"
    cast = cast or _narrower(item.baseline._replace(narrow=""), item.candidate._replace(narrow=""))
    return [Ask("both", ("--zoom", item.name, "--level", level, *_cast(cast), *common))]


def _size(item: TensorMatch) -> int:
    return item.baseline.size if item.baseline is not None else 0


def _closer(found: Match, bad: Sequence[TensorMatch], cast: str, common: tuple[str, ...]) -> list[Ask]:
    """The parts of the first part that differs, unless most do: then the difference is everywhere."""
    everywhere = len(found.tensors) > 1 and 2 * len(bad) > len(found.tensors)
    return [] if everywhere else _zoom(bad, cast, common)


def _places(found: Match, bad: Sequence[TensorMatch]) -> list[Note]:
    """Where a tensor differs: each element with its values, else the parts."""
    notes = []
    for item in bad[:_FEW]:
        tensor, first, last = part_of(item.name) or (item.name, 0, 0)
        if last - first == 1 and item.baseline is not None and item.candidate is not None:
            notes.append(note("digest-element", name=tensor, place=first, baseline=_value(item.baseline),
                              candidate=_value(item.candidate)))
        elif item.fault is Fault.UNMEASURED:
            notes.append(note("digest-where", name=tensor, first=first, last=last - 1))
        else:
            notes.append(item.note())
    total = len(found.tensors)
    return [note("digest-parts", count=len(bad), total=total), *notes] if total > 1 else notes


def _value(element: TensorDigest) -> str:
    """An element as a number and, where its dtype's digest tells them, its bits."""
    stats = element.stats
    if stats is None:
        return element.hash
    if stats.nans or stats.infs:
        return "NaN" if stats.nans else "Inf"
    value = -stats.l2 if stats.low < 0 else stats.l2
    if element.dtype not in _BITS:
        return f"{value:.9g}"
    if not value:
        return "0 or -0"
    kind, whole, dropped = _BITS[element.dtype]
    bits = struct.unpack(whole, struct.pack(kind, value))[0] >> dropped
    return f"{value:.9g} (0x{bits:0{2 * ITEMSIZE[element.dtype]}x})"
