"""The text of a tensor digest: names and kinds as JSON, everything measured in columns, packed by `wire.packed`."""

import json
import struct
from typing import Any, Dict, List, Sequence, Tuple

from .digest import FLOATS, LANES, SCHEMA, Digest, DigestError, Stats, TensorDigest, check, fits_single, single
from .names import fold, unfold
from .packed import MAX_TEXT, pack, unpack


def read(path: str, *, part: bool = False) -> Digest:
    """The digest in a file, with `part` a shard of one; DigestError names the file."""
    try:
        with open(path, "rb") as stream:
            return from_text(stream.read(MAX_TEXT + 1).decode("ascii", "replace"), part=part)
    except OSError as error:
        raise DigestError("%s: %s" % (path, error.strerror)) from None
    except DigestError as error:
        raise DigestError("%s: %s" % (path, error)) from None


def to_text(digest: Digest) -> str:
    """The digest as text; its tensors are held to the rules that `from_text` checks."""
    return pack(SCHEMA, to_table(digest))


def to_table(digest: Digest) -> bytes:
    """The digest as a table, not packed yet: a line of JSON, then columns of numbers."""
    check(digest)
    tensors = digest.tensors
    kinds = sorted({(item.dtype, item.shape) for item in tensors})
    place = {kind: index for index, kind in enumerate(kinds)}
    head = {"level": digest.level, "hash": digest.algorithm, "names": fold([item.name for item in tensors]),
            "kinds": kinds, "kind": [place[item.dtype, item.shape] for item in tensors]}  # type: Dict[str, Any]
    if digest.part:
        head["part"] = digest.part
    if digest.layout:
        head["layout"] = digest.layout
    columns = [b"".join(bytes.fromhex(item.hash) for item in tensors)]
    if digest.level:
        measured = [item.stats for item in tensors if item.stats is not None]
        wide = [not all(_as_single(getattr(stats, key)) for key in FLOATS) for stats in measured]
        head["unmeasured"] = [index for index, item in enumerate(tensors) if item.stats is None]
        head["wide"] = [index for index, yes in enumerate(wide) if yes]
        head["narrow"] = [[index, item.narrow] for index, item in enumerate(tensors) if item.narrow]
        columns.append(b"".join(bytes.fromhex(item.values) for item in tensors if item.narrow))
        columns += _columns(measured, wide)
    return json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode("utf-8") + b"\n" + b"".join(columns)


def _as_single(value: float) -> bool:
    return fits_single(value) and single(value) == value


def _columns(measured: Sequence[Stats], wide: Sequence[bool]) -> List[bytes]:
    """Byte planes, so that equal bytes lie together: exponents, high bytes of counts."""
    columns = []
    for key in FLOATS:
        for kind, chosen in (("<f", False), ("<d", True)):
            values = [getattr(stats, key) for stats, is_wide in zip(measured, wide) if is_wide is chosen]
            columns.append(_planes(b"".join(struct.pack(kind, value) for value in values), struct.calcsize(kind)))
    for key in ("zeros", "nans", "infs"):
        columns.append(_planes(b"".join(struct.pack("<Q", getattr(stats, key)) for stats in measured), 8))
    columns.append(b"".join(struct.pack("<I", stats.multiset) for stats in measured))
    columns.append(_planes(b"".join(struct.pack("<%dh" % LANES, *stats.lanes) for stats in measured), 2))
    return columns


def _planes(data: bytes, width: int) -> bytes:
    return b"".join(data[offset::width] for offset in range(width))


def _rows(planes: bytes, width: int) -> bytes:
    size = len(planes) // width
    return bytes(planes[plane * size + row] for row in range(size) for plane in range(width))


def from_text(text: str, *, part: bool = False) -> Digest:
    """Read a digest. DigestError for other versions, a mangled or cut text, and tables that contradict themselves.

    A shard is refused unless it is asked for with `part`: nothing may take it for the whole.
    """
    found = from_table(unpack(SCHEMA, text, DigestError))
    if found.part and not part:
        raise DigestError("it is only shard %s: `migparity merge` all of them" % found.part.partition(" ")[0])
    return found


