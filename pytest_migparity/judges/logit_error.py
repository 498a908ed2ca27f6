"""Logits and decoded tokens: errors of logits, first choices, and those that turned beyond a near tie."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.core.outputs import ActionRules, OutputSet
from pytest_migparity.core.verdict import Note, note

from .output_parts import Measured, Part, chosen, figures_of, finite_rows

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def logit_error(ours: OutputSet, theirs: OutputSet, rules: ActionRules, close: float) -> Measured:
    """Errors of logits [sample, position, class], up to where the texts decoded from them part.

    What a softmax does not see, a shift of all classes, is taken out. The scale is the standard deviation over classes.
    `flips` is the share of positions whose first choice is another one although the baseline's margin is more than
    twice the `close` limit: an error within that limit cannot explain it. A class that is -inf on both sides is masked.
    """
    a, b = ours.values, theirs.values
    masked = np.isneginf(a) & np.isneginf(b)
    broken, unsure, whole = finite_rows(np.where(masked, 0, a), np.where(masked, 0, b), ours.sample)
    compared, parting = _same_context(ours, theirs)
    compared &= whole[:, None]
    if bool(ours.tokens is None) != bool(theirs.tokens is None):
        unsure.append(note("action-tokens-one-sided"))
    if not compared.any() or a.shape[-1] < 2:
        unsure.append(note("action-nothing"))
        return Measured((), (), unsure=tuple(unsure), broken=tuple(broken))
    kept = ~masked[compared]
    x, y = _centred(a[compared], kept), _centred(b[compared], kept)
    scale = float(np.sqrt((x**2).sum() / kept.sum()))
    if scale == 0:
        unsure.append(note("action-collapsed", side="baseline"))
    error = np.full(a.shape, np.nan)
    error[compared] = np.where(kept, np.abs(y - x), np.nan)
    figures = figures_of(x, y)
    x, y = np.where(kept, x, -np.inf), np.where(kept, y, -np.inf)
    margin, turned, divergence = _margin(x), x.argmax(1) != y.argmax(1), _kl(x, y)
    unexplained = turned & (margin > 2 * close * scale)
    figures |= {"top1": float(1 - turned.mean()), "top5": _shared(x, y, min(5, x.shape[1])),
                "kl_max": float(divergence.max())}
    notes = _near_ties(ours, compared, turned, margin, scale) + parting
    graded = {"flips": float(unexplained.mean()), "kl": float(divergence.mean())}
    return Measured((Part("logits", error[whole], scale),), chosen(ours.sample, whole), graded, figures,
                    tuple(unsure), tuple(broken), tuple(notes))


def token_error(ours: OutputSet, theirs: OutputSet, rules: ActionRules, close: float) -> Measured:
    """Decoded tokens alone [sample, position]: `flips`, the share of samples whose text parts.

    A text that parts is open, not failed: without logits nobody can tell a near tie from a fault.
    """
    broken, unsure, whole = finite_rows(ours.values, theirs.values, ours.sample)
    a, b = ours.values[whole], theirs.values[whole]
    if not a.size:
        return Measured((), (), unsure=(*unsure, note("action-nothing")), broken=tuple(broken))
    seen, parted = chosen(ours.sample, whole), (a != b).any(1)
    figures = figures_of(a, b) | {"top1": float((a == b).mean())}
    notes = []
    if parted.any():
        row = int(np.flatnonzero(parted)[0])
        notes.append(note("action-text-parts", count=int(parted.sum()), of=len(a),
                          name=seen[row],
                          position=int(np.flatnonzero(a[row] != b[row])[0])))
    return Measured((), seen, {"flips": float(parted.mean())}, figures, tuple(unsure), tuple(broken), tuple(notes),
                    beyond={"flips": "action-no-logits"})


def _same_context(ours: OutputSet, theirs: OutputSet) -> tuple[Bools, list[Note]]:
    """Positions whose context is the same on both sides: all, or where texts were decoded up to where these part."""
    compared = np.ones(ours.values.shape[:2], bool)
    if ours.tokens is None or theirs.tokens is None:
        return compared, []
    other = ours.tokens != theirs.tokens
    compared = np.cumsum(other, 1) - other == 0
    parted = int(other.any(1).sum())
    return compared, [note("action-texts-part", count=parted, positions=int((~compared).sum()))] if parted else []


def _centred(logits: Floats, kept: Bools) -> Floats:
    """Logits without their mean over the classes that are not masked; 0 where masked."""
    safe = np.where(kept, logits, 0)
    centred: Floats = np.where(kept, safe - safe.sum(1, keepdims=True) / np.maximum(kept.sum(1, keepdims=True), 1), 0)
    return centred


def _margin(x: Floats) -> Floats:
    """How far the first choice is ahead of the second, position by position."""
    two = np.partition(x, -2, axis=1)[:, -2:]
    margin: Floats = two[:, 1] - two[:, 0]
    return margin


def _kl(x: Floats, y: Floats) -> Floats:
    """Kullback-Leibler divergence in nats of the candidate's distribution from the baseline's, position by position."""
    logs = [side - np.logaddexp.reduce(side, axis=1, keepdims=True) for side in (x, y)]
    seen = np.isfinite(logs[0])
    gap = np.where(seen, logs[0], 0) - np.where(seen, logs[1], 0)
    total: Floats = np.maximum((np.exp(logs[0]) * gap).sum(1), 0)
    return total


def _shared(x: Floats, y: Floats, first: int) -> float:
    """The mean share of the baseline's `first` choices that are among the candidate's."""
    a, b = (np.argsort(-side, axis=1, kind="stable")[:, :first] for side in (x, y))
    return float((a[:, :, None] == b[:, None, :]).any(2).mean())


def _near_ties(ours: OutputSet, compared: Bools, turned: Bools, margin: Floats, scale: float) -> list[Note]:
    if not turned.any():
        return []
    rows, positions = np.nonzero(compared)
    k = int(np.flatnonzero(turned)[margin[turned].argmax()])
    return [note("action-choices", count=int(turned.sum()), of=len(turned), name=ours.sample[rows[k]],
                 position=int(positions[k]), margin=float(margin[k]), scaled=float(margin[k] / (scale or 1)))]
