"""What Hugging Face's Trainer prints: dicts without a step. A step is told by the log or said to be a position."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.hf_steps import HfSteps
from pytest_migparity.readers.loss import read_loss

EVAL = "{'eval_loss': 0.45, 'eval_runtime': 3.5, 'epoch': 0.4}\n"
SUMMARY = "{'train_runtime': 100.5, 'train_samples_per_second': 3.1, 'train_loss': 0.5, 'epoch': 1.0}\n"


def record(loss, epoch=0.02):
    return f"{{'loss': {loss}, 'grad_norm': 1.25, 'learning_rate': 4.510703363914373e-06, 'epoch': {epoch}}}\n"


def bar(count, total=1389):
    return f"  1%|\u258f         | {count}/{total} [00:41<1:20:11,  3.52s/it]"


def read(text, **options):
    return read_loss(text.encode(), "run/log", **options)


def codes(reading):
    return [item.code for item in reading.repairs]


def test_without_any_evidence_rows_are_positions_and_that_is_said():
    reading = read("***** Running training *****\n" + record(0.6931) + record(0.5) + EVAL + record(0.25) + SUMMARY)
    assert reading.format == "hf-stdout"
    assert (reading.table.step.tolist(), reading.table.loss.tolist()) == ([1, 2, 3], [0.6931, 0.5, 0.25])
    assert codes(reading) == ["read-other-rows", "read-steps-are-positions"]
    assert dict(reading.repairs[0].params) == {"file": "run/log", "evals": 1, "others": 1}
    assert reading.dropped == 2
    assert reading.table.window == 1  # nothing says how many steps a position is


@pytest.mark.parametrize(("line", "loss"), [
    ("{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 4.5e-06, 'epoch': 0.02}", 0.0),
    ("{'loss': nan, 'grad_norm': inf, 'epoch': 0.02}", math.nan),
    ("{'loss': '0.6931', 'grad_norm': '1.2', 'learning_rate': '5e-06', 'epoch': '0.02'}", 0.6931),
    ("{\u2018loss\u2019: 0.5, \u2018grad_norm\u2019: 1.25, \u2018epoch\u2019: 0.02}", 0.5),
    ("{\u201closs\u201d: 0.5, \u201cgrad_norm\u201d: 1.25}", 0.5),
    ('{"loss": 0.5, "grad_norm": 1.25}', 0.5),
    ("{'loss': -0.0125, 'rewards/chosen': 0.25, 'logps/rejected': -12.5}", -0.0125),
    ("{'num_tokens': 1024.0, 'loss': 0.5, 'mean token accuracy': 0.75}", 0.5),
    ("[rank0]: {'loss': 0.5, 'grad_norm': 1.25}", 0.5),
    ("01/02/2026 10:00:00 - INFO - {'loss': 0.5, 'note': '', 'time': '4m 50s'}", 0.5),
])
def test_every_dress_of_the_dict(line, loss):
    reading = read(line + "\n")
    assert reading.format == "hf-stdout"
    assert reading.table.loss == pytest.approx([loss], nan_ok=True)


def test_columns_have_their_names_and_texts_are_none():
    columns = read("{'loss': 0.5, 'grad_norm': nan, 'learning_rate': '5e-06', 'time': '4m 50s', 'memory': ''}\n").table
    assert set(columns.columns) == {"loss", "grad_norm", "lr"}
    assert math.isnan(columns.columns["grad_norm"][0])
    assert columns.columns["lr"][0] == 5e-6


def test_a_printed_step_is_used():
    swift = "{{'loss': {0}, 'grad_norm': 1.5, 'global_step/max_steps': '{1}/93', 'percentage': '5.38%'}}\n"
    reading = read(swift.format(2.5, 5) + swift.format(2.25, 10) + swift.format(2.0, 15))
    assert (reading.table.step.tolist(), reading.table.window) == ([5, 10, 15], 5)
    assert codes(reading) == []
    with pytest.raises(ReadError, match=r"line 2: .*some records have a step"):
        read(swift.format(2.5, 5) + record(2.25))
    with pytest.raises(ReadError, match=r"line 2: .*some records have a step"):
        read(record(2.25) + swift.format(2.5, 5))


# --- steps from the progress bar


GLUED = "".join(bar(step) + record(step / 100) for step in (10, 20, 30))
ABOVE = "".join("".join(bar(step + i) + "\r" for i in range(-2, 1)) + " " * 80 + "\r" + record(step / 100)
                for step in (10, 20, 30))
REDRAWN = bar(0) + "\r" + "".join(record(step / 100) + "\r" + bar(step) + "\r" for step in (10, 20, 30))
LAGGING = bar(0) + "\r" + "".join(bar(step - 1) + "\r" + record(step / 100) + bar(step) + "\r" for step in (10, 20, 30))
TWO_BARS = GLUED.replace("30/1389", "30/1389 [00:50<\r" + bar(3, 5) + "\r" + EVAL + bar(5, 5) + "\r" + bar(30, 1389)[:-1])


@pytest.mark.parametrize("text", [GLUED, ABOVE, REDRAWN, LAGGING, TWO_BARS], ids=["glued", "above", "redrawn", "lagging",
                                                                               "two-bars"])
def test_the_bar_tells_the_steps(text):
    reading = read(text)
    assert reading.table.step.tolist() == [10, 20, 30]
    assert reading.table.loss.tolist() == [0.1, 0.2, 0.3]
    assert reading.table.window == 10
    assert "read-steps-from-bar" in codes(reading)


def test_a_first_step_logged_on_request_and_a_resume_are_even():
    first = "".join(bar(step) + record(step / 100) for step in (1, 10, 20))
    assert read(first).table.step.tolist() == [1, 10, 20]
    resumed = read(GLUED + "".join(bar(step) + record(step / 50) for step in (20, 30, 40)))
    assert resumed.table.step.tolist() == [10, 20, 30, 40]
    assert resumed.table.loss.tolist() == [0.1, 0.4, 0.6, 0.8]
    assert codes(resumed) == ["read-steps-from-bar", "read-resume-differs", "read-resumed"]  # .2 and .4 at step 20


@pytest.mark.parametrize("counts", [(9, 19, 29), (10, 25, 30), (7, 7, 7), (0, 10, 20)])
def test_a_bar_that_does_not_count_in_logging_steps_tells_nothing(counts):
    reading = read("".join(bar(count) + record(count / 100) for count in counts))
    assert reading.table.step.tolist() == [1, 2, 3]
    assert codes(reading) == ["read-steps-are-positions"]


@given(st.integers(1, 500), st.integers(2, 30), st.data())
def test_a_bar_read_with_gaps_never_gives_a_wrong_step(every, count, data):
    """Bars beside some of the records only: the right steps, or none."""
    steps = HfSteps()
    shown = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    for i in range(count):
        if shown[i]:
            steps.see(f"{(i + 1) * every}/{every * count} [00:01<00:02]", glued=True)
        steps.record()
    assert steps.from_bar() in (None, [(i + 1) * every for i in range(count)])


# --- steps from logging_steps


@pytest.mark.parametrize("said", ["logging_steps=25,\n", '"logging_steps": 25,\n', "python train.py --logging_steps 25\n"])
def test_logging_steps_in_the_log_tell_the_steps(said):
    reading = read(said + record(0.5) + record(0.25) + record(0.125))
    assert (reading.table.step.tolist(), reading.table.window) == ([25, 50, 75], 25)
    assert [dict(item.params) for item in reading.repairs] == [{"file": "run/log", "rows": 3, "every": 25}]
    assert read("resume_from_checkpoint=None,\n" + said + record(0.5)).table.step.tolist() == [25]
    first = read("logging_first_step=True,\n" + said + record(0.5) + record(0.25) + record(0.125))
    assert first.table.step.tolist() == [1, 25, 50]


@pytest.mark.parametrize("said", [
    "logging_steps=25,\nlogging_steps=50,\n", "logging_steps=0.1,\n", "logging_steps=0,\n",
    "logging_steps=25,\n  Continuing training from global step 500\n",
    "logging_steps=25,\nresume_from_checkpoint=/run/checkpoint-500,\n",
    "logging_steps=25,\n  Total optimization steps = 50\n",  # three records are beyond it: printed by two nodes?
])
def test_logging_steps_that_cannot_be_right_are_not_used(said):
    reading = read(said + record(0.5) + record(0.25) + record(0.125))
    assert reading.table.step.tolist() == [1, 2, 3]
    assert codes(reading) == ["read-steps-are-positions"]


# --- broken records


@pytest.mark.parametrize("line", ["{'loss': 0.5, 'grad_norm': {'loss': 0.5, 'epoch': 0.1}", "{'loss': 0.5, 'grad_n",
                                  "{'loss': 0.5, 'grad_norm' 1.25}", "{'loss': }",
                                  '{"epoch": 0.1, "loss": 0.5, "memory": {"peak": 3}}', "{'eval_loss': 0.5, 'ep"])
def test_a_broken_record_before_the_end_is_refused(line):
    with pytest.raises(ReadError, match="line 2: found a record that is cut or mixed"):
        read(record(0.6931) + line + "\n" + record(0.5))


def test_evaluations_without_a_loss_are_counted_and_wrapped_dicts_refused():
    reading = read(GLUED + bar(30) + "{'eval_pearson_cosine': 0.95, 'epoch': 1.5}\n" + bar(40) + record(0.4))
    assert (reading.table.step.tolist(), reading.dropped) == ([10, 20, 30, 40], 1)
    wrapped = bar(10) + "{'loss': 0.0578, 'completions/mean_length':\n 212.6875, 'epoch': 0.1}\n"
    with pytest.raises(ReadError, match="line 2: found a record that is cut"):
        read(record(0.5) + wrapped)


def test_a_summary_printed_over_several_lines_is_no_record():
    reading = read(record(0.6931) + '{\n  "event": "done",\n  "loss": 0.7,\n  "global_step": 180\n}\n' + record(0.5))
    assert reading.table.loss.tolist() == [0.6931, 0.5]


def test_ms_swift_over_megatron():
    line = "{{'loss': {0}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'iteration': '{1}/100', 'elapsed_time': '2m 4s'}}\n"
    reading = read("Train:   5%|#  | 5/100 [00:10<03:20]" + line.format(2.5, 5) + line.format(2.25, 10))
    assert (reading.table.step.tolist(), reading.table.loss.tolist()) == ([5, 10], [2.5, 2.25])


def test_ms_swifts_json_lines():
    line = '{{"loss": {0}, "grad_norm": 1.5, "global_step/max_steps": "{1}/93", "percentage": "5.38%", "elapsed": "1m 6s"}}\n'
    reading = read(line.format(2.5, 5) + line.format(2.25, 10))
    assert (reading.table.step.tolist(), reading.table.loss.tolist()) == ([5, 10], [2.5, 2.25])


def test_a_torn_last_record_is_dropped():
    reading = read(record(0.6931) + record(0.5)[:20])
    assert (reading.table.step.tolist(), reading.dropped) == ([1], 1)
    assert codes(reading) == ["read-torn-line", "read-steps-are-positions"]


def test_two_ranks_glued_on_one_line_are_two_records():
    reading = read((bar(10) + record(0.5).strip()) * 2 + "\n" + bar(20) + record(0.25))
    assert (reading.table.step.tolist(), reading.table.loss.tolist()) == ([10, 20], [0.5, 0.25])
    assert codes(reading) == ["read-steps-from-bar", "read-repeated"]
