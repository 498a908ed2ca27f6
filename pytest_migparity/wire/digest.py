"""The tensor digest `migparity.digest/1`: what a few KB say of gigabytes of tensors, and the rules it keeps.

Level 0 names every tensor with its dtype, shape and 64 bits of its content hash; level 1 adds statistics, a multiset
hash and 16 sketch lanes, of which two make a relative difference with its interval. `wire.digest_text` writes and
reads it.
"""

import math
import re
import struct
from typing import NamedTuple, Optional, Tuple

SCHEMA = "migparity.digest/1"
ALGORITHMS = ("xxh3_128", "sha256")
LANES = 16
SATURATED = (1 << 15) - 1  # a lane at either end says only "at least this much"
MAX_NAME = 1000
ITEMSIZE = {"bool": 1, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "uint32": 4, "int32": 4, "uint64": 8, "int64": 8,
            "bfloat16": 2, "float16": 2, "float32": 4, "float64": 8, "float8_e4m3": 1, "float8_e5m2": 1,
            "float8_e8m0": 1, "complex64": 8}  # the types whose elements are whole bytes
_HASH = re.compile("[0-9a-f]{16}")
_PART = re.compile("(0|[1-9][0-9]{0,5})/([1-9][0-9]{0,5}) of [0-9a-f]{16}")
FLOATS = ("l2", "total", "low", "high")


class DigestError(ValueError):
    """The text is no digest, or one that does not keep its own rules; the message says what was found and expected."""


class Stats(NamedTuple):
    """What level 1 measures, over the finite elements.

    `l2` is the Euclidean norm, `total` the sum, `low` and `high` the extremes (0 where no element is finite), the last
    three `shortened`; zeros, nans and infs are counts. `multiset` is the same for any order of the same elements. A
    lane is a signed sum of a sixteenth of the elements, in units of `step(l2)`.
    """

    l2: float
    total: float
    low: float
    high: float
    zeros: int
    nans: int
    infs: int
    multiset: int
    lanes: Tuple[int, ...]


class TensorDigest(NamedTuple):
    """One tensor. `hash` is the first 64 bits, in hex, of the hash over dtype, shape and elements.

    `narrow` is the narrowest dtype that holds every element exactly, where that is not the tensor's own, and `values`
    the hash the tensor would have in it: tensors of two dtypes with the same values share it. `stats` is None at
    level 0, and where the dtype or the size of the elements (beyond 1e+-140) leaves nothing to measure.
    """

    name: str
    dtype: str
    shape: Tuple[int, ...]
    hash: str
    stats: Optional[Stats] = None
    narrow: str = ""
    values: str = ""

    @property
    def size(self) -> int:
        """Number of elements; 1 for a scalar."""
        return math.prod(self.shape)


class Digest(NamedTuple):
    """The tensors of one checkpoint in order of their names; `algorithm` is the content hash's.

    `part` is empty for a whole checkpoint. A shard's is `i/n of FINGERPRINT`, i from 0, the fingerprint that of all
    tensors of the checkpoint: shards say nothing until all n of one fingerprint are merged. `layout` is the hash of the
    map (`wire.layout`) that the tensors were brought through, empty where they are as the checkpoint holds them.
    """

    level: int
    algorithm: str
    tensors: Tuple[TensorDigest, ...]
    part: str = ""
    layout: str = ""


def step(l2: float, lanes: int = LANES) -> float:
    """The unit of the lanes: 8 / sqrt(lanes) of the power of two above `l2` in 2^15 steps; 0 where `l2` is 0."""
    return math.ldexp(8 / math.sqrt(lanes), math.frexp(l2)[1] - 15) if l2 > 0 else 0.0


