"""The layout map `migparity.layout/1`: which tensors of one side become which of the other, declared rule by rule.

A name pattern holds placeholders: `{i}` stands for characters other than ".", `{rest*}` for any. A rule takes all
tensors that fit its `from` patterns, groups them by what the placeholders stand for, applies its operations in order
and names what comes out by its `to` patterns. `host.layout` applies a map; the manifest's `[weights] layout` names its
file, and a digest of mapped tensors carries its hash.
"""

import hashlib
import json
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

SCHEMA = "migparity.layout/1"
MAX_TEXT = 1 << 20  # characters
MAX_RULES = 1000
MAX_PATTERN = 1000
MAX_OPERATIONS = 16
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w{0,30})(\*?)\}", re.ASCII)
_KEYS = {"from", "to", "ops", "otherwise", "tie", "same_as", "drop"}


class LayoutError(ValueError):
    """A layout map that contradicts itself, or that does not fit the tensors; the message names rule and tensor."""


class Operation(NamedTuple):
    """One change of layout.

    transpose (`axes`), reshape (`shape`), merge and split (`axis`, split also `sizes`), merge_qkv and split_qkv
    (`heads`, `groups`: Megatron's rows, per group its queries, then one key, one value), stack and unstack (`over`: the
    placeholder that becomes axis 0), rope (`heads`, `to`: rows of rotary pairs as `halves` or interleaved `pairs`).
    """

    name: str
    axes: Tuple[int, ...] = ()
    shape: Tuple[int, ...] = ()
    sizes: Tuple[int, ...] = ()
    axis: int = 0
    heads: int = 0
    groups: int = 0
    over: str = ""
    to: str = ""


class Rule(NamedTuple):
    """One rule. `otherwise`: only for tensors that no other rule takes. `tie`: `sources` keep their own rule, and their
    content appears under `targets` as well. `same_as`: left out, being equal to that tensor. `drop`: left out, why.
    """

    sources: Tuple[str, ...]
    targets: Tuple[str, ...] = ()
    operations: Tuple[Operation, ...] = ()
    otherwise: bool = False
    tie: bool = False
    same_as: str = ""
    drop: str = ""


class Layout(NamedTuple):
    """A whole map, in the order in which it was declared."""

    rules: Tuple[Rule, ...]


class Pattern(NamedTuple):
    """A name pattern: how to recognise a name, how to write one (a format string), its placeholders in order."""

    expression: "re.Pattern[str]"
    template: str
    placeholders: Tuple[str, ...]


def parse(text: str) -> Layout:
    """Read a layout document; LayoutError for anything but a bounded, well-formed `migparity.layout/1`."""
    if len(text) > MAX_TEXT:
        raise LayoutError("larger than %d characters" % MAX_TEXT)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LayoutError("not JSON: %s" % error) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or set(data) != {"schema", "rules"}:
        raise LayoutError("expected an object of \"schema\": \"%s\" and \"rules\"" % SCHEMA)
    return from_rules(data["rules"])


def from_rules(rules: Any) -> Layout:
    """A map from its rules as JSON or TOML tables; LayoutError names the rule, counted from 1."""
    if not isinstance(rules, list) or not 0 < len(rules) <= MAX_RULES:
        raise LayoutError("\"rules\" is not a list of 1 to %d rules" % MAX_RULES)
    return Layout(tuple(_rule(item, "rule %d" % number) for number, item in enumerate(rules, 1)))


