"""Log lines that differ in their numbers only: one is learnt, the others are read a block at a time.

A skeleton is narrower than the format it was learnt from, and what does not fit it exactly is left to the format's own
reading of a line: the rows are the same, only sooner.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .cells import EMPTY, ODD, read_cells
from .rows import Rows

RECORD_LIMIT = 1 << 14  # characters of one record that are looked at
_VALUE = 64  # characters
_BLANKS = f" {{0,{_VALUE}}}+"
_OTHERS = 64  # records of another shape in a block of fitting ones; with more of them line by line is as quick


class Piece(NamedTuple):
    """A part of a record up to its separator: `before` the value, in the text; the column; what may come `after`.

    `column` is "" where the part holds no value: `before` is then all of it.
    """

    before: str
    column: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """How a format's records look: `start` begins one and has its step as group 1, `word` is how `start` begins.

    `cells` yields what a record holds after its start: column, value, and whether a separator ends it. `pieces` cuts a
    record for learning. Values hold none of the characters `never`.
    """

    start: re.Pattern[str]
    word: str
    cells: Callable[[str], Iterator[tuple[str, str, bool]]]
    pieces: Callable[[str], Iterator[Piece]]
    separator: str
    never: str


@dataclass(frozen=True, slots=True)
class Skeleton:
    """What the records of one run have in common. `pattern` matches each line of a block once.

    Its groups: each column's value, all empty in a line that does not fit, and that whole line. The column number
    `step` is the step. `record` is found in lines that are read though they do not fit. `numbers`: a value that is no
    number makes a line another's.
    """

    columns: tuple[str, ...]
    step: int
    pattern: re.Pattern[str]
    record: re.Pattern[str]
    numbers: bool

    def read(self, block: str, first: int, rows: Rows, other: Callable[[str, int], None]) -> bool:
        """Add the rows of whole lines, the first of which has the number `first`; `other` reads a line that differs.

        False, and nothing added, where too many differ or a value is none.
        """
        found = self.pattern.findall(block)
        fitting = np.array([bool(groups[self.step]) for groups in found])
        strange = [i for i in np.flatnonzero(~fitting).tolist() if self.record.search(found[i][-1])]
        if len(strange) > _OTHERS or not fitting.any():
            return False
        at = np.flatnonzero(fitting)
        texts = list(zip(*(groups for groups in found if groups[self.step]), strict=True))[:-1]
        step = texts.pop(self.step)
        names = [name for i, name in enumerate(self.columns) if i != self.step]
        cells = dict(zip(names, map(read_cells, texts), strict=True))
        if self.numbers and any(((each.kind == EMPTY) | (each.kind == ODD)).any() for each in cells.values()):
            return False
        begun = 0
        for i in [*strange, len(found)]:
            end = int(np.searchsorted(at, i))
            rows.extend(first + at[begun:end], step[begun:end], {key: each.part(begun, end)
                                                                 for key, each in cells.items()})
            begun = end
            if i < len(found):
                other(found[i][-1], first + i)
        return True


def learn(block: str, form: Form) -> Skeleton | None:
    """The skeleton of a record in the middle of `block`, if that record is alone in its line and regular."""
    match = form.start.search(block, len(block) // 2) or form.start.search(block)
    if match is None:
        return None
    end = block.find("\n", match.end())
    record = block[match.end(): end]
    if end < 0 or re.search(form.word, record):
        return None
    pieces = list(form.pieces(record))
    columns = tuple(piece.column for piece in pieces if piece.column)
    if not columns or len(set(columns)) < len(columns) or len(record) + 3 * _VALUE * len(pieces) > RECORD_LIMIT:
        return None
    if columns != tuple(name for name, _, _ in form.cells(record)):
        return None
    value = f"([^ \\n{re.escape(form.never + form.separator)}]{{1,{_VALUE}}}+)"
    body = re.escape(form.separator).join(
        re.escape(piece.before) + (_BLANKS + value + piece.after + _BLANKS if piece.column else "") for piece in pieces)
    letter, rest = form.word[0], form.word[1:]
    alone = f"[^{letter}\\n]*+(?:{letter}(?!{rest})[^{letter}\\n]*+)*+"  # what comes before holds no record
    pattern = re.compile(f"^{alone}{form.start.pattern}{body}$|^(.*)$", re.ASCII | re.MULTILINE)
    return Skeleton(("step", *columns), 0, pattern, form.start, numbers=True)
