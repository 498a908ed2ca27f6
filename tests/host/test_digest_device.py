"""Leaves measured where a tensor is: the host's bits, or the host itself."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pytest_migparity.host import digest_device  # noqa: E402
from pytest_migparity.host.digest import digest_tensor  # noqa: E402
from pytest_migparity.host.digest_device import There  # noqa: E402
from pytest_migparity.host.tensors import of_array  # noqa: E402
from pytest_migparity.host.torch_tensors import measured_on_device, of_torch  # noqa: E402

SIZE = (1 << 20) + 12345


@pytest.fixture(autouse=True)
def no_device_is_known(monkeypatch):
    monkeypatch.setattr(digest_device, "_agrees", {})


def on_device(tensor):
    """A tensor of the CPU, digested as one of another device is: torch there, and the host for the first leaf."""
    found = of_torch("w", tensor)
    return found._replace(there=measured_on_device(tensor, found.dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("turned", [False, True], ids=["as it lies", "transposed"])
def test_a_tensor_on_a_device_has_the_digest_of_the_same_on_the_host(dtype, turned):
    tensor = torch.randn(5, SIZE // 5, generator=torch.Generator().manual_seed(1)).to(dtype)
    tensor = tensor.t() if turned else tensor
    one, other = (digest_tensor(each, level=1, algorithm="sha256") for each in (of_torch("w", tensor), on_device(tensor)))
    assert one == other
    assert digest_device._agrees == {"cpu": True}


@pytest.mark.parametrize("spoil", ["one NaN", "too large"])
def test_what_float32_does_not_hold_is_measured_on_the_host(spoil):
    tensor = torch.ones(SIZE)
    tensor[SIZE - 1] = float("nan") if spoil == "one NaN" else 1e30
    one, other = (digest_tensor(each, level=1, algorithm="sha256") for each in (of_torch("w", tensor), on_device(tensor)))
    assert one == other


def test_a_device_that_rounds_otherwise_is_found_out_and_never_asked():
    """It flushes denormals to zero, which this tensor does not even hold."""
    array = np.random.default_rng(0).standard_normal(3 << 20).astype(np.float32)
    asked = []

    def flushed(part):
        held = torch.from_numpy(part.copy())
        held[held.abs() < 2.0**-126] = 0
        return measured_on_device(held, "float32").measure(0)

    honest = of_array("w", array)
    there = There("npu:0", asked.append, flushed)
    assert digest_tensor(honest._replace(there=there), level=1, algorithm="sha256") == \
        digest_tensor(honest, level=1, algorithm="sha256")
    assert (asked, digest_device._agrees) == ([], {"npu:0": False})


def test_integers_are_measured_on_the_host_alone():
    assert measured_on_device(torch.arange(5), "int64") is None
