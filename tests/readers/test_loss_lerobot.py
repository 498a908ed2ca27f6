"""LeRobot's lines: steps of 1000 and more are abbreviated, and never guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.loss import read_loss

LINE = ("INFO 2026-01-02 10:00:00 ot_train.py:423 step:{step} smpl:{smpl} ep:3 epch:{epoch:.2f} loss:{loss:.3f} "
        "grdn:15.500 lr:1.0e-05 updt_s:0.047 data_s:0.002\n")
CONFIG = "INFO 2026-01-02 10:00:00 ot_train.py:100 {{'batch_size': 8,\n 'log_freq': {0},\n 'steps': 100000}}\n"


def printed(number):
    """A number as LeRobot prints it, by the strings a person would expect."""
    return str(number) if number < 1000 else f"{round(number / 1000)}K"


def log(steps, *, epoch=lambda step: step / 1250, text=printed):
    return "".join(LINE.format(step=text(step), smpl=printed(step * 8), epoch=epoch(step), loss=7 - step / 1000)
                   for step in steps)


def read(text, **options):
    return read_loss(text.encode(), "run/log", **options)


def codes(reading):
    return [item.code for item in reading.repairs]


def test_a_short_run_is_read_as_printed():
    reading = read("INFO 2026-01-02 10:00:00 ot_train.py:1 Start offline training\n" + log([200, 400, 600, 800]))
    assert reading.format == "lerobot"
    assert reading.table.step.tolist() == [200, 400, 600, 800]
    assert reading.table.loss == pytest.approx([6.8, 6.6, 6.4, 6.2])
    assert reading.table.quantum["loss"] == pytest.approx([1e-3] * 4)
    assert reading.table.window == 200
    assert reading.table.columns["grad_norm"].tolist() == [15.5] * 4
    assert reading.table.columns["lr"].tolist() == [1e-5] * 4
    assert {"smpl", "ep"}.isdisjoint(reading.table.columns)  # abbreviated, and no use as numbers
    assert (codes(reading), reading.repaired) == ([], 0)


def test_abbreviated_steps_are_rebuilt_where_every_abbreviation_agrees():
    reading = read(log(range(200, 3001, 200)))
    assert reading.table.step.tolist() == list(range(200, 3001, 200))
    assert (codes(reading), reading.repaired) == (["read-steps-rebuilt"], 11)
    assert dict(reading.repairs[0].params) == {"file": "run/log", "rows": 11, "every": 200}


def test_a_printed_log_freq_rebuilds_a_log_without_a_whole_step():
    reading = read(CONFIG.format(1000) + log([1000, 2000, 3000]))
    assert (reading.table.step.tolist(), reading.table.window) == ([1000, 2000, 3000], 1000)


def test_a_run_started_again_in_the_same_log_begins_anew():
    reading = read(log(range(200, 1401, 200)) + log(range(200, 2001, 200)))
    assert reading.table.step.tolist() == list(range(200, 2001, 200))
    assert "read-resumed" in codes(reading)


@pytest.mark.parametrize(("text", "found"), [
    (log([1200, 1400, 1600]), "nothing tells log_freq"),
    (log([500, 1000, 1500]), "nothing tells log_freq"),  # one whole step tells no distance
    (log([200, 400, 800, 1000]), "log_freq may be 200 or 400"),
    (CONFIG.format(100) + log([200, 400, 600, 800, 1000]), "log_freq may be 100 or 200"),
    (log([200, 400, 600, 800, 1000, 1600]), "step '2K'"),  # two lines are missing
    (log([*range(200, 1401, 200), 1000, 1200, 1400]), "step '1K'"),  # resumed at 800
    (log([200, 400, 600, 800, 1000, 1400], epoch=lambda step: step / 500), "step '1K' at epoch 2.80"),
    (CONFIG.format(200) + log([20_200, 20_400]), "step '20K'"),  # resumed, the earlier part elsewhere
    (CONFIG.format(0) + log([1000]), "log_freq may be 0"),
])
def test_a_step_that_cannot_be_rebuilt_is_refused(text, found):
    with pytest.raises(ReadError, match=r"run/log, line \d+: ") as error:
        read(text)
    assert found in str(error.value)
    assert "log_freq" in str(error.value) or "a line is missing" in str(error.value)


@given(st.sampled_from([50, 100, 200, 250]), st.integers(5, 60), st.data())
def test_a_lost_line_never_shifts_the_steps_unseen(every, count, data):
    """Where the epochs tell steps apart, a log that lacks a line is refused, or its steps are the right ones."""
    steps = [every * i for i in range(1, count + 1)]
    whole = data.draw(st.integers(0, count - 1))
    text = log(steps[:whole] + steps[whole + 1:], epoch=lambda step: step / every)
    try:
        reading = read(text)
    except ReadError:
        return
    assert reading.table.loss == pytest.approx(7 - reading.table.step / 1000, abs=6e-4)


def test_a_cut_last_line_is_dropped():
    text = log([200, 400])
    reading = read(text[: text.rindex("loss:") + len("loss:6.")])
    assert (reading.table.step.tolist(), codes(reading)) == ([200], ["read-open-end"])
