"""Which file is it, and what tensors does it hold: npy, npz, safetensors, PyTorch, parquet, media, a folder of these.

Told by content, never by unpickling. Nothing but headers is read before a tensor's leaves are asked for.
"""

import io
import math
import os
import tempfile
import tokenize
import zipfile
import zlib
from functools import partial
from typing import Any, BinaryIO, Iterator, List, Tuple

import numpy as np
from numpy.lib import format as npy

from . import dcp_metadata
from .dataset_files import is_media, read_bytes, read_dataset, read_parquet
from .dcp_files import read_dcp
from .digest_numpy import LEAF, Array
from .pytorch_files import read_pytorch
from .safetensors_files import TensorFileError, read_index, read_safetensors
from .tensors import Opened, Tensor, leaves_of, mapped, of_array

_START = 256  # bytes by which a file is told
_DEFLATE = 1032  # no deflated byte becomes more than these


def open_tensors(path: str) -> List[Tensor]:
    """The tensors of a file, or of a folder with one checkpoint or data set."""
    return open_source(path).tensors


def open_source(path: str) -> Opened:
    """What a file holds, or a folder with one checkpoint or data set; TensorFileError names what is wrong with it."""
    try:
        found = _open_folder(path) if os.path.isdir(path) else _open_file(path)
    except OSError as error:
        raise TensorFileError("%s: %s" % (path, error.strerror or error)) from None
    return found if found.files else found._replace(files=(path,))


def _open_file(path: str) -> Opened:
    if path.endswith(".bin.index.json"):
        return read_index(path, ".bin", lambda shard: read_pytorch(shard).tensors)
    if path.endswith(".index.json"):
        return read_index(path)
    with open(path, "rb") as stream:
        start = stream.read(_START)
    if start[:6] == npy.MAGIC_PREFIX:
        return Opened([_npy(path)])
    if start[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return read_pytorch(path) if _is_pytorch(path, start) else Opened(_npz(path))
    if start[8:9] == b"{" or path.endswith(".safetensors"):
        return Opened(read_safetensors(path))
    if start[:1] == b"\x80":
        return read_pytorch(path)
    if start[:4] == b"PAR1":
        return Opened(read_parquet([path], os.path.basename(path)))
    if is_media(path):
        return Opened([read_bytes(path, os.path.basename(path))])
    raise TensorFileError("%s begins with %r: neither npy, npz, safetensors nor PyTorch, and no parquet, image or video"
                          % (path, start[:8]))


def _is_pytorch(path: str, start: bytes) -> bool:
    """Does a zip hold the pickle of `torch.save`? That is its first member, as a rule."""
    if start[30:30 + int.from_bytes(start[26:28], "little")].endswith(b"/data.pkl"):
        return True
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith(".pkl") for name in archive.namelist())
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError) as error:
        raise TensorFileError("%s: %s" % (path, error)) from None


def _open_folder(path: str) -> Opened:
    if os.path.exists(os.path.join(path, dcp_metadata.NAME)):
        return read_dcp(path)
    if os.path.exists(os.path.join(path, "meta", "info.json")):
        return read_dataset(path)
    names = sorted(os.listdir(path))
    indices = [name for name in names if name.endswith(".safetensors.index.json")]
    files = [name for name in names if name.endswith(".safetensors")]
    if len(indices) == 1:
        return open_source(os.path.join(path, indices[0]))
    if len(files) == 1 and not indices:
        return open_source(os.path.join(path, files[0]))
    for name in ("pytorch_model.bin.index.json", "pytorch_model.bin"):
        if name in names and not files and not indices:
            return open_source(os.path.join(path, name))
    if not files and not indices and names and all(is_media(name) for name in names):
        return Opened([read_bytes(os.path.join(path, name), name) for name in names],
                      tuple(os.path.join(path, name) for name in names))
    raise TensorFileError("%s holds %d safetensors files and %d indices, and is no checkpoint of "
                          "torch.distributed.checkpoint, LeRobot data set or folder of images and videos alone: name "
                          "the file that is meant" % (path, len(files), len(indices)))


def _npy(path: str) -> Tensor:
    """The one array of an npy file; it is called `array`."""
    with open(path, "rb") as stream:
        dtype, shape, fortran = _header(stream, path)
        start, size = stream.tell(), os.fstat(stream.fileno()).st_size
    _whole(path, size - start, dtype, shape)
    return _tensor(path, "array", dtype)._replace(shape=shape, leaves=partial(_mapped, path, start, dtype, shape,
                                                                             "F" if fortran else "C"))


