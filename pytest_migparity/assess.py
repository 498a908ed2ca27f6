"""Fetch -> read -> judge for one level of one model: what the fixtures, the command line and watch share."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .core.dumped import Dump
from .core.errors import UserError
from .core.evidence import Evidence, Policy, Recorded, Trajectory
from .core.levels import Direction, level_named
from .core.limits import Declared, Floor, Floors, Limits
from .core.outputs import OutputSet
from .core.verdict import Coverage, Finding, Note, Outcome, Verdict, note
from .sides import Handle

if TYPE_CHECKING:
    from .core.manifest import Manifest

_JUDGES = {"L0": ("envmatch", "judge_env"), "L1": ("identity", "judge_identity"), "L2": ("inputs", "judge_inputs"),
           "L3": ("forward", "judge_forward"), "L4": ("onestep", "judge_step"), "L5": ("difftraj", "judge_loss"),
           "L6": ("action_error", "judge_actions"), "L7": ("closedloop", "judge_rollouts")}
_DUMP_JUDGES = {"L1": ("dumped", "judge_dumped_weights"), "L3": ("dumped", "judge_dumped_forward"),
                "L4": ("dumped", "judge_dumped_step")}


def judge_evidence(level: str, baseline: Evidence[Any], candidate: Evidence[Any], *, limits: Limits, floors: Floors,
                   policy: Policy) -> Finding:
    """Run the level's judge, and keep it from passing, or failing, on evidence that cannot be trusted."""
    level_named(level)
    if level not in _JUDGES:
        raise UserError(f"{level} has no judge yet; levels that exist: {', '.join(_JUDGES)}")
    problems = [*baseline.problems, *candidate.problems, *_mixed(baseline, candidate)]
    if not baseline.runs or not candidate.runs:
        return Finding(Outcome.INCONCLUSIVE, (), Coverage(candidate.kind, 0, 0), notes=tuple(problems),
                       mode=policy.mode)
    dumps = [isinstance(side.runs[0].table, Dump) for side in (baseline, candidate)]
    if any(dumps) and not (all(dumps) and level in _DUMP_JUDGES):
        why = note("dump-one-sided") if not all(dumps) else note("dump-not-judged", level=level)
        return Finding(Outcome.INCONCLUSIVE, (), Coverage(candidate.kind, 0, 0), notes=(*problems, why),
                       mode=policy.mode)
    module, name = (_DUMP_JUDGES if all(dumps) else _JUDGES)[level]
    judge = getattr(import_module(f".judges.{module}", __package__), name)
    finding: Finding = judge(baseline, candidate, limits=limits, floors=floors, policy=policy)
    if not problems:
        return finding
    known = [item for item in finding.notes if item not in problems]
    return replace(finding, outcome=Outcome.INCONCLUSIVE, notes=(*problems, *known))


def _mixed(baseline: Evidence[Any], candidate: Evidence[Any]) -> list[Note]:
    """Rehearsal evidence answers only rehearsal evidence."""
    theirs = [{witness.producer for witness in side.witnesses} for side in (baseline, candidate)]
    if all(theirs) and ("rehearsal" in theirs[0]) != ("rehearsal" in theirs[1]):
        return [note("producers-mixed", baseline=", ".join(sorted(theirs[0])), candidate=", ".join(sorted(theirs[1])))]
    return []


def copied_reruns(baseline: Evidence[Any], candidate: Evidence[Any]) -> list[Note]:
    """A candidate's log that is listed as the baseline's rerun would measure its own difference as the floor.

    Rehearsals are repeatable to the bit, and a rerun may honestly equal the other side's run.
    """
    runs = [run for run in candidate.runs if run.witness.producer != "rehearsal"]
    return [note("rerun-is-run", file=rerun.witness.name) for rerun in baseline.reruns
            if any(_repeats(rerun, run) for run in runs)]


def _repeats(one: Recorded[Any], other: Recorded[Any]) -> bool:
    """The same bytes, or another file with the same losses or outputs in every bit."""
    if one.witness.sha256 == other.witness.sha256:
        return True
    if isinstance(one.table, OutputSet) and isinstance(other.table, OutputSet):
        return one.table.same_values(other.table)
    if not isinstance(one.table, Trajectory) or not isinstance(other.table, Trajectory):
        return False
    import numpy as np

    return np.array_equal(one.table.step, other.table.step) and np.array_equal(one.table.loss, other.table.loss)


