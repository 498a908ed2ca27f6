"""trainer_state.json of Hugging Face's Trainer."""

import json
import math

import pytest

from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.loss import read_loss


def train(step, loss, **more):
    return {"epoch": step / 2500, "grad_norm": 12.390271186828613, "learning_rate": 4e-05, "loss": loss, "step": step,
            **more}


EVAL = {"epoch": 0.4, "eval_loss": 0.28997617959976196, "eval_runtime": 3.5, "step": 1000}
SUMMARY = {"epoch": 1.0, "total_flos": 1.5e18, "train_loss": 0.4, "train_runtime": 100.0, "step": 1500}


def state(*records, indent=2, **more):
    document = {"best_metric": None, "epoch": 1.0, "global_step": 1500, "is_world_process_zero": True,
                "log_history": list(records), "logging_steps": 500, "max_steps": 1500, "trial_params": None, **more}
    return json.dumps(document, indent=indent, sort_keys=True) + "\n"


def read(text, **options):
    return read_loss(text.encode(), "run/log", **options)


def codes(reading):
    return [item.code for item in reading.repairs]


@pytest.mark.parametrize("indent", [None, 2])
def test_training_records_only(indent):
    reading = read(state(train(500, 0.4518409729003906), train(1000, 0.25), EVAL, train(1500, 0.125), SUMMARY,
                         indent=indent))
    assert reading.format == "hf-state"
    assert reading.table.step.tolist() == [500, 1000, 1500]
    assert reading.table.loss.tolist() == [0.4518409729003906, 0.25, 0.125]
    assert reading.table.window == 500
    assert set(reading.table.columns) == {"epoch", "grad_norm", "lr", "loss"}
    assert reading.table.columns["lr"].tolist() == [4e-05] * 3
    assert reading.table.quantum["loss"][0] == pytest.approx(1e-16)
    assert reading.dropped == 2
    assert [dict(item.params) for item in reading.repairs] == [{"file": "run/log", "evals": 1, "others": 1}]


def test_nan_and_infinity_are_values():
    reading = read(state(train(1, math.nan), train(2, math.inf), train(3, 0.0), logging_steps=1))
    assert reading.table.loss == pytest.approx([math.nan, math.inf, 0.0], nan_ok=True)


def test_a_loss_of_null_is_none():
    assert codes(read(state(train(1, 2.5), train(2, None)))) == ["read-no-value"]


def test_without_logging_steps_the_window_is_the_usual_distance():
    text = state(*(train(step, 0.5) for step in (1, 10, 20, 30))).replace('"logging_steps": 500', '"logging_steps": 0.1')
    assert read(text).table.window == 10


def test_a_single_record_is_the_mean_over_logging_steps():
    assert read(state(train(500, 0.5))).table.window == 500
    assert read(state(*(train(step, 0.5) for step in (40, 80, 120)))).table.window == 40  # logged once an epoch


def test_a_resumed_history_keeps_the_last_record_of_a_step():
    reading = read(state(train(10, 4.0), train(20, 2.6), train(30, 2.1), train(20, 2.5), train(30, 2.0), train(40, 1.0)))
    assert reading.table.loss.tolist() == [4.0, 2.5, 2.0, 1.0]
    assert codes(reading) == ["read-resumed"]


def test_the_line_of_a_bad_value_is_named():
    text = state(train(500, 0.5), EVAL, train(1000, "n/a"))
    line = [number for number, text in enumerate(text.split("\n"), 1) if '"step": 1000' in text][1]
    with pytest.raises(ReadError, match=f"line {line}: found loss 'n/a'"):
        read(text)


@pytest.mark.parametrize(("text", "found"), [
    (state(), '{"log_history": []}'),
    (state(EVAL, SUMMARY), "no row of the expected form"),
    (state(train(1, 2.0))[:-30], "broken JSON"),
    (state(train(1, 2.0)).replace("[", "{", 1), "broken JSON"),
    ('{"log_history": 3}', "a log_history of the type str"),
    ('{"log_history": [3]}', "a record of the type str"),
    ('{"log_history": ' + "[" * 100_000, "JSON"),
    ('{"a": [{"log_history": []}]}', "a log_history of the type NoneType"),
    ('{"log_history": [{"loss": 1.0, "loss": 2.0, "step": 1}]}', "'loss' more than once"),
    ('{"log_history": [{"loss": 1.0, "step": 1.5}]}', "step '1.5'"),
])
def test_what_is_no_whole_state_is_refused(text, found):
    with pytest.raises(ReadError, match="run/log") as error:
        read(text)
    assert found in str(error.value)
    assert len(str(error.value)) < 400


def test_a_document_too_large_to_parse_is_refused():
    with pytest.raises(ReadError, match="more than 33554432 characters"):
        read('{"log_history": [' + (" " * 999 + "\n") * 34_000)
