"""All formats together: each sample is recognised by its reader alone, and nothing hostile takes time."""

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_migparity.core.errors import UserError
from pytest_migparity.readers.loss import read_loss
from pytest_migparity.readers.registry import builtin

BAR = "  1%|\u258f         | 12/1389 [00:41<1:20:11,  3.52s/it]"
LINES = {  # logs whose lines may have anything before them; steps 10 and 20, losses 2.5 and 2.25
    "lingbot": "Step {0}/900, Epoch 1, Loss {1:.4f}, VLA_Loss 0.2000, GradNorm 0.8400, LR 1.00e-04, StepTime 7.500s\n",
    "megatron": "iteration {0}/2000 | consumed samples: 8 | lm loss: {1:.6E} | grad norm: 12.500 |\n",
    "megatron, MindSpeed-MM": "iteration {0}/10000 | global batch size: 8 | loss: {1:.6E} | grad norm: 50.001 |\n",
    "lerobot": "ot_train.py:423 step:{0} smpl:80 ep:3 epch:0.16 loss:{1:.3f} grdn:15.500 lr:1.0e-05 updt_s:0.047\n",
    "openpi": "Step {0}: grad_norm=0.1234, loss={1:.4f}, param_norm=1801.2500\n",
    "openpi, torch": "step={0} loss={1:.4f} lr=1.25e-05 grad_norm=0.12 time=3.1s\n",
    "torchtitan": "step: {0:2}  loss: {1:8.5f}  grad_norm:  1.2500  memory: 40.12GiB(50.00%)  tps: 1,234\n",
    "mllog": ':::MLLOG {{"key": "train_loss", "value": {1}, "metadata": {{"samples_count": {0}, "lr": 0.1}}}}\n',
    "hf-stdout": "{{'loss': {1}, 'grad_norm': nan, 'global_step/max_steps': '{0}/93', 'epoch': 0.02}}\n",
    "deepspeed": "[INFO] step={0}, skipped=0, lr=[1e-05], mom=[0.9]\nsteps: {0} loss: {1:.4f} iter time (s): 1.2 "
                 "samples/sec: 26.6\n",
}
MANGLED = {
    "plain": "", "rank": "[default0]: ", "rank-number": "0: ", "torchrun": "[rank0]:", "bar": BAR, "bar-cr": BAR + "\r",
    "clock": "2026-01-02 10:00:00,123 - INFO - __main__ - ", "mindspeed": "INFO [2026-01-02 10:00:00] >>  ",
    "colour": "\x1b[32mINFO\x1b[0m ", "all": "\x1b[36m[rank0]:\x1b[0m" + BAR + "01/02/2026 10:00:00 - INFO - __main__ - ",
}
FILES = {
    "csv": "step,loss,lr\n10,2.5,0.1\n20,2.25,0.1\n",
    "csv, torchtitan golden": "10 2.5\n20 2.25\n",
    "jsonl": '{"step": 10, "epoch": 1, "loss": 2.5, "lr": 0.1}\n{"step": 20, "epoch": 1, "loss": 2.25, "lr": 0.1}\n',
    "jsonl, LLaMA-Factory": '{"current_steps": 10, "loss": 2.5, "lr": 0.1}\n{"current_steps": 20, "loss": 2.25}\n',
    "hf-state": '{\n "epoch": 1.0,\n "global_step": 20,\n "log_history": [\n  {"loss": 2.5,\n   "step": 10},\n'
                '  {"loss": 2.25,\n   "step": 20}\n ],\n "logging_steps": 10\n}\n',
    "hf-state, one line": '{"global_step": 20, "log_history": [{"loss": 2.5, "step": 10}, {"loss": 2.25, "step": 20}]}\n',
    "wandb": '"Step","a - loss","a - loss__MIN","a - loss__MAX"\n"10","2.5","2.5","2.5"\n"20","2.25","2.25","2.25"\n',
}
SAMPLES = {**{f"{name} ({how})": "".join(prefix + piece for piece in (line.format(10, 2.5) + line.format(20, 2.25))
                                         .splitlines(True))
              for name, line in LINES.items() for how, prefix in MANGLED.items()}, **FILES}


def expected(sample):
    return sample.split(" (")[0].split(",")[0]


@pytest.mark.parametrize("sample", SAMPLES)
def test_each_sample_is_recognised_by_exactly_its_reader(sample):
    text = SAMPLES[sample].replace("\x1b[32m", "").replace("\x1b[36m", "").replace("\x1b[0m", "").replace("\r", "\n")
    scores = sorted(((reader.sniff(text), name) for name, reader in builtin().items()), reverse=True)
    assert scores[0][1] == expected(sample)
    assert scores[0][0] > scores[1][0]


@pytest.mark.parametrize("sample", SAMPLES)
def test_each_sample_is_read_whatever_stands_before_its_records(sample):
    reading = read_loss(SAMPLES[sample].encode(), "any/name.txt")
    assert reading.format == expected(sample)
    assert (reading.table.step.tolist(), reading.table.loss.tolist()) == ([10, 20], [2.5, 2.25])


