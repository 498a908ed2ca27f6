"""Hugging Face's trainer_state.json."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_migparity.core.verdict import note

from .errors import ReadError, shown
from .fields import named
from .steps import Spacing

if TYPE_CHECKING:
    from .lines import Lines
    from .rows import Rows

DOCUMENT_LIMIT = 1 << 25  # characters; some 200,000 records. Parsed, a document takes about eight times that
_STEP = re.compile(r'\s{0,100}"step"\s{0,9}:')
REMEDY = "fetch the trainer_state.json of the last checkpoint again"


class HfStateReader:
    """`{"log_history": [{"epoch": 0.2, "loss": 0.45, "learning_rate": 4e-05, "step": 500}, ...], ...}`.

    The loss is the mean since the last record; before transformers 5 it is rounded to four decimals. Records of an
    evaluation and the closing summary are counted, not read.
    """

    name = "hf-state"

    def sniff(self, head: str) -> float:
        """Is it an object with a log_history?"""
        return 1.0 if head.lstrip()[:1] == "{" and '"log_history"' in head else 0.0

    def read(self, lines: Lines, rows: Rows) -> None:
        """One row per training record; ReadError for a document that is cut, or too large to parse."""
        document, step_lines = _document(lines)
        history = document.get("log_history")
        if not isinstance(history, list):
            raise ReadError(lines.name, found=f"a log_history of the type {type(history).__name__}",
                            expected="a list of records", remedy=REMEDY)
        if not history:
            raise ReadError(lines.name, found='{"log_history": []}', expected="at least one record of training",
                            remedy="did the run reach its first logging step? it is logging_steps in the arguments")
        exact = len(step_lines) == sum("step" in record for record in history if isinstance(record, dict))
        places = iter(step_lines if exact else ())
        evals = others = 0
        spacing = Spacing()
        for record in history:
            if not isinstance(record, dict):
                raise ReadError(lines.name, found=f"a record of the type {type(record).__name__}",
                                expected="an object", remedy=REMEDY)
            line = next(places, 1) if "step" in record else 1
            step = record.get("step")
            if "loss" not in record or not isinstance(step, str):
                evals += any(key.startswith("eval_") for key in record)
                others += not any(key.startswith("eval_") for key in record)
                continue
            rows.add(line, step, named(((key, "" if value is None else str(value)) for key, value in record.items()
                                        if key != "step" and not isinstance(value, (dict, list, bool))), rows, line))
            if step.isdecimal():
                spacing.add(int(step[:16]))
        if evals or others:
            rows.dropped += evals + others
            rows.notes.append(note("read-other-rows", file=lines.name, evals=evals, others=others))
        rows.window = spacing.usual or _logging_steps(document)


def _document(lines: Lines) -> tuple[dict[str, Any], list[int]]:
    """The document with its numbers as printed, and the lines that hold a step (one record each, as it is written)."""
    texts, length, step_lines = [], 0, []
    for number, text in lines:
        length += len(text) + 1
        if length > DOCUMENT_LIMIT:
            raise ReadError(lines.name, found=f"more than {DOCUMENT_LIMIT} characters", remedy="cut log_history down, "
                            "or export step,loss as CSV", expected="a trainer_state.json of that length")
        texts.append(text)
        if _STEP.match(text):
            step_lines.append(number)
    try:
        document = json.loads("\n".join(texts), parse_float=str, parse_int=str, parse_constant=str,
                              object_pairs_hook=_once)
    except _TwiceError as error:
        raise ReadError(lines.name, found=f"the key {shown(str(error))} more than once in one object",
                        expected="each key once", remedy="keep the one that is meant") from None
    except json.JSONDecodeError as error:
        raise ReadError(lines.name, line=error.lineno, found=f"broken JSON ({error.msg})", remedy=REMEDY,
                        expected="one whole JSON document") from None
    except (ValueError, RecursionError):
        raise ReadError(lines.name, found="JSON nested too deeply", expected="a trainer_state.json",
                        remedy=REMEDY) from None
    if not isinstance(document, dict):
        raise ReadError(lines.name, found="JSON that is no object", expected="a trainer_state.json", remedy=REMEDY)
    return document, step_lines


class _TwiceError(Exception):
    """A key that comes twice in one object."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _TwiceError(key)
        found[key] = value
    return found


def _logging_steps(document: dict[str, Any]) -> int | None:
    printed = document.get("logging_steps")
    return int(printed) if isinstance(printed, str) and printed.isdecimal() and 0 < len(printed) < 10 else None
