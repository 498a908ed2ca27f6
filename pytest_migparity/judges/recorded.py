"""Two sides' recordings, rank by rank, as pairs of events in the baseline's execution order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pytest_migparity.core.evidence import Evidence
from pytest_migparity.core.levels import CheckSpec, Direction
from pytest_migparity.core.limits import Floors, Limits, limit_for
from pytest_migparity.core.verdict import Check, Divergence, Note, Scalar, note
from pytest_migparity.wire.record import Event, Facts, Recording

from .event_relation import Apart, apart

Run = tuple[Recording, ...]
"""One run's recordings, one per rank."""
LISTED = 8  # tensors that a verdict lists one by one
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Pair:
    """One tensor that both sides recorded."""

    rank: int
    a: Event
    b: Event
    apart: Apart

    @property
    def where(self) -> str:
        """Step, stage and name, with the rank where there are several."""
        place = f"step {self.a.step} {self.a.stage} {self.a.name}"
        return f"rank {self.rank} {place}" if self.rank else place

    def note(self) -> Note:
        """In what the two differ, as a sentence's code `record-FAULT` with what the sentence needs."""
        far = self.apart
        params: dict[str, Scalar] = {"where": self.where}
        for side, event in (("baseline", self.a), ("candidate", self.b)):
            tensor = event.tensor
            if far.fault in ("shape", "permuted", "unmeasured") or tensor.stats is None:
                share = "" if event.valid == 1 else f", {event.valid:.1%} of it valid"
                params[side] = f"{tensor.dtype} {list(tensor.shape)}{share}"
            elif far.fault == "non-finite":
                params[side] = tensor.stats.nans + tensor.stats.infs
            else:
                params[side] = f"{tensor.stats.l2:.6g}"
        if not far.fault:
            params |= {"relative": far.relative, "low": far.low, "high": far.high, "cosine": f"{far.cosine:.6f}",
                       "scale": f"{far.scale:.4f}"}
        return Note(f"record-{far.fault or 'apart'}", params)

    def divergence(self) -> Divergence:
        """The pair as the place where the sides first part: norms, or dtype and shape where those are the point."""
        a, b = self.a.tensor, self.b.tensor
        if a.shape != b.shape or a.stats is None or b.stats is None:
            return Divergence("tensor", self.where, f"{a.dtype} {list(a.shape)}", f"{b.dtype} {list(b.shape)}")
        return Divergence("tensor", self.where, a.stats.l2, b.stats.l2)


@dataclass(frozen=True, slots=True)
class Pairs:
    """What both sides recorded of some stages, and what one of them alone did: (rank, event)."""

    pairs: tuple[Pair, ...]
    baseline_only: tuple[tuple[int, Event], ...]
    candidate_only: tuple[tuple[int, Event], ...]

    @property
    def total(self) -> int:
        """Every tensor that either side recorded."""
        return len(self.pairs) + len(self.baseline_only) + len(self.candidate_only)

    def at(self, first: int, last: int) -> Pairs:
        """Those of the steps from `first` to `last`."""
        return Pairs(tuple(pair for pair in self.pairs if first <= pair.a.step <= last),
                     tuple(item for item in self.baseline_only if first <= item[1].step <= last),
                     tuple(item for item in self.candidate_only if first <= item[1].step <= last))


def pairs_of(baseline: Run, candidate: Run, stages: Iterable[str],
             skipped: Mapping[str, str] | None = None) -> Pairs:
    """Pair the events of `stages` by rank, step, stage and name; names that match a `skipped` pattern are left out.

    In order of execution: what several ranks computed at one place of a step stands together.
    """
    wanted = frozenset(stages)
    skip = tuple(skipped or ())
    ours, theirs = _events(baseline, wanted, skip), _events(candidate, wanted, skip)
    pairs = tuple(Pair(key[0], event, theirs[key], apart(event, theirs[key]))
                  for key, event in ours.items() if key in theirs)
    return Pairs(pairs, tuple((key[0], event) for key, event in ours.items() if key not in theirs),
                 tuple((key[0], event) for key, event in theirs.items() if key not in ours))


_Key = tuple[int, int, str, str]


def _events(run: Run, stages: frozenset[str], skip: tuple[str, ...]) -> dict[_Key, Event]:
    found = [(event.step, place, recording.rank, event)
             for recording in run for place, event in enumerate(recording.events)
             if event.stage in stages and not any(fnmatchcase(event.name, pattern) for pattern in skip)]
    found.sort(key=lambda row: row[:3])
    return {(rank, step, event.stage, event.name): event for step, _, rank, event in found}


