"""Changes of layout on tensors that are read leaf by leaf: merge, split, transpose, qkv, rotary pairs, experts.

Every change is one of three. `beside` takes turns among tensors, `columns` takes a part out of every row, and
`viewed` reads one tensor in another order. The first two stream where nothing has to be turned (rows are whole
tensors); otherwise the tensors of one rule lie in memory while their result is read. Elements are never computed with:
bfloat16 and float8 travel as bits.
"""

import math
from typing import Any, Callable, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

from ..wire.layout import LayoutError, Operation
from .digest_numpy import LEAF, Array, storage
from .tensors import Tensor


class Piece(NamedTuple):
    """A tensor on its way: `chunks` yields its elements in C order, as flat arrays of any length."""

    dtype: str
    shape: Tuple[int, ...]
    chunks: Callable[[], Iterator[Array]]


Rows = List[List[Piece]]
"""The tensors of one group: a row for each value of the placeholder that is stacked, else one row."""


def apply(operation: Operation, rows: Rows, parts: int) -> Rows:
    """One operation on every row of a group; LayoutError where shapes or numbers of tensors do not fit.

    `parts` is into how many equal parts a split without sizes divides.
    """
    if operation.name == "stack":
        _alike([len(row) for row in rows], "stack: numbers of tensors")
        return [[_stacked(list(column)) for column in zip(*rows)]]
    if operation.name == "unstack":
        columns = [_unstacked(piece) for row in rows for piece in row]
        _alike([len(column) for column in columns], "unstack: lengths of axis 0")
        return [list(row) for row in zip(*columns)]
    if operation.name == "split":
        return [_split(operation, row, parts) for row in rows]
    return [_EACH[operation.name](operation, row) for row in rows]


def named(name: str, piece: Piece) -> Tensor:
    """The piece as a tensor to digest."""
    return Tensor(name, piece.dtype, piece.shape, lambda: _leaves(piece))


def _leaves(piece: Piece) -> Iterator[Array]:
    """Chunks of any length as leaves of 2^20 elements and a shorter last one."""
    held: List[Array] = []
    size = 0
    for chunk in piece.chunks():
        at = 0
        while at < chunk.size:
            part = chunk[at:at + LEAF - size]
            held.append(part)
            at, size = at + part.size, size + part.size
            if size == LEAF:
                yield _joined(held)
                held, size = [], 0
    if held:
        yield _joined(held)


def _joined(parts: List[Array]) -> Array:
    return np.require(parts[0] if len(parts) == 1 else np.concatenate(parts), requirements=["C", "A"])


def _whole(piece: Piece) -> Array:
    """All elements of a piece, flat."""
    flat, at = np.empty(math.prod(piece.shape), storage(piece.dtype)), 0
    for chunk in piece.chunks():
        flat[at:at + chunk.size] = chunk
        at += chunk.size
    if at != flat.size:
        raise LayoutError("a tensor of shape %s held %d elements" % (list(piece.shape), at))
    return flat


