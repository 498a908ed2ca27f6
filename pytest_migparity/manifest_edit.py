"""Floors and limits into a manifest that people wrote: comments and order stay, and an invalid one never lands."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit
from pydantic import TypeAdapter, ValidationError
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AbstractTable, Table

from .core.errors import UserError
from .core.manifest import LimitTable, load_manifest

if TYPE_CHECKING:
    from .calibrate import Calibration

TABLES = ("floors", "limits")
NAMED_RUNS = 5
MOST_BYTES = 1 << 20
_ENTRIES = TypeAdapter(dict[str, LimitTable | float])


@dataclass(frozen=True, slots=True)
class Entry:
    """One number with its reason, as it stands in [floors.LEVEL] or [limits.LEVEL]; `runs` is 0 for a limit."""

    value: float
    because: str
    runs: int = 0

    def says(self, other: LimitTable | float) -> bool:
        """Is `other` the same number, from as many runs?"""
        value, runs = (other.value, other.runs) if isinstance(other, LimitTable) else (other, 1)
        return self.value == value and self.runs in (0, runs)

    def keys(self) -> dict[str, float | int | str]:
        """Its keys as they stand in a manifest."""
        return {"value": self.value, **({"runs": self.runs} if self.runs else {}), "because": self.because}


def measured_entries(found: Calibration, date: str) -> dict[str, Entry]:
    """What a calibration writes: the floors that a manifest accepts; `date` is when they were measured."""
    more = ", ..." if len(found.runs) > NAMED_RUNS else ""
    because = (f"{len(found.runs)} reruns of baseline: {', '.join(found.runs[:NAMED_RUNS])}{more}; {date}; "
               f"at most {found.steps} steps")
    return {name: Entry(floor.value, because, floor.runs) for name, floor in found.floors.by_check.items()
            if name not in found.refused}


def imported_entries(path: Path, level: str, source: str) -> dict[str, dict[str, Entry]]:
    """[floors.LEVEL] and [limits.LEVEL] of a manifest, or of a bare file with these tables, `source` their reason.

    The reason that stands there follows `source`. UserError for a file without either, or with entries that are none.
    """
    if not source.strip():
        raise UserError("--import needs --source \"who measured, where\": it becomes the reason of every number")
    data = _document(path).unwrap()
    found: dict[str, dict[str, Entry]] = {}
    for table in TABLES:
        entries = data.get(table)
        entries = entries.get(level) if isinstance(entries, dict) else entries
        if entries is None:
            continue
        try:
            numbers = _ENTRIES.validate_python(entries, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise UserError(f"{path}: [{table}.{level}] {'.'.join(map(str, first['loc'][:1]))} = {first['input']!r}: "
                            "expected a number, or {value = ..., because = \"...\"}") from None
        found[table] = {name: _imported(item, table, source) for name, item in numbers.items()}
    if not any(found.values()):
        raise UserError(f"{path}: holds neither [floors.{level}] nor [limits.{level}]; nothing to import")
    return found


def _imported(item: LimitTable | float, table: str, source: str) -> Entry:
    value, because, runs = ((item.value, item.because, item.runs) if isinstance(item, LimitTable) else (item, None, 1))
    return Entry(value, f"{source}: {because}" if because else source, runs if table == "floors" else 0)


def write_entries(path: Path, level: str, entries: Mapping[str, Mapping[str, Entry]], *, replace: bool = False
                  ) -> dict[str, list[str]]:
    """Write `entries` (by table `floors` or `limits`, then by check) into the manifest `path`; what changed, by table.

    Every other key, every comment and the order stay. An entry that says the same already is left as it is, its reason
    too; one that says another number is a UserError that names both, unless `replace`. The result is read back as a
    manifest before it takes the old one's place in one step; UserError, and the old file untouched, where it is none.
    """
    path = path.resolve()
    before = load_manifest(path)
    document, expected = _document(path), before.model_dump()
    changed: dict[str, list[str]] = {}
    for table, wanted in entries.items():
        there = getattr(before, table).get(level, {})
        new = {name: entry for name, entry in wanted.items() if name not in there or not entry.says(there[name])}
        clash = [f"{name}: {_shown(there[name])} is there, {_shown(entry)} is new"
                 for name, entry in new.items() if name in there]
        if clash and not replace:
            raise UserError(f"{path}: [{table}.{level}] {'; '.join(clash)}; --replace puts the new in its place")
        if new:
            _put(document, table, level, {name: entry.keys() for name, entry in new.items()})
            expected[table] = {**expected[table], level: {**expected[table].get(level, {}), **{
                name: LimitTable(value=entry.value, because=entry.because, runs=entry.runs or 1).model_dump()
                for name, entry in new.items()}}}
            changed[table] = list(new)
    if changed:
        _land(path, tomlkit.dumps(document), expected)
    return changed


def _shown(item: Entry | LimitTable | float) -> str:
    if isinstance(item, float):
        return f"{item!r}"
    return f"{item.value!r} ({item.runs} runs)" if item.runs > 1 else f"{item.value!r}"


def _document(path: Path) -> tomlkit.TOMLDocument:
    try:
        raw = path.read_bytes()
        if len(raw) > MOST_BYTES:
            raise UserError(f"{path}: larger than {MOST_BYTES} bytes; no manifest is")
        return tomlkit.parse(raw.decode("utf-8-sig"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (TOMLKitError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None


def _put(document: tomlkit.TOMLDocument, table: str, level: str, entries: Mapping[str, Mapping[str, Any]]
         ) -> None:
    """Set entries of [table.level]; comments at its end belong to what comes after it, and stay there."""
    if table not in document:
        document[table] = tomlkit.table(is_super_table=True)
    levels: Any = document[table]
    if level not in levels:
        levels[level] = {}
    checks = levels[level]
    tail = []
    if isinstance(checks, Table):
        body = checks.value.body
        own = 1 + max((at for at, (key, _) in enumerate(body) if key is not None), default=len(body) - 1)
        tail = [item for _, item in body[own:]]
        del body[own:]
    for name, keys in entries.items():
        if not isinstance(checks.get(name), AbstractTable):
            checks[name] = tomlkit.inline_table()
        for stale in checks[name].keys() - keys.keys():
            del checks[name][stale]
        checks[name].update(keys)
    for item in tail:
        checks.add(item)


def _land(path: Path, text: str, expected: Mapping[str, Any]) -> None:
    """Put a manifest that reads back as `expected` in the place of `path`, in one step; else leave `path` alone."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    except OSError as error:
        raise UserError(f"{path.parent}: cannot be written to: {error.strerror or error}") from None
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode("utf-8"))
        try:
            after = load_manifest(beside)
        except UserError as error:
            raise UserError(f"{path}: nothing was written; with these numbers it would be no manifest: "
                            f"{str(error).removeprefix(f'{beside}: ')}") from None
        if after.model_dump() != expected:
            raise UserError(f"{path}: nothing was written: its tables are laid out in a way that cannot be edited "
                            "safely; write [floors.LEVEL] and [limits.LEVEL] each as one table of their own")
        shutil.copymode(path, beside)
        os.replace(beside, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        beside.unlink(missing_ok=True)
