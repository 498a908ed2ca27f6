"""MLPerf's :::MLLOG lines."""

import math

import pytest

from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.loss import read_loss

LOSS = (':::MLLOG {{"namespace": "", "time_ms": 1745154985229, "event_type": "POINT_IN_TIME", "key": "{key}", '
        '"value": {value}, "metadata": {{"file": "/w/callbacks.py", "lineno": 71, "{step}": {count}, "lr": 0.00055}}}}\n')
EVAL = ':::MLLOG {"key": "eval_loss", "value": 9.5, "metadata": {"samples_count": 160, "lr": 0.1}}\n'
OTHER = ':::MLLOG {"key": "run_start", "value": null, "metadata": {"samples_count": 0}}\n'


def line(count, value, key="train_loss", step="samples_count"):
    return LOSS.format(count=count, value=value, key=key, step=step)


def read(text, **options):
    return read_loss(text.encode(), "run/log", **options)


def codes(reading):
    return [item.code for item in reading.repairs]


@pytest.mark.parametrize("junk", ["", "0: ", "[default0]: ", "ray-training  | [0] ", " 5%|# | 3/9 [00:01<00:02]"])
@pytest.mark.parametrize("key", ["train_loss", "loss"])
def test_training_losses_over_samples(junk, key):
    reading = read(OTHER + "".join(junk + line(count, value, key) for count, value in
                                   ((80, "2.2224884033203125"), (160, "NaN"), (240, "2.125"))) + OTHER)
    assert reading.format == "mllog"
    assert reading.table.step.tolist() == [80, 160, 240]
    assert reading.table.loss == pytest.approx([2.2224884033203125, math.nan, 2.125], nan_ok=True)
    assert reading.table.columns["lr"].tolist() == [0.00055] * 3
    assert set(reading.table.columns) == {"loss", "lr"}
    assert dict(reading.repairs[0].params) == {"file": "run/log", "key": "samples_count"}


def test_a_step_number_goes_before_a_count_of_samples():
    both = line(3, "2.5", step="step_num").replace('"lr"', '"samples_count": 240, "lr"')
    reading = read(both)
    assert reading.table.step.tolist() == [3]
    assert reading.table.columns["samples"].tolist() == [240]
    assert reading.repairs[0].params["key"] == "step_num"


def test_an_evaluation_at_the_same_count_does_not_replace_the_training_row():
    reading = read(line(80, "2.5") + line(160, "2.25") + EVAL + EVAL.replace("eval_loss", "eval_accuracy"))
    assert reading.table.loss.tolist() == [2.5, 2.25]
    assert (codes(reading), reading.dropped) == (["read-other-rows", "read-step-is"], 2)


def test_two_ranks_glued_on_one_line_are_two_records():
    reading = read(line(80, "2.5").strip() + "1: " + line(80, "2.5") + line(160, "2.25"))
    assert reading.table.loss.tolist() == [2.5, 2.25]


@pytest.mark.parametrize(("text", "found"), [
    (line(80, "2.5") + line(160, "2.25", step="step_num"), "line 2: found train_loss with the metadata"),
    (line(80, "2.5", step="epoch_num"), "step_num or samples_count"),
    (line(80, "2.5")[:-20] + "\n" + line(160, "2.25"), "line 1: found ':::MLLOG '"),
    (line(80, "2.5")[:-20] + "\n\n", "line 1: found ':::MLLOG '"),
    (line(80, "2.5") + line(160, '"2.5x"'), "line 2: found loss '2.5x'"),
    (OTHER, "no row of the expected form"),
])
def test_what_is_broken_or_has_no_step_is_refused(text, found):
    with pytest.raises(ReadError, match="run/log") as error:
        read(text)
    assert found in str(error.value)


def test_a_torn_last_record_is_dropped():
    reading = read(line(80, "2.5") + line(160, "2.25")[:-4])
    assert (reading.table.step.tolist(), reading.dropped) == ([80], 1)
    assert codes(reading) == ["read-torn-line", "read-step-is"]
