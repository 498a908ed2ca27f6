"""What a dump of statistics says of a run's tensors: extremes, mean and norm, and at best a checksum."""

from __future__ import annotations

from dataclasses import dataclass

STAGES = ("input", "output", "weight", "grad")


@dataclass(frozen=True, slots=True)
class DumpedTensor:
    """One tensor, in order of execution. `checksum` is a CRC-32 in hex where the dump has one, else empty.

    Statistics are NaN where the dump holds none. Of a scalar (a Python number) the four are its value.
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


@dataclass(frozen=True, slots=True)
class Dump:
    """One side's dump: its tensors in order, and what kind of dump (`statistics`, `tensor`, `md5`) at which level."""

    tensors: tuple[DumpedTensor, ...]
    task: str
    level: str
