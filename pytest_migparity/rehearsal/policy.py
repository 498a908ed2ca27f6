"""The policy network: a GELU perceptron that gives the flow velocity of an action chunk, and its gradient by hand.

Input row: noisy chunk (48), features (44), flow time (8). Output row: velocity of the chunk (48). Weights are one
flat float32 vector, so that the optimizer is a handful of array operations.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.rehearsal.dataset import ACTION_SIZE
from pytest_migparity.rehearsal.features import FEATURES
from pytest_migparity.rehearsal.precision import Rounding, Singles, rounding, to_int8
from pytest_migparity.rehearsal.variant import OFFICIAL, Variant

TIME_FREQUENCIES = (1, 2, 4, 8)
TIME_SIZE = 2 * len(TIME_FREQUENCIES)
INPUT_SIZE = ACTION_SIZE + FEATURES + TIME_SIZE
SIZES = (INPUT_SIZE, 256, 256, 256, ACTION_SIZE)
LAYERS = len(SIZES) - 1
PARAMETERS = sum(a * b + b for a, b in pairwise(SIZES))
WEIGHTS_STREAM = 1

GELU_SLOPE = np.float32(0.7978845608)  # sqrt(2 / pi)
GELU_CUBIC = np.float32(0.044715)
HALF, ONE, THREE = np.float32(0.5), np.float32(1), np.float32(3)


@dataclass(frozen=True, slots=True)
class Layer:
    """weight (inputs, outputs) and bias (outputs,): views into a flat vector."""

    weight: Singles
    bias: Singles


@dataclass(frozen=True, slots=True)
class Activations:
    """What the backward pass needs of one layer: its input, and of hidden layers pre-activation and tanh."""

    source: Singles
    before: Singles
    tanh: Singles | None


def layers(flat: Singles) -> list[Layer]:
    """Views of a flat vector (PARAMETERS,) as weights and biases, first layer first."""
    views, at = [], 0
    for rows, columns in pairwise(SIZES):
        weight = flat[at : at + rows * columns].reshape(rows, columns)
        at += rows * columns
        views.append(Layer(weight, flat[at : at + columns]))
        at += columns
    return views


def weight_mask() -> Singles:
    """1 for entries of weight matrices, 0 for biases, which do not decay: (PARAMETERS,)."""
    mask = np.zeros(PARAMETERS, np.float32)
    for layer in layers(mask):
        layer.weight[...] = 1
    return mask


def initial_weights(seed: int, variant: Variant = OFFICIAL) -> Singles:
    """Random weights (PARAMETERS,) as the variant would load them; biases zero, the last layer small."""
    random = np.random.default_rng([seed + variant.initial_seed, WEIGHTS_STREAM])
    flat = np.zeros(PARAMETERS, np.float32)
    for k, layer in enumerate(layers(flat)):
        gain = (1.6 if k else 1.0) * (0.1 if k == LAYERS - 1 else 1.0)
        layer.weight[...] = random.normal(size=layer.weight.shape) * np.sqrt(gain / len(layer.weight))
        if k == variant.scaled_layer:
            layer.weight[...] *= np.float32(variant.layer_scale)
        if k == variant.permuted_layer:
            layer.weight[...] = np.roll(layer.weight, 1, axis=1)
    if (master := rounding(variant.master_weights)) is not None:
        flat[...] = master(flat)
    return flat


def time_features(t: Singles) -> Singles:
    """Sines and cosines of flow times (n,): (n, TIME_SIZE)."""
    angle = t[:, None] * (np.array(TIME_FREQUENCIES, np.float32) * np.float32(np.pi))
    return np.concatenate([np.sin(angle), np.cos(angle)], 1)


def network_input(chunk: Singles, seen: Singles, t: Singles) -> Singles:
    """Rows for `forward` from chunk (n, 48), features (n, 44) and flow time (n,)."""
    return np.concatenate([chunk, seen, time_features(t)], 1)


def forward(flat: Singles, x: Singles, variant: Variant = OFFICIAL) -> tuple[Singles, list[Activations]]:
    """Velocity (n, 48) for input rows x (n, INPUT_SIZE), and what `backward` needs."""
    round_to = rounding(variant.matmul)
    kept = []
    for k, layer in enumerate(layers(flat)):
        before = _product(x, _effective(layer.weight, variant), round_to) + layer.bias
        if k == LAYERS - 1:
            kept.append(Activations(x, before, None))
            x = np.zeros_like(before) if variant.zero_output else before
        elif variant.activation == "relu":
            kept.append(Activations(x, before, None))
            x = np.maximum(before, 0)
        else:
            tanh: Singles = np.tanh(before * GELU_SLOPE * (before * before * GELU_CUBIC + ONE))
            kept.append(Activations(x, before, tanh))
            x = before * HALF * (tanh + ONE)
    return x, kept


def backward(flat: Singles, slope: Singles, kept: list[Activations], variant: Variant = OFFICIAL) -> Singles:
    """Gradient (PARAMETERS,) of a loss whose slope by the output is `slope` (n, 48)."""
    round_to = rounding(variant.matmul)
    gradient = np.zeros_like(flat)
    if variant.zero_output:
        return gradient
    weights = layers(flat)
    for k, out in reversed(list(enumerate(layers(gradient)))):
        if k < LAYERS - 1:
            slope = slope * _activation_slope(kept[k])
        out.weight[...] = _product(kept[k].source.T, slope, round_to)
        if variant.bias_gradient:
            out.bias[...] = slope.sum(0)
        if k:
            slope = _product(slope, _effective(weights[k].weight, variant).T, round_to)
    return gradient


def _activation_slope(kept: Activations) -> Singles:
    """Derivative of GELU (tanh form) or, where no tanh was kept, of ReLU."""
    z, tanh = kept.before, kept.tanh
    if tanh is None:
        return (z > 0).astype(np.float32)
    inner = (z * z * (THREE * GELU_CUBIC) + ONE) * GELU_SLOPE
    slope: Singles = (tanh + ONE) * HALF + z * HALF * (ONE - tanh * tanh) * inner
    return slope


def _effective(weight: Singles, variant: Variant) -> Singles:
    return to_int8(weight) if variant.int8_weights else weight


def _product(a: Singles, b: Singles, round_to: Rounding | None) -> Singles:
    if round_to is None:
        product: NDArray[np.float32] = a @ b
        return product
    return round_to(round_to(a) @ round_to(b))
