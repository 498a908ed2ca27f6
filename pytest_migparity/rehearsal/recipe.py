"""The recipe of a run: what both sides of a pair must have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_migparity.core.errors import UserError

SCHEDULE_STEPS = 2600
"""Length of the full training; a recorded run is its first `steps` steps, with the same learning rates."""

BATCH_SIZE = 512


@dataclass(frozen=True, slots=True)
class Recipe:
    """Seed, length, batches and optimizer. Constants from facts/rehearsal.md, where they reached 85 % success."""

    seed: int = 0
    steps: int = 100
    grad_accumulation: int = 2
    batch_size: int = BATCH_SIZE
    """Global batch: all micro-batches of a step together."""
    schedule_steps: int = SCHEDULE_STEPS
    learning_rate: float = 4e-3
    warmup_steps: int = 100
    weight_decay: float = 0.01
    beta_1: float = 0.9
    beta_2: float = 0.98
    eps: float = 1e-8
    clip_norm: float = 1.0
    hard_step: int = 12
    """At this step targets are scaled up, so that the gradient norm exceeds `clip_norm`: without such an input, not
    clipping leaves the first steps bit-identical."""
    hard_scale: float = 4.0


STANDARD = Recipe()


def recipe_from(table: Mapping[str, Any]) -> Recipe:
    """The rehearsal's reading of a manifest's [recipe]: seed, steps, grad_accumulation. Other keys are the model's own.

    Raises UserError naming the key where a value cannot be run.
    """
    seed = _whole(table, "seed", STANDARD.seed, least=0, most=2**32 - 1)
    steps = _whole(table, "steps", STANDARD.steps, least=1, most=SCHEDULE_STEPS)
    parts = _whole(table, "grad_accumulation", 1, least=1, most=BATCH_SIZE)
    if BATCH_SIZE % parts:
        raise UserError(f"recipe.grad_accumulation = {parts}: expected a divisor of the batch of {BATCH_SIZE}")
    return Recipe(seed=seed, steps=steps, grad_accumulation=parts)


def _whole(table: Mapping[str, Any], key: str, default: int, *, least: int, most: int) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UserError(f"recipe.{key} = {value!r}: expected a whole number from {least} to {most}")
    return value
