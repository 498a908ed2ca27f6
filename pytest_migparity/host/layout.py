"""Tensors under the names and in the layout of the other side, as a declared map says: nothing is guessed.

Every tensor is taken by exactly one rule (rules that tie read without taking). What no rule takes, what two take, a
rule that finds nothing and a group that lacks a member are errors: a map that fits by halves proves nothing.
"""

from itertools import zip_longest
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from ..wire.layout import Layout, LayoutError, Rule, parse, pattern
from .layout_ops import Piece, Rows, apply, named
from .tensors import Tensor

Key = Tuple[str, ...]


class Member(NamedTuple):
    """A tensor that a rule takes: by which of its patterns, in which group, at which place of what is stacked."""

    tensor: Tensor
    source: int
    group: Key
    place: str


def read_layout(path: str) -> Layout:
    """The map in a file; LayoutError names the file."""
    try:
        with open(path, "rb") as stream:
            return parse(stream.read((1 << 22) + 1).decode("utf-8"))
    except OSError as error:
        raise LayoutError("%s: %s" % (path, error.strerror)) from None
    except ValueError as error:
        raise LayoutError("%s: %s" % (path, error)) from None


def apply_layout(tensors: Iterable[Tensor], layout: Layout) -> List[Tensor]:
    """The tensors as the other side names and lays them out, in order of their names.

    Nothing is read before a tensor's leaves are asked for, but what `same_as` must prove. LayoutError says which rule
    does not fit which tensor.
    """
    held: Dict[str, Tensor] = {}
    for tensor in tensors:
        if tensor.name in held:
            raise LayoutError("there are two tensors called %.200s" % tensor.name)
        held[tensor.name] = tensor
    made: Dict[str, Tensor] = {}
    for number, members in enumerate(_shared_out(held, layout), 1):
        rule = layout.rules[number - 1]
        for tensor in _mapped(rule, members, held, "rule %d" % number):
            if tensor.name in made:
                raise LayoutError("rule %d makes %.200s, which another tensor is called already"
                                  % (number, tensor.name))
            made[tensor.name] = tensor
    return sorted(made.values(), key=lambda tensor: tensor.name)


def _shared_out(held: Dict[str, Tensor], layout: Layout) -> List[List[Member]]:
    """The members of each rule."""
    shares: List[List[Member]] = [[] for _ in layout.rules]
    taken: Dict[str, int] = {}
    for otherwise in (False, True):
        left = [name for name in held if name not in taken]
        for number, rule in enumerate(layout.rules, 1):
            if rule.otherwise is not otherwise:
                continue
            found = _members(rule, held, left if otherwise else list(held))
            if not found:
                raise LayoutError("rule %d: nothing is called %.200s" % (number, " or ".join(rule.sources)))
            shares[number - 1] = found
            for member in found:
                name = member.tensor.name
                if not rule.tie and name in taken:
                    raise LayoutError("%.200s is taken by rule %d and by rule %d" % (name, taken[name], number))
                if not rule.tie:
                    taken[name] = number
    left = [name for name in held if name not in taken]
    if left:
        raise LayoutError("no rule takes %.200s%s; one with \"otherwise\": true takes what is left"
                          % (min(left), " and %d more" % (len(left) - 1) if len(left) > 1 else ""))
    return shares


def _members(rule: Rule, held: Dict[str, Tensor], names: Sequence[str]) -> List[Member]:
    over = _over(rule, "stack")
    found = []
    for index, text in enumerate(rule.sources):
        compiled = pattern(text)
        candidates = names if compiled.placeholders else [name for name in (text,) if name in held]
        for name in candidates:
            fit = compiled.expression.fullmatch(name)
            if fit:
                bound = fit.groupdict()
                place = bound.pop(over, "")
                found.append(Member(held[name], index, tuple(value for _, value in sorted(bound.items())), place))
    return found


def _over(rule: Rule, name: str) -> str:
    return next((each.over for each in rule.operations if each.name == name), "")


def _mapped(rule: Rule, members: List[Member], held: Dict[str, Tensor], where: str) -> List[Tensor]:
    if rule.drop:
        return []
    stacked, unstacked = _over(rule, "stack"), _over(rule, "unstack")
    names = sorted(set(pattern(rule.sources[0]).placeholders) - {stacked})
    templates = [pattern(target).template for target in rule.targets]
    groups: Dict[Key, List[Member]] = {}
    for member in members:
        groups.setdefault(member.group, []).append(member)
    made = []
    for group, own in groups.items():
        bound = dict(zip(names, group))
        first = own[0].tensor.name
        if rule.same_as:
            _prove(own[0].tensor, held.get(pattern(rule.same_as).template.format(**bound)), rule, where)
            continue
        rows = _rows(rule, own, bool(stacked), where)
        for operation in rule.operations:
            try:
                rows = apply(operation, rows, len(rule.targets))
            except LayoutError as error:
                raise LayoutError("%s, at %.200s: %s" % (where, first, error)) from None
        for place, row in enumerate(rows):
            if len(row) != len(rule.targets):
                raise LayoutError("%s, at %.200s: makes %d tensors, and \"to\" names %d"
                                  % (where, first, len(row), len(rule.targets)))
            if unstacked:
                bound[unstacked] = str(place)
            made += [named(template.format(**bound), piece) for template, piece in zip(templates, row)]
    return made


def _rows(rule: Rule, members: List[Member], stacked: bool, where: str) -> Rows:
    """A group's tensors: in the order of `from`, row by row in the order of what is stacked (0, 1, 2, ...)."""
    held = {(member.place, member.source): member.tensor for member in members}
    amount = max(len([member for member in members if member.source == index]) for index in range(len(rule.sources)))
    rows: Rows = []
    for place in [str(number) for number in range(amount)] if stacked else [""]:
        row = []
        for index, text in enumerate(rule.sources):
            tensor = held.pop((place, index), None)
            if tensor is None:
                raise LayoutError("%s: %.200s is there, and %.200s%s that belongs to it is not"
                                  % (where, members[0].tensor.name, text, " number %s" % place if place else ""))
            row.append(Piece(tensor.dtype, tensor.shape, tensor.leaves))
        rows.append(row)
    return rows


def _prove(tensor: Tensor, other: Optional[Tensor], rule: Rule, where: str) -> None:
    """LayoutError unless two tensors are the same to the bit."""
    if other is None:
        raise LayoutError("%s: %.200s is there, and %.200s that it should equal is not"
                          % (where, tensor.name, rule.same_as))
    pairs = zip_longest(tensor.leaves(), other.leaves())
    if tensor[1:3] != other[1:3] or any(mine is None or its is None or mine.tobytes() != its.tobytes()
                                        for mine, its in pairs):
        raise LayoutError("%s: %.200s is not the same as %.200s" % (where, tensor.name, other.name))
