"""What `torch.save` writes since torch 1.6, read without torch: a zip of a pickle and of storages, kept as they are.

The pickle is read by an unpickler that knows the few names that tensors in dicts and lists need, and gives inert
stand-ins for them, so that no code of torch or of the file runs. A file that asks for anything else, or is laid out in
another way, is left to torch's own weights-only loading, which refuses what could run code.
"""

import io
import math
import os
import pickle
import struct
import zipfile
from functools import partial
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from .digest_numpy import Array, storage
from .safetensors_files import TensorFileError
from .stand_ins import Call
from .tensors import Opened, Tensor, leaves_of, mapped

_LARGEST = 1 << 28  # bytes of a pickle
_MOST_ENTRIES = 1 << 20  # of all dicts and lists together
_LOCAL = 30  # bytes of a zip member's own header, without its name
_LENGTHS = struct.Struct("<HH")  # of its name and of what follows that
_BESIDE = ("version", ".format_version", ".storage_alignment", ".data/serialization_id")
_DTYPES = {"float8_e4m3fn": "float8_e4m3", **{name: name for name in (
    "float64", "float32", "float16", "bfloat16", "float8_e5m2", "bool", "uint8", "int8", "uint16", "int16", "uint32",
    "int32", "uint64", "int64", "complex64")}}
_STORAGES = {"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
             "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16",
             "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64"}


class _LeftError(Exception):
    """It is not for this reader."""


class _Table(dict):  # type: ignore[type-arg]
    """An OrderedDict; what hangs on it besides its items, such as a state dict's versions, is dropped."""

    def __setstate__(self, state: Any) -> None:
        return


class _Stored(NamedTuple):
    """A storage: where its bytes lie in the file; `dtype` is empty where the tensor says it."""

    dtype: str
    start: int
    size: int


class _View:
    """A tensor: elements of a storage, by offset and strides in elements; once made, a pickle cannot change it."""

    __slots__ = ("dtype", "kind", "shape", "start", "strides")

    def __setstate__(self, state: Any) -> None:
        raise _LeftError

    def __init__(self, held: _Stored, dtype: str, first: Any, shape: Any, strides: Any) -> None:
        sizes, steps = tuple(shape), tuple(strides)
        if not isinstance(held, _Stored) or not dtype or len(sizes) != len(steps) or len(sizes) > 64 or not all(
                type(number) is int and 0 <= number < 1 << 63 for number in (first, *sizes, *steps)):
            raise _LeftError
        self.dtype, self.shape, self.strides = dtype, sizes, steps
        self.kind = storage(dtype)
        last = first + sum((size - 1) * step for size, step in zip(sizes, steps))
        if math.prod(sizes) and (last + 1) * self.kind.itemsize > held.size:
            raise _LeftError
        self.start = held.start + first * self.kind.itemsize

    def tensor(self, path: str, name: str) -> Tensor:
        """As it is digested: mapped from the file."""
        count, wanted, solid = math.prod(self.shape), 1, True
        for size, step in zip(reversed(self.shape), reversed(self.strides)):
            solid, wanted = solid and (size == 1 or step == wanted), wanted * size
        if solid or not count:
            return Tensor(name, self.dtype, self.shape, partial(mapped, path, self.start, self.kind, count))
        return Tensor(name, self.dtype, self.shape, partial(self._strided, path))

    def _strided(self, path: str) -> Iterator[Array]:
        span = 1 + sum((size - 1) * step for size, step in zip(self.shape, self.strides))
        flat = np.memmap(path, dtype=np.uint8, mode="r", offset=self.start, shape=(span * self.kind.itemsize,))
        steps = tuple(step * self.kind.itemsize for step in self.strides)
        return leaves_of(np.lib.stride_tricks.as_strided(flat.view(self.kind), self.shape, steps), self.kind)


def _rebuilt(held: _Stored, first: Any, shape: Any, strides: Any, *others: Any) -> _View:
    """`torch._utils._rebuild_tensor_v2`: also given requires_grad, hooks and, for what is no plain view, metadata."""
    if len(others) > 2:
        raise _LeftError
    return _View(held, held.dtype, first, shape, strides)


def _rebuilt_as(held: _Stored, first: Any, shape: Any, strides: Any, grad: Any, hooks: Any, dtype: Any) -> _View:
    """`torch._utils._rebuild_tensor_v3`: of a dtype without a storage type of its own."""
    return _View(held, _DTYPES.get(dtype, ""), first, shape, strides)


