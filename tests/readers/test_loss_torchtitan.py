"""torchtitan's metrics lines, and the golden losses of its tests."""

import pytest

from pytest_migparity.readers.loss import read_loss

LINE = ("[titan] 2026-01-02 10:00:00,123 - root - INFO - step: {0:2}  loss: {1:8.5f}  grad_norm:  1.2500  "
        "memory: 40.12GiB(50.00%)  tps: 1,234,567  tflops: 1,012.50  mfu: 12.25%\n")
COLOURED = LINE.replace("step:", "\x1b[31mstep:").replace("loss:", "\x1b[32mloss:").replace("%\n", "%\x1b[39m\n")
VALIDATION = ("[titan] 2026-01-02 10:00:00,123 - root - INFO - validate step: {0:2}  loss:  9.9000  "
              "memory: 40.12GiB(50.00%)  tps: 1,234\n")


def read(text, **options):
    return read_loss(text.encode(), "run/log", **options)


@pytest.mark.parametrize("line", [LINE, "[rank0]:" + LINE, COLOURED, LINE.replace("12.25%", "N/A")])
def test_metrics_lines(line):
    reading = read("[titan] - root - INFO - Model llama3 size: 1,235,814,400 total parameters\n"
                   + line.format(1, 8.0491) + line.format(10, 7.5) + line.format(1000, float("nan")))
    assert reading.format == "torchtitan"
    assert reading.table.step.tolist() == [1, 10, 1000]
    assert reading.table.loss == pytest.approx([8.0491, 7.5, float("nan")], nan_ok=True)
    assert reading.table.quantum["loss"][:2] == pytest.approx([1e-5, 1e-5])
    assert reading.table.window == 1  # the loss of that very step


def test_thousands_commas_and_units_are_no_part_of_the_numbers():
    columns = read(LINE.format(1, 8.0)).table.columns
    assert {name: values[0] for name, values in columns.items()} == {
        "loss": 8.0, "grad_norm": 1.25, "memory": 40.12, "tps": 1234567.0, "tflops": 1012.5, "mfu": 12.25}


def test_a_validation_at_the_same_step_does_not_replace_the_training_row():
    reading = read(LINE.format(10, 7.5) + VALIDATION.format(10) + LINE.format(20, 7.25))
    assert (reading.table.step.tolist(), reading.table.loss.tolist()) == ([10, 20], [7.5, 7.25])
    assert (reading.dropped, dict(reading.repairs[0].params)) == (1, {"file": "run/log", "evals": 1, "others": 0})


def test_golden_losses_are_a_table():
    reading = read("1 8.049091339111328\n2 7.750091552734375\n3 7.5\n")
    assert (reading.format, reading.table.step.tolist()) == ("csv", [1, 2, 3])
    assert reading.table.loss.tolist() == [8.049091339111328, 7.750091552734375, 7.5]
    assert reading.table.quantum["loss"][0] == pytest.approx(1e-15)
