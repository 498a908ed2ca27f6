"""One JSON object per line: LingBot v1's loss.jsonl, LLaMA-Factory's trainer_log.jsonl and the like."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from pytest_migparity.core.verdict import note

from .errors import ReadError, shown
from .lines import Lines
from .loss_csv import STEP_NAMES
from .rows import Rows
from .skeleton import RECORD_LIMIT, Skeleton

LINE_LIMIT = 1 << 20
_NUMBER = r"-?(?:0|[1-9]\d{0,63})(?:\.\d{1,63})?(?:[eE][+-]?\d{1,4})?|NaN|-?Infinity"
_TEXT = r'[^"\\\x00-\x1f]{0,200}+'
_PAIR = re.compile(f'( {{0,8}}"({_TEXT})" {{0,8}}: {{0,8}})(?:({_NUMBER})|"({_TEXT})"|true|false)'
                   r"( {0,8}(?:,|\} {0,8}$))", re.ASCII)
_CURLY = str.maketrans("\u201c\u201d", '""')
_BARE = re.compile(r"([:,\[] {0,8}-?)(nan|inf(?:inity)?)(?= {0,8}[,}\]])", re.IGNORECASE)
_ANYTHING = re.compile(r"\S")


class _Record(dict[str, Any]):
    """One object, a key that it holds more than once, and whether it was strict JSON."""

    twice: str | None = None
    loose = False


class JsonlReader:
    """Objects with a step; numbers keep their printed digits, NaN and Infinity are read as such.

    Curly quotes and bare nan and inf, which no strict JSON has, are read as meant and reported.
    """

    name = "jsonl"

    def sniff(self, head: str) -> float:
        """Does one of the first lines hold an object with a step?"""
        for line in head.split("\n", 20)[:20]:
            record = _record(line)
            if record is not None and _step_key(record) is not None:
                return 0.9
        return 0.0

    def read(self, lines: Lines, rows: Rows) -> None:
        """Every object with a step. A torn last line is dropped; other lines that are no object are an error."""
        skeleton, records = None, _Records(rows)
        for first, block in lines.blocks():
            skeleton = skeleton or _learn(block)
            whole = block.rfind("\n") + 1
            if skeleton is None or records.broken or not skeleton.read(block[:whole], first, rows, records.read):
                skeleton = None
                for number, line in enumerate(block[:whole].split("\n"), first):
                    records.read(line, number)
            elif records.broken and block[:whole].rstrip().count("\n") + first > (records.broken.line or 0):
                raise records.broken
            records.any = records.any or skeleton is not None
            records.read(block[whole:], first + block.count("\n"))
        records.end()


class _Records:
    """Lines read one by one into `rows`."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.any = False
        self.broken: ReadError | None = None  # the last line so far, should more follow
        self._without = 0
        self._loose = self._first_loose = 0

    def read(self, line: str, number: int) -> None:
        """One line; blank ones are passed over."""
        if not line or line.isspace():
            return
        if self.broken is not None:
            raise self.broken
        record = _record(line)
        if record is None:
            self.broken = ReadError(self.rows.name, line=number, found=shown(line),
                                    expected="one JSON object per line", remedy="correct or remove the line")
            if not self.any or not line.lstrip().startswith("{"):
                raise self.broken
            return
        self.any = True
        if record.loose:
            self._loose, self._first_loose = self._loose + 1, self._first_loose or number
        if record.twice is not None:
            raise ReadError(self.rows.name, line=number, found=f"the key {shown(record.twice)} more than once",
                            expected="each key once", remedy="keep the one that is meant")
        key = _step_key(record)
        if key is None:
            self._without += 1
        else:
            self.rows.add(number, record[key], {name: _cell(value) for name, value in record.items()
                                                if name != key and not isinstance(value, (dict, list, bool))})

    def end(self) -> None:
        """Say what was dropped."""
        if self.broken is not None:
            self.rows.dropped += 1
            self.rows.notes.append(note("read-torn-line", file=self.rows.name, line=self.broken.line or 0))
        if self._loose:
            self.rows.repaired += self._loose
            self.rows.notes.append(note("read-loose-json", file=self.rows.name, rows=self._loose,
                                        line=self._first_loose))
        if self._without:
            self.rows.dropped += self._without
            self.rows.notes.append(note("read-no-step", file=self.rows.name, rows=self._without))


def _learn(block: str) -> Skeleton | None:
    """The skeleton of the line in the middle of `block`, if it is a flat object of numbers, texts, true and false."""
    begin = block.rfind("\n", 0, len(block) // 2) + 1
    end = block.find("\n", begin)
    line = block[begin:end]
    record = _record(line) if end >= 0 and len(line) < RECORD_LIMIT else None
    step = None if record is None or record.twice is not None else _step_key(record)
    if step is None:
        return None
    columns: list[str] = []
    at = line.index("{") + 1
    pattern = re.escape(line[:at])
    while pair := _PAIR.match(line, at):
        before, key, number, text, after = pair.groups()
        pattern += re.escape(before)
        if number or text is not None:
            columns.append(key)
            pattern += f"({_NUMBER})" if number else f'"({_TEXT})"'
        else:
            pattern += line[pair.end(1): pair.start(5)]
        pattern += re.escape(after)
        at = pair.end()
    if at < len(line) or step not in columns:
        return None
    return Skeleton(tuple(columns), columns.index(step), re.compile(f"^{pattern}$|^(.*)$", re.ASCII | re.MULTILINE),
                    _ANYTHING, numbers=False)


def _pairs(pairs: list[tuple[str, Any]]) -> _Record:
    record = _Record(pairs)
    if len(record) < len(pairs):
        record.twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
    return record


_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_pairs)


def _record(line: str) -> _Record | None:
    """The object in a line, read as meant where quotes are curly or a nan is bare; None where there is none."""
    if len(line) > LINE_LIMIT or not line.lstrip().startswith("{"):
        return None
    record = _decoded(line)
    if record is None:
        mended = _BARE.sub(lambda match: match[1] + ("NaN" if match[2][0] in "nN" else "Infinity"),
                           line.translate(_CURLY))
        record = _decoded(mended) if mended != line else None
        if record is not None:
            record.loose = True
    return record


def _decoded(line: str) -> _Record | None:
    try:
        record = _DECODER.decode(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, _Record) else None


def _step_key(record: _Record) -> str | None:
    return next((key for key in STEP_NAMES if isinstance(record.get(key), str)), None)


def _cell(value: object) -> str:
    return "" if value is None else str(value)
