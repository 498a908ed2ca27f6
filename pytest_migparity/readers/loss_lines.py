"""Log lines of trainers: LingBot-VLA v1 and v2; Megatron, MindSpeed-LLM and MindSpeed-MM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from pytest_migparity.core.verdict import note

from .cells import NON_FINITE, NUMBER
from .lines import Lines
from .rows import Rows
from .skeleton import RECORD_LIMIT, Form, Piece, learn

_LEARN = 16  # times that a skeleton is learnt anew
# more digits than a step has: `rows` refuses such a step by its line, a pattern would pass over it
_STEP = re.compile(r"\bStep (\d{1,30})/\d{1,30}, Epoch \d{1,9}\b", re.ASCII)
_ITERATION = re.compile(r"\biteration {1,12}(\d{1,30})/ {0,12}\d{1,30} ?\|", re.ASCII)
_WORDS = re.compile(r"( {0,64}[^\s,]{1,64} {1,64})([^\s,s]{1,64})s?((?: .{0,200})?)")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_BLANKS = re.compile(r"[ _]+")
SHORT = {"consumed_samples": "samples", "consumed_tokens": "tokens", "lm_loss": "loss", "learning_rate": "lr",
         "number_of_skipped_iterations": "skipped",
         "number_of_nan_iterations": "nan_iterations"}


class LingbotReader:
    """`... Step 796/8204, Epoch 1, Loss 0.1160, VLA_Loss 0.1118, ..., LR 1.00e-04, StepTime 7.492s`.

    The progress bar glued before it has a `Step` of its own (`Step: 796/100000 [`), which is another count.
    """

    name = "lingbot"

    def sniff(self, head: str) -> float:
        """Is there a logger's step in it?"""
        return 1.0 if _STEP.search(head) else 0.0

    def read(self, lines: Lines, rows: Rows) -> None:
        """One row per logger's step; the losses are printed with four decimals."""
        _collect(lines, rows, _LINGBOT)


class MegatronReader:
    """`iteration 3/ 7629408 | consumed samples: 96 | ... | lm loss: 1.107468E+01 | grad norm: 30.066 | ...`.

    A rank prefix (`[default0]:`) or a clock may come before; an iteration that was skipped prints no loss.
    """

    name = "megatron"

    def sniff(self, head: str) -> float:
        """Is there an iteration in it?"""
        return 1.0 if _ITERATION.search(head) else 0.0

    def read(self, lines: Lines, rows: Rows) -> None:
        """One row per iteration."""
        _collect(lines, rows, _MEGATRON)


def _collect(lines: Lines, rows: Rows, form: Form) -> None:
    """All records, block by block: at once where they are regular, else one by one."""
    skeleton, tries = None, 0
    for first, block in lines.blocks():
        whole = block.rfind("\n") + 1
        if skeleton is None and tries < _LEARN:
            skeleton, tries = learn(block, form), tries + 1
        if skeleton is None or not skeleton.read(block[:whole], first, rows, partial(_records, rows, form)):
            skeleton = None
            _records(rows, form, block[:whole], first)
        if whole < len(block):
            _records(rows, form, block[whole:], first + block.count("\n"), cut=True)


def _records(rows: Rows, form: Form, text: str, line: int, cut: bool = False) -> None:
    """Every match of the form's start begins a record that ends at the next match (two ranks glued on one line) or at
    the line's end.

    `cut`: the text ends where a file without a final newline does; its last record may be torn, and its last value
    counts only where a separator follows.
    """
    counted = 0
    matches = list(form.start.finditer(text))
    for i, match in enumerate(matches):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        after = matches[i + 1].start() if i + 1 < len(matches) else len(text)
        end = text.find("\n", match.end(), after)
        last = cut and end < 0 and after == len(text)
        record = text[match.end(): min(after if end < 0 else end, match.end() + RECORD_LIMIT)]
        row: dict[str, str] = {}
        for key, value, ended in form.cells(record):
            if (ended or not last) and row.setdefault(key, value) != value:
                rows.twice.setdefault(key, line)
        if last and "loss" not in row:
            rows.dropped += 1
            rows.notes.append(note("read-torn-line", file=rows.name, line=line))
            continue
        rows.add(line, match.group(1), row)


def _by_commas(record: str) -> Iterator[tuple[str, str, bool]]:
    """`, Loss 0.1160, VLA_Loss 0.1118, StepTime 7.492s` to (loss, 0.1160), ..."""
    pieces = record.split(",")
    for i, piece in enumerate(pieces):
        words = piece.split()
        if len(words) >= 2:
            value = words[1].removesuffix("s")
            if _is_value(value):
                yield _snake(words[0]), value, i + 1 < len(pieces) or len(words) > 2


def _by_bars(record: str) -> Iterator[tuple[str, str, bool]]:
    """` consumed samples: 96 | lm loss: 1.107468E+01 |` to (consumed_samples, 96), (loss, 1.107468E+01)."""
    pieces = record.split("|")
    for i, piece in enumerate(pieces):
        key, colon, value = piece.partition(":")
        if colon and _is_value(value.strip()):
            yield _snake(key.strip()), value.strip(), i + 1 < len(pieces)


def _comma_pieces(record: str) -> Iterator[Piece]:
    for piece in record.split(","):
        match = _WORDS.fullmatch(piece)
        if match is None or not _is_value(match[2]):
            yield Piece(piece)
        else:
            yield Piece(match[1], _snake(match[1].strip()), "s?" + re.escape(match[3]))


def _bar_pieces(record: str) -> Iterator[Piece]:
    for piece in record.split("|"):
        key, colon, value = piece.partition(":")
        named = bool(colon) and _is_value(value.strip())
        yield Piece(key + colon, _snake(key.strip())) if named else Piece(piece)


def _is_value(text: str) -> bool:
    return len(text) < 100 and (NUMBER.fullmatch(text) is not None or bool(NON_FINITE.get(text.lower())))


def _snake(name: str) -> str:
    """`GradNorm` and `grad norm` to `grad_norm`."""
    key = _BLANKS.sub("_", _CAMEL.sub("_", name)).lower()
    return SHORT.get(key, key)


_LINGBOT = Form(_STEP, r"Step \d", _by_commas, _comma_pieces, ",", "s")
_MEGATRON = Form(_ITERATION, r"iteration {1,12}\d", _by_bars, _bar_pieces, "|", "")
