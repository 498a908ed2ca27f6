"""The noise that a policy starts from: a function of (seed, query) alone, made on the CPU in float32."""

from __future__ import annotations

import hashlib

import numpy as np

from .contract import Array


def noise_of(seed: int, query: int, shape: tuple[int, ...]) -> Array:
    """Standard normal numbers for an episode's `query`-th request, counted from 0; Philox, keyed by both."""
    key = [seed & 0xFFFFFFFFFFFFFFFF, query]
    return np.random.Generator(np.random.Philox(key=np.array(key, np.uint64))).standard_normal(shape, np.float32)


def digest_of(noise: Array) -> str:
    """16 hex digits of the sha256 of its bytes."""
    return hashlib.sha256(np.ascontiguousarray(noise).tobytes()).hexdigest()[:16]


def stream_of(seed: int, shape: tuple[int, ...]) -> str:
    """What names an episode's noise: the digest of its first request's, which every later one follows from."""
    return digest_of(noise_of(seed, 0, shape)) if shape else ""