@pytest.mark.parametrize("sample", SAMPLES)
def test_windows_files_read_alike(sample):
    reading = read_loss(SAMPLES[sample].replace("\r", "").replace("\n", "\r\n").encode("utf-8-sig"), "log")
    assert (reading.table.step.tolist(), reading.table.loss.tolist()) == ([10, 20], [2.5, 2.25])


def test_dicts_beside_another_trainers_lines_do_not_take_over():
    """Megatron with DeepSpeed's engine below it, and Hugging Face's Trainer with it."""
    engine = "[INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-05], mom=[0.9]\n"
    assert read_loss((engine + LINES["megatron"].format(10, 2.5)).encode(), "log").format == "megatron"
    assert read_loss((engine + LINES["hf-stdout"].format(10, 2.5)).encode(), "log").format == "hf-stdout"
    assert read_loss((LINES["hf-stdout"].format(10, 2.5) + LINES["mllog"].format(10, 2.5)).encode(), "log"
                     ).format == "mllog"


@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_truncation_at_any_byte_is_one_clear_error_or_a_prefix(sample, data):
    raw = SAMPLES[sample].encode()
    try:
        cut = read_loss(raw[: data.draw(st.integers(0, len(raw) - 1))], "run/log")
    except UserError:
        return
    assert set(zip(cut.table.step.tolist(), cut.table.loss.tolist(), strict=True)) <= {(10, 2.5), (20, 2.25)}


HOSTILE = {
    "lerobot": ["step:1 smpl:" * 80_000, "step:1 smpl:1 " + "a:1 " * 250_000, "step:1 smpl:1 " + "a" * 1_000_000,
                "log_freq" * 120_000, "log_freq:1 " * 90_000],
    "openpi": ["Step 1: " * 120_000, "Step 1: " + "a=1, " * 200_000, "Step 1: a=" + "1" * 1_000_000,
               "step=1 loss=" * 80_000, "Step " + "1" * 1_000_000],
    "torchtitan": ["step: 1 loss: " * 70_000, "step:" + " " * 1_000_000, "step: 1 loss: 1" + ",000" * 250_000,
                   "step: 1 loss: 1 " + "a: " * 300_000],
    "mllog": [":::MLLOG " * 110_000, ":::MLLOG {" * 100_000, ':::MLLOG {"key": "train_loss", "value": ' + "9" * 1_000_000,
              ":::MLLOG " + "[" * 1_000_000, ':::MLLOG {"a":' * 70_000],
    "hf-stdout": ["{'loss': 1" * 100_000, "{'loss': 1, " + "'a': 1, " * 120_000, "{'" * 500_000, "{'loss': 0.5}" * 70_000,
                  "{'loss': '" + "1" * 1_000_000, "'loss': 1 " * 100_000, "{'a': 1, " * 110_000,
                  "1/2 [0" * 160_000 + "{'loss': 1}", "logging_steps=1 " * 60_000 + "{'loss': 1}"],
    "hf-state": ['{"log_history": [' * 60_000, '{"log_history": ' + "[" * 1_000_000, '{"log_history": [' + "1," * 400_000,
                 '{"log_history": "' + "a" * 1_000_000, '{"log_history": [' + "{}," * 300_000 + "{}]}"],
    "wandb": ['"Step","a - loss__MIN"\n' + '"' * 1_000_000, "Step," + "a - b," * 150_000, "Step, - " * 120_000,
              '"Step","a - loss"\n' + "1," * 500_000, '"Step","a - loss"\n' + '"1","2"\n' * 120_000],
    "deepspeed": ["step=1, skipped=1, lr=[" * 45_000, "step=1, skipped=1, lr=[" + "1," * 500_000,
                  "steps: 1 loss: 1 " * 60_000, "steps: 1 loss: 1 " + "a: 1 " * 200_000 + "iter time (s): ",
                  "step=1, skipped=1, lr=[1]\n" + "loss: 1\n" * 120_000, "overflow" * 120_000,
                  "step=1, skipped=1, lr=[1]\n" + ("loss: 1" + ", a b c d" * 450 + "\n") * 250,
                  "step=1, skipped=1, lr=[1]\n" + ("loss" + "a " * 2000 + "\n") * 250],
}


@pytest.mark.parametrize(("format", "text"), [(format, text) for format, texts in HOSTILE.items() for text in texts],
                         ids=lambda value: value[:24] if isinstance(value, str) else None)
def test_hostile_megabytes_take_no_time(format, text):
    start = time.process_time()
    for reader in builtin().values():
        reader.sniff(text[: 1 << 16])
    with suppress(UserError):
        read_loss(text.encode(), "log", format=format)
    assert time.process_time() - start < 3


@settings(max_examples=300)
@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_any_damage_gives_a_reading_or_a_user_error(sample, data):
    text = SAMPLES[sample]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.text("{}[]'\":,=|/ \n\r10.eEKstepls", max_size=6)) + text[at + data.draw(
            st.integers(0, 4)):]
    for format in (None, expected(sample)):
        with suppress(UserError):
            assert read_loss(text.encode(), "log", format=format).table.step.size > 0
