"""Safetensors files and indices of shards: headers held to every rule of the format, elements mapped from the file."""

import json
import math
import os
from collections import Counter
from functools import partial
from typing import Any, Callable, Dict, List, Tuple

from .digest_numpy import storage
from .tensors import Opened, Tensor, mapped

MAX_HEADER = 1 << 24  # bytes: 100 000 tensors; what it unpacks to in memory is some thirty times as much
_DTYPES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
           "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32",
           "F64": "float64", "F8_E4M3": "float8_e4m3", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0",
           "C64": "complex64"}


class TensorFileError(ValueError):
    """A file of tensors that cannot be read; the message names the file, what was found and what was expected."""


def read_safetensors(path: str) -> List[Tensor]:
    """The tensors of one file; TensorFileError where the header breaks a rule of the format."""
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        start = stream.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > min(MAX_HEADER, size - 8):
            raise TensorFileError("%s: its header is said to be %d bytes long, and the file has %d: cut short, or no "
                                  "safetensors" % (path, length, size))
        header = _object(stream.read(length), path)
    held, at = size - 8 - length, 0
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise TensorFileError("%s: __metadata__ is not a table of strings" % path)
    tensors = []
    for name, begin, end, dtype, shape in sorted((_entry(path, *item) for item in header.items()), key=_place):
        if begin != at:
            raise TensorFileError("%s: tensor %s begins at byte %d of the data, where %d was expected: tensors that "
                                  "overlap, or leave a hole" % (path, name, begin, at))
        at = end
        leaves = partial(mapped, path, 8 + length + begin, storage(dtype), math.prod(shape))
        tensors.append(Tensor(name, dtype, shape, leaves))
    if at != held:
        raise TensorFileError("%s: its tensors take %d bytes, and %d follow the header: cut short, or grown"
                              % (path, at, held))
    return tensors


def _place(entry: Tuple[str, int, int, str, Tuple[int, ...]]) -> Tuple[int, int]:
    return entry[1], entry[2]


def _object(data: bytes, path: str) -> Dict[str, Any]:
    """A JSON object in which no key is given twice."""
    def unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        table = dict(pairs)
        if len(table) < len(pairs):
            ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
            raise TensorFileError("%s: %.80r is given twice" % (path, twice))
        return table

    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=unique)
    except TensorFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise TensorFileError("%s: its table of tensors is not JSON: %s" % (path, error)) from None
    if not isinstance(value, dict):
        raise TensorFileError("%s: its table of tensors is not an object" % path)
    return value


def _entry(path: str, name: str, entry: Any) -> Tuple[str, int, int, str, Tuple[int, ...]]:
    """(name, begin, end, dtype, shape) of one tensor of the header."""
    where = "%s: tensor %.80r" % (path, name)
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise TensorFileError(where + " has not just dtype, shape and data_offsets")
    dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise TensorFileError(where + " has dtype %.40r, expected one of %s" % (entry["dtype"], ", ".join(_DTYPES)))
    for key in ("shape", "data_offsets"):
        if not isinstance(entry[key], list) or not all(type(value) is int and 0 <= value < 1 << 63
                                                       for value in entry[key]):
            raise TensorFileError(where + " has %s %.80r" % (key, entry[key]))
    if len(entry["data_offsets"]) != 2 or len(entry["shape"]) > 64:
        raise TensorFileError(where + " has %d offsets and %d dimensions"
                              % (len(entry["data_offsets"]), len(entry["shape"])))
    (begin, end), wanted = entry["data_offsets"], math.prod(entry["shape"]) * int(storage(dtype).itemsize)
    if end - begin != wanted:
        raise TensorFileError(where + " takes %d bytes, and %s %s needs %d"
                              % (end - begin, entry["dtype"], entry["shape"], wanted))
    return name, begin, end, dtype, tuple(entry["shape"])


def read_index(path: str, suffix: str = ".safetensors",
               read: Callable[[str], List[Tensor]] = read_safetensors) -> Opened:
    """The tensors of all shards that `*.safetensors.index.json` names: those, and no others.

    `suffix` and `read` are for shards of another format.
    """
    if os.path.getsize(path) > MAX_HEADER:
        raise TensorFileError("%s is larger than %d bytes" % (path, MAX_HEADER))
    with open(path, "rb") as stream:
        index = _object(stream.read(MAX_HEADER), path)
    named = index.get("weight_map")
    if not isinstance(named, dict) or not all(isinstance(shard, str) for shard in named.values()):
        raise TensorFileError("%s: \"weight_map\" is not a table of tensor and shard" % path)
    tensors: List[Tensor] = []
    files = [path]
    for shard in sorted(set(named.values())):
        if os.path.basename(shard) != shard or not shard.endswith(suffix):
            raise TensorFileError("%s names the shard %.80r, expected a %s file beside it" % (path, shard, suffix))
        file = os.path.join(os.path.dirname(path), shard)
        if not os.path.isfile(file):
            raise TensorFileError("%s names the shard %s, which is not there" % (path, shard))
        held = read(file)
        listed, found = {name for name, value in named.items() if value == shard}, {tensor.name for tensor in held}
        if listed != found:
            raise TensorFileError("%s: shard %s and the index differ in tensor %.80r, which only %s has" % (
                path, shard, min(listed ^ found), "the index" if min(listed ^ found) in listed else "the shard"))
        tensors += held
        files.append(file)
    return Opened(tensors, tuple(files))
