"""A message between a worker and a policy, over a socket or a websocket: one line of JSON, then arrays as they are.

Nothing is unpickled; sizes are held against what is there before anything is made of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .contract import Array

MAX_BYTES = 1 << 28
_KINDS = "biuf"


class FrameError(ValueError):
    """A message that breaks the rules: the peer is no policy server of ours, or another version."""


def to_frame(head: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """A message of plain values and arrays by name."""
    held = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    table = {name: [array.dtype.newbyteorder("<").str, list(array.shape)] for name, array in held.items()}
    line = json.dumps({"head": dict(head), "arrays": table}).encode("utf-8")
    return b"\n".join([line, b"".join(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
                                      for array in held.values())])


def from_frame(frame: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """(plain values, arrays by name); FrameError for anything that `to_frame` does not make."""
    line, _, rest = frame.partition(b"\n")
    try:
        data = json.loads(line.decode("utf-8"))
        head, table = data["head"], data["arrays"]
        kinds = {name: (np.dtype(kind), tuple(shape)) for name, (kind, shape) in table.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FrameError(f"not a message of a rollout: {str(error)[:120]}") from None
    arrays: dict[str, Array] = {}
    at = 0
    for name, (kind, shape) in kinds.items():
        if kind.kind not in _KINDS or not all(type(size) is int and 0 <= size < 1 << 31 for size in shape):
            raise FrameError(f"array {name[:80]!r}: {kind} {shape!r:.80} is no array of numbers")
        size = math.prod(shape) * kind.itemsize
        if size > len(rest) - at:
            raise FrameError(f"array {name[:80]!r}: {size} bytes are announced, {len(rest) - at} are there")
        arrays[name] = np.frombuffer(rest, kind, math.prod(shape), at).reshape(shape)
        at += size
    if at != len(rest) or not isinstance(head, dict):
        raise FrameError(f"{len(rest) - at} bytes more than its arrays take")
    return head, arrays
