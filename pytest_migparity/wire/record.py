"""The recording `migparity.record/1`: what one rank of a training run computed in chosen steps, as digests in order.

The recorder of `host.record` writes it, L2, L3 and L4 judge it. Nothing in it is a tensor: an event is the digest of
one tensor at one stage of one step, and the facts of a step are the numbers that the optimizer sees.
"""

import json
import math
import re
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .digest import Digest, DigestError, TensorDigest
from .digest_text import from_table, to_table
from .packed import MAX_TEXT, pack, unpack

SCHEMA = "migparity.record/1"
FINE_LANES = 64
STAGES = ("input", "draw", "output", "loss", "grad", "grad-reduced", "grad-clipped", "update", "state", "weight")
"""What an event is: `input` a tensor the model was given, `draw` random numbers it was given or drew (noise, flow
time), `output` of a module in forward order, `loss`, `grad` of a parameter before and `grad-reduced` after the ranks
were averaged and `grad-clipped` after clipping, `update` (weight after minus before), `state` of the optimizer,
`weight` after loading (step -1: before the first step)."""
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,900}")


class RecordError(ValueError):
    """The text is no recording, or one that does not keep its own rules."""


class Event(NamedTuple):
    """One tensor. `name` is unique within its step and stage: a module called again has `#1`, its second output `:1`.

    `valid` is the share of its elements that count, where a padding mask or lengths were declared; the digest is then
    of those elements alone. `depth` counts the modules from the input on, for outputs. `fine` are the 64 sketch lanes
    in float32 (`host.digest.fine_lanes`), which resolve a relative difference of 1e-7 where the digest's 16 in 16 bits
    resolve 1e-4; empty where nothing was measured.
    """

    step: int
    stage: str
    name: str
    tensor: TensorDigest
    depth: int = 0
    valid: float = 1.0
    fine: Tuple[float, ...] = ()


class Facts(NamedTuple):
    """The numbers of one step; None where the program did not show them.

    `clip_factor` is what the gradient was multiplied by (1: not clipped), `moved` how many of `parameters` elements the
    update changed at all, `skipped` whether the optimizer left this step out, `loss_scale` a scaler's factor.
    """

    step: int
    loss: Optional[float] = None
    grad_norm: Optional[float] = None
    clip_factor: Optional[float] = None
    lr: Optional[float] = None
    moved: Optional[int] = None
    parameters: Optional[int] = None
    skipped: Optional[bool] = None
    loss_scale: Optional[float] = None


class Recording(NamedTuple):
    """One rank's recording. `meta` holds strings: framework, device, noise (`injected`, `device`, `none`), precision
    (`float32`, `bfloat16`, ...: what the forward pass computes in), gradients (`before`/`after` which reduction), tool.

    `unrecorded` names modules, parameters or stages that were asked for and could not be recorded, with the reason.
    """

    rank: int
    world_size: int
    algorithm: str
    events: Tuple[Event, ...]
    facts: Tuple[Facts, ...] = ()
    meta: Tuple[Tuple[str, str], ...] = ()
    unrecorded: Tuple[Tuple[str, str], ...] = ()


