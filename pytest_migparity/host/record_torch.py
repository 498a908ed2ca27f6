"""The recorder on an unmodified torch model, by hooks: inputs, outputs in order, loss, gradients, updates, optimizer.

    with record(model, out="rank{rank}.record", steps=range(2)) as recorder:
        ...  # the training loop as it is

A step is one optimizer step; of several micro-batches in it the second has `@1` behind its names. Nothing is changed in
what the model computes: tensors are read, never written, and the loss with and without the recorder is the same to the
bit. Importing this module imports torch.
"""

import contextlib
import os
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .record import Recorder
from .record_calls import replaced_calls
from .record_names import Mask, counted, tensors_in
from .torch_tensors import of_torch


@contextlib.contextmanager
def record(model: Any, *, out: str, steps: Iterable[int] = range(2), noise: str = "device",
           meta: Optional[Dict[str, str]] = None, valid: Optional[Mapping[str, Mask]] = None,
           keep: Sequence[str] = (), forward_only: bool = False, algorithm: Optional[str] = None) -> Iterator[Recorder]:
    """Record the training of a module, DistributedDataParallel's included, until the block ends.

    out: the file; `{rank}` in it is the rank. steps: which optimizer steps, from 0. noise: where random inputs come
    from (`injected`, `keyed`, `device`, `none`). valid: by pattern of a recorded name, the mask of the elements that
    count. keep: patterns of names whose tensors are kept in full. forward_only: nothing is trained; every forward pass
    of the model is a step of its own, so that probes of several lengths or batches are compared. meta: strings about
    the run; framework, device and overhead are filled in.

    What is called as `model(...)` is seen; a method called past it is not, and the recording then holds no inputs.
    What the hooks cost is printed at the end; on a device it includes waiting for what was computed before.
    """
    rank, world = _place()
    described = {"framework": "torch %s" % torch.__version__, "device": _device(model), "noise": noise, **(meta or {})}
    recorder = Recorder(out.replace("{rank}", str(rank)), steps=steps, rank=rank, world_size=world,
                        algorithm=algorithm, meta=described, keep=keep)
    watch = _Watch(model, recorder, valid or {}, forward_only=forward_only)
    try:
        with watch.attached():
            yield recorder
    finally:
        cost = "%.2f s of %.2f s" % (recorder.seconds, recorder.step_seconds)
        recorder.describe(overhead=cost)
        recorder.close()
        sys.stderr.write("migparity: recorded steps %s of rank %d in %s; the recorder took %s\n" % (
            ", ".join(map(str, sorted(recorder.steps))) or "none", rank, recorder.out, cost))


def _place() -> Tuple[int, int]:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def _device(model: Any) -> str:
    return next((parameter.device.type for parameter in model.parameters()), "cpu")


