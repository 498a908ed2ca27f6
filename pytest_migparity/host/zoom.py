"""A closer look at one tensor: its parts as tensors of their own, and its copy rounded to another dtype.

Two digests that differ in a tensor are compared again on digests of its parts, first the leaves of 2^20 elements, then
the blocks of 4096 of the leaf that differs. A cast is proved, not read off statistics: the side with the wider dtype
digests its own rounded copy, which must be the other side's tensor to the bit.
"""

import re
from typing import Iterator, List

import numpy as np

from .digest_numpy import LEAF, Array, storage, widened
from .tensors import Tensor

BLOCK = 4096
_PART = re.compile(r"(.*)\[(\d+):(\d+)\]")
_CASTS = ("bfloat16", "float16", "float32")


def parts_of(tensor: Tensor) -> List[Tensor]:
    """Its leaves, or the blocks of one leaf; named `tensor[first:last]` by the elements, in C order, that they hold."""
    found = _PART.fullmatch(tensor.name)
    name, offset = (found[1], int(found[2])) if found else (tensor.name, 0)
    size = LEAF if tensor.size > LEAF else BLOCK
    parts = []
    for start in range(0, tensor.size, size):
        end = min(start + size, tensor.size)
        parts.append(Tensor("%s[%d:%d]" % (name, offset + start, offset + end), tensor.dtype, (end - start,),
                            _Slice(tensor, start, end)))
    return parts


def zoomed(tensors: List[Tensor], name: str) -> List[Tensor]:
    """The parts of the tensor `name`, or of a part of one; ValueError where there is none of that name."""
    found = next((tensor for tensor in tensors if tensor.name == name), None)
    part = _PART.fullmatch(name)
    if found is None and part:
        whole = next((tensor for tensor in tensors if tensor.name == part[1]), None)
        found = next((item for item in parts_of(whole) if item.name == name), None) if whole else None
    if found is None:
        raise ValueError("there is no tensor or part %.200r" % name)
    return parts_of(found)


class _Slice:
    """The elements from `start` to `end`, which lie within one leaf, each time they are asked for."""

    def __init__(self, tensor: Tensor, start: int, end: int) -> None:
        self._tensor, self._start, self._end = tensor, start, end

    def __call__(self) -> Iterator[Array]:
        for number, leaf in enumerate(self._tensor.leaves()):
            if number == self._start // LEAF:
                first = number * LEAF
                yield leaf[self._start - first:self._end - first]
                return


def cast_of(tensor: Tensor, dtype: str) -> Tensor:
    """The tensor rounded to nearest even in a narrower dtype; ValueError where there is no such cast."""
    if dtype not in _CASTS or tensor.dtype not in ("float64", "float32", "float16", "bfloat16"):
        raise ValueError("%s: %s is not cast to %s, expected a float dtype and one of %s"
                         % (tensor.name, tensor.dtype, dtype, ", ".join(_CASTS)))
    if storage(dtype).itemsize > storage(tensor.dtype).itemsize:
        raise ValueError("%s: %s is wider than %s; cast the other side's" % (tensor.name, dtype, tensor.dtype))
    return tensor._replace(dtype=dtype, leaves=lambda: (rounded(leaf, tensor.dtype, dtype) for leaf in tensor.leaves()))


def rounded(elements: Array, dtype: str, target: str) -> Array:
    """Elements as bits of another float dtype: to nearest, ties to even; NaN stays NaN, what is too large is Inf.

    float64 goes to bfloat16 by way of float32, as torch does it.
    """
    if dtype == target:
        return elements
    values = widened(elements, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        if target != "bfloat16":
            return values.astype(storage(target))
        bits = values.astype(np.float32).view(np.uint32)
    nearest = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(nan, np.uint32(0x7FC0), nearest).astype(np.uint16)
