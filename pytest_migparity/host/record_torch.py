"""The recorder on an unmodified torch model, by hooks: inputs, outputs in order, loss, gradients, updates, optimizer.

    with record(model, out="rank0.record", steps=range(2)) as recorder:
        ...  # the training loop as it is

A step is one optimizer step; of several micro-batches in it the second has `@1` behind its names. Nothing is changed in
what the model computes: tensors are read, never written, and the loss with and without the recorder is the same to the
bit. Importing this module imports torch.
"""

import contextlib
import os
import sys
import time
from fnmatch import fnmatchcase
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .record import Recorder
from .torch_tensors import of_torch

Mask = Any
"""A boolean torch tensor, or a function without arguments that gives one: which elements of a tensor count."""


@contextlib.contextmanager
def record(model: Any, *, out: str, steps: Iterable[int] = range(2), meta: Optional[Dict[str, str]] = None,
           valid: Optional[Mapping[str, Mask]] = None, forward_only: bool = False,
           algorithm: Optional[str] = None) -> Iterator[Recorder]:
    """Record the training of a module, DistributedDataParallel's included, until the block ends.

    steps: which optimizer steps, from 0. valid: by pattern of a recorded name, the mask of the elements that count (of
    the tensor's shape, or of its leading dimensions). forward_only: nothing is trained; every forward pass of the model
    is a step of its own, so that probes of several lengths or batches are compared. meta: strings about the run;
    framework and device are filled in. What the hooks cost is printed at the end and lies in `Recorder.seconds`.
    """
    rank, world = _place()
    described = {"framework": "torch %s" % torch.__version__, "device": _device(model), "noise": "device",
                 **(meta or {})}
    recorder = Recorder(out, steps=steps, rank=rank, world_size=world, algorithm=algorithm, meta=described)
    watch = _Watch(model, recorder, valid or {}, forward_only=forward_only)
    started = time.perf_counter()
    try:
        with watch.attached():
            yield recorder
    finally:
        took = time.perf_counter() - started
        sys.stderr.write("migparity: recorded steps %s of rank %d in %s: %.1f s of %.1f s (%.0f %%)\n" % (
            ", ".join(map(str, sorted(recorder.steps))) or "none", rank, out, recorder.seconds, took,
            100 * recorder.seconds / max(took, 1e-9)))


def _place() -> Tuple[int, int]:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def _device(model: Any) -> str:
    return next((parameter.device.type for parameter in model.parameters()), "cpu")