def _mapped(source: Any, start: int, dtype: Any, shape: Tuple[int, ...], order: Any) -> Iterator[Array]:
    if order == "C":
        yield from mapped(source, start, dtype, math.prod(shape))
    elif math.prod(shape):
        array = np.memmap(source, dtype=dtype, mode="r", offset=start, shape=shape, order=order)
        yield from leaves_of(array, dtype.newbyteorder("<"))


def _tensor(where: str, name: str, dtype: Any) -> Tensor:
    """A tensor of a numpy type, still without elements."""
    try:
        return of_array(name, np.zeros(0, dtype))
    except ValueError as error:
        raise TensorFileError("%s: %s" % (where, error)) from None


def _whole(where: str, held: int, dtype: Any, shape: Tuple[int, ...]) -> None:
    wanted = math.prod(shape) * int(dtype.itemsize)
    if held != wanted:
        raise TensorFileError("%s holds %d bytes of elements, and its header speaks of %d: cut short, or not one array"
                              % (where, held, wanted))


def _header(stream: BinaryIO, where: str) -> Tuple[Any, Tuple[int, ...], bool]:
    """(dtype, shape, in Fortran order?) of an npy stream, which is left at the first element."""
    try:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise TensorFileError("%s: npy version %s, expected 1.0 or 2.0" % (where, version))
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except TensorFileError:
        raise
    except (ValueError, EOFError, TypeError, KeyError, SyntaxError, tokenize.TokenError, RecursionError,
            MemoryError) as error:
        said = str(error) or type(error).__name__
        raise TensorFileError("%s: its npy header cannot be read: %s" % (where, said.splitlines()[0])) from None
    if dtype.hasobject:
        raise TensorFileError("%s holds Python objects, a pickle that could run code: not opened" % where)
    if any(length < 0 for length in shape):
        raise TensorFileError("%s: shape %s" % (where, shape))
    if dtype.kind == "V":
        raise TensorFileError("%s holds %s, of which the file does not say what it means: save as safetensors, or "
                              "as float32" % (where, dtype))
    return dtype, shape, fortran


def _npz(path: str) -> List[Tensor]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            return _members(path, archive, members)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise TensorFileError("%s: %s" % (path, error)) from None


def _members(path: str, archive: zipfile.ZipFile, members: List[zipfile.ZipInfo]) -> List[Tensor]:
    other = [member.filename for member in members if not member.filename.endswith(".npy")]
    if other:
        raise TensorFileError("%s holds %.80s, which is no npy array" % (path, other[0]))
    if len({member.filename for member in members}) < len(members):
        raise TensorFileError("%s holds an array twice" % path)
    claimed = sum(member.file_size for member in members)
    if claimed > _DEFLATE * os.path.getsize(path):
        raise TensorFileError("%s is said to unpack to %d bytes, more than its size can hold" % (path, claimed))
    tensors = []
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise TensorFileError("%s: %s is neither stored nor deflated" % (path, member.filename))
        where = "%s: %s" % (path, member.filename)
        with archive.open(member) as stream:
            reader = io.BufferedReader(stream)  # type: ignore[type-var]
            dtype, shape, fortran = _header(reader, where)
            start = reader.tell()
        _whole(where, member.file_size - start, dtype, shape)
        name = member.filename[:-len(".npy")]
        leaves = partial(_fortran if fortran and len(shape) > 1 else _streamed, path, member, start, dtype, shape)
        tensors.append(_tensor(path, name, dtype)._replace(shape=shape, leaves=leaves))
    return tensors


def _streamed(path: str, member: zipfile.ZipInfo, start: int, dtype: Any, shape: Tuple[int, ...]) -> Iterator[Array]:
    """The leaves of an array in C order, unpacked one at a time."""
    left = math.prod(shape)
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            stream.read(start)
            while left:
                size = min(left, LEAF)
                data = stream.read(size * dtype.itemsize)
                if len(data) < size * dtype.itemsize:
                    raise TensorFileError("%s: %s ends early" % (path, member.filename))
                yield from leaves_of(np.frombuffer(data, dtype), dtype.newbyteorder("<"))
                left -= size
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise TensorFileError("%s: %s: %s" % (path, member.filename, error)) from None


def _fortran(path: str, member: zipfile.ZipInfo, start: int, dtype: Any, shape: Tuple[int, ...]) -> Iterator[Array]:
    """The leaves of an array in Fortran order: unpacked to disk, where they can be read across."""
    with tempfile.TemporaryFile() as spool:
        for part in _streamed(path, member, start, dtype, shape):
            spool.write(part)
        spool.flush()
        yield from _mapped(spool, 0, dtype.newbyteorder("<"), shape, "F")
