"""One column of some parquet files as a tensor, read a few rows at a time. Needs pyarrow.

A column of numbers, or of lists of numbers of one known length, is a tensor of them. Any other (text, images within the
file, lists of varying length) is a tensor of the sha256 of each row, 32 bytes a row; of a row without a value, zeros.
"""

import hashlib
import json
import math
import os
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .digest_numpy import LEAF, Array, storage
from .safetensors_files import TensorFileError
from .tensors import Tensor, regrouped

_ROWS = 1024  # read at a time of a column that is hashed by rows


def schema_of(paths: Sequence[str]) -> Tuple[List[Tuple[str, Any]], int]:
    """([(column, arrow type)], rows of all files); TensorFileError where a file is torn or differs from the first."""
    first: Optional[List[Tuple[str, Any]]] = None
    rows = 0
    for path in paths:
        with _opened(path) as file:
            columns = [(field.name, field.type) for field in file.schema_arrow]
            rows += file.metadata.num_rows
        if len({name for name, _ in columns}) < len(columns):
            raise TensorFileError("%s has two columns of one name" % path)
        first = first or columns
        if columns != first:
            name, kind = next(item for item in [*columns, *first] if (item in columns) is not (item in first))
            raise TensorFileError("%s and %s differ in their columns, in %.200s (%s)"
                                  % (path, os.path.basename(paths[0]), name, kind))
    return first or [], rows


def column_tensor(paths: Sequence[str], rows: int, name: str, column: str, kind: Any,
                  shape: Optional[Tuple[int, ...]]) -> Tensor:
    """The tensor `name` of a column of arrow type `kind`; `shape` is that of a row, where it is known."""
    lengths, inner = _lengths(kind, shape)
    dtype = _dtype(inner)
    if dtype is None or lengths is None:
        return Tensor(name, "uint8", (rows, 32), lambda: regrouped(_row_hashes(paths, column)))
    return Tensor(name, dtype, (rows, *lengths), lambda: regrouped(_numbers(paths, column, dtype or "", lengths or ())))


def _lengths(kind: Any, shape: Optional[Tuple[int, ...]]) -> Tuple[Optional[Tuple[int, ...]], Any]:
    """(the length of a row's lists, from the outermost on, or None where one is not known; what they hold)."""
    import pyarrow

    lengths: List[int] = []
    while True:
        if isinstance(kind, pyarrow.BaseExtensionType):
            kind = kind.storage_type
        if pyarrow.types.is_fixed_size_list(kind):
            lengths.append(kind.list_size)
        elif pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
            if shape is None or len(shape) <= len(lengths):
                return None, kind
            lengths.append(shape[len(lengths)])
        else:
            return tuple(lengths), kind
        kind = kind.value_type


def _dtype(kind: Any) -> Optional[str]:
    name = {"halffloat": "float16", "float": "float32", "double": "float64"}.get(str(kind), str(kind))
    known = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
             "float64")
    return name if name in known else None


def _numbers(paths: Sequence[str], column: str, dtype: str, lengths: Tuple[int, ...]) -> Iterator[Array]:
    """The elements of a column of numbers, some rows at a time."""
    at_once = max(LEAF // max(math.prod(lengths), 1), 1)
    for path in paths:
        row = 0
        for held in _batches(path, column, at_once):
            where = "%s: column %.200s, rows %d to %d" % (path, column, row, row + len(held))
            row += len(held)
            values = _flat(held, lengths, where)
            if values.null_count:
                raise TensorFileError("%s: numbers are missing (null), which a tensor cannot hold" % where)
            yield values.to_numpy(zero_copy_only=False).astype(storage(dtype), copy=False)


def _flat(held: Any, lengths: Tuple[int, ...], where: str) -> Any:
    """The numbers in lists, whose lengths must be those that the data set declares."""
    import pyarrow
    import pyarrow.compute

    for length in (*lengths, None):
        if isinstance(held, pyarrow.ExtensionArray):
            held = held.storage
        if length is None:
            break
        found = pyarrow.compute.unique(pyarrow.compute.list_value_length(held)).to_pylist()
        if held.null_count or any(each != length for each in found):
            raise TensorFileError("%s: lists of %s, expected %d in each row" % (where, sorted(map(str, found)), length))
        held = held.flatten()
    return held


def _row_hashes(paths: Sequence[str], column: str) -> Iterator[Array]:
    for path in paths:
        for held in _batches(path, column, _ROWS):
            digests = b"".join(_row_hash(value) for value in held.to_pylist())
            yield np.frombuffer(digests, np.uint8)


def _row_hash(value: Any) -> bytes:
    """The sha256 of a row: of its bytes or UTF-8, of an image its bytes, of other values their JSON."""
    if value is None:
        return bytes(32)
    if isinstance(value, dict) and set(value) == {"bytes", "path"}:
        value = value["bytes"] if value["bytes"] is not None else os.path.basename(value["path"] or "")
    if not isinstance(value, (bytes, str)):
        value = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(value.encode("utf-8") if isinstance(value, str) else value).digest()


def _batches(path: str, column: str, rows: int) -> Iterator[Any]:
    import pyarrow

    with _opened(path) as file:
        try:
            for batch in file.iter_batches(batch_size=rows, columns=[column], use_threads=False):
                yield batch.column(column)  # by name: `a.b` also selects a column `a` that has a field b
        except (pyarrow.ArrowException, OSError) as error:
            raise TensorFileError("%s: column %.200s: %s" % (path, column, str(error).splitlines()[0])) from None


def _opened(path: str) -> Any:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise TensorFileError("%s is a parquet file, and pyarrow is not installed here: install it" % path) from None
    try:
        return parquet.ParquetFile(path, memory_map=False, pre_buffer=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise TensorFileError("%s: no parquet file, or a torn one: %s" % (path, str(error).splitlines()[0])) from None
