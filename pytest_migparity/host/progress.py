"""How far a long run is, on a terminal: a bar where tqdm is installed, else a line that is written over."""

import sys
import threading
import time
from typing import Any

_EVERY = 2.0  # seconds between two looks of the plain line


class Progress:
    """Counts bytes, or another unit, of `total`, from any thread. Writes to stderr, and nothing but to a terminal."""

    def __init__(self, total: int, what: str, unit: str = "B") -> None:
        self._total, self._what, self._done = max(total, 1), what, 0
        self._lock, self._next = threading.Lock(), time.monotonic() + _EVERY
        self._unit = unit
        self._shown = sys.stderr.isatty()
        self._bar: Any = None
        if self._shown:
            try:
                from tqdm import tqdm  # type: ignore[import-untyped]
            except ImportError:
                return
            self._bar = tqdm(total=total, unit=unit, unit_scale=unit == "B", desc=what, file=sys.stderr)

    def add(self, amount: int) -> None:
        """So many bytes more are done."""
        with self._lock:
            self._done += amount
            if self._bar is not None:
                self._bar.update(amount)
            elif self._shown and time.monotonic() >= self._next:
                self._next = time.monotonic() + _EVERY
                self._line()

    def close(self) -> None:
        """The run ends, whole or not."""
        if self._bar is not None:
            self._bar.close()
        elif self._shown:
            self._line()
            sys.stderr.write("\n")

    def _line(self) -> None:
        whole = "%.1f GB" % (self._total / 1e9) if self._unit == "B" else "%d %s" % (self._total, self._unit)
        sys.stderr.write("\r%s: %3d %% of %s" % (self._what, 100 * self._done // self._total, whole))
        sys.stderr.flush()
