"""The fields of a printed record: where it ends, what its columns are called here, which texts are values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .cells import NON_FINITE, NUMBER
from .rows import Rows

COLUMNS = {"learning_rate": "lr", "grdn": "grad_norm", "gradnorm": "grad_norm", "epch": "epoch",
           "samples_count": "samples", "num_tokens": "tokens", "num_input_tokens_seen": "tokens"}
LONGEST = 64  # characters of a number that a trainer prints
RECORD_LIMIT = 1 << 14  # characters of one record that are looked at
_BLANKS = re.compile(r"[\s_]+")


def column(printed: str) -> str:
    """The name of a column by what the log calls it: `learning_rate` and `Learning rate` are `lr`."""
    name = _BLANKS.sub("_", printed.strip()).lower()
    return COLUMNS.get(name, name)


def is_value(text: str) -> bool:
    """Is `text` a number, a NaN or an Inf?"""
    return len(text) <= LONGEST and (NUMBER.fullmatch(text) is not None or bool(NON_FINITE.get(text.lower())))


def records(line: str, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], str]]:
    """Every match of `pattern` in a line, with what follows it up to the next: two ranks may be glued on one line."""
    last: re.Match[str] | None = None
    for match in pattern.finditer(line):
        if last is not None:
            yield last, line[last.end(): min(match.start(), last.end() + RECORD_LIMIT)]
        last = match
    if last is not None:
        yield last, line[last.end(): last.end() + RECORD_LIMIT]


def values(record: str, field: re.Pattern[str], rows: Rows, line: int) -> dict[str, str]:
    """The numbers of a record by column; `field` matches one, its name as group 1 and its value as group 2."""
    return named(((name, value) for name, value in field.findall(record) if is_value(value)), rows, line)


def named(fields: Iterable[tuple[str, str]], rows: Rows, line: int) -> dict[str, str]:
    """Fields by column. A name that comes twice with two values is entered in `rows.twice`; the first stays."""
    found: dict[str, str] = {}
    for name, value in fields:
        key = column(name)
        if found.setdefault(key, value) != value:
            rows.twice.setdefault(key, line)
    return found
