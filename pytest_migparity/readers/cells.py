"""Printed cells of one column as arrays: their numbers, and how finely each was printed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_migparity.core.evidence import Floats, Ints

NUMBER = re.compile(r"[+-]?(?:(\d{1,400})(?:\.(\d{0,400}))?|\.(\d{1,400}))(?:[eE]([+-]?\d{1,4}))?", re.ASCII)
NON_FINITE = {"nan": "nan", "inf": "inf", "infinity": "inf", "+inf": "inf", "+infinity": "inf", "-inf": "-inf",
              "-infinity": "-inf", "-nan": "nan", "nan(ind)": "nan", "-nan(ind)": "nan", "null": "", "none": "", "": ""}
STEP = re.compile(r"(\d{1,15})(?:\.0{0,6})?", re.ASCII)
STEP_DIGITS = 15  # float64 still tells such steps apart
EMPTY, FIXED, EXPONENT, NOT_FINITE, ODD = range(5)  # the kinds of a cell; ODD: neither empty nor a number
FINEST_SHARE = 0.9
_ODD_LENGTH, _ODD_TEXTS = 200, 16
_EXPONENT = 5  # bytes of an exponent, its e included, that are read along with all others
_LONG = 64  # longer cells are read one by one
_POWERS = 10.0 ** -np.arange(-300, 301, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Cells:
    """One column, row by row: `value` (NaN where there is none), `decimals` of the mantissa, `exponent`, `kind`.

    `odd` has the texts of cells that are no numbers, by row: of short ones with a comma, and of the first few others;
    of a long one the beginning and an ellipsis.
    """

    value: Floats
    decimals: NDArray[np.int16]
    exponent: NDArray[np.int16]
    kind: NDArray[np.int8]
    odd: dict[int, str] = field(default_factory=dict)

    @classmethod
    def empty(cls, rows: int) -> Cells:
        """A column without a value."""
        return cls(np.full(rows, np.nan), np.zeros(rows, np.int16), np.zeros(rows, np.int16), np.zeros(rows, np.int8))

    @classmethod
    def joined(cls, parts: Sequence[Cells]) -> Cells:
        """Columns one below the other."""
        odd, start = {}, 0
        for part in parts:
            odd.update({start + row: text for row, text in part.odd.items()})
            start += part.kind.size
        return cls(np.concatenate([part.value for part in parts]),
                   np.concatenate([part.decimals for part in parts]),
                   np.concatenate([part.exponent for part in parts]),
                   np.concatenate([part.kind for part in parts]), odd)

    def take(self, rows: Ints) -> Cells:
        """Those rows, in that order, without the odd texts."""
        return Cells(self.value[rows], self.decimals[rows], self.exponent[rows], self.kind[rows])

    def part(self, begin: int, end: int) -> Cells:
        """The rows from `begin` to before `end`."""
        odd = {row - begin: text for row, text in self.odd.items() if begin <= row < end}
        rows = slice(begin, end)
        return Cells(self.value[rows], self.decimals[rows], self.exponent[rows], self.kind[rows], odd)

    def mend(self, texts: Mapping[int, str]) -> None:
        """Read these rows' cells anew, as `texts` has them."""
        rows, better = np.fromiter(texts, np.int64, len(texts)), read_cells(list(texts.values()))
        self.value[rows], self.decimals[rows] = better.value, better.decimals
        self.exponent[rows], self.kind[rows] = better.exponent, better.kind
        for row in texts:
            self.odd.pop(row, None)
        self.odd.update({int(rows[i]): text for i, text in better.odd.items()})

    def quantum(self) -> Floats:
        """One unit in the last printed place, row by row; 0 where nothing was printed.

        Fixed notation: 10^-D, D the decimals that a tenth of the column reaches or the row itself, whichever is more:
        printed floats drop trailing zeros (0.116 for 0.1160), and one row with more digits must not speak for the
        others. Exponent notation alike, with the decimals of the mantissa, shifted by the exponent.
        """
        quantum = np.zeros(self.kind.size)
        for kind in (FIXED, EXPONENT):
            rows = self.kind == kind
            if rows.any():
                usual = np.quantile(self.decimals[rows], FINEST_SHARE, method="lower")
                places = np.maximum(self.decimals[rows], usual).astype(np.int64) - self.exponent[rows]
                quantum[rows] = _POWERS[np.clip(places, -300, 300) + 300]
        return quantum


