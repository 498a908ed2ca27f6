"""Tensors of a recording that are kept in full, as `.npy` files that numpy reads without pickles."""

import os
import re
from fnmatch import fnmatchcase
from typing import Any, Dict, Sequence

import numpy as np

from .tensors import Tensor

MOST = 1 << 28
"""Bytes that are kept of one recording."""
_PLAIN = re.compile(r"[^A-Za-z0-9_.@#-]+")


class Kept:
    """The folder of kept tensors; it is made when the first is."""

    def __init__(self, folder: str, patterns: Sequence[str]) -> None:
        self._folder, self._patterns = folder, tuple(patterns)
        self._bytes = self._count = self._left_out = 0

    def offer(self, place: str, tensor: Tensor) -> None:
        """Keep the tensor if its name is asked for and there is room: `NUMBER-PLACE-NAME.npy`.

        bfloat16 is kept as float32, which holds it exactly; float8 as its bits.
        """
        if not any(fnmatchcase(tensor.name, pattern) for pattern in self._patterns):
            return
        size = tensor.size * 8
        if self._bytes + size > MOST:
            self._left_out += 1
            return
        array = _whole(tensor)
        os.makedirs(self._folder, exist_ok=True)
        name = "%05d-%s-%s.npy" % (self._count, place, _PLAIN.sub("_", tensor.name)[:150])
        with open(os.path.join(self._folder, name), "xb") as stream:
            np.save(stream, array, allow_pickle=False)
        self._count += 1
        self._bytes += array.nbytes

    def told(self) -> Dict[str, str]:
        """What the recording says of it; nothing where nothing was asked for."""
        if not self._patterns:
            return {}
        return {"kept": "%d tensors, %d left out beyond %d MiB" % (self._count, self._left_out, MOST >> 20)}


def _whole(tensor: Tensor) -> Any:
    parts = list(tensor.leaves())
    flat = np.concatenate(parts) if parts else np.zeros(0, np.float32)
    if tensor.dtype == "bfloat16":
        flat = (flat.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return flat.reshape(tensor.shape)
