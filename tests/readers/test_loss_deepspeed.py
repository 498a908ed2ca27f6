"""DeepSpeed's logs: losses with the pipeline engine's steps, and bare losses between the engine's lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.loss import read_loss

OVERFLOW = ("[2026-01-02 10:00:00,554] [INFO] [loss_scaler.py:188:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping "
            "step. Attempted loss scale: 65536, but hysteresis is 2. Reducing hysteresis to 1\n")
OLD_OVERFLOW = ("[2026-01-02 10:00:00,554] [INFO] [logging.py:96:log_dist] [Rank 0] Overflow detected. Skipping step. "
                "Attempted loss scale: 65536, reducing to 32768.0\n")


def engine(step, skipped=0, lr="9.5e-06, 9.5e-06"):
    return (f"[2026-01-02 10:00:00,142] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped={skipped}, "
            f"lr=[{lr}], mom=[(0.9, 0.95), (0.9, 0.95)]\n")


def loss(value, prefix=""):
    return f"{prefix}chosen: 0.25, rejected: -0.25, loss: {value}\n"


def piped(step, value, more=""):
    return f"steps: {step} loss: {value} {more}iter time (s): 1.202 samples/sec: 26.614\n"


def read(text, **options):
    return read_loss(text.encode(), "run/log", **options)


def codes(reading):
    return [item.code for item in reading.repairs]


def values(steps):
    return [1 / step for step in steps]


def before(steps, every):
    """A script that prints the loss, then calls engine.step()."""
    return "".join(loss(1 / step) + (engine(step, step // 4) if step % every == 0 else "") for step in steps)


def after(steps, every):
    """A script that calls engine.step(), then prints the loss."""
    return "".join((engine(step, step // 4) if step % every == 0 else "") + loss(1 / step) for step in steps)


@pytest.mark.parametrize("script", [before, after])
@pytest.mark.parametrize("every", [1, 2, 5])
def test_bare_losses_have_the_steps_of_the_engine_between_them(script, every):
    reading = read("Using config\n" + script(range(1, 13), every))
    assert reading.format == "deepspeed"
    assert reading.table.step.tolist() == list(range(1, 13))
    assert reading.table.loss.tolist() == values(range(1, 13))
    assert reading.table.columns["chosen"].tolist() == [0.25] * 12
    assert codes(reading) == ["read-steps-from-engine"]


def test_the_line_printed_as_the_engine_is_built_is_no_step():
    assert read(engine(0) + before(range(1, 5), 2)).table.step.tolist() == [1, 2, 3, 4]
    assert read(engine(0) + after(range(1, 5), 1)).table.step.tolist() == [1, 2, 3, 4]
    with pytest.raises(ReadError, match="2 losses between the engine's steps 4 and 0"):
        read(before(range(1, 5), 2) + loss(0.5) * 2 + engine(0))


@pytest.mark.parametrize("script", [before, after])
def test_what_the_engine_says_joins_the_row_of_its_step(script):
    columns = read(script(range(1, 9), 4)).table.columns
    assert {step: (columns["skipped"][step - 1], columns["lr"][step - 1]) for step in (4, 8)} == {
        4: (1.0, 9.5e-6), 8: (2.0, 9.5e-6)}
    assert columns["skipped"][0] != columns["skipped"][0]  # nothing was printed for step 1


@given(st.integers(1, 7), st.integers(1, 60), st.booleans())
def test_steps_are_right_for_every_interval_and_length(every, count, first):
    text = (before if first else after)(range(1, count + 1), every)
    if "step=" not in text:
        return
    reading = read(text)
    assert reading.table.step.tolist() == list(range(1, count + 1))
    assert reading.table.loss.tolist() == values(range(1, count + 1))


@pytest.mark.parametrize(("text", "found"), [
    (engine(10) + engine(20), "0 losses before the engine's first step, 10"),
    (before(range(1, 11), 5) + engine(20), "0 losses between the engine's steps 10 and 20"),
    (before(range(1, 11), 5).replace(loss(0.5), ""), "no loss after the engine's last step, 10, and one too few"),
    (before(range(1, 14), 5).replace(loss(0.5) + loss(1 / 3), ""), "3 losses before the engine's first step, 5"),
    (before(range(6, 16), 5), "5 losses before the engine's first step, 10"),  # resumed, or its begin is missing
    ("".join(line * 2 for line in before(range(1, 11), 5).splitlines(True)), "10 losses before the engine's first step, 5"),
    (before(range(1, 11), 5).replace(loss(1 / 7), ""), "4 losses between the engine's steps 5 and 10"),
    (before(range(1, 11), 5) + loss(0.5) * 6, "6 losses after the engine's last step, 10"),
    (before(range(1, 11), 5) + before(range(1, 11), 5), "5 losses between the engine's steps 10 and 5"),
])
def test_losses_that_do_not_go_with_the_engines_steps_are_refused(text, found):
    with pytest.raises(ReadError, match="run/log") as error:
        read(text)
    assert found in str(error.value)
    assert 'print(f"step={engine.global_steps} loss={loss.item()}")' in str(error.value)


def test_what_the_remedy_says_is_read():
    reading = read("".join(engine(step) + f"step={step} loss={1 / step}\n" for step in (1, 2, 3)))
    assert (reading.format, reading.table.step.tolist()) == ("openpi", [1, 2, 3])


@pytest.mark.parametrize("prefix", ["[default0]: ", "0: ", "[rank0]: ", "[2026-01-02 10:00:00,142] [INFO] "])
def test_prefixes_of_a_rank_or_a_clock(prefix):
    text = "".join(prefix + line for line in before(range(1, 5), 2).splitlines(True))
    assert read(text).table.loss.tolist() == values(range(1, 5))


def test_the_pipeline_engine_prints_both():
    text = "".join(engine(step, step // 4, "1e-05, 2e-05") + piped(step, 4 - step / 10, "lm_loss: 1.5 ")
                   for step in (2, 4, 6))
    reading = read(text + OVERFLOW)
    assert reading.format == "deepspeed"
    assert reading.table.step.tolist() == [2, 4, 6]
    assert reading.table.loss.tolist() == pytest.approx([3.8, 3.6, 3.4])
    assert reading.table.columns["skipped"].tolist() == [0, 1, 1]
    assert reading.table.columns["lr"].tolist() == [1e-5] * 3
    assert reading.table.columns["group1_lr"].tolist() == [2e-5] * 3
    assert reading.table.columns["lm_loss"].tolist() == [1.5] * 3
    assert codes(reading) == ["read-overflow"]


def test_overflows_are_counted():
    reading = read(OVERFLOW + before(range(1, 5), 2) + OLD_OVERFLOW + OVERFLOW)
    assert [dict(item.params) for item in reading.repairs if item.code == "read-overflow"] == [
        {"file": "run/log", "rows": 3, "line": 1}]


def test_the_loss_of_an_evaluation_is_no_step():
    reading = read(before(range(1, 5), 2) + "***** Evaluating perplexity, Epoch 1/1 *****\nppl: 3.25, loss: 1.1787\n")
    assert reading.table.loss.tolist() == values(range(1, 5))
    assert [dict(item.params) for item in reading.repairs if item.code == "read-other-rows"] == [
        {"file": "run/log", "evals": 1, "others": 0}]


def test_a_cut_last_line_is_dropped():
    text = before(range(1, 6), 2).replace("loss: 0.2\n", "loss: 0.2")
    reading = read(text)
    assert reading.table.step.tolist() == [1, 2, 3, 4]
    assert "read-open-end" in codes(reading)
