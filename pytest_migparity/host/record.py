"""The recorder: what a training run computed in chosen steps, as digests, written after every recorded step.

The recorder knows no framework: it is given arrays with their stage and name. `host.record_torch` gives it those of an
unmodified torch model by hooks; another framework does the same in a few lines:

    recorder = Recorder("rank0.record", steps=range(2))
    recorder.begin(step)
    recorder.event("input", "tokens", tokens)
    recorder.event("output", "layers.0", hidden, depth=1)
    recorder.end(loss=loss, grad_norm=norm)
"""

import contextlib
import os
import time
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from ..wire import record
from ..wire.packed import MAX_TEXT
from ..wire.record import Event, Facts, Recording
from .digest import algorithm_here, fine_lanes, measured, summary
from .new_file import write_new
from .record_kept import Kept
from .tensors import Tensor, of_array

_ROOM = MAX_TEXT * 9 // 10  # characters of one file that events may take
_CHARACTERS, _LANES_CHARACTERS = 160, 330  # of an event, and of its fine lanes, which no compression shortens


class RecordingExistsError(ValueError):
    """The file of a recording is there already; another run's evidence is never overwritten."""


class Recorder:
    """Collects the events of chosen steps and leaves them in `out`.

    steps: the numbers of the steps to record, from 0; a step is one optimizer step. algorithm: the content hash, which
    both sides must share; by default the fastest of this host. meta: strings about the run (`noise`, `precision`,
    `seed`, `instruments`), carried as they are. keep: patterns of the names whose tensors are kept in full beside the
    file, in the folder `OUT.kept` (`host.record_kept`).
    """

    def __init__(self, out: str, *, steps: Iterable[int] = range(2), rank: int = 0, world_size: int = 1,
                 algorithm: Optional[str] = None, meta: Optional[Dict[str, str]] = None,
                 keep: Sequence[str] = ()) -> None:
        if os.path.exists(out):
            raise _exists(out)
        self.out, self.steps, self.rank, self.world_size = out, frozenset(steps), rank, world_size
        self._algorithm = algorithm or algorithm_here()
        self._meta = dict(meta or {})
        self._kept = Kept(out + ".kept", keep)
        self._events: List[Event] = []
        self._facts: List[Facts] = []
        self._unrecorded: Dict[str, str] = {}
        self._calls: Dict[Tuple[str, str], int] = {}
        self._losses: List[float] = []
        self._step: Optional[int] = None
        self._room, self._seen = _ROOM, set()  # type: Tuple[int, Any]
        self._written = self._timing = False
        self._began = 0.0
        self.seconds = self.step_seconds = 0.0

    @property
    def recording(self) -> bool:
        """Is the step that has begun one of those to record?"""
        return self._step is not None

    def begin(self, step: int) -> bool:
        """A step begins; is it recorded?"""
        self._step = step if step in self.steps else None
        self._calls.clear()
        self._losses.clear()
        self._began = time.perf_counter()
        return self.recording

    def event(self, stage: str, name: str, array: Any, *, depth: int = 0, valid: float = 1.0) -> None:
        """One tensor (a numpy array or a `host.tensors.Tensor`); the second of a name and stage in a step is `name#1`.

        valid: the share of the elements that count, where only those are given. A tensor that cannot be digested is
        listed in the recording as unrecorded.
        """
        if self._step is None:
            return
        with self.timed():
            count = self._calls.get((stage, name), 0)
            self._calls[stage, name] = count + 1
            unique = "%s#%d" % (name, count) if count else name
            try:
                tensor = array if isinstance(array, Tensor) else of_array(unique, np.asarray(array))
                self._add(stage, tensor._replace(name=unique), depth, valid)
            except ValueError as error:
                self.unrecorded("%s %s" % (stage, name), str(error))

    def _add(self, stage: str, tensor: Tensor, depth: int, valid: float) -> None:
        assert self._step is not None
        whole = measured(tensor, level=1, algorithm=self._algorithm)
        lanes = () if stage == "state" else fine_lanes(whole)  # of the optimizer's state the dtype is judged
        needed = _CHARACTERS + len(tensor.name) // 2 + (_LANES_CHARACTERS if lanes and lanes not in self._seen else 0)
        if needed > self._room:
            raise ValueError("more than a recording of %d characters holds: record fewer steps" % MAX_TEXT)
        self._room -= needed
        self._seen.add(lanes)
        self._events.append(Event(self._step, stage, tensor.name, summary(whole, 1), depth, valid, lanes))
        self._kept.offer("step%d-%s" % (self._step, stage), tensor)

    def loss(self, value: Any) -> None:
        """The loss of a step or micro-batch, where nothing else shows it; of several the mean is the step's."""
        if self._step is not None:
            self._losses.append(float(value))

    def unrecorded(self, what: str, why: str) -> None:
        """Something that was to be recorded could not be: no verdict passes over it."""
        self._unrecorded.setdefault(what[:200], why[:200])

    def describe(self, **meta: str) -> None:
        """More strings about the run."""
        self._meta.update(meta)

    def end(self, **facts: Any) -> None:
        """The step ends, with its numbers (`wire.record.Facts`); the file is written anew."""
        if self._step is None:
            return
        with self.timed():
            if self._losses:
                facts["loss"] = sum(self._losses) / len(self._losses)
            self._facts.append(Facts(self._step, **facts))
            self._step = None
            self.write()
        self.step_seconds += time.perf_counter() - self._began

    def close(self) -> None:
        """Nothing more comes: a step that has begun and holds events is left as one that did not end."""
        if any(event.step == self._step for event in self._events):
            self.unrecorded("step %s" % self._step, "the run ended before the step did")
        self._step = None
        if self._events or self._unrecorded:
            self._meta.update(self._kept.told())
            self.write()

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time of a block as the recorder's own, once where blocks nest."""
        if self._timing:
            yield
            return
        self._timing, start = True, time.perf_counter()
        try:
            yield
        finally:
            self._timing = False
            self.seconds += time.perf_counter() - start

    def write(self) -> None:
        """Write what was recorded so far, whole or not at all."""
        made = Recording(self.rank, self.world_size, self._algorithm, tuple(self._events), tuple(self._facts),
                         tuple(sorted(self._meta.items())), tuple(sorted(self._unrecorded.items())))
        text = record.to_text(made)
        if not self._written:
            self._claim()
        write_new(self.out, text)

    def _claim(self) -> None:
        """Make the file ours, so that two ranks with one name do not write over each other."""
        try:
            os.close(os.open(self.out, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            raise _exists(self.out) from None
        self._written = True


def _exists(out: str) -> RecordingExistsError:
    return RecordingExistsError("%s is there already; evidence is never overwritten: name another file" % out)
