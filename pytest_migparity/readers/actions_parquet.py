"""Outputs in a parquet file: a row for each sample, lists of one length, the account in the schema's metadata.

Needs pyarrow. Columns have the names of the npz's members; `values` and `state` are (nested) lists of numbers.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np

from pytest_migparity.wire.actions import MAX_NAME, MEMBERS, PARQUET_KEY

from .errors import ReadError, shown
from .npz import MAX_BYTES, MAX_VALUES, Arrays

MAX_ROWS = 1 << 20
_DEPTH = 4  # axes of an action with candidates
_TEXTS = ("sample", "noise", "task", "label")


def read_parquet(stream: BinaryIO, name: str) -> Arrays:
    """The members by name. Sizes are held against the bounds of the npz before rows are read; ReadError says what."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ReadError(name, found="a parquet file", expected="pyarrow to read it with",
                        remedy="install pyarrow, or write actions.npz") from None
    try:
        head = parquet.ParquetFile(stream, memory_map=False)
        columns = [field.name for field in head.schema_arrow]
        text = (head.schema_arrow.metadata or {}).get(PARQUET_KEY.encode())
        _check(name, head.metadata, columns, text)
        file = parquet.ParquetFile(stream, memory_map=False, read_dictionary=[c for c in columns if c in _TEXTS])
        table = file.read(use_threads=False)
        arrays = {column: _array(name, column, table.column(column).combine_chunks()) for column in columns}
    except (pyarrow.ArrowException, OSError, MemoryError, ValueError) as error:
        if isinstance(error, ReadError):
            raise
        raise _error(name, f"no whole parquet file ({str(error).splitlines()[0][:120]})", "fetch it again") from None
    return {"meta": np.array(bytes(text or b"").decode("utf-8", "replace")), **arrays}


def _check(name: str, metadata: Any, columns: list[str], text: Any) -> None:
    unknown = [column for column in columns if column not in MEMBERS or column == "meta"]
    if unknown or len(set(columns)) < len(columns):
        raise _error(name, f"the column {shown(unknown[0])}" if unknown else "a column twice",
                     f"have columns {', '.join(MEMBERS[1:])} at most")
    if text is None:
        raise _error(name, f"no {PARQUET_KEY!r} in the schema's metadata", "write the document there")
    size = sum(metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups))
    values = sum(metadata.row_group(k).column(c).num_values for k in range(metadata.num_row_groups)
                 for c in range(metadata.num_columns))
    if size > MAX_BYTES or values > MAX_VALUES or metadata.num_rows > MAX_ROWS:
        raise _error(name, f"{values} values in {size} bytes", "hand in fewer samples: at most "
                     f"{MAX_VALUES} values and {MAX_BYTES} bytes are read")


def _array(name: str, column: str, held: Any) -> Any:
    import pyarrow
    import pyarrow.compute

    if column in _TEXTS:
        if held.null_count:
            raise _error(name, f"rows without {column!r}", "say it for each sample, or leave the column out")
        texts = held.dictionary if pyarrow.types.is_dictionary(held.type) else held
        if pyarrow.types.is_string(texts.type) and \
                (pyarrow.compute.max(pyarrow.compute.utf8_length(texts)).as_py() or 0) > MAX_NAME:
            raise _error(name, f"a text of more than {MAX_NAME} characters in {column!r}", "write shorter ones")
        return np.array(held.to_pylist()) if len(held) else np.zeros(0, "U1")
    shape = [len(held)]
    while pyarrow.types.is_nested(held.type):
        if held.null_count or len(shape) > _DEPTH or pyarrow.types.is_struct(held.type):
            raise _error(name, f"{column!r} of type {held.type}", "write lists of numbers of one length")
        lengths = pyarrow.compute.unique(pyarrow.compute.list_value_length(held)).to_pylist()
        if len(lengths) > 1:
            raise _error(name, f"lists of {len(lengths)} lengths in {column!r}", "write lists of one length")
        shape.append(int(lengths[0]) if lengths else 0)
        held = held.flatten()
    if held.null_count:
        raise _error(name, f"missing numbers (null) in {column!r}", "write NaN where that is what the model gave")
    numbers = held.to_numpy(zero_copy_only=False)
    return numbers.reshape(shape)


def _error(name: str, found: str, remedy: str) -> ReadError:
    return ReadError(name, found=found, expected="outputs as a parquet file", remedy=remedy)
