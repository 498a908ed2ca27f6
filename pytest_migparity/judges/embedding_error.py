"""Embeddings: how far each vector moved, and whether the same vectors are still each other's neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pytest_migparity.core.outputs import ActionRules, OutputSet
from pytest_migparity.core.verdict import Note, note

from .output_parts import Measured, Part, chosen, figures_of, finite_rows

Floats = NDArray[np.float64]

COLLAPSED = 1e-6
"""A vector of a smaller norm has no direction; agreement of such vectors proves nothing."""
NEIGHBOURS = 10
_RANK = 1e-3  # a singular value below this part of the first carries nothing
_MOST = 2048  # vectors whose neighbours are looked at


def embedding_error(ours: OutputSet, theirs: OutputSet, rules: ActionRules, close: float) -> Measured:
    """Errors of embeddings [sample, feature], in units of the baseline's root mean square distance from its mean.

    `neighbours` is the precision at k: the mean share of a vector's k nearest (by cosine) that are the same on both
    sides. Vectors near 0, or all along one line, are a collapse: on both sides nothing is proved.
    """
    broken, unsure, whole = finite_rows(ours.values, theirs.values, ours.sample)
    a, b = ours.values[whole], theirs.values[whole]
    if len(a) < 3:
        return Measured((), (), unsure=(*unsure, note("action-nothing")), broken=tuple(broken))
    unsure += [note("action-collapsed", side=side) for side, values in (("baseline", a), ("candidate", b))
               if collapsed(values)]
    scale = float(np.sqrt(((a - a.mean(0)) ** 2).sum(1).mean()))
    error = np.linalg.norm(b - a, axis=1)
    figures = figures_of(a, b)
    notes: list[Note] = [note("action-subset", count=_MOST)] if len(a) > _MOST else []
    near = [similarities(values[:_MOST]) for values in (a, b)]
    pairs = np.triu_indices(len(near[0]), 1)
    figures["spearman"] = float(stats.spearmanr(near[0][pairs], near[1][pairs]).statistic) \
        if not any(np.ptp(each[pairs]) == 0 for each in near) else float("nan")
    first, second = (np.argsort(-each, axis=1, kind="stable")[:, :-1] for each in near)
    figures |= {"top1": precision(first, second, 1), "top5": precision(first, second, 5)}
    if ours.label:
        label = np.array(chosen(ours.label, whole)[:_MOST])
        figures |= {f"same_label_{side}": float((label[places[:, 0]] == label).mean())
                    for side, places in (("baseline", first), ("candidate", second))}
    graded = {"neighbours": precision(first, second, NEIGHBOURS)}
    return Measured((Part("embedding", error[:, None], scale),), chosen(ours.sample, whole), graded, figures,
                    tuple(unsure), tuple(broken), tuple(notes))


def collapsed(values: Floats) -> bool:
    """Has a vector no length to speak of, or do all lie on one line through their mean?"""
    if bool((np.linalg.norm(values, axis=1) < COLLAPSED).any()):
        return True
    singular = np.linalg.svd(values - values.mean(0), compute_uv=False)
    return bool((singular > _RANK * singular[0]).sum() < 2)


def similarities(values: Floats) -> Floats:
    """Cosines of every two vectors; a vector is nobody's neighbour of its own (-inf on the diagonal)."""
    unit = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), COLLAPSED)
    near: Floats = unit @ unit.T
    np.fill_diagonal(near, -np.inf)
    return near


def precision(ours: NDArray[np.int64], theirs: NDArray[np.int64], k: int) -> float:
    """The mean share of the k first in `ours` (sample, neighbours) that are among the k first in `theirs`."""
    k = max(1, min(k, ours.shape[1] // 2))  # of all the others, every list shares all
    return float(np.mean([len(np.intersect1d(a[:k], b[:k])) / k for a, b in zip(ours, theirs, strict=True)]))
