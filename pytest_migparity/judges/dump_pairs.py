"""Two sides' dumped tensors as pairs in the baseline's order: how far apart their statistics are, and where.

Extremes, mean and norm are blind to any reordering and, mean apart, to signs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from types import MappingProxyType

from pytest_migparity.core.dumped import SCALARS, Dump, DumpedTensor
from pytest_migparity.core.evidence import Policy
from pytest_migparity.core.verdict import Coverage, Divergence, Note, Scalar, note

from .event_relation import EPSILON
from .forward import GROWTH
from .recorded import listed

DEEPEST = 64  # layers: rounding is not let grow beyond 1.03^64, or a long dump would excuse anything
_TINY = 1e-300
_SAME_NUMBER = 1e-6
_CALL = re.compile(r"\.(?:forward|backward|parameters_grad)(?:\.|$)")
_PART = re.compile(r"\.(?:input|output)(?:\.|$)")
_OPERATION = re.compile(r"\.[0-9]+\.(?:forward|backward)(?:\.|$)")

Key = tuple[int, int, str, str]
"""Step, rank, stage and name: what names a tensor in its dump."""
Metrics = Mapping[Key, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class DumpPair:
    """One tensor that both sides dumped.

    `distance` is the largest of the relative difference of norms, the differences of extremes over the largest element,
    and the difference of means over the root mean square, less what printing rounds off; below `blur` nothing is
    resolved. `stretch` is |ln| of the ratio of norms. `cosine` is NaN where only statistics are known. `fault`:
    `shape`, `non-finite` and `argument` (another number was passed) are wrong outright, `unknown` and `broken` (NaN on
    both sides) cannot be compared, `vacuous` agrees without proving anything. `exact`: equal checksums.
    """

    a: DumpedTensor
    b: DumpedTensor
    depth: int = 0
    fault: str = ""
    distance: float = 0.0
    stretch: float = 0.0
    blur: float = 0.0
    cosine: float = math.nan
    exact: bool = False

    @property
    def where(self) -> str:
        """Step, stage and name, and the rank where it is not the first."""
        return f"{f'rank {self.a.rank} ' if self.a.rank else ''}step {self.a.step} {self.a.stage} {self.a.name}"

    @property
    def key(self) -> Key:
        """What names the tensor in its dump."""
        return key_of(self.a)

    @property
    def wrong(self) -> bool:
        """Is this a difference that no limit speaks about?"""
        return self.fault in ("shape", "non-finite", "argument")

    def in_units(self, value: float, policy: Policy) -> float:
        """A relative distance in units of 1.03^depth * eps, eps of the coarsest declared precision."""
        chosen = [EPSILON[name] for name in policy.precisions if name in EPSILON]
        eps = max(chosen) if chosen else EPSILON.get(self.a.dtype, EPSILON["float32"])
        return value / (GROWTH**self.depth * eps)

    def note(self) -> Note:
        """In what the two differ."""
        params: dict[str, Scalar] = {"where": self.where}
        for side, tensor in (("baseline", self.a), ("candidate", self.b)):
            params[side] = (f"{tensor.dtype} {list(tensor.shape)}" if self.fault == "shape" else
                            f"{tensor.high:.9g}" if self.fault == "argument" else
                            f"{tensor.low:.6g} .. {tensor.high:.6g}, mean {tensor.mean:.6g}, norm {tensor.norm:.6g}")
        if not self.fault:
            params["distance"] = self.distance
        return Note(f"dump-{self.fault or 'apart'}", params)

    def divergence(self) -> Divergence:
        """The place where the sides first part: norms, or shapes where those are the point."""
        if self.fault == "shape":
            return Divergence("tensor", self.where, f"{list(self.a.shape)}", f"{list(self.b.shape)}")
        if self.fault == "argument":
            return Divergence("tensor", self.where, self.a.high, self.b.high)
        return Divergence("tensor", self.where, self.a.norm, self.b.norm)


@dataclass(frozen=True, slots=True)
class DumpPairs:
    """What both sides dumped of some stages, in the baseline's order, and the names that one side alone has."""

    pairs: tuple[DumpPair, ...]
    baseline_only: tuple[str, ...] = ()
    candidate_only: tuple[str, ...] = ()

    def coverage(self) -> Coverage:
        """What was compared: neither the unknown nor what agrees without proving anything."""
        alone = len(self.baseline_only) + len(self.candidate_only)
        return Coverage("tensors", sum(pair.fault not in ("vacuous", "unknown", "broken") for pair in self.pairs),
                        len(self.pairs) + alone, len(self.baseline_only), len(self.candidate_only))

    def open(self) -> list[Note]:
        """What keeps these pairs from being a pass."""
        found = [note("record-one-sided", side=side, count=len(names), names=listed(names)) for side, names in
                 (("baseline", self.baseline_only), ("candidate", self.candidate_only)) if names]
        for fault, code in (("unknown", "dump-unknown"), ("broken", "record-broken-alike")):
            places = [pair.where for pair in self.pairs if pair.fault == fault]
            if places:
                found.append(note(code, names=listed(places)))
        if not self.pairs:
            found.append(note("forward-nothing"))
        elif all(pair.fault == "vacuous" for pair in self.pairs):
            found.append(note("forward-vacuous"))
        return found


