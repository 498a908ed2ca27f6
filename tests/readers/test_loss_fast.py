"""Regular lines are read a block at a time. The rows must be those of reading line by line, whatever is in between."""

import io
import time
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_migparity.readers import lines as lines_module
from pytest_migparity.readers import loss_jsonl, loss_lines
from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.lines import Lines
from pytest_migparity.readers.loss_jsonl import JsonlReader
from pytest_migparity.readers.loss_lines import LingbotReader, MegatronReader
from pytest_migparity.readers.rows import Rows
from pytest_migparity.readers.skeleton import Skeleton

MEGATRON = "[default0]: [2026-01-02 10:00:00] iteration {0:>6}/ 9999 | consumed samples: {0:>9} | lr: {2} | lm loss: {1} |"
BARE = "iteration {0}/9 | loss: {1} | grad norm: {2} | note | clock: 10:20:30 |"
V1 = "01/02/2026 10:00:00 - INFO - __main__ - Step {0}/900, Epoch 1, Loss {1}, GradNorm {2}, StepTime 7.5s, "
V2 = ("Step: 40{0}/50000 [1:02:03<99:00:00,  7.50s/it]01/02/2026 - INFO - Step {0}/900, Epoch 1, Loss {1}, "
      "VLA_Loss {2}, Depth_Forward_Time  0.250s, Ignore_Batch_Num 0")
JSON = '{{"step": {0}, "epoch": 1, "loss": {1}, "time": "0:00:01", "done": false, "lr": {2}}}'
FORMATS = {MEGATRON: MegatronReader, BARE: MegatronReader, V1: LingbotReader, V2: LingbotReader, JSON: JsonlReader}
VALUES = st.sampled_from(["1.5", "2.250000E-04", "0.0", "-0.0", "1e5", "nan", "NaN", "-inf", "Infinity", ".5", "+1", "07",
                          "abc", "", "1.5.5", "1,5", "null", "1 2", "9" * 70, '"0.5"', '"x"', "1e99999", "2.0s", "2.0ss"])
NOISE = st.sampled_from(["", " ", "Step ", "iteration 5/ 6", "iteration 7/ 8 | lm loss: 9.9E+00 |", "{", "| | |", "\t",
                         "Step 3/4, Epoch 1, Loss 0.5", '{"step": 3}', '{"step": 3, "loss": 1.0', "100%|###| 3/3 ", ", ,",
                         "elapsed time per iteration (ms): 3 |", '{"run": 1}', '{"step": 1, "step": 2, "loss": 3}'])
GOOD = st.sampled_from(["1.5", "0.1160", "2.250000E-04", "0.0", "NaN", "12"])


@st.composite
def logs(draw):
    line = draw(st.sampled_from(sorted(FORMATS)))
    pieces = []
    for number in range(draw(st.integers(1, 25))):
        regular = draw(st.integers(0, 3))
        text = line.format(number, draw(GOOD if regular else VALUES), draw(GOOD if regular else VALUES))
        if not regular:
            how = draw(st.integers(0, 5))
            at = draw(st.integers(0, len(text)))
            noise = draw(NOISE)
            text = [text, noise, text[:at], text[:at] + noise + text[at:], noise + text, text + " " + text][how]
        pieces.append(text + draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", " \n"])))
    whole = "".join(pieces)
    return line, whole[: draw(st.integers(max(1, len(whole) - 30), len(whole)))]


def outcome(reader, text):
    """Every row, or the error, and what was said on the way."""
    rows = Rows("log")
    try:
        reader.read(Lines(io.BytesIO(text.encode()), "log"), rows)
    except ReadError as error:
        return str(error)
    names = list(rows.columns())
    cells = [rows.column(name) for name in names]
    return (names, rows.lines().tolist(), rows.steps().tolist(), rows.odd_steps, rows.twice, rows.notes, rows.dropped,
            rows.repaired, [(each.value.tobytes(), each.decimals.tolist(), each.exponent.tolist(), each.kind.tolist())
                            for each in cells])


@given(logs(), st.sampled_from([80, 700, 1 << 20]))
@example((BARE, BARE.format(1, "1.5", "2") + "\n" + BARE.format(2, "1.5", "nan") + "\n"), 1 << 20)
@settings(max_examples=400)
def test_blocks_give_the_rows_of_single_lines(log, block):
    line, text = log
    if not text.strip():
        return
    with patch.object(lines_module, "BLOCK", block):
        fast = outcome(FORMATS[line](), text)
        with patch.object(loss_lines, "learn", lambda *_: None), patch.object(loss_jsonl, "_learn", lambda _: None):
            slow = outcome(FORMATS[line](), text)
    assert fast == slow


@pytest.mark.parametrize("line", sorted(FORMATS))
def test_regular_logs_do_go_in_blocks(line):
    """Else the property above would compare the slow way with itself."""
    text = "".join(line.format(i, f"{i}.25", "1.5E-04") + "\n" for i in range(1, 200))
    with patch.object(Skeleton, "read", autospec=True, side_effect=Skeleton.read) as read:
        names, numbers, steps, *_, cells = outcome(FORMATS[line](), text)
    assert read.call_count == 1
    assert numbers == steps == list(range(1, 200))
    loss = cells[names.index("loss")]
    assert np.frombuffer(loss[0]).tolist() == [i + 0.25 for i in range(1, 200)]
    assert set(loss[1]) == {2}


@pytest.mark.parametrize("line", sorted(FORMATS))
@pytest.mark.parametrize("hostile", [
    "Step " * 200_000, "iteration " * 100_000, "iteration " + " " * 1_000_000 + "1/ 2 |", "i" * 1_000_000, "|" * 1_000_000,
    "iteration 1/9 | loss: " + "9" * 1_000_000 + " |", "Step 1/2, Epoch 1, Loss " + " " * 1_000_000, '{"step": ' * 100_000,
    '{"step": 1, "epoch": 1, "loss": ' + "9" * 500_000 + "." + "9" * 500_000, "iteration 1/9 |" * 70_000, '{"' * 500_000,
    "[: nan " * 100_000, '{"a": ' + "nan, " * 200_000,
])
def test_hostile_megabytes_among_regular_lines_take_no_time(line, hostile):
    regular = "".join(line.format(i, "1.5", "2.5") + "\n" for i in range(50))
    start = time.process_time()
    outcome(FORMATS[line](), regular + hostile + "\n" + regular)
    assert time.process_time() - start < 3


def test_records_of_another_shape_stay_in_their_place():
    """A line in between that is a record of another shape stays where it was in the file."""
    body = [BARE.format(i, "1.5", "2.5") for i in range(1, 100)]
    body[49] = "iteration 50/9 | loss: 7.5 | skipped: 1 |"
    body.insert(20, "saving a checkpoint")
    names, numbers, steps, *_ , cells = outcome(MegatronReader(), "\n".join(body) + "\n")
    assert steps == list(range(1, 100))
    assert numbers == [*range(1, 21), *range(22, 101)]
    assert np.frombuffer(cells[names.index("loss")][0])[[48, 49, 50]].tolist() == [1.5, 7.5, 1.5]
    assert np.frombuffer(cells[names.index("skipped")][0])[49] == 1.0
