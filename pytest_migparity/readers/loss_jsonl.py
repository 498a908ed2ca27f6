"""One JSON object per line: LingBot v1's loss.jsonl, LLaMA-Factory's trainer_log.jsonl and the like."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from pytest_migparity.core.verdict import note

from .errors import ReadError, shown
from .loss_csv import STEP_NAMES
from .rows import Rows

LINE_LIMIT = 1 << 20


class _Record(dict[str, Any]):
    """One object, and a key that it holds more than once."""

    twice: str | None = None


class JsonlReader:
    """Objects with a step; numbers keep their printed digits, NaN and Infinity are read as such."""

    name = "jsonl"

    def sniff(self, text: str) -> float:
        """Does one of the first lines hold an object with a step?"""
        for line in text.split("\n", 20)[:20]:
            record = _record(line)
            if record is not None and _step_key(record) is not None:
                return 0.9
        return 0.0

    def rows(self, text: str, name: str) -> Rows:
        """Every object with a step. A torn last line is dropped; other lines that are no object are an error."""
        found, without = Rows(), 0
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        for position, (number, line) in enumerate(lines):
            record = _record(line)
            if record is None:
                if position == len(lines) - 1 and position and line.lstrip().startswith("{"):
                    found.dropped += 1
                    found.notes.append(note("read-torn-line", file=name, line=number))
                    break
                raise ReadError(name, line=number, found=shown(line), expected="one JSON object per line",
                                remedy="correct or remove the line")
            if record.twice is not None:
                raise ReadError(name, line=number, found=f"the key {shown(record.twice)} more than once",
                                expected="each key once", remedy="keep the one that is meant")
            key = _step_key(record)
            if key is None:
                without += 1
                continue
            cells = {name_: _cell(value) for name_, value in record.items()
                     if name_ != key and not isinstance(value, (dict, list, bool))}
            found.add(number, _cell(record[key]), cells)
        if without:
            found.dropped += without
            found.notes.append(note("read-no-step", file=name, rows=without))
        return found


def _pairs(pairs: list[tuple[str, Any]]) -> _Record:
    record = _Record(pairs)
    if len(record) < len(pairs):
        record.twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
    return record


def _record(line: str) -> _Record | None:
    if len(line) > LINE_LIMIT or not line.lstrip().startswith("{"):
        return None
    try:
        record = json.loads(line, parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_pairs)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, _Record) else None


def _step_key(record: _Record) -> str | None:
    return next((key for key in STEP_NAMES if isinstance(record.get(key), str)), None)


def _cell(value: object) -> str:
    return "" if value is None else str(value)
