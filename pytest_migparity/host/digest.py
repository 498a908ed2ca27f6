"""Tensors to their digest: leaf by leaf, in memory that does not grow with the tensor.

The content hash is xxh3_128 where the package xxhash is installed, else sha256; the digest says which. A tensor's hash
is the hash over its dtype, its shape and the hashes of its leaves of 2^20 elements, little-endian, in C order.
"""

import hashlib
import math
from functools import partial
from typing import Any, Callable, Dict, Iterable, Iterator, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from ..wire.digest import LANES, SATURATED, Digest, Stats, TensorDigest, as_sent, shortened, step
from . import xxh3
from .digest_device import There, measured_there
from .digest_kernels import measure
from .digest_numpy import LEAF, Array, Leaf, mixed, narrowed
from .parallel import shared_out, threads
from .tensors import Tensor

_INTEGERS = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
_NARROWER = {"float16": ("bfloat16",), "float32": ("bfloat16", "float16"),
             "float64": ("bfloat16", "float16", "float32"),
             **{name: _INTEGERS[:place] for place, name in enumerate(_INTEGERS)}}
_LANE = np.arange(256, dtype=np.uint32)
_SIGNS = np.where(mixed(_LANE ^ np.uint32(0x5BD1E995)) & np.uint32(1), -1.0, 1.0)
_ORDER = np.argsort(mixed(_LANE ^ np.uint32(0x1B873593)), kind="stable")
_PROBE = 256  # elements looked at before a whole leaf is
_AT_ONCE = 64  # small tensors that are done before the first of them is told of


class Measured(NamedTuple):
    """A tensor leaf by leaf: what a digest of any level is made from, and what a closer look never reads again.

    `hashes` are the content hashes of its leaves in full; `parts` what level 1 measures of each (empty at level 0, None
    for a leaf that leaves nothing to measure); `narrow` the narrowest dtype that holds every element exactly, where it
    is not the tensor's own, and `narrow_hashes` the hashes of the leaves in it.
    """

    name: str
    dtype: str
    shape: Tuple[int, ...]
    algorithm: str
    hashes: Tuple[bytes, ...]
    parts: Tuple[Optional[Leaf], ...] = ()
    narrow: str = ""
    narrow_hashes: Tuple[bytes, ...] = ()


def algorithm_here() -> str:
    """The content hash that is used unless another is asked for."""
    try:
        import xxhash  # noqa: F401  only whether it is there
    except ImportError:
        return "sha256"
    return "xxh3_128"


def digest(tensors: Iterable[Tensor], *, level: int = 1, algorithm: Optional[str] = None) -> Digest:
    """Digest every tensor. ImportError where `algorithm` is xxh3_128 and xxhash is not installed."""
    chosen = algorithm or algorithm_here()
    done = in_turn(partial(digest_tensor, level=level, algorithm=chosen), list(tensors))
    return Digest(level, chosen, tuple(sorted(done, key=lambda item: item.name)))


def in_turn(work: Callable[[Tensor], TensorDigest], tensors: Sequence[Tensor]) -> Iterator[TensorDigest]:
    """`work` of every tensor: of those of one leaf side by side, then of the larger ones, whose leaves are."""
    small = [tensor for tensor in tensors if tensor.size <= LEAF]
    batch = _AT_ONCE if threads() > 1 else 1
    for start in range(0, len(small), batch):
        yield from shared_out(work, small[start:start + batch])
    yield from map(work, (tensor for tensor in tensors if tensor.size > LEAF))


def digest_tensor(tensor: Tensor, *, level: int, algorithm: str) -> TensorDigest:
    """Digest one tensor."""
    return summary(measured(tensor, level=level, algorithm=algorithm), level)


def measured(tensor: Tensor, *, level: int, algorithm: str) -> Measured:
    """Read a tensor once, leaf by leaf, the leaves of a large one side by side."""
    targets = _NARROWER.get(tensor.dtype, ()) if level else ()
    narrow = set(targets)
    work = partial(_leaf_of, algorithm=algorithm, dtype=tensor.dtype, level=level, narrow=narrow, there=tensor.there)
    numbered = enumerate(tensor.leaves())
    worked = shared_out(work, numbered) if tensor.size > LEAF else [work(leaf) for leaf in numbered]
    target = next((target for target in targets if target in narrow and worked), "")
    return Measured(tensor.name, tensor.dtype, tensor.shape, algorithm, tuple(held for held, _, _ in worked),
                    tuple(part for _, part, _ in worked) if level else (), target,
                    tuple(shorter[target] for _, _, shorter in worked) if target else ())


_Worked = Tuple[bytes, Optional[Leaf], Dict[str, bytes]]


