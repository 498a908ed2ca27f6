"""L2: did both models receive the same tensors? Token ids and noise to the bit, features and pixels within limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase

from pytest_migparity.core.evidence import Evidence, Policy
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, Limits, limit_for
from pytest_migparity.core.verdict import Check, Coverage, Finding, Note, Outcome, note, settle

from .recorded import LISTED, Pair, Pairs, Run, comparable, incomparable, listed, meta, one_sided, pairs_of

STAGES = ("input", "draw")
_DOUBTFUL_PIXELS = 2e-3  # of the norm: 15 of 307200 pixels one level off are 6e-5, another renderer's frames 1e-2


class Group(StrEnum):
    """What an input is, which decides how equal it must be."""

    IDS = "ids"
    NOISE = "noise"
    PIXELS = "pixels"
    FEATURES = "features"


def judge_inputs(baseline: Evidence[Run], candidate: Evidence[Run], *,
                 limits: Limits, floors: Floors, policy: Policy) -> Finding:
    """Hold the tensors that two models were given in the recorded steps against each other.

    `ids` counts integer and boolean tensors that differ, `features` and `pixels` are the largest relative L2 distance
    of their group (a group nobody recorded has no check). Noise must be equal to the bit: another draw of the same
    distribution makes what follows incomparable (INCONCLUSIVE, named), while noise that is related to the baseline's
    and differs was changed on the way (`noise`, FAIL). INCONCLUSIVE too: nothing recorded, tensors on one side only,
    ranks missing, non-finite numbers on both sides. Raises nothing on bad data.
    """
    ours, theirs = baseline.runs[0].table, candidate.runs[0].table
    pairs = pairs_of(ours, theirs, STAGES, policy.skipped)
    unsure = [*baseline.problems, *candidate.problems, *comparable(baseline, candidate, policy.world_size),
              *one_sided(pairs)]
    groups = {group: [pair for pair in pairs.pairs if group_of(pair, policy) is group] for group in Group}
    redrawn = [pair for pair in groups[Group.NOISE] if is_another_draw(pair)]
    changed = [pair for pair in groups[Group.NOISE] if not pair.apart.equal and pair not in redrawn]
    checks, wrong = _checks(groups, changed, limits, floors)
    unsure += _unsure(pairs, groups[Group.PIXELS], wrong)
    if redrawn:
        unsure.append(_stream_note(redrawn, ours, theirs))
    bad = [pair for pair in pairs.pairs if pair in wrong]
    outcome = Outcome.INCONCLUSIVE if incomparable(unsure) else settle(checks, unsure=bool(unsure))
    notes = [*unsure, *(_differs(pair, policy) for pair in bad[:LISTED])]
    first = next(iter([*bad, *redrawn]), None)
    return Finding(outcome, checks, _coverage(pairs),
                   first_divergence=None if first is None else first.divergence(), notes=tuple(notes),
                   hints=tuple(_hints(bad)), mode=policy.mode)


def group_of(pair: Pair, policy: Policy) -> Group:
    """Noise by its stage or a declared pattern, pixels by uint8 or a declared pattern, ids by integer type."""
    name, dtype = pair.a.name, pair.a.tensor.dtype
    if pair.a.stage == "draw" or any(fnmatchcase(name, pattern) for pattern in policy.noise_names):
        return Group.NOISE
    if dtype == "uint8" or any(fnmatchcase(name, pattern) for pattern in policy.pixel_names):
        return Group.PIXELS
    return Group.IDS if dtype.startswith(("int", "uint", "bool")) else Group.FEATURES


def is_another_draw(pair: Pair) -> bool:
    """Do two random tensors look like two draws of one distribution: same shape, norm and spread, cosine near 0?"""
    a, b = pair.a.tensor.stats, pair.b.tensor.stats
    if a is None or b is None or pair.apart.equal or pair.apart.fault:
        return False
    size = pair.a.tensor.size
    spread = 6 / math.sqrt(max(size, 1))  # of a mean square over `size` draws with a kurtosis up to 18
    means = (a.total / size, b.total / size)
    deviations = [math.sqrt(max(stats.l2**2 / size - mean**2, 0.0)) for stats, mean in zip((a, b), means, strict=True)]
    far = abs(means[0] - means[1]) > spread * max(deviations)
    same = abs(math.log(pair.apart.norm_ratio)) < spread and not far
    # a flow time is positive: what is orthogonal is the part beside the mean
    correlation = (pair.apart.cosine * a.l2 * b.l2 / size - means[0] * means[1]) / max(deviations[0] * deviations[1],
                                                                                       1e-300)
    return same and abs(correlation) < max(spread, 0.6)


def _checks(groups: dict[Group, list[Pair]], changed: Sequence[Pair], limits: Limits,
            floors: Floors) -> tuple[tuple[Check, ...], list[Pair]]:
    """The checks of the groups that were recorded, and the pairs that break one."""
    level = LEVELS["L2"]
    wrong: list[Pair] = []
    checks = []
    for group, pairs in groups.items():
        if not pairs:
            continue
        spec = level.check(group.value)
        if group in (Group.IDS, Group.NOISE):
            bad = [pair for pair in pairs if not pair.apart.equal] if group is Group.IDS else list(changed)
            checks.append(Check(spec.name, float(len(bad)), limit_for(spec, limits, floors), spec.unit))
        else:
            worst = max(pairs, key=lambda pair: pair.apart.relative)
            limit = limit_for(spec, limits, floors, worst.apart.floor)
            blocked = "inputs-unmeasured" if worst.apart.fault == "unmeasured" else ""
            checks.append(Check(spec.name, worst.apart.relative, limit, spec.unit, blocked))
            bad = [pair for pair in pairs if pair.apart.fault != "unmeasured" and not limit.holds(pair.apart.relative)]
        wrong += bad
    return tuple(checks), wrong


def _unsure(pairs: Pairs, pixels: Sequence[Pair], wrong: Sequence[Pair]) -> list[Note]:
    found = []
    if not pairs.pairs:
        found.append(note("inputs-nothing"))
    elif all(pair.apart.fault == "vacuous" for pair in pairs.pairs):
        found.append(note("inputs-vacuous"))
    broken = [pair.where for pair in pairs.pairs if pair.apart.broken]
    if broken:
        found.append(note("record-broken-alike", names=listed(broken)))
    doubtful = [pair for pair in pixels if pair not in wrong and _DOUBTFUL_PIXELS < pair.apart.relative < math.inf]
    if doubtful:
        worst = max(doubtful, key=lambda pair: pair.apart.relative)
        found.append(note("inputs-pixels-doubtful", where=worst.where, relative=worst.apart.relative,
                          below=_DOUBTFUL_PIXELS))
    return found


def _stream_note(redrawn: Sequence[Pair], ours: Run, theirs: Run) -> Note:
    seeds = (meta(ours, "seed"), meta(theirs, "seed"))
    code = "inputs-seed-equal-stream-not" if seeds[0] and seeds[0] == seeds[1] else "inputs-noise-stream"
    return note(code, where=redrawn[0].where, count=len(redrawn), seed=seeds[0] or "?")


def _differs(pair: Pair, policy: Policy) -> Note:
    if group_of(pair, policy) is Group.IDS and not pair.apart.fault:
        a = pair.a.tensor
        return note("record-ids", where=pair.where, baseline=f"{a.dtype} {list(a.shape)}")
    return pair.note()


def _hints(bad: Sequence[Pair]) -> list[Note]:
    """What a feature's own numbers suggest: a constant factor, or values shifted and scaled as by a normalisation."""
    hints = []
    for pair in bad[:1]:
        a, b = pair.a.tensor.stats, pair.b.tensor.stats
        if a is None or b is None or pair.apart.fault or not b.high > b.low or not a.high > a.low:
            continue
        slope = (b.high - b.low) / (a.high - a.low)
        offset = b.high - slope * a.high
        size = pair.a.tensor.size
        affine = abs(b.total / size - (slope * a.total / size + offset)) < 1e-3 * (b.high - b.low)
        if affine and (abs(slope - 1) > 0.01 or abs(offset) > 0.01 * (a.high - a.low)):
            hints.append(note("inputs-affine", where=pair.where, slope=slope, offset=offset))
    return hints


def _coverage(pairs: Pairs) -> Coverage:
    return Coverage("tensors", sum(pair.apart.fault not in ("vacuous", "unmeasured") for pair in pairs.pairs),
                    pairs.total, len(pairs.baseline_only), len(pairs.candidate_only))
