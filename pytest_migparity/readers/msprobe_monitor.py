"""Tables of msprobe's training monitor: `grad_reduced_0-0.csv`, `param_origin_0-0.csv`, `actv_0-0.csv` and others.

Numbers are printed with a fixed count of decimals (six by default): a small tensor may be known to a digit or two.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import PurePosixPath
from typing import BinaryIO

from pytest_migparity.core.dumped import Dump, DumpedTensor
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.verdict import Note, note

from .msprobe_dump import number, tensor_of

MAX_BYTES = 1 << 26
_FILE = re.compile(r"(actv_grad|actv|grad_unreduced|grad_reduced|param_origin|exp_avg_sq|exp_avg)_[0-9]{1,9}-[0-9]{1,9}"
                   r"\.csv")
_STAGES = {"grad_unreduced": "grad", "grad_reduced": "grad", "param_origin": "weight", "exp_avg": "state",
           "exp_avg_sq": "state", "actv_grad": "grad"}
_RANK = re.compile(r"(?:^|[-_/])rank_?([0-9]{1,6})(?:[-_/]|$)")
_SHAPE = re.compile(r"[\[(]\s*(?:[0-9]{1,15}\s*,?\s*)*[\])]")
_MADE = ("param_origin", "actv", "actv_grad", "grad_unreduced", "grad_reduced", "exp_avg", "exp_avg_sq")
_STATISTICS = ("min", "max", "mean", "norm")

Files = Mapping[str, Callable[[], BinaryIO]]


def is_monitored(name: str) -> bool:
    """Is this a table of the monitor that is read? `param_updated` is the next step's `param_origin`."""
    return _FILE.fullmatch(PurePosixPath(name).name) is not None


def read_monitor(files: Files) -> tuple[Dump, tuple[Note, ...]]:
    """One side's monitored tensors, and a note for the rows that hold none. The rank is in the folder's name.

    Activations are outputs and inputs, gradients before and after the reduction two tensors of one name each, the
    moments of the optimizer states. UserError names the file that is no such table, and a tensor that comes twice.
    """
    found: dict[tuple[int, int, str, str], DumpedTensor] = {}
    repairs: list[Note] = []
    for name in sorted(files, key=_order):
        kind = _FILE.fullmatch(PurePosixPath(name).name)
        if kind is None:
            raise UserError(f"{name}: no table of msprobe's monitor: expected a name like grad_reduced_0-0.csv")
        tensors, skipped = _table(files[name], name, kind[1])
        for tensor in tensors:
            key = tensor.step, tensor.rank, tensor.stage, tensor.name
            if key in found:
                raise UserError(f"{name}: {tensor.name} of step {tensor.step}, rank {tensor.rank} comes twice; leave "
                                "the tables of one run")
            found[key] = tensor
        if skipped:
            repairs.append(note("dump-skipped", file=name, count=skipped))
    if not found:
        raise UserError("no table of msprobe's monitor holds a tensor")
    return Dump(tuple(found.values()), "monitor", "monitor"), tuple(repairs)


def _order(name: str) -> tuple[int, str]:
    """The tables in the order in which their tensors are made."""
    kind = _FILE.fullmatch(PurePosixPath(name).name)
    return _MADE.index(kind[1]) if kind else 0, name


def _table(opened: Callable[[], BinaryIO], name: str, kind: str) -> tuple[list[DumpedTensor], int]:
    with opened() as stream:
        raw = stream.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise UserError(f"{name}: larger than {MAX_BYTES} bytes")
    table = csv.DictReader(raw.decode("utf-8-sig", "replace").replace("\0", " ").splitlines())
    missing = {"name", "step", "norm", "max", "min"} - set(_header(table, name))
    if missing:
        raise UserError(f"{name}: no table of msprobe's monitor: it has no column {', '.join(sorted(missing))}")
    try:
        rows = list(table)
    except csv.Error as error:
        raise UserError(f"{name}: not CSV: {error}") from None
    if any(None in row or None in row.values() for row in rows):
        raise UserError(f"{name}: a row has more or fewer cells than the first line; the table is cut or edited")
    rank = _RANK.search(str(PurePosixPath(name).parent))
    quantum = _quantum(row.get(column) or "" for row in rows for column in _STATISTICS)
    tensors = [_tensor(row, kind, int(rank[1]) if rank else 0, quantum) for row in rows]
    return [tensor for tensor in tensors if tensor], tensors.count(None)


def _header(table: csv.DictReader[str], name: str) -> list[str]:
    try:
        return list(table.fieldnames or ())
    except csv.Error as error:
        raise UserError(f"{name}: not CSV: {error}") from None


def _tensor(row: Mapping[str, str], kind: str, rank: int, quantum: float) -> DumpedTensor | None:
    """A row's tensor; None where it has no step or no shape, as a missing gradient has."""
    shape, step = row.get("shape") or "", row["step"]
    if not _SHAPE.fullmatch(shape) or not re.fullmatch(r"[0-9]{1,9}", step):
        return None
    stage = _STAGES.get(kind, "input" if row["name"].endswith(".input") else "output")
    micro = row.get("micro_step") or "0"
    called = [row["name"][:512], *([kind] if kind in _STAGES and stage != "weight" else []),
              *([] if (row.get("vpp_stage") or "0") == "0" else [f"vpp{row['vpp_stage'][:6]}"]),
              *([] if micro == "0" else [f"micro{micro[:9]}"])]
    return tensor_of(int(step), rank, stage, ":".join(called), row.get("dtype"),
                     tuple(int(size) for size in re.findall(r"[0-9]+", shape)),
                     tuple(number(row.get(key) or "") for key in _STATISTICS), quantum=quantum)


def _quantum(cells: Iterable[str]) -> float:
    """One unit in the last place: the most decimals that any number of the table has, as all are rounded to as many."""
    most = 0
    for cell in cells:
        try:
            exponent = Decimal(cell[:40]).as_tuple().exponent
        except InvalidOperation:
            continue
        most = max(most, -exponent if isinstance(exponent, int) else 0)
    return 10.0**-most
