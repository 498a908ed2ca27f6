"""Two tensor digests, tensor by tensor: equal, value-equal, or which fault, where and how large."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_migparity.core.verdict import Note, Outcome, Scalar, note
from pytest_migparity.wire.digest import Digest, TensorDigest

from .digest_fault import Fault, fault_of
from .digest_relation import Relation, relation

GOOD = (Fault.EQUAL, Fault.VALUE_EQUAL)


@dataclass(frozen=True, slots=True)
class TensorMatch:
    """One tensor of either side. `other` is the name under which its content was found, where the fault has one."""

    name: str
    fault: Fault
    baseline: TensorDigest | None = None
    candidate: TensorDigest | None = None
    other: str = ""
    relation: Relation | None = None

    def note(self) -> Note:
        """The match as a sentence's code, `digest-FAULT`, with what the sentence needs."""
        params: dict[str, Scalar] = {"name": self.name, "other": self.other}
        for side, tensor in (("baseline", self.baseline), ("candidate", self.candidate)):
            params[side] = "" if tensor is None else f"{tensor.dtype} {list(tensor.shape)}"
            params[f"{side}_narrow"] = "" if tensor is None else tensor.narrow or tensor.dtype
            if tensor is not None and tensor.stats is not None:
                params[f"{side}_nans"], params[f"{side}_infs"] = tensor.stats.nans, tensor.stats.infs
                params[f"{side}_l2"] = tensor.stats.l2
        if self.relation is not None:
            params |= {key: getattr(self.relation, key) for key in ("relative", "low", "high", "floor")}
            params |= {"cosine": f"{self.relation.cosine:.6f}", "scale": f"{self.relation.scale:.5f}"}
        return Note(f"digest-{self.fault}", params)


@dataclass(frozen=True, slots=True)
class Match:
    """All tensors of both sides, by name; `notes` say why nothing was compared, or which side was mapped."""

    outcome: Outcome
    tensors: tuple[TensorMatch, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def counts(self) -> Mapping[str, int]:
        """How many tensors there are of each fault."""
        return Counter(item.fault.value for item in self.tensors)


def match(baseline: Digest, candidate: Digest) -> Match:
    """Compare two digests. PASS where every tensor is equal or value-equal, FAIL where one is not.

    INCONCLUSIVE where a side is a shard, the content hashes are of two kinds, or a side holds no tensor. Numbers need
    level 1 on both sides; with less a tensor of different content is `unmeasured`.
    """
    if baseline.part or candidate.part:
        return Match(Outcome.INCONCLUSIVE, notes=(note("digest-part", baseline=baseline.part or "-",
                                                       candidate=candidate.part or "-"),))
    if baseline.algorithm != candidate.algorithm:
        return Match(Outcome.INCONCLUSIVE, notes=(note("digest-two-hashes", baseline=baseline.algorithm,
                                                       candidate=candidate.algorithm),))
    if not (baseline.tensors and candidate.tensors):
        return Match(Outcome.INCONCLUSIVE, notes=(note("digest-no-tensors", baseline=len(baseline.tensors),
                                                       candidate=len(candidate.tensors)),))
    pairs = _Sides(baseline, candidate, by_value=min(baseline.level, candidate.level) > 0)
    found = sorted([*pairs.shared(), *pairs.unshared()], key=lambda item: item.name)
    good = all(item.fault in GOOD for item in found)
    mapped = [note("digest-mapped", side=side, layout=digest.layout)
              for side, digest in (("baseline", baseline), ("candidate", candidate)) if digest.layout]
    return Match(Outcome.PASS if good else Outcome.FAIL, tuple(found), tuple(mapped))


_Content = tuple[tuple[int, ...], str, str]


class _Sides:
    """Both sides by name and by content: shape, narrowest dtype and hash in it."""

    def __init__(self, baseline: Digest, candidate: Digest, *, by_value: bool) -> None:
        self._by_value = by_value
        self._baseline = {item.name: item for item in baseline.tensors}
        self._candidate = {item.name: item for item in candidate.tensors}
        self._holders: dict[_Content, list[str]] = defaultdict(list)
        for name, item in self._baseline.items():
            self._holders[self._content(item)].append(name)

    def _content(self, item: TensorDigest) -> _Content:
        if self._by_value and item.narrow:
            return item.shape, item.narrow, item.values
        return item.shape, item.dtype, item.hash

    def shared(self) -> list[TensorMatch]:
        """The tensors of names that both sides have."""
        return [self._pair(name) for name in self._baseline if name in self._candidate]

    def _pair(self, name: str) -> TensorMatch:
        a, b = self._baseline[name], self._candidate[name]
        if (a.hash, a.dtype, a.shape) == (b.hash, b.dtype, b.shape):
            return TensorMatch(name, Fault.EQUAL, a, b)
        if self._content(a) == self._content(b):
            return TensorMatch(name, Fault.VALUE_EQUAL, a, b)
        elsewhere = self._holders.get(self._content(b), [])
        swapped = next((other for other in elsewhere if other in self._candidate
                        and self._content(self._candidate[other]) == self._content(a)), "")
        if swapped:
            return TensorMatch(name, Fault.SWAPPED, a, b, swapped)
        if elsewhere and b.stats is not None and b.stats.low < b.stats.high:  # a constant one is nobody's
            return TensorMatch(name, Fault.COPIED, a, b, elsewhere[0])
        measured = relation(a.stats, b.stats) if a.stats and b.stats and a.size == b.size else None
        return TensorMatch(name, fault_of(a, b, measured), a, b, relation=measured)

    def unshared(self) -> list[TensorMatch]:
        """The tensors of names that one side has: renamed where the other has their content under a name of its own."""
        found, newcomers = [], defaultdict(list)
        for name, item in self._candidate.items():
            if name not in self._baseline:
                newcomers[self._content(item)].append(name)
        for name, item in self._baseline.items():
            if name in self._candidate:
                continue
            takers = newcomers.get(self._content(item), [])
            if takers:
                taker = takers.pop(0)
                found.append(TensorMatch(name, Fault.RENAMED, item, self._candidate[taker], taker))
            else:
                twin = self._twin(item)
                found.append(TensorMatch(name, Fault.TIED if twin else Fault.MISSING, item, other=twin))
        for name in (name for names in newcomers.values() for name in names):
            item = self._candidate[name]
            twin = self._twin(item)
            found.append(TensorMatch(name, Fault.TIED if twin else Fault.EXTRA, candidate=item, other=twin))
        return found

    def _twin(self, item: TensorDigest) -> str:
        """A name under which both sides hold just this content, unless it is a constant."""
        if item.stats is not None and item.stats.low == item.stats.high:
            return ""
        content = self._content(item)
        return next((name for name in self._holders.get(content, [])
                     if name in self._candidate and self._content(self._candidate[name]) == content), "")
