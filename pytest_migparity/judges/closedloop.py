"""L7: is the task's success rate no worse, beyond a margin?

D = success(candidate) - success(baseline) on the same (task, seed, instruction, noise). PASS: "the mean of D is -margin
or less" is rejected. FAIL: "the mean of D is 0 or more" is rejected, and the loss measured is the margin at least.
Neither: INCONCLUSIVE. An improvement never fails. Paired episodes are judged by betting (`betting`), which may stop
early; episodes that cannot be paired by the fixed-sample score test (`loop_fixed`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_migparity.core.evidence import Evidence, Policy
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, Limits, limit_for
from pytest_migparity.core.verdict import Check, Coverage, Divergence, Finding, Note, Outcome, note
from pytest_migparity.wire.rollouts import Rollouts

from . import loop_notes as notes
from .betting import NEVER, certificate
from .failure_modes import failure_modes, mode_notes
from .loop_fixed import tango_z, unpaired_bound, unpaired_p
from .loop_pairs import Ints, Match, Matches, match
from .loop_plan import pairs_needed
from .loop_scores import score_bound
from .loop_tasks import Row, TaskLoss, by_task

_GUESS, _GUESS_WEIGHT, _PUBLISHED_WEIGHT = 0.5, 2.0, 50.0
_FINEST = 1e-3  # how finely the smallest certified margin is looked for


@dataclass(frozen=True, slots=True)
class Decision:
    """What the numbers alone say: `bound` is the smallest margin that they certify, `p` that of a loss of the margin.

    `loss`: baseline's rate less the candidate's, over everything.
    """

    outcome: Outcome
    bound: float
    p: float
    loss: float
    remarks: tuple[Note, ...] = ()


def judge_rollouts(baseline: Evidence[Rollouts], candidate: Evidence[Rollouts], *,
                   limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """Hold two sides' success rates against `margin`, each certificate with an error rate of `alpha`.

    INCONCLUSIVE whatever the numbers say: another harness, protocol, initial state, instruction or noise, runs of one
    side that differ by more than chance, a baseline that is not as published. No PASS: a baseline without success to
    lose, episodes on one side alone, other tasks. Crashes and rejected seeds count against each certificate. Floors
    lift no margin. Raises nothing on bad data.
    """
    sides = (baseline, candidate)
    ours, theirs = baseline.runs[0].table, candidate.runs[0].table
    margin, alpha = limits["margin"].value, limits["alpha"].value
    against, remarks = notes.protocol_notes(ours, theirs)
    unproved = notes.task_notes(ours, theirs, policy.tasks)
    matches = None if ours.unpaired or theirs.unpaired else match(ours, theirs)
    if matches is not None:
        found = notes.pair_notes(matches)
        against += [item for item in found if item.code == "loop-not-same"]
        unproved += [item for item in found if item.code != "loop-not-same"]
        decision = _decide_pairs(matches, margin, alpha, policy.published)
    else:
        remarks.append(note("loop-unpaired", why=ours.unpaired or theirs.unpaired))
        decision = _decide_counts(ours, theirs, margin, alpha)
    against += notes.published_notes(*notes.counts(ours), policy.published)
    against += notes.spread_notes(sides, decision.loss, margin)
    unproved += notes.vacuous_notes(*_standing(ours, matches), margin, alpha, policy)
    unproved += _copied(baseline, candidate)
    outcome = decision.outcome
    if against or (unproved and outcome is Outcome.PASS):
        outcome = Outcome.INCONCLUSIVE
    tasks = _tasks(ours, theirs, matches)
    hurt = [task for task in tasks if task.p <= alpha and task.rates[1] < task.rates[0]]
    remarks += [*decision.remarks, *notes.kept_apart(ours, theirs, matches.repeated if matches else (0, 0)),
                *(_task_note(task) for task in hurt[: notes.NAMED]), notes.question(ours, theirs)]
    first: Divergence | None = None
    hints: tuple[Note, ...] = ()
    if outcome is Outcome.FAIL:
        first = Divergence("task", tasks[0].task, *tasks[0].rates)
        hints = mode_notes(failure_modes(ours.episodes, theirs.episodes))
    return Finding(outcome, _checks(decision, limits, ours, theirs, matches), _coverage(ours, theirs, matches),
                   first_divergence=first, notes=(*against, *unproved, *remarks), hints=hints, mode=policy.mode)


def _decide_pairs(matches: Matches, margin: float, alpha: float, published: float | None) -> Decision:
    """Both certificates, in the fixed order; both together are a PASS, unless all pairs show more than the margin.

    A FAIL needs a loss of the margin, within a standard error, over all pairs as well: one that was as large only where
    betting stopped is open.
    """
    target = math.log(1 / alpha)
    for_pass, for_fail = (matches.against(outcome) for outcome in ("PASS", "FAIL"))
    passed, capital = _bet(for_pass, 1, margin, target, published)
    failed, lossy = _bet(for_fail, -1, margin, target, published)
    loss = -float(for_fail[1].mean()) if len(for_fail[1]) else 0.0
    worst = -float(for_pass[1].mean()) if len(for_pass[1]) else 0.0
    remarks: list[Note] = []
    outcome = Outcome.INCONCLUSIVE
    if passed != NEVER and worst <= margin:
        outcome = Outcome.PASS
        remarks.append(note("loop-passed", at=passed, pairs=len(for_pass[0]), alpha=alpha))
        if lossy >= target and loss > 0:
            remarks.append(note("loop-real-loss", loss=loss))
    elif failed != NEVER and loss > 0 and loss + _standard_error(for_fail[1]) >= margin:
        outcome = Outcome.FAIL
        remarks.append(note("loop-failed", at=failed, pairs=len(for_fail[0]), loss=loss, alpha=alpha))
    elif failed != NEVER and loss > 0 and passed == NEVER:
        remarks += [note("loop-real-loss", loss=loss), _planned(matches, margin, alpha)]
    elif passed != NEVER:
        remarks.append(note("loop-later-disagree", at=passed, loss=worst, margin=margin))
    elif len(for_pass[0]):
        remarks.append(_planned(matches, margin, alpha))
    remarks += _registered(matches, for_pass, margin, target)
    certified = passed != NEVER and outcome is not Outcome.FAIL
    bound = _smallest(for_pass, margin, target, published, certified=certified)
    p = min(alpha, math.exp(-capital)) if certified else min(1.0, math.exp(-capital))
    return Decision(outcome, bound, p, loss, tuple(remarks))


def _standard_error(differences: Ints) -> float:
    """Of the mean difference."""
    return float(differences.std()) / math.sqrt(len(differences))


def _bet(pairs: tuple[Ints, Ints], sign: int, margin: float, target: float,
         published: float | None) -> tuple[int, float]:
    rate, weight = (_GUESS, _GUESS_WEIGHT) if published is None else (published, _PUBLISHED_WEIGHT)
    return certificate(pairs[0].tolist(), pairs[1].tolist(), sign, margin, rate, weight, 0, False, target)


def _smallest(pairs: tuple[Ints, Ints], margin: float, target: float, published: float | None, *,
              certified: bool) -> float:
    """The smallest margin, to a part in a thousand, that these pairs certify: the bound of the loss."""
    low, high = (_FINEST, margin) if certified else (margin, 0.999)
    if not certified and _bet(pairs, 1, high, target, published)[0] == NEVER:
        return math.nan
    while high - low > _FINEST:
        middle = (low + high) / 2
        if _bet(pairs, 1, middle, target, published)[0] == NEVER:
            low = middle
        else:
            high = middle
    return high


def _planned(matches: Matches, margin: float, alpha: float) -> Note:
    """What it would take at the discordance seen: half a pair is added, so that none seen is not none at all."""
    whole = matches.whole
    seen = sum(item.difference != 0 for item in whole)
    discordant = min(1.0, (seen + 0.5) / (len(whole) + 1.0))
    return note("loop-undecided-pairs", pairs=len(matches.ordered), margin=margin, discordant=discordant,
                needed=pairs_needed(discordant, margin, alpha))


def _registered(matches: Matches, pairs: tuple[Ints, Ints], margin: float, target: float) -> list[Note]:
    """The narrower question, of these episodes alone: a remark, never the verdict."""
    if matches.stopped or not matches.ordered or len(matches.whole) < len(matches.ordered):
        return []
    count = len(pairs[0])
    rate = float(pairs[0].mean())
    at, _ = certificate(pairs[0].tolist(), pairs[1].tolist(), 1, margin, rate, 0.0, count, True, target)
    return [note("loop-registered", pairs=count, at=at)] if at > 0 else []


def _decide_counts(ours: Rollouts, theirs: Rollouts, margin: float, alpha: float) -> Decision:
    """Two independent counts, with what has no outcome counted against each certificate."""
    good, of = notes.counts(ours)
    got, tried = notes.counts(theirs)
    lost_a, lost_b = len(ours.episodes) - of, len(theirs.episodes) - tried
    if not of or not tried:
        return Decision(Outcome.INCONCLUSIVE, math.nan, 1.0, 0.0)
    base, cand = (good + lost_a, of + lost_a), (got, tried + lost_b)
    loss = good / of - got / tried
    p = unpaired_p(*base, *cand, margin)
    kindest = (good, of + lost_a), (got + lost_b, tried + lost_b)
    measured = kindest[0][0] / kindest[0][1] - kindest[1][0] / kindest[1][1]
    worse = unpaired_p(*kindest[0], *kindest[1], 0.0, worse=True) <= alpha
    bound = unpaired_bound(*base, *cand, alpha)
    if p <= alpha:
        remarks = [note("loop-real-loss", loss=loss)] if worse and loss > 0 else []
        return Decision(Outcome.PASS, min(bound, margin), p, loss, tuple(remarks))
    if worse and measured >= margin:
        return Decision(Outcome.FAIL, max(bound, math.nextafter(margin, 1)), p, loss)
    return Decision(Outcome.INCONCLUSIVE, max(bound, math.nextafter(margin, 1)), p, loss)


def _checks(decision: Decision, limits: Limits, ours: Rollouts, theirs: Rollouts,
            matches: Matches | None) -> tuple[Check, ...]:
    """`margin` holds the smallest margin certified, `alpha` the p-value of a loss of the margin; figures beside."""
    spec = LEVELS["L7"].checks
    undecided = "loop-undecided" if decision.outcome is Outcome.INCONCLUSIVE else ""
    checks = [Check(name, value, limit_for(spec[name], limits, Floors()), spec[name].unit, undecided)
              for name, value in (("margin", decision.bound), ("alpha", decision.p))]
    good, of = notes.counts(ours)
    got, tried = notes.counts(theirs)
    figures = {"loss": decision.loss, "baseline": good / of if of else math.nan,
               "candidate": got / tried if tried else math.nan}
    if matches is not None and matches.whole:
        lost, gained, correlation = _discordance(matches.whole)
        figures |= {"lost": lost, "gained": gained, "correlation": correlation,
                    "tango_z": tango_z(lost, gained, len(matches.whole), limits["margin"].value)}
        scores = np.array([item.b.score - item.a.score for item in matches.whole
                           if item.a and item.b and item.a.score is not None and item.b.score is not None])
        if len(scores) == len(matches.whole) == len(matches.ordered):
            figures |= {"score_loss": -float(scores.mean()), "score_bound": score_bound(scores, limits["alpha"].value)}
    return (*checks, *(Check(name, value) for name, value in figures.items()))


def _discordance(whole: tuple[Match, ...]) -> tuple[int, int, float]:
    """Lost and gained pairs, and the correlation of paired outcomes; NaN where a side never varies."""
    a = np.array([bool(item.a and item.a.success) for item in whole], float)
    b = np.array([bool(item.b and item.b.success) for item in whole], float)
    spread = float(a.std() * b.std())
    correlation = float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread else math.nan
    return int((a > b).sum()), int((b > a).sum()), correlation


def _standing(ours: Rollouts, matches: Matches | None) -> tuple[int, int]:
    """The baseline's successes and episodes once repeats are one."""
    if matches is None:
        return notes.counts(ours)
    outcomes = [item.a.success for item in matches.ordered if item.a is not None and item.a.success is not None]
    return sum(outcomes), len(outcomes)


