"""How far a long run is, on a terminal: a bar where tqdm is installed, else a line that is written over."""

import sys
import threading
import time
from typing import Any

_EVERY = 2.0  # seconds between two looks of the plain line


class Progress:
    """Counts bytes of `total`, from any thread. Writes to stderr, and nothing where that is no terminal."""

    def __init__(self, total: int, what: str) -> None:
        self._total, self._what, self._done = max(total, 1), what, 0
        self._lock, self._next = threading.Lock(), time.monotonic() + _EVERY
        self._shown = sys.stderr.isatty()
        self._bar: Any = None
        if self._shown:
            try:
                from tqdm import tqdm  # type: ignore[import-untyped]
            except ImportError:
                return
            self._bar = tqdm(total=total, unit="B", unit_scale=True, desc=what, file=sys.stderr)

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
        sys.stderr.write("\r%s: %3d %% of %.1f GB" % (self._what, 100 * self._done // self._total, self._total / 1e9))
        sys.stderr.flush()
