"""Training logs as people have them, and files that are none."""

import math
import time
from contextlib import suppress
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.core.errors import UserError
from pytest_migparity.readers import registry
from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.loss import read_loss


def read(text, **options):
    return read_loss(text.encode() if isinstance(text, str) else text, "run/log", **options)


def codes(reading):
    return [item.code for item in reading.repairs]


def steps(reading):
    return reading.table.step.tolist()


def losses(reading):
    return reading.table.loss.tolist()


# --- tables


CSV = "step,loss,grad_norm\n1,2.5,0.5\n2,2.25,0.4\n3,2.125,nan\n"


@pytest.mark.parametrize(("data", "repairs"), [
    (CSV.encode(), []),
    (CSV.replace("\n", "\r\n").encode(), []),
    (b"\xef\xbb\xbf" + CSV.encode(), ["read-bom"]),
    (b"\xff\xfe" + CSV.encode("utf-16-le"), ["read-encoding"]),
    (b"\xfe\xff" + CSV.encode("utf-16-be"), ["read-encoding"]),
    (("# 训练日志\n" + CSV).encode("gbk"), ["read-encoding"]),
    (("# 训练日志\n" + CSV).encode(), []),
    (CSV.replace(",", ";").encode(), []),
    (CSV.replace(",", "\t").encode(), []),
    (CSV.replace("step", "Iteration").replace("loss", "lm loss").encode(), []),
    (b'"step","loss","grad_norm"\n"1","2.5","0.5"\n"2","2.25","0.4"\n"3","2.125","nan"\n', []),
    (b"1 2.5 0.5\n2 2.25 0.4\n3 2.125 nan\n", []),
])
def test_tables_in_every_dress(data, repairs):
    reading = read(data)
    assert reading.format == "csv"
    assert (steps(reading), losses(reading)) == ([1, 2, 3], [2.5, 2.25, 2.125])
    assert codes(reading) == repairs
    assert reading.dropped == 0


def test_other_columns_come_along_and_nan_stays():
    norms = read(CSV).table.columns["grad_norm"]
    assert norms[:2].tolist() == [0.5, 0.4]
    assert math.isnan(norms[2])


@pytest.mark.parametrize(("printed", "value"), [("NaN", math.nan), ("nan", math.nan), ("inf", math.inf),
                                                ("-Infinity", -math.inf), ("1e999", math.inf)])
def test_non_finite_losses_are_kept(printed, value):
    assert losses(read(f"step,loss\n1,1.5\n2,{printed}\n3,1.5\n"))[1] == pytest.approx(value, nan_ok=True)


def test_thousands_and_decimal_commas_are_read_and_said():
    thousands = read('step,loss\n1,"1,234.5"\n"1,000",99.5\n')
    assert (steps(thousands), losses(thousands)) == ([1, 1000], [1234.5, 99.5])
    assert codes(thousands) == ["read-thousands"]
    assert thousands.repaired == 1
    decimal = read("step;loss\n1;2,75\n2;0,1160\n")
    assert losses(decimal) == [2.75, 0.116]
    assert codes(decimal) == ["read-decimal-comma"]


def test_a_comma_that_could_be_either_is_refused():
    with pytest.raises(ReadError, match="decimals or thousands"):
        read("step;loss\n1;1,234\n2;1,235\n")


def test_rows_out_of_order_are_sorted_and_said():
    reading = read("step,loss\n3,1.0\n1,3.0\n2,2.0\n")
    assert (steps(reading), losses(reading)) == ([1, 2, 3], [3.0, 2.0, 1.0])
    assert codes(reading) == ["read-unsorted"]


def test_a_row_without_a_value_is_dropped_and_said():
    reading = read("step,loss\n1,3.0\n2,\n3,1.0\n")
    assert steps(reading) == [1, 3]
    assert reading.dropped == 1
    assert dict(reading.repairs[0].params) == {"file": "run/log", "rows": 1, "column": "loss", "line": 3}


def test_interval_is_the_usual_distance():
    assert read("step,loss\n" + "".join(f"{s},1.5\n" for s in (1, 10, 20, 30, 45))).table.interval == 10


