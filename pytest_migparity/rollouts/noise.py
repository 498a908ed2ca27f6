"""The noise that a policy starts from: a function of (seed, query) alone, made on the CPU in float32."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from .contract import Array


def noise_of(seed: int, query: int, shape: tuple[int, ...]) -> Array:
    """Standard normal numbers for an episode's `query`-th request, counted from 0; Philox, keyed by both."""
    key = [seed & 0xFFFFFFFFFFFFFFFF, query]
    return np.random.Generator(np.random.Philox(key=np.array(key, np.uint64))).standard_normal(shape, np.float32)


def digest_of(noise: Array) -> str:
    """16 hex digits of the sha256 of its bytes."""
    return hashlib.sha256(np.ascontiguousarray(noise).tobytes()).hexdigest()[:16]


def digest_of_queries(drawn: Iterable[Array]) -> str:
    """16 hex digits of all noise of an episode, in the order of its queries; empty where there was none."""
    held = [digest_of(noise) for noise in drawn]
    return hashlib.sha256("".join(held).encode()).hexdigest()[:16] if held else ""