def layout_hash(layout: Layout) -> str:
    """The first 16 hex digits of the sha256 over what a map says, however it was written down."""
    text = json.dumps(layout.rules, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def pattern(text: str, where: str = "pattern") -> Pattern:
    """Compile a name pattern; LayoutError where it could be read in more than one way."""
    parts: List[str] = []
    template: List[str] = []
    names: List[str] = []
    at = 0
    for found in _PLACEHOLDER.finditer(text):
        literal = text[at:found.start()]
        if names and "." not in literal:  # a dot between them leaves one way to match a name, and no search for it
            raise LayoutError("%s: %.80r has two placeholders without a dot between them" % (where, text))
        if found[1] in names:
            raise LayoutError("%s: %.80r has {%s} twice" % (where, text, found[1]))
        parts += [re.escape(literal), "(?P<%s>%s)" % (found[1], ".+" if found[2] else "[^.]+")]
        template += [literal, "{%s}" % found[1]]
        names.append(found[1])
        at = found.end()
    rest = text[at:]
    if re.search("[{}]", "".join(template[::2]) + rest):
        raise LayoutError("%s: %.80r has a brace that belongs to no placeholder such as {i} or {rest*}" % (where, text))
    if "".join(parts).count(">.+)") > 1:
        raise LayoutError("%s: %.80r has two placeholders that may hold dots" % (where, text))
    return Pattern(re.compile("".join(parts) + re.escape(rest)), "".join(template) + rest, tuple(names))


def _rule(item: Any, where: str) -> Rule:
    if not isinstance(item, dict) or not set(item) <= _KEYS or "from" not in item:
        raise LayoutError("%s is not a table of \"from\" and perhaps %s" % (where, ", ".join(sorted(_KEYS - {"from"}))))
    ends = [key for key in ("to", "same_as", "drop") if key in item]
    if len(ends) != 1:
        raise LayoutError("%s needs one of \"to\", \"same_as\" and \"drop\", found %s" % (where, ends or "none"))
    operations = item.get("ops", [])
    if not isinstance(operations, list) or len(operations) > MAX_OPERATIONS:
        raise LayoutError("%s: \"ops\" is not a list of at most %d operations" % (where, MAX_OPERATIONS))
    rule = Rule(_texts(item["from"], where + ": \"from\""),
                _texts(item["to"], where + ": \"to\"") if "to" in item else (),
                tuple(_operation(each, where) for each in operations), _flag(item, "otherwise", where),
                _flag(item, "tie", where), _text(item, "same_as", where), _text(item, "drop", where))
    if ends != ["to"] and (rule.operations or rule.tie or len(rule.sources) > 1):
        raise LayoutError("%s: \"%s\" takes one pattern, and no operations" % (where, ends[0]))
    if rule.tie and rule.otherwise:
        raise LayoutError("%s is both tie and otherwise" % where)
    _check_placeholders(rule, where)
    return rule


def _check_placeholders(rule: Rule, where: str) -> None:
    """Sources share their placeholders, targets theirs; only what is stacked or unstacked is on one side alone."""
    sides: List[Set[str]] = []
    for texts in (rule.sources, rule.targets or ((rule.same_as,) if rule.same_as else ())):
        sets = [set(pattern(text, where).placeholders) for text in texts]
        if any(each != sets[0] for each in sets):
            raise LayoutError("%s: %s do not have the same placeholders" % (where, ", ".join(texts)))
        sides += sets[:1]
    moved = {name: [each.over for each in rule.operations if each.name == name] for name in ("stack", "unstack")}
    if any(len(names) > 1 for names in moved.values()):
        raise LayoutError("%s stacks or unstacks twice" % where)
    if rule.drop:
        return
    sources, targets = sides
    if set(moved["stack"]) - sources or set(moved["unstack"]) - targets \
            or (sources - set(moved["stack"]) != targets - set(moved["unstack"])
                if not rule.same_as else not targets <= sources):
        raise LayoutError("%s: the placeholders of \"from\" are %s, those of \"to\" %s; they must be the same but for "
                          "one that is stacked or unstacked" % (where, sorted(sources), sorted(targets)))


def _operation(item: Any, where: str) -> Operation:
    name = item.get("op") if isinstance(item, dict) else None
    if not isinstance(name, str) or name not in _OPERATIONS:
        raise LayoutError("%s: operation %.60r, expected \"op\" to be one of %s"
                          % (where, item, ", ".join(_OPERATIONS)))
    required, optional = _OPERATIONS[name]
    given = set(item) - {"op"}
    if not set(required) <= given <= {*required, *optional}:
        raise LayoutError("%s: %s takes %s, found %s" % (where, name, ", ".join([*required, *optional]) or "nothing",
                                                         ", ".join(sorted(given)) or "nothing"))
    return Operation(name, **{key: _VALUES[key](item[key], "%s: %s.%s" % (where, name, key)) for key in given})


def _texts(value: Any, where: str) -> Tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values or len(values) > MAX_RULES or not all(
            isinstance(each, str) and 0 < len(each) <= MAX_PATTERN for each in values):
        raise LayoutError("%s is not a name pattern or a list of them" % where)
    return tuple(values)


def _text(item: Dict[str, Any], key: str, where: str) -> str:
    return _texts(item[key], "%s: \"%s\"" % (where, key))[0] if key in item else ""


def _flag(item: Dict[str, Any], key: str, where: str) -> bool:
    value = item.get(key, False)
    if not isinstance(value, bool):
        raise LayoutError("%s: \"%s\" is not true or false" % (where, key))
    return value


def _integers(least: int) -> Callable[[Any, str], Tuple[int, ...]]:
    def read(value: Any, where: str) -> Tuple[int, ...]:
        if not isinstance(value, list) or not 0 < len(value) <= 64:
            raise LayoutError("%s is not a list of integers" % where)
        return tuple(_integer(least)(each, where) for each in value)
    return read


def _integer(least: int) -> Callable[[Any, str], int]:
    def read(value: Any, where: str) -> int:
        if type(value) is not int or not least <= value < 1 << 53:
            raise LayoutError("%s is %.40r, expected an integer from %d on" % (where, value, least))
        return value
    return read


def _one_of(allowed: Optional[Tuple[str, ...]]) -> Callable[[Any, str], str]:
    def read(value: Any, where: str) -> str:
        if not isinstance(value, str) or (value not in allowed if allowed else not _PLACEHOLDER.fullmatch(
                "{%s}" % value)):
            raise LayoutError("%s is %.40r, expected %s" % (where, value, " or ".join(allowed or ("a placeholder",))))
        return value
    return read


_VALUES: Dict[str, Callable[[Any, str], Any]] = {
    "axes": _integers(0), "shape": _integers(-1), "sizes": _integers(1), "axis": _integer(0),
    "heads": _integer(1), "groups": _integer(1), "over": _one_of(None), "to": _one_of(("halves", "pairs"))}
_OPERATIONS: Dict[str, Tuple[Tuple[str, ...], Tuple[str, ...]]] = {  # what each requires, what it may have
    "transpose": (("axes",), ()), "reshape": (("shape",), ()), "merge": ((), ("axis",)),
    "split": ((), ("axis", "sizes")), "merge_qkv": (("heads",), ("groups",)), "split_qkv": (("heads",), ("groups",)),
    "stack": (("over",), ()), "unstack": (("over",), ()), "rope": (("heads", "to"), ())}
