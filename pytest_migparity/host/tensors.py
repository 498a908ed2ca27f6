"""A tensor to digest, whatever it comes from: its name, dtype, shape, and its elements leaf by leaf."""

import math
from typing import Any, Callable, Iterator, NamedTuple, Tuple

import numpy as np

from .digest_numpy import LEAF, Array, storage


class Tensor(NamedTuple):
    """A tensor to digest: `leaves` yields its elements in C order, as flat arrays of 2^20 and a shorter last one."""

    name: str
    dtype: str
    shape: Tuple[int, ...]
    leaves: Callable[[], Iterator[Array]]

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
