"""Random draws of a torch program, keyed: made on the CPU from (seed, rank, step, stream, call), then moved.

What is keyed is named by patterns of the functions that draw (`lingbot.*:sample_noise`), grouped in streams (`noise`,
`time`) whose calls are counted apart, so that one more draw of one kind moves no other. Without patterns it is every
draw within a module's forward pass. The global generators are not advanced by a keyed draw. What was drawn outside, by
the device's generator or within a forward pass, is counted: such a run repeats no other device's numbers.
"""

import functools
import hashlib
import os
from fnmatch import fnmatchcase
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from .launch_samplers import OF_TENSOR, OF_TORCH, NotKeyedError
from .launch_sites import Site, here

DEFAULT_STREAM = "draw"
_COUNTED_TORCH = ("poisson", "binomial")
_COUNTED_TENSOR = ("random_", "cauchy_", "log_normal_", "geometric_")
_DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")


class Draws:
    """The keyed streams of one process, and the counts of what was keyed and what was not.

    streams: the patterns of each stream; empty for every draw within a forward pass. drawn: called with (stream,
    tensor) for every keyed draw. changed: called when a count changed.
    """

    def __init__(self, seed: int, streams: Mapping[str, Sequence[str]], *, changed: Callable[[], None]) -> None:
        self._seed, self._streams, self._changed = seed, streams, changed
        self.drawn: Callable[[str, Any], None] = lambda stream, tensor: None
        self.wrapped: Dict[str, int] = {}
        self.outside: Dict[str, int] = {}
        self.step = 0
        self._calls: Dict[str, int] = {}
        self._process = os.getpid()

    def wrap(self) -> None:
        """Put the keyed draws in place of torch's functions."""
        constructors = getattr(getattr(torch.utils, "_device", None), "_device_constructors", None)
        if constructors is not None:
            constructors()  # torch keeps the set of functions that `with torch.device(...)` acts on: the plain ones
        for owner, samplers, counted in ((torch, OF_TORCH, _COUNTED_TORCH),
                                         (torch.Tensor, OF_TENSOR, _COUNTED_TENSOR)):
            for name in (*samplers, *counted):
                setattr(owner, name, self._keyed(name, getattr(owner, name), samplers.get(name)))
        for name in _DROPOUTS:
            setattr(torch.nn.functional, name, self._masked(name, getattr(torch.nn.functional, name)))
        attention = torch.nn.functional.scaled_dot_product_attention
        torch.nn.functional.scaled_dot_product_attention = self._attending(attention)
        register_optimizer_step_post_hook(self._stepped)

    def _stepped(self, optimizer: Any, positional: Any, named: Any) -> None:
        self.step += 1
        self._calls.clear()
        self._changed()

    def _keyed(self, name: str, plain: Callable[..., Any], sampler: Optional[Callable[..., Any]]) -> Any:
        @functools.wraps(plain)
        def draw(*positional: Any, **named: Any) -> Any:
            self._in_a_new_process()
            site, own = here(), named.get("generator")
            stream = self._stream(site, own)
            if stream and sampler is not None:
                try:
                    made = sampler(self._random(stream), *positional, **named)
                except (NotKeyedError, TypeError, ValueError, IndexError):
                    made = None  # a form that is left to torch, or a mistake that torch explains
                if made is not None:
                    self._count(self.wrapped, site, name)
                    self.drawn(stream, made)
                    return made
            made = plain(*positional, **named)
            self._not_keyed(site, name, made, own)
            return made

        return draw

    def _stream(self, site: Site, own: Any) -> str:
        """The stream of a draw; empty for one that is not keyed, as a CPU generator of the program's own is not."""
        if site.checkpointed:
            return ""
        for stream, patterns in self._streams.items():
            if any(fnmatchcase(caller, pattern) for caller in site.callers for pattern in patterns):
                return stream
        host = own is not None and own.device.type == "cpu"
        return DEFAULT_STREAM if not self._streams and site.forward and not host else ""

    def _random(self, stream: str) -> Any:
        call = self._calls.get(stream, 0)
        self._calls[stream] = call + 1
        text = "%d/%s/%d/%s/%d" % (self._seed, place()[0], self.step, stream, call)
        key = int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:16], "little")
        return np.random.Generator(np.random.Philox(key=key))

    def _not_keyed(self, site: Site, name: str, made: Any, own: Any) -> None:
        """Count a draw that another device would not repeat."""
        if site.setting_up or (own is not None and own.device.type == "cpu"):
            return
        if site.forward or (isinstance(made, torch.Tensor) and made.device.type not in ("cpu", "meta")):
            self._count(self.outside, site, name)

    def _masked(self, name: str, plain: Callable[..., Any]) -> Any:
        @functools.wraps(plain)
        def dropped(input: Any, *positional: Any, **named: Any) -> Any:
            share = named.get("p", positional[0] if positional else 0.5)
            if share and named.get("training", positional[1] if len(positional) > 1 else True):
                self._count(self.outside, here(), name)
            return plain(input, *positional, **named)

        return dropped

    def _attending(self, plain: Callable[..., Any]) -> Any:
        @functools.wraps(plain)
        def attend(*positional: Any, **named: Any) -> Any:
            if named.get("dropout_p", positional[4] if len(positional) > 4 else 0):
                self._count(self.outside, here(), "scaled_dot_product_attention dropout")
            return plain(*positional, **named)

        return attend

    def _count(self, table: Dict[str, int], site: Site, name: str) -> None:
        self._in_a_new_process()
        key = "%s %s" % (site.name, name)
        table[key] = table.get(key, 0) + 1
        if table[key] & (table[key] - 1) == 0:  # a process may be killed: told at 1, 2, 4, 8, ... and at each step
            self._changed()

    def _in_a_new_process(self) -> None:
        """After a fork, as of a data loader's worker, counts and calls begin anew."""
        if self._process != os.getpid():
            self._process, self.step = os.getpid(), 0
            for table in (self.wrapped, self.outside, self._calls):
                table.clear()


def place() -> Tuple[str, int, int]:
    """(who draws: the rank, and the data loader's worker where it is one; rank; world size)."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    else:
        rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    worker = torch.utils.data.get_worker_info()
    return "%d" % rank if worker is None else "%d worker %d" % (rank, worker.id), rank, world
