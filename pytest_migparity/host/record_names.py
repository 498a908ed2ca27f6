"""Tensors in what a module is given or returns, under dotted names, and the masks of what counts in them.

Importing this module imports torch.
"""

import dataclasses
from collections.abc import Mapping as Table
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

import torch

Mask = Any
"""Which elements of a tensor count: a tensor, a function without arguments that gives one, or the name of a recorded
input that is one. Of the tensor's shape or its leading dimensions; integers of one dimension are lengths."""


def tensors_in(items: Iterable[Tuple[Any, Any]], prefix: str = "") -> List[Tuple[str, Any]]:
    """Every tensor in nested tables, lists, tuples, data classes and namespaces, as `batch.image.0`."""
    found: List[Tuple[str, Any]] = []
    for key, value in items:
        name = prefix if key is None else "%s.%s" % (prefix, key) if prefix else str(key)
        if isinstance(value, torch.Tensor):
            found.append((name, value))
        elif isinstance(value, Table):
            found += tensors_in(value.items(), name)
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            found += tensors_in(zip(value._fields, value), name)
        elif isinstance(value, (list, tuple)):
            found += tensors_in(enumerate(value), name)
        elif dataclasses.is_dataclass(value) or isinstance(value, SimpleNamespace):
            found += tensors_in(vars(value).items(), name)
    return found


def counted(name: str, tensor: Any, masks: Mapping[str, Mask], inputs: Dict[str, Any]) -> Tuple[Any, float]:
    """(the elements that count, their share); ValueError for a mask that is missing, fits not, or leaves nothing."""
    mask = next((mask for pattern, mask in masks.items() if fnmatchcase(name, pattern)), None)
    if mask is None:
        return tensor, 1.0
    chosen = _boolean(name, mask, inputs, tensor)
    if tuple(chosen.shape) != tuple(tensor.shape[:chosen.dim()]):
        raise ValueError("its mask has the shape %s, the tensor %s" % (list(chosen.shape), list(tensor.shape)))
    share = float(chosen.double().mean())
    if not share > 0:
        raise ValueError("its mask leaves nothing")
    return tensor.detach()[chosen], share


def _boolean(name: str, mask: Mask, inputs: Dict[str, Any], tensor: Any) -> Any:
    given: Optional[Any] = inputs.get(mask) if isinstance(mask, str) else mask() if callable(mask) else mask
    if given is None:
        raise ValueError("its mask %r is no input of this pass" % mask)
    given = given.detach().to(tensor.device)
    if given.dtype is torch.bool:
        return given
    if given.dim() == 1 and tensor.dim() > 1:
        return torch.arange(tensor.shape[1], device=tensor.device)[None, :] < given[:, None]
    return given != 0