def _beside(pieces: Sequence[Piece], rounds: int, shape: Tuple[int, ...]) -> Piece:
    """Tensors taking turns: each is cut into `rounds` equal runs of elements, and a round holds one run of each."""
    def chunks() -> Iterator[Array]:
        if rounds == 1:
            for piece in pieces:
                yield from piece.chunks()
            return
        runs = [_whole(piece).reshape(rounds, -1) for piece in pieces]
        step = max(1, LEAF // max(1, sum(run.shape[1] for run in runs)))
        for start in range(0, rounds, step):
            yield np.concatenate([run[start:start + step] for run in runs], axis=1).reshape(-1)

    return Piece(pieces[0].dtype, shape, chunks)


def _columns(piece: Piece, rounds: int, start: int, stop: int, shape: Tuple[int, ...]) -> Piece:
    """Elements `start` to `stop` of each of `rounds` equal runs."""
    def chunks() -> Iterator[Array]:
        if rounds == 1:
            at = 0
            for chunk in piece.chunks():
                yield chunk[max(0, start - at):max(0, stop - at)]
                at += chunk.size
                if at >= stop:
                    return
        else:
            yield from _in_order(_whole(piece).reshape(rounds, -1)[:, start:stop])

    return Piece(piece.dtype, shape, chunks)


def _viewed(piece: Piece, view: Callable[[Array], Array], shape: Tuple[int, ...]) -> Piece:
    """The elements of a piece in the order of a view of its array."""
    return Piece(piece.dtype, shape, lambda: _in_order(view(_whole(piece).reshape(piece.shape))))


def _in_order(array: Array) -> Iterator[Array]:
    """An array of any strides in C order, about a leaf at a time."""
    if array.ndim < 2:
        yield array.reshape(-1)
        return
    step = max(1, LEAF // max(1, math.prod(array.shape[1:])))
    for start in range(0, array.shape[0], step):
        yield np.ascontiguousarray(array[start:start + step]).reshape(-1)


def _alike(values: Sequence[Any], what: str) -> None:
    if len(set(values)) > 1:
        raise LayoutError("%s differ: %s" % (what, ", ".join(sorted({str(value) for value in values}))))


def _transpose(operation: Operation, row: List[Piece]) -> List[Piece]:
    def turned(piece: Piece) -> Piece:
        axes = operation.axes
        if sorted(axes) != list(range(len(piece.shape))):
            raise LayoutError("transpose: axes %s do not fit shape %s" % (list(axes), list(piece.shape)))
        return _viewed(piece, lambda array: array.transpose(axes), tuple(piece.shape[axis] for axis in axes))

    return [turned(piece) for piece in row]


def _reshape(operation: Operation, row: List[Piece]) -> List[Piece]:
    def reshaped(piece: Piece) -> Piece:
        size, known = math.prod(piece.shape), math.prod(length for length in operation.shape if length >= 0)
        open_ends = operation.shape.count(-1)
        fits = known == size if not open_ends else known > 0 and size % known == 0
        if open_ends > 1 or not fits:
            raise LayoutError("reshape: %s does not fit shape %s" % (list(operation.shape), list(piece.shape)))
        return piece._replace(shape=tuple(size // known if length < 0 else length for length in operation.shape))

    return [reshaped(piece) for piece in row]


def _merge(operation: Operation, row: List[Piece]) -> List[Piece]:
    axis = operation.axis
    _alike([piece.dtype for piece in row], "merge: dtypes")
    if any(axis >= len(piece.shape) for piece in row):
        raise LayoutError("merge: there is no axis %d in shape %s" % (axis, list(row[0].shape)))
    _alike([(piece.shape[:axis], piece.shape[axis + 1:]) for piece in row], "merge: lengths beside axis %d" % axis)
    first = row[0].shape
    shape = (*first[:axis], sum(piece.shape[axis] for piece in row), *first[axis + 1:])
    return [_beside(row, math.prod(first[:axis]), shape)]


def _split(operation: Operation, row: List[Piece], parts: int) -> List[Piece]:
    piece, axis = _only(row, "split"), operation.axis
    if axis >= len(piece.shape):
        raise LayoutError("split: there is no axis %d in shape %s" % (axis, list(piece.shape)))
    sizes = operation.sizes or (piece.shape[axis] // parts,) * parts
    if sum(sizes) != piece.shape[axis]:
        raise LayoutError("split: axis %d of shape %s does not divide into %s" % (axis, list(piece.shape), list(sizes)))
    unit, at = math.prod(piece.shape[axis + 1:]), 0
    done: List[Piece] = []
    for size in sizes:
        shape = (*piece.shape[:axis], size, *piece.shape[axis + 1:])
        done.append(_columns(piece, math.prod(piece.shape[:axis]), at * unit, (at + size) * unit, shape))
        at += size
    return done


def _merge_qkv(operation: Operation, row: List[Piece]) -> List[Piece]:
    heads, groups = operation.heads, operation.groups or operation.heads
    if len(row) != 3 or any(not piece.shape for piece in row):
        raise LayoutError("merge_qkv takes queries, keys and values, found %d tensors" % len(row))
    _alike([piece.dtype for piece in row], "merge_qkv: dtypes")
    _alike([piece.shape[1:] for piece in row], "merge_qkv: lengths beside axis 0")
    rows = [piece.shape[0] for piece in row]
    width = rows[0] // heads
    if heads % groups or rows != [heads * width, groups * width, groups * width]:
        raise LayoutError("merge_qkv: %d heads in %d groups do not fit %s rows" % (heads, groups, rows))
    return [_beside(row, groups, (sum(rows), *row[0].shape[1:]))]


def _split_qkv(operation: Operation, row: List[Piece]) -> List[Piece]:
    heads, groups = operation.heads, operation.groups or operation.heads
    piece = _only(row, "split_qkv")
    rows = piece.shape[0] if piece.shape else 0
    if heads % groups or rows % (heads + 2 * groups):
        raise LayoutError("split_qkv: %d heads in %d groups do not fit shape %s" % (heads, groups, list(piece.shape)))
    width = rows // (heads + 2 * groups)
    unit, at = math.prod(piece.shape[1:]) * width, 0
    done: List[Piece] = []
    for share in (heads // groups, 1, 1):
        done.append(_columns(piece, groups, at * unit, (at + share) * unit, (groups * share * width, *piece.shape[1:])))
        at += share
    return done


def _rope(operation: Operation, row: List[Piece]) -> List[Piece]:
    """Rows of a head as (x0, x1), (x2, x3), ... to x0, x2, ..., x1, x3, ... (`halves`), or back (`pairs`)."""
    def turned(piece: Piece) -> Piece:
        heads = operation.heads
        if not piece.shape or piece.shape[0] % (2 * heads):
            raise LayoutError("rope: %d heads of pairs do not fit shape %s" % (heads, list(piece.shape)))
        half = piece.shape[0] // (2 * heads)
        cut = (heads, half, 2, -1) if operation.to == "halves" else (heads, 2, half, -1)
        return _viewed(piece, lambda array: array.reshape(cut).swapaxes(1, 2), piece.shape)

    return [turned(piece) if math.prod(piece.shape) else piece for piece in row]


def _only(row: List[Piece], what: str) -> Piece:
    if len(row) != 1:
        raise LayoutError("%s takes one tensor, found %d" % (what, len(row)))
    return row[0]


def _stacked(pieces: List[Piece]) -> Piece:
    _alike([(piece.dtype, piece.shape) for piece in pieces], "stack: dtypes or shapes")
    return _beside(pieces, 1, (len(pieces), *pieces[0].shape))


def _unstacked(piece: Piece) -> List[Piece]:
    if not piece.shape or not piece.shape[0]:
        raise LayoutError("unstack: shape %s has nothing along axis 0" % list(piece.shape))
    unit = math.prod(piece.shape[1:])
    return [_columns(piece, 1, at * unit, (at + 1) * unit, piece.shape[1:]) for at in range(piece.shape[0])]


_EACH = {"transpose": _transpose, "reshape": _reshape, "merge": _merge, "merge_qkv": _merge_qkv,
         "split_qkv": _split_qkv, "rope": _rope}
