"""How far reruns of one side are apart: measured from their logs, with what that says of a further pair of runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .core.errors import UserError
from .core.evidence import Recorded, Trajectory
from .core.levels import LEVELS, Direction, Level, level_named
from .core.limits import Floor, Floors, Limits, declare, default_limits, limit_for
from .core.verdict import Note, Witness, note
from .gather import read_in_place, writable
from .judges.difftraj import floors_of
from .judges.loss_notes import doubtful
from .judges.traj_align import Aligned, Series, align, ranges, series_of
from .trainlog import read_trajectory

if TYPE_CHECKING:
    from .core.manifest import Manifest

SCHEMA = "migparity.calibration/1"
FINE = 1e-6  # digits that move |d| by less are no floor to speak of


@dataclass(frozen=True, slots=True)
class Run:
    """One log of the side: `path` as it was named, `name` the shortest end of it that no other run has."""

    path: Path
    name: str
    log: Recorded[Trajectory]
    series: Series


@dataclass(frozen=True, slots=True)
class Calibration:
    """The floors of one level, over all pairs of `runs`; `refused` are the names of those that no manifest may hold.

    `first`, `last` and `steps`: the steps that all runs logged and that were measured, and their number. `limits` are
    those the effective limits follow from.
    """

    level: str
    runs: tuple[str, ...]
    sha256: tuple[str, ...]
    first: int
    last: int
    steps: int
    floors: Floors
    limits: Limits
    refused: frozenset[str]
    notes: tuple[Note, ...]

    def document(self) -> dict[str, Any]:
        """The JSON form, `migparity.calibration/1`; the text is rendered from it."""
        disjoint = len(self.runs) // 2
        return {
            "schema": SCHEMA, "level": self.level,
            "runs": [{"name": name, "sha256": sha256} for name, sha256 in zip(self.runs, self.sha256, strict=True)],
            "pairs": len(self.runs) * (len(self.runs) - 1) // 2,
            "steps": {"first": self.first, "last": self.last, "count": self.steps},
            "floors": [self._row(name, floor) for name, floor in self.floors.by_check.items()],
            "confidence": {"disjoint_pairs": disjoint, "at_least": float(at_least(len(self.runs)))},
            "notes": [{"code": item.code, "params": dict(item.params)} for item in self.notes],
        }

    def _row(self, name: str, floor: Floor) -> dict[str, Any]:
        spec, refused = LEVELS[self.level].checks.get(name), name in self.refused
        limit = None if spec is None else limit_for(spec, self.limits, Floors() if refused else self.floors)
        return {"name": name, "value": floor.value, "runs": floor.runs, "pairs": floor.pairs, "refused": refused,
                "limit": limit and limit.effective, "direction": limit and limit.direction.value}


def at_least(runs: int) -> Fraction:
    """A lower bound of the chance that a further pair of such runs is within the largest of all pairs of `runs`.

    All n (n - 1) / 2 pairs share runs and are dependent; m = n // 2 of them share none. If the runs are exchangeable,
    whatever their distribution, those m pairs and a pair of two further runs are m + 1 exchangeable values, each the
    largest, alone, with a chance of at most 1 / (m + 1). The largest of all pairs is no less than that of the m: the
    further pair stays within it with a chance of at least m / (m + 1). For one check at a time, and for the largest,
    not for `late` and `noise`, which are means.
    """
    disjoint = runs // 2
    return Fraction(disjoint, disjoint + 1)


def calibrate(paths: Sequence[Path], level: str = "L5", *, column: str = "loss", steps: int | None = None,
              manifest: Manifest | None = None) -> Calibration:
    """Measure the floors of `level` from the logs of two or more reruns of one side.

    `steps`: over these first training steps only. `manifest`: the model's, whose limits and, without `steps`, whose
    recipe's steps are used. UserError for what measures nothing or cannot be trusted: fewer than two runs, one run
    under two names, a log that is none, rows of which nobody knows which count, a loss that is non-finite or not
    positive, runs that cover different steps, a model that is judged in weak mode.
    """
    known, limits = calibrated_level(level), None
    if manifest is not None:
        if manifest.policy().mode == "weak":
            raise UserError(f"{manifest.name}: [recipe] noise = \"device\": its runs are never compared step by step, "
                            "and their spread is measured when they are judged; it needs no floors")
        limits = declare(known, {}, manifest.declared_limits(level), manifest.name)
        steps = steps or manifest.recipe.steps
    runs = _read(paths, column)
    equal, digits = 0, 0.0
    for one, other in combinations(runs, 2):
        pair = align(one.series, other.series, steps, max(one.series.interval, other.series.interval))
        _refuse(one, other, pair)
        equal += np.array_equal(pair.baseline, pair.candidate)
        digits = max(digits, float(pair.digits.max()))
    measured = {name: replace(floor, value=float(f"{floor.value:.6g}"))
                for name, floor in floors_of([run.log.table for run in runs], steps).by_check.items()}
    remarks = _remarks(equal, len(runs) * (len(runs) - 1) // 2, digits)
    if any(item.code == "calibrate-equal" for item in remarks):
        # 0 has no logarithm: such runs do not move what the departure is weighed by
        measured = {name: floor for name, floor in measured.items() if name not in known.figures}
    return Calibration(
        level, tuple(run.name for run in runs), tuple(run.log.witness.sha256 for run in runs),
        int(pair.step[0]), int(pair.step[-1]), int(pair.step.size), Floors(measured),
        limits or default_limits(known), _refused(known, measured),
        (*remarks, *(item for run in runs for item in run.log.repairs)),
    )


def calibrated_level(level: str) -> Level:
    """The level `level`; UserError where no floor is measured from logs."""
    known = level_named(level)
    if known.kinds != ("loss",):
        able = [name for name, each in LEVELS.items() if each.kinds == ("loss",)]
        raise UserError(f"--level {level}: has no floors; levels that have: {', '.join(able)}")
    return known


def _read(paths: Sequence[Path], column: str) -> list[Run]:
    if len(paths) < 2:
        raise UserError(f"a floor is how far reruns of one side are apart: give two logs or more, not {len(paths)}")
    runs: list[Run] = []
    seen: dict[tuple[str, ...], Path] = {}
    for path, name in zip(paths, _names(paths), strict=True):
        files = read_in_place(path)
        hashes = tuple(sorted(file.sha256 for file in files))
        if hashes in seen:
            for file in files:
                file.open().close()
            raise UserError(f"{path}: the same bytes as {seen[hashes]}: one run under two names measures nothing; "
                            "give the log of another rerun")
        seen[hashes] = path
        log = read_trajectory(files, Witness("baseline", "manual", name, files[0].sha256), column)
        series = series_of(log.table)
        if series is None or not series.step.size:
            raise UserError(f"{path}: holds no row with a {column}; migparity readlog {path} shows what was read")
        if doubtful(list(log.repairs)):
            raise UserError(f"{path}: holds rows of which nobody knows which count; migparity readlog {path} names "
                            "them; leave this run out or repair its log")
        runs.append(Run(path, name, log, series))
    return runs


def _names(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell all of them apart: a manifest must not hold anybody's home folder."""
    parts = [Path(os.path.abspath(path)).parts for path in paths]
    names: list[str] = []
    for depth in range(1, 1 + max(map(len, parts))):
        names = [writable("/".join(each[-depth:])) for each in parts]
        if len(set(names)) == len(names):
            break
    return names


