"""Two sides' episodes as pairs, in a fixed random order, with nothing dropped that a certificate should answer for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.wire.rollouts import Episode, Rollouts

Ints = NDArray[np.int64]
Key = tuple[str, int]
ORDER_KEY = "migparity L7 order 1"
SAME = ("init", "instruction", "noise")


@dataclass(frozen=True, slots=True)
class Match:
    """One (task, seed) of the union, as each side ran it; None where it did not."""

    key: Key
    a: Episode | None
    b: Episode | None

    @property
    def whole(self) -> bool:
        """Do both sides have an outcome?"""
        return all(side is not None and side.success is not None for side in (self.a, self.b))

    @property
    def difference(self) -> int:
        """Candidate - baseline of a whole match: -1, 0 or 1."""
        return _outcome(self.b, 0) - _outcome(self.a, 0)


@dataclass(frozen=True, slots=True)
class Matches:
    """All matches in the fixed order, and how many rows each side repeated (left out, since they are no new evidence).

    `stopped`: one side ended early, after a beginning of the order: what it did not run is no loss of evidence.
    """

    ordered: tuple[Match, ...]
    repeated: tuple[int, int]
    stopped: int = 0

    @property
    def whole(self) -> tuple[Match, ...]:
        """Those with two outcomes."""
        return tuple(match for match in self.ordered if match.whole)

    def one_sided(self, side: str) -> list[Match]:
        """Those that only `side` ran at all."""
        return [match for match in self.ordered if (match.b if side == "baseline" else match.a) is None]

    def against(self, certificate: str) -> tuple[Ints, Ints]:
        """(b, D) of every match, with whatever has no outcome counted against `certificate`, PASS or FAIL.

        Against PASS a missing baseline succeeded and a missing candidate failed; against FAIL the other way round.
        """
        good, bad = (1, 0) if certificate == "PASS" else (0, 1)
        b = np.array([_outcome(match.a, good) for match in self.ordered], np.int64)
        c = np.array([_outcome(match.b, bad) for match in self.ordered], np.int64)
        return b, c - b


def _outcome(episode: Episode | None, otherwise: int) -> int:
    return otherwise if episode is None or episode.success is None else int(episode.success)


def place(key: Key) -> bytes:
    """Where a key comes in the fixed order: a hash, so that other keys do not move it and nobody chooses it."""
    return hashlib.sha256(f"{ORDER_KEY}\0{key[0]}\0{key[1]}".encode("utf-8", "backslashreplace")).digest()


def match(baseline: Rollouts, candidate: Rollouts) -> Matches:
    """Pair by (task, seed); rows that repeat a seed, or the initial state of another, are one."""
    ours, again = _by_key(baseline.episodes)
    theirs, too = _by_key(candidate.episodes)
    order = sorted(ours.keys() | theirs.keys(), key=place)
    kept = [Match(key, ours.get(key), theirs.get(key)) for key in order]
    kept, same = _distinct(kept)
    stopped = 0
    for there in ("a", "b"):
        ran = [getattr(item, there) is not None for item in kept]
        if 0 < sum(ran) < len(ran) and all(before or not after for before, after in pairwise(ran)):
            stopped = len(ran) - sum(ran)
            kept = kept[: sum(ran)]
    return Matches(tuple(kept), (again + same, too + same), stopped)


def _by_key(episodes: Iterable[Episode]) -> tuple[dict[Key, Episode], int]:
    """Episodes by (task, seed), and how many rows came again. A replay takes the place of what has no outcome."""
    found: dict[Key, Episode] = {}
    repeated = 0
    for episode in episodes:
        key = (episode.task, episode.seed if episode.seed is not None else -1)
        repeated += key in found
        if key not in found or (found[key].success is None and episode.success is not None):
            found[key] = episode
    return found, repeated


def _distinct(matches: Sequence[Match]) -> tuple[list[Match], int]:
    """The first of those that start from one state of one task, and how many others there were."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for item in matches:
        states = {(item.key[0], side.init) for side in (item.a, item.b) if side is not None and side.init}
        if states & seen:
            continue
        seen |= states
        kept.append(item)
    return kept, len(matches) - len(kept)


def differing(matches: Iterable[Match]) -> dict[str, list[Match]]:
    """Matches whose sides started from another state, instruction or noise, by the field's name."""
    found: dict[str, list[Match]] = {}
    for item in matches:
        if item.a is None or item.b is None:
            continue
        for name in SAME:
            ours, theirs = getattr(item.a, name), getattr(item.b, name)
            if ours and theirs and ours != theirs:
                found.setdefault(name, []).append(item)
    return found