class _Watch:
    """The hooks, and what they remember of the step that runs."""

    def __init__(self, model: Any, recorder: Recorder, valid: Mapping[str, Mask], *, forward_only: bool) -> None:
        self._model = model
        self._root = getattr(model, "module", model) if isinstance(
            model, torch.nn.parallel.DistributedDataParallel) else model
        self._recorder, self._valid, self._forward_only = recorder, valid, forward_only
        self._names = {id(parameter): name for name, parameter in self._root.named_parameters()}
        self._step, self._micro, self._depth = 0, -1, 0
        self._loss: List[float] = []
        self._norm: Optional[float] = None
        self._factor: Optional[float] = None
        self._before: Dict[str, Any] = {}

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        """Hooks on for the time of a block."""
        handles = [self._root.register_forward_pre_hook(self._given, with_kwargs=True, prepend=True)]
        handles += [module.register_forward_hook(self._passed(name), always_call=False)
                    for name, module in self._root.named_modules() if name]
        handles.append(self._root.register_forward_hook(self._returned))
        handles += [parameter.register_post_accumulate_grad_hook(self._accumulated(name))
                    for name, parameter in self._root.named_parameters() if parameter.requires_grad]
        handles += [register_optimizer_step_pre_hook(self._before_update),
                    register_optimizer_step_post_hook(self._after_update)]
        clip = torch.nn.utils.clip_grad_norm_
        torch.nn.utils.clip_grad_norm_ = self._clipping(clip)
        self._recorder.begin(0)
        try:
            yield
        finally:
            torch.nn.utils.clip_grad_norm_ = clip
            for handle in handles:
                handle.remove()

    def _looking(self) -> bool:
        """Is this pass of a recorded step? An evaluation between two steps is not."""
        return self._recorder.recording and (self._forward_only or torch.is_grad_enabled())

    def _suffix(self) -> str:
        return "@%d" % self._micro if self._micro > 0 else ""

    def _given(self, module: Any, positional: Tuple[Any, ...], named: Dict[str, Any]) -> None:
        if not self._looking():
            return
        self._micro, self._depth = self._micro + 1, 0
        for name, tensor in _tensors([*enumerate(positional), *named.items()]):
            self._event("input", name + self._suffix(), tensor)

    def _passed(self, name: str) -> Callable[..., None]:
        def hook(module: Any, positional: Any, output: Any) -> None:
            if not self._looking():
                return
            self._depth += 1
            found = _tensors([(None, output)])
            for slot, tensor in found:
                self._event("output", name + (":" + slot if slot else "") + self._suffix(), tensor, self._depth)

        return hook

    def _returned(self, module: Any, positional: Any, output: Any) -> None:
        if not self._looking():
            self._next_pass()
            return
        for slot, tensor in _tensors([(None, output)]):
            if tensor.numel() == 1 and tensor.requires_grad and len(self._loss) <= self._micro:
                self._loss.append(float(tensor.detach()))
            self._event("output", (slot or "output") + self._suffix(), tensor, self._depth + 1)
        if self._forward_only:
            self._recorder.end()
            self._next_pass()

    def _next_pass(self) -> None:
        """Without updates every pass is a step."""
        if self._forward_only:
            self._step, self._micro = self._step + 1, -1
            self._recorder.begin(self._step)

    def loss(self, value: Any) -> None:
        """The loss, where the model does not return it."""
        self._loss.append(float(value))

    def _accumulated(self, name: str) -> Callable[[Any], None]:
        def hook(parameter: Any) -> None:
            if self._recorder.recording and parameter.grad is not None and self._micro == 0:
                self._event("grad", name, parameter.grad)

        return hook

    def _clipping(self, clip: Callable[..., Any]) -> Callable[..., Any]:
        def clipped(parameters: Any, max_norm: float, *rest: Any, **named: Any) -> Any:
            held = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            if self._recorder.recording:
                self._gradients("grad-reduced")
            norm = clip(held, max_norm, *rest, **named)
            if self._recorder.recording:
                self._norm = float(norm)
                self._factor = min(1.0, float(max_norm) / (self._norm + 1e-6)) if self._norm == self._norm else None
            return norm

        return clipped

    def _gradients(self, stage: str) -> None:
        for name, parameter in self._root.named_parameters():
            if parameter.grad is not None:
                self._event(stage, name, parameter.grad)

    def _ours(self, optimizer: Any) -> bool:
        return any(id(parameter) in self._names for group in optimizer.param_groups for parameter in group["params"])

    def _before_update(self, optimizer: Any, positional: Any, named: Any) -> None:
        if not (self._recorder.recording and self._ours(optimizer)):
            return
        self._gradients("grad-clipped" if self._norm is not None else "grad-reduced")
        self._before = {name: parameter.detach().clone() for name, parameter in self._root.named_parameters()
                        if parameter.requires_grad}

    def _after_update(self, optimizer: Any, positional: Any, named: Any) -> None:
        if not self._ours(optimizer):
            return
        if self._recorder.recording:
            moved, total = self._updates()
            self._state(optimizer)
            mean = sum(self._loss) / len(self._loss) if self._loss else None
            self._recorder.end(loss=mean, grad_norm=self._norm, clip_factor=self._factor,
                               lr=float(optimizer.param_groups[0]["lr"]), moved=moved, parameters=total, skipped=False)
        self._step += 1
        self._micro, self._loss, self._norm, self._factor, self._before = -1, [], None, None, {}
        self._recorder.begin(self._step)

    def _updates(self) -> Tuple[int, int]:
        moved = total = 0
        for name, parameter in self._root.named_parameters():
            if name in self._before:
                change = parameter.detach() - self._before[name]
                moved += int((parameter.detach() != self._before[name]).sum())
                total += parameter.numel()
                self._event("update", name, change)
        return moved, total

    def _state(self, optimizer: Any) -> None:
        for parameter, state in optimizer.state.items():
            for key, value in state.items():
                if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                    self._event("state", "%s.%s" % (self._names.get(id(parameter), "?"), key), value)

    def _event(self, stage: str, name: str, tensor: Any, depth: int = 0) -> None:
        share = 1.0
        mask = next((mask for pattern, mask in self._valid.items() if fnmatchcase(name, pattern)), None)
        try:
            if mask is not None:
                mask = (mask() if callable(mask) else mask).to(tensor.device)
                share = max(float(mask.float().mean()), 1e-12)
                tensor = tensor.detach()[mask]
            self._recorder.event(stage, name, of_torch(name, tensor), depth=depth, valid=share)
        except (ValueError, IndexError) as error:
            self._recorder.unrecorded("%s %s" % (stage, name), str(error).splitlines()[0])


def _tensors(items: Iterable[Tuple[Any, Any]], prefix: str = "") -> List[Tuple[str, Any]]:
    """Every tensor in nested dicts, lists, tuples and data classes, with a dotted name."""
    found: List[Tuple[str, Any]] = []
    for key, value in items:
        name = prefix if key is None else "%s.%s" % (prefix, key) if prefix else str(key)
        if isinstance(value, torch.Tensor):
            found.append((name, value))
        elif isinstance(value, dict):
            found += _tensors(value.items(), name)
        elif isinstance(value, (list, tuple)):
            found += _tensors(enumerate(value), name)
        elif hasattr(value, "__dataclass_fields__"):
            found += _tensors(vars(value).items(), name)
    return found
