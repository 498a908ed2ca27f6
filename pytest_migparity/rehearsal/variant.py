"""What may be different about one run of the embedded model: every switch the fault catalogue can throw.

A default `Variant` is the official run. No numpy here: the catalogue is listed without loading it.
"""

from dataclasses import dataclass
from typing import Literal

Number = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True)
class Variant:
    """Switches of the training and inference code. Each one is acted on where the fault would really sit."""

    # precision
    matmul: Number = "float32"
    """Every matrix product rounds its operands and its result to this format."""
    loss_scale: float = 1.0
    """Multiplies the loss before the backward pass, divides the gradient after it. A gradient that overflows skips its
    update and halves the scale, as Megatron's scaler does (which starts at 2**32)."""
    int8_weights: bool = False
    master_weights: Number = "float32"

    # gradient
    bias_gradient: bool = True
    loss_columns: int | None = None
    """The loss divides by this many columns; None means by as many as it has summed."""
    clip: bool = True
    average_micro_batches: bool = True

    # optimizer
    eps_inside_root: bool = False
    coupled_weight_decay: bool = False
    train: bool = True

    # data
    order_seed: int = 0
    """Added to the recipe's seed where rows are shuffled."""
    loader_offset: int = 0
    """The loader is ahead by this many batches."""
    corrupted_step: int | None = None
    """One sample of the batch that this step reads holds garbage."""

    # input
    scaled_features: tuple[int, ...] = ()
    feature_scale: float = 1.3
    negated_features: tuple[int, ...] = ()
    stale_joint_limits: bool = False

    # weights, as loaded before the first step
    initial_seed: int = 0
    """Added to the recipe's seed where the initial weights are drawn."""
    scaled_layer: int | None = None
    layer_scale: float = 1.3
    permuted_layer: int | None = None

    # network
    activation: Literal["gelu", "relu"] = "gelu"
    zero_output: bool = False
    euler_steps: int = 10


OFFICIAL = Variant()
