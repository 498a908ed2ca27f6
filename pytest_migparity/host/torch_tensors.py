"""Torch tensors as tensors to digest, from any device and of any strides. Importing this module imports torch."""

from typing import Any, Callable, Dict, Iterator, List, Optional

import torch

from .digest_device import There
from .digest_numpy import LEAF, Array, storage
from .digest_torch import KINDS, measure_tensor
from .tensors import Opened, Tensor

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_NAMES: Dict[Any, str] = {
    torch.float64: "float64", torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16",
    torch.float8_e4m3fn: "float8_e4m3", torch.float8_e5m2: "float8_e5m2", torch.bool: "bool", torch.uint8: "uint8",
    torch.int8: "int8", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64", torch.complex64: "complex64"}
_NAMES.update({getattr(torch, name): name for name in ("uint16", "uint32", "uint64") if hasattr(torch, name)})


def of_torch(name: str, tensor: Any) -> Tensor:
    """A torch tensor; its leaves come to the host one at a time, to be hashed, and are measured where it is.

    ValueError for a dtype or layout that is not digested: sparse and quantised tensors are not, nor one without storage
    (`meta` device), nor one of which this rank holds a part (DTensor).
    """
    if hasattr(tensor, "full_tensor"):
        raise ValueError("%s: this rank holds only a part of it; digest its full_tensor(), or the saved checkpoint"
                         % name)
    dtype = _NAMES.get(tensor.dtype)
    if dtype is None or tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        raise ValueError("%s: %s, %s on %s is not a tensor that is digested"
                         % (name, tensor.dtype, tensor.layout, tensor.device.type))
    there = None if tensor.device.type == "cpu" else measured_on_device(tensor.detach(), dtype)
    return Tensor(name, dtype, tuple(tensor.shape), lambda: _leaves(tensor.detach(), dtype), there)


def measured_on_device(tensor: Any, dtype: str) -> Optional[There]:
    """How leaves of a tensor are measured on its own device; None for a dtype that is measured on the host alone."""
    if dtype not in KINDS:
        return None
    return There(str(tensor.device), lambda number: measure_tensor(_leaf(tensor, number * LEAF), dtype, number * LEAF),
                 lambda array: measure_tensor(torch.from_numpy(array).to(tensor.device), "float32", 0))


def _leaf(tensor: Any, start: int) -> Any:
    """A leaf in C order, where the tensor is; of one that does not lie so a copy."""
    if tensor.is_contiguous():
        part = tensor.reshape(-1)[start:start + LEAF]
    else:
        part = _gathered(tensor, start, min(start + LEAF, tensor.numel()))
    return part.resolve_conj().resolve_neg().contiguous()


def _leaves(tensor: Any, dtype: str) -> Iterator[Array]:
    """Leaves of 2^20 elements in C order; of a tensor that does not lie so, one leaf is copied at a time."""
    kind = storage(dtype)
    for start in range(0, tensor.numel(), LEAF):
        part = _leaf(tensor, start).cpu()
        bits = part.view(torch.int64 if dtype == "complex64" else _BITS[part.element_size()])
        yield bits.numpy().view(kind)


def _gathered(tensor: Any, start: int, end: int) -> Any:
    """Elements `start` to `end`, in C order, of a tensor of any strides."""
    places = torch.arange(start, end, device=tensor.device)
    index: List[Any] = []
    for length in reversed(tensor.shape):
        index.append(places % length)
        places = torch.div(places, length, rounding_mode="floor")
    return tensor[tuple(reversed(index))]


def of_state(state: Any, prefix: str = "", make: Callable[[str, Any], Tensor] = of_torch) -> Opened:
    """The tensors of a state dict, nested dicts and lists included, under dotted names; tied ones under each name.

    What is no tensor, such as a step counter, is named as left out. `make` is given name and torch tensor.
    """
    found = Opened([])
    left_out: List[str] = []
    items = state.items() if isinstance(state, dict) else enumerate(state)
    for key, value in items:
        name = "%s%s" % (prefix, key)
        if isinstance(value, torch.Tensor):
            found.tensors.append(make(name, value))
        elif isinstance(value, (dict, list, tuple)):
            inner = of_state(value, name + ".", make)
            found.tensors.extend(inner.tensors)
            left_out += inner.left_out
        else:
            left_out.append(name)
    return found._replace(left_out=tuple(left_out))


def of_module(module: Any) -> List[Tensor]:
    """Parameters and persistent buffers of a torch module, as its state dict names them."""
    return of_state(module.state_dict()).tensors
