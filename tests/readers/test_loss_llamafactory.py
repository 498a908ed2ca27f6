"""LLaMA-Factory's trainer_log.jsonl."""

import pytest

from pytest_migparity.readers.loss import read_loss

LINE = ('{{"current_steps": {0}, "total_steps": 8660, "loss": {1}, "{lr}": 5.773672055427253e-07, "epoch": 0.0046, '
        '"percentage": 0.12, "elapsed_time": "1 day, 0:00:24", "remaining_time": "5:58:33", "throughput": "0.00", '
        '"total_tokens": 0}}\n')
NO_LOSS = ('{"current_steps": 30, "total_steps": 8660, "epoch": 1.0, "percentage": 100.0, "elapsed_time": "0:10:00", '
           '"remaining_time": "0:00:00"}\n')
EVAL = ('{"current_steps": 20, "total_steps": 8660, "eval_loss": 9.5, "epoch": 0.0046, "percentage": 0.12, '
        '"elapsed_time": "0:00:24", "remaining_time": "5:58:33"}\n')


def read(text, **options):
    return read_loss(text.encode(), "run/log", **options)


@pytest.mark.parametrize("lr", ["learning_rate", "lr"])
def test_training_lines(lr):
    reading = read(LINE.format(10, "2.4977", lr=lr) + LINE.format(20, "2.25", lr=lr) + EVAL + NO_LOSS)
    assert reading.format == "jsonl"
    assert (reading.table.step.tolist(), reading.table.loss.tolist()) == ([10, 20], [2.4977, 2.25])
    assert reading.table.interval == 10
    assert reading.table.columns[lr].tolist() == [5.773672055427253e-07] * 2
    assert [item.code for item in reading.repairs] == ["read-no-value"]
    assert reading.dropped == 2


def test_the_other_columns_are_there():
    columns = read(LINE.format(10, "2.5", lr="lr")).table.columns
    assert {"total_steps", "epoch", "percentage", "throughput"} <= set(columns)
    assert columns["total_steps"].tolist() == [8660]


def test_a_nan_is_a_value():
    assert str(read(LINE.format(10, "NaN", lr="lr") + LINE.format(20, "2.5", lr="lr")).table.loss[0]) == "nan"
