"""DeepSpeed's logs: the pipeline engine's loss lines, and bare losses between the step lines of the engine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_migparity.core.verdict import note

from .errors import ReadError
from .fields import is_value, records, values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .lines import Lines
    from .rows import Rows

_ENGINE = re.compile(r"\bstep=(\d{1,15}), skipped=(\d{1,15}), lr=\[([^\[\]]{0,400})\]", re.ASCII)
_PIPELINE = re.compile(r"\bsteps: (\d{1,30}) (?=loss: \S{1,64} (?:[\w/]{1,60}: \S{1,64} ){0,16}iter time \(s\): )",
                       re.ASCII)
_PIPELINE_FIELD = re.compile(r"(?<!\S)([A-Za-z_][\w/]{0,60}): (\S{1,64})(?!\S)", re.ASCII)
_NAMED = r"([A-Za-z_][\w/]{0,60}(?: [\w/]{1,60}){0,3}) ?[:=] ?([-+.\w]{1,64})"
_BARE_FIELD = re.compile(_NAMED, re.ASCII)
_UNNAMED = _NAMED.replace("([", "(?:[")
_BARE = re.compile(r"\s{0,20}(?:\[[\w .:,-]{1,60}\]:? ?|\d{1,5}: ){0,6}"  # a rank, a clock
                   rf"({_UNNAMED}(?:, {_UNNAMED}){{0,32}}),?\s{{0,20}}", re.ASCII)
_OVERFLOW = re.compile(r"overflow.{0,60}skipping step", re.IGNORECASE)
LINE_LIMIT = 1 << 12  # characters of a line with bare losses
MOST_PENDING = 1 << 16  # bare losses before a line of the engine
REMEDY = 'print both, on one rank: print(f"step={engine.global_steps} loss={loss.item()}")'


class DeepspeedReader:
    """`[Rank 0] step=10, skipped=6, lr=[9.6e-06], mom=[...]` of the engine, which has no loss, and losses beside it.

    The pipeline engine's `steps: 10 loss: 2.3026 iter time (s): 1.202` has both. Losses that a script prints bare
    (`chosen: 0.0, rejected: 0.0, loss: 0.693359375`) get their steps from the lines of the engine between which they
    stand, where there is one for every step. `skipped` and `lr` of the engine join the row of their step.
    """

    name = "deepspeed"

    def sniff(self, head: str) -> float:
        """Is there a line of one of the engines in it? Logs of other trainers may hold such lines too."""
        if _PIPELINE.search(head):
            return 0.75
        return 0.7 if _ENGINE.search(head) else 0.0

    def read(self, lines: Lines, rows: Rows) -> None:
        """One row per step with a loss; ReadError where bare losses and the engine's steps do not go together."""
        piped = _PIPELINE.search(lines.head) is not None
        engine, between = dict[int, dict[str, str]](), _Between(rows, lines.name)
        overflows = first = evals = number = at = 0
        ends = ""
        for number, text in lines:
            if _OVERFLOW.search(text):
                overflows, first = overflows + 1, first or number
            for match in _ENGINE.finditer(text):
                step = int(match.group(1))
                engine = {step: {"skipped": match.group(2), **_rates(match.group(3))}}
                if not piped:
                    between.engine(number, step, engine[step])
            if piped:
                for match, rest in records(text, _PIPELINE):
                    row = values(rest, _PIPELINE_FIELD, rows, number)
                    rows.add(number, match.group(1), {**row, **engine.get(int(match.group(1)), {})})
                    at, ends = number, next(reversed(row), "step")
            elif "loss" in text and len(text) <= LINE_LIMIT and (bare := _BARE.fullmatch(text)):
                row = values(bare.group(1), _BARE_FIELD, rows, number)
                if "ppl" in row or "perplexity" in row:
                    evals += 1
                elif "loss" in row:
                    between.loss(number, row)
                    at, ends = number, next(reversed(row), "step")
        if not piped:
            between.end()
        if lines.torn and at == number:
            rows.open_end = ends
        if evals:
            rows.dropped += evals
            rows.notes.append(note("read-other-rows", file=lines.name, evals=evals, others=0))
        if overflows:
            rows.notes.append(note("read-overflow", file=lines.name, rows=overflows, line=first))


class _Between:
    """Bare losses, held until the next line of the engine tells their steps."""

    def __init__(self, rows: Rows, name: str) -> None:
        self._rows, self._name = rows, name
        self._held: list[tuple[int, dict[str, str]]] = []
        self._step = self._gap = self._placed = 0
        self._engine: dict[str, str] = {}
        self._after = False  # is a loss printed after the engine's line of its step?

    def loss(self, line: int, row: dict[str, str]) -> None:
        """A line with a loss."""
        if len(self._held) == MOST_PENDING:
            raise ReadError(self._name, line=line, found=f"{MOST_PENDING} losses without a step between them",
                            expected="lines of the engine (steps_per_print) among them", remedy=REMEDY)
        self._held.append((line, row))

    def engine(self, line: int, step: int, row: dict[str, str]) -> None:
        """A line of the engine: the losses since the last one are of the steps since then, one each."""
        count = len(self._held)
        if not step and not self._step and not count:
            return  # printed as the engine is built, before the first step
        if not self._step:
            self._after = count == step - 1
        expected = step - self._step - (not self._step and self._after)
        if step <= self._step or count != expected:
            since = f"between the engine's steps {self._step} and {step}" if self._step else (
                f"before the engine's first step, {step}")
            raise ReadError(self._name, line=line, found=f"{count} losses {since}",
                            expected="one for each step (from one rank, of whole steps, from the first step on)",
                            remedy=REMEDY)
        self._place(None if self._after else row)
        self._step, self._gap, self._engine = step, step - self._step, row

    def end(self) -> None:
        """No more lines: the last losses follow the last line of the engine."""
        if self._held and (not self._step or len(self._held) > self._gap):
            raise ReadError(self._name, line=self._held[0][0], expected=f"at most {self._gap}", remedy=REMEDY,
                            found=f"{len(self._held)} losses after the engine's last step, {self._step}")
        if self._after and not self._held:
            raise ReadError(self._name, found=f"no loss after the engine's last step, {self._step}, and one too few "
                            "before its first", expected="one for each step", remedy=REMEDY)
        self._place(None)
        if self._placed:
            self._rows.notes.append(note("read-steps-from-engine", file=self._name, rows=self._placed))

    def _place(self, last: Mapping[str, str] | None) -> None:
        """Give the held losses their steps; `last`: what the engine says of the last one's."""
        start = self._step + 1 - (self._after and self._step > 0)
        for i, (line, row) in enumerate(self._held):
            engine = self._engine if self._after and start + i == self._step else {}
            if last is not None and i == len(self._held) - 1:
                engine = dict(last)
            self._rows.add(line, str(start + i), {**row, **engine})
        self._placed += len(self._held)
        self._held = []


def _rates(printed: str) -> dict[str, str]:
    """The learning rates of the parameter groups: the first, and of the others those that differ from it."""
    rates = [rate.strip() for rate in printed.split(",")][:16]
    named = {"lr" if not i else f"group{i}_lr": rate for i, rate in enumerate(rates) if not i or rate != rates[0]}
    return {name: rate for name, rate in named.items() if is_value(rate)}
