"""One checkpoint digested by several processes: which tensors are whose, and their digests merged into one."""

import hashlib
import json
import re
from typing import Dict, List, Sequence, Tuple

from ..wire.digest import ITEMSIZE, Digest, DigestError, TensorDigest
from ..wire.digest_text import read, to_text
from .new_file import refuse_existing, write_new
from .tensors import Tensor

_SHARD = re.compile("(0|[1-9][0-9]{0,5})/([1-9][0-9]{0,5})")


def shard_of(tensors: Sequence[Tensor], shard: str) -> Tuple[List[Tensor], str]:
    """(the tensors of shard `i/n`, i from 0, and the `part` of its digest); ValueError where there is no such shard.

    The same for every process that sees the same tensors: the largest first, each to the shard with the fewest bytes.
    """
    found = _SHARD.fullmatch(shard)
    if not found or int(found[1]) >= int(found[2]):
        raise ValueError("shard %.40r: expected i/n with i from 0 to n - 1, such as 0/4 to 3/4" % shard)
    mine, held = [], [0] * int(found[2])
    for tensor in sorted(tensors, key=lambda tensor: (-bytes_of(tensor), tensor.name)):
        place = held.index(min(held))
        held[place] += max(bytes_of(tensor), 1)
        if place == int(found[1]):
            mine.append(tensor)
    return mine, "%s of %s" % (shard, fingerprint([(tensor.name, tensor.dtype, tensor.shape) for tensor in tensors]))


def bytes_of(tensor: Tensor) -> int:
    """The bytes of a tensor's elements."""
    return tensor.size * ITEMSIZE.get(tensor.dtype, 1)


def fingerprint(table: Sequence[Tuple[str, str, Tuple[int, ...]]]) -> str:
    """16 hex digits of the names, dtypes and shapes of all tensors: what every shard must agree on."""
    return hashlib.sha256(json.dumps(sorted(table), ensure_ascii=True).encode("ascii")).hexdigest()[:16]


def merged(shards: Sequence[Tuple[str, Digest]]) -> Digest:
    """The digest of the whole from (file, digest) of all shards; DigestError names what is missing or does not fit."""
    (first_file, first), parts = shards[0], {}  # type: Tuple[Tuple[str, Digest], Dict[str, str]]
    tensors: Dict[str, TensorDigest] = {}
    holder: Dict[str, str] = {}
    for file, digest in shards:
        if not digest.part:
            raise DigestError("%s is a whole digest, not a shard of one" % file)
        for what, mine, theirs in (("level", digest.level, first.level), ("hash", digest.algorithm, first.algorithm),
                                   ("checkpoint", _whole(digest), _whole(first)),
                                   ("layout", digest.layout or "none", first.layout or "none")):
            if mine != theirs:
                raise DigestError("%s and %s are not of one digest: %s %s, and %s" % (file, first_file, what, mine,
                                                                                      theirs))
        parts[digest.part.partition(" ")[0]] = file
        for item in digest.tensors:
            if tensors.setdefault(item.name, item) != item:
                raise DigestError("%s and %s have two digests of the tensor %s: the checkpoint changed between them, "
                                  "or these are not its shards" % (file, holder[item.name], item.name))
            holder.setdefault(item.name, file)
    amount = int(_whole(first).split()[0])
    missing = ["%d/%d" % (index, amount) for index in range(amount) if "%d/%d" % (index, amount) not in parts]
    if missing:
        raise DigestError("shard %s is missing" % ", ".join(missing[:20]))
    whole = tuple(tensors[name] for name in sorted(tensors))
    if fingerprint([(item.name, item.dtype, item.shape) for item in whole]) != _whole(first).split()[-1]:
        raise DigestError("all %d shards together are not the tensors of their checkpoint" % amount)
    return Digest(first.level, first.algorithm, whole, layout=first.layout)


def write_merged(files: Sequence[str], out: str) -> Tuple[Digest, int]:
    """(the digest of the whole, its characters), written to `out`; ValueError and OSError name what is wrong."""
    refuse_existing(out)
    found = merged([(file, read(file, part=True)) for file in files])
    text = to_text(found)
    write_new(out, text)
    return found, len(text)


def _whole(digest: Digest) -> str:
    """`n of FINGERPRINT`: what the shards of one checkpoint share."""
    return digest.part.partition("/")[2]