def read_cells(texts: Sequence[str]) -> Cells:
    """The cells of one column as printed."""
    joined = "\n".join(texts) + "\n"
    if " " in joined:
        texts = [text.strip() for text in texts]
        joined = "\n".join(texts) + "\n"
    if len(texts) > 1 and texts[0] == texts[-1] and texts.count(texts[0]) == len(texts):
        one = _any_cells(texts[:1])
        if not one.odd:
            return one.take(np.zeros(len(texts), np.int64))
    return _plain_numbers(texts, joined) or _any_cells(texts)


def _plain_numbers(texts: Sequence[str], joined: str) -> Cells | None:
    """All at once, where every cell is a plain number; None where one may not be. `joined`: each with a newline.

    A cell of these characters that `float` reads is of the form NUMBER, given that its exponent is short.
    """
    if not joined.isascii():
        return None
    raw = joined.encode()
    if raw.translate(None, b"0123456789.+-eE\n"):
        return None
    count = len(texts)
    buffer = np.frombuffer(raw, np.uint8)
    ends = np.flatnonzero(buffer == 10)
    if ends.size != count or (np.diff(ends, prepend=-1) > _LONG).any():
        return None
    try:
        value = np.fromiter(map(float, texts), np.float64, count)
    except ValueError:
        return None
    decimals, exponent, kind = np.zeros(count, np.int16), np.zeros(count, np.int16), np.full(count, FIXED, np.int8)
    stop = ends
    marks = np.flatnonzero((buffer | 32) == 101)
    if marks.size:
        rows = np.searchsorted(ends, marks)
        if (ends[rows] - marks > _EXPONENT).any():
            return None
        stop = ends.copy()
        stop[rows] = marks
        kind[rows] = EXPONENT
        exponent[rows] = _exponents(buffer, marks, ends[rows])
    points = np.flatnonzero(buffer == 46)
    rows = np.arange(count) if points.size == count else np.searchsorted(ends, points)
    decimals[rows] = stop[rows] - points - 1
    return Cells(value, decimals, exponent, kind)


def _exponents(buffer: NDArray[np.uint8], marks: Ints, ends: Ints) -> Ints:
    """The exponents that begin behind `marks` (an e) and end before `ends`: an optional sign and up to four digits."""
    exponents = np.zeros(marks.size, np.int64)
    for place in range(1, _EXPONENT):
        digit = buffer[np.minimum(marks + place, buffer.size - 1)].astype(np.int64) - 48
        printed = (marks + place < ends) & (digit >= 0)  # both signs lie below the digits
        exponents = np.where(printed, exponents * 10 + digit, exponents)
    return np.where(buffer[marks + 1] == 45, -exponents, exponents)


def _any_cells(texts: Sequence[str]) -> Cells:
    """Cell by cell."""
    found = Cells.empty(len(texts))
    for i, cell in enumerate(texts):
        text = cell.strip()
        match = NUMBER.fullmatch(text)
        if match is not None:
            found.value[i] = float(text)
            found.decimals[i] = len(match.group(2) or match.group(3) or "")
            found.kind[i], found.exponent[i] = (EXPONENT, int(match.group(4))) if match.group(4) else (FIXED, 0)
            continue
        special = NON_FINITE.get(text.lower())
        if special is None:
            found.kind[i] = ODD
            if len(found.odd) < _ODD_TEXTS or ("," in text and len(text) <= _LONG):
                found.odd[i] = text if len(text) <= _ODD_LENGTH else text[:_ODD_LENGTH] + "…"
        elif special:
            found.kind[i], found.value[i] = NOT_FINITE, float(special)
    return found


def read_steps(texts: Sequence[str]) -> tuple[Ints, dict[int, str]]:
    """(printed step numbers, -1 where a text is none; the first of those texts by row): `12`, `12.0`, `12/100`."""
    joined = "".join(texts)
    if joined.isascii() and joined.isdecimal() and min(map(len, texts)) and max(map(len, texts)) <= STEP_DIGITS:
        return np.fromiter(map(int, texts), np.int64, len(texts)), {}
    steps = np.full(len(texts), -1, np.int64)
    odd: dict[int, str] = {}
    for i, text in enumerate(texts):
        match = STEP.fullmatch(text.split("/", 1)[0].strip().replace(",", ""))
        if match is None:
            if len(odd) < _ODD_TEXTS:
                odd[i] = text[:_ODD_LENGTH]
        else:
            steps[i] = int(match.group(1))
    return steps, odd