def from_table(table: bytes) -> Digest:
    """Read a table that `to_table` made, held to every rule of a digest."""
    digest = _from_table(table)
    check(digest)
    return digest


def _from_table(table: bytes) -> Digest:
    line, _, rest = table.partition(b"\n")
    try:
        head = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DigestError("its table is not JSON: %s" % error) from None
    if not isinstance(head, dict) or type(head.get("level")) is not int or head["level"] not in (0, 1):
        raise DigestError("\"level\" is neither 0 nor 1")
    folded, kinds, kind = (_list(head, key) for key in ("names", "kinds", "kind"))
    try:
        names = unfold(folded)
    except ValueError as error:
        raise DigestError("\"names\": %s" % error) from None
    if len(kind) != len(names):
        raise DigestError("%d names and %d kinds of tensors" % (len(names), len(kind)))
    columns = _Columns(rest)
    items = [TensorDigest(name, *_kind(kinds, which), hash=columns.take(8).hex()) for name, which in zip(names, kind)]
    if head["level"]:
        narrow = _list(head, "narrow")
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in narrow):
            raise DigestError("\"narrow\" is not a list of pairs")
        for index in _indices([pair[0] for pair in narrow], "narrow", len(items)):
            items[index] = items[index]._replace(values=columns.take(8).hex())
        for index, dtype in narrow:
            items[index] = items[index]._replace(narrow=dtype)
        left_out = set(_indices(_list(head, "unmeasured"), "unmeasured", len(items)))
        measured = [index for index in range(len(items)) if index not in left_out]
        wide = set(_indices(_list(head, "wide"), "wide", len(measured)))
        for index, stats in zip(measured, columns.stats([index in wide for index in range(len(measured))])):
            items[index] = items[index]._replace(stats=stats)
    if columns.left:
        raise DigestError("its table is longer than %d tensors need, by %d bytes" % (len(items), columns.left))
    return Digest(head["level"], head.get("hash", ""), tuple(items), head.get("part", ""), head.get("layout", ""))


class _Columns:
    """The binary part of the table, taken from its front."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        """Bytes not taken yet."""
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        """The next bytes; DigestError where the table ends before."""
        if size > self.left:
            raise DigestError("its table ends %d bytes before its tensors do" % (size - self.left))
        self._at += size
        return self._data[self._at - size:self._at]

    def numbers(self, kind: str, amount: int) -> Tuple[Any, ...]:
        """`amount` numbers of a struct kind, stored as byte planes."""
        width = struct.calcsize("<" + kind)
        return struct.unpack("<%d%s" % (amount, kind), _rows(self.take(amount * width), width))

    def stats(self, wide: Sequence[bool]) -> List[Stats]:
        """The statistics of as many tensors as `wide` is long."""
        floats = []
        for _ in FLOATS:
            single, double = iter(self.numbers("f", wide.count(False))), iter(self.numbers("d", wide.count(True)))
            floats.append([next(double) if is_wide else next(single) for is_wide in wide])
        counts = [self.numbers("Q", len(wide)) for _ in range(3)]
        multisets = struct.unpack("<%dI" % len(wide), self.take(4 * len(wide)))
        lanes = self.numbers("h", LANES * len(wide))
        rows = (lanes[start:start + LANES] for start in range(0, len(lanes), LANES))
        return [Stats(*row) for row in zip(*floats, *counts, multisets, rows)]


def _list(head: Dict[str, Any], key: str) -> List[Any]:
    value = head.get(key)
    if not isinstance(value, list):
        raise DigestError("\"%s\" is missing or not a list" % key)
    return value


def _indices(values: List[Any], key: str, size: int) -> List[int]:
    if not all(type(value) is int and 0 <= value < size for value in values) or sorted(set(values)) != values:
        raise DigestError("\"%s\" does not count tensors in order" % key)
    return values


def _kind(kinds: List[Any], which: Any) -> Tuple[str, Tuple[int, ...]]:
    if type(which) is not int or not 0 <= which < len(kinds):
        raise DigestError("kind %.20r is none of the %d listed" % (which, len(kinds)))
    entry = kinds[which]
    if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], list)):
        raise DigestError("kind %d is not a dtype and a shape" % which)
    return entry[0], tuple(entry[1])