def _refuse(one: Run, other: Run, pair: Aligned) -> None:
    """UserError where a pair is no measurement: what is missing or broken would make a floor too small or too large."""
    if not pair.step.size:
        raise UserError(f"{one.path} and {other.path} have none of the steps asked for in common; "
                        f"migparity readlog {one.path} shows which steps a log has")
    missing = [f"{run.path} has no step {ranges(steps, run.series.interval)}"
               for run, steps in ((one, pair.baseline_missing), (other, pair.candidate_missing)) if steps.size]
    if missing:
        raise UserError(f"reruns must cover the same steps: {'; '.join(missing)}; leave that run out, or measure "
                        "fewer steps of all of them with --steps")
    for run, loss in ((one, pair.baseline), (other, pair.candidate)):
        bad = np.flatnonzero(~(np.isfinite(loss) & (loss > 0)))
        if bad.size:
            raise UserError(f"{run.path}: the loss at step {pair.step[bad[0]]} is {loss[bad[0]]:g}, expected a finite "
                            "number above 0; a broken run measures no floor: leave it out")


def _refused(level: Level, measured: Mapping[str, Floor]) -> frozenset[str]:
    """The floors beyond a check's cap; with any of them the figures too: weighed by such runs a departure sees nothing.

    The floor of a correlation is a distance from 1.
    """
    specs = [spec for name, spec in level.checks.items() if name in measured]
    beyond = {spec.name for spec in specs
              if spec.refuses(measured[spec.name].value if spec.direction is Direction.MAX
                              else 1.0 - measured[spec.name].value)}
    return frozenset(beyond | (measured.keys() & set(level.figures)) if beyond else beyond)


def _remarks(equal: int, pairs: int, digits: float) -> list[Note]:
    """What a reader of the floors should know: `equal` pairs to the bit, and what printed `digits` make of |d|."""
    remarks = []
    if equal == pairs:
        remarks.append(note("calibrate-equal", pairs=pairs))
    elif equal:
        remarks.append(note("calibrate-some-equal", equal=equal, pairs=pairs))
    if digits > FINE:
        remarks.append(note("calibrate-digits", digits=digits))
    return remarks