def measured_floors(level: str, baseline: Evidence[Any], manifest: Manifest) -> Floors:
    """The manifest's floors, and those that the baseline's reruns show; the larger of the two.

    Reruns of the candidate lift no limit: a migrated side that cannot repeat itself must not be excused by that.
    """
    declared = manifest.declared_floors(level)
    if not baseline.runs or not baseline.reruns or level == "L7":  # L7's margin is the user's; its judge sees reruns
        return declared
    if level == "L5":
        from .judges.difftraj import floors_of

        found = floors_of([recorded.table for recorded in (*baseline.runs, *baseline.reruns)],
                          steps=manifest.recipe.steps)
    else:
        found = _repeated(level, baseline, manifest.policy())
    by_check = dict(declared.by_check)
    for name, floor in found.by_check.items():
        if name not in by_check or floor.value > by_check[name].value:
            by_check[name] = floor
    return Floors(by_check, found.by_step)


def _repeated(level: str, baseline: Evidence[Any], policy: Policy) -> Floors:
    """How far the level's judge finds each rerun of the baseline from its run, check by check.

    Each limit is its cap, beyond which no floor counts: what then is INCONCLUSIVE could not be compared.
    """
    largest: dict[str, float] = {}
    limits = {spec.name: Declared(spec.cap, "cap") for spec in level_named(level).checks.values()}
    for rerun in baseline.reruns:
        finding = judge_evidence(level, _of_one_machine(baseline, baseline.runs[0]), _of_one_machine(baseline, rerun),
                                 limits=limits, floors=Floors(), policy=policy)
        if finding.outcome is Outcome.INCONCLUSIVE:  # what cannot be compared measures nothing
            continue
        for check in finding.checks:
            if check.limit is not None and check.limit.direction is Direction.MAX and math.isfinite(check.value):
                largest[check.name] = max(check.value, largest.get(check.name, 0.0))
    runs = 1 + len(baseline.reruns)
    return Floors({name: Floor(value, f"{runs} runs of the baseline", runs, len(baseline.reruns))
                   for name, value in largest.items()})


def _of_one_machine(side: Evidence[Any], run: Recorded[Any]) -> Evidence[Any]:
    """A run among its reruns: like a rehearsal's, they may be of one machine and equal to the bit."""
    return Evidence(side.side, side.kind, (replace(run, witness=replace(run.witness, producer="rehearsal")),))


def refused(level: str, model: str, case: str, why: str) -> Verdict:
    """The verdict where the question itself was wrong: nothing was compared."""
    finding = Finding(Outcome.INCONCLUSIVE, (), Coverage(level_named(level).kinds[0], 0, 0),
                      notes=(note("judge-refused", why=why),))
    return Verdict(level, model, case, finding)


def assess(level: str, baseline: Handle[Any], candidate: Handle[Any], *, manifest: Manifest,
           limits: Limits, case: str | None = None) -> Verdict:
    """One level of one model, from the two sides' handles to the verdict; `case`, where given, is what they must be."""
    case = getattr(baseline, "case", None) if case is None else case
    for handle in (baseline, candidate):
        if not isinstance(handle, Handle):
            raise UserError(f"judge() was given {type(handle).__name__}; give it evidence of both sides, "
                            "e.g. judge(baseline.loss(series), candidate.loss(series))")
        if handle.kind not in level_named(level).kinds:
            raise UserError(f"{level} judges {' and '.join(level_named(level).kinds)}, and was given {handle.kind}")
        if handle.case != case:
            raise UserError(f"the case {case!r} was given the {handle.kind} of {handle.case!r}")
    if (baseline.side, candidate.side) != ("baseline", "candidate"):
        raise UserError(f"judge(baseline, candidate) was given the {baseline.side} and then the {candidate.side}")
    if baseline.kind != candidate.kind:
        raise UserError(f"judge() was given {baseline.kind} of the baseline and {candidate.kind} of the candidate")
    ours, theirs = baseline.load(), candidate.load()
    if baseline.place and baseline.place == candidate.place:
        theirs = replace(theirs, problems=(*theirs.problems, note("same-site", site=Path(baseline.place).name)))
    theirs = replace(theirs, problems=(*theirs.problems, *copied_reruns(ours, theirs)))
    if level == "L5" and ours.runs and ours.reruns:
        from .judges.loss_floors import rerun_problems

        ours = replace(ours, problems=(*ours.problems, *rerun_problems(ours, manifest.recipe.steps)))
    finding = judge_evidence(level, ours, theirs, limits=limits, floors=measured_floors(level, ours, manifest),
                             policy=manifest.policy(baseline.case))
    return Verdict(level, manifest.name, baseline.case, finding, (*ours.witnesses, *theirs.witnesses))
