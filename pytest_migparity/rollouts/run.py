"""A run of many episodes: workers side by side, each episode's line written as it ends, taken up again after a stop.

What is in the file already is not run again. An episode whose worker dies is tried once more, and counts as a crash if
that dies too: it is never left out.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from pytest_migparity.core.errors import UserError
from pytest_migparity.wire.rollouts import Episode, RolloutError, parse_line, to_line

from .crew import DiedError, PolicyServer, Process, one_thread_each
from .devices import rendering

_CRASHES = 4
Planned = tuple[str, int]
"""Task and seed."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to run. `server` is the address of a policy that runs elsewhere; else `policy` is started here.

    rows: the fixed size of the policy's batches. horizon: most steps of an episode.
    """

    env: str
    episodes: Sequence[Planned]
    out: Path
    policy: str = ""
    server: str = ""
    workers: int = 2
    rows: int = 0
    horizon: int = 1000
    harness: str = ""

    @property
    def batch(self) -> int:
        """Rows of a batch: as many as workers, where nothing else is asked."""
        return self.rows or self.workers


@dataclass(slots=True)
class Run:
    """A run under way: `done` in the order in which episodes ended, those of an earlier run first."""

    order: Order
    enough: Callable[[Sequence[Episode]], bool] = lambda done: False
    told: Callable[[Episode], None] = lambda episode: None
    done: list[Episode] = field(default_factory=list)
    resumed: int = 0
    torn: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _failure: BaseException | None = None

    def __call__(self) -> list[Episode]:
        """Run what is left; UserError for a mistake of the user's. `enough` may end the run early."""
        if bool(self.order.policy) is bool(self.order.server):
            raise UserError("name either --policy, which is started here, or --server, which runs elsewhere")
        left = self._left()
        if not left or self.enough(self.done):
            return self.done
        server = PolicyServer(self.order.policy, self.order.batch) if self.order.policy else None
        try:
            with self.order.out.open("ab") as stream:
                if self.torn:  # of an episode that was under way: it runs again
                    stream.truncate(self.order.out.stat().st_size - len(self.torn.encode("utf-8", "surrogateescape")))
                self._simulate(iter(left), server, stream, min(self.order.workers, len(left)))
        finally:
            if server:
                server.close()
        if self._failure is not None:
            raise self._failure
        return self.done

    def _left(self) -> list[Planned]:
        """The episodes that the file does not hold yet."""
        if len(set(self.order.episodes)) < len(self.order.episodes):
            raise UserError("an episode is planned twice: each pair of task and seed once")
        self.done, self.torn = held(self.order.out)
        self.resumed = len(self.done)
        planned = set(self.order.episodes)
        for episode in self.done:
            if episode.harness != self.order.harness or episode.horizon != self.order.horizon:
                raise UserError(f"{self.order.out} holds episodes of {episode.harness!r}, horizon {episode.horizon}; "
                                f"this run is {self.order.harness!r}, horizon {self.order.horizon}: name another --out")
            if (episode.task, episode.seed) not in planned:
                raise UserError(f"{self.order.out} holds task {episode.task}, seed {episode.seed}, which is not "
                                "planned: name another --out")
        ran = {(episode.task, episode.seed) for episode in self.done}
        return [planned for planned in self.order.episodes if planned not in ran]

    def _simulate(self, left: Iterator[Planned], server: PolicyServer | None, stream: BinaryIO, workers: int) -> None:
        threads = [threading.Thread(target=self._employ, args=(number, left, server, stream))
                   for number in range(workers)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            self._stopped.set()
            for thread in threads:
                thread.join()
            raise

    def _employ(self, number: int, left: Iterator[Planned], server: PolicyServer | None, stream: BinaryIO) -> None:
        """One worker's thread: gives it episodes, and another process where it dies."""
        process: Process | None = None
        try:
            settings = {**one_thread_each(), **rendering(number, os.environ)}
            process = Process([
                "pytest_migparity.rollouts.worker", "--env", self.order.env, "--server",
                server.address if server else self.order.server, "--horizon", str(self.order.horizon), "--harness",
                self.order.harness], settings)
            process.start()
            while not self._stopped.is_set():
                with self._lock:
                    planned = next(left, None)
                if planned is None:
                    return
                episode = self._episode(process, planned, server)
                with self._lock:
                    stream.write(to_line(episode).encode("utf-8"))
                    stream.flush()
                    self.done.append(episode)
                    self.told(episode)
                    self._hopeless()
                    if self.enough(self.done):
                        self._stopped.set()
        except BaseException as error:
            self._failure = self._failure or error
            self._stopped.set()
        finally:
            if process is not None:
                process.stop()

    def _hopeless(self) -> None:
        """UserError where every episode crashed from the first on: 200 lines of one mistake help nobody."""
        new = self.done[self.resumed:]
        if len(new) == _CRASHES and len(self.order.episodes) > _CRASHES and all(one.error == "crash" for one in new):
            raise UserError(f"the first {_CRASHES} episodes all crashed, the last with: {new[-1].reason}; mend it, "
                            f"move {self.order.out} away, and run again")

    def _episode(self, process: Process, planned: Planned, server: PolicyServer | None) -> Episode:
        why = ""
        for _ in range(2):
            try:
                process.tell({"task": planned[0], "seed": planned[1]})
                return parse_line(process.hear(), 1)
            except DiedError as error:
                why = str(error)
                if server is not None and server.failed:
                    raise UserError(f"the policy server died again and again, the last time with: {server.failed}; the "
                                    "episodes that ended are kept: run the same command again") from None
                process.stop()
                process.start()
        return Episode(planned[0], planned[1], None, error="crash", harness=self.order.harness,
                       horizon=self.order.horizon, reason=why[:500])


def held(out: Path) -> tuple[list[Episode], str]:
    """(the whole lines of a file as episodes, what a stop left of one more). UserError names the line that is none."""
    if not out.exists():
        return [], ""
    text = out.read_bytes().decode("utf-8", "surrogateescape")
    *lines, torn = text.split("\n")
    try:
        return [parse_line(line, number) for number, line in enumerate(lines, 1)], torn
    except RolloutError as error:
        raise UserError(f"{out}: {error}; name another --out") from None


def planned_in(path: Path) -> list[Planned]:
    """The episodes of a plan, a JSON list of `{"task": ..., "seed": ...}`; UserError names what is wrong."""
    try:
        rows = json.loads(path.read_text("utf-8"))
        if not isinstance(rows, list) or not rows:
            raise ValueError("it is no list, or an empty one")
        return [(str(row["task"]), int(row["seed"])) for row in rows]
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path}: expected a JSON list of {{\"task\": ..., \"seed\": ...}}: {error!r}") from None
