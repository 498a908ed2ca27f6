"""The policy's own process: one model on one device, asked by many workers over a local socket or a websocket.

    python -m pytest_migparity.rollouts.server --policy MODULE:FACTORY --rows N (--socket PATH | --port N)

The first line on stdout says where it listens. It remembers nothing of an episode: a request that is asked again, after
either end was restarted, gets the same answer.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

from pytest_migparity.core.errors import UserError

from .batching import Batcher
from .contract import Policy, factory
from .frames import MAX_BYTES, FrameError, from_frame, to_frame
from .noise import digest_of

_LENGTH = struct.Struct("<Q")
HELLO = "hello"
_SWITCH = 1e-4  # seconds: a thread that has an answer must not wait 5 ms for the one that computes the next


def answer(frame: bytes, policy: Policy, batcher: Batcher) -> bytes:
    """The reply to one message: what the policy is, or a chunk, with the digest of the noise that it was made from."""
    try:
        head, arrays = from_frame(frame)
        if head.get("ask") == HELLO:
            return to_frame({"noise_shape": list(policy.noise_shape), "executed": policy.executed}, {})
        noise = arrays.pop("noise")
        chunk = batcher.ask(arrays, noise)
    except FrameError as error:
        return to_frame({"error": str(error)}, {})
    except Exception as error:  # the policy is the user's code: its mistake is told to the worker, not ours to die of
        return to_frame({"error": f"{type(error).__name__}: {error}"[:2000]}, {})
    return to_frame({"seed": head.get("seed"), "query": head.get("query"), "noise": digest_of(noise)}, {"chunk": chunk})


def send(stream: socket.socket, frame: bytes) -> None:
    """One message, its length first."""
    stream.sendall(_LENGTH.pack(len(frame)) + frame)


def receive(stream: socket.socket) -> bytes:
    """One message; ConnectionError where the other end is gone, FrameError where it is too large."""
    (size,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    if size > MAX_BYTES:
        raise FrameError(f"a message of {size} bytes, at most {MAX_BYTES} are read")
    return _exactly(stream, size)


def _exactly(stream: socket.socket, size: int) -> bytes:
    parts, missing = [], size
    while missing:
        part = stream.recv(min(missing, 1 << 20))
        if not part:
            raise ConnectionError("the other end is gone")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def serve_socket(path: str, reply: Callable[[bytes], bytes], ready: Callable[[str], None]) -> None:
    """Answer workers of this machine until the process is ended; a thread for each of them."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen()
        ready(path)
        while True:
            stream, _ = listener.accept()
            threading.Thread(target=_converse, args=(stream, reply), daemon=True).start()


def _converse(stream: socket.socket, reply: Callable[[bytes], bytes]) -> None:
    with stream:
        try:
            while True:
                send(stream, reply(receive(stream)))
        except (ConnectionError, FrameError):
            return


def serve_websocket(port: int, reply: Callable[[bytes], bytes], ready: Callable[[str], None]) -> None:
    """Answer workers of any machine, each message a binary frame, on the loopback interface: reach it by a tunnel."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.server import ServerConnection, serve

    def converse(connection: ServerConnection) -> None:
        try:
            for frame in connection:
                connection.send(reply(frame if isinstance(frame, bytes) else frame.encode()))
        except ConnectionClosed:
            return

    with serve(converse, "127.0.0.1", port, max_size=MAX_BYTES, compression=None) as server:
        ready(f"ws://127.0.0.1:{server.socket.getsockname()[1]}")
        server.serve_forever()


def _end_with_employer() -> None:
    """Whoever started this holds its stdin open: with its end, also by a kill, the server ends."""
    while os.read(0, 1 << 16):
        pass
    os._exit(0)


def main(words: list[str] | None = None) -> int:
    """Make the policy and serve it; 4 where it cannot be made."""
    parser = argparse.ArgumentParser(prog="policy-server", description=main.__doc__)
    parser.add_argument("--policy", required=True, help="MODULE:FACTORY")
    parser.add_argument("--rows", type=int, default=1, help="rows of a batch")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", help="path of a local socket")
    where.add_argument("--port", type=int, help="port of a websocket; 0 for any that is free")
    asked = parser.parse_args(words)
    said = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the policy prints must not stand in between
    try:
        policy: Any = factory(asked.policy, "--policy")()
        lacking = [name for name in ("noise_shape", "executed", "act") if not hasattr(policy, name)]
        if lacking:
            raise UserError(f"--policy {asked.policy}: a {type(policy).__name__} has no {', '.join(lacking)}")
    except UserError as error:
        said.write(json.dumps({"error": str(error)}) + "\n")
        said.flush()
        return 4
    sys.setswitchinterval(_SWITCH)
    batcher = Batcher(policy, max(asked.rows, 1))
    threading.Thread(target=_end_with_employer, daemon=True).start()

    def ready(place: str) -> None:
        said.write(json.dumps({"serves": place}) + "\n")
        said.flush()

    def reply(frame: bytes) -> bytes:
        return answer(frame, policy, batcher)

    if asked.socket:
        serve_socket(asked.socket, reply, ready)
    else:
        serve_websocket(asked.port, reply, ready)
    return 0


if __name__ == "__main__":
    sys.exit(main())
