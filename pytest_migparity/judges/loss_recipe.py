"""Do the logs themselves fit the recipe, and one another? What a log says beside its loss, where no receipt does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_migparity.core.evidence import Policy, Trajectory
from pytest_migparity.core.verdict import Note, note

from .traj_align import series_of

if TYPE_CHECKING:
    from .traj_align import Series

COUNTERS = ("samples", "tokens")
LR_ROUNDING = 1e-3


def recipe_notes(tables: tuple[Trajectory, Trajectory], policy: Policy) -> list[Note]:
    """Why the logs may not be those of the recipe, or of one run each; with any of them nothing passes.

    Samples (or tokens) per step must be one number throughout a log, or change alike on both sides (a ramp of the batch
    size, sequences of unequal length): where it changes on one, rows of another run were glued in, or the batch
    changed. Both sides must have the same one, and the recipe's `global_batch_size` where it is given. No learning rate
    is above the recipe's `lr`.
    """
    found: list[Note] = []
    per_step: list[float] = []
    alike = _same_counter(tables)
    for side, table in zip(("baseline", "candidate"), tables, strict=True):
        name = next((each for each in COUNTERS if each in table.columns), None)
        counter = series_of(table, name) if name else None
        if name and counter is not None and counter.step.size > 2 and np.isfinite(counter.loss).all():
            steady, change = _per_step(counter)
            if change is not None and alike:
                continue
            if change is not None:
                found.append(note("loss-counter-jumps", side=side, column=name, step=change))
            elif name == "samples":
                per_step.append(steady)
                batch = policy.recipe.get("global_batch_size")
                if batch is not None and steady != batch:
                    found.append(note("loss-recipe-batch", side=side, found=steady, expected=batch))
        found += _rate(side, table, policy)
    if len(per_step) == 2 and per_step[0] != per_step[1]:
        found.append(note("loss-batches-differ", baseline=per_step[0], candidate=per_step[1]))
    return found


def _same_counter(tables: tuple[Trajectory, Trajectory]) -> bool:
    """Do both logs count the same samples, or tokens, at every common step?"""
    for name in COUNTERS:
        a, b = series_of(tables[0], name), series_of(tables[1], name)
        if a is not None and b is not None:
            _, i, j = np.intersect1d(a.step, b.step, assume_unique=True, return_indices=True)
            return bool(i.size > 2 and np.array_equal(a.loss[i], b.loss[j]))
    return False


def _per_step(counter: Series) -> tuple[float, int | None]:
    """(growth per step at the start, first step at which it is another)."""
    growth = np.diff(counter.loss) / np.diff(counter.step)
    usual = float(growth[0])
    coarse = counter.quantum[1:] + counter.quantum[:-1]
    other = np.flatnonzero(np.abs(growth - usual) * np.diff(counter.step) > coarse)
    return usual, int(counter.step[other[0] + 1]) if other.size else None


def _rate(side: str, table: Trajectory, policy: Policy) -> list[Note]:
    peak = policy.recipe.get("lr", policy.recipe.get("learning_rate"))
    rate = series_of(table, "lr")
    if peak is None or rate is None or not rate.step.size:
        return []
    above = np.flatnonzero(rate.loss - rate.quantum / 2 > peak * (1 + LR_ROUNDING))
    if not above.size:
        return []
    i = int(above[0])
    return [note("loss-recipe-lr", side=side, step=int(rate.step[i]), found=float(rate.loss[i]), expected=peak)]
