"""Environment locks: `env.json`, or one `env.rankN.json` for each rank."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from pytest_migparity.core.evidence import EnvLock
from pytest_migparity.wire.env import MAX_BYTES, EnvError, parse


def read_env(files: Mapping[str, bytes]) -> EnvLock:
    """One side's environment from file name -> content, in rank order.

    Raises EnvError that names the file: no file, too large, not UTF-8, not a lock, or two locks of one rank.
    """
    if not files:
        raise EnvError("no environment lock was given")
    documents = []
    for name in sorted(files):
        raw = files[name]
        if len(raw) > MAX_BYTES:
            raise EnvError(f"{name}: larger than {MAX_BYTES} bytes")
        try:
            document = parse(raw.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise EnvError(f"{name}: not UTF-8 (byte {error.start})") from None
        except EnvError as error:
            raise EnvError(f"{name}: {error}") from None
        documents.append((document.get("rank", {}).get("rank", 0), name, document))
    documents.sort(key=lambda item: item[:2])
    for (rank, name, _), (next_rank, next_name, _) in pairwise(documents):
        if rank == next_rank:
            raise EnvError(f"{next_name}: rank {rank} was already given by {name}")
    return EnvLock(tuple(document for _, _, document in documents))
