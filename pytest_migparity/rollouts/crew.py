"""The processes of a run: the policy's server, restarted where it dies, and a worker for each simulator."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pytest_migparity.core.errors import UserError

from .worker import MISTAKE

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_RESTARTS = 3
_LAST_WORDS = 4000  # characters of stderr that are kept


class DiedError(RuntimeError):
    """A process ended before it answered; the message is the last that it said."""


@dataclass(slots=True)
class Process:
    """One of our processes: JSON lines to it and from it, its last words kept."""

    arguments: list[str]
    settings: Mapping[str, str]
    _running: subprocess.Popen[str] | None = None
    _words: list[str] = field(default_factory=list)
    _listener: threading.Thread | None = None

    def start(self) -> None:
        """Begin, in a process group of its own."""
        self._words = []
        self._running = subprocess.Popen([sys.executable, "-m", *self.arguments], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
                                         errors="replace", env={**os.environ, **self.settings}, start_new_session=True)
        self._listener = threading.Thread(target=self._listen, args=(self._running.stderr,), daemon=True)
        self._listener.start()

    def _listen(self, stream: IO[str]) -> None:
        for line in stream:
            self._words.append(line)
            while sum(map(len, self._words)) > _LAST_WORDS and len(self._words) > 1:
                self._words.pop(0)

    def tell(self, document: Mapping[str, Any]) -> None:
        """Send a line; DiedError where nobody takes it."""
        assert self._running is not None
        assert self._running.stdin is not None
        try:
            self._running.stdin.write(json.dumps(document) + "\n")
            self._running.stdin.flush()
        except OSError:
            raise DiedError(self.last_words()) from None

    def hear(self) -> str:
        """The next line; DiedError, or UserError for a mistake of the user's, where it ended instead."""
        assert self._running is not None
        assert self._running.stdout is not None
        line = self._running.stdout.readline()
        if line.endswith("\n"):
            return line
        code = self._running.wait()
        if self._listener is not None:
            self._listener.join(timeout=5)
        if code == MISTAKE:
            raise UserError(self.last_words())
        raise DiedError(self.last_words() or f"ended with exit code {code}")

    def last_words(self) -> str:
        """The last line that it wrote to stderr, which of a traceback is the error."""
        return next((line.strip() for line in reversed(self._words) if line.strip()), "")

    def stop(self) -> None:
        """End it, and whatever it started."""
        if self._running is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._running.pid, signal.SIGKILL)
        self._running.wait()
        if self._listener is not None:
            self._listener.join(timeout=5)
        for stream in (self._running.stdin, self._running.stdout, self._running.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._running = None


class PolicyServer:
    """The server of a policy of this machine, watched over: a worker finds it again at the same address."""

    def __init__(self, policy: str, rows: int) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="migparity-")
        self.address = str(Path(self._home.name) / "policy")
        self._process = Process(["pytest_migparity.rollouts.server", "--policy", policy, "--rows", str(rows),
                                 "--socket", self.address], {})
        self._left, self._closed = _RESTARTS, False
        self.failed = ""
        try:
            self._begin()
        except BaseException as error:
            self._process.stop()
            self._home.cleanup()
            if isinstance(error, DiedError):
                raise UserError(f"the policy {policy} could not be made: {error}") from None
            raise
        self._watch = threading.Thread(target=self._keep, daemon=True)
        self._watch.start()

    def _begin(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.address)
        self._process.start()
        said = json.loads(self._process.hear())
        if "error" in said:
            raise UserError(str(said["error"]))

    def _keep(self) -> None:
        """Wait for its end, which comes early only where it crashed; start it again, a few times."""
        while True:
            try:
                self._process.hear()
            except (DiedError, UserError) as error:
                if self._closed:
                    return
                self._left -= 1
                if self._left < 0:
                    self.failed = str(error)
                    return
                self._process.stop()
                try:
                    self._begin()
                except (DiedError, UserError) as again:
                    self.failed = str(again)
                    return

    def close(self) -> None:
        """Stop it."""
        self._closed = True
        self._process.stop()
        self._watch.join(timeout=5)
        self._home.cleanup()


def one_thread_each() -> dict[str, str]:
    """Settings of a worker: simulators side by side, each with one thread, unless the user's say otherwise."""
    return {name: "1" for name in _THREADS if name not in os.environ}
