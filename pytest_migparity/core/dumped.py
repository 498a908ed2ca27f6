"""What another tool's dump says of tensors: extremes, mean and norm, and at best a checksum or a distance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

STAGES = ("input", "output", "weight", "grad", "state")
SCALARS = ("int", "float", "bool")
"""The `dtype` of a Python number that an operation was given."""


@dataclass(frozen=True, slots=True)
class DumpedTensor:
    """One tensor, in order of execution. `checksum` is a CRC-32 in hex where the dump has one, else empty.

    Of a scalar (a Python number) the four statistics are its value. A statistic that the dump does not hold is NaN, and
    `measured` tells a tensor without statistics from one of NaN. `quantum` is the size of one unit in the last printed
    place, 0 where all digits are there. `trained`: it is a parameter or was computed from one (requires_grad).
    """

    step: int
    rank: int
    stage: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    low: float
    high: float
    mean: float
    norm: float
    checksum: str = ""
    quantum: float = 0.0
    measured: bool = True
    trained: bool = False


@dataclass(frozen=True, slots=True)
class Dump:
    """One side's dump: its tensors in order, and what kind of dump (`statistics`, `tensor`, `md5`) at which level."""

    tensors: tuple[DumpedTensor, ...]
    task: str
    level: str


@dataclass(frozen=True, slots=True)
class Compared:
    """One row of a comparison that another tool made with both sides' tensors at hand; a side that lacks it is None.

    `cosine` and `distance` (the L2 norm of the difference) are NaN where the tool gives none.
    """

    baseline: DumpedTensor | None
    candidate: DumpedTensor | None
    cosine: float = math.nan
    distance: float = math.nan


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides in one table, in the order of execution. Of the tool's own verdicts nothing is kept."""

    rows: tuple[Compared, ...]


@dataclass(frozen=True, slots=True)
class Pack:
    """What a configuration pack says of one side.

    `dump` holds the statistics of weights and inputs before each forward pass, `environment` a lock of the packages and
    of the listed variables, `draws` how often each random function was called, `settings` the hyperparameters.
    """

    dump: Dump
    environment: Mapping[str, Any] = field(default_factory=dict)
    draws: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
