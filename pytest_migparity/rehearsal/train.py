"""Flow-matching training: AdamW, warm-up and cosine, clipping, gradient accumulation."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.rehearsal.dataset import ACTION_SCALE, ACTION_SIZE, CORRUPTED_ROW, rows_of_steps, samples
from pytest_migparity.rehearsal.features import as_seen, features
from pytest_migparity.rehearsal.policy import (
    Activations,
    backward,
    forward,
    initial_weights,
    network_input,
    weight_mask,
)
from pytest_migparity.rehearsal.precision import Singles, rounding
from pytest_migparity.rehearsal.recipe import Recipe
from pytest_migparity.rehearsal.variant import OFFICIAL, Variant

if TYPE_CHECKING:
    from pytest_migparity.rehearsal.watch import Watch

Passed = Callable[[int, list[Activations], Singles], None]
NOISE_STREAM = 12
FEATURE_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One line of the loss log. `step` counts from 0; `loss` is taken before the step's update."""

    step: int
    loss: float
    grad_norm: float
    lr: float


@dataclass(frozen=True, slots=True)
class Trained:
    """Final weights, and the log of every step."""

    weights: Singles
    log: tuple[StepRecord, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """features (n, 44), target chunks, noise (n, 48) and flow time (n,) of one step."""

    seen: Singles
    target: Singles
    noise: Singles
    time: Singles


@dataclass(slots=True)
class _Optimizer:
    """AdamW's state: first and second moment, and how many updates were made."""

    first: Singles
    second: Singles
    updates: int = 0


def train(recipe: Recipe, variant: Variant = OFFICIAL, *, steps: int | None = None,
          watch: "Watch | None" = None) -> Trained:
    """Run the first `steps` steps (default: the recipe's) of the schedule; `watch` sees the steps it wants."""
    weights = initial_weights(recipe.seed, variant)
    mask = weight_mask()
    state = _Optimizer(np.zeros_like(weights), np.zeros_like(weights))
    scale = variant.loss_scale
    scaled = variant.loss_scale != 1.0
    log = []
    for step, batch in enumerate(batches(recipe, variant, recipe.steps if steps is None else steps)):
        seen = watch if watch is not None and watch.wants(step) else None
        if seen:
            seen.given(batch.seen, batch.noise, batch.time, batch.target)
        with np.errstate(over="ignore" if scaled else "warn", invalid="ignore" if scaled else "warn"):
            passed = partial(seen.passed, step) if seen else None
            loss, gradient = _step_gradient(weights, batch, recipe, variant, scale, passed)
        norm = math.sqrt(float((gradient.astype(np.float64) ** 2).sum()))
        rate = learning_rate(recipe, step)
        log.append(StepRecord(step, loss, norm, rate))
        if seen:
            seen.gradient("grad", gradient)
            seen.before_update(weights)
        factor, used = 1.0, scale
        skipped = scaled and not math.isfinite(norm)
        if skipped:
            scale /= 2  # overflow: skip the update, as loss scalers do
        elif variant.train:
            if variant.clip and norm > recipe.clip_norm:
                factor = recipe.clip_norm / norm
                gradient *= np.float32(factor)
            _update(weights, gradient, rate, state, mask, recipe, variant)
        if seen:
            seen.after_update(step, weights, state.first, state.second)
            seen.facts(loss, norm, factor, rate, weights, used, skipped=skipped)
    return Trained(weights, tuple(log))


def learning_rate(recipe: Recipe, step: int) -> float:
    """Linear warm-up times a cosine over the whole schedule."""
    warm = min(1.0, (step + 1) / recipe.warmup_steps)
    return recipe.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * step / recipe.schedule_steps))


