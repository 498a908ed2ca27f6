"""Rows of which nobody knows which count, and numbers that are none: refused by name, or reported."""

import struct

import numpy as np
import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.loss import read_loss

MM = "iteration {0}/{1} | consumed samples: 8 | loss: {2} | grad norm: 12.500 |\n"
V1 = "01/02/2026 10:00:00 - INFO - __main__ - Step {0}/900, Epoch 1, Loss {1}, VLA_Loss 0.2, GradNorm 0.84, LR 1e-4, \n"


def read(text, **options):
    return read_loss(text.encode() if isinstance(text, str) else text, "run/log", **options)


def codes(reading):
    return [item.code for item in reading.repairs]


# --- a step more than once


def rows(*pairs):
    return "step,loss\n" + "".join(f"{step},{loss}\n" for step, loss in pairs)


@pytest.mark.parametrize("text", [
    rows((1, 4.0), (1, 6.0), (2, 3.0), (2, 4.5)), rows((1, 4.0), (2, 3.0), (2, "nan"), (3, 2.0)),
    rows(*((step, 4.0) for step in range(1, 30)), *((step, 6.0) for step in range(1, 30))),
    rows((1, 4.0), (2, 3.0), (1, 6.0), (2, 4.5), (3, 2.0), (4, 1.0), (3, 3.0), (4, 1.5)),
    MM.format(1, 9, "1.5E+00") + MM.format(1, 9, "2.5E+00"), V1.format(1, "0.2") + V1.format(1, "0.3"),
    '{"step": 1, "loss": 2.5}\n{"step": 1, "loss": 2.25}\n',
], ids=["ranks", "one-nan", "two-runs", "ranks-in-blocks", "megatron", "lingbot", "jsonl"])
def test_a_step_with_two_values_and_no_resume_is_in_doubt(text):
    assert "read-repeat-differs" in codes(read(text))


@pytest.mark.parametrize("text", [
    rows((1, "0.5"), (1, "0.50"), (2, "5e-1")), rows((1, 4.0), (2, 3.0), (3, 9.0), (2, 2.5), (3, 2.0), (4, 1.0)),
    rows(*((step, 4.0) for step in range(1, 30)), *((step, 4.0) for step in range(1, 30))),
    rows(*((step, 4.0) for step in range(1, 20)), *((step, 6.0) for step in range(1, 40))),
    MM.format(1, 9, "1.5E+00") * 2,
], ids=["same-number", "resume", "same-run-twice", "restarted-from-the-start", "ranks-that-agree"])
def test_repeats_of_one_value_and_resumes_are_not(text):
    assert "read-repeat-differs" not in codes(read(text))


# --- a name more than once


@pytest.mark.parametrize(("text", "name"), [
    ("step,loss,loss\n1,2.0,3.0\n", "loss"), ("step,loss,lr,lr\n1,2.0,1,2\n", "lr"), ("step,loss,Step\n1,2.0,5\n", "step"),
    ("loss;step;loss\n2.0;1;3.0\n", "loss"), ('"step","loss"," loss"\n1,2.0,3.0\n', "loss"),
    ('{"step": 1, "loss": 2.0, "loss": 3.0}\n', "loss"), ('{"step": 1, "step": 2, "loss": 2.0}\n', "step"),
    ('{"step": 1, "loss": 2.0}\n{"step": 2, "lr": 1, "loss": 2.0, "lr": 2}\n', "lr"),
])
def test_a_name_that_comes_twice_is_refused(text, name):
    with pytest.raises(ReadError, match=f"{name!r}"):
        read(text)


def test_columns_without_a_name_are_not_twins():
    assert read("step,loss,,\n1,2.0,,\n2,1.0,,\n").table.loss.tolist() == [2.0, 1.0]


def test_columns_that_differ_in_case_are_told_apart_or_refused():
    assert read("step,Loss,loss\n1,2.0,3.0\n").table.loss.tolist() == [3.0]
    with pytest.raises(UserError, match="'Loss', 'LOSS' may each be 'loss'"):
        read("step,Loss,LOSS\n1,2.0,3.0\n")


