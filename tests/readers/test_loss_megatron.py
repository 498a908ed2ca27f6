"""Megatron's iteration lines as MindSpeed-LLM and MindSpeed-MM print them."""

import pytest

from pytest_migparity.readers.loss import read_loss

LLM = ("INFO [2026-01-02 10:00:00] >>  iteration {0:>8}/{1:>8} | consumed samples: {2:>10} | consumed tokens: {3:>10} | "
       "elapsed time per iteration (ms): 10520.60 | learning rate: 9.999994E-06 | global batch size:     8 | "
       "lm loss: {4} | grad norm: 8.515 | max_memory_allocated(GB): 19.07 | max_memory_reserved(GB): 20.87 |\n")
MM = ("iteration {0}/10000 | consumed samples: 8 | elapsed time per iteration (ms): 6603.7 | learning rate: 0.000000E+00 | "
      "global batch size: 8 | {1}grad norm: 50.001 | loss scale: 65536.0 | number of skipped iterations: {2} | "
      "number of nan iterations: 0 |\n")


def read(text, **options):
    return read_loss(text.encode(), "run/log", **options)


def test_mindspeed_llm_with_padded_counts_and_tokens():
    reading = read("".join(LLM.format(step, 2000, step * 8, step * 32768, loss)
                           for step, loss in ((1, "1.304194E+00"), (2, "1.250000E+00"), (2000, "9.5E-01"))))
    assert reading.format == "megatron"
    assert (reading.table.step.tolist(), reading.table.loss.tolist()) == ([1, 2, 2000], [1.304194, 1.25, 0.95])
    columns = reading.table.columns
    assert columns["tokens"].tolist() == [32768, 65536, 65536000]
    assert columns["lr"].tolist() == [9.999994e-06] * 3
    assert columns["grad_norm"].tolist() == [8.515] * 3
    assert reading.table.quantum["loss"][0] == pytest.approx(1e-6)


def test_mindspeed_mm_says_loss_and_counts_skipped_iterations():
    """A warm-up of the loss scale: iterations without a loss, and from then on a count that both sides must share."""
    reading = read(MM.format(1, "", 1) + MM.format(2, "", 1) + MM.format(3, "loss: 1.016570E+01 | ", 0)
                   + MM.format(4, "loss: 1.0E+01 | ", 0))
    assert (reading.table.step.tolist(), reading.table.loss.tolist()) == ([3, 4], [10.1657, 10.0])
    assert reading.table.columns["skipped"].tolist() == [0, 0]
    assert reading.table.columns["loss_scale"].tolist() == [65536, 65536]
    assert [item.code for item in reading.repairs] == ["read-no-value"]
    assert reading.repairs[0].params["rows"] == 2


def test_lm_loss_and_other_losses_keep_apart():
    line = MM.format(1, "lm loss: 1.5E+00 | mtp_1 loss: 2.5E+00 | load_balancing_loss: 1.0E-02 | ", 0)
    columns = read(line).table.columns
    assert (columns["loss"][0], columns["mtp_1_loss"][0], columns["load_balancing_loss"][0]) == (1.5, 2.5, 0.01)
