"""The recorder: what a training run computed in chosen steps, as digests, written after every recorded step.

The recorder knows no framework: it is given arrays with their stage and name. `host.record_torch` gives it those of an
unmodified torch model by hooks; another framework does the same in a few lines:

    recorder = Recorder("rank0.record", steps=range(2))
    recorder.begin(step)
    recorder.event("input", "tokens", tokens)
    recorder.event("output", "layers.0", hidden, depth=1)
    recorder.end(loss=loss, grad_norm=norm)
"""

import os
import tempfile
import time
from typing import Any, Dict, Iterable, List, Optional, Tuple

from ..wire import record
from ..wire.record import Event, Facts, Recording
from .digest import algorithm_here, fine_lanes, measured, summary
from .tensors import Tensor, of_array

_MOST_EVENTS = 20000  # of one file: what a text of 4 MB carries


class RecordingExistsError(ValueError):
    """The file of a recording is there already; another run's evidence is never overwritten."""


class Recorder:
    """Collects the events of chosen steps and leaves them in `out`.

    steps: the numbers of the steps to record, from 0; a step is one optimizer step. algorithm: the content hash, which
    both sides must share; by default the fastest of this host. meta: strings about the run (`noise`, `precision`,
    `seed`, `instruments`), carried as they are.
    """

    def __init__(self, out: str, *, steps: Iterable[int] = range(2), rank: int = 0, world_size: int = 1,
                 algorithm: Optional[str] = None, meta: Optional[Dict[str, str]] = None) -> None:
        if os.path.exists(out):
            raise RecordingExistsError("%s is there already; evidence is never overwritten: name another file" % out)
        self.out, self.steps, self.rank, self.world_size = out, frozenset(steps), rank, world_size
        self._algorithm = algorithm or algorithm_here()
        self._meta = dict(meta or {})
        self._events: List[Event] = []
        self._facts: List[Facts] = []
        self._unrecorded: Dict[str, str] = {}
        self._calls: Dict[Tuple[str, str], int] = {}
        self._step: Optional[int] = None
        self.seconds = 0.0

    @property
    def recording(self) -> bool:
        """Is the step that has begun one of those to record?"""
        return self._step is not None

    def begin(self, step: int) -> bool:
        """A step begins; is it recorded?"""
        self._step = step if step in self.steps else None
        self._calls.clear()
        return self.recording

    def event(self, stage: str, name: str, array: Any, *, depth: int = 0, valid: float = 1.0) -> None:
        """One tensor (a numpy array or a `host.tensors.Tensor`); the second of a name and stage in a step is `name#1`.

        valid: the share of the elements that count, where only those are given.
        """
        if self._step is None:
            return
        start = time.perf_counter()
        count = self._calls.get((stage, name), 0)
        self._calls[stage, name] = count + 1
        unique = "%s#%d" % (name, count) if count else name
        if len(self._events) >= _MOST_EVENTS:
            self.unrecorded(stage, "more than %d tensors: record fewer steps or modules" % _MOST_EVENTS)
        else:
            try:
                tensor = array if isinstance(array, Tensor) else of_array(unique, array)
                whole = measured(tensor._replace(name=unique), level=1, algorithm=self._algorithm)
                self._events.append(Event(self._step, stage, unique, summary(whole, 1), depth, valid,
                                          fine_lanes(whole)))
            except ValueError as error:
                self.unrecorded("%s %s" % (stage, name), str(error))
        self.seconds += time.perf_counter() - start

    def unrecorded(self, what: str, why: str) -> None:
        """Something that was to be recorded could not be: no verdict passes over it."""
        self._unrecorded.setdefault(what[:200], why[:200])

    def end(self, **facts: Any) -> None:
        """The step ends, with its numbers (`wire.record.Facts`); the file is written anew."""
        if self._step is None:
            return
        start = time.perf_counter()
        self._facts.append(Facts(self._step, **facts))
        self._step = None
        self.write()
        self.seconds += time.perf_counter() - start

    def write(self) -> None:
        """Write what was recorded so far, whole or not at all."""
        made = Recording(self.rank, self.world_size, self._algorithm, tuple(self._events), tuple(self._facts),
                         tuple(sorted(self._meta.items())), tuple(sorted(self._unrecorded.items())))
        text = record.to_text(made)
        folder = os.path.dirname(os.path.abspath(self.out))
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".record-")
        try:
            with os.fdopen(handle, "w", encoding="ascii", newline="\n") as stream:
                stream.write(text)
            os.replace(temporary, self.out)
        except BaseException:
            os.unlink(temporary)
            raise