def test_a_line_that_gives_its_loss_twice_is_in_doubt():
    line = MM.format(1, 9, "1.5E+00").replace("grad norm", "lm loss: 2.5E+00 | grad norm")
    assert codes(read(line + MM.format(2, 9, "1.5E+00"))) == ["read-value-twice"]
    other = MM.format(1, 9, "1.5E+00").replace("\n", " grad norm: 9.0 |\n")  # not the judged column
    assert codes(read(other)) == []


# --- numbers that are none


@pytest.mark.parametrize("offset", [10**20, -(10**20), 2**63, 10**15 + 1])
def test_an_offset_beyond_every_step_is_one_error(offset):
    with pytest.raises(UserError, match=f"step_offset = {offset}"):
        read("step,loss\n1,2.0\n", step_offset=offset)


@pytest.mark.parametrize("step", ["9" * 16, "9" * 20, "9" * 30, str(2**63), "-3"])
@pytest.mark.parametrize("form", ["step,loss\n1,2.0\n{},2.0\n", '{{"step": 1, "loss": 2.0}}\n{{"step": {}, "loss": 2.0}}\n',
                                  MM.format(1, 9, "1.5E+00") + MM.replace("{1}", "9").replace("{2}", "1.5E+00")])
def test_a_step_that_no_run_has_is_refused_with_its_line(form, step):
    if step == "-3" and "iteration" in form:
        return  # no iteration line; it is passed over
    with pytest.raises(ReadError, match=f"line [23]: found step '{step}'"):
        read(form.format(step))


WIDE = str.maketrans("0123456789", "０１２３４５６７８９")


@pytest.mark.parametrize("text", [
    "step,loss\n1,2.5\n2,2.25\n", MM.format(1, 9, "2.5E+00") + MM.format(2, 9, "2.25E+00"),
    V1.format(1, "2.5") + V1.format(2, "2.25"), '{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 2.25}\n',
])
def test_full_width_digits_are_read_and_reported(text):
    reading = read(text.translate(WIDE))
    assert (reading.table.step.tolist(), reading.table.loss.tolist()) == ([1, 2], [2.5, 2.25])
    assert codes(reading) == ["read-wide-digits"]
    assert reading.repairs[0].params["digits"] == sum(char.isdigit() for char in text)
    arabic = "".join(chr(0x660 + int(char)) if char.isdigit() else char for char in text)
    assert read(arabic).table.loss.tolist() == [2.5, 2.25]


def test_a_full_width_point_is_refused_by_name():
    with pytest.raises(ReadError, match="loss '2．5'"):
        read("step,loss\n1,２．５\n2,1.0\n")


def test_a_cell_without_a_value_is_not_a_logged_nan():
    """What was not logged has no unit in the last place; what was logged as NaN is a value."""
    quantum = read("step,loss,grad_norm\n1,2.0,0.5\n2,2.0,\n3,2.0,nan\n4,2.0,abc\n5,2.0,null\n").table.quantum["grad_norm"]
    assert np.isnan(quantum).tolist() == [False, True, False, True, True]


# --- TensorBoard


def records(*payloads):
    """An event file's framing with right checksums around any bytes."""
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    def framed(body):
        length = struct.pack("<Q", len(body))
        return length + struct.pack("<I", masked_crc32c(length)) + body + struct.pack("<I", masked_crc32c(body))

    return b"".join(map(framed, payloads))


def event(step, value=2.0, tag="training/loss"):
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
    return Event(step=step, wall_time=1.0, summary=summary).SerializeToString()


def test_an_event_with_right_checksums_and_broken_content_is_one_error():
    pytest.importorskip("tensorboard")
    for broken in (b"\xff" * 20, event(2)[:-3], b"\x2a\xff\x01"):
        with pytest.raises(ReadError, match=r"an event that does not parse \(DecodeError\)"):
            read(records(event(1), broken, event(3)))


def test_event_steps_that_no_run_has_are_refused():
    pytest.importorskip("tensorboard")
    for step in (2**63 - 1, -5):
        with pytest.raises(ReadError, match=f"found step '{step}'"):
            read(records(event(1), event(step)))


def test_two_scalars_that_may_be_the_loss_are_refused():
    pytest.importorskip("tensorboard")
    data = records(event(1), event(1, tag="train/loss"))
    with pytest.raises(UserError, match="train/loss, training/loss may each be 'loss'"):
        read(data)
    assert read(data, column="train/loss").table.loss.tolist() == [2.0]
