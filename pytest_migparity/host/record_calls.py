"""Functions of torch that show numbers of a step and have no hooks: clipping, backward, a gradient scaler.

They are replaced while a recording runs, and call the plain function. Importing this module imports torch.
"""

import contextlib
import functools
import math
import sys
from typing import Any, Callable, Iterator, List, Tuple

import torch


@contextlib.contextmanager
def replaced_calls(watch: Any) -> Iterator[None]:
    """Replace them for the time of a block; `watch` is told (`host.record_torch`)."""
    scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)
    clip, backward = torch.nn.utils.clip_grad_norm_, torch.autograd.backward
    places = [*_holders("clip_grad_norm_", clip, _clipping(watch, clip)),
              *_holders("backward", backward, _backward(watch, backward)),
              (scaler, "scale", scaler.scale, _scaling(watch, scaler.scale)),
              (scaler, "step", scaler.step, _scaled_step(watch, scaler.step))]
    for owner, name, _, ours in places:
        setattr(owner, name, ours)
    try:
        yield
    finally:
        for owner, name, plain, _ in places:
            setattr(owner, name, plain)


_Place = Tuple[Any, str, Callable[..., Any], Callable[..., Any]]


def _holders(name: str, plain: Callable[..., Any], ours: Callable[..., Any]) -> List[_Place]:
    """Every module that holds the function under its name: `from torch.nn.utils import clip_grad_norm_` is common."""
    return [(module, name, plain, ours) for module in list(sys.modules.values())
            if getattr(module, "__dict__", {}).get(name) is plain]


def _clipping(watch: Any, plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def clip(parameters: Any, max_norm: float, *positional: Any, **named: Any) -> Any:
        held = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        watch.clipping(held)
        norm = plain(held, max_norm, *positional, **named)
        value = float(norm)
        watch.clipped(value, min(1.0, float(max_norm) / (value + 1e-6)) if not math.isnan(value) else None)
        return norm

    return clip


def _backward(watch: Any, plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def backward(tensors: Any, *positional: Any, **named: Any) -> Any:
        if isinstance(tensors, torch.Tensor) and tensors.numel() == 1:
            watch.seen_loss(tensors)
        return plain(tensors, *positional, **named)

    return backward


def _scaling(watch: Any, plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def scale(scaler: Any, outputs: Any) -> Any:
        if isinstance(outputs, torch.Tensor) and outputs.numel() == 1:
            watch.seen_loss(outputs)
        return plain(scaler, outputs)

    return scale


def _scaled_step(watch: Any, plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def step(scaler: Any, optimizer: Any, *positional: Any, **named: Any) -> Any:
        names, before = watch.of_ours(optimizer), watch.steps_done
        if names and scaler.is_enabled():
            watch.scaled(float(scaler.get_scale()))
        made = plain(scaler, optimizer, *positional, **named)
        if names and watch.steps_done == before:
            watch.updated(optimizer, names, skipped=True)
        return made

    return step
