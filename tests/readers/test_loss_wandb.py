"""Charts exported as CSV from Weights & Biases and SwanLab."""

import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.loss import read_loss


def chart(rows, *runs, metric="train/loss", bounds=True):
    """`rows`: step, then (value, minimum, maximum) for each run."""
    header = ["Step"] + [f"{run} - {metric}{end}" for run in runs for end in (("", "__MIN", "__MAX") if bounds else ("",))]
    lines = [header] + [[step, *(cell for cells in values for cell in (cells if bounds else cells[:1]))]
                        for step, *values in rows]
    return "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines)


def same(value):
    return (value, value, value)


def read(text, **options):
    return read_loss(text.encode(), "run/log", **options)


def codes(reading):
    return [item.code for item in reading.repairs]


@pytest.mark.parametrize("bounds", [True, False])
def test_a_chart_of_one_run(bounds):
    reading = read(chart([(0, same("10.95404052734375")), (10, same("9.5")), (20, same("NaN"))], "gpt, 2", bounds=bounds))
    assert reading.format == "wandb"
    assert reading.table.step.tolist() == [0, 10, 20]
    assert reading.table.loss == pytest.approx([10.95404052734375, 9.5, float("nan")], nan_ok=True)
    assert reading.table.quantum["loss"][0] == pytest.approx(1e-14)
    assert list(reading.table.columns) == ["loss"]
    assert codes(reading) == []


def test_of_several_runs_the_manifest_names_one():
    text = chart([(0, same("2.5"), same("3.5")), (1, same("2.25"), ("",) * 3), (2, same("2.0"), same("3.0"))], "a", "b")
    with pytest.raises(UserError) as error:
        read(text)
    assert "a - train/loss" in str(error.value)
    assert "b - train/loss" in str(error.value)
    assert 'column = "..."' in str(error.value)
    assert read(text, column="a - train/loss").table.loss.tolist() == [2.5, 2.25, 2.0]
    other = read(text, column="b - train/loss")
    assert (other.table.step.tolist(), other.table.loss.tolist()) == ([0, 2], [3.5, 3.0])
    assert codes(other) == ["read-no-value"]


def test_a_mean_of_a_group_or_of_steps_is_said():
    reading = read(chart([(0, same("2.5")), (1, ("2.25", "2.0", "2.5")), (2, ("2.0", "2.00", "2"))], "a"))
    assert [dict(item.params) for item in reading.repairs] == [
        {"file": "run/log", "column": "a - train/loss", "columns": 1, "rows": 1, "line": 3}]
    assert codes(reading) == ["read-chart-grouped"]


def test_a_sampled_history_is_said():
    steps = (0, 13, 27, 40, 54, 67)
    reading = read(chart([(step, same("2.5")) for step in steps], "a"))
    assert codes(reading) == ["read-chart-sampled"]
    whole = (1, 10, 20, 30, 40, 50)  # the first step was logged on request
    assert codes(read(chart([(step, same("2.5")) for step in whole], "a"))) == []


def test_a_runs_own_step_and_its_bounds_are_no_series():
    text = ('"Step","a - _step","a - _step__MIN","a - _step__MAX","a - loss"\n"0","0","0","0","2.5"\n'
            '"1","1","1","1","2.25"\n')
    reading = read(text)
    assert (list(reading.table.columns), reading.table.loss.tolist()) == (["loss"], [2.5, 2.25])


def test_swanlabs_chart_reads_alike():
    text = "step,run-1 - loss,run-1 - loss_timestamp\n1,2.5,1700000000\n2,2.25,1700000001\n"
    reading = read(text)
    assert (reading.format, reading.table.loss.tolist()) == ("wandb", [2.5, 2.25])


@pytest.mark.parametrize(("text", "found"), [
    ("run_id,experiment_name,description,project,workspace,timestamp,loss\nx,y,,p,w,2026,0.5\n",
     "SwanLab's table of runs: one row for each run"),
    (chart([(0, same("2.5"))], "a").replace("Step", "Relative Time (Process)"), "a chart over 'Relative Time (Process)'"),
    (chart([(0, same("2.5"), same("3.5"))], "a", "a"), "two columns named 'a - train/loss'"),
    (chart([(0, same("2.5")), (1, same("2.5"))], "a") + '"2","1.5"\n"3","1.5","1.5","1.5"\n', "line 4: found a row of another"),
    (chart([(0, same("2.5"))], "a") + '"2","1.5"\n', "line 3: found a row of another width"),
    (chart([(0, same("2.5"))], "a") + '"2","1.5","1.5","1.5","1.5"\n', "line 3: found a row of another width"),
    (chart([(0, same("abc"))], "a"), "a - train/loss 'abc'"),
    (chart([("1K", same("2.5"))], "a"), "step '1K'"),
    (chart([], "a"), "no row"),
    ("Step," + ",".join(f"r{i} - loss" for i in range(2000)) + "\n", "2001 columns"),
])
def test_what_is_no_chart_over_steps_is_refused(text, found):
    with pytest.raises(ReadError, match="run/log") as error:
        read(text)
    assert found in str(error.value)


@pytest.mark.parametrize("cut", [1, 5, 12, 25])
def test_a_torn_last_row_is_dropped_and_doubts_nothing_else(cut):
    text = chart([(0, same("2.1234")), (1, same("2.1235")), (2, same("2.1236"))], "a")
    reading = read(text[:-1 - cut])
    assert reading.table.loss.tolist()[:2] == [2.1234, 2.1235]
    assert "read-chart-grouped" not in codes(reading)
