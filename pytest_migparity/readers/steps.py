"""Steps that a log abbreviates or leaves out, and the evidence for them."""

from __future__ import annotations

import math
from collections import Counter

DISTANCES = 1000  # different distances between steps that are told apart
SUFFIXES = ("", "K", "M", "B", "T", "Q")


class Spacing:
    """The usual distance between the steps of rows as they come."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._seen: Counter[int] = Counter()

    def add(self, step: int) -> None:
        """The next row's step. Going back (a resume) is no distance."""
        distance = 0 if self._last is None else step - self._last
        if distance > 0 and (distance in self._seen or len(self._seen) < DISTANCES):
            self._seen[distance] += 1
        self._last = step

    @property
    def started(self) -> bool:
        """Has there been a row?"""
        return self._last is not None

    @property
    def usual(self) -> int | None:
        """The commonest distance, the smaller of equally common ones; None before the second step."""
        return min(self._seen, key=lambda distance: (-self._seen[distance], distance), default=None)

    @property
    def regular(self) -> bool:
        """Are all distances the same, one aside (the last row of a run)?"""
        return len(self._seen) < 2 or (len(self._seen) == 2 and min(self._seen.values()) == 1)


class Proportion:
    """May numbers printed beside the steps (epochs) be proportional to them, their rounding granted?"""

    def __init__(self) -> None:
        self._least, self._most = 0.0, math.inf

    def admits(self, step: int, printed: float, decimals: int) -> bool:
        """Is there still one factor for all steps so far and this one?"""
        if step > 0:
            half = 0.5 * 10.0**-decimals + 1e-9 * abs(printed)
            self._least = max(self._least, (printed - half) / step)
            self._most = min(self._most, (printed + half) / step)
        return self._least <= self._most


def abbreviated(number: int) -> str:
    """`number` as LeRobot's format_big_number prints it with no decimals: 999, 1K for 1000 to 1500, 2K, ..., 1M."""
    value: float = number
    for suffix in SUFFIXES:
        if value < 1000:
            return f"{value:.0f}{suffix}"
        value /= 1000.0
    return str(value)