def batches(recipe: Recipe, variant: Variant, steps: int) -> Iterator[Batch]:
    """The batch of every step. Noise and flow time depend on (seed, step) alone; features only of rows in use."""
    data = samples()
    rows = rows_of_steps(recipe, variant, steps, len(data.actions))
    used, place = np.unique(rows, return_inverse=True)
    place = place.reshape(rows.shape)
    joints, goal, actions = data.joints[used], data.goal[used], data.actions[used]
    if variant.corrupted_step is not None and variant.corrupted_step < steps:
        actions[place[variant.corrupted_step, CORRUPTED_ROW]] = ACTION_SCALE  # every joint at full speed
    seen = as_seen(all_features(joints, goal), joints, goal, variant)
    for step in range(steps):
        random = np.random.default_rng([recipe.seed, NOISE_STREAM, step])
        noise = random.standard_normal((recipe.batch_size, ACTION_SIZE), dtype=np.float32)
        time = random.random(recipe.batch_size, dtype=np.float32)
        target = actions[place[step]]
        if step == recipe.hard_step:
            target = target * np.float32(recipe.hard_scale)
        yield Batch(seen[place[step]], target, noise, time)


def all_features(joints: NDArray[np.float64], goal: NDArray[np.float64]) -> Singles:
    """Features of many rows, in blocks to bound memory."""
    starts = range(0, len(joints), FEATURE_ROWS_AT_ONCE)
    return np.concatenate(
        [features(joints[at : at + FEATURE_ROWS_AT_ONCE], goal[at : at + FEATURE_ROWS_AT_ONCE]) for at in starts]
    )


def _step_gradient(
    weights: Singles, batch: Batch, recipe: Recipe, variant: Variant, scale: float, passed: Passed | None = None
) -> tuple[float, Singles]:
    """Loss and gradient of one step, accumulated over micro-batches of equal size; `passed` sees their activations."""
    parts = recipe.grad_accumulation
    size = recipe.batch_size // parts
    loss = 0.0
    gradient = np.zeros_like(weights)
    for part in range(parts):
        cut = slice(part * size, (part + 1) * size)
        seen = partial(passed, part) if passed else None
        micro_loss, micro_gradient = flow_loss(weights, _cut(batch, cut), variant, scale, seen)
        loss += micro_loss / parts
        gradient += micro_gradient
    if variant.average_micro_batches:
        gradient *= np.float32(1 / parts)
    return loss, gradient


def flow_loss(
    weights: Singles, batch: Batch, variant: Variant = OFFICIAL, scale: float = 1.0,
    passed: "Callable[[list[Activations], Singles], None] | None" = None,
) -> tuple[float, Singles]:
    """Mean squared error of the predicted velocity from noise to target, and its gradient (PARAMETERS,)."""
    t = batch.time[:, None]
    between = (1 - t) * batch.noise + t * batch.target
    output, kept = forward(weights, network_input(between, batch.seen, batch.time), variant)
    if passed:
        passed(kept, output)
    error = output - (batch.target - batch.noise)
    count = len(error) * (variant.loss_columns or ACTION_SIZE)
    loss = float((error * error).sum(dtype=np.float64) / count)
    gradient = backward(weights, error * np.float32(2.0 * scale / count), kept, variant)
    return loss, gradient if scale == 1.0 else gradient * np.float32(1 / scale)


def _cut(batch: Batch, rows: slice) -> Batch:
    return Batch(batch.seen[rows], batch.target[rows], batch.noise[rows], batch.time[rows])


def _update(
    weights: Singles, gradient: Singles, rate: float, state: _Optimizer, mask: Singles, recipe: Recipe, variant: Variant
) -> None:
    """One AdamW update in place. The variant may put decay or eps where they do not belong."""
    if variant.coupled_weight_decay:
        gradient = gradient + np.float32(recipe.weight_decay) * weights * mask
    state.updates += 1
    state.first *= np.float32(recipe.beta_1)
    state.first += np.float32(1 - recipe.beta_1) * gradient
    state.second *= np.float32(recipe.beta_2)
    state.second += np.float32(1 - recipe.beta_2) * (gradient * gradient)
    mean = state.first / np.float32(1 - recipe.beta_1**state.updates)
    variance = state.second / np.float32(1 - recipe.beta_2**state.updates)
    eps = np.float32(recipe.eps)
    root = np.sqrt(variance + eps) if variant.eps_inside_root else np.sqrt(variance) + eps
    if not variant.coupled_weight_decay:
        weights *= 1 - np.float32(rate * recipe.weight_decay) * mask
    weights -= np.float32(rate) * mean / root
    if (master := rounding(variant.master_weights)) is not None:
        weights[...] = master(weights)
