"""What the launcher puts into every Python process of the program: wrappers, set when a module has been imported.

The program's files are not touched. `install` is called from the `sitecustomize` of a folder on PYTHONPATH, before the
program's first line; torch and the loggers are wrapped when the program imports them, and not at all where it does not.
"""

import atexit
import importlib.abc
import json
import os
import sys
from typing import Any, Callable, Dict, List, Optional

TENSORBOARDS = ("torch.utils.tensorboard.writer", "tensorboardX.writer")
WANDB = "wandb.sdk.wandb_run"


def install(plan_path: str) -> None:
    """Wrap what the plan names, in this process and in those it forks."""
    with open(plan_path, encoding="utf-8") as stream:
        plan = json.load(stream)
    inside = _Inside(plan)
    wanted: Dict[str, List[Callable[[Any], None]]] = {"torch": [inside.torch]}
    if os.environ.get("RANK", "0") == "0":
        for name in TENSORBOARDS:
            wanted[name] = [inside.scalars.tensorboard]
        wanted[WANDB] = [inside.scalars.wandb]
        for logger in plan["loggers"]:
            module, _, path = logger.partition(":")
            wanted.setdefault(module, []).append(
                lambda imported, path=path: inside.scalars.function(imported, path))  # type: ignore[misc]
        atexit.register(inside.scalars.flush)
    sys.meta_path.insert(0, _AfterImport(wanted, inside.failed))


class _Inside:
    """The launcher's part of one process, and its report."""

    def __init__(self, plan: Dict[str, Any]) -> None:
        from .launch_scalars import Scalars

        self._plan = plan
        self._draws: Any = None
        self._failures: List[str] = []
        self._closing = 0
        self.scalars = Scalars(os.path.join(plan["out"], "loss.jsonl"), plan["loss"], self._step)

    def _step(self) -> int:
        return int(self._draws.step) if self._draws is not None else 0

    def torch(self, module: Any) -> None:
        """Torch has been imported."""
        from .launch_draws import Draws

        self._draws = Draws(self._plan["seed"], self._plan["draws"], changed=self.report)
        self._draws.wrap()
        if self._plan["record"]:
            from .launch_record import record_at_first_optimizer

            record_at_first_optimizer(self._plan, self._draws, self.failed)
        atexit.register(self.report)

    def failed(self, what: str, error: Exception) -> None:
        """Something could not be wrapped: the program goes on, and its report says so."""
        self._failures.append("%s: %s: %s" % (what, type(error).__name__, error))
        sys.stderr.write("migparity: %s could not be wrapped: %s\n" % (what, error))
        self.report()

    def report(self) -> None:
        """Leave the counts of this process, anew each time."""
        draws = self._draws
        if draws is not None and not (draws.step or draws.wrapped or draws.outside or self._failures):
            return  # a process that trains nothing and draws nothing, as torchrun's own
        who, rank, world = "?", 0, 1
        if draws is not None:
            from .launch_draws import place

            who, rank, world = place()
            self._at_the_end_of_a_fork()
        told = {"who": who, "rank": rank, "world_size": world, "steps": self._step(), "failures": self._failures,
                "wrapped": draws.wrapped if draws else {}, "outside": draws.outside if draws else {}}
        path = os.path.join(self._plan["parts"], "%d.json" % os.getpid())
        with open(path + ".new", "w", encoding="utf-8") as stream:
            json.dump(told, stream)
        os.replace(path + ".new", path)

    def _at_the_end_of_a_fork(self) -> None:
        """A forked process ends without `atexit`; multiprocessing has its own end."""
        if self._closing != os.getpid():
            from multiprocessing import util

            self._closing = os.getpid()
            util.Finalize(None, self.report, exitpriority=10)


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds the wanted modules as Python does, and calls back once they have been executed."""

    def __init__(self, wanted: Dict[str, List[Callable[[Any], None]]],
                 failed: Callable[[str, Exception], None]) -> None:
        self._wanted, self._failed = wanted, failed

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        callbacks = self._wanted.get(fullname)
        if callbacks is None:
            return None
        for finder in sys.meta_path:
            found: Any = None if finder is self else finder.find_spec(fullname, path, target)
            if found is not None:
                if found.loader is not None:
                    found.loader = _Calling(found.loader, callbacks, self._failed)
                return found
        return None


class _Calling:
    """A module's own loader, with a call at the end."""

    def __init__(self, loader: Any, callbacks: List[Callable[[Any], None]],
                 failed: Callable[[str, Exception], None]) -> None:
        self._loader, self._callbacks, self._failed = loader, callbacks, failed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Optional[Any]:
        made: Optional[Any] = self._loader.create_module(spec)
        return made

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        for callback in self._callbacks:
            try:
                callback(module)
            except Exception as error:
                self._failed(module.__name__, error)
