"""L5: do both sides train along the same trajectory? The judge of two training losses.

d[t] = ln(candidate[t] / baseline[t]) over the steps both sides logged. Strict mode holds every statistic against its
limit and weighs what lies below the limits by the departure (`loss_departure`); weak mode (noise or seed differ) asks
another question of several runs per side: see `loss_weak`. What the rules separate: docs/explanation.md.
"""

from __future__ import annotations

from pytest_migparity.core.evidence import Evidence, Policy, Trajectory
from pytest_migparity.core.limits import Floors, Limits
from pytest_migparity.core.verdict import Coverage, Finding, Note, Outcome, note, settle

from .loss_blocks import Blocks, blocks_of
from .loss_channels import Channels, channels_of
from .loss_checks import checks_of, departure_check, late, unmeasured
from .loss_departure import SHIPPED, Scale, departure_of
from .loss_growth import chaotic
from .loss_hints import hints_of
from .loss_identity import identity_notes
from .loss_notes import broken_notes, coverage_notes, doubtful, numbering_notes, window_notes
from .loss_onset import earlier, first_divergence
from .loss_recipe import recipe_notes
from .loss_weak import judge_weak
from .traj_align import Aligned, Series, align, series_of
from .traj_stats import first_zeros, floors_of, floors_of_pairs, measure

__all__ = ["floors_of", "floors_of_pairs", "judge_loss", "measure"]

Sides = tuple[Evidence[Trajectory], Evidence[Trajectory]]


def judge_loss(baseline: Evidence[Trajectory], candidate: Evidence[Trajectory], *,
               limits: Limits, floors: Floors, policy: Policy, scale: Scale = SHIPPED) -> Finding:
    """Hold the log-ratio of two loss trajectories against `limits` (one per check of L5).

    FAIL: a check beyond its limit, a loss that is non-finite or not positive on one side only, or, where both sides
    logged them, a gradient norm that is so, another learning rate, other skipped steps. INCONCLUSIVE: what cannot be
    compared or proves nothing, with the reason: steps missing on a side, evidence with problems, rows of which nobody
    knows which count, fewer than 10 common steps, a departure in doubt, digits too coarse, both sides broken alike, one
    run handed in twice. Else PASS. `policy.steps` is how many training steps must be covered; `scale` holds the
    constants of the departure. Raises nothing on bad data.
    """
    sides = (baseline, candidate)
    notes = [problem for side in sides for problem in side.problems]
    notes += [repair for side in sides for run in side.runs for repair in run.repairs]
    if policy.mode == "weak":
        return judge_weak(sides, notes, limits=limits, floors=floors, policy=policy)
    tables: list[Series | None] = []
    for side in sides:
        table = series_of(side.runs[0].table) if len(side.runs) == 1 else None
        tables.append(table if table is not None and table.step.size else None)
        if not side.runs and not side.problems:
            notes.append(note("loss-no-evidence", side=side.side))
        elif len(side.runs) > 1:
            notes.append(note("loss-several-runs", side=side.side, runs=len(side.runs)))
        elif side.runs and tables[-1] is None:
            notes.append(note("loss-empty", side=side.side))
    a, b = tables
    if a is None or b is None:
        only = [0 if table is None else int(table.step.size) for table in tables]
        coverage = Coverage("steps", 0, policy.steps or max(only), only[0], only[1], *_handled(sides))
        return Finding(Outcome.INCONCLUSIVE, unmeasured(limits, floors), coverage, notes=tuple(notes))
    return _judge_pair(sides, a, b, notes, limits, floors, policy, scale)


def _judge_pair(sides: Sides, a: Series, b: Series, notes: list[Note],
                limits: Limits, floors: Floors, policy: Policy, scale: Scale) -> Finding:
    """Two non-empty tables to a Finding; `notes` are those of the evidence itself."""
    ours, theirs = sides[0].runs[0], sides[1].runs[0]
    pair = align(a, b, policy.steps, policy.interval, policy.first)
    checks, unmet = checks_of(pair, a, b, limits, floors, policy.first)
    zeros = first_zeros(ours.table, theirs.table, pair)
    figures = departure_of(pair, zeros)
    moved = _zeros_moved(pair, zeros) if figures is not None and figures.zeros_moved else []
    departure, doubt = departure_check(figures, int(pair.usable.sum()), limits, floors, policy.family, scale,
                                       chaotic(pair))
    checks = (*late(checks, departure, pair), departure)
    parted = [check.name for check in checks if check.blocked == "loss-check-late"]
    numbering = [*window_notes(ours.table, theirs.table), *numbering_notes(pair, a, b)]
    missing = coverage_notes(pair, a, b, policy)
    broken, undefined = broken_notes(pair)
    vacuous, remarks = identity_notes(ours, theirs, pair)
    blocks = blocks_of(pair, (ours.table, theirs.table)) if pair.usable.any() else Blocks()
    misfit = recipe_notes((ours.table, theirs.table), policy)
    channels = Channels() if numbering else channels_of(ours.table, theirs.table, pair)

    if settle(checks) is Outcome.PASS and [item.code for item in numbering] == ["loss-intervals"]:
        numbering, remarks = [], [*remarks, note("loss-intervals-agree", baseline=a.interval, candidate=b.interval)]
    if any(side.problems for side in sides) or doubtful(notes) or (numbering and not pair.broken.any()):
        outcome = Outcome.INCONCLUSIVE  # not the same thing, or not the same steps: neither agreement nor difference
    else:
        unsure = (missing, undefined, vacuous, numbering, misfit, moved, blocks.unsure, channels.unsure)
        outcome = settle(checks, failed=bool(pair.broken.any() or channels.failed or blocks.failed),
                         unsure=any(map(bool, unsure)))
    notes = [*notes, *numbering, *broken, *channels.failed, *blocks.failed, *undefined, *missing, *vacuous, *misfit,
             *moved, *doubt, *blocks.unsure, *channels.unsure, *unmet, *remarks, *channels.remarks]
    if parted:
        notes.append(note("loss-late", checks=", ".join(parted)))
    if pair.beyond:
        notes.append(note("loss-beyond", rows=pair.beyond, steps=policy.steps or 0))
    quiet = outcome is Outcome.PASS or bool(numbering)
    first = None if quiet else earlier(first_divergence(pair, checks, floors), channels.first)
    hints = () if quiet else (*channels.hints, *hints_of(pair, checks, first, (ours.table, theirs.table)))
    return Finding(outcome, (*checks, *channels.figures), _coverage(sides, pair), first_divergence=first,
                   notes=tuple(notes), hints=hints)


def _zeros_moved(pair: Aligned, zeros: tuple[float, float] | None) -> list[Note]:
    """num_zeros of the first gradient moved: other gradients, whatever the losses say, so the pair cannot pass."""
    if zeros is None:
        return []
    share = (max(zeros) + 1) / (min(zeros) + 1) - 1
    return [note("loss-zeros-moved", share=share, baseline=zeros[0], candidate=zeros[1])]


def _coverage(sides: Sides, pair: Aligned) -> Coverage:
    """Finite pairs out of the steps expected; rows a single side has."""
    single = pair.expected - pair.step.size - pair.unlisted
    return Coverage("steps", int(pair.usable.sum()), pair.expected, int(single - pair.baseline_missing.size),
                    int(single - pair.candidate_missing.size), *_handled(sides))


def _handled(sides: Sides) -> tuple[int, int]:
    """Rows repaired and rows dropped by the readers, both sides together."""
    runs = [run for side in sides for run in side.runs]
    return sum(run.repaired for run in runs), sum(run.dropped for run in runs)
