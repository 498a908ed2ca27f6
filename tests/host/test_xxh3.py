"""The hash that compiled code feeds is the package's own, for any lengths in which it is fed."""

import numpy as np
import pytest

from pytest_migparity.host import digest_kernels, xxh3

xxhash = pytest.importorskip("xxhash")
pytestmark = pytest.mark.skipif(not xxh3.AVAILABLE, reason="this build of xxhash does not show its library")


@pytest.mark.parametrize("lengths", [(), (0,), (1,), (3, 1000, 17), (240, 1, 1 << 16), (1 << 18, 5)])
def test_a_state_gives_the_hash_of_the_package(lengths):
    data = np.random.default_rng(0).integers(0, 256, sum(lengths), np.uint8)
    state, start = xxh3.State(), 0
    for length in lengths:
        state.update(data[start:start + length])
        start += length
    assert state.digest() == xxhash.xxh3_128(data.tobytes()).digest()


@pytest.mark.parametrize("dtype, kind", [("float32", np.float32), ("bfloat16", np.uint16), ("float16", np.float16),
                                         ("int32", np.int32)])
@pytest.mark.parametrize("size", [5, 4096, 70001, (1 << 20) - 1])
def test_a_kernel_shows_it_every_element_once_and_in_order(dtype, kind, size):
    held = np.random.default_rng(size).integers(0, 15000, size).astype(kind)
    state = xxh3.State()
    digest_kernels.measure(held, dtype, 0, state.update)
    assert state.digest() == xxhash.xxh3_128(held.tobytes()).digest()