def _tasks(ours: Rollouts, theirs: Rollouts, matches: Matches | None) -> list[TaskLoss]:
    rows: list[Row] = []
    for task in sorted({episode.task for side in (ours, theirs) for episode in side.episodes}):
        if matches is not None:
            mine = [item for item in matches.whole if item.key[0] == task]
            lost, gained, _ = _discordance(tuple(mine)) if mine else (0, 0, math.nan)
            good, got = (sum(bool(each and each.success) for each in side) for side in
                         ((item.a for item in mine), (item.b for item in mine)))
            rows.append((task, (good, len(mine)), (got, len(mine)), (lost, gained)))
        else:
            a, b = (notes.counts(Rollouts(tuple(episode for episode in side.episodes if episode.task == task)))
                    for side in (ours, theirs))
            rows.append((task, a, b, None))
    return by_task(rows)


def _task_note(task: TaskLoss) -> Note:
    return note("loop-task-lost", task=task.task, baseline=f"{task.baseline[0]}/{task.baseline[1]}",
                candidate=f"{task.candidate[0]}/{task.candidate[1]}", p=task.p)


def _copied(baseline: Evidence[Rollouts], candidate: Evidence[Rollouts]) -> list[Note]:
    """One file on both sides proves nothing; rehearsals are repeatable to the bit by design."""
    ours, theirs = baseline.runs[0].witness, candidate.runs[0].witness
    if ours.sha256 != theirs.sha256 or "rehearsal" in (ours.producer, theirs.producer):
        return []
    return [note("loop-copied", file=theirs.name)]


def _coverage(ours: Rollouts, theirs: Rollouts, matches: Matches | None) -> Coverage:
    if matches is None:
        used = [notes.counts(side)[1] for side in (ours, theirs)]
        return Coverage("episodes", sum(used), len(ours.episodes) + len(theirs.episodes))
    return Coverage("pairs", len(matches.whole), len(matches.ordered) + matches.stopped,
                    len(matches.one_sided("baseline")), len(matches.one_sided("candidate")),
                    dropped=sum(matches.repeated))
