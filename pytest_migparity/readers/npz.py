"""The arrays of a hostile npz, bounded before anything is unpacked: no pickle, no bomb, no unknown member."""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from collections.abc import Collection
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .errors import ReadError, shown

MAX_VALUES = 1 << 26
"""Elements of one array, as with logs: 512 MiB in float64."""
MAX_BYTES = MAX_VALUES * 8
MAX_TEXT_BYTES = 1 << 26
_HEADER = 10_000
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_KINDS = "biufU"
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError, RuntimeError)

Arrays = dict[str, NDArray[Any]]


def read_npz(stream: BinaryIO, name: str, known: Collection[str]) -> Arrays:
    """The arrays of a seekable npz by name: bools, numbers and texts.

    Every size is held against its bound before it is unpacked. ReadError for what is no npz, cut short, encrypted,
    larger than the bounds, holds a pickle, a member twice or one that is not `known`.
    """
    try:
        archive = zipfile.ZipFile(stream)
    except _BROKEN as error:
        raise _error(name, f"no whole zip archive ({_said(error)})", "fetch the file again") from None
    with archive:
        members = archive.infolist()
        _check_members(name, members, known)
        return {member.filename.removesuffix(".npy"): _array(archive, member, name) for member in members}


def _check_members(name: str, members: list[zipfile.ZipInfo], known: Collection[str]) -> None:
    names = [member.filename for member in members]
    for member in members:
        what = shown(member.filename)
        if member.filename.removesuffix(".npy") not in known or not member.filename.endswith(".npy"):
            raise _error(name, f"a member {what}", f"leave it out; known: {', '.join(sorted(known))}")
        if names.count(member.filename) > 1:
            raise _error(name, f"two members {what}", "write the file again")
        if member.flag_bits & 1 or member.compress_type not in _METHODS:
            raise _error(name, f"{what} encrypted, or packed in another way than numpy does", "write it with numpy")
        if member.file_size > MAX_BYTES + _HEADER:
            raise _error(name, f"{what} of {member.file_size} bytes", f"at most {MAX_BYTES} bytes are read: "
                         "hand in fewer samples")
    total = sum(member.file_size for member in members)
    if total > 2 * MAX_BYTES:
        raise _error(name, f"{total} bytes when unpacked", f"at most {2 * MAX_BYTES} are read: hand in fewer samples")


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> NDArray[Any]:
    what = shown(member.filename)
    try:
        with archive.open(member) as stream:
            shape, fortran, dtype = _header(stream, name, what)
            count = math.prod(shape)
            wanted = count * dtype.itemsize
            _check_size(name, what, count, wanted, dtype)
            raw = stream.read(wanted + 1)
    except _BROKEN as error:
        if isinstance(error, ReadError):
            raise
        raise _error(name, f"{what} damaged ({_said(error)})", "fetch the file again") from None
    if len(raw) != wanted:
        raise _error(name, f"{what} with {len(raw)} bytes where its header speaks of {wanted}", "fetch the file again")
    flat = np.frombuffer(raw, dtype)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _header(stream: Any, name: str, what: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    head = io.BufferedReader(stream, _HEADER) if not hasattr(stream, "peek") else stream
    try:
        version = npy.read_magic(head)
        if version not in ((1, 0), (2, 0)):
            raise _error(name, f"{what} in npy version {version}", "write it with numpy's savez")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(head, max_header_size=_HEADER)
    except (ReadError, zipfile.BadZipFile, zlib.error):
        raise
    except (*_BROKEN, TypeError, KeyError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError) as error:
        raise _error(name, f"{what} with an npy header that cannot be read ({_said(error)})",
                     "write it with numpy's savez") from None
    if dtype.hasobject:
        raise _error(name, f"{what} of Python objects, a pickle that could run code", "write numbers or texts")
    if dtype.kind not in _KINDS or dtype.itemsize == 0 or any(length < 0 for length in shape):
        raise _error(name, f"{what} of type {dtype} and shape {shape}", "write numbers or texts")
    return shape, fortran, dtype


def _check_size(name: str, what: str, count: int, size: int, dtype: np.dtype[Any]) -> None:
    most = MAX_TEXT_BYTES if dtype.kind == "U" else MAX_BYTES
    if count > MAX_VALUES or size > most:
        raise _error(name, f"{what} with {count} elements of {dtype}", f"at most {MAX_VALUES} elements and {most} "
                     "bytes are read: hand in fewer samples")


def _said(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:120]


def _error(name: str, found: str, remedy: str) -> ReadError:
    return ReadError(name, found=found, expected="the npz that host.actions writes", remedy=remedy)
