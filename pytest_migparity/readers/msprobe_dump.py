"""Dumps of Ascend msprobe (`mindstudio-probe`): `stepN/rankM/dump.json`, tasks statistics, tensor and md5.

Read as the statistics they hold. The tensors of a tensor dump (`dump_tensor_data/*.pt`) are for `migparity digest`.
What msprobe's own compare says of a dump is not looked at.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from pytest_migparity.core.dumped import Dump, DumpedTensor
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.verdict import Note, note

MAX_BYTES = 1 << 28
_PLACE = re.compile(r"(?:^|/)step(\d+)/(?:rank|proc)(\d*)/dump\.json$")
_NUMBERS = ("Min", "Max", "Mean", "Norm")


def read_dump(files: Mapping[str, Callable[[], BinaryIO]]) -> tuple[Dump, tuple[Note, ...]]:
    """One side's dump from its files, by step and rank, and a note for everything in it that was not read.

    UserError names the file that is too large, no JSON or no dump, and dumps of two kinds.
    """
    tensors: list[DumpedTensor] = []
    kinds: set[tuple[str, str]] = set()
    repairs: list[Note] = []
    for (step, rank), name in sorted((_place(name), name) for name in files):
        with files[name]() as stream:
            raw = stream.read(MAX_BYTES + 1)
        head = _head(name, raw)
        kinds.add((str(head.get("task")), str(head.get("level"))))
        skipped = 0
        for key, entry in head["data"].items():
            found, odd = _entry(step, rank, str(key), entry)
            tensors += found
            skipped += odd
        if skipped:
            repairs.append(note("dump-skipped", file=name, count=skipped))
    if len(kinds) > 1:
        raise UserError(f"dumps of several kinds lie together: {', '.join(' '.join(kind) for kind in sorted(kinds))}; "
                        "leave the one that is meant")
    ((task, level),) = kinds
    return Dump(tuple(tensors), task, level), tuple(repairs)


def _place(name: str) -> tuple[int, int]:
    """(step, rank) of a dump by its folders; (0, 0) where they do not say."""
    found = _PLACE.search(name)
    return (int(found[1]), int(found[2] or 0) if "rank" in name else 0) if found else (0, 0)


def _head(name: str, raw: bytes) -> dict[str, Any]:
    if len(raw) > MAX_BYTES:
        raise UserError(f"{name}: larger than {MAX_BYTES} bytes")
    try:
        head = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: not JSON: {str(error)[:120]}") from None
    if not isinstance(head, dict) or not isinstance(head.get("data"), dict):
        raise UserError(f"{name}: no dump of msprobe: it has no table \"data\"")
    return head


def _entry(step: int, rank: int, key: str, entry: Any) -> tuple[list[DumpedTensor], int]:
    """The tensors of one module or operation, and how many of its items were none."""
    if not isinstance(entry, dict):
        return [], 1
    found: list[DumpedTensor] = []
    odd = 0
    if "parameters_grad" in key:
        parts = [(name, "grad", item) for name, item in entry.items()]
    else:
        backward = ".backward." in key
        parts = [("input", "grad" if backward else "input", [entry.get("input_args"), entry.get("input_kwargs"),
                                                             entry.get("input")]),
                 ("output", "grad" if backward else "output", entry.get("output"))]
        parts += [(str(name), "weight", item) for name, item in (entry.get("parameters") or {}).items()]
    for part, stage, held in parts:
        items = [item for item in _leaves(held) if item is not None]
        for number, item in enumerate(items):
            tensor = _tensor(step, rank, stage, f"{key}.{part}" + (f".{number}" if len(items) > 1 else ""), item)
            if tensor is None:
                odd += 1
            else:
                found.append(tensor)
    return found, odd


def _leaves(held: Any, depth: int = 0) -> Iterator[Any]:
    """The innermost tables of nested lists and tables; a table with a type is one."""
    if isinstance(held, dict) and "type" not in held and depth < 8:
        for item in held.values():
            yield from _leaves(item, depth + 1)
    elif isinstance(held, list) and depth < 8:
        for item in held:
            yield from _leaves(item, depth + 1)
    else:
        yield held


def _tensor(step: int, rank: int, stage: str, name: str, item: Any) -> DumpedTensor | None:
    """A tensor or a Python number of a dump; None for anything else, such as a string or a slice."""
    if not isinstance(item, dict):
        return None
    kind = str(item.get("type", ""))
    if kind in ("int", "float", "bool"):
        value = _number(item.get("value", item.get("Max")))
        return DumpedTensor(step, rank, stage, name, kind, (), value, value, value, abs(value))
    shape = item.get("shape")
    if "Tensor" not in kind or not (isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)):
        return None
    low, high, mean, norm = (_number(item.get(key)) for key in _NUMBERS)
    checksum = item.get("md5")
    return DumpedTensor(step, rank, stage, name, str(item.get("dtype", "")).removeprefix("torch."), tuple(shape), low,
                        high, mean, norm, checksum if isinstance(checksum, str) else "")


def _number(value: Any) -> float:
    """A statistic; NaN where it is absent, null or no number."""
    if isinstance(value, bool) or value is None:
        return float(value) if isinstance(value, bool) else math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
