"""Many names that differ in their numbers, such as those of a model's layers, as a few templates.

An entry is a name as it is, or a template with `#` for each number and what the numbers are: one range for each
("0-35", all combinations), or, where not all combinations occur, the list of those that do.
"""

import itertools
import math
import re
from collections import defaultdict
from typing import Any, Dict, List, Sequence, Tuple

MAX_NAMES = 200000
_NUMBER = re.compile(r"(?<![0-9])(?:0|[1-9][0-9]{0,8})(?![0-9])")
_RANGE = re.compile(r"(0|[1-9][0-9]{0,8})-(0|[1-9][0-9]{0,8})")


def fold(names: Sequence[str]) -> List[Any]:
    """Entries that `unfold` makes the sorted `names` of."""
    groups: Dict[str, List[Tuple[int, ...]]] = defaultdict(list)
    entries: List[Any] = []
    for name in names:
        if "#" in name or not _NUMBER.search(name):
            entries.append(name)
        else:
            groups[_NUMBER.sub("#", name)].append(tuple(map(int, _NUMBER.findall(name))))
    for template, numbers in groups.items():
        columns = [(min(column), max(column)) for column in zip(*numbers)]
        whole = math.prod(last - first + 1 for first, last in columns) == len(set(numbers)) == len(numbers)
        entries.append([template, ["%d-%d" % pair for pair in columns] if whole else [list(row) for row in numbers]])
    return entries


def unfold(entries: Sequence[Any]) -> List[str]:
    """The names, sorted; ValueError where an entry is none of ours, or stands for more names than a model has."""
    names: List[str] = []
    for entry in entries:
        if isinstance(entry, str):
            names.append(entry)
        else:
            names += _filled(*_rows(entry), most=MAX_NAMES - len(names))
    return sorted(names)


def _rows(entry: Any) -> Tuple[str, Tuple[Any, bool]]:
    """(template, (its numbers, are they ranges?)), held to the form of an entry."""
    if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], list)):
        raise ValueError("%.80r is no name and no template" % (entry,))
    template, numbers = entry
    if numbers and all(isinstance(item, str) for item in numbers):
        found = [_RANGE.fullmatch(item) for item in numbers]
        if not all(found) or len(found) != template.count("#"):
            raise ValueError("%.80r has no range for each of its numbers" % (entry,))
        return template, ([range(int(one[1]), int(one[2]) + 1) for one in found if one], True)
    for row in numbers:
        if not (isinstance(row, list) and len(row) == template.count("#") and row
                and all(type(number) is int and 0 <= number < 10**9 for number in row)):
            raise ValueError("%.80r has no number for each of its places" % (entry,))
    return template, (numbers, False)


def _filled(template: str, rows: Tuple[Any, bool], most: int) -> List[str]:
    numbers, are_ranges = rows
    amount = math.prod(map(len, numbers)) if are_ranges else len(numbers)
    if amount > most:
        raise ValueError("more than %d names" % MAX_NAMES)
    form = template.replace("%", "%%").replace("#", "%d")
    return [form % tuple(row) for row in (itertools.product(*numbers) if are_ranges else numbers)]
