"""Effective configuration: equal on both sides, requested options in effect, the baseline's tree untouched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from fnmatch import fnmatchcase

from .envremark import SIDES, Excuses, Remark, parted, remark, unsure
from .envview import Config, Tree, View, show

REDACTED = "<redacted>"
PROTOCOL = ("seed", "seeds", "*_seed", "*_seeds", "loss_type", "loss_reduction", "*loss*calculate*type")
"""Options that say what is measured rather than how it is computed. Where they differ the two sides' numbers are of
two populations or two definitions: that is no sign of lost accuracy, and no comparison either."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,6})?")
_SOURCES = ("config:", "env:", "torch:")


class Unrecorded:
    """The side's lock cannot say what an option's value is."""


UNRECORDED = Unrecorded()


def effective(side: View, option: str) -> object:
    """The value of config:NAME.key, env:NAME or torch:flag; None where it is not set, UNRECORDED where unknown.

    A torch flag that a probe read beside the program is torch's default, not what was in effect in the run.
    """
    source, _, name = option.partition(":")
    if source == "env":
        return side.env.get(name, None if side.listed is None or name in side.listed else UNRECORDED)
    if source == "torch":
        return side.flags.get(name) if side.flags and side.flags_seen != "probe" else UNRECORDED
    owner = max((one for one in side.configs if name.startswith(one + ".")), key=len, default=None)
    if source != "config" or owner is None:
        return UNRECORDED
    config = side.configs[owner]
    if config.values is None:
        return UNRECORDED
    value = config.values.get(name[len(owner) + 1:])
    return UNRECORDED if value == REDACTED or (value is None and config.dropped) else value


def is_option(name: str) -> bool:
    """Does a rule name an option rather than a package?"""
    return name.startswith(_SOURCES)


def judge_option(name: str, wanted: str, baseline: View, candidate: View, excuses: Excuses) -> list[Remark]:
    """An option that must match: set on both sides, equal, and `wanted` unless that is "*"."""
    left, right = effective(baseline, name), effective(candidate, name)
    missing = [unsure("env-unrecorded", name=name, side=side)
               for side, value in zip(SIDES, (left, right), strict=True) if value is UNRECORDED]
    if missing:
        return missing
    if left is None and right is None:
        return [unsure("env-absent", name=name)]
    if not equal(left, right):
        return excuses.apply(name, [parted("env-config", "config", name, left, right, name=name)], may_differ=False)
    if wanted.strip() != "*" and not meets(left, wanted):
        return [parted("env-requested", "config", name, left, right, name=name, side="baseline", wanted=wanted,
                       found=show(left))]
    return []


def judge_requested(name: str, wanted: str, baseline: View, candidate: View, excuses: Excuses) -> list[Remark]:
    """An option that the manifest asks for must be in effect on both sides; an override excuses the candidate."""
    remarks: list[Remark] = []
    left, right = effective(baseline, name), effective(candidate, name)
    for side, value in zip(SIDES, (left, right), strict=True):
        if value is UNRECORDED:
            remarks.append(unsure("env-unrecorded", name=name, side=side))
        elif not meets(value, wanted):
            found = parted("env-requested", "config", name, left if left is not UNRECORDED else "?",
                           right if right is not UNRECORDED else "?", name=name, side=side, wanted=wanted,
                           found=show(value))
            remarks += excuses.apply(name, [found], may_differ=False) if side == "candidate" else [found]
    return remarks


