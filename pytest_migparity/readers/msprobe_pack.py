"""Configuration packs of msprobe (`config_check_pack.zip`): packages, variables, statistics of weights and inputs.

A pack carries every environment variable of its host; only those that numbers hinge on are taken. Nothing is unpacked
to disk.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from pytest_migparity.core.dumped import Dump, DumpedTensor, Pack
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.verdict import Note, note

from .msprobe_dump import MAX_BYTES, json_object, number, tensor_of

MAX_MEMBERS = 10_000
MAX_UNPACKED = 1 << 28
VARIABLES = (
    "ACL_PRECISION_MODE", "ALLOW_HF32", "ASCEND_LAUNCH_BLOCKING", "ATB_LLM_LCOC_ENABLE", "ATB_MATMUL_SHUFFLE_K_ENABLE",
    "CLOSE_MATMUL_K_SHIFT", "CUBLAS_WORKSPACE_CONFIG", "CUDA_LAUNCH_BLOCKING", "FLASH_ATTENTION_DETERMINISTIC",
    "HCCL_ALGO", "HCCL_DETERMINISTIC", "INF_NAN_MODE_ENABLE", "INF_NAN_MODE_FORCE_DISABLE", "LCCL_DETERMINISTIC",
    "NCCL_ALGO", "NVIDIA_TF32_OVERRIDE", "PYTHONHASHSEED", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)
_TENSORS = re.compile(r"(weights|dataset)/step([0-9]{1,9})/rank([0-9]{1,6})/[A-Za-z0-9_.-]{1,80}\.json")
_DRAWS = re.compile(r"random/rank([0-9]{1,6})\.json")
_SETTINGS = re.compile(r"hyperparameters/[A-Za-z0-9_.-]{1,80}\.json")
_STATISTICS = ("min", "max", "mean", "norm")
_DEEPEST = 12


def read_pack(stream: BinaryIO, name: str) -> tuple[Pack, tuple[Note, ...]]:
    """One side's pack, and a note for the members that were not read.

    Statistics carry no shape and no dtype: those are left empty. UserError names the file that is no zip, damaged,
    encrypted, or unpacks beyond 256 MiB, the member outside its folder, and the one that comes twice.
    """
    tensors: list[DumpedTensor] = []
    packages: dict[str, str] = {}
    variables: dict[str, str] = {}
    draws: dict[str, int] = {}
    settings: dict[str, Any] = {}
    odd = 0
    seen = False
    for member, raw in _members(stream, name):
        where, found = f"{name}: {member}", _TENSORS.fullmatch(member)
        if found:
            table = json_object(where, raw)
            stage = "weight" if found[1] == "weights" else "input"
            tensors += _tensors(table, stage, int(found[2]), int(found[3]))
        elif member == "pip":
            packages = _packages(raw)
        elif member == "env":
            held = json_object(where, raw)
            variables = {key: str(held[key])[:160] for key in VARIABLES if isinstance(held.get(key), str | int | float)}
        elif _DRAWS.fullmatch(member):
            for function, calls in json_object(where, raw).items():
                draws[function[:80]] = draws.get(function[:80], 0) + _calls(calls)
        elif _SETTINGS.fullmatch(member):
            settings |= dict(_plain(json_object(where, raw)))
        else:
            odd += 1
            continue
        seen = True
    if not seen:
        raise UserError(f"{name}: no configuration pack of msprobe: it holds none of env, pip, weights/, dataset/")
    tensors.sort(key=lambda tensor: (tensor.step, tensor.rank))
    lock = {"schema": "migparity.env/1", "python": {}, "env": variables, "listed": list(VARIABLES),
            "packages": {key: [version, "index", "", "?"] for key, version in packages.items()}}
    pack = Pack(Dump(tuple(tensors), "statistics", "pack"), lock, draws, settings)
    return pack, (note("dump-skipped", file=name, count=odd),) if odd else ()


def _members(stream: BinaryIO, name: str) -> Iterator[tuple[str, bytes]]:
    """(name, content) of every file of a zip, in order; bounded by what is unpacked, not by what the zip says it is."""
    try:
        with zipfile.ZipFile(stream) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            _well_named([info.filename for info in infos], name)
            left = MAX_UNPACKED
            for info in infos:
                with archive.open(info) as member:
                    raw = member.read(min(left, MAX_BYTES) + 1)
                left -= len(raw)
                if left < 0 or len(raw) > MAX_BYTES:
                    raise UserError(f"{name}: {info.filename[:80]} unpacks beyond {MAX_UNPACKED} bytes in all")
                yield info.filename, raw
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError) as error:
        raise UserError(f"{name}: not a readable zip: {str(error)[:120]}") from None


def _well_named(names: list[str], name: str) -> None:
    if len(names) > MAX_MEMBERS:
        raise UserError(f"{name}: {len(names)} members, at most {MAX_MEMBERS} are read")
    for member in names:
        if member.startswith("/") or "\\" in member or ".." in member.split("/") or ":" in member:
            raise UserError(f"{name}: member {member[:80]!r} points outside the pack")
    if len(set(names)) < len(names):
        raise UserError(f"{name}: a member comes twice; pack again into a new file")


def _tensors(table: Mapping[str, Any], stage: str, step: int, rank: int) -> Iterator[DumpedTensor]:
    for path, item in _statistics(table):
        numbers = tuple(number(item[key]) for key in _STATISTICS)
        yield tensor_of(step, rank, stage, ".".join(path)[:512], "", (), numbers)


def _statistics(held: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    if isinstance(held, dict) and held.keys() >= set(_STATISTICS):
        yield path, held
    elif isinstance(held, dict) and len(path) < _DEEPEST:
        for key, item in held.items():
            yield from _statistics(item, (*path, str(key)))


def _packages(raw: bytes) -> dict[str, str]:
    """Versions by name, from lines `name=version`; a distribution without a name is left out."""
    rows = (line.partition("=")[::2] for line in raw.decode("utf-8", "replace").splitlines())
    return {name.strip()[:100]: version.strip()[:100] for name, version in rows if name.strip() not in ("", "None")}


def _calls(held: Any) -> int:
    """How often a random function was called, over all places it was called from."""
    places = held if isinstance(held, list) else []
    return sum(place["count"] for place in places if isinstance(place, dict) and type(place.get("count")) is int)


def _plain(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        shown = value if isinstance(value, str) else json.dumps(value)
        yield str(key)[:100], value if isinstance(value, int | float) else shown[:160]