def dump_pairs(ours: Dump, theirs: Dump, stages: Iterable[str], policy: Policy,
               metrics: Metrics = MappingProxyType({})) -> DumpPairs:
    """Pair the tensors of `stages` by step, rank, stage and name, at the steps that both sides began unchanged.

    Names that match a pattern of `policy.skipped` are left out. `metrics`: (cosine, L2 norm of the difference) where
    somebody had both tensors at hand; NaN where he did not.
    """
    wanted, steps = frozenset(stages), unchanged_steps(ours, theirs)
    one, other = (_by_key(dump, wanted, policy, steps) for dump in (ours, theirs))
    depths = _depths(ours)
    fed = _fed(ours)
    pairs = [compared(tensor, other[key], depths[key], fed.get(_call(tensor), 0.0))
             for key, tensor in one.items() if key in other]
    pairs = [_with_metrics(pair, *metrics[pair.key]) if pair.key in metrics else pair for pair in pairs]
    return DumpPairs(tuple(pairs), tuple(key[3] for key in one if key not in other),
                     tuple(key[3] for key in other if key not in one))


def _with_metrics(pair: DumpPair, cosine: float, apart: float) -> DumpPair:
    """A pair with what the tensors themselves gave; the larger of two distances counts."""
    if pair.fault or math.isnan(cosine) or math.isnan(apart):
        return pair
    return replace(pair, cosine=cosine, distance=max(pair.distance, abs(apart) / max(pair.a.norm, _TINY)))


def key_of(tensor: DumpedTensor) -> Key:
    """Step, rank, stage and name."""
    return tensor.step, tensor.rank, tensor.stage, tensor.name


def content(tensor: DumpedTensor) -> tuple[object, ...]:
    """What tells a tensor from the others in a dump of one side."""
    return tensor.shape, tensor.low, tensor.high, tensor.mean, tensor.norm


def unchanged_steps(ours: Dump, theirs: Dump) -> range:
    """The steps that begin with the weights that were loaded: to the first that holds gradients or other weights."""
    sides = [[tensor.step for tensor in dump.tensors] for dump in (ours, theirs)]
    if not all(sides):
        return range(0)
    return range(min(map(min, sides)), min(_last_unchanged(ours), _last_unchanged(theirs), max(map(max, sides))) + 1)


def _last_unchanged(dump: Dump) -> int:
    held: dict[tuple[int, str], tuple[object, ...]] = {}
    last = max(tensor.step for tensor in dump.tensors)
    for tensor in dump.tensors:
        if tensor.stage in ("grad", "state"):
            last = min(last, tensor.step)
        elif tensor.stage == "weight" and content(tensor) != held.setdefault((tensor.rank, tensor.name),
                                                                             content(tensor)):
            last = min(last, tensor.step - 1)
    return last


def _by_key(dump: Dump, stages: frozenset[str], policy: Policy, steps: range) -> Mapping[Key, DumpedTensor]:
    return {key_of(tensor): tensor for tensor in dump.tensors if tensor.stage in stages and tensor.step in steps
            and not any(fnmatchcase(tensor.name, pattern) for pattern in policy.skipped)}


def _depths(dump: Dump) -> dict[Key, int]:
    """How many layers lie before a tensor: by the numbers in the names of modules, else by the outputs before it."""
    numbered = any(layer_of(tensor.name) is not None for tensor in dump.tensors if tensor.stage == "output")
    reached: dict[tuple[int, int], int] = {}
    found = {}
    for tensor in dump.tensors:
        before = reached.get((tensor.step, tensor.rank), 0)
        layer = layer_of(tensor.name) if numbered else None
        depth = before if layer is None else max(before, layer + 1)
        reached[tensor.step, tensor.rank] = depth + (not numbered and tensor.stage == "output")
        found[key_of(tensor)] = min(depth, DEEPEST)
    return found


