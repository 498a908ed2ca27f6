"""The receipt `artifacts.json`: who produced the files beside it, from which recipe, and each file's sha256."""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

NAME = "artifacts.json"
SCHEMA = "migparity.receipt/1"
PRODUCERS = ("real", "rehearsal", "manual")
DRAWS = ("keyed", "unkeyed")
MAX_BYTES = 1 << 20
_HEX = re.compile(r"[0-9a-f]{64}")


class ReceiptError(ValueError):
    """The receipt cannot be read or does not keep its own rules."""


class Entry(NamedTuple):
    """One artifact file. `rerun` is 0 for the run itself, k for the k-th repeat of the same side.

    `series` names the loss series ("main" where a model has one) and is empty for other kinds.
    """

    kind: str
    path: str
    sha256: str
    bytes: int
    series: str = ""
    rerun: int = 0


class Draws(NamedTuple):
    """Random draws of a launched run, by site: how often they were made by key, and how often by the program's own.

    `mode` is `keyed` where every rank reported and nothing was drawn outside: another device repeats the numbers. Else
    `unkeyed`, with the `reasons`: the run is weak-mode evidence.
    """

    mode: str
    wrapped: Dict[str, int]
    outside: Dict[str, int]
    reasons: Tuple[str, ...] = ()


class Receipt(NamedTuple):
    """Who produced the artifacts, when, by which order and from which recipe (sha256 of its canonical JSON)."""

    producer: str
    recipe: str
    files: Tuple[Entry, ...]
    created: str = ""
    order: str = ""
    commit: str = ""
    tree: str = ""
    tool: str = ""
    draws: Optional[Draws] = None

    def entries(self, kind: str, series: str = "") -> List[Entry]:
        """The files of one kind and series, the run before its reruns."""
        chosen = [entry for entry in self.files if entry.kind == kind and entry.series == series]
        return sorted(chosen, key=lambda entry: (entry.rerun, entry.path))


def recipe_hash(recipe: Dict[str, Any]) -> str:
    """sha256 over the recipe's canonical JSON: sorted keys, no blanks."""
    text = json.dumps(recipe, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def inside(path: str) -> bool:
    """Does a relative path stay inside its folder, on every platform?"""
    parts = path.replace("\\", "/").split("/")
    return bool(path) and "\0" not in path and ":" not in path and not path.startswith(("/", "\\")) \
        and not any(part in ("", ".", "..") for part in parts)


def parse(text: str) -> Receipt:
    """Read a receipt; ReceiptError names the key that is missing or wrong."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReceiptError("not JSON: %s" % error) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ReceiptError('"schema" is not "%s"' % SCHEMA)
    if data.get("producer") not in PRODUCERS:
        raise ReceiptError('"producer" is %r, expected one of %s' % (data.get("producer"), ", ".join(PRODUCERS)))
    texts = {}
    for key in ("recipe", "created", "order", "commit", "tree", "tool"):
        texts[key] = data.get(key, "")
        if not isinstance(texts[key], str):
            raise ReceiptError('"%s" is not a string' % key)
    if not isinstance(data.get("files"), list):
        raise ReceiptError('"files" is not a list')
    return Receipt(producer=data["producer"], files=tuple(_entry(item, i) for i, item in enumerate(data["files"])),
                   draws=_draws(data["draws"]) if "draws" in data else None, **texts)


def _draws(item: Any) -> Draws:
    tables = [item.get(key) for key in ("wrapped", "outside")] if isinstance(item, dict) else []
    reasons = item.get("reasons", []) if isinstance(item, dict) else None
    if not tables or item.get("mode") not in DRAWS or not isinstance(reasons, list) \
            or not all(isinstance(table, dict) and all(type(count) is int for count in table.values())
                       for table in tables):
        raise ReceiptError('"draws" needs "mode" (%s) and counts by site in "wrapped" and "outside"' % ", ".join(DRAWS))
    if item["mode"] == "keyed" and (tables[1] or reasons):
        raise ReceiptError('"draws" says "keyed", and lists what was not')
    return Draws(item["mode"], item["wrapped"], item["outside"], tuple(map(str, reasons)))


def _entry(item: Any, index: int) -> Entry:
    where = "files[%d]" % index
    if not isinstance(item, dict):
        raise ReceiptError("%s is not an object" % where)
    for key, kind in (("kind", str), ("path", str), ("sha256", str), ("bytes", int)):
        if not isinstance(item.get(key), kind):
            raise ReceiptError("%s.%s is missing or not %s" % (where, key, kind.__name__))
    if not inside(item["path"]):
        raise ReceiptError("%s.path %r leaves its folder" % (where, item["path"]))
    if not _HEX.fullmatch(item["sha256"]):
        raise ReceiptError("%s.sha256 is not 64 hex digits" % where)
    series, rerun = item.get("series", ""), item.get("rerun", 0)
    if not isinstance(series, str) or not isinstance(rerun, int):
        raise ReceiptError("%s.series or .rerun has the wrong type" % where)
    return Entry(item["kind"], item["path"], item["sha256"], item["bytes"], series, rerun)


def entry_for(folder: str, path: str, kind: str, series: str = "", rerun: int = 0) -> Entry:
    """The entry of a file that lies in `folder` now."""
    digest, size = hashlib.sha256(), 0
    with open(os.path.join(folder, path), "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
            size += len(block)
    return Entry(kind, path, digest.hexdigest(), size, series, rerun)


def write(folder: str, receipt: Receipt) -> str:
    """Write `artifacts.json` beside its files, atomically; returns its path."""
    data: Dict[str, Any] = {"schema": SCHEMA}
    data.update({key: value for key, value in receipt._asdict().items()
                 if value not in ("", None) and key not in ("files", "draws")})
    if receipt.draws is not None:
        data["draws"] = receipt.draws._asdict()
    data["files"] = [{key: value for key, value in entry._asdict().items() if value not in ("", 0) or key == "bytes"}
                     for entry in receipt.files]
    target = os.path.join(folder, NAME)
    temporary = target + ".part"
    with open(temporary, "w", encoding="utf-8", newline="\n") as stream:
        json.dump(data, stream, indent=1, sort_keys=True, ensure_ascii=False)
        stream.write("\n")
    os.replace(temporary, target)
    return target


def read(folder: str) -> Optional[Receipt]:
    """The folder's receipt, None where there is none; ReceiptError where it cannot be used."""
    try:
        with open(os.path.join(folder, NAME), "rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ReceiptError(str(error)) from None
    if len(raw) > MAX_BYTES:
        raise ReceiptError("larger than %d bytes" % MAX_BYTES)
    try:
        return parse(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ReceiptError("not UTF-8: %s" % error) from None
