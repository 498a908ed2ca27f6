"""Log lines of trainers: LingBot-VLA v1 and v2; Megatron, MindSpeed-LLM and MindSpeed-MM."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pytest_migparity.core.verdict import note

from .rows import NON_FINITE, NUMBER, Rows

RECORD_LIMIT = 1 << 14  # characters of one record that are looked at
# more digits than a step has: `rows` refuses such a step by its line, a pattern would pass over it
_LINGBOT = re.compile(r"\bStep (\d{1,30})/\d{1,30}, Epoch \d{1,9}\b", re.ASCII)
_MEGATRON = re.compile(r"\biteration {1,12}(\d{1,30})/ {0,12}\d{1,30} ?\|", re.ASCII)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_BLANKS = re.compile(r"[ _]+")
SHORT = {"lm_loss": "loss", "learning_rate": "lr", "number_of_skipped_iterations": "skipped",
         "number_of_nan_iterations": "nan_iterations"}


class LingbotReader:
    """`... Step 796/8204, Epoch 1, Loss 0.1160, VLA_Loss 0.1118, ..., LR 1.00e-04, StepTime 7.492s`.

    The progress bar glued before it has a `Step` of its own (`Step: 796/100000 [`), which is another count.
    """

    name = "lingbot"

    def sniff(self, text: str) -> float:
        """Is there a logger's step in it?"""
        return 1.0 if _LINGBOT.search(text) else 0.0

    def rows(self, text: str, name: str) -> Rows:
        """One row per logger's step; the losses are printed with four decimals."""
        return _collect(text, name, _LINGBOT, _by_commas)


class MegatronReader:
    """`iteration 3/ 7629408 | consumed samples: 96 | ... | lm loss: 1.107468E+01 | grad norm: 30.066 | ...`.

    A rank prefix (`[default0]:`) or a clock may come before; an iteration that was skipped prints no loss.
    """

    name = "megatron"

    def sniff(self, text: str) -> float:
        """Is there an iteration in it?"""
        return 1.0 if _MEGATRON.search(text) else 0.0

    def rows(self, text: str, name: str) -> Rows:
        """One row per iteration."""
        return _collect(text, name, _MEGATRON, _by_bars)


Cells = Iterator[tuple[str, str, bool]]  # name, value, ended by a separator


def _collect(text: str, name: str, pattern: re.Pattern[str], cells: Callable[[str], Cells]) -> Rows:
    """Every match of `pattern` begins a record that ends at the next match (two ranks glued on one line) or line end.

    A record at the very end of a file without a final newline may be cut: its last value counts only where a
    separator follows.
    """
    found = Rows()
    line, counted = 1, 0
    matches = list(pattern.finditer(text))
    for i, match in enumerate(matches):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        after = matches[i + 1].start() if i + 1 < len(matches) else len(text)
        end = text.find("\n", match.end(), after)
        cut = end < 0 and after == len(text)
        record = text[match.end(): min(after if end < 0 else end, match.end() + RECORD_LIMIT)]
        row: dict[str, str] = {}
        for key, value, ended in cells(record):
            if (ended or not cut) and row.setdefault(key, value) != value:
                found.twice.setdefault(key, line)
        if cut and "loss" not in row:
            found.dropped += 1
            found.notes.append(note("read-torn-line", file=name, line=line))
            continue
        found.add(line, match.group(1), row)
    return found


def _by_commas(record: str) -> Cells:
    """`, Loss 0.1160, VLA_Loss 0.1118, StepTime 7.492s` to (loss, 0.1160), ..."""
    pieces = record.split(",")
    for i, piece in enumerate(pieces):
        words = piece.split()
        if len(words) >= 2:
            value = words[1].removesuffix("s")
            if _is_value(value):
                yield _snake(words[0]), value, i + 1 < len(pieces) or len(words) > 2


def _by_bars(record: str) -> Cells:
    """` consumed samples: 96 | lm loss: 1.107468E+01 |` to (consumed_samples, 96), (loss, 1.107468E+01)."""
    pieces = record.split("|")
    for i, piece in enumerate(pieces):
        key, colon, value = piece.partition(":")
        if colon and _is_value(value.strip()):
            yield _snake(key.strip()), value.strip(), i + 1 < len(pieces)


def _is_value(text: str) -> bool:
    return len(text) < 100 and (NUMBER.fullmatch(text) is not None or bool(NON_FINITE.get(text.lower())))


def _snake(name: str) -> str:
    """`GradNorm` and `grad norm` to `grad_norm`."""
    key = _BLANKS.sub("_", _CAMEL.sub("_", name)).lower()
    return SHORT.get(key, key)