def resolved(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with numbers that can be held against a limit."""
    return [pair for pair in pairs if pair.apart.fault in ("", "permuted")]


def held(spec: CheckSpec, rows: Sequence[tuple[Pair, float, float]], limits: Limits, floors: Floors, *,
         blocked: str = "") -> tuple[Check, list[Pair]]:
    """Hold each pair's value against the limit, lifted by no more than what this pair leaves unresolved.

    rows: (pair, value, what its recordings cannot resolve). Gives the check and the pairs that break it. The check
    shows the worst of these; where there is none, one that was too coarse to say; else the worst of all. `blocked` says
    that something could not be measured: it excuses nothing that breaks the limit.
    """
    each = [(pair, value, limit_for(spec, limits, floors, 0.0 if pair.apart.equal else blur))
            for pair, value, blur in rows]
    broken = [row for row in each if not row[2].holds(row[1])]
    shown = broken or [row for row in each if row[2].blind] or each
    if not shown:
        return Check(spec.name, math.nan, limit_for(spec, limits, floors), spec.unit, blocked), []
    worst = max if spec.direction is Direction.MAX else min
    _, value, limit = worst(shown, key=lambda row: row[1])
    return Check(spec.name, value, limit, spec.unit, "" if broken else blocked), [pair for pair, _, _ in broken]


def facts_of(run: Run) -> dict[tuple[int, int], Facts]:
    """The numbers of every step by (rank, step)."""
    return {(recording.rank, facts.step): facts for recording in run for facts in recording.facts}


def first_step(run: Run) -> int | None:
    """The first step that a run recorded, apart from what was recorded before any step; None where there is none."""
    steps = [event.step for recording in run for event in recording.events if event.step >= 0]
    return min(steps, default=None)


def first_update(run: Run) -> int | None:
    """The first step that ended with other weights, for all one knows; None for a recording of forward passes alone."""
    steps = [event.step for recording in run for event in recording.events
             if event.stage in ("grad", "grad-reduced", "grad-clipped", "update", "state")]
    return min((*steps, *(step for (_, step), facts in facts_of(run).items() if _updates(facts))), default=None)


def _updates(facts: Facts) -> bool:
    optimizer = (facts.grad_norm, facts.clip_factor, facts.lr, facts.skipped)
    return bool(facts.moved) or (facts.moved is None and any(number is not None for number in optimizer))


def meta(run: Run, key: str) -> str:
    """What the first rank says of itself; empty where it does not."""
    return next((dict(recording.meta).get(key, "") for recording in run), "")


def comparable(baseline: Evidence[Run], candidate: Evidence[Run], world_size: int | None) -> list[Note]:
    """Why two recordings are not of the same thing: ranks missing, two content hashes, something left unrecorded."""
    problems: list[Note] = []
    runs = [side.runs[0].table for side in (baseline, candidate)]
    for side, run in zip((baseline, candidate), runs, strict=True):
        if len(side.runs) > 1:
            problems.append(note("record-several-runs", side=side.side, runs=len(side.runs)))
        worlds = {recording.world_size for recording in run}
        expected = world_size or max(worlds, default=1)
        there = sorted(recording.rank for recording in run)
        if worlds != {expected} or there != list(range(expected)):
            problems.append(note("record-ranks", side=side.side, ranks=", ".join(map(str, there)), expected=expected,
                                 world=", ".join(map(str, sorted(worlds)))))
        lost = [f"{name} ({why})" for recording in run for name, why in recording.unrecorded]
        if lost:
            problems.append(note("record-unrecorded", side=side.side, names=listed(lost)))
    instruments = [_said(run, "instruments") for run in runs]
    if instruments[0] != instruments[1]:
        problems.append(note("record-instrumented", baseline=instruments[0], candidate=instruments[1]))
    problems += same_file(baseline, candidate)
    if len({recording.algorithm for run in runs for recording in run}) > 1:
        ours, theirs = (", ".join(sorted({recording.algorithm for recording in run})) for run in runs)
        problems.append(note("record-two-hashes", baseline=ours, candidate=theirs))
    return problems


def _said(run: Run, key: str) -> str:
    """What the ranks say of themselves, each thing once."""
    return ", ".join(sorted({dict(recording.meta).get(key) or "none" for recording in run}))


def same_file(baseline: Evidence[Any], candidate: Evidence[Any]) -> list[Note]:
    """One recording handed in for both sides agrees with itself; two accelerators never round alike everywhere.

    A rehearsal may: it runs both sides on one machine.
    """
    ours, theirs = ({item.sha256 for item in side.witnesses if item.sha256} for side in (baseline, candidate))
    rehearsed = all(item.producer == "rehearsal" for item in (*baseline.witnesses, *candidate.witnesses))
    return [] if rehearsed or not ours & theirs else [note("record-same-file", sha256=min(ours & theirs)[:12])]


def incomparable(problems: Sequence[Note]) -> bool:
    """Are the sides' contents known by two hashes? Equal tensors then look different, and nothing can be failed."""
    return any(problem.code == "record-two-hashes" for problem in problems)


def listed(names: Sequence[str]) -> str:
    """The first few of many names."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def one_sided(pairs: Pairs) -> list[Note]:
    """What only one side recorded: not compared, and never a pass."""
    return [note("record-one-sided", side=side, count=len(found),
                 names=listed([f"{event.stage} {event.name}" for _, event in found]))
            for side, found in (("baseline", pairs.baseline_only), ("candidate", pairs.candidate_only)) if found]
