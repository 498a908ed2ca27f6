"""A tensor to digest, whatever it comes from: its name, dtype, shape, and its elements leaf by leaf."""

import math
import mmap
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from .digest_device import There
from .digest_numpy import LEAF, Array, storage

_WINDOW = 1 << 26  # bytes mapped at a time: what is read stays in a process's memory only until it is unmapped


class Tensor(NamedTuple):
    """A tensor to digest: `leaves` yields its elements in C order, as flat arrays of 2^20 and a shorter last one.

    `there` measures a leaf on the device that holds the tensor, where that is not the host.
    """

    name: str
    dtype: str
    shape: Tuple[int, ...]
    leaves: Callable[[], Iterator[Array]]
    there: Optional[There] = None

    @property
    def size(self) -> int:
        """Number of elements; 1 for a scalar."""
        return math.prod(self.shape)


def of_array(name: str, array: Array, dtype: str = "") -> Tensor:
    """A numpy array in memory, of any strides and byte order; `dtype` where numpy has none, such as bfloat16 as uint16.

    ValueError for a type that is not digested, such as Python objects.
    """
    dtype = dtype or array.dtype.name
    kind = storage(dtype)
    if array.dtype.kind not in "fiub" or (array.dtype.newbyteorder("=") != kind.newbyteorder("=") and dtype != "bool"):
        raise ValueError("%s: %s is not a type that is digested as %s" % (name, array.dtype, dtype))
    return Tensor(name, dtype, array.shape, lambda: leaves_of(array, kind))


def leaves_of(array: Array, kind: Any) -> Iterator[Array]:
    """The elements of an array in C order as leaves of `kind`, copied only where they do not lie so already."""
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    for start in range(0, array.size, LEAF):
        part = flat[start:start + LEAF]
        part = part.view(np.uint8) if part.dtype == np.bool_ else part.astype(kind, copy=False)
        yield np.require(part, requirements=["C", "A"])


def mapped(path: str, start: int, kind: Any, count: int) -> Iterator[Array]:
    """The leaves of `count` elements of a numpy type from byte `start` of a file on, mapped window by window."""
    most = _WINDOW // kind.itemsize // LEAF * LEAF
    with open(path, "rb", buffering=0) as stream:
        for first in range(0, count, most):
            size = min(most, count - first)
            at = start + first * kind.itemsize
            skipped = at % mmap.ALLOCATIONGRANULARITY
            try:
                window = mmap.mmap(stream.fileno(), skipped + size * kind.itemsize, access=mmap.ACCESS_READ,
                                   offset=at - skipped)
            except ValueError:
                raise ValueError("%s ends before byte %d: it was cut short since it was opened"
                                 % (path, at + size * kind.itemsize)) from None
            yield from leaves_of(np.frombuffer(window, kind, size, skipped), kind.newbyteorder("<"))


def regrouped(parts: Iterable[Array]) -> Iterator[Array]:
    """Flat arrays of any lengths as leaves: 2^20 elements each, and a shorter last one."""
    held: List[Array] = []
    missing = LEAF
    for part in parts:
        while part.size >= missing:
            yield np.concatenate([*held, part[:missing]]) if held else part[:missing]
            held, part, missing = [], part[missing:], LEAF
        if part.size:
            held.append(part)
            missing -= part.size
    if held:
        yield np.concatenate(held)


class Opened(NamedTuple):
    """What a source holds: its tensors, the files they are in, and the names of what is no tensor (a step counter)."""

    tensors: List[Tensor]
    files: Tuple[str, ...] = ()
    left_out: Tuple[str, ...] = ()
