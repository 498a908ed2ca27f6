"""Data sets in LeRobot's folders, parquet files, images and videos: is it the same data, in the same order?

Every column of `data/` is one tensor over all files, in the order of their numbers, whatever the files' cuts and
compression: episode and sample numbers among them, so that the order counts. Files of `meta/`, `images/` and `videos/`
are compared byte by byte. Parquet needs pyarrow.
"""

import json
import os
import re
from functools import partial
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from .parquet_columns import column_tensor, schema_of
from .safetensors_files import TensorFileError
from .tensors import Opened, Tensor, mapped

_MEDIA = (".avi", ".bmp", ".gif", ".jpeg", ".jpg", ".mkv", ".mov", ".mp4", ".png", ".ppm", ".tif", ".tiff", ".webm",
          ".webp")
_LARGEST_INFO = 1 << 24  # bytes


def is_media(name: str) -> bool:
    """Is a file an image or a video, by its name?"""
    return name.lower().endswith(_MEDIA)


def read_bytes(path: str, name: str) -> Tensor:
    """A file as one tensor of its bytes."""
    size = os.path.getsize(path)
    return Tensor(name, "uint8", (size,), partial(mapped, path, 0, np.dtype("u1"), size))


def read_dataset(folder: str) -> Opened:
    """What is in a folder with `meta/info.json`, LeRobot's versions 2 and 3; TensorFileError where it is not whole.

    `data/COLUMN` for each column, and `meta/...`, `images/...` and `videos/...` for each file.
    """
    info = _info(os.path.join(folder, "meta", "info.json"))
    features = info.get("features")
    if not isinstance(features, dict) or not all(isinstance(value, dict) for value in features.values()):
        raise TensorFileError("%s: \"features\" is not a table of columns" % os.path.join(folder, "meta", "info.json"))
    data = [path for path in _files(folder, "data") if path.endswith(".parquet")]
    if not data:
        raise TensorFileError("%s: its folder data/ holds no parquet file" % folder)
    columns = read_parquet([os.path.join(folder, path) for path in data], "data",
                           {name: _shape(value) for name, value in features.items()})
    rows = columns[0].shape[0] if columns else 0
    if isinstance(info.get("total_frames"), int) and rows != info["total_frames"]:
        raise TensorFileError("%s: data/ has %d rows, and meta/info.json speaks of %d frames: not whole, or not all of "
                              "it" % (folder, rows, info["total_frames"]))
    others = [path for room in ("meta", "images", "videos") for path in _files(folder, room)]
    for key in [name for name, value in features.items() if value.get("dtype") == "video"]:
        if not any(path.startswith("videos/") and key in path.split("/") for path in others):
            raise TensorFileError("%s: meta/info.json names the video %.200s, and videos/ holds none of it"
                                  % (folder, key))
    return Opened(columns + [read_bytes(os.path.join(folder, path), path) for path in others],
                  tuple(os.path.join(folder, path) for path in data + others))


def read_parquet(paths: Sequence[str], name: str, shapes: Any = None) -> List[Tensor]:
    """The columns of parquet files of one schema as tensors `NAME/COLUMN`, one file after the other.

    `shapes` gives the shape of a row of the columns that hold lists, where it is known.
    """
    schema, rows = schema_of(paths)
    return [column_tensor(paths, rows, "%s/%s" % (name, column), column, kind, (shapes or {}).get(column))
            for column, kind in schema]


def _info(path: str) -> Dict[str, Any]:
    try:
        with open(path, "rb") as stream:
            found = json.loads(stream.read(_LARGEST_INFO).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise TensorFileError("%s is not JSON: %s" % (path, error)) from None
    if not isinstance(found, dict):
        raise TensorFileError("%s is not a JSON object" % path)
    return found


def _shape(feature: Dict[str, Any]) -> Any:
    shape = feature.get("shape")
    lengths = isinstance(shape, list) and all(type(length) is int and length >= 0 for length in shape)
    return tuple(shape) if lengths and isinstance(shape, list) else None


def _files(folder: str, room: str) -> List[str]:
    """All files below a folder of the data set, with `/`, in the order of the numbers in their names."""
    found = []
    for place, folders, names in os.walk(os.path.join(folder, room)):
        folders[:] = [name for name in folders if not name.startswith(".")]
        here = os.path.relpath(place, folder).replace(os.sep, "/")
        found += ["%s/%s" % (here, name) for name in names if not name.startswith(".")]
    return sorted(found, key=_numbers)


def _numbers(path: str) -> Tuple[Any, ...]:
    parts = re.split(r"([0-9]+)", path)
    return (*((int(part), "") if index % 2 else (0, part) for index, part in enumerate(parts)), (0, path))