def equal(left: object, right: object) -> bool:
    """JSON equality: 1 and 1.0 are one number, 1 and true are not one value."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(equal(one, other) for one, other in zip(left, right, strict=True))
    return left == right


def meets(value: object, wanted: str) -> bool:
    """Is an effective value the one that a manifest writes as text? Numbers by value, true and false in any case."""
    if value is None:
        return wanted.strip().lower() in ("none", "null", "unset")
    text = wanted.strip()
    if isinstance(value, bool) or text.lower() in ("true", "false"):
        return str(value).lower() == text.lower()
    if _NUMBER.fullmatch(str(value)) and _NUMBER.fullmatch(text):
        return Decimal(str(value)) == Decimal(text)
    return str(value) == text


def judge_configs(baseline: View, candidate: View, excuses: Excuses, handled: set[str]) -> tuple[list[Remark], int]:
    """Configurations recorded under one name on both sides: (remarks, values compared).

    A value that differs is a mismatch. One that only one side states leaves the level open (the other side's default is
    not in evidence), and so does one of PROTOCOL. `handled` are options that another rule already judged.
    """
    remarks: list[Remark] = []
    compared = 0
    for name in sorted(set(baseline.configs) | set(candidate.configs)):
        left, right = baseline.configs.get(name), candidate.configs.get(name)
        label = f"config:{name}"
        if left is None or right is None:
            side = "baseline" if left is None else "candidate"
            remarks += excuses.apply(label, [unsure("env-config-missing", name=name, side=side)])
            continue
        found, count = _one_config(label, left, right, excuses, handled)
        remarks += found
        compared += count
    return remarks, compared


def _one_config(label: str, left: Config, right: Config, excuses: Excuses,
                handled: set[str]) -> tuple[list[Remark], int]:
    if left.sha256 and left.sha256 == right.sha256:
        return [], len(left.values or ()) or 1
    if left.values is None or right.values is None:
        hashes = left.sha256[:12], right.sha256[:12]
        return excuses.apply(label, [parted("env-config-unread", "config", label, *hashes, open_=True, name=label)]), 0
    remarks: list[Remark] = []
    compared, hidden = 0, 0
    for key in sorted(set(left.values) | set(right.values)):
        name, one, other = f"{label}.{key}", left.values.get(key), right.values.get(key)
        if name in handled or (one is None and other is None):
            continue
        if REDACTED in (one, other):
            hidden += 1
            continue
        if one is not None and other is not None:
            compared += 1
        remarks += excuses.apply(name, list(_one_value(name, one, other)))
    if left.dropped or right.dropped:
        remarks.append(unsure("env-config-truncated", name=label, dropped=max(left.dropped, right.dropped)))
    if hidden:
        remarks.append(remark("env-redacted", name=label, count=hidden))
    return remarks, compared


def _one_value(name: str, left: object, right: object) -> Iterator[Remark]:
    last = name.rsplit(".", 1)[-1].lower()
    if left is None or right is None:
        side = "candidate" if left is None else "baseline"
        yield parted("env-config-one-sided", "config", name, left, right, open_=True, name=name, side=side)
    elif not equal(left, right):
        protocol = any(fnmatchcase(last, pattern) for pattern in PROTOCOL)
        yield parted("env-protocol" if protocol else "env-config", "config", name, left, right, open_=protocol,
                     name=name)


def judge_upstream(repo: str, commit: str, side: View) -> tuple[list[Remark], int]:
    """The baseline must run upstream unpatched: (remarks, trees judged). `commit` may be a prefix."""
    named = [(name, tree) for name, tree in side.trees.items() if repo in ("", name, tree.repo)]
    if len(named) > 1:
        named = [(name, tree) for name, tree in named if repo and name == repo]
    if len(named) != 1 or not named[0][1].commit:
        return [unsure("env-tree-missing", tree=repo or "upstream", side="baseline")], 0
    name, tree = named[0]
    remarks = []
    if commit and not tree.commit.startswith(commit.lower()):
        remarks.append(parted("env-tree-commit", "tree", name, tree.commit[:12], f"(manifest) {commit}", tree=name,
                              wanted=commit))
    if tree.dirty is None:
        remarks.append(unsure("env-tree-unknown", tree=name, side="baseline"))
    elif tree.dirty:
        remarks.append(parted("env-tree-dirty", "tree", name, f"{tree.dirty} changed files", "(manifest) none",
                              tree=name, files=tree.dirty))
    if tree.untracked:
        remarks.append(remark("env-tree-untracked", tree=name, files=tree.untracked))
    return remarks, 1


def describe_port(side: View) -> list[Remark]:
    """What the candidate changed against upstream, for the reader."""
    found = []
    for name in sorted(side.trees):
        tree: Tree = side.trees[name]
        counts = [tree.port.get(key) for key in ("files", "added", "deleted")]
        files, added, deleted = (one if isinstance(one, int) else 0 for one in counts)
        if any(isinstance(one, int) for one in counts):
            notes = tree.port.get("notes")
            listed = ", ".join(str(one) for one in notes[:5]) if isinstance(notes, list) else ""
            found.append(remark("env-port", tree=name, files=files, added=added, deleted=deleted,
                                base=str(tree.port.get("base", ""))[:12], notes=listed or "-"))
        elif tree.dirty:
            found.append(remark("env-tree-dirty-candidate", tree=name, files=tree.dirty))
    return found
