"""Where a run's weights came from, `migparity.provenance/1`: three witnesses, as a host writes them down.

`asked` is what the configuration tells the loader, `lines` are the lines of the log that may say what was restored
(`readers.restored` reads them), `weights` what the file holds and what was in memory after loading.
"""

import hashlib
import json
import re
from typing import Any, Dict, NamedTuple, Optional, Tuple

from .digest import Digest, TensorDigest

SCHEMA = "migparity.provenance/1"
INTENTS = ("init", "resume")
KINDS = ("resume", "init", "fresh", "fallback", "partial")
MAX_BYTES = 1 << 20
MAX_LINES = 1000
MAX_LINE = 1000  # characters of a log line that are kept
MAX_TENSORS = 200  # names of tensors that are kept
_HASH = re.compile("[0-9a-f]{16}")


class ProvenanceError(ValueError):
    """The document cannot be read or does not keep its own rules; the message names the key."""


class Asked(NamedTuple):
    """One loader's field of a configuration: `policy.pretrained_path`. `value` is "" where it asks for nothing.

    `intent` is init (weights to start from) or resume (a run to go on with); `value` of a resume may be "true": go on
    with the latest. `chosen` marks the field that decides, per intent; several that contradict each other are marked
    all.
    """

    field: str
    value: str
    file: str
    intent: str
    chosen: bool = False


class LogLine(NamedTuple):
    """A line of a log, counted from 1."""

    number: int
    text: str


class Restored(NamedTuple):
    """What a log line says was loaded.

    `kind`: resume (a run goes on), init (weights alone), fresh (nothing to go on with), fallback (a checkpoint that
    could not be loaded), partial (`tensors` that the checkpoint did not fill). `path` and `step` as far as it says.
    """

    kind: str
    line: int
    text: str
    path: str = ""
    step: Optional[int] = None
    tensors: Tuple[str, ...] = ()


class Weights(NamedTuple):
    """Content hashes (`digest_hash`) of the file and of memory after loading, "" where that was not digested.

    `differing` tensors hold other values in memory than in the file (a cast that loses nothing is no difference) or
    are in one of them alone; `amount` is how many there are, of which `differing` names the first.
    """

    file: str
    loaded: str
    differing: Tuple[str, ...] = ()
    amount: int = 0


class Provenance(NamedTuple):
    """One side's document."""

    asked: Tuple[Asked, ...] = ()
    lines: Tuple[LogLine, ...] = ()
    weights: Optional[Weights] = None


def digest_hash(digest: Digest) -> str:
    """One hash for all tensors of a digest: sha256 over names, dtypes, shapes and content hashes, 16 hex digits."""
    table = [digest.algorithm, [[item.name, item.dtype, item.shape, item.hash] for item in digest.tensors]]
    return hashlib.sha256(json.dumps(table, separators=(",", ":")).encode("ascii")).hexdigest()[:16]


def weights_of(file: Digest, loaded: Digest) -> Weights:
    """Hold what a file contains against what was in memory after loading.

    ProvenanceError where the two digests used different content hashes, or where a level-0 digest cannot tell a cast
    from a change.
    """
    if file.algorithm != loaded.algorithm:
        raise ProvenanceError("the file was digested with %s and memory with %s: use one for both"
                              % (file.algorithm, loaded.algorithm))
    ours, theirs = ({item.name: item for item in each.tensors} for each in (file, loaded))
    differing = sorted(name for name in set(ours) | set(theirs)
                       if name not in ours or name not in theirs or not _same_values(ours[name], theirs[name]))
    casts = any(ours[name].dtype != theirs[name].dtype for name in differing if name in ours and name in theirs)
    if casts and not (file.level and loaded.level):
        raise ProvenanceError("the loader changed dtypes, and a digest of level 0 cannot tell a cast from a change: "
                              "digest both at level 1")
    return Weights(digest_hash(file), digest_hash(loaded), tuple(differing[:MAX_TENSORS]), len(differing))


