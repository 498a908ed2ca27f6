"""A closer look at one tensor: its parts as tensors of their own, and its copy rounded to another dtype.

Two digests that differ in a tensor are compared again on digests of its parts: the leaves of 2^20 elements, the blocks
of 4096 of the leaf that differs, the pieces of 64 of that block, and the elements of the piece. A cast is proved, not
read off statistics: the side with the wider dtype digests its own rounded copy, which must be the other side's tensor
to the bit.
"""

from typing import Iterator, List

import numpy as np

from ..wire.names import part_of
from .digest_numpy import LEAF, Array, storage, widened
from .tensors import Tensor

BLOCK = 4096
PIECE = 64
_CASTS = ("bfloat16", "float16", "float32")


def parts_of(tensor: Tensor) -> List[Tensor]:
    """Its leaves, or the blocks, pieces or elements of a part; named `tensor[first:last]`, in C order."""
    name, offset, _ = part_of(tensor.name) or (tensor.name, 0, 0)
    size = next((size for size in (LEAF, BLOCK, PIECE) if size < tensor.size), 1)
    parts = []
    for start in range(0, tensor.size, size):
        end = min(start + size, tensor.size)
        parts.append(Tensor("%s[%d:%d]" % (name, offset + start, offset + end), tensor.dtype, (end - start,),
                            _Slice(tensor, start, end)))
    return parts


def zoomed(tensors: List[Tensor], name: str) -> List[Tensor]:
    """The parts of the tensor `name`, or of a part of one; of `name[:]` the tensor alone, as one part.

    ValueError where there is none of that name.
    """
    held = {tensor.name: tensor for tensor in tensors}
    if name in held:
        return parts_of(held[name])
    if name.endswith("[:]") and name[:-3] in held:
        alone = held[name[:-3]]
        return [alone._replace(name="%s[0:%d]" % (alone.name, alone.size))]
    found = part_of(name)
    if found is None or found[0] not in held:
        raise ValueError("there is no tensor or part %.200r" % name)
    whole, (_, first, last) = held[found[0]], found
    if (first, last) == (0, whole.size):
        return parts_of(whole)
    if not first < last <= whole.size or first // LEAF != (last - 1) // LEAF:
        raise ValueError("%.200r is no part: expected elements of one leaf of %d, of the %d there are"
                         % (name, LEAF, whole.size))
    return parts_of(Tensor(name, whole.dtype, (last - first,), _Slice(whole, first, last)))


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
