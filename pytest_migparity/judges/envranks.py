"""Processes: all of one side run one environment, and as many of them as the recipe says and as the other side."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from .envconfig import UNRECORDED, effective, equal
from .envpackages import origin_text
from .envregime import SWITCHES, switch_effects, unfit
from .envremark import SIDES, Excuses, Remark, parted, unsure
from .envview import View

Members = Sequence[tuple[str, View]]
"""The processes of one run, each with what to call it."""
WORLD = "env:WORLD_SIZE"
"""The name under which a declared override excuses another number of processes."""
_PER_PROCESS = ("*rank*", "*device*", "seed", "*_seed")
_OWN_FLAGS = ("threads",)  # follows the cores that the launcher gave to the process


@dataclass(frozen=True, slots=True)
class _Difference:
    """What one process has and another has not; `open_` where one of them does not say."""

    what: str
    values: tuple[object, object]
    open_: bool = False


def judge_ranks(side: str, runs: Sequence[Members], options: Collection[str]) -> list[Remark]:
    """Do all processes of one side run one environment? A patch or switch that reached one of them alone shows here.

    Packages, torch, numeric switches and flags, source trees, builds and `options` (those that a rule of the manifest
    names) are held against the side's first process, configurations against the first of the same run. No override
    excuses a difference: declarations are about the two sides.
    """
    remarks: list[Remark] = []
    first_of_all = next((run[0] for run in runs if run), None)
    for run in runs:
        for index, (label, other) in enumerate(run):
            if first_of_all is None or other is first_of_all[1]:
                continue
            found = list(_unequal(first_of_all[1], other, options))
            remarks += _summed(side, first_of_all[0], label, found)
            if index:
                remarks += _summed(side, run[0][0], label, list(_configs(run[0][1], other)))
    return remarks


def _summed(side: str, first: str, label: str, found: list[_Difference]) -> Iterator[Remark]:
    """One mismatch and one open point for a process: the first of each kind, and how many there are."""
    for open_, code in ((False, "env-ranks"), (True, "env-ranks-unsure")):
        same = [item for item in found if item.open_ is open_]
        if same:
            yield parted(code, "rank", f"{side} {label}", *same[0].values, open_=open_, side=side, first=first,
                         rank=label, what=same[0].what, count=len(same))


def _unequal(first: View, other: View, options: Collection[str]) -> Iterator[_Difference]:
    yield from _packages(first, other)
    if first.torch_version != other.torch_version:
        yield _Difference("torch", (f"torch {first.torch_version}", f"torch {other.torch_version}"))
    if first.world != other.world:
        yield _Difference("WORLD_SIZE", (first.world, other.world), None in (first.world, other.world))
    for name, switch in SWITCHES.items():
        if (effects := switch_effects(first, other, name, switch)) is not None:
            yield _Difference(f"env:{name}", effects)
    yield from _flags(first, other)
    for name in sorted(options):
        last = name.partition(":")[2].rsplit(".", 1)[-1].lower()
        here, there = effective(first, name), effective(other, name)
        if UNRECORDED in (here, there):
            if here is not there:
                yield _Difference(name, (_said(here), _said(there)), True)
        elif not equal(here, there) and not any(fnmatchcase(last, one) for one in _PER_PROCESS):
            yield _Difference(name, (here, there))
    yield from _trees(first, other)
    known = unfit(first)
    for name, (built, present) in unfit(other).items():
        if name not in known:
            yield _Difference(name, ("built for its device", f"built for {built} on {present}"))


def _said(value: object) -> object:
    return "?" if value is UNRECORDED else value


def _packages(first: View, other: View) -> Iterator[_Difference]:
    if first.packages is None or other.packages is None:
        if first.packages is not other.packages:
            yield _Difference("packages", ("?", "?"), True)
        return
    for name in sorted(set(first.packages) | set(other.packages)):
        here, there = first.packages.get(name), other.packages.get(name)
        if here == there or (here and there and here.unread and there.unread):
            continue
        if here is None or there is None:
            yield _Difference(name, (here and here.version, there and there.version))
        elif here.unread or there.unread:
            yield _Difference(name, (here.unread or here.version, there.unread or there.version), True)
        elif here.version != there.version:
            yield _Difference(name, (here.version, there.version))
        elif here.payload != there.payload:
            yield _Difference(name, (f"{here.version} #{here.payload}", f"{there.version} #{there.payload}"))
        else:
            yield _Difference(name, (origin_text(here), origin_text(there)))


def _flags(first: View, other: View) -> Iterator[_Difference]:
    """Every flag that both recorded; a process that did not look while another did leaves it open."""
    if first.flags_in_process != other.flags_in_process:
        yield _Difference("torch flags", (first.flags_seen or "?", other.flags_seen or "?"), True)
        return
    if not (first.flags and other.flags):
        return
    for name in sorted((set(first.flags) | set(other.flags)).difference(_OWN_FLAGS)):
        here, there = first.flags.get(name), other.flags.get(name)
        if not equal(here, there):
            yield _Difference(f"torch:{name}", (here, there), here is None or there is None)


def _trees(first: View, other: View) -> Iterator[_Difference]:
    for name in sorted(set(first.trees) & set(other.trees)):
        here, there = first.trees[name], other.trees[name]
        if here.commit != there.commit:
            yield _Difference(f"tree {name}", (here.commit[:12], there.commit[:12]), not (here.commit and there.commit))
        elif here.dirty != there.dirty:
            yield _Difference(f"changes of tree {name}", (here.dirty, there.dirty), None in (here.dirty, there.dirty))


def _configs(first: View, other: View) -> Iterator[_Difference]:
    """Configurations that both recorded, apart from what names the process."""
    for name in sorted(set(first.configs) & set(other.configs)):
        left, right = first.configs[name], other.configs[name]
        if left.sha256 and left.sha256 == right.sha256:
            continue
        if left.values is None or right.values is None:
            if left != right:
                yield _Difference(f"config:{name}", (left.sha256[:12], right.sha256[:12]), True)
            continue
        for key in sorted(set(left.values) | set(right.values)):
            here, there = left.values.get(key), right.values.get(key)
            last = key.rsplit(".", 1)[-1].lower()
            if not equal(here, there) and not any(fnmatchcase(last, one) for one in _PER_PROCESS):
                yield _Difference(f"config:{name}.{key}", (here, there))


def judge_worlds(runs: tuple[Sequence[Members], Sequence[Members]], wanted: int | None,
                 excuses: Excuses) -> list[Remark]:
    """Did both sides run with as many processes as each other, and as the recipe says (`wanted`)?

    Two sides of unequal size are a mismatch: like another gradient accumulation, that is another batch or another order
    of summation, and so a cause. A size that contradicts the recipe leaves the level open, as a receipt of another
    recipe does: these are not locks of the run to be judged. So does one that is not recorded, unless the recipe is
    of one process, which no launcher needs to count. Without a recipe the sides' word counts.
    """
    remarks: list[Remark] = []
    sizes = [sorted({one for one in map(_size, side) if one is not None}) for side in runs]
    if all(sizes) and sizes[0] != sizes[1]:
        left, right = (", ".join(map(str, one)) for one in sizes)
        remarks += excuses.apply(WORLD, [parted("env-world", "rank", "WORLD_SIZE", left, right)])
    expected = wanted or max([1, *sizes[0], *sizes[1]])
    for side, members, known in zip(SIDES, runs, sizes, strict=True):
        silent = any(view.world is None for run in members for _, view in run)
        found = []
        if wanted is not None and any(one != wanted for one in known):
            found = [unsure("env-world-recipe", side=side, found=", ".join(map(str, known)), wanted=wanted)]
        elif silent and expected > 1 and (wanted is not None or not known):
            found = [unsure("env-world-unrecorded", side=side, wanted=expected)]
        remarks += excuses.apply(WORLD, found) if side == "candidate" else found
    return remarks


def judge_absent(side: str, runs: Sequence[Members]) -> list[Remark]:
    """Processes that left no lock."""
    remarks = []
    for run in runs:
        size = _size(run) or 1
        found = sum(view.rank is None or view.rank < size for _, view in run)
        if run and found < size:
            remarks.append(unsure("env-ranks-missing", side=side, found=found, world=size))
    return remarks


def _size(run: Members) -> int | None:
    """How many processes a run had: as recorded, else as many as its locks show, else None for a single one."""
    recorded = max((view.world for _, view in run if view.world is not None), default=None)
    shown = max([len(run), *(view.rank + 1 for _, view in run if view.rank is not None)])
    return recorded if recorded is not None else shown if shown > 1 else None
