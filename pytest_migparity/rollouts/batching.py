"""Requests of many workers answered by one policy in batches of a fixed size.

A matrix product's bits depend on its number of rows, so a batch is filled up to `rows` with copies of its last row: an
episode's actions then do not depend on who else asked at that moment.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from .contract import Array, Observation, Policy

_SHARE, _LONGEST = 0.25, 0.05  # a request waits for others this share of what an answer took, and never so many seconds


@dataclass(frozen=True, slots=True)
class Request:
    """One worker's question, and where its answer goes."""

    observation: Observation
    noise: Array
    answer: Future[Array]


class Batcher:
    """Asks the policy from one thread, with what has come in meanwhile."""

    def __init__(self, policy: Policy, rows: int) -> None:
        self._policy, self._rows = policy, rows
        self._took = 0.0
        self._waiting: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self.batches = 0
        self.requests = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ask(self, observation: Observation, noise: Array) -> Array:
        """The chunk (horizon, dimensions) for one observation; raises what the policy raised."""
        answer: Future[Array] = Future()
        self._waiting.put(Request(observation, noise, answer))
        return answer.result()

    def close(self) -> None:
        """Answer what is waiting, and stop."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch = [first, *self._more()]
            self.batches += 1
            self.requests += len(batch)
            start = time.monotonic()
            try:
                chunks = self._policy.act(*_stacked(batch, self._rows))
                self._took = time.monotonic() - start
                for row, request in enumerate(batch):
                    request.answer.set_result(np.array(chunks[row]))
            except BaseException as error:  # the worker that asked is told
                for request in batch:
                    if not request.answer.done():
                        request.answer.set_exception(error)

    def _more(self) -> list[Request]:
        found: list[Request] = []
        until = time.monotonic() + min(_SHARE * self._took, _LONGEST)
        while len(found) + 1 < self._rows:
            try:
                item = self._waiting.get(timeout=max(until - time.monotonic(), 0))
            except queue.Empty:
                break
            if item is None:
                self._waiting.put(None)
                break
            found.append(item)
        return found


def _stacked(batch: list[Request], rows: int) -> tuple[Mapping[str, Any], Array]:
    filled = [*batch, *[batch[-1]] * (rows - len(batch))]
    names = batch[0].observation.keys()
    return ({name: np.stack([request.observation[name] for request in filled]) for name in names},
            np.stack([request.noise for request in filled]))
