"""The journal of a run: every tensor's digest as soon as it is made, so that a run that was ended goes on where it was.

One line a tensor, with a checksum of its own. A line that was torn, or that belongs to other files or other settings,
is passed over, and its tensor digested again.
"""

import hashlib
import json
import os
from typing import Any, Dict, Optional, Sequence, Tuple

from ..wire.digest import Digest, DigestError, Stats, TensorDigest, check

_LONGEST_LINE = 1 << 16  # bytes


def state_of(files: Sequence[str]) -> str:
    """16 hex digits that change when one of the files does, by its path, size and time of change."""
    found = [(file, os.stat(file)) for file in sorted(map(os.path.abspath, files))]
    told = json.dumps([(file, stat.st_size, stat.st_mtime_ns) for file, stat in found])
    return hashlib.sha256(told.encode("ascii")).hexdigest()[:16]


class Journal:
    """The tensors that are done; `of` says of which files, and with which settings."""

    def __init__(self, path: str, of: str, level: int, algorithm: str) -> None:
        self._path, self._of, self._level, self._algorithm = path, of, level, algorithm
        self._done: Dict[str, TensorDigest] = {}
        self._stream: Any = None
        if os.path.exists(path):
            self._read()

    def get(self, name: str, dtype: str, shape: Tuple[int, ...]) -> Optional[TensorDigest]:
        """The digest of a tensor that was done before, or None."""
        found = self._done.get(name)
        return found if found and (found.dtype, found.shape) == (dtype, shape) else None

    def add(self, item: TensorDigest) -> None:
        """A tensor is done."""
        line = json.dumps([self._of, item]).encode("ascii")
        if self._stream is None:
            self._stream = open(self._path, "ab")  # noqa: SIM115  closed by `close`
            self._stream.write(b"\n")  # after a line that was torn
        self._stream.write(_checksum(line) + b" " + line + b"\n")
        self._stream.flush()

    def close(self) -> None:
        """Keep the file for the next run."""
        if self._stream is not None:
            self._stream.close()

    def remove(self) -> None:
        """The run is whole: its journal is not needed any more."""
        self.close()
        if os.path.exists(self._path):
            os.remove(self._path)

    def _read(self) -> None:
        with open(self._path, "rb") as stream:
            while True:
                line = stream.readline(_LONGEST_LINE)
                if not line:
                    return
                told, _, held = line.rstrip(b"\n").partition(b" ")
                item = self._item(held) if told == _checksum(held) else None
                if item is not None:
                    self._done[item.name] = item

    def _item(self, held: bytes) -> Optional[TensorDigest]:
        try:
            of, row = json.loads(held)
            item = TensorDigest(*row)
            stats = Stats(*item.stats) if item.stats is not None else None
            item = item._replace(shape=tuple(item.shape), stats=stats and stats._replace(lanes=tuple(stats.lanes)))
            check(Digest(self._level, self._algorithm, (item,)))
        except (ValueError, TypeError, DigestError, RecursionError):
            return None
        return item if of == self._of else None


def _checksum(line: Any) -> bytes:
    return hashlib.sha256(line).hexdigest()[:16].encode("ascii")
