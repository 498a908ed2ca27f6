"""Numbers of successes without the episodes: a CSV of task, successes or rate, episodes."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from pytest_migparity.wire.rollouts import MAX_EPISODES, Episode, Rollouts

from .errors import ReadError, shown

COUNTED = "only its counts are known"
_SUCCESSES = ("successes", "success", "num_success")
_RATE, _EPISODES, _TASK = ("rate", "success_rate"), ("episodes", "n", "of"), "task"


def is_counts(text: str) -> bool:
    """Does the header name successes or a rate?"""
    header = {cell.strip().lower() for cell in text.lstrip().split("\n", 1)[0].split(",")}
    return bool(header & {*_SUCCESSES, *_RATE}) and len(header) > 1


def read_counts(text: str, name: str) -> Rollouts:
    """Counts by task; ReadError for a rate without its number of episodes, or one that is no whole count."""
    rows = list(csv.reader(text.strip().split("\n")))
    header = [cell.strip().lower() for cell in rows[0]]
    places = {key: next((header.index(each) for each in names if each in header), None)
              for key, names in (("task", (_TASK,)), ("successes", _SUCCESSES), ("rate", _RATE),
                                 ("episodes", _EPISODES))}
    if places["episodes"] is None:
        raise ReadError(name, line=1, found=f"the columns {shown(', '.join(header))}",
                        expected="a column episodes: a rate without its number of episodes says nothing",
                        remedy="add it: task,successes,episodes")
    found: dict[str, tuple[int, int]] = {}
    for number, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        cells = {key: row[at].strip() if at is not None and at < len(row) else "" for key, at in places.items()}
        task, count = _row(cells, name, number)
        if task in found:
            raise ReadError(name, line=number, found=f"{shown(task)} again", expected="one row for each task",
                            remedy="leave the run that is meant; further runs are reruns of their own")
        found[task] = count
    return whole_count(name, found)


def whole_count(name: str, found: Mapping[str, tuple[int, int]]) -> Rollouts:
    """So many successes of so many episodes of each task, as a run."""
    total = sum(episodes for _, episodes in found.values())
    if not 0 < total <= MAX_EPISODES:
        raise ReadError(name, found=f"{total} episodes", expected=f"1 to {MAX_EPISODES}", remedy="hand in the counts")
    return Rollouts(tuple(Episode(task, None, at < successes) for task, (successes, episodes) in found.items()
                          for at in range(episodes)), COUNTED, from_counts=True)


def _row(cells: Mapping[str, str], name: str, number: int) -> tuple[str, tuple[int, int]]:
    episodes = _whole(cells["episodes"], "episodes", name, number)
    if cells["successes"]:
        successes = _whole(cells["successes"], "successes", name, number)
    else:
        successes = _from_rate(cells["rate"], episodes, name, number)
    if successes > episodes:
        raise ReadError(name, line=number, found=f"{successes} successes of {episodes}", remedy="mend the row",
                        expected="no more than episodes")
    return cells["task"] or "main", (successes, episodes)


def _whole(text: str, what: str, name: str, number: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ReadError(name, line=number, found=f"{what} {shown(text)}", expected="a whole number",
                        remedy="mend the row")
    return int(text)


def _from_rate(text: str, episodes: int, name: str, number: int) -> int:
    """The only number of successes that is printed so; a rate between two counts is an error of its source."""
    percent = text.endswith("%")
    try:
        rate = Decimal(text.rstrip("% "))
    except InvalidOperation:
        rate = Decimal("nan")
    if not rate.is_finite() or not 0 <= rate <= (100 if percent else 1):
        raise ReadError(name, line=number, found=f"a rate of {shown(text)}", expected="0 to 1, or 0% to 100%",
                        remedy="give successes and episodes")
    exponent = rate.as_tuple().exponent
    half = Decimal(5).scaleb((exponent if isinstance(exponent, int) else 0) - 1)
    scale = Decimal(episodes) / (100 if percent else 1)
    least, most = math.ceil((rate - half) * scale), math.floor((rate + half) * scale)
    if most < least:
        raise ReadError(name, line=number, found=f"{text} of {episodes} episodes: {float(rate * scale):g} successes",
                        expected="a whole number of successes", remedy="find the mistake in the rate or in the number")
    if most > least:
        raise ReadError(name, line=number, found=f"{text} of {episodes} episodes: {least} to {most} successes",
                        expected="one number of successes", remedy="give successes and episodes")
    return most
