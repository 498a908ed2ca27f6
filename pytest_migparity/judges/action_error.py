"""L6: the same input and the same noise: the same output, as far as the task can tell?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_migparity.core.evidence import Evidence, Policy
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, Limits, limit_for
from pytest_migparity.core.outputs import ActionRules, OutputSet
from pytest_migparity.core.verdict import Coverage, Finding, Note, Outcome, note, settle

from .chunk_error import chunk_error
from .embedding_error import embedding_error
from .logit_error import logit_error, token_error
from .output_match import doubts, in_order, question, unlike
from .output_parts import Measured, Part, checks_of, divergence_of, worst_part
from .recorded import LISTED
from .region_error import box_error, mask_error

_Measure = Callable[[OutputSet, OutputSet, ActionRules, float], Measured]
_BY_KIND: Mapping[str, _Measure] = {
    "actions": chunk_error, "logits": logit_error, "tokens": token_error, "embeddings": embedding_error,
    "boxes": box_error, "masks": mask_error,
}


def judge_actions(baseline: Evidence[OutputSet], candidate: Evidence[OutputSet], *,
                  limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """Hold a candidate's outputs against the baseline's, sample by sample, in units of the baseline's own spread.

    PASS: 99 % of the errors of every dimension are within `close`, none is beyond `worst`, and no other check is beyond
    its limit. FAIL: the p99 of a dimension is beyond `far`, or NaN or Inf on one side only. INCONCLUSIVE: between the
    two, where only the task can tell (L7); and before any number is worked out, other samples, noise, sampler steps,
    normalisation or shapes; outputs that prove nothing (constant, NaN on both sides, too few). The notes name the
    question that was answered: whole stack, trained weights only, inference only. Raises nothing on bad data.
    """
    ours, theirs = baseline.runs[0].table, candidate.runs[0].table
    problems = [*baseline.problems, *candidate.problems]
    named = unlike(ours, theirs)
    total = len({*ours.sample, *theirs.sample})
    if named:
        only = [len({*a.sample} - {*b.sample}) for a, b in ((ours, theirs), (theirs, ours))]
        return Finding(Outcome.INCONCLUSIVE, (), Coverage("samples", 0, total, *only),
                       notes=(*problems, *named), mode=policy.mode)
    theirs = in_order(ours, theirs)
    close = limit_for(LEVELS["L6"].check("close"), limits, floors).effective
    measured = _BY_KIND[ours.kind](ours, theirs, policy.actions, close)
    unsure = [*problems, *doubts(baseline, candidate, ours, theirs), *measured.unsure]
    checks = checks_of(measured, limits, floors)
    outcome = settle(checks, failed=bool(measured.broken), unsure=bool(unsure))
    far = _apart(measured, close)
    worst = worst_part(far)
    first = divergence_of(worst, measured.compared) if worst is not None and outcome is not Outcome.PASS else None
    notes = [*measured.broken, *unsure, question(ours, theirs), *measured.notes, *_told(measured, far)]
    return Finding(outcome, checks, Coverage("samples", len(measured.compared), total,
                                             dropped=total - len(measured.compared)),
                   first_divergence=first, notes=tuple(notes),
                   hints=measured.hints if outcome is not Outcome.PASS else (), mode=policy.mode)


def _apart(measured: Measured, close: float) -> list[Part]:
    """The parts that are not close, the furthest first."""
    return sorted((part for part in measured.parts if part.p99 > close), key=lambda part: -part.p99)


def _told(measured: Measured, apart: list[Part]) -> list[Note]:
    """Each part that is not close, or the one that is furthest apart where all are."""
    worst = worst_part(measured.parts)
    shown = apart[:LISTED] or ([worst] if worst is not None else [])
    found = [note("action-part", name=part.name, unit=part.unit or "-", p99=part.p99, worst=part.worst,
                  rmse=part.rmse, scale=part.scale) for part in shown]
    if len(apart) > LISTED:
        found.append(note("action-more", count=len(apart) - LISTED))
    return found