def single(value: float) -> float:
    """The nearest float32."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def fits_single(value: float) -> bool:
    """Does float32 hold the size of a number? Not from 2^127 on, and not where it would round it to nothing."""
    return value == 0 or 2.0 ** -126 <= abs(value) < 2.0 ** 127 or (abs(value) < 1 and single(value) == value)


def as_sent(value: float) -> float:
    """A norm as the text carries it: float32, or float64 where that would lose its size."""
    return single(value) if fits_single(value) else value


def shortened(value: float, bits: int) -> float:
    """A sum (16 bits) or an extreme (12) as the text carries it: so many significant bits, to the nearest even.

    `value` itself where float32 does not hold it.
    """
    if not fits_single(value):
        return value
    word, less = struct.unpack("<I", struct.pack("<f", value))[0], 24 - bits
    word = (word + (1 << (less - 1)) - 1 + ((word >> less) & 1)) & (0xFFFFFFFF << less)
    return float(struct.unpack("<f", struct.pack("<I", word & 0xFFFFFFFF))[0])


def check(digest: Digest) -> None:
    """The rules of a digest, about to be written or just read; DigestError names the tensor that breaks one."""
    if digest.algorithm not in ALGORITHMS:
        raise DigestError("the content hash is %.40r, expected one of %s" % (digest.algorithm, ", ".join(ALGORITHMS)))
    part = _PART.fullmatch(digest.part) if isinstance(digest.part, str) else None
    if digest.part and not (part and int(part[1]) < int(part[2])):
        raise DigestError("its part is %.40r, expected such as '0/4 of' and 16 hex digits" % (digest.part,))
    if digest.layout and not (isinstance(digest.layout, str) and _HASH.fullmatch(digest.layout)):
        raise DigestError("its layout is %.40r, expected the 16 hex digits of a map" % (digest.layout,))
    before = ""
    for item in digest.tensors:
        name = item.name
        if not (isinstance(name, str) and 0 < len(name) <= MAX_NAME and name.isprintable()):
            raise DigestError("a tensor is called %.60r, expected 1 to %d printable characters" % (name, MAX_NAME))
        if name <= before:
            raise DigestError("tensor %s comes after %s: names must be in order, each once" % (name, before))
        before = name
        _check_tensor(item, digest.level)


def _check_tensor(item: TensorDigest, level: int) -> None:
    where = "tensor %s: " % item.name
    if item.dtype not in ITEMSIZE:
        raise DigestError(where + "dtype %.40r is not known here" % (item.dtype,))
    if len(item.shape) > 64 or not all(type(length) is int and 0 <= length < 1 << 63 for length in item.shape) \
            or item.size >= 1 << 63:
        raise DigestError(where + "%.80r is no shape" % (list(item.shape),))
    if not _HASH.fullmatch(item.hash):
        raise DigestError(where + "hash %.40r is not 16 hex digits" % item.hash)
    if not isinstance(item.narrow, str) or bool(item.narrow) != bool(item.values) \
            or (item.narrow and item.narrow not in ITEMSIZE) or item.narrow == item.dtype:
        raise DigestError(where + "narrow %.40r is no other dtype" % (item.narrow,))
    if not level and (item.stats or item.narrow):
        raise DigestError(where + "statistics at level 0")
    if item.stats is not None:
        _check_stats(item.stats, item.size, where)


def _check_stats(stats: Stats, size: int, where: str) -> None:
    values = [getattr(stats, key) for key in FLOATS]
    if not all(math.isfinite(value) for value in values) or stats.l2 < 0 or stats.low > stats.high:
        raise DigestError(where + "l2, sum, min, max are %s, expected finite numbers in order" % values)
    if min(stats.zeros, stats.nans, stats.infs) < 0 or stats.zeros + stats.nans + stats.infs > size:
        raise DigestError(where + "%d zeros, %d NaN and %d Inf among %d elements"
                          % (stats.zeros, stats.nans, stats.infs, size))
    empty = stats.zeros + stats.nans + stats.infs == size
    if empty == (stats.l2 > 0) or (empty and any(stats.lanes)):
        raise DigestError(where + "norm %g does not fit %d elements other than zero" % (
            stats.l2, size - stats.zeros - stats.nans - stats.infs))
    if len(stats.lanes) != LANES or not all(-SATURATED <= lane <= SATURATED for lane in stats.lanes):
        raise DigestError(where + "its lanes are not %d numbers within +-%d" % (LANES, SATURATED))