def _leaf_of(numbered: Tuple[int, Array], *, algorithm: str, dtype: str, level: int, narrow: Set[str],
             there: Optional[There]) -> _Worked:
    """(content hash, measurements, hashes in those narrower dtypes that hold every element) of one leaf.

    Dtypes that do not are taken out of `narrow`, for no other leaf to try them.
    """
    number, elements = numbered
    hasher = _hasher(algorithm)
    state = xxh3.State() if algorithm == "xxh3_128" and xxh3.AVAILABLE else hasher()
    if not level:
        state.update(elements)
        return state.digest(), None, {}
    shorter = {}
    for target in tuple(narrow):
        fits = narrowed(elements[:_PROBE], dtype, target) is not None
        bits = narrowed(elements, dtype, target) if fits else None
        if bits is None:
            narrow.discard(target)
        else:
            shorter[target] = hasher(np.ascontiguousarray(bits)).digest()
    if there is None:
        part = measure(elements, dtype, number * LEAF, state.update)
    else:
        state.update(elements)
        part = measured_there(there, number, partial(measure, elements, dtype, number * LEAF, _unseen))
    return state.digest(), part, shorter


def _unseen(elements: Array) -> None:
    """What is hashed already."""


def summary(whole: Measured, level: int) -> TensorDigest:
    """The digest of a tensor that was measured at `level` or above."""
    hasher = _hasher(whole.algorithm)
    narrow = whole.narrow if level else ""
    return TensorDigest(
        whole.name, whole.dtype, whole.shape, _combined(hasher, whole.dtype, whole.shape, whole.hashes),
        stats=_stats(whole.parts) if level else None, narrow=narrow,
        values=_combined(hasher, narrow, whole.shape, whole.narrow_hashes) if narrow else "")


def _hasher(algorithm: str) -> Callable[..., Any]:
    if algorithm == "xxh3_128":
        import xxhash

        chosen: Callable[..., Any] = xxhash.xxh3_128
        return chosen
    return hashlib.sha256


def _combined(hasher: Callable[..., Any], dtype: str, shape: Tuple[int, ...], leaves: Sequence[bytes]) -> str:
    head = "%s %s\n" % (dtype, "x".join(map(str, shape)))
    return str(hasher(head.encode("ascii") + b"".join(leaves)).hexdigest())[:16]


def _stats(leaves: Sequence[Optional[Leaf]]) -> Optional[Stats]:
    known = [leaf for leaf in leaves if leaf is not None]
    if len(known) < len(leaves):
        return None
    lanes = np.zeros(256)
    for leaf in known:
        lanes = lanes + leaf.lanes
    low, high = min((leaf.low for leaf in known), default=0.0), max((leaf.high for leaf in known), default=0.0)
    l2 = as_sent(math.sqrt(math.fsum(leaf.squares for leaf in known)))
    return Stats(
        l2=l2, total=shortened(math.fsum(leaf.total for leaf in known), 16),
        low=shortened(low, 12) if low <= high else 0.0, high=shortened(high, 12) if low <= high else 0.0,
        zeros=sum(leaf.zeros for leaf in known), nans=sum(leaf.nans for leaf in known),
        infs=sum(leaf.infs for leaf in known),
        multiset=_multiset(known),
        lanes=quantised(folded(lanes, LANES), l2))


def _multiset(leaves: Sequence[Leaf]) -> int:
    """Both sums of all leaves as one word of 32 bits."""
    sums = [np.array([sum(leaf.multiset[which] for leaf in leaves) & 0xFFFFFFFF], np.uint32) for which in (0, 1)]
    return int(mixed(sums[0] ^ mixed(sums[1]))[0])


_FIRST_LANE = int(mixed(np.array([0x85EBCA6B], np.uint32))[0]) & 255  # element 0 is so many lanes before the first


def fine_lanes(whole: Measured, amount: int = 64) -> Tuple[float, ...]:
    """Sketch lanes in float32, as a recording carries them; empty where a leaf left nothing to measure.

    A tensor of no more elements than `amount` has a lane for each: folded further, two of them might cancel out.
    """
    parts = [leaf for leaf in whole.parts if leaf is not None]
    if not parts or len(parts) < len(whole.parts):
        return ()
    lanes = np.zeros(256)
    for leaf in parts:
        lanes = lanes + leaf.lanes
    kept = np.roll(lanes, _FIRST_LANE)[:amount] if math.prod(whole.shape) <= amount else folded(lanes, amount)
    single = kept.astype(np.float32)
    return tuple(single.tolist()) if np.isfinite(single).all() else ()


def folded(lanes: Array, amount: int) -> Array:
    """256 lanes added up, with fixed signs, to 64 or 16; those of 16 are sums of those of 64."""
    groups = (lanes * _SIGNS)[_ORDER].reshape(amount, -1)
    return np.add.accumulate(groups, axis=1)[:, -1] + 0.0  # one after the other: numpy promises no order for sum()


def quantised(lanes: Array, l2: float) -> Tuple[int, ...]:
    """Lanes in whole units of `wire.digest.step(l2)`, to the nearest even."""
    unit = step(l2, len(lanes))
    if not unit:
        return (0,) * len(lanes)
    return tuple(int(lane) for lane in np.clip(np.rint(lanes / unit), -SATURATED, SATURATED))
