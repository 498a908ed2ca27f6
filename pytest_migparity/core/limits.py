"""Limits: what was declared, by whom, and what a measured floor or the printed digits make of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from .errors import UserError
from .levels import CheckSpec, Direction, Level

FLOOR_FACTOR = 3.0  # a rerun of the same side differs by the floor; three times that is still called the same
MEASURED_FACTOR = 10.0
BLIND_BEYOND = 10.0  # digits coarser than the limit by more than this leave the check nothing to say


@dataclass(frozen=True, slots=True)
class Declared:
    """A limit as someone wrote it down."""

    value: float
    source: str  # "marker", "manifest", "command line"
    because: str | None = None
    loosens: float | None = None  # the stricter value it replaces


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit in force. Distances are from 0 for a maximum and from 1 for a minimum (a correlation)."""

    declared: float
    direction: Direction
    source: str
    cap: float
    because: str | None = None
    loosens: float | None = None
    floor: float | None = None
    resolution: float = 0.0

    def _apart(self, value: float) -> float:
        return value if self.direction is Direction.MAX else 1.0 - value

    @property
    def effective(self) -> float:
        """max(declared, 3 x floor), lifted to the printed digits, never beyond the cap."""
        allowed = max(self._apart(self.declared), FLOOR_FACTOR * (self.floor or 0.0), self.resolution)
        allowed = min(allowed, self._apart(self.cap))
        return allowed if self.direction is Direction.MAX else 1.0 - allowed

    @property
    def lifted(self) -> bool:
        """Did the printed digits, not a declaration or a floor, set this limit?"""
        return self.resolution > max(self._apart(self.declared), FLOOR_FACTOR * (self.floor or 0.0))

    @property
    def blind(self) -> bool:
        """Are the digits too coarse to say anything about the declared limit?"""
        return not self.resolution <= self._coarsest

    @property
    def more_digits(self) -> int:
        """How many more printed digits would let a blind check see its limit; 0 where it is not blind."""
        if not self.blind:
            return 0
        return max(1, math.ceil(math.log10(self.resolution / self._coarsest))) if self._coarsest > 0 else 1

    @property
    def _coarsest(self) -> float:
        """The coarsest digits that leave the check something to say."""
        declared = self._apart(self.declared)
        return max(declared, min(BLIND_BEYOND * declared, self._apart(self.cap)))

    def holds(self, value: float) -> bool:
        """Is a finite `value` within the effective limit?"""
        if not math.isfinite(value):
            return False
        return value <= self.effective if self.direction is Direction.MAX else value >= self.effective


@dataclass(frozen=True, slots=True)
class Floor:
    """How far reruns of the same side are apart, by one statistic, over `pairs` of `runs`."""

    value: float
    source: str
    runs: int = 1
    pairs: int = 1


Limits = Mapping[str, Declared]


@dataclass(frozen=True, slots=True)
class Floors:
    """Measured floors by check name, and by step where reruns are at hand."""

    by_check: Mapping[str, Floor] = field(default_factory=dict)
    by_step: Mapping[int, float] = field(default_factory=dict)

    def of(self, check: str) -> float | None:
        """The floor of one check, or None where none was measured."""
        floor = self.by_check.get(check)
        return None if floor is None else floor.value


def limit_for(spec: CheckSpec, limits: Limits, floors: Floors, resolution: float = 0.0) -> Limit:
    """The limit in force for one check.

    Two measured floors or more say more than a published limit does: a check with `measured` then has that limit, or
    ten floors where that is more.
    """
    declared, floor = limits[spec.name], floors.by_check.get(spec.name)
    value = declared.value
    if spec.measured is not None and floor is not None and floor.pairs > 1 and not declared.because:
        value = min(value, max(spec.measured, MEASURED_FACTOR * floor.value))
    return Limit(
        declared=value, direction=spec.direction, source=declared.source, cap=spec.cap,
        because=declared.because, loosens=declared.loosens, floor=floors.of(spec.name), resolution=resolution,
    )


def default_limits(level: Level) -> dict[str, Declared]:
    """The level's published limits."""
    return {spec.name: Declared(spec.default, "default") for spec in level.checks.values()}


def declare(level: Level, marker: Mapping[str, object], manifest: Mapping[str, Declared], where: str) -> Limits:
    """Limits of one test: the marker's values, replaced by the manifest's where it names them.

    What is looser than the published limit, in a marker too, is kept as such, so that every report can list it. Raises
    UserError for a name the level does not know, a value that is no distance or lies beyond the cap, and a manifest
    limit that is looser than the marker without a reason.
    """
    limits = default_limits(level)
    for name, value in marker.items():
        spec = level.check(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise UserError(f"{where}: {level.name}({name}={value!r}): a limit is a finite number")
        if problem := spec.refuses(value):
            raise UserError(f"{where}: {level.name}({name}={value!r}): {problem}")
        loosens = spec.default if spec.looser(value, spec.default) else None
        limits[spec.name] = Declared(float(value), "marker", loosens=loosens)
    for name, new in manifest.items():
        spec, old = level.check(name), limits[name]
        loosens = old.value if spec.looser(new.value, old.value) else None
        if loosens is not None and not new.because:
            raise UserError(
                f"{where}: [limits.{level.name}] {name} = {new.value:g} is looser than {old.value:g} ({old.source}); "
                f'say why: {name} = {{value = {new.value:g}, because = "..."}}'
            )
        limits[name] = Declared(new.value, new.source, new.because, loosens)
    return limits
