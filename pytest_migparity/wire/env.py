"""The environment lock `env.json` as `host.envlock` writes it: what a reader may rely on."""

import json
import re
from typing import Any, Callable, Dict, List, Tuple

SCHEMA = "migparity.env/1"
MAX_BYTES = 1 << 20  # a host with 60 packages needs 6 KB, one with 600 about 60 KB
MAX_DEPTH = 12
_SURROGATE = re.compile("[\ud800-\udfff]")
_OBJECTS = ("rank", "python", "os", "cpu", "packages", "extensions", "cuda", "npu", "torch", "env", "trees", "configs")
_REQUIRED = ("python", "packages", "env")
_COUNTS = ("checked", "modified", "missing", "added", "unchecked", "dirty", "untracked", "dropped")
_TEXTS = ("url", "commit", "archive", "patch", "site", "repo", "version", "seen", "sha256", "unread", "error")
_LISTS = ("shadowed", "built_for", "present")


class EnvError(ValueError):
    """The environment lock cannot be read or does not keep its own rules; the message names the key."""


def parse(text: str) -> Dict[str, Any]:
    """Read a lock. EnvError for anything but a bounded, well-formed `migparity.env/1` document."""
    if len(text) > MAX_BYTES:
        raise EnvError("larger than %d characters" % MAX_BYTES)
    try:
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except EnvError:
        raise
    except (ValueError, RecursionError) as error:
        raise EnvError("not JSON: %s" % error) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise EnvError('"schema" is not "%s"' % SCHEMA)
    _bounded(data)
    for key in _REQUIRED:
        if key not in data:
            raise EnvError('"%s" is missing' % key)
    for key in _OBJECTS:
        _want(data.get(key, {}), dict, key)
    for key in ("listed", "verified"):
        _texts(data.get(key, []), key)
    for key, value in data["env"].items():
        _want(value, str, "env.%s" % key)
    for key, value in data.get("rank", {}).items():
        _count(value, "rank.%s" % key)
    _each(data, "packages", _package)
    _each(data, "extensions", _extension)
    _each(data, "trees", _details)
    _each(data, "configs", _config)
    _details(data.get("torch", {}), "torch")
    _scalars(data.get("torch", {}).get("flags", {}), "torch.flags")
    for vendor in ("cuda", "npu"):
        for row in _want(data.get(vendor, {}).get("devices", []), list, vendor + ".devices"):
            _want(row, list, vendor + ".devices[]")
    return data


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        seen = set()  # type: set[str]
        for key, _ in pairs:
            if key in seen:
                raise EnvError("key %r is given twice" % key[:80])
            seen.add(key)
    return data


def _refuse(name: str) -> Any:
    raise EnvError("%s is not a JSON number" % name)


def _bounded(data: Any) -> None:
    """Every string encodable, nothing nested deeper than MAX_DEPTH."""
    level, depth = [data], 0
    while level:
        if depth > MAX_DEPTH:
            raise EnvError("nested deeper than %d" % MAX_DEPTH)
        below = []  # type: List[Any]
        for value in level:
            if isinstance(value, str) and _SURROGATE.search(value):
                raise EnvError("a string holds half a character: %r" % value[:40])
            if isinstance(value, dict):
                below.extend(value)
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
        level, depth = below, depth + 1


def _want(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise EnvError("%s is %s, expected %s" % (where, type(value).__name__, kind.__name__))
    return value


def _count(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise EnvError("%s is %.40r, expected a count" % (where, value))


def _texts(value: Any, where: str) -> None:
    for item in _want(value, list, where):
        _want(item, str, where + "[]")


def _scalars(value: Any, where: str) -> None:
    for key, item in _want(value, dict, where).items():
        for one in item if isinstance(item, list) else [item]:
            if not (one is None or isinstance(one, (str, int, float))):
                raise EnvError("%s.%s is %s, expected a plain value" % (where, key, type(one).__name__))


def _each(data: Dict[str, Any], section: str, rule: Callable[[Any, str], None]) -> None:
    """Apply `rule` to every entry, unless the whole section says why it is missing."""
    entries = data.get(section, {})
    if isinstance(entries.get("error"), str):
        return
    for name, value in entries.items():
        rule(value, "%s.%s" % (section, name))


def _details(value: Any, where: str) -> None:
    """The keys that every kind of entry shares."""
    for key, item in _want(value, dict, where).items():
        if key in _COUNTS:
            _count(item, "%s.%s" % (where, key))
        elif key in _TEXTS:
            _want(item, str, "%s.%s" % (where, key))
        elif key in _LISTS:
            _texts(item, "%s.%s" % (where, key))


def _package(value: Any, where: str) -> None:
    if len(_want(value, list, where)) not in (4, 5):
        raise EnvError("%s has %d fields, expected version, kind, payload, build and perhaps details"
                       % (where, len(value)))
    _texts(value[:4], where)
    if len(value) == 5:
        _details(value[4], where)


def _extension(value: Any, where: str) -> None:
    if isinstance(value, dict):
        return _details(value, where)
    if len(_want(value, list, where)) != 2:
        raise EnvError("%s has %d fields, expected hash and architectures" % (where, len(value)))
    _want(value[0], str, where)
    _texts(value[1], where)


def _config(value: Any, where: str) -> None:
    _details(value, where)
    _scalars(value.get("values", {}), where + ".values")