class _Watch:
    """The hooks, and what they remember of the step that runs."""

    def __init__(self, model: Any, recorder: Recorder, valid: Mapping[str, Mask], *, forward_only: bool) -> None:
        self._root = model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model
        self._recorder, self._valid, self._forward_only = recorder, valid, forward_only
        self._names = {id(parameter): name for name, parameter in self._root.named_parameters()}
        self._trained = {name for name, parameter in self._root.named_parameters() if parameter.requires_grad}
        self._step, self._inside = 0, False
        self._forget()

    def _forget(self) -> None:
        """A new step."""
        self._micro, self._depth = -1, 0
        self._inputs: Dict[str, Any] = {}
        self._losses: Dict[int, float] = {}
        self._facts: Dict[str, Any] = {}
        self._stepped: Set[str] = set()
        self._before: Dict[str, Any] = {}

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        """Hooks on for the time of a block."""
        handles = [self._root.register_forward_pre_hook(self._given, with_kwargs=True, prepend=True)]
        handles += [module.register_forward_hook(self._passed(name))
                    for name, module in self._root.named_modules() if name]
        handles.append(self._root.register_forward_hook(self._returned, always_call=True))
        handles += [parameter.register_post_accumulate_grad_hook(self._accumulated(name))
                    for name, parameter in self._root.named_parameters() if parameter.requires_grad]
        handles += [register_optimizer_step_pre_hook(self._before_update),
                    register_optimizer_step_post_hook(self._after_update)]
        self._recorder.begin(0)
        try:
            with replaced_calls(self):
                yield
        finally:
            for handle in handles:
                handle.remove()
            if self._stepped:
                self._finish()

    # what the model is given and gives

    def _looking(self) -> bool:
        """Is this pass of a recorded step? An evaluation between two steps is not."""
        return self._recorder.recording and (self._forward_only or torch.is_grad_enabled())

    def _suffix(self) -> str:
        return "@%d" % self._micro if self._micro > 0 else ""

    def _given(self, module: Any, positional: Tuple[Any, ...], named: Dict[str, Any]) -> None:
        if self._stepped and torch.is_grad_enabled():
            self._finish()  # parameters that no optimizer holds: the next pass shows that the step is over
        if not self._looking():
            return
        with self._recorder.timed():
            self._micro, self._depth, self._inside = self._micro + 1, 0, True
            self._inputs = dict(tensors_in([*enumerate(positional), *named.items()]))
            for name, tensor in self._inputs.items():
                self._event("input", name + self._suffix(), tensor)

    def _passed(self, name: str) -> Callable[..., None]:
        def hook(module: Any, positional: Any, output: Any) -> None:
            if not (self._inside and self._looking()):  # a checkpoint's second pass is within the backward pass
                return
            with self._recorder.timed():
                self._depth += 1
                for slot, tensor in tensors_in([(None, output)]):
                    self._event("output", name + (":" + slot if slot else "") + self._suffix(), tensor, self._depth)

        return hook

    def _returned(self, module: Any, positional: Any, output: Any) -> None:
        self._inside, was = False, self._inside
        if was and self._looking():
            with self._recorder.timed():
                found = tensors_in([(None, output)])
                for slot, tensor in found:
                    self._event("output", (slot or "output") + self._suffix(), tensor, self._depth + 1)
                scalars = [(slot, tensor) for slot, tensor in found if tensor.numel() == 1 and tensor.requires_grad]
                for _, tensor in sorted(scalars, key=lambda item: item[0].rpartition(".")[2] != "loss")[:1]:
                    self.seen_loss(tensor)
            if self._forward_only:
                self._recorder.end()
        if self._forward_only:
            self._step, self._micro = self._step + 1, -1
            self._recorder.begin(self._step)

    def seen_loss(self, tensor: Any) -> None:
        """A micro-batch's loss: what the model returns, or else what a scaler is given or backward begins with."""
        if self._recorder.recording and self._micro not in self._losses:
            self._losses[self._micro] = float(tensor.detach())
            self._event("loss", "loss" + self._suffix(), tensor)

    # gradients

    def _accumulated(self, name: str) -> Callable[[Any], None]:
        def hook(parameter: Any) -> None:
            if self._recorder.recording and parameter.grad is not None:
                self._event("grad", name + self._suffix(), parameter.grad)

        return hook

    def clipping(self, parameters: List[Any]) -> None:
        """These gradients are about to be clipped."""
        self._gradients("grad-reduced", {self._names.get(id(parameter), "") for parameter in parameters})

    def clipped(self, norm: float, factor: Optional[float]) -> None:
        """They were, by their norm and with this factor."""
        if self._recorder.recording:
            self._facts.update(grad_norm=norm, clip_factor=factor)

    def _gradients(self, stage: str, names: Set[str]) -> None:
        if self._recorder.recording:
            for name, parameter in self._root.named_parameters():
                if name in names and parameter.grad is not None:
                    self._event(stage, name, parameter.grad)

    # the optimizer

    def of_ours(self, optimizer: Any) -> Set[str]:
        """The model's parameters that an optimizer holds, by name."""
        held = (id(parameter) for group in optimizer.param_groups for parameter in group["params"])
        return {self._names[each] for each in held if each in self._names}

    def _before_update(self, optimizer: Any, positional: Any, named: Any) -> None:
        names = self.of_ours(optimizer) if self._recorder.recording else set()
        with self._recorder.timed():
            self._gradients("grad-clipped" if "clip_factor" in self._facts else "grad-reduced", names)
            self._before = {name: _on_host(parameter) for name, parameter in self._root.named_parameters()
                            if name in names and parameter.requires_grad}

    def _after_update(self, optimizer: Any, positional: Any, named: Any) -> None:
        names = self.of_ours(optimizer)
        if not names:
            return
        if self._recorder.recording:
            with self._recorder.timed():
                self._updates()
                self._state(optimizer)
        skipped = getattr(optimizer, "found_inf", None)  # of an optimizer that looks for overflow itself
        self.updated(optimizer, names, skipped=skipped is not None and bool(float(skipped)))

    def updated(self, optimizer: Any, names: Set[str], *, skipped: bool) -> None:
        """An optimizer has updated its parameters, or left its step out; the step ends when all trained ones have."""
        self._stepped |= names
        self._facts.setdefault("lr", float(optimizer.param_groups[0]["lr"]))
        self._facts["skipped"] = self._facts.get("skipped", False) or skipped
        if self._stepped >= self._trained:
            self._finish()

    def scaled(self, scale: float) -> None:
        """A scaler's factor of the step."""
        self._facts["loss_scale"] = scale

    @property
    def steps_done(self) -> Tuple[int, int]:
        """Something that changes with every update of ours."""
        return self._step, len(self._stepped)

    def _finish(self) -> None:
        if self._recorder.recording:
            if self._losses:
                self._facts["loss"] = sum(self._losses.values()) / len(self._losses)
            if self._micro < 0:
                self._recorder.unrecorded("input", "the model was not called as model(...) in step %d" % self._step)
            self._facts.setdefault("moved", 0)
            self._facts.setdefault("parameters", sum(
                parameter.numel() for name, parameter in self._root.named_parameters() if name in self._stepped))
            self._recorder.end(**self._facts)
        self._step += 1
        self._forget()
        self._recorder.begin(self._step)

    def _updates(self) -> None:
        """What the update added to each parameter, taken on the host, of 16 bits in float32: exact on any device."""
        moved = total = 0
        for name, parameter in self._root.named_parameters():
            before = self._before.pop(name, None)
            if before is None:
                continue
            after = _on_host(parameter)
            moved += int((after != before).sum())
            total += after.numel()
            wide = torch.promote_types(after.dtype, torch.float32)
            self._event("update", name, after.to(wide) - before.to(wide))
        self._facts["moved"] = self._facts.get("moved", 0) + moved
        self._facts["parameters"] = self._facts.get("parameters", 0) + total

    def _state(self, optimizer: Any) -> None:
        for parameter, state in optimizer.state.items():
            for key, value in state.items():
                if isinstance(value, torch.Tensor) and value.shape == parameter.shape and id(parameter) in self._names:
                    self._event("state", "%s.%s" % (self._names[id(parameter)], key), value)

    def _event(self, stage: str, name: str, tensor: Any, depth: int = 0) -> None:
        with self._recorder.timed():
            try:
                part, share = counted(name, tensor, self._valid, self._inputs)
                self._recorder.event(stage, name, of_torch(name, _local(part)), depth=depth, valid=share)
            except ValueError as error:
                self._recorder.unrecorded("%s %s" % (stage, name), str(error).splitlines()[0])


def _local(tensor: Any) -> Any:
    """Of a tensor that is spread over ranks, this rank's part."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _on_host(parameter: Any) -> Any:
    return _local(parameter.detach()).to("cpu", copy=True)
