"""Which kernel measures a leaf: numba's where it is installed, else torch's, else numpy's. The bits are the same."""

import importlib
from typing import Callable, Optional

from . import digest_numpy
from .digest_numpy import Array, Leaf

_WORTH_IT = 1 << 16  # elements; what compiling or dispatching costs is not won back by less
_PREFERRED = ("digest_numba", "digest_torch")

Measure = Callable[..., Optional[Leaf]]
_chosen: "list[Measure]" = []


def measure(elements: Array, dtype: str, first: int, seen: Callable[[Array], object]) -> Optional[Leaf]:
    """`digest_numpy.measure` by the fastest kernel of this host; `seen` is given all elements, in order."""
    kernel: Measure = digest_numpy.measure if elements.size < _WORTH_IT else fastest()
    if kernel.__module__.endswith("digest_numba"):
        return kernel(elements, dtype, first, seen)
    seen(elements)
    return kernel(elements, dtype, first)


def fastest() -> Measure:
    """The kernel for large leaves, chosen once."""
    if not _chosen:
        for name in _PREFERRED:
            try:
                _chosen.append(importlib.import_module("." + name, __package__).measure)
                break
            except ImportError:
                continue
        else:
            _chosen.append(digest_numpy.measure)
    return _chosen[0]
