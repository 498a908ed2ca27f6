"""A worker's end of the conversation with the policy: asks, checks that its noise was used, asks after a restart."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Protocol

from .contract import Array
from .frames import MAX_BYTES, FrameError, from_frame, to_frame
from .noise import digest_of
from .server import HELLO, receive, send

PATIENCE = 60.0
"""Seconds in which a policy server that went away must be back."""


class PolicyError(RuntimeError):
    """The policy server answered with an error, or not what was asked."""


class _Line(Protocol):
    def exchange(self, frame: bytes) -> bytes: ...

    def close(self) -> None: ...


class Client:
    """Asks the policy at `address`: the path of a local socket, or `ws://HOST:PORT`."""

    def __init__(self, address: str, patience: float = PATIENCE) -> None:
        self._address, self._patience = address, patience
        self._line: _Line | None = None
        head, _ = self._exchange({"ask": HELLO}, {})
        try:
            self.noise_shape = tuple(int(size) for size in head["noise_shape"])
            self.executed = int(head["executed"])
        except (KeyError, TypeError, ValueError):
            raise PolicyError(f"{address} is no policy server of ours: it does not say noise_shape and "
                              "executed") from None

    def ask(self, observation: Mapping[str, Array], noise: Array, seed: int, query: int) -> Array:
        """The chunk for one observation; PolicyError where it was not made from this noise, seed and query."""
        head, arrays = self._exchange({"ask": "act", "seed": seed, "query": query}, {**observation, "noise": noise})
        if (head.get("seed"), head.get("query")) != (seed, query):
            raise PolicyError(f"the policy server answered episode {head.get('seed')!r}, query {head.get('query')!r}; "
                              f"asked was {seed}, {query}")
        if head.get("noise") != digest_of(noise):
            raise PolicyError("the policy server did not start from the noise it was sent: its episodes cannot be "
                              "paired with another run's")
        if "chunk" not in arrays:
            raise PolicyError("the policy server's answer holds no chunk of actions")
        return arrays["chunk"]

    def close(self) -> None:
        """Hang up."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def _exchange(self, head: Mapping[str, Any],
                  arrays: Mapping[str, Array]) -> tuple[dict[str, Any], dict[str, Array]]:
        frame = to_frame(head, arrays)
        until = time.monotonic() + self._patience
        while True:
            try:
                if self._line is None:
                    self._line = _connected(self._address)
                found = from_frame(self._line.exchange(frame))
                break
            except OSError as error:
                self.close()
                if time.monotonic() > until:
                    raise PolicyError(f"{self._address} does not answer: {error}") from None
                time.sleep(0.05)
            except FrameError as error:
                raise PolicyError(f"{self._address}: {error}") from None
        if "error" in found[0]:
            raise PolicyError(f"the policy failed: {found[0]['error']}")
        return found


def _connected(address: str) -> _Line:
    return _Websocket(address) if address.startswith(("ws://", "wss://")) else _Socket(address)


class _Socket:
    def __init__(self, path: str) -> None:
        self._stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._stream.connect(path)

    def exchange(self, frame: bytes) -> bytes:
        send(self._stream, frame)
        return receive(self._stream)

    def close(self) -> None:
        self._stream.close()


class _Websocket:
    def __init__(self, url: str) -> None:
        from websockets.exceptions import InvalidHandshake, InvalidURI
        from websockets.sync.client import connect

        self._open = ExitStack()
        try:
            self._connection = self._open.enter_context(connect(url, max_size=MAX_BYTES, compression=None))
        except (InvalidHandshake, InvalidURI) as error:
            raise PolicyError(f"{url}: {error}") from None

    def exchange(self, frame: bytes) -> bytes:
        from websockets.exceptions import ConnectionClosed

        self._open = ExitStack()
        try:
            self._connection.send(frame)
            reply = self._connection.recv()
        except ConnectionClosed as error:
            raise ConnectionError(str(error)) from None
        return reply if isinstance(reply, bytes) else reply.encode()

    def close(self) -> None:
        self._open.close()
