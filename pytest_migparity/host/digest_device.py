"""Leaves measured on the device that holds the tensor, where that device is known to reach the host's bits.

The content hash needs the bytes on the host in any case; statistics and sketch do not. A device whose arithmetic
differs (denormals flushed to zero, another rounding) would make two digests of one tensor differ: each device first
measures a leaf made for that, and one that does not agree with the host to the bit is not asked again.
"""

from typing import Callable, Dict, NamedTuple, Optional

import numpy as np

from . import digest_numpy
from .digest_numpy import Array, Leaf

_agrees: Dict[str, bool] = {}


class There(NamedTuple):
    """How leaves are measured on a device: its name, the leaf of this tensor by its number, and any float32 array.

    Both measures are None where float32 would not do.
    """

    device: str
    measure: Callable[[int], Optional[Leaf]]
    probe: Callable[[Array], Optional[Leaf]]


def measured_there(there: There, number: int, here: Callable[[], Optional[Leaf]]) -> Optional[Leaf]:
    """The leaf of this number, by the device where it agrees with the host, else by `here`."""
    if there.device not in _agrees:
        array = probe()
        _agrees[there.device] = _same(there.probe(array), digest_numpy.measure(array, "float32", 0))
    found = there.measure(number) if _agrees[there.device] else None
    return here() if found is None else found


def probe() -> Array:
    """Numbers that tell one arithmetic from another: of all sizes down to denormals, both zeros, sums that cancel."""
    random = np.random.default_rng(7)
    array = (random.standard_normal(3 * 4096 + 77) * 10.0 ** random.integers(-44, 6, 3 * 4096 + 77)).astype(np.float32)
    array[100:4096] = random.standard_normal(3996)
    array[5:9] = 0.0, -0.0, np.float32(1e-45), np.float32(-1e-40)
    return array


def _same(one: Optional[Leaf], other: Optional[Leaf]) -> bool:
    return one is not None and other is not None and all(map(np.array_equal, one, other))
