"""xxh3_128 that compiled code can feed: the library inside the package xxhash, called without the interpreter's lock.

Two threads that hand every piece of a leaf to the package itself wait for each other's lock more than they hash. Where
the library's functions cannot be found in the package, `AVAILABLE` is false, and the package is used as it is.
"""

import ctypes
from typing import Any

_UPDATE = "XXH3_128bits_update"
_WIDEST = _UPDATE + "_dispatch"  # where the library chooses among the vectors of x86 when it runs
_NAMES = ("XXH3_createState", "XXH3_freeState", "XXH3_128bits_reset", _UPDATE, "XXH3_128bits_digest")


class _Hash(ctypes.Structure):
    _fields_ = (("low", ctypes.c_uint64), ("high", ctypes.c_uint64))


def _library() -> Any:
    try:
        import xxhash._xxhash as package

        library = ctypes.CDLL(package.__file__)
        functions = [getattr(library, _WIDEST if name == _UPDATE and hasattr(library, _WIDEST) else name)
                     for name in _NAMES]
    except (ImportError, OSError, AttributeError):
        return None
    kinds = ((ctypes.c_size_t, 0), (ctypes.c_int, 1), (ctypes.c_int, 1), (ctypes.c_int, 3), (_Hash, 1))
    for function, (result, words) in zip(functions, kinds):
        function.restype, function.argtypes = result, (ctypes.c_size_t,) * words
    return functions


_FUNCTIONS: Any = _library()
AVAILABLE = _FUNCTIONS is not None
_NONE: Any = (None,) * len(_NAMES)
_create, _free, _reset, UPDATE, _digest = _FUNCTIONS or _NONE


class State:
    """A hash under way. `UPDATE(address, first byte's address, bytes)` is what `update` calls."""

    def __init__(self) -> None:
        self.address = _create()
        if not self.address:
            raise MemoryError("no memory for the state of a hash")
        _reset(self.address)

    def update(self, elements: Any) -> None:
        """Take in the bytes of a contiguous numpy array."""
        UPDATE(self.address, elements.ctypes.data, elements.nbytes)

    def digest(self) -> bytes:
        """The hash of all bytes so far, as `xxhash.xxh3_128.digest` writes it."""
        found = _digest(self.address)
        return int(found.high << 64 | found.low).to_bytes(16, "big")

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            _free(self.address)
