"""openpi's lines, by its JAX script (glued to a progress bar) and by its PyTorch script."""

import math

import pytest

from pytest_migparity.readers.loss import read_loss

BAR = "  5%|#         | {0}/30000 [01:00<05:00, 10.00it/s]"
JAX = "Step {0}: grad_norm=0.1234, loss={1}, param_norm=1801.2500\n"
TORCH = ("10:00:00.123 [I] step={0} loss={1} lr=1.25e-05 grad_norm=0.12 time=3.1s                        "
         "(123:train_pytorch.py:500)\n")


def read(text, **options):
    return read_loss(text.encode(), "run/log", **options)


@pytest.mark.parametrize("line", [JAX, BAR + JAX, BAR + "\r" + JAX, "\x1b[32m" + JAX, TORCH, "[rank0]: " + TORCH,
                                  TORCH.replace(" grad_norm=0.12", "")])
def test_both_scripts_lines(line):
    reading = read("Running on: host\n" + line.format(0, "0.9876") + line.format(100, "0.0567")
                   + line.format(200, "nan"))
    assert reading.format == "openpi"
    assert reading.table.step.tolist() == [0, 100, 200]
    assert reading.table.loss == pytest.approx([0.9876, 0.0567, math.nan], nan_ok=True)
    assert reading.table.quantum["loss"][:2] == pytest.approx([1e-4, 1e-4])
    assert reading.table.window == 100


def test_the_other_columns_have_their_names():
    assert {name: values[0] for name, values in read(JAX.format(0, "1.5000")).table.columns.items()} == {
        "loss": 1.5, "grad_norm": 0.1234, "param_norm": 1801.25}
    assert {name: values[0] for name, values in read(TORCH.format(0, "1.5000")).table.columns.items()} == {
        "loss": 1.5, "lr": 1.25e-5, "grad_norm": 0.12, "time": 3.1}


def test_the_same_shape_from_another_script_is_no_mean():
    reading = read("step=10 loss=1.5\nstep=20 loss=1.25\n")
    assert (reading.table.loss.tolist(), reading.table.window) == ([1.5, 1.25], 1)


def test_two_processes_glued_on_one_line_are_two_records():
    reading = read(JAX.format(0, "1.5000").strip() + JAX.format(0, "1.5000") + JAX.format(1, "1.2500"))
    assert reading.table.loss.tolist() == [1.5, 1.25]


def test_a_cut_last_line_is_dropped():
    reading = read(JAX.format(0, "1.5000") + JAX.format(1, "1.2500")[:len("Step 1: grad_norm=0.1234, loss=1.2")])
    assert (reading.table.step.tolist(), [item.code for item in reading.repairs]) == ([0], ["read-open-end"])


def test_a_value_given_twice_is_in_doubt():
    reading = read(JAX.format(0, "1.5000, loss=1.2500"))
    assert [item.code for item in reading.repairs] == ["read-value-twice"]
