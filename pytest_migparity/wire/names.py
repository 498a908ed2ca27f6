"""Many names that differ in their numbers, such as those of a model's layers, as a few templates.

An entry is a name as it is, or a template with `#` for each number and what the numbers are: one range for each
("0-35", all combinations), or, where not all combinations occur, the list of those that do; or it is a name and three
numbers [first, last, each]: the parts `name[first:first+each]`, ... of the elements from `first` to `last`.
"""

import itertools
import math
import re
from collections import defaultdict
from typing import Any, Dict, List, Optional, Sequence, Tuple

MAX_NAMES = 200000
_NUMBER = re.compile(r"(?<![0-9])(?:0|[1-9][0-9]{0,8})(?![0-9])")
_PART = re.compile(r"(.*)\[(0|[1-9][0-9]{0,17}):([1-9][0-9]{0,17})\]")
_RANGE = re.compile(r"(0|[1-9][0-9]{0,8})-(0|[1-9][0-9]{0,8})")


def part_of(name: str) -> Optional[Tuple[str, int, int]]:
    """(tensor, first, last) where a name is that of a part, `tensor[first:last]`; None where it is not."""
    found = _PART.fullmatch(name)
    return (found[1], int(found[2]), int(found[3])) if found else None


def fold(names: Sequence[str]) -> List[Any]:
    """Entries that `unfold` makes the sorted `names` of."""
    groups: Dict[str, List[Tuple[int, ...]]] = defaultdict(list)
    entries = _runs(names)
    held = {name for entry in entries for name in unfold([entry])}
    for name in names:
        if name in held:
            continue
        if "#" in name or not _NUMBER.search(name):
            entries.append(name)
        else:
            groups[_NUMBER.sub("#", name)].append(tuple(map(int, _NUMBER.findall(name))))
    for template, numbers in groups.items():
        columns = [(min(column), max(column)) for column in zip(*numbers)]
        whole = math.prod(last - first + 1 for first, last in columns) == len(set(numbers)) == len(numbers)
        entries.append([template, ["%d-%d" % pair for pair in columns] if whole else [list(row) for row in numbers]])
    return entries


def _runs(names: Sequence[str]) -> List[Any]:
    """Entries of those tensors whose parts are all there, of one length but for the last."""
    groups: Dict[str, List[Tuple[int, int]]] = defaultdict(list)
    for name, *span in filter(None, map(part_of, names)):
        groups[name].append((span[0], span[1]))
    entries: List[Any] = []
    for name, spans in groups.items():
        spans.sort()
        first, last, each = spans[0][0], spans[-1][1], spans[0][1] - spans[0][0]
        if each > 0 and spans == _spans(first, last, each):
            entries.append([name, [first, last, each]])
    return entries


def _spans(first: int, last: int, each: int) -> List[Tuple[int, int]]:
    if (last - first) // each > MAX_NAMES:
        return []
    return [(start, min(start + each, last)) for start in range(first, last, each)]


def unfold(entries: Sequence[Any]) -> List[str]:
    """The names, sorted; ValueError where an entry is none of ours, or stands for more names than a model has."""
    names: List[str] = []
    for entry in entries:
        if isinstance(entry, str):
            names.append(entry)
        elif _is_run(entry):
            name, (first, last, each) = entry
            if -((first - last) // each) > MAX_NAMES - len(names):
                raise ValueError("more than %d names" % MAX_NAMES)
            names += ["%s[%d:%d]" % (name, start, end) for start, end in _spans(first, last, each)]
        else:
            names += _filled(*_rows(entry), most=MAX_NAMES - len(names))
    return sorted(names)


def _is_run(entry: Any) -> bool:
    if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], list)):
        return False
    numbers = entry[1]
    return (len(numbers) == 3 and all(type(number) is int and 0 <= number < 10**18 for number in numbers)
            and numbers[0] < numbers[1] and numbers[2] > 0)


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