def to_text(recording: Recording) -> str:
    """The recording as text, held to the rules that `from_text` checks."""
    check(recording)
    keys = [_key(event) for event in recording.events]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    digest = Digest(1, recording.algorithm, tuple(recording.events[index].tensor._replace(name=keys[index])
                                                  for index in order))
    lanes: Dict[Tuple[float, ...], int] = {}  # each set of lanes once: a gradient often passes several stages unchanged
    same = []
    for index, event in enumerate(recording.events):
        if event.fine and lanes.setdefault(event.fine, index) != index:
            same.append((index, lanes[event.fine]))
    head = {"rank": recording.rank, "world_size": recording.world_size, "meta": dict(recording.meta),
            "unrecorded": recording.unrecorded, "order": order,
            "depth": [event.depth for event in recording.events],
            "valid": [[index, event.valid] for index, event in enumerate(recording.events) if event.valid != 1],
            "fine": list(lanes.values()), "same": same,
            "facts": [_finite(facts._asdict()) for facts in recording.facts]}
    line = json.dumps(head, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    fine = b"".join(struct.pack("<%df" % FINE_LANES, *each) for each in lanes)
    return pack(SCHEMA, line.encode("utf-8") + b"\n" + fine + to_table(digest))


def _key(event: Event) -> str:
    return "%d/%s/%s" % (event.step, event.stage, event.name)


def _finite(table: Dict[str, Any]) -> Dict[str, Any]:
    """Without what is None; a number that JSON has no word for becomes a string."""
    return {key: repr(value) if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in table.items() if value is not None}


def check(recording: Recording) -> None:
    """The rules of a recording; RecordError names the event that breaks one."""
    if not 0 <= recording.rank < recording.world_size:
        raise RecordError("rank %d of %d" % (recording.rank, recording.world_size))
    seen = set()
    for event in recording.events:
        key = _key(event)
        if event.stage not in STAGES or event.step < -1:
            raise RecordError("%s: no such stage or step" % key)
        if not isinstance(event.name, str) or not _NAME.fullmatch(event.name):
            raise RecordError("%.80r is no name of an event" % (event.name,))
        if key in seen:
            raise RecordError("%s is recorded twice" % key)
        if not 0 < event.valid <= 1 or event.depth < 0:
            raise RecordError("%s: valid share %r, depth %r" % (key, event.valid, event.depth))
        if len(event.fine) not in (0, FINE_LANES) or not all(map(math.isfinite, event.fine)):
            raise RecordError("%s: its fine lanes are not %d finite numbers" % (key, FINE_LANES))
        seen.add(key)
    steps = [facts.step for facts in recording.facts]
    if steps != sorted(set(steps)):
        raise RecordError("the steps of its facts are %s, expected each once and in order" % steps[:20])


def from_text(text: str) -> Recording:
    """Read a recording. RecordError for other versions, a mangled or cut text, and one that contradicts itself."""
    line, _, rest = unpack(SCHEMA, text, RecordError).partition(b"\n")
    try:
        head = json.loads(line.decode("utf-8"))
        size = 4 * FINE_LANES * len(head["fine"])
        recording = _recording(head, rest[:size], from_table(rest[size:]))
    except DigestError as error:
        raise RecordError(str(error)) from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise RecordError("its table contradicts itself: %s: %s" % (type(error).__name__, error)) from None
    check(recording)
    return recording


def read(path: str) -> Recording:
    """The recording in a file; RecordError names the file."""
    try:
        with open(path, "rb") as stream:
            return from_text(stream.read(MAX_TEXT + 1).decode("ascii", "replace"))
    except OSError as error:
        raise RecordError("%s: %s" % (path, error.strerror)) from None
    except RecordError as error:
        raise RecordError("%s: %s" % (path, error)) from None


def _recording(head: Dict[str, Any], lanes: bytes, digest: Digest) -> Recording:
    order, depth = head["order"], head["depth"]
    count = len(digest.tensors)
    if sorted(order) != list(range(count)) or len(depth) != count:
        raise ValueError("%d tensors, and an order of %d" % (count, len(order)))
    valid = {int(index): float(share) for index, share in head["valid"]}
    fine = dict(zip(head["fine"], struct.iter_unpack("<%df" % FINE_LANES, lanes)))
    fine.update({index: fine[other] for index, other in head.get("same", [])})
    if not set(fine) <= set(range(count)):
        raise ValueError("lanes of an event that is not there")
    events: List[Any] = [None] * count
    for index, tensor in zip(order, digest.tensors):
        step, stage, name = tensor.name.split("/", 2)
        events[index] = Event(int(step), stage, name, tensor._replace(name=name), int(depth[index]),
                              valid.get(index, 1.0), fine.get(index, ()))
    facts = tuple(Facts(**_typed(item)) for item in head["facts"])
    meta = tuple(sorted((str(key), str(value)) for key, value in head["meta"].items()))
    unrecorded = tuple((str(name), str(why)) for name, why in head["unrecorded"])
    return Recording(int(head["rank"]), int(head["world_size"]), digest.algorithm, tuple(events), facts, meta,
                     unrecorded)


def _typed(item: Dict[str, Any]) -> Dict[str, Any]:
    kinds = {"step": int, "moved": int, "parameters": int, "skipped": bool}
    return {key: kinds.get(key, float)(value) for key, value in item.items()}
