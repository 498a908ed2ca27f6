"""What Hugging Face's Trainer prints: a Python dict per logged step, as a rule without the step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_migparity.core.verdict import note

from .errors import ReadError, shown
from .fields import values
from .hf_steps import HfSteps
from .steps import Spacing

if TYPE_CHECKING:
    from .lines import Lines
    from .rows import Rows

# The printed dict is flat: quoted names, and values that are bare numbers or quoted (since transformers 5). A pattern
# of just that shape reads it in bounded time; `ast.literal_eval` knows no nan and has no bound, `json` no such quotes.
_QUOTES = "'\"\u2018\u2019\u201c\u201d"
_PAIR = (f"[{_QUOTES}]([^{_QUOTES}{{}}]{{1,100}})[{_QUOTES}]: ?"
         f"[{_QUOTES}]?((?<=[{_QUOTES}])[^{_QUOTES}{{}}]{{0,100}}(?=[{_QUOTES}])|[^\\s,{_QUOTES}{{}}]{{1,64}})"
         f"[{_QUOTES}]?(?=[,}}])")
_FIELD = re.compile(_PAIR)
_UNNAMED = _PAIR.replace("([^", "(?:[^").replace("((?<=", "(?:(?<=")
_DICT = re.compile(f"\\{{{_UNNAMED}(?:, ?{_UNNAMED}){{0,199}}\\}}")
_LOSS = re.compile(f"[{_QUOTES}]loss[{_QUOTES}]: ?[{_QUOTES}]?[-+]?(?:[\\d.]|nan|inf)", re.IGNORECASE)
_BEGIN = re.compile(f"\\{{[{_QUOTES}](?:loss|eval_[^{_QUOTES}{{}}]{{1,60}}|train_runtime)[{_QUOTES}]:")
_ANY = re.compile(f"({_DICT.pattern})|{_BEGIN.pattern}|(?i:{_LOSS.pattern})")
_EVAL = re.compile(f"[{_QUOTES}]eval_")
_STEP = re.compile(f"[{_QUOTES}](?:step|global_step|global_step/max_steps|iteration|current_steps)[{_QUOTES}]: ?"
                   f"[{_QUOTES}]?(\\d{{1,30}})(?=[/,}}{_QUOTES}])", re.ASCII)  # ms-swift has the third and fourth
RECORDS = 1 << 20  # records without a step that are kept until the end of the log tells their steps


class HfStdoutReader:
    """`{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 4.5e-06, 'epoch': 0.02}`, after a progress bar or alone.

    The loss is the mean since the last record, with four decimals or four digits. As a rule no step is printed: the
    progress bar tells it, or logging_steps where the log holds it; without either the rows are numbered from 1, and a
    note says so. Records of an evaluation and the closing summary are counted, not read.
    """

    name = "hf-stdout"

    def sniff(self, head: str) -> float:
        """Is there a dict with a number as its loss in it? Logs of other trainers may hold such lines too."""
        found = any(_LOSS.search(match.group()) for line in head.split("\n") if _LOSS.search(line)
                    for match in _DICT.finditer(line))
        return 0.85 if found else 0.0

    def read(self, lines: Lines, rows: Rows) -> None:
        """One row per dict with a loss; ReadError for a broken one, save at the very end of a torn log."""
        steps, spacing, held = HfSteps(), Spacing(), list[tuple[int, str]]()
        evals = others = broken = number = 0
        for number, text in lines:
            if broken:
                raise _broken(lines.name, broken)
            end = 0
            for start, record in _dicts(text):
                steps.see(text[end:start], glued=True)
                end = start + len(record)
                if not record:
                    broken = number
                elif _LOSS.search(record) is None:
                    evals += _EVAL.search(record) is not None
                    others += _EVAL.search(record) is None
                elif (step := _STEP.search(record)) is not None and not held:
                    rows.add(number, step.group(1), values(record, _FIELD, rows, number))
                    spacing.add(int(step.group(1)[:16]))
                elif step is not None or spacing.started:
                    raise ReadError(lines.name, line=number, found=f"{shown(record)}: some records have a step",
                                    expected="a step in every record or in none", remedy="hand in trainer_state.json")
                elif len(held) == RECORDS:
                    raise ReadError(lines.name, line=number, found=f"more than {RECORDS} records without a step",
                                    expected="fewer", remedy="hand in trainer_state.json")
                else:
                    held.append((number, record))
                    steps.record()
            steps.see(text[end:])
        if broken and not lines.torn:
            raise _broken(lines.name, broken)
        if broken:
            rows.dropped += 1
            rows.notes.append(note("read-torn-line", file=lines.name, line=broken))
        if evals or others:
            rows.dropped += evals + others
            rows.notes.append(note("read-other-rows", file=lines.name, evals=evals, others=others))
        if held:
            _number(held, steps, rows, spacing, lines.name)
        rows.window = spacing.usual


def _dicts(line: str) -> Iterator[tuple[int, str]]:
    """(start, text) of every dict of a record in a line; the text is empty for one that is broken."""
    if _BEGIN.search(line) is None and _LOSS.search(line) is None:
        return
    end = 0
    for match in _ANY.finditer(line):
        record = match.group(1) or ""
        if record:
            if _BEGIN.match(record) or _LOSS.search(record):
                yield match.start(), record
        elif match.group()[0] == "{" or line.rfind("{", end, match.start()) >= 0:
            yield match.start(), ""
        end = match.end()


def _broken(name: str, line: int) -> ReadError:
    return ReadError(name, line=line, found="a record that is cut or mixed with another text",
                     expected="{'loss': ..., ...} on one line", remedy="hand in trainer_state.json, or mend the line")


def _number(held: list[tuple[int, str]], steps: HfSteps, rows: Rows, spacing: Spacing, name: str) -> None:
    """Add the records that print no step, with the steps that the log tells otherwise, or else their positions."""
    count = len(held)
    if (found := steps.from_bar()) is not None:
        rows.notes.append(note("read-steps-from-bar", file=name, rows=count))
    elif (found := steps.from_logging()) is not None:
        every = found[-1] - found[-2] if count > 1 else found[-1]
        rows.notes.append(note("read-steps-from-logging", file=name, rows=count, every=every))
    else:
        rows.notes.append(note("read-steps-are-positions", file=name, rows=count))
    for (line, record), step in zip(held, found or range(1, count + 1), strict=True):
        rows.add(line, str(step), values(record, _FIELD, rows, line))
        if found:
            spacing.add(step)
