"""MLPerf's `:::MLLOG` lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_migparity.core.verdict import note

from .errors import ReadError, shown
from .fields import named

if TYPE_CHECKING:
    from .lines import Lines
    from .rows import Rows

MARK = ":::MLLOG "
LOSSES = ("train_loss", "loss")
STEPS = ("step_num", "samples_count", "step")  # in this order, of what the first training record has
RECORD_LIMIT = 1 << 16
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)


class MllogReader:
    """`:::MLLOG {"key": "train_loss", "value": 2.22, "metadata": {"samples_count": 80, "lr": 0.00055}, ...}`.

    The step is metadata's step_num, or else its samples_count: a count of samples; a note says which. Records of an
    evaluation are counted, those with other keys passed over.
    """

    name = "mllog"

    def sniff(self, head: str) -> float:
        """Is there a record of a training loss in it, or at least a record?"""
        if MARK not in head:
            return 0.0
        return 1.0 if any(f'"{key}"' in head for key in LOSSES) else 0.3

    def read(self, lines: Lines, rows: Rows) -> None:
        """One row per record of a training loss; ReadError for one that is broken or has no step."""
        evals = number = broken = 0
        counted = ""
        for number, text in lines:
            for piece in text.split(MARK)[1:]:
                if broken:
                    raise _broken(lines.name, broken)
                record = _record(piece)
                if record is None:
                    broken = number
                    continue
                key = record.get("key")
                evals += isinstance(key, str) and key.startswith("eval_")
                if key not in LOSSES:
                    continue
                metadata = record.get("metadata")
                metadata = metadata if isinstance(metadata, dict) else {}
                counted = counted or next((known for known in STEPS if isinstance(metadata.get(known), str)), "")
                step = metadata.get(counted)
                if not isinstance(step, str):
                    raise ReadError(lines.name, line=number, expected=f"{counted or ' or '.join(STEPS[:2])} in it",
                                    found=f"{key} with the metadata {shown(', '.join(metadata))}",
                                    remedy="log it: metadata={'step_num': step}")
                value = record.get("value")
                beside = [(name, cell) for name, cell in metadata.items()
                          if isinstance(cell, str) and name not in (counted, "file", "lineno")]
                loss = value if isinstance(value, str) else ""
                rows.add(number, step, named([("loss", loss), *beside], rows, number))
        if broken and not lines.torn:
            raise _broken(lines.name, broken)
        if broken:
            rows.dropped += 1
            rows.notes.append(note("read-torn-line", file=lines.name, line=broken))
        if evals:
            rows.dropped += evals
            rows.notes.append(note("read-other-rows", file=lines.name, evals=evals, others=0))
        if counted:
            rows.notes.append(note("read-step-is", file=lines.name, key=counted))


def _record(piece: str) -> dict[str, Any] | None:
    """The object at the beginning of `piece`; what follows it is another rank's, or nobody's."""
    try:
        record, _ = _DECODER.raw_decode(piece[:RECORD_LIMIT].lstrip())
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _broken(name: str, line: int) -> ReadError:
    return ReadError(name, line=line, found=f"{shown(MARK)} without one whole JSON object behind it",
                     expected="one record on one line", remedy="mend or remove the line, or fetch the log again")