def _same_values(left: TensorDigest, right: TensorDigest) -> bool:
    """Equal, or equal in a dtype that holds both exactly; a content hash covers the shape as well."""
    ours, theirs = ({(item.dtype, item.hash), (item.narrow or item.dtype, item.values or item.hash)}
                    for item in (left, right))
    return not ours.isdisjoint(theirs)


def to_text(document: Provenance) -> str:
    """The document as JSON, held to the rules that `parse` checks."""
    data: Dict[str, Any] = {"schema": SCHEMA, "asked": [item._asdict() for item in document.asked],
                            "lines": [list(item) for item in document.lines]}
    if document.weights is not None:
        data["weights"] = document.weights._asdict()
    text = json.dumps(data, indent=1, sort_keys=True, ensure_ascii=True) + "\n"
    parse(text)
    return text


def parse(text: str) -> Provenance:
    """Read a document; ProvenanceError for anything but a bounded, well-formed one."""
    if len(text) > MAX_BYTES:
        raise ProvenanceError("larger than %d characters" % MAX_BYTES)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProvenanceError("not JSON: %s" % error) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ProvenanceError("\"schema\" is not \"%s\"" % SCHEMA)
    asked = tuple(_asked(item, "asked[%d]" % at) for at, item in enumerate(_list(data, "asked")))
    lines = tuple(_line(item, "lines[%d]" % at) for at, item in enumerate(_list(data, "lines")))
    weights = data.get("weights")
    return Provenance(asked, lines, None if weights is None else _weights(weights))


def _list(data: Dict[str, Any], key: str) -> Any:
    value = data.get(key, [])
    if not isinstance(value, list) or len(value) > MAX_LINES:
        raise ProvenanceError("\"%s\" is not a list of at most %d entries" % (key, MAX_LINES))
    return value


def _asked(item: Any, where: str) -> Asked:
    if not isinstance(item, dict) or not {"field", "value", "file", "intent"} <= set(item) <= set(Asked._fields):
        raise ProvenanceError("%s has not just %s" % (where, ", ".join(Asked._fields)))
    field, value, file = (_printable(item[key], MAX_LINE, "%s.%s" % (where, key)) for key in ("field", "value", "file"))
    if item["intent"] not in INTENTS or not isinstance(item.get("chosen", False), bool):
        raise ProvenanceError("%s.intent is %.40r, expected one of %s" % (where, item["intent"], ", ".join(INTENTS)))
    return Asked(field, value, file, item["intent"], item.get("chosen", False))


def _line(item: Any, where: str) -> LogLine:
    if not isinstance(item, list) or len(item) != 2 or type(item[0]) is not int or not 0 < item[0] < 1 << 53:
        raise ProvenanceError("%s is not a line number and a text" % where)
    return LogLine(item[0], _printable(item[1], MAX_LINE, where))


def _weights(item: Any) -> Weights:
    if not isinstance(item, dict) or set(item) != set(Weights._fields):
        raise ProvenanceError("weights has not just %s" % ", ".join(Weights._fields))
    for key in ("file", "loaded"):
        if not isinstance(item[key], str) or (item[key] and not _HASH.fullmatch(item[key])):
            raise ProvenanceError("weights.%s is %.40r, expected 16 hex digits" % (key, item[key]))
    names, amount = item["differing"], item["amount"]
    if not isinstance(names, list) or type(amount) is not int or len(names) > MAX_TENSORS \
            or len(names) != min(amount, MAX_TENSORS) or (amount and not (item["file"] and item["loaded"])):
        raise ProvenanceError("weights.differing does not fit weights.amount, %.20r" % (amount,))
    return Weights(item["file"], item["loaded"], tuple(_printable(name, MAX_LINE, "weights.differing")
                                                       for name in names), amount)


def _printable(value: Any, longest: int, where: str) -> str:
    if not isinstance(value, str) or len(value) > longest or not value.isprintable():
        raise ProvenanceError("%s is %.40r, expected at most %d printable characters" % (where, value, longest))
    return value
