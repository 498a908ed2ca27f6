"""What public posts show of training logs, hazard by hazard, in the formats of text, tables and JSON lines."""

import math

import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.loss import read_loss

V1 = "01/02/2026 10:00:00 - INFO - __main__ - Step {0}/900, Epoch 1, Loss {1}, VLA_Loss 0.2, GradNorm 0.84, LR 1e-4, \n"
MM = "iteration {0}/{1} | consumed samples: 8 | loss: {2} | grad norm: {3} |\n"
RECORD = '{{"step": {0}, "loss": {1}, "grad_norm": {2}}}\n'


def read(text, **options):
    return read_loss(text.encode() if isinstance(text, str) else text, "run/log", **options)


def table(reading):
    return dict(zip(reading.table.step.tolist(), reading.table.loss.tolist(), strict=True))


def codes(reading):
    return [item.code for item in reading.repairs]


# --- JSON that is none


@pytest.mark.parametrize("bad", ["{“step”: 2, “loss”: 2.25, “grad_norm”: 0.5}\n", RECORD.format(2, 2.25, "nan"),
                                 RECORD.format(2, 2.25, "-inf"), RECORD.format(2, 2.25, "[nan, 1.0]")])
def test_curly_quotes_and_bare_nan_are_read_as_meant_and_said(bad):
    reading = read(RECORD.format(1, 2.5, 0.5) + bad + RECORD.format(3, 2.125, 0.5))
    assert table(reading) == {1: 2.5, 2: 2.25, 3: 2.125}
    assert codes(reading) == ["read-loose-json"]
    assert dict(reading.repairs[0].params) == {"file": "run/log", "rows": 1, "line": 2}
    assert reading.repaired == 1


def test_a_bare_nan_loss_stays_a_nan():
    found = table(read(RECORD.format(1, "nan", 0.5) + RECORD.format(2, 2.0, 0.5) + RECORD.format(3, "-Infinity", 0.5)))
    assert math.isnan(found.pop(1))
    assert found == {2: 2.0, 3: -math.inf}


def test_a_log_of_curly_quotes_alone_is_recognised():
    assert table(read("{“step”: 1, “loss”: 2.5}\n{“step”: 2, “loss”: 2.25}\n")) == {1: 2.5, 2: 2.25}


def test_a_loss_of_exactly_zero_with_a_nan_grad_norm_is_kept():
    for text in (RECORD.format(1, "0.0", "NaN") + RECORD.format(2, "0.0", "NaN"), "step,loss,grad_norm\n1,0.0,nan\n2,0.0,nan\n",
                 MM.format(1, 9, "0.0", "nan") + MM.format(2, 9, "0.0", "nan")):
        reading = read(text)
        assert table(reading) == {1: 0.0, 2: 0.0}
        assert [math.isnan(value) for value in reading.table.columns["grad_norm"]] == [True, True]
        assert reading.table.quantum["grad_norm"].tolist() == [0.0, 0.0]  # logged, and NaN


def test_an_evaluation_at_the_same_step_does_not_replace_the_training_row():
    reading = read('{"step": 10, "loss": 2.5}\n{"step": 10, "eval_loss": 9.0}\n{"step": 20, "loss": 2.25}\n')
    assert table(reading) == {10: 2.5, 20: 2.25}
    assert reading.report.dropped == {"read-no-value": 1}
    swapped = read("step,loss,eval_loss\n10,2.5,\n10,,9.0\n20,2.25,\n")
    assert table(swapped) == {10: 2.5, 20: 2.25}
    assert table(read("step,loss,eval_loss\n10,2.5,\n10,,9.0\n20,2.25,\n", column="eval_loss")) == {10: 9.0}


# --- cells


def test_durations_with_units_and_commas_are_no_columns_and_no_error():
    reading = read('{"step": 1, "loss": 2.5, "elapsed_time": "1 day, 0:00:24", "took": "7.4s"}\n'
                   '{"step": 2, "loss": 2.25, "elapsed_time": "1 day, 0:00:31", "took": "7.5s"}\n')
    assert set(reading.table.columns) == {"loss"}
    quoted = read('step,loss,took\n1,2.5,"1,234.5 ms"\n2,2.25,"7.5 s"\n')
    assert (table(quoted), set(quoted.table.columns)) == ({1: 2.5, 2: 2.25}, {"loss"})
    assert read(V1.format(1, "0.5").replace("LR 1e-4", "StepTime 7.492s")).table.columns["step_time"].tolist() == [7.492]


def test_a_step_of_so_many_and_padded_counts():
    assert table(read("step,loss\n1/1389,2.5\n2/1389,2.25\n")) == {1: 2.5, 2: 2.25}
    assert table(read('{"step": "1/1389", "loss": 2.5}\n{"step": "2/1389", "loss": 2.25}\n')) == {1: 2.5, 2: 2.25}
    assert table(read(MM.format("       1", "    1389", "2.5", 1) + MM.format("    1200", "    1389", "2.25", 1))) == {
        1: 2.5, 1200: 2.25}


