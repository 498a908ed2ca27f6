"""The recorder in a launched program: put on when the program makes its first optimizer. Importing it imports torch."""

import atexit
import contextlib
import functools
import gc
import os
from typing import Any, Callable, Dict, List, Optional

import torch

from .record_torch import record
from .torch_tensors import of_torch


def record_at_first_optimizer(plan: Dict[str, Any], draws: Any, failed: Callable[[str, Exception], None]) -> None:
    """Record the outermost module that owns the parameters of the first optimizer, until the process ends.

    `plan["record"]` are the steps, `plan["model"]` a class as `module:Class` where another module is meant, and
    `plan["valid"]` the inputs that are masks, by pattern of what they mask. Keyed draws are recorded as such.
    """
    optimizers: Any = torch.optim.Optimizer
    plain = optimizers.__init__
    kept = contextlib.ExitStack()
    atexit.register(kept.close)

    @functools.wraps(plain)
    def made(optimizer: Any, *positional: Any, **named: Any) -> None:
        plain(optimizer, *positional, **named)
        model = _owner(optimizer, plan["model"])
        if model is None:
            return
        optimizers.__init__ = plain
        try:
            recorder = kept.enter_context(record(
                model, out=os.path.join(plan["out"], "rank{rank}.record"), steps=plan["record"], valid=plan["valid"],
                noise="keyed", meta={"seed": str(plan["seed"])}))
        except Exception as error:
            failed("the recorder", error)
        else:
            draws.drawn = functools.partial(_drawn, recorder)

    optimizers.__init__ = made


def _drawn(recorder: Any, stream: str, tensor: Any) -> None:
    recorder.event("draw", stream, of_torch(stream, tensor))


def _owner(optimizer: Any, name: str) -> Optional[Any]:
    """The outermost module in memory that owns parameters of the optimizer, the largest where there are several."""
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    modules: List[Any] = [item for item in gc.get_objects() if issubclass(type(item), torch.nn.Module)]
    owners = [module for module in modules if any(id(parameter) in held for parameter in module.parameters())]
    if name:
        owners = [module for module in owners if "%s:%s" % (type(module).__module__, type(module).__name__) == name]
    inner = {id(child) for module in owners for child in module.modules() if child is not module}
    outermost = [module for module in owners if id(module) not in inner]
    return max(outermost, key=lambda module: sum(item.numel() for item in module.parameters()), default=None)
