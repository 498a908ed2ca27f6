"""Folders of torch.distributed.checkpoint (`.metadata` beside `__0_0.distcp`, ...): whole tensors from ranks' pieces.

A piece is a small PyTorch file within a `.distcp` file, and is loaded weights-only. Of a tensor that is cut along its
first dimension alone, as FSDP does it, one piece is in memory at a time; one that is cut otherwise is put together in
memory, whole. Needs torch.
"""

import io
import os
from functools import partial
from itertools import chain
from typing import Any, Iterator

from .dcp_metadata import NAME, Entry, Piece, read_metadata
from .digest_numpy import Array
from .pytorch_files import load_weights, without_torch
from .safetensors_files import TensorFileError
from .tensors import Opened, Tensor, regrouped


def read_dcp(folder: str) -> Opened:
    """The tensors of a folder, and the names of the objects beside them; TensorFileError names what is wrong."""
    entries, others = read_metadata(folder)
    try:
        import torch  # noqa: F401  only whether it is there
    except ImportError:
        raise without_torch(folder) from None
    files = {piece.file for entry in entries for piece in entry.pieces}
    return Opened([Tensor(entry.name, entry.dtype, entry.shape, partial(_leaves, entry)) for entry in entries],
                  (os.path.join(folder, NAME), *sorted(files)), tuple(others))


def _leaves(entry: Entry) -> Iterator[Array]:
    from .torch_tensors import of_torch

    if all(piece.sizes[1:] == entry.shape[1:] for piece in entry.pieces):  # sorted: they follow one another
        parts = (of_torch(entry.name, _load(entry, piece)).leaves() for piece in entry.pieces)
        yield from regrouped(chain.from_iterable(parts))
    else:
        yield from of_torch(entry.name, _assembled(entry)).leaves()


def _assembled(entry: Entry) -> Any:
    import torch

    whole = None
    for piece in entry.pieces:
        held = _load(entry, piece)
        whole = torch.empty(entry.shape, dtype=held.dtype) if whole is None else whole
        whole[tuple(slice(first, first + size) for first, size in zip(piece.offsets, piece.sizes))] = held
    return whole


def _load(entry: Entry, piece: Piece) -> Any:
    """The tensor of one piece, held to what the metadata say of it."""
    from .torch_tensors import of_torch

    where = "%s: piece of %s at byte %d" % (piece.file, entry.name, piece.start)
    with open(piece.file, "rb") as stream:
        held = load_weights(_Window(stream, piece.start, piece.length), where, piece.length)
    try:
        found = of_torch(entry.name, held)
    except (ValueError, AttributeError) as error:
        raise TensorFileError("%s is no tensor that is digested: %s" % (where, error)) from None
    if (found.dtype, found.shape) != (entry.dtype, piece.sizes):
        raise TensorFileError("%s is %s %s, and the metadata speak of %s %s" % (
            where, found.dtype, list(found.shape), entry.dtype, list(piece.sizes)))
    return held


class _Window(io.RawIOBase):
    """A part of a file as a file of its own."""

    def __init__(self, stream: Any, start: int, length: int) -> None:
        super().__init__()
        self._stream, self._start, self._length, self._at = stream, start, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._length}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        size = min(len(view), max(self._length - self._at, 0))
        self._stream.seek(self._start + self._at)
        count = int(self._stream.readinto(view[:size]))
        self._at += count
        return count