def test_an_abbreviated_step_is_refused_with_the_reason():
    for text in ("step,loss\n800,2.0\n1K,1.0\n", '{"step": 800, "loss": 2.0}\n{"step": "1K", "loss": 1.0}\n'):
        with pytest.raises(ReadError, match=r"found step '1K'; expected a whole number; an abbreviated step \(1K\)"):
            read(text)


@pytest.mark.parametrize("text", ["loss,lr\n2.5,1e-4\n2.25,1e-4\n", "2.5\n2.25\n", "loss 2.5\nloss 2.25\n"])
def test_a_log_without_step_numbers_is_refused(text):
    with pytest.raises(UserError):
        read(text)


def test_records_without_step_numbers_are_never_numbered_silently():
    assert "read-steps-are-positions" in codes(read('{"loss": 2.5, "lr": 1e-4}\n{"loss": 2.25}\n'))


# --- one physical line


def test_a_progress_bar_a_clock_and_a_record_share_a_line():
    bar = "\rStep: 40{0}/50000 [1:02:03<99:00:00,  7.50s/it]\rStep: 41{0}/50000 [1:02:11<98:59:00,  7.49s/it]"
    reading = read("".join(bar.format(i) + V1.format(i, loss) for i, loss in enumerate(("0.5", "0.25", "0.125"), 1)))
    assert table(reading) == {1: 0.5, 2: 0.25, 3: 0.125}
    assert reading.report.dropped == {}


def test_utf8_that_went_through_gbk_keeps_its_numbers():
    """Read as GBK and saved again: the words are lost, the numbers are not."""
    mangled = "训练开始 loss 曲线\n".encode().decode("gbk", errors="replace")
    assert table(read(mangled + V1.format(1, "0.5") + mangled + V1.format(2, "0.25"))) == {1: 0.5, 2: 0.25}
    assert table(read("# " + mangled + "step,loss\n1,0.5\n")) == {1: 0.5}


# --- several ranks


def test_ranks_that_all_print_the_same_are_merged_and_counted():
    reading = read("".join(f"[default{rank}]: " + MM.format(step, 9, f"{3 - step}.5", 1)
                           for step in (1, 2) for rank in range(4)))
    assert table(reading) == {1: 2.5, 2: 1.5}
    assert (reading.report.merged, reading.table.joints) == (6, ())
    assert codes(reading) == ["read-repeated"]


def test_ranks_that_print_in_blocks_are_no_resume():
    reading = read("step,loss\n" + "1,2.5\n2,2.25\n3,2.0\n" * 4)
    assert (reading.report.merged, reading.table.joints) == (9, ())


def test_ranks_that_differ_stay_in_doubt():
    reading = read("".join(MM.format(step, 9, f"{rank}.5", 1) for step in (1, 2) for rank in (1, 2)))
    assert "read-repeat-differs" in codes(reading)
    assert reading.report.merged == 0


# --- resumed runs


def test_the_first_row_after_a_resume_is_a_joint():
    """It may be the mean of less, or of more, than the others: the judge must know which it is."""
    reading = read("step,loss\n10,4.0\n20,3.0\n30,2.5\n20,3.25\n30,2.75\n40,2.0\n30,2.6\n40,2.1\n50,1.5\n")
    assert table(reading) == {10: 4.0, 20: 3.25, 30: 2.6, 40: 2.1, 50: 1.5}
    assert reading.table.joints == (20, 30)
    assert reading.report.joints == (20, 30)


def test_joints_count_as_the_table_does_and_are_in_it():
    text = "step,loss\n1,4.0\n2,3.0\n3,2.5\n2,3.25\n3,2.75\n4,2.0\n"
    assert read(text, step_offset=1).table.joints == (1,)
    assert read("step,loss\n1,4.0\n2,3.0\n3,2.0\n4,1.0\n5,0.5\n4,1.1\n2,3.1\n3,2.1\n").table.joints == (2,)


def test_a_run_that_starts_again_at_0_leaves_no_row_of_the_first():
    """The second run ended earlier: what lies beyond its end is of the run that was given up."""
    reading = read("step,loss\n" + "".join(f"{i},4.0\n" for i in range(30)) + "".join(f"{i},2.0\n" for i in range(20)))
    assert table(reading) == dict.fromkeys(range(20), 2.0)
    assert reading.table.joints == (0,)
    assert reading.report.dropped == {"read-resumed": 20, "read-stale-rows": 10}


def test_rows_that_are_only_out_of_order_have_no_joint():
    assert read("step,loss\n3,1.0\n1,3.0\n2,2.0\n").table.joints == ()


def test_an_offset_is_subtracted_before_anything_is_compared():
    assert table(read("step,loss\n1001,2.5\n1002,2.25\n", step_offset=1000)) == {1: 2.5, 2: 2.25}
