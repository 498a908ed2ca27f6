"""Log lines about loading, as upstream code prints them: what each says was restored."""

import pytest

from pytest_migparity.readers.restored import read_restored


def read(*lines):
    return read_restored(enumerate(lines, 1))


@pytest.mark.parametrize(("line", "kind", "path", "step"), [
    ("02:07:57.573 [I] Restoring checkpoint from /w/openpi/pi05_base/params.   (4097:checkpointer.py:298)",
     "init", "/w/openpi/pi05_base/params", None),
    ("21:28:12.379 [I] Restoring checkpoint from /w/checkpoints/pi05_libero/exp/5000.  (957:checkpointer.py:256)",
     "resume", "/w/checkpoints/pi05_libero/exp/5000", None),
    ("INFO:root:Loaded PyTorch weights from /w/pi0_base", "init", "/w/pi0_base", None),
    ("Resuming from experiment checkpoint directory: /w/ckpt/exp at step 4000", "resume", "/w/ckpt/exp", 4000),
    ("[I] Checkpoint directory exists, but does not contain any checkpoints. Aborting resume. (1:c.py:2)", "fresh", "",
     None),
    ("08/05/2026 14:27:41 - INFO - __main__ - Load distributed checkpoint from out/checkpoints/global_step_400 "
     "successfully!", "resume", "out/checkpoints/global_step_400", None),
    ("Failed to load checkpoint out/checkpoints/global_step_800: EOFError('x'). Trying older one...", "fallback",
     "out/checkpoints/global_step_800", None),
    ("Starting training from scratch. No valid checkpoint could be loaded.", "fallback", "", None),
    ("Starting training from scratch.", "fresh", "", None),
    ("No checkpoints in /w/out now!", "fresh", "", None),
    ("Loading model from /w/out/checkpoint-500.", "resume", "/w/out/checkpoint-500", None),
    ("  Continuing training from global step 500", "resume", "", 500),
    ("loading weights file /w/qwen/model.safetensors.index.json", "init", "/w/qwen/model.safetensors.index.json", None),
    ("loading weights file model.safetensors from cache at /c/models--a--b/snapshots/0123456789ab/model.safetensors",
     "init", "/c/models--a--b/snapshots/0123456789ab/model.safetensors", None),
    ("Loading weights from local directory", "init", "", None),
    ("  successfully loaded checkpoint from /w/meg [ t 1/2, p 1/1 ] at iteration 700", "resume", "/w/meg", 700),
    (" loading release checkpoint from /w/meg", "init", "/w/meg", None),
    ("    will not load any checkpoints and will start from random", "fresh", "", None),
    ("Attempting to resume from /w/out/checkpoint-20", "resume", "/w/out/checkpoint-20", None),
    ("Loading the checkpoint from outputs/checkpoint/step-100.", "resume", "outputs/checkpoint/step-100", None),
    ("Resumed from checkpoint: /w/epoch_3", "resume", "/w/epoch_3", None),
])
def test_a_line_of_the_field(line, kind, path, step):
    (event,) = read("Step 1, Loss 0.5", line, "Step 2, Loss 0.4")
    assert (event.line, event.kind, event.path, event.step) == (2, kind, path, step)


@pytest.mark.parametrize("line", [
    "Saving model checkpoint to /w/out/checkpoint-500",
    "Save checkpoint at /w/out/global_step_400 successfully!",
    "step:200 smpl:2K loss:7.490 grdn:154.502 lr:1.0e-05",
    "[I] Found 0 checkpoint steps in /w/checkpoints/exp (10488:checkpoint_manager.py:1528)",
    "All keys loaded successfully!",
    "All the weights of PI0 were initialized from the model checkpoint at /w/pi0.",
])
def test_a_line_that_restores_nothing_says_nothing(line):
    assert read(line) == ()


def test_a_newly_initialised_head_is_named_and_so_is_the_checkpoint():
    events = read("Some weights of BertForSequenceClassification were not initialized from the model checkpoint at "
                  "bert-base-uncased and are newly initialized: ['classifier.bias', 'classifier.weight']")
    assert [(event.kind, event.path) for event in events] == [("init", "bert-base-uncased"), ("partial", "bert-base-uncased")]
    assert events[1].tensors == ("classifier.bias", "classifier.weight")


def test_a_head_of_another_shape_is_listed_below_its_heading():
    events = read(
        "Some weights of Wav2Vec2ForCTC were not initialized from the model checkpoint at facebook/mms and are newly "
        "initialized because the shapes did not match:",
        "- lm_head.bias: found shape torch.Size([154]) in the checkpoint and torch.Size([314]) in the model instantiated",
        "- lm_head.weight: found shape torch.Size([154, 8]) in the checkpoint and torch.Size([314, 8]) in the model",
        "You should probably TRAIN this model on a down-stream task")
    assert events[-1].tensors == ("lm_head.bias", "lm_head.weight")


def test_the_report_of_transformers_5_tells_missing_from_unexpected():
    events = read("BertForQuestionAnswering LOAD REPORT from: bert-base-uncased",
                  "Key                          | Status     | ",
                  "-----------------------------+------------+-",
                  "bert.pooler.dense.weight     | UNEXPECTED | ",
                  "qa_outputs.weight            | MISSING    | ")
    assert [(event.kind, event.tensors) for event in events] == [("init", ()), ("partial", ("qa_outputs.weight",))]


def test_lerobots_missing_keys_and_not_its_unexpected_ones():
    events = read("Missing keys when loading state dict: 2 keys", "  - model.a.weight", "  - model.b.weight",
                  "Unexpected keys when loading state dict: 1 keys", "  - model.c.weight")
    assert [event.tensors for event in events] == [("model.a.weight", "model.b.weight")]


def test_pi0_that_could_not_remap_its_keys():
    events = read("Warning: Could not remap state dict keys: Error(s) in loading state_dict for PI05Policy:",
                  '\tMissing key(s) in state_dict: "model.language_model.embed_tokens.weight". ')
    assert [(event.kind, event.tensors) for event in events] == [
        ("partial", ("model.language_model.embed_tokens.weight",))]


def test_lingbots_way_down_to_an_older_checkpoint_keeps_its_order():
    events = read("Failed to load checkpoint o/global_step_800: OSError(). Trying older one...",
                  "Load distributed checkpoint from o/global_step_600 successfully!")
    assert [event.kind for event in events] == ["fallback", "resume"]


def test_a_hostile_log_stays_bounded():
    """A million characters in a line, a line for each rank of a large job, escapes: short, printable, no more than 1000."""
    events = read("Loading model from " + "x" * (1 << 20), *["Starting training from scratch."] * 5000,
                  "Starting training from scratch.\x1b[31m\x00" + "y" * 5000)
    assert len(events) == 1000
    assert all(len(event.text) <= 1000 and event.text.isprintable() for event in events)
    many = read("Missing keys when loading state dict: 9999 keys", *(f"  - p.{at}" for at in range(9999)))
    assert len(many[0].tensors) <= 200
