"""Boxes and masks: one minus the intersection over union, so that .05 and .5 mean what they mean for detectors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pytest_migparity.core.outputs import ActionRules, OutputSet
from pytest_migparity.core.verdict import Note, note

from .output_parts import Measured, Part, chosen, figures_of, finite_rows

Floats = NDArray[np.float64]


def box_error(ours: OutputSet, theirs: OutputSet, rules: ActionRules, close: float) -> Measured:
    """Boxes [sample, box, 4] as x1, y1, x2, y2; a row of NaN is no box. A box that one side alone has counts as 1.

    Boxes of a sample are matched so that the overlap is largest (Hungarian method); their order does not matter.
    """
    rows = [_sample_boxes(x, y) for x, y in zip(ours.values, theirs.values, strict=True)]
    broken = [note("action-broken", count=1, side=side, names=name)
              for name, x, y in zip(ours.sample, ours.values, theirs.values, strict=True)
              for side, boxes in (("baseline", x), ("candidate", y)) if _torn(boxes)][:1]
    most = max((len(row) for row in rows), default=0)
    error = np.full((len(rows), max(most, 1)), np.nan)
    for k, row in enumerate(rows):
        error[k, :len(row)] = 1 - row
    return _regions("boxes", error, ours, theirs, tuple(broken))


def mask_error(ours: OutputSet, theirs: OutputSet, rules: ActionRules, close: float) -> Measured:
    """Masks [sample, height, width], set where above one half. Empty on both sides says nothing."""
    broken, unsure, whole = finite_rows(ours.values, theirs.values, ours.sample)
    a, b = ((side.values > 0.5).reshape(len(side.values), -1) for side in (ours, theirs))
    union = (a | b).sum(1)
    iou = np.where(union > 0, (a & b).sum(1) / np.maximum(union, 1), np.nan)
    error = np.where(whole, 1 - iou, np.nan)[:, None]
    return _regions("masks", error, ours, theirs, tuple(broken), tuple(unsure))


def _regions(name: str, error: Floats, ours: OutputSet, theirs: OutputSet, broken: tuple[Note, ...],
             unsure: tuple[Note, ...] = ()) -> Measured:
    seen = np.isfinite(error).any(1)
    open_ = list(unsure)
    if not seen.any():
        open_.append(note("action-collapsed", side="baseline"))
        return Measured((), (), unsure=tuple(open_), broken=broken)
    a, b = (np.nan_to_num(side.values) for side in (ours, theirs))
    figures = figures_of(a, b) | {"iou_mean": float(1 - np.nanmean(error)), "iou_least": float(1 - np.nanmax(error))}
    return Measured((Part(name, error[seen], 1.0, "1 - IoU"),), chosen(ours.sample, seen), {}, figures,
                    tuple(open_), broken)


def _torn(boxes: Floats) -> bool:
    """A box of which some numbers are missing, or that is infinite."""
    missing = np.isnan(boxes)
    return bool(np.isinf(boxes).any() or (missing.any(1) & ~missing.all(1)).any())


def _sample_boxes(x: Floats, y: Floats) -> Floats:
    """Overlaps of one sample: of each matched pair, and 0 of each box without a partner."""
    a, b = (side[np.isfinite(side).all(1)] for side in (x, y))
    overlap = iou(a, b)
    pairs = linear_sum_assignment(-overlap)
    alone = max(len(a), len(b)) - len(pairs[0])
    return np.concatenate([overlap[pairs], np.zeros(alone)])


def iou(a: Floats, b: Floats) -> Floats:
    """Intersection over union (len(a), len(b)) of boxes; one without an area overlaps nothing."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = np.clip(high - low, 0, math.inf).prod(-1)
    area = [np.clip(side[:, 2:] - side[:, :2], 0, math.inf).prod(-1) for side in (a, b)]
    union = area[0][:, None] + area[1][None, :] - shared
    overlap: Floats = np.where(union > 0, shared / np.where(union > 0, union, 1), 0.0)
    return overlap
