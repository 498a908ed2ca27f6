"""Action chunks: error by dimension, gripper flips, growth over the horizon, rotations, the tip, several candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.core.outputs import ActionRules, OutputSet
from pytest_migparity.core.verdict import Note, note

from .candidates import candidate_figures
from .output_parts import Measured, Part, chosen, figures_of, finite_rows, spread, varies
from .pose_error import InSpace, places, pose_error, tip_error
from .recorded import LISTED, listed

Floats = NDArray[np.float64]

_SAME_SHAPE = 0.999  # squared correlation from which one dimension is a line of the other
_OTHER_SLOPE = 0.02


@dataclass(frozen=True, slots=True)
class _Chunks:
    """Both sides' whole chunks [sample, candidate, horizon, dim] in one order, and what their dimensions are called.

    `plain` are the dimensions that are no part of a rotation.
    """

    a: Floats
    b: Floats
    names: tuple[str, ...]
    units: tuple[str, ...]
    plain: tuple[int, ...]

    def lost(self) -> tuple[list[str], list[str]]:
        """Plain dimensions that are constant on the baseline, and those that are so on the candidate alone."""
        still = [[not varies(side[..., k]) for k in self.plain] for side in (self.a, self.b)]
        return ([self.names[k] for k, one in zip(self.plain, still[0], strict=True) if one],
                [self.names[k] for k, one, two in zip(self.plain, *still, strict=True) if two and not one])


def chunk_error(ours: OutputSet, theirs: OutputSet, rules: ActionRules, close: float) -> Measured:
    """Errors of action chunks [sample, candidate, horizon, dim]; both sides have the same samples in one order.

    Dimensions that the rules declare to be a rotation are one part together, by the angle between the rotations.
    """
    broken, unsure, whole = finite_rows(ours.values, theirs.values, ours.sample)
    if not whole.any():
        return Measured((), (), unsure=tuple(unsure), broken=tuple(broken))
    names = ours.names or tuple(f"dim {k}" for k in range(ours.values.shape[-1]))
    posed = {name for pose in rules.poses for name in pose.dimensions}
    chunks = _Chunks(ours.values[whole], theirs.values[whole], names, ours.units,
                     tuple(k for k, name in enumerate(names) if name not in posed))
    space = _in_space(chunks, rules, [None if side.state is None else side.state[whole] for side in (ours, theirs)])
    parts = (*_dimensions(chunks), *space.parts)
    graded, figures = _in_numbers(space)
    gripper = [name for name in rules.gripper if name in names]
    if gripper:
        at = places(gripper, names)
        graded["flips"] = flips(chunks.a[..., at], chunks.b[..., at], rules.threshold)
    unsure += [note("action-undeclared", what="gripper", name=name) for name in rules.gripper if name not in names]
    moved, notes = _constants(chunks, parts)
    figures = figures_of(chunks.a, chunks.b) | figures | growth(parts) | candidate_figures(chunks.a, chunks.b)
    return Measured(tuple(part for part in parts if part.scale > 0 or part.worst == 0), chosen(ours.sample, whole),
                    graded, figures, (*unsure, *moved, *space.unsure), (*broken, *space.broken), notes,
                    _affine(chunks))


def _dimensions(chunks: _Chunks) -> list[Part]:
    return [Part(chunks.names[k], np.abs(y - x), spread(x), chunks.units[k] if chunks.units else "", x, y)
            for k in chunks.plain for x, y in [(chunks.a[..., k], chunks.b[..., k])]]


def _in_space(chunks: _Chunks, rules: ActionRules, states: Sequence[Floats | None]) -> InSpace:
    found = InSpace()
    for pose in rules.poses:
        found += pose_error(pose, chunks.names, chunks.a, chunks.b)
    if rules.chain is not None:
        found += tip_error(rules.chain, chunks.names, list(zip((chunks.a, chunks.b), states, strict=True)))
    return found


def _in_numbers(space: InSpace) -> tuple[dict[str, float], dict[str, float]]:
    """(`turn` and `reach`, the p99 in rad and m; the largest of each)."""
    graded, figures = {}, {}
    for name, errors in (("turn", space.angles), ("reach", () if space.reach is None else (space.reach,))):
        if errors:
            graded[name] = max(float(np.quantile(each, 0.99, method="inverted_cdf")) for each in errors)
            figures[f"{name}_max"] = max(float(each.max()) for each in errors)
    return graded, figures


def _constants(chunks: _Chunks, parts: Sequence[Part]) -> tuple[list[Note], tuple[Note, ...]]:
    """(what a lack of movement leaves open; what it is worth knowing of it)."""
    constant, flat = chunks.lost()
    open_ = []
    if len(constant) == len(chunks.plain) and not any(part.scale > 0 for part in parts[len(chunks.plain):]):
        open_.append(note("action-collapsed", side="baseline"))
    moved = [part.name for part in parts if part.scale == 0 and part.worst > 0]
    if moved:
        open_.append(note("action-no-scale", names=listed(moved)))
    notes = [note("action-constant", count=len(constant), names=listed(constant))] if constant else []
    if flat:
        notes.append(note("action-flat", names=listed(flat)))
    return open_, tuple(notes)


def flips(a: Floats, b: Floats, threshold: float = 0.0) -> float:
    """The share of gripper commands that one side gives above the threshold and the other not."""
    return float(((a > threshold) != (b > threshold)).mean())


def growth(parts: Sequence[Part]) -> dict[str, float]:
    """The factor by which the error grows per step of the horizon: least squares of its logarithm over the steps."""
    scaled = [(part.error / part.scale) ** 2 for part in parts if part.scale > 0]
    if not scaled or scaled[0].shape[-1] < 3:
        return {}
    size = np.sqrt(np.mean([each.mean((0, 1)) for each in scaled], 0))
    if not (size > 0).all():
        return {}
    return {"growth": float(np.exp(np.polyfit(np.arange(len(size)), np.log(size), 1)[0]))}


def _affine(chunks: _Chunks) -> tuple[Note, ...]:
    """Dimensions of the candidate that are a line of the baseline's: a scale, an offset or a sign that was lost."""
    found = []
    for k in chunks.plain:
        x, y = chunks.a[..., k].ravel(), chunks.b[..., k].ravel()
        if not (varies(x) and varies(y)):
            continue
        shared = float(np.mean((x - x.mean()) * (y - y.mean())))
        slope = shared / float(x.var())
        offset = float(y.mean()) - slope * float(x.mean())
        alike = shared**2 / (float(x.var()) * float(y.var()))
        if alike > _SAME_SHAPE and (abs(slope - 1) > _OTHER_SLOPE or abs(offset) > _OTHER_SLOPE * float(x.std())):
            found.append(note("action-affine", name=chunks.names[k], slope=slope, offset=offset))
    return tuple(found[:LISTED])
