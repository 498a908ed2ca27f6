"""What `actions.npz` says of itself: whose outputs they are, under which noise, sampler and normalisation.

The document is the member `meta` of the npz (one string), or the key `migparity.actions` of a parquet file's schema.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

SCHEMA = "migparity.actions/1"
NAME = "actions.npz"
PARQUET_KEY = "migparity.actions"
KINDS = ("actions", "logits", "tokens", "embeddings", "boxes", "masks")
SOURCES = ("policy", "replay")
MEMBERS = ("meta", "values", "sample", "noise", "task", "state", "tokens", "label")
MAX_TEXT = 1 << 20
MAX_NAME = 200
MAX_NAMES = 1 << 16
MAX_STEPS = 1 << 20
_HEX = re.compile(r"[0-9a-f]{8,64}")


class ActionsError(ValueError):
    """The document does not keep its own rules; says which key."""


class Meta(NamedTuple):
    """One file's account of its outputs.

    `kind` is what the values are; `names` and `units` of the last axis (empty: not said). `steps` counts the sampler's
    network calls that were really made, 0 for a model without a sampler. `normalisation` is the rule by which outputs
    were un-normalised (`mean-std`, `q01-q99`, `none`, ...) and `normalisation_digest` the hash of its numbers. `site`
    is where the model ran to give these outputs, `trained` where its weights were trained. `source`: `policy`, or
    `replay` of recorded actions.
    """

    kind: str
    names: Tuple[str, ...]
    units: Tuple[str, ...]
    steps: int
    normalisation: str
    normalisation_digest: str
    site: str
    trained: str
    source: str = "policy"


def parse(text: str) -> Meta:
    """Read the document; ActionsError names the key that is missing or wrong."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ActionsError("meta is not JSON: %s" % error) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ActionsError('meta: "schema" is not "%s"' % SCHEMA)
    unknown = sorted(set(data) - {"schema", *Meta._fields})
    if unknown:
        raise ActionsError('meta: unknown key "%.60s"; known: %s' % (unknown[0], ", ".join(Meta._fields)))
    kind, source = data.get("kind"), data.get("source", "policy")
    if kind not in KINDS or source not in SOURCES:
        raise ActionsError('meta: "kind" is %.60r and "source" %.60r, expected one of %s and of %s'
                           % (kind, source, ", ".join(KINDS), ", ".join(SOURCES)))
    steps = data.get("steps")
    if type(steps) is not int or not 0 <= steps <= MAX_STEPS:
        raise ActionsError('meta: "steps" is %.60r, expected the number of network calls of the sampler, 0 without a '
                           "sampler" % (steps,))
    names, units = (_names(data, key) for key in ("names", "units"))
    if units and len(units) != len(names):
        raise ActionsError('meta: %d "names" and %d "units"' % (len(names), len(units)))
    said = {key: _text(data, key) for key in ("normalisation", "site", "trained")}
    digest = data.get("normalisation_digest", "")
    if not isinstance(digest, str) or (digest != "" and not _HEX.fullmatch(digest)) \
            or (digest == "") != (said["normalisation"] == "none"):
        raise ActionsError('meta: "normalisation_digest" is %.60r, expected the hash of the numbers that un-normalise '
                           '(8 to 64 hex digits), and none where "normalisation" is "none"' % (digest,))
    return Meta(kind, names, units, steps, said["normalisation"], digest, said["site"], said["trained"], source)


def render(meta: Meta) -> str:
    """The document of a Meta; ActionsError for one that no reader would accept."""
    data: Dict[str, Any] = {"schema": SCHEMA}
    data.update({key: list(value) if isinstance(value, tuple) else value for key, value in meta._asdict().items()})
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    parse(text)
    return text


def digest_of(raw: bytes) -> str:
    """The digest by which noise and normalisation are known: 32 hex digits of the sha256 of little-endian bytes."""
    return hashlib.sha256(raw).hexdigest()[:32]


def _text(data: Dict[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME or not value.isprintable():
        raise ActionsError('meta: "%s" is %.60r, expected a text of 1 to %d printable characters'
                           % (key, value, MAX_NAME))
    return value


def _names(data: Dict[str, Any], key: str) -> Tuple[str, ...]:
    found: Optional[List[Any]] = data.get(key, [])
    if not isinstance(found, list) or len(found) > MAX_NAMES \
            or not all(isinstance(name, str) and len(name) <= MAX_NAME and name.isprintable() for name in found):
        raise ActionsError('meta: "%s" is not a list of at most %d printable texts' % (key, MAX_NAMES))
    if key == "names" and (len(set(found)) < len(found) or "" in found):
        raise ActionsError('meta: "names" has one twice, or an empty one')
    return tuple(found)
