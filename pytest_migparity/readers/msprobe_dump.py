"""Dumps of Ascend msprobe (`mindstudio-probe`): `stepN/rankM/dump.json`, tasks statistics, tensor and md5.

Read as the statistics they hold. The tensors of a tensor dump (`dump_tensor_data/*.pt`) are for `migparity digest`.
What msprobe's own compare says of a dump is not looked at. Tensors are called as msprobe calls their files.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, BinaryIO

from pytest_migparity.core.dumped import SCALARS, Dump, DumpedTensor
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.verdict import Note, note

MAX_BYTES = 1 << 26  # 360 bytes a tensor: 180,000 of them
_DEEPEST = 8
_LONGEST = 512  # characters of a name
_PLACE = re.compile(r"(?:^|/)step([0-9]{1,9})/(?:rank([0-9]{1,6})|proc[0-9]*|rank)/[^/]+$")
_NUMBERS = ("Min", "Max", "Mean", "Norm")
_CHECKSUM = re.compile(r"[0-9a-fA-F]{8}")

Files = Mapping[str, Callable[[], BinaryIO]]


def read_dump(files: Files) -> tuple[Dump, tuple[Note, ...]]:
    """One side's dump from its files, by step and rank, and a note for everything in it that was not read.

    UserError names the file that is too large, no JSON or no dump, two dumps of one step and rank, and dumps of two
    kinds.
    """
    tensors: list[DumpedTensor] = []
    kinds: set[tuple[str, str]] = set()
    repairs: list[Note] = []
    for (step, rank), name in in_order(files):
        with files[name]() as stream:
            head = json_object(name, stream.read(MAX_BYTES + 1))
        if not isinstance(head.get("data"), dict):
            raise UserError(f"{name}: no dump of msprobe: it has no table \"data\"")
        kinds.add((str(head.get("task"))[:40], str(head.get("level"))[:40]))
        skipped = 0
        for key, entry in head["data"].items():
            found, odd = _entry(step, rank, str(key)[:_LONGEST], entry)
            tensors += found
            skipped += odd
        if skipped:
            repairs.append(note("dump-skipped", file=name, count=skipped))
    if len(kinds) != 1:
        raise UserError(f"dumps of several kinds lie together: {', '.join(' '.join(kind) for kind in sorted(kinds))}; "
                        "leave the one that is meant" if kinds else "no dump.json was given")
    ((task, level),) = kinds
    return Dump(tuple(tensors), task, level), tuple(repairs)


def in_order(names: Iterable[str]) -> list[tuple[tuple[int, int], str]]:
    """((step, rank), name) in order; a process without a rank is rank 0, a file outside such folders step 0.

    UserError where two files are of one step and rank: two runs lie together, or two processes of one.
    """
    found = sorted((_place(name), name) for name in names)
    for (place, name), (next_place, other) in pairwise(found):
        if place == next_place:
            raise UserError(f"{name} and {other} are both of step {place[0]}, rank {place[1]}; leave the one that is "
                            "meant")
    return found


def _place(name: str) -> tuple[int, int]:
    found = _PLACE.search(name)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def json_object(name: str, raw: bytes) -> dict[str, Any]:
    """A bounded JSON object, with the NaN and Infinity that Python writes; UserError names the file."""
    if len(raw) > MAX_BYTES:
        raise UserError(f"{name}: larger than {MAX_BYTES} bytes; dump fewer steps or modules")
    try:
        head = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: not JSON: {str(error)[:120]}") from None
    if not isinstance(head, dict):
        raise UserError(f"{name}: no dump of msprobe: it is a JSON {type(head).__name__}, expected an object")
    return head


def _entry(step: int, rank: int, key: str, entry: Any) -> tuple[list[DumpedTensor], int]:
    """The tensors of one module or operation, and how many of its items were none."""
    if not isinstance(entry, dict):
        return [], 1
    found: list[DumpedTensor] = []
    odd = 0
    for part, stage, held in _parts(key, entry):
        for place, item in _leaves(held):
            tensor = _tensor(step, rank, stage, ".".join([key, part, *place])[:_LONGEST], item)
            if tensor is None:
                odd += 1
            else:
                found.append(tensor)
    return found, odd


def _parts(key: str, entry: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """(part of the name, stage, what is held) of one entry, in the order of execution."""
    if "parameters_grad" in key:
        for name, item in entry.items():
            yield str(name), "grad", item[0] if isinstance(item, list) and len(item) == 1 else item
        return
    backward = ".backward" in key
    for part in ("input_args", "input_kwargs", "input"):
        yield "input", "grad" if backward else "input", entry.get(part)
    parameters = entry.get("parameters")
    for name, item in parameters.items() if isinstance(parameters, dict) else ():
        yield f"parameters.{name}", "weight", item
    yield "output", "grad" if backward else "output", entry.get("output")


def _leaves(held: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The innermost tables of nested lists and tables with where they stand; a table with a type is one.

    None is no item, but keeps its place: the second output of two stays the second.
    """
    if isinstance(held, dict | list) and not (isinstance(held, dict) and "type" in held) and len(place) < _DEEPEST:
        for key, item in held.items() if isinstance(held, dict) else enumerate(held):
            yield from _leaves(item, (*place, str(key)))
    elif held is not None:
        yield place, held


def _tensor(step: int, rank: int, stage: str, name: str, item: Any) -> DumpedTensor | None:
    """A tensor or a Python number of a dump; None for anything else, such as a string or a slice."""
    if not isinstance(item, dict):
        return None
    kind = str(item.get("type", ""))
    if kind in SCALARS:
        value = number(item.get("value", item.get("Max")))
        size = None if value is None else abs(value)
        return tensor_of(step, rank, stage, name, kind, (), (value, value, value, size))
    shape = item.get("shape")
    if "Tensor" not in kind or not (isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)):
        return None
    return tensor_of(step, rank, stage, name, item.get("dtype"), tuple(shape),
                     tuple(number(item.get(key)) for key in _NUMBERS), item.get("md5"),
                     trained=item.get("requires_grad") is True)


def tensor_of(step: int, rank: int, stage: str, name: str, dtype: Any, shape: tuple[int, ...],
              numbers: tuple[float | None, ...], checksum: Any = "", *, quantum: float = 0.0,
              trained: bool = False) -> DumpedTensor:
    """A tensor of a dump from (low, high, mean, norm), None where the dump has no number.

    `torch.float32` is called `float32`, `<class 'float'>` `float`; a checksum that is no CRC-32 is none.
    """
    low, high, mean, norm = (math.nan if value is None else value for value in numbers)
    kind = str(dtype or "").removeprefix("torch.").removeprefix("<class '").removesuffix("'>")[:40].lower()
    crc = checksum.lower() if isinstance(checksum, str) and _CHECKSUM.fullmatch(checksum) else ""
    return DumpedTensor(step, rank, stage, name, kind, shape, low, high, mean, norm, crc, quantum,
                        measured=numbers[0] is not None and numbers[1] is not None, trained=trained)


def number(value: Any) -> float | None:
    """A statistic, which may be NaN; None where it is absent or no number."""
    if not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
