"""The `.metadata` of a torch.distributed.checkpoint folder: which tensors it has, and where their pieces lie.

The file is a pickle. It is read by an unpickler that knows the few names such a file asks for and gives inert
stand-ins for them, so that no code of torch or of the file runs; any other name is refused. Needs no torch.
"""

import math
import os
import pickle
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np

from .safetensors_files import TensorFileError
from .stand_ins import Call

NAME = ".metadata"
_LARGEST = 1 << 28  # bytes
_MOST_PIECES = 4096  # of one tensor
_META, _FILES = "torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem"
_DTYPES = {"float8_e4m3fn": "float8_e4m3", "half": "float16", "float": "float32", "double": "float64",
           **{name: name for name in ("float64", "float32", "float16", "bfloat16", "float8_e5m2", "bool", "uint8",
                                      "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "complex64")}}


class Piece(NamedTuple):
    """A box of a tensor (`offsets`, `sizes`), and the bytes of the file in which it was saved."""

    offsets: Tuple[int, ...]
    sizes: Tuple[int, ...]
    file: str
    start: int
    length: int


class Entry(NamedTuple):
    """One tensor: its pieces fill it, and do not overlap."""

    name: str
    dtype: str
    shape: Tuple[int, ...]
    pieces: Tuple[Piece, ...]


class _Record:
    """Stands in for an object of torch's: holds what the pickle says of it."""

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)
        else:
            self.state = state


def _record(kind: str) -> Any:
    return type(kind, (_Record,), {})


_TENSOR, _BYTES, _METADATA = _record("TensorStorageMetadata"), _record("BytesStorageMetadata"), _record("Metadata")
_CHUNK, _PROPERTIES = _record("ChunkStorageMetadata"), _record("TensorProperties")
_INDEX, _PLACE = _record("MetadataIndex"), _record("_StorageInfo")


def _last(*words: Any) -> Any:
    return words[-1] if words else None


_LAST = Call(_last)
_KNOWN: Dict[Tuple[str, str], Any] = {
    (_META, "Metadata"): _METADATA, (_META, "TensorStorageMetadata"): _TENSOR, (_META, "BytesStorageMetadata"): _BYTES,
    (_META, "ChunkStorageMetadata"): _CHUNK, (_META, "TensorProperties"): _PROPERTIES,
    (_META, "MetadataIndex"): _INDEX, (_META, "StorageMeta"): _record("StorageMeta"),
    (_META, "_MEM_FORMAT_ENCODING"): _LAST, (_FILES, "_StorageInfo"): _PLACE,
    ("torch", "Size"): Call(lambda lengths=(): tuple(lengths)), ("torch.serialization", "_get_layout"): _LAST,
    ("builtins", "getattr"): _LAST, ("collections", "OrderedDict"): dict, ("pathlib", "PosixPath"): _LAST,
    ("pathlib", "PurePosixPath"): _LAST, **{("torch", name): name for name in _DTYPES}}


class _Guarded(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _KNOWN[module, name]
        except KeyError:
            raise TensorFileError("it asks for %.80s.%.80s, which no such file needs, and could run code: not opened"
                                  % (module, name)) from None


def read_metadata(folder: str) -> Tuple[List[Entry], List[str]]:
    """(tensors, names of what else was saved) of a folder; TensorFileError names the file and what is wrong with it."""
    path = os.path.join(folder, NAME)
    try:
        if os.path.getsize(path) > _LARGEST:
            raise TensorFileError("larger than %d bytes" % _LARGEST)
        with open(path, "rb") as stream:
            whole = _Guarded(stream).load()
        return _entries(whole, folder)
    except TensorFileError as error:
        raise TensorFileError("%s: %s" % (path, error)) from None
    except OSError as error:
        raise TensorFileError("%s: %s" % (path, error.strerror or error)) from None
    except Exception as error:  # a mangled pickle may raise anything
        raise TensorFileError("%s is damaged, or of a version that is not read here (%s: %.200s)"
                              % (path, type(error).__name__, error)) from None


def _entries(whole: Any, folder: str) -> Tuple[List[Entry], List[str]]:
    if not isinstance(whole, _METADATA):
        raise TensorFileError("it holds a %s, expected Metadata" % type(whole).__name__)
    places = {(index.fqn, getattr(index, "offset", None)): place for index, place in whole.storage_data.items()}
    entries, others = [], []
    for name, held in sorted(whole.state_dict_metadata.items()):
        if isinstance(held, _BYTES):
            others.append(name)
            continue
        dtype = _DTYPES.get(held.properties.state[0])
        if not isinstance(held, _TENSOR) or dtype is None:
            raise TensorFileError("%.200s is a %s of %s, which is not digested"
                                  % (name, type(held).__name__, held.properties.state[0]))
        shape = _lengths(held.size, name)
        pieces = [_piece(folder, name, chunk, places) for chunk in held.chunks]
        _fills(name, shape, pieces)
        entries.append(Entry(name, dtype, shape, tuple(sorted(pieces))))
    return entries, others


def _lengths(value: Any, name: str) -> Tuple[int, ...]:
    if not isinstance(value, tuple) or len(value) > 64 or not all(type(length) is int and 0 <= length < 1 << 63
                                                                   for length in value):
        raise TensorFileError("tensor %.200s: %.80r is no shape" % (name, value))
    return value


def _piece(folder: str, name: str, chunk: Any, places: Dict[Any, Any]) -> Piece:
    offsets, sizes = _lengths(chunk.offsets, name), _lengths(chunk.sizes, name)
    place = places.get((name, offsets))
    if place is None:
        raise TensorFileError("tensor %.200s: it does not say where the piece at %s lies" % (name, list(offsets)))
    if getattr(place, "transform_descriptors", None):
        raise TensorFileError("tensor %.200s was saved with %.80s, which is not undone here"
                              % (name, place.transform_descriptors))
    file, start, length = place.relative_path, place.offset, place.length
    if not isinstance(file, str) or os.path.basename(file) != file or not file.endswith(".distcp"):
        raise TensorFileError("it names the file %.80r, expected one that ends in .distcp, beside it" % (file,))
    path = os.path.join(folder, file)
    if not os.path.isfile(path):
        raise TensorFileError("it names %s, which is not there" % file)
    if type(start) is not int or type(length) is not int or start < 0 or length <= 0 \
            or start + length > os.path.getsize(path):
        raise TensorFileError("tensor %.200s lies at byte %s of %s, %s long, and the file has %d: cut short"
                              % (name, start, file, length, os.path.getsize(path)))
    return Piece(offsets, sizes, path, start, length)


def _fills(name: str, shape: Tuple[int, ...], pieces: List[Piece]) -> None:
    """Every element of the tensor lies in exactly one piece, or TensorFileError."""
    if len(pieces) > _MOST_PIECES:
        raise TensorFileError("tensor %.200s has %d pieces, at most %d are read" % (name, len(pieces), _MOST_PIECES))
    for piece in pieces:
        if len(piece.offsets) != len(shape) or len(piece.sizes) != len(shape) or any(
                first + size > length for first, size, length in zip(piece.offsets, piece.sizes, shape)):
            raise TensorFileError("tensor %.200s %s has a piece %s at %s: outside of it"
                                  % (name, list(shape), list(piece.sizes), list(piece.offsets)))
    held, wanted = sum(math.prod(piece.sizes) for piece in pieces), math.prod(shape)
    if held != wanted:
        raise TensorFileError("tensor %.200s has %d elements, and its pieces %d: a rank's are missing, or twice there"
                              % (name, wanted, held))
    solid = [piece for piece in pieces if math.prod(piece.sizes)]
    if len(solid) > 1:
        first = np.array([piece.offsets for piece in solid], np.int64)
        end = first + np.array([piece.sizes for piece in solid], np.int64)
        meet = np.ones((len(solid), len(solid)), bool)
        for axis in range(len(shape)):
            meet &= (first[:, None, axis] < end[None, :, axis]) & (first[None, :, axis] < end[:, None, axis])
        if int(meet.sum()) > len(solid):
            raise TensorFileError("tensor %.200s has pieces that overlap" % name)


