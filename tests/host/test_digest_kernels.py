"""Every kernel gives the bits of the numpy kernel, whose own values tests/host/test_digest.py holds against formulas."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from pytest_migparity.host import digest_kernels, digest_numpy
from pytest_migparity.host.digest import measured
from pytest_migparity.host.tensors import of_array

DTYPES = ("float32", "bfloat16", "float16", "float64", "int64", "int8", "bool", "float8_e4m3")
SIZES = (1, 255, 256, 4095, 4096, 4097, 65535, 65537, (1 << 20) - 1, 1 << 20)
SPECIAL = {"plain": lambda x: x, "zeros": lambda x: np.where(np.arange(x.size) % 3, x, -0.0), "all zero": np.zeros_like,
           "NaN": lambda x: with_one(x, np.nan), "Inf": lambda x: with_one(x, -np.inf), "denormal": lambda x: x * 1e-41,
           "huge": lambda x: x * 1e20, "tiny": lambda x: x * 1e-16, "equal": lambda x: np.full_like(x, 0.5)}


def with_one(x, value):
    x = x.copy()
    x[x.size // 2] = value
    return x


def elements(dtype, size, special="plain"):
    drawn = np.random.default_rng([size, len(special)]).standard_t(3, size) * 0.02
    with np.errstate(all="ignore"):
        x = SPECIAL[special](drawn).astype(np.float32)
        if dtype == "bfloat16":
            return (x.view(np.uint32) >> 16).astype(np.uint16)
        if dtype in ("float16", "float64"):
            return x.astype(dtype)
    if dtype == "float32":
        return x
    whole = np.random.default_rng(size).integers(-100, 100, size)
    return (whole > 0).astype(np.uint8) if dtype == "bool" else whole.astype("u1" if dtype[:5] == "float" else dtype)


def bits(leaf):
    """A leaf as something that compares by bits: -0 is not 0, and NaN is itself."""
    if leaf is None:
        return None
    numbers = np.array([leaf.total, leaf.squares, leaf.low, leaf.high, *leaf.lanes])
    return numbers.tobytes(), leaf.zeros, leaf.nans, leaf.infs, leaf.multiset


@pytest.fixture(params=["digest_numba", "digest_torch"])
def kernel(request):
    pytest.importorskip(request.param.removeprefix("digest_"))
    return pytest.importorskip(f"pytest_migparity.host.{request.param}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_a_kernel_gives_the_same_bits_for_every_dtype_and_size(kernel, dtype, size):
    held = elements(dtype, size)
    for first in (0, 3 << 20):
        assert bits(kernel.measure(held, dtype, first)) == bits(digest_numpy.measure(held, dtype, first))


@pytest.mark.parametrize("dtype", DTYPES[:4])
@pytest.mark.parametrize("special", SPECIAL)
def test_a_kernel_gives_the_same_bits_for_numbers_that_float32_trees_cannot_hold(kernel, dtype, special):
    for size in (255, 70001):
        held = elements(dtype, size, special)
        assert bits(kernel.measure(held, dtype, 1 << 20)) == bits(digest_numpy.measure(held, dtype, 1 << 20))


def test_the_compiled_kernel_shows_the_hash_every_element_once_and_in_order():
    numba = pytest.importorskip("pytest_migparity.host.digest_numba", exc_type=ImportError)
    for dtype, size in (("float32", 300001), ("bfloat16", 999999), ("int64", 5), ("float16", 4096)):
        held, state = elements(dtype, size), hashlib.sha256()
        numba.measure(held, dtype, 0, state.update)
        assert state.digest() == hashlib.sha256(held.tobytes()).digest()


@pytest.mark.parametrize("missing, left", [((), "digest_numba"), (("digest_numba",), "digest_torch"),
                                           (("digest_numba", "digest_torch"), "digest_numpy")])
def test_the_fastest_kernel_that_is_installed_is_taken(monkeypatch, missing, left):
    for package in ("numba", "torch"):
        pytest.importorskip(package)
    real = digest_kernels.importlib.import_module

    def imported(name, package=None):
        if name.lstrip(".") in missing:
            raise ImportError(name)
        return real(name, package)

    monkeypatch.setattr(digest_kernels, "_chosen", [])
    monkeypatch.setattr(digest_kernels.importlib, "import_module", imported)
    assert digest_kernels.fastest().__module__ == f"pytest_migparity.host.{left}"
    big, seen = elements("float32", 1 << 17), hashlib.sha256()
    leaf = digest_kernels.measure(big, "float32", 0, seen.update)
    assert bits(leaf) == bits(digest_numpy.measure(big, "float32", 0))
    assert seen.digest() == hashlib.sha256(big.tobytes()).digest()


def test_threads_change_no_bit_of_a_tensor_of_several_leaves(monkeypatch):
    array = elements("float32", (1 << 21) + 12345)
    found = []
    for cores in (1, 2):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        found.append(measured(of_array("t", array), level=1, algorithm="sha256"))
    one, two = found
    assert one.hashes == two.hashes == tuple(hashlib.sha256(array[start:start + (1 << 20)].tobytes()).digest()
                                             for start in range(0, array.size, 1 << 20))
    assert [bits(leaf) for leaf in one.parts] == [bits(leaf) for leaf in two.parts]