def _fed(dump: Dump) -> dict[tuple[int, int, str], float]:
    """The largest norm that goes into each module or operation."""
    found: dict[tuple[int, int, str], float] = {}
    for tensor in dump.tensors:
        if tensor.stage == "input" and math.isfinite(tensor.norm):
            found[_call(tensor)] = max(found.get(_call(tensor), 0.0), tensor.norm)
    return found


def _call(tensor: DumpedTensor) -> tuple[int, int, str]:
    return tensor.step, tensor.rank, _PART.split(tensor.name, maxsplit=1)[0]


def layer_of(name: str) -> int | None:
    """The number of the layer that a module's name holds; None for an operation, whose number counts its calls."""
    if _OPERATION.search(name):
        return None
    path = _CALL.split(name, maxsplit=1)[0].split(".")
    return next((int(part) for part in path if part.isascii() and part.isdigit() and len(part) < 6), None)


def compared(a: DumpedTensor, b: DumpedTensor, depth: int = 0, fed: float = 0.0) -> DumpPair:
    """Two dumped tensors of one name. `fed`: the largest norm that went into what gave them.

    A sum of many numbers may cancel: the rounding of one element is measured by what went in, where that is larger.
    """
    pair = DumpPair(a, b, depth)
    if a.shape != b.shape:
        return replace(pair, fault="shape", distance=math.inf)
    exact = bool(a.checksum) and (a.checksum, a.dtype) == (b.checksum, b.dtype)
    if exact and not (a.measured and b.measured):
        return replace(pair, exact=True)
    if 0 in a.shape:
        return replace(pair, fault="vacuous")
    if not (a.measured and b.measured):
        return replace(pair, fault="unknown", distance=math.nan)
    if a.stage == "input" and a.dtype in SCALARS and not _same_argument(a, b):
        return replace(pair, fault="argument", distance=math.inf)
    fault = _fault(a, b)
    if fault:
        return replace(pair, fault=fault, distance=math.inf if fault == "non-finite" else math.nan)
    if max(a.norm, b.norm) <= max(a.quantum, b.quantum):  # zero, or printed as good as zero
        return replace(pair, fault="vacuous")
    return _measured(replace(pair, exact=exact), fed if a.stage == "output" and math.prod(a.shape) == 1 else 0.0)


def _same_argument(a: DumpedTensor, b: DumpedTensor) -> bool:
    """Were two Python numbers that an operation was given the same? Floats may have been computed."""
    if "float" in (a.dtype, b.dtype):
        return math.isclose(a.high, b.high, rel_tol=_SAME_NUMBER) or (math.isnan(a.high) and math.isnan(b.high))
    return a.high == b.high


def _fault(a: DumpedTensor, b: DumpedTensor) -> str:
    """Why the statistics of two tensors cannot be subtracted; empty where they can.

    Extremes are finite if and only if all elements are: a norm that is not then says nothing of the tensor. A mask has
    the same infinity on both sides.
    """
    extremes = (a.low, a.high), (b.low, b.high)
    finite = [all(map(math.isfinite, side)) for side in extremes]
    if finite[0] != finite[1]:
        return "non-finite"
    if not all(finite):
        if all(any(map(math.isnan, side)) for side in extremes):
            return "broken"
        return "vacuous" if extremes[0] == extremes[1] else "non-finite"
    lacking = [[not math.isfinite(value) for value in (side.mean, side.norm)] for side in (a, b)]
    if any(map(any, lacking)):  # of truth values there is no mean; a norm may overflow
        return "vacuous" if extremes[0] == extremes[1] and lacking[0] == lacking[1] else "unknown"
    return ""


def _measured(pair: DumpPair, least: float) -> DumpPair:
    a, b = pair.a, pair.b
    quantum = max(a.quantum, b.quantum)
    norm, largest = max(a.norm, least, _TINY), max(abs(a.low), abs(a.high), least, _TINY)
    mean_square = max(a.norm / math.sqrt(max(math.prod(a.shape), 1)), least, _TINY)
    parts = ((a.norm, b.norm, norm), (a.low, b.low, largest), (a.high, b.high, largest),
             (a.mean, b.mean, mean_square))
    return replace(pair, distance=max(max(abs(other - one) - quantum, 0.0) / scale for one, other, scale in parts),
                   blur=max(quantum / scale for _, _, scale in parts), stretch=_stretch(a.norm, b.norm, least))


def _stretch(a: float, b: float, least: float) -> float:
    """|ln| of the ratio of two norms, each at least `least`."""
    one, other = max(a, least), max(b, least)
    return 0.0 if one == other else abs(math.log(other / one)) if one > 0 and other > 0 else math.inf
