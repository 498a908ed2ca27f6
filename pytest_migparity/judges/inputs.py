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

from .recorded import LISTED, Pair, Pairs, Run, comparable, held, incomparable, listed, meta, one_sided, pairs_of

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
    and differs was changed on the way (`noise`, FAIL). The same elements in another order FAIL whatever their distance.
    INCONCLUSIVE too: nothing recorded, tensors on one side only, ranks missing, non-finite numbers on both sides.
    Raises nothing on bad data.
    """
    ours, theirs = baseline.runs[0].table, candidate.runs[0].table
    pairs = pairs_of(ours, theirs, STAGES, policy.skipped)
    unsure = [*baseline.problems, *candidate.problems, *comparable(baseline, candidate, policy.world_size),
              *one_sided(pairs)]
    groups = {group: [pair for pair in pairs.pairs if group_of(pair, policy) is group] for group in Group}
    redrawn = [pair for pair in groups[Group.NOISE] if is_another_draw(pair)]
    checks, wrong = _checks(groups, limits, floors)
    marked = {id(pair) for pair in wrong}
    bad = [pair for pair in pairs.pairs if id(pair) in marked]
    unsure += _unsure(pairs, [pair for pair in groups[Group.PIXELS] if id(pair) not in marked])
    if redrawn:
        unsure.append(_stream_note(redrawn, ours, theirs))
    outcome = Outcome.INCONCLUSIVE if incomparable(unsure) else settle(checks, failed=bool(bad), unsure=bool(unsure))
    notes = [*unsure, *(_differs(pair, policy) for pair in bad[:LISTED])]
    first = next(iter([*bad, *redrawn]), None)
    return Finding(outcome, checks, _coverage(pairs),
                   first_divergence=None if first is None else first.divergence(), notes=tuple(notes),
                   hints=tuple(_hints(bad)), mode=policy.mode)


def group_of(pair: Pair, policy: Policy) -> Group:
    """Noise by its stage or a declared pattern, pixels by a declared pattern or as images, ids by integer type."""
    name = pair.a.name
    if pair.a.stage == "draw" or any(fnmatchcase(name, pattern) for pattern in policy.noise_names):
        return Group.NOISE
    if _is_image(pair) or any(fnmatchcase(name, pattern) for pattern in policy.pixel_names):
        return Group.PIXELS
    return group_by_type(pair)


def group_by_type(pair: Pair) -> Group:
    """Ids or features."""
    return Group.IDS if pair.a.tensor.dtype.startswith(("int", "uint", "bool")) else Group.FEATURES


def _is_image(pair: Pair) -> bool:
    """Bytes in three dimensions or more, and not only 0 and 1: a mask is none, nor is a text of bytes."""
    tensor = pair.a.tensor
    return tensor.dtype == "uint8" and len(tensor.shape) > 2 and tensor.stats is not None and tensor.stats.high > 1


def is_another_draw(pair: Pair) -> bool:
    """Do two random tensors look like two draws of one distribution: same shape, norm and spread, cosine near 0?

    Numbers in another order are no other draw, unless they are integers: those may be a shuffle's. Of a single number,
    however often it is repeated, nobody can say how it came about.
    """
    a, b = pair.a.tensor.stats, pair.b.tensor.stats
    if a is None or b is None or pair.apart.equal or pair.apart.fault not in ("", "permuted"):
        return False
    if pair.apart.fault:
        return group_by_type(pair) is Group.IDS
    size = pair.a.tensor.size
    if a.low == a.high and b.low == b.high:
        return True
    spread = 6 / math.sqrt(max(size, 1))  # of a mean square over `size` draws with a kurtosis up to 18
    means = (a.total / size, b.total / size)
    deviations = [math.sqrt(max(stats.l2**2 / size - mean**2, 0.0)) for stats, mean in zip((a, b), means, strict=True)]
    far = abs(means[0] - means[1]) > spread * max(deviations)
    same = abs(math.log(pair.apart.norm_ratio)) < spread and not far
    # a flow time is positive: what is orthogonal is the part beside the mean
    correlation = (pair.apart.cosine * a.l2 * b.l2 / size - means[0] * means[1]) / max(deviations[0] * deviations[1],
                                                                                       1e-300)
    return same and abs(correlation) < max(spread, 0.6)


def _checks(groups: dict[Group, list[Pair]], limits: Limits, floors: Floors) -> tuple[tuple[Check, ...], list[Pair]]:
    """The checks of the groups that were recorded, and the pairs that break one."""
    level = LEVELS["L2"]
    wrong: list[Pair] = []
    checks = []
    for group, pairs in groups.items():
        if not pairs:
            continue
        spec = level.check(group.value)
        if group in (Group.IDS, Group.NOISE):
            bad = [pair for pair in pairs if not (pair.apart.equal or (group is Group.NOISE and is_another_draw(pair)))]
            checks.append(Check(spec.name, float(len(bad)), limit_for(spec, limits, floors), spec.unit))
        else:
            rows = [(pair, pair.apart.relative, pair.apart.floor) for pair in pairs if pair.apart.fault != "unmeasured"]
            blocked = "" if len(rows) == len(pairs) else "inputs-unmeasured"
            check, bad = held(spec, rows, limits, floors, blocked=blocked)
            checks.append(check)
            bad += [pair for pair in pairs if pair.apart.fault == "permuted"]
        wrong += bad
    return tuple(checks), wrong


def _unsure(pairs: Pairs, pixels: Sequence[Pair]) -> list[Note]:
    found = []
    if not pairs.pairs:
        found.append(note("inputs-nothing"))
    elif all(pair.apart.fault == "vacuous" for pair in pairs.pairs):
        found.append(note("inputs-vacuous"))
    broken = [pair.where for pair in pairs.pairs if pair.apart.broken]
    if broken:
        found.append(note("record-broken-alike", names=listed(broken)))
    doubtful = [pair for pair in pixels if _DOUBTFUL_PIXELS < pair.apart.relative < math.inf]
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
