"""Scalars that a program logs, once more at full precision: one JSON object per step, in `loss.jsonl`.

TensorBoard's `add_scalar`, the `log` of a wandb run, and functions of the program's own that are given a dict of
numbers. A loss that is printed with four decimals cannot be judged finer than these.
"""

import functools
import json
import math
import os
from fnmatch import fnmatchcase
from typing import Any, Callable, Dict, Mapping, Optional, Sequence

LOSS_TAGS = ("loss", "*/loss", "Loss", "*/Loss", "Loss/train", "loss/train", "train_loss", "*/train_loss")
_STEPS = ("step", "global_step", "iteration", "steps")


class Scalars:
    """Collects what is logged of a step; a step is written when the next one begins, or at the end.

    tags: patterns of the names that are the loss. step: the step where a call names none.
    """

    def __init__(self, path: str, tags: Sequence[str], step: Callable[[], int]) -> None:
        self._path, self._tags, self._step = path, tuple(tags) or LOSS_TAGS, step
        self._row: Dict[str, Any] = {}
        self._process = os.getpid()

    def add(self, numbers: Mapping[str, Any], step: Optional[int]) -> None:
        """What was logged of one step, by name; what is no number is left out."""
        if self._process != os.getpid():
            return  # a forked worker logs nothing that the run's own process does not
        at = self._step() if step is None else int(step)
        if self._row.get("step", at) != at:
            self.flush()
        for name, value in numbers.items():
            number = _number(value)
            if number is not None:
                loss = "loss" not in self._row and any(fnmatchcase(str(name), tag) for tag in self._tags)
                self._row["loss" if loss else str(name)] = number
                self._row["step"] = at

    def flush(self) -> None:
        """Write the step that is being collected."""
        if len(self._row) > 1 and self._process == os.getpid():
            row = {"step": self._row.pop("step"), **self._row}
            with open(self._path, "a", encoding="utf-8", newline="\n") as stream:
                stream.write(json.dumps(row) + "\n")
        self._row = {}

    def tensorboard(self, module: Any) -> None:
        """Listen to the SummaryWriter of a module."""
        plain = module.SummaryWriter.add_scalar

        @functools.wraps(plain)
        def add_scalar(writer: Any, tag: str, scalar_value: Any, global_step: Optional[int] = None, *positional: Any,
                       **named: Any) -> Any:
            self.add({tag: scalar_value}, global_step)
            return plain(writer, tag, scalar_value, global_step, *positional, **named)

        module.SummaryWriter.add_scalar = add_scalar

    def wandb(self, module: Any) -> None:
        """Listen to the runs of `wandb.sdk.wandb_run`; `wandb.log` is the method of a run."""
        plain = module.Run.log

        @functools.wraps(plain)
        def log(run: Any, data: Any, step: Optional[int] = None, *positional: Any, **named: Any) -> Any:
            if isinstance(data, Mapping):
                self.add(data, step)
            return plain(run, data, step, *positional, **named)

        module.Run.log = log

    def function(self, module: Any, path: str) -> None:
        """Listen to a function or method of the program: the first dict it is given, and its step."""
        owner = module
        *holders, name = path.split(".")
        for holder in holders:
            owner = getattr(owner, holder)
        plain = getattr(owner, name)

        @functools.wraps(plain)
        def logged(*positional: Any, **named: Any) -> Any:
            values = [*positional, *named.values()]
            numbers = next((value for value in values if isinstance(value, Mapping)), None)
            if numbers is not None:
                self.add({key: value for key, value in numbers.items() if key not in _STEPS},
                         _step_of(numbers, positional, named))
            return plain(*positional, **named)

        setattr(owner, name, logged)


def _step_of(numbers: Mapping[str, Any], positional: Sequence[Any], named: Mapping[str, Any]) -> Optional[int]:
    for table in (named, numbers):
        for key in _STEPS:
            if key in table and _number(table[key]) is not None:
                return int(table[key])
    return next((value for value in positional if isinstance(value, int) and not isinstance(value, bool)), None)


def _number(value: Any) -> Optional[float]:
    """A number, or a tensor or array of one element, in full; None for anything else."""
    if isinstance(value, (bool, str, bytes)) or getattr(value, "size", 1) == 0:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return int(number) if isinstance(value, int) and math.isfinite(number) else number