# --- JSON lines


def test_lingbot_v1_jsonl():
    line = '{{"step": {0}, "epoch": 1, "loss": {1}, "grad_norm": 0.9, "lr": 1e-4, "step_time": 7.1}}\n'
    reading = read(line.format(1, "2.4977189302444458") + line.format(2, "NaN") + line.format(3, "Infinity"))
    assert reading.format == "jsonl"
    assert steps(reading) == [1, 2, 3]
    assert losses(reading) == pytest.approx([2.4977189302444458, math.nan, math.inf], nan_ok=True)
    assert set(reading.table.columns) == {"epoch", "loss", "grad_norm", "lr", "step_time"}
    assert reading.table.quantum["loss"][0] == pytest.approx(1e-16)


def test_jsonl_records_without_step_or_loss_are_said():
    reading = read('{"run": "x"}\n{"step": 1, "loss": 2.0}\n{"step": 1, "eval_loss": 3.0}\n{"step": 2, "loss": null}\n')
    assert steps(reading) == [1]
    assert reading.dropped == 3
    assert codes(reading) == ["read-no-step", "read-no-value"]


def test_a_torn_last_record_is_dropped_and_said():
    reading = read('{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
    assert steps(reading) == [1]
    assert codes(reading) == ["read-torn-line"]
    assert reading.dropped == 1


def test_garbage_before_the_last_record_is_an_error_with_its_line():
    with pytest.raises(ReadError, match=r"run/log, line 2: found 'oops'; expected one JSON object"):
        read('{"step": 1, "loss": 2.0}\noops\n{"step": 2, "loss": 2.0}\n')


# --- log lines


V2 = ("Step: 40{0}/50000 [1:02:03<99:00:00,  7.50s/it]01/02/2026 10:00:00 - INFO - __main__ - Step {0}/900, Epoch 1, "
      "Loss {1}, VLA_Loss 0.2100, Depth_Loss 0.3100, RouterZ_Loss 0.0000, MaxVio 2.5, GradNorm 0.8400, LR 1.00e-04, "
      "Expert_LR 2.83e-04, StepTime 7.500s, Depth_Forward_Time  0.250s, Ignore_Batch_Num 0\n")
V1 = "01/02/2026 10:00:00 - INFO - __main__ - Step {0}/900, Epoch 1, Loss {1}, VLA_Loss 0.2, GradNorm 0.84, LR 1e-4, \n"


@pytest.mark.parametrize("line", [V1, V2])
def test_lingbot_log_takes_the_loggers_step_not_the_bars(line):
    reading = read("INFO - loading\n" + line.format(7, "0.2375") + line.format(8, "0.1160") + line.format(9, "nan"))
    assert reading.format == "lingbot"
    assert steps(reading) == [7, 8, 9]
    assert losses(reading) == pytest.approx([0.2375, 0.116, math.nan], nan_ok=True)
    assert reading.table.columns["grad_norm"][0] == 0.84
    assert reading.table.columns["lr"][0] == 1e-4
    assert reading.table.quantum["loss"][:2].tolist() == [1e-4, 1e-4]


def test_step_offset_is_subtracted():
    text = V2.format(1, "0.2") + V2.format(2, "0.1")
    assert steps(read(text, step_offset=1)) == [0, 1]
    with pytest.raises(UserError, match="step_offset = 5 makes the first step -4"):
        read(text, step_offset=5)


MEGATRON = ("{p}[2026-01-02 10:00:00] iteration {0:>8}/ {1:>8} | consumed samples: {0:>12} | elapsed time per "
            "iteration (ms): 812.5 | learning rate: 1.250000E-05 | global batch size:    16 | lm loss: {2} | "
            "loss scale: 1.0 | grad norm: 12.500 | num zeros: 42.0 | number of skipped iterations:   0 | "
            "number of nan iterations:   0 |\n")
LLM = ("INFO [2026-01-02 10:00:00] >>  iteration {0:>8}/{1:>8} | consumed samples: {0:>10} | learning rate: 1.0E-05 | "
       "lm loss: {2} | grad norm: 12.500 |\n")
MM = ("iteration {0}/{1} | consumed samples: 8 | learning rate: 0.0E+00 | global batch size: 8 | loss: {2} | "
      "grad norm: 12.500 |\n")


@pytest.mark.parametrize("line", [
    MEGATRON.replace("{p}", ""), MEGATRON.replace("{p}", "[default0]: "), MEGATRON.replace("{p}", "\x1b[32m0:\x1b[0m"),
    LLM, MM, "  5%|#  | 3/9 [00:01<00:02]\r" + MM,
])
def test_megatron_and_mindspeed_lines(line):
    noise = "(min, max) time across ranks (ms):\nvalidation loss at iteration 10 | lm loss value: 9.9E+00 |\n"
    reading = read(noise + line.format(1, 2000, "1.125000E+01") + line.format(12, 2000, "9.500000E-01"))
    assert reading.format == "megatron"
    assert (steps(reading), losses(reading)) == ([1, 12], [11.25, 0.95])
    assert reading.table.columns["grad_norm"].tolist() == [12.5, 12.5]
    assert reading.table.quantum["loss"] == pytest.approx([1e-5, 1e-7])


def test_a_skipped_iteration_has_no_loss_and_is_said():
    skipped = "iteration 1/10 | consumed samples: 8 | loss scale: 65536.0 | number of skipped iterations: 1 |\n"
    reading = read(skipped + MM.format(2, 10, "1.0E+00"))
    assert steps(reading) == [2]
    assert (codes(reading), reading.dropped) == (["read-no-value"], 1)


def test_two_ranks_glued_on_one_line():
    line = MM.format(1, 10, "1.5E+00").strip() + MM.format(1, 10, "1.5E+00") + MM.format(2, 10, "1.25E+00")
    reading = read(line)
    assert losses(reading) == [1.5, 1.25]
    assert codes(reading) == ["read-repeated"]


# --- repeated steps


def test_a_resume_keeps_the_last_occurrence():
    reading = read("step,loss\n1,4.0\n2,3.0\n3,2.0\n2,3.01\n3,2.02\n4,1.0\n")
    assert losses(reading) == [4.0, 3.01, 2.02, 1.0]
    assert reading.dropped == 2
    apart = (math.log(3.01 / 3) + math.log(2.02 / 2)) / 2
    assert dict(reading.repairs[0].params) == {"file": "run/log", "restarts": 1, "step": 2, "rows": 2,
                                               "apart": pytest.approx(apart)}


def test_a_resume_that_does_not_go_on_from_its_run_is_said():
    """Steps 2 and 3 have 3.0 and 9.0 before the resume and 2.5 and 2.0 after it: the median of |ln| is (.18 + 1.50) / 2."""
    reading = read("step,loss\n1,4.0\n2,3.0\n3,9.0\n2,2.5\n3,2.0\n4,1.0\n")
    assert codes(reading) == ["read-resume-differs", "read-resumed"]
    assert reading.repairs[0].params["apart"] == pytest.approx((math.log(3 / 2.5) + math.log(9 / 2)) / 2)


def test_one_row_that_goes_back_alone_is_no_resume():
    """A row of step 2 between steps 4 and 5, with another loss than step 2 had: nothing goes on from it."""
    reading = read("step,loss\n1,4.0\n2,3.0\n3,2.0\n4,1.9\n2,3.5\n5,1.8\n6,1.7\n")
    assert "read-repeat-differs" in codes(reading)


def test_a_log_of_another_format_in_the_same_file_is_said():
    lingbot = "".join(f"Step {k}/9, Epoch 1, Loss {2.0 / k:.4f}, LR 1.00e-04\n" for k in range(1, 6))
    mixed = lingbot + "".join(f'{{"step": {k}, "loss": {3.0 / k}}}\n' for k in range(1, 6))
    assert "read-two-formats" in codes(read(mixed))
    same = lingbot + "".join(f'{{"step": {k}, "loss": {2.0 / k}}}\n' for k in range(1, 6))
    assert "read-two-formats" not in codes(read(same))


def test_rows_beyond_a_resumed_run_that_ended_early_are_stale():
    reading = read("step,loss\n1,4.0\n2,3.0\n3,2.0\n4,1.9\n2,3.01\n3,2.01\n")
    assert steps(reading) == [1, 2, 3]
    assert reading.dropped == 3
    assert codes(reading) == ["read-resumed", "read-stale-rows"]


def test_a_repeated_step_with_another_loss_and_no_restart_is_said():
    reading = read("step,loss\n1,4.0\n2,3.0\n2,3.5\n3,2.0\n")
    assert losses(reading) == [4.0, 3.5, 2.0]
    assert codes(reading) == ["read-repeated", "read-repeat-differs"]


# --- truncation


@pytest.mark.parametrize("text", [
    "step,loss\n1,2.1234\n2,2.1", "step,loss\n1,2.1234\n2", "step,loss,lr\n1,2.1234,1e-4\n2,2.1234",
    V1.format(1, "0.2375") + V1.format(2, "0.2375")[:70], MM.format(1, 9, "1.5E+00") + MM.format(2, 9, "1.5E+00")[:-26],
    '{"step":1,"loss":2.1234}\n{"step":2,"loss":2.1', "loss,step\n2.1234,1\n2.1234,2",
])
def test_a_cut_last_row_is_dropped(text):
    reading = read(text)
    assert steps(reading) == [1]
    assert reading.dropped == 1
    assert codes(reading)[0] in ("read-torn-line", "read-open-end")


@pytest.mark.parametrize("text", [
    "step,loss\n1,2.1234\n2,2.1235", '{"step":1,"loss":2.1}\n{"step":2,"loss":2.12}',
    "step,loss\n1,2.1234567891234\n2,2.123456789123", "step,loss,lr\n1,2.1234,1e-4\n2,2.1,1e-4",
])
def test_a_whole_last_row_without_line_end_is_kept(text):
    assert steps(read(text)) == [1, 2]


FILES = (CSV, V1.format(1, "0.2375") + V1.format(2, "0.2375"), MM.format(1, 9, "1.5E+00") + MM.format(2, 9, "1.25E+00"),
         '{"step":1,"loss":2.5}\n{"step":2,"loss":2.25}\n')


@given(st.sampled_from(FILES), st.data())
def test_truncation_at_any_byte_is_one_clear_error_or_a_prefix(text, data):
    whole = read(text)
    known = dict(zip(steps(whole), losses(whole), strict=True))
    try:
        cut = read(text.encode()[: data.draw(st.integers(0, len(text) - 1))])
    except UserError:
        return
    assert set(zip(steps(cut), losses(cut), strict=True)) <= set(known.items())


# --- printed digits


@pytest.mark.parametrize(("printed", "quantum"), [
    (["2.5", "2.25", "2.125"], [1e-1, 1e-2, 1e-3]),  # as fine as the row itself, at least as fine as a tenth of them
    (["0.1160", "0.116", "0.12"] * 10, [1e-4] * 30),  # dropped zeros
    (["0.1160"] * 29 + ["0.1160123456789"], [1e-4] * 29 + [1e-13]),  # one long row does not speak for the rest
    (["1.107468E+01", "9.5E-01"], [1e-5, 1e-2]),
    (["7", "8"], [1.0, 1.0]),
])
def test_quantum_is_one_unit_in_the_last_printed_place(printed, quantum):
    rows = "".join(f"{i},{text}\n" for i, text in enumerate(printed))
    found = read("step,loss\n" + rows).table.quantum["loss"]
    coarsest = np.array(quantum)
    assert np.all(found <= coarsest * 1.0000001)
    assert found[-1] == pytest.approx(quantum[-1])


# --- what is no log


@pytest.mark.parametrize(("data", "found"), [
    (b"", "an empty file"), (b" \n\n", "without a single character"), (b"\x89PNG\r\n\x1a\n....", "a PNG picture"),
    (b"PK\x03\x04....", "a zip archive"), (b"\x1f\x8b....", "a gzip archive"), (b"\x80\x04\x95abc", "a Python pickle"),
    (b"step,loss\n1,\x00\x00\n", "binary data"), (b"step,loss\n1,2 \xff\xff\xff\xff\n", "neither UTF-8 nor GBK"),
    (b"<!DOCTYPE html><html>login", "an HTML page"), (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
    (b'{"schema": "migparity.env/1", "python": "3.11"}', "schema"), (b'{\n "log_history": []\n}', "{"),
    (b"dear diary\n", "dear diary"), (b"a,b\n1,2\n", "a,b"), (b"step,loss\n1,abc\n2,1.0\n", "loss 'abc'"),
    (b"step,loss\n1,2.0,3.0\n2,1.0\n", "3 cells"), (b"step,loss\n1K,2.0\n2K,1.0\n", "step '1K'"),
    (b"step,loss\n", "no row"), (b"step,loss\n1,\n", "no row"), (b"[" * 100_000, "["), (b"# nothing\n", "# nothing"),
])
def test_what_is_no_log_is_refused_by_name(data, found):
    with pytest.raises(ReadError) as error:
        read(data)
    assert found in str(error.value)
    assert str(error.value).startswith("run/log")
    assert "expected" in str(error.value)
    assert len(str(error.value)) < 500


def test_an_unknown_column_is_named_with_the_nearest():
    with pytest.raises(UserError, match="no column 'vla_los'; did you mean 'vla_loss'"):
        read(V2.format(1, "0.5"), column="vla_los")
    assert losses(read(V2.format(1, "0.5"), column="vla_loss")) == [0.21]


def test_an_unknown_format_is_named_with_the_nearest():
    with pytest.raises(UserError, match="no log format 'megatrn'; did you mean 'megatron'"):
        read(CSV, format="megatrn")


def test_a_forced_format_that_does_not_fit_is_an_error():
    with pytest.raises(ReadError):
        read(CSV, format="jsonl")
    with pytest.raises(ReadError):
        read(CSV, format="megatron")


@pytest.mark.parametrize("hostile", [
    "Step " * 250_000, "iteration " + " " * 1_000_000 + "1/ 2 |", "step,loss\n" + "1," * 500_000, "\x1b[" * 500_000,
    "Step 1/2, Epoch 1, " + "Loss 1.0," * 120_000, "iteration 1/2 |" * 70_000, '{"step":' * 120_000,
    "step,loss\n1," + "9" * 1_000_000, '{"step": 1, "loss": ' + "9" * 1_000_000 + "}", '"' * 1_000_000,
    "step,loss\n" + '"' * 1_000_000, "1 " * 500_000, "<" * 1_000_000, "\r" * 500_000 + "x",
])
def test_hostile_megabytes_take_no_time(hostile):
    start = time.process_time()
    with suppress(UserError):
        read(hostile)
    assert time.process_time() - start < 3


@given(st.binary(max_size=200))
def test_any_bytes_give_a_reading_or_a_user_error(data):
    with suppress(UserError):
        assert read(data).table.step.size > 0


# --- what others plug in


class Diary:
    """A format of somebody else's."""

    name = "diary"

    def sniff(self, text):
        return 1.0 if text.startswith("dear diary") else 0.0

    def read(self, lines, rows):
        for number, line in lines:
            if number > 1:
                rows.add(number, str(number - 1), {"loss": line})


@pytest.fixture
def installed(monkeypatch):
    def install(value):
        point = EntryPoint("diary", value, registry.GROUP)
        monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == registry.GROUP else [])
    return install


def test_a_plugged_in_format_is_found(installed, monkeypatch):
    monkeypatch.setattr("pytest_migparity.readers.text.Diary", Diary, raising=False)
    installed("pytest_migparity.readers.text:Diary")
    reading = read("dear diary\n0.75\n0.5\n")
    assert (reading.format, losses(reading)) == ("diary", [0.75, 0.5])
    assert read(CSV).format == "csv"


def test_a_plugged_in_format_that_does_not_load_is_named(installed):
    installed("no_such_package_here:Reader")
    with pytest.raises(UserError, match="log reader 'diary' of an unknown package does not load"):
        read("dear diary\n0.75\n")
