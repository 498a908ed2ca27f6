"""Are two sides' outputs of the same question? Samples, noise, sampler, normalisation, and which question it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_migparity.core.evidence import Evidence
from pytest_migparity.core.outputs import OutputSet
from pytest_migparity.core.verdict import Note, note

from .recorded import listed, same_file

FEWEST = 14
"""Samples for a PASS: a difference in one sample of five escapes 14 of them with probability .8^14 = .044."""


def unlike(ours: OutputSet, theirs: OutputSet) -> list[Note]:
    """Why two outputs are not answers to one question; with any of these no number is worked out.

    Another kind, shape or order of dimensions; other samples; other or unsaid noise; another count of sampler steps;
    another normalisation; recorded actions in place of the policy's.
    """
    if ours.kind != theirs.kind:
        return [note("action-kinds", baseline=ours.kind, candidate=theirs.kind)]
    found = [note("action-replayed", side=side) for side, table in (("baseline", ours), ("candidate", theirs))
             if table.source == "replay"]
    shapes = [str(list(table.values.shape[1:])) for table in (ours, theirs)]
    if shapes[0] != shapes[1]:
        found.append(note("action-shapes", baseline=shapes[0], candidate=shapes[1]))
    for what, a, b in (("names", ours.names, theirs.names), ("units", ours.units, theirs.units)):
        if a != b:
            other = next((f"{x or '?'} / {y or '?'}" for x, y in zip(a, b, strict=False) if x != y),
                         f"{len(a)} / {len(b)}")
            found.append(note("action-names", what=what, other=other))
    if ours.steps != theirs.steps:
        found.append(note("action-steps", baseline=ours.steps, candidate=theirs.steps))
    said = [f"{table.normalisation} {table.normalisation_digest[:12]}".strip() for table in (ours, theirs)]
    if (ours.normalisation, ours.normalisation_digest) != (theirs.normalisation, theirs.normalisation_digest):
        found.append(note("action-normalisation", baseline=said[0], candidate=said[1]))
    return found + _samples(ours, theirs)


def _samples(ours: OutputSet, theirs: OutputSet) -> list[Note]:
    if not ours.sample and not theirs.sample:
        return [note("action-nothing")]
    there, here = set(theirs.sample), set(ours.sample)
    only = [[name for name in ours.sample if name not in there], [name for name in theirs.sample if name not in here]]
    found = [note("action-samples", side=side, count=len(names), names=listed(names))
             for side, names in (("baseline", only[0]), ("candidate", only[1])) if names]
    if (ours.label or theirs.label) and dict(zip(ours.sample, ours.label, strict=False)) != \
            dict(zip(theirs.sample, theirs.label, strict=False)):
        found.append(note("action-labels"))
    return found + _noise(ours, theirs)


def _noise(ours: OutputSet, theirs: OutputSet) -> list[Note]:
    """Other noise makes a policy's error 1.6 std at no loss at all; noise that nobody names may be other noise."""
    unsaid = [side for side, table in (("baseline", ours), ("candidate", theirs)) if table.steps and not table.noise]
    if unsaid:
        return [note("action-noise-unsaid", side=side) for side in unsaid]
    if bool(ours.noise) != bool(theirs.noise):
        return [note("action-noise-unsaid", side="candidate" if ours.noise else "baseline")]
    theirs_by = dict(zip(theirs.sample, theirs.noise, strict=False))
    common = [(name, each) for name, each in zip(ours.sample, ours.noise, strict=False) if name in theirs_by]
    other = [name for name, each in common if theirs_by[name] != each]
    return [note("action-noise", count=len(other), of=len(common), names=listed(other))] if other else []


def in_order(ours: OutputSet, theirs: OutputSet) -> OutputSet:
    """The candidate's samples in the baseline's order; both have the same ones."""
    at = {name: k for k, name in enumerate(theirs.sample)}
    return theirs.rows([at[name] for name in ours.sample])


def question(ours: OutputSet, theirs: OutputSet) -> Note:
    """Which question the outputs answer, by where each side's weights were trained and where it ran."""
    ran, trained = ours.site != theirs.site, ours.trained != theirs.trained
    code = {(True, True): "action-whole-stack", (False, True): "action-weights-only",
            (True, False): "action-inference-only", (False, False): "action-one-site"}[ran, trained]
    return note(code, baseline=f"{ours.trained} / {ours.site}", candidate=f"{theirs.trained} / {theirs.site}")


def doubts(baseline: Evidence[Any], candidate: Evidence[Any], ours: OutputSet, theirs: OutputSet) -> list[Note]:
    """What keeps two comparable outputs from passing: too few, or no two sides at all."""
    found = same_file(baseline, candidate)
    if len(ours.sample) < FEWEST:
        found.append(note("action-few", count=len(ours.sample), fewest=FEWEST))
    if _real(baseline, candidate):
        if (ours.site, ours.trained) == (theirs.site, theirs.trained):
            found.append(note("action-one-machine", site=ours.site))
        if not found and ours.kind != "tokens" and ours.kind != "masks" and ours.site != theirs.site \
                and ours.same_values(theirs):
            found.append(note("action-identical"))
    return found


def _real(*sides: Evidence[Any]) -> bool:
    """A rehearsal runs both sides on one machine, and is repeatable to the bit by design."""
    witnesses: Sequence[Any] = [witness for side in sides for witness in side.witnesses]
    return not witnesses or any(witness.producer != "rehearsal" for witness in witnesses)