def _of_parameter(data: _View, *others: Any) -> _View:
    return data


_KNOWN: Dict[Tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): Call(_rebuilt), ("torch._utils", "_rebuild_tensor_v3"): Call(_rebuilt_as),
    ("torch._utils", "_rebuild_parameter"): Call(_of_parameter), ("collections", "OrderedDict"): _Table,
    ("torch", "Size"): tuple, ("torch", "UntypedStorage"): "", ("torch.storage", "UntypedStorage"): "",
    **{("torch", name): name for name in _DTYPES}, **{("torch", name): name for name in _STORAGES}}


class _Guarded(pickle.Unpickler):
    def __init__(self, data: bytes, places: Dict[str, Tuple[int, int]]) -> None:
        super().__init__(io.BytesIO(data))
        self._places = places

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _KNOWN[module, name]
        except KeyError:
            raise _LeftError from None

    def persistent_load(self, held: Any) -> _Stored:
        kind, storage_type, key, _, count = held
        start, size = self._places["data/" + key]
        dtype = _STORAGES.get(storage_type, "")
        if kind != "storage" or type(count) is not int or count * (storage(dtype).itemsize if dtype else 1) != size:
            raise _LeftError
        return _Stored(dtype, start, size)


def read_zip(path: str) -> Optional[Opened]:
    """The tensors of a file that `torch.save` wrote, nested dicts under dotted names; None where torch must say."""
    try:
        with open(path, "rb", buffering=0) as stream, zipfile.ZipFile(stream) as archive:
            places = _laid_out(stream.fileno(), archive.infolist())
            pickled = os.pread(stream.fileno(), places["data.pkl"][1], places["data.pkl"][0])
        state = _Guarded(pickled, places).load()
        if not isinstance(state, (_View, dict, list, tuple)):
            return None
        found = Opened([], (path,))
        left_out: List[str] = []
        entries = iter(range(_MOST_ENTRIES))
        _walked(path, {"tensor": state} if isinstance(state, _View) else state, "", found.tensors, left_out, entries)
        twice = len({tensor.name for tensor in found.tensors}) < len(found.tensors)
        return None if twice else found._replace(left_out=tuple(left_out))
    except (OSError, TensorFileError):
        raise
    except Exception:  # a mangled zip or pickle may raise anything: torch names what is wrong with it
        return None


def _laid_out(file: int, members: List[zipfile.ZipInfo]) -> Dict[str, Tuple[int, int]]:
    """Places of the pickle and of the storages by their names below the root, as first byte and bytes."""
    (root,) = [member.filename[:-len("data.pkl")] for member in members if member.filename.endswith("/data.pkl")]
    found: Dict[str, Tuple[int, int]] = {}
    held, claimed = os.fstat(file).st_size, 0
    for member in members:
        name, size = member.filename[len(root):], member.file_size
        if not member.filename.startswith(root) or name in found or member.compress_type != zipfile.ZIP_STORED \
                or member.flag_bits & 1 or member.compress_size != size:
            raise _LeftError
        claimed += size
        if name in _BESIDE:
            continue
        if name not in ("data.pkl", "byteorder") and not name.startswith("data/"):
            raise _LeftError
        head = os.pread(file, _LOCAL, member.header_offset)
        start = member.header_offset + _LOCAL + sum(_LENGTHS.unpack_from(head, 26))
        if head[:4] != b"PK\3\4" or start + size > held:
            raise _LeftError
        found[name] = (start, size)
    order = found.get("byteorder")
    foreign = order and os.pread(file, 8, order[0])[:order[1]] != b"little"
    if found["data.pkl"][1] > _LARGEST or claimed > held or foreign:
        raise _LeftError
    return found


def _walked(path: str, state: Any, prefix: str, tensors: List[Tensor], left_out: List[str],
            entries: Iterator[int]) -> None:
    """Add the tensors of nested dicts and lists under dotted names, and the names of what is no tensor."""
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        if next(entries, None) is None:
            raise TensorFileError("%s: its dicts and lists unfold to more than %d entries" % (path, _MOST_ENTRIES))
        name = "%s%s" % (prefix, key)
        if isinstance(value, _View):
            tensors.append(value.tensor(path, name))
        elif isinstance(value, (dict, list, tuple)):
            _walked(path, value, name + ".", tensors, left_out, entries)
        else:
            left_out.append(name)
