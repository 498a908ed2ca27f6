"""Three witnesses of one start: they agree, one contradicts, one was not heard."""

import pytest

from pytest_migparity.judges.checkpoint_name import same_checkpoint
from pytest_migparity.judges.provenance import Expected, Witnesses, judge_provenance
from pytest_migparity.reports.messages import catalogue, tell
from pytest_migparity.wire.provenance import Asked, Restored, Weights

HASHED = Weights("a" * 16, "a" * 16)
BASE = "gs://openpi-assets/checkpoints/pi05_base/params"


def init(value=BASE, field="weight_loader.params_path"):
    return Asked(field, value, "config.py", "init", chosen=True)


def resume(value="true", field="resume"):
    return Asked(field, value, "command line", "resume", chosen=True)


def event(kind, path="", step=None, tensors=(), line=7):
    return Restored(kind, line, f"{kind} {path}", path, step, tuple(tensors))


LOADED = event("init", "/c/openpi/openpi-assets/checkpoints/pi05_base/params")
GOOD = Witnesses((init(),), (LOADED,), HASHED)


def judged(candidate, baseline=GOOD, expected=Expected()):  # noqa: B008  frozen
    notes, failed, unsure = judge_provenance(baseline, candidate, expected)
    assert {item.code for item in notes} <= set(catalogue())
    assert all(tell(item, lang) for item in notes for lang in ("en", "zh"))
    return {item.code.removeprefix("provenance-") for item in notes}, failed, unsure


def alone(witnesses, expected=Expected()):  # noqa: B008  frozen
    """Both sides alike."""
    return judged(witnesses, witnesses, expected)


def test_three_witnesses_that_agree_pass():
    assert judged(GOOD) == (set(), False, False)


@pytest.mark.parametrize(("witnesses", "code"), [
    (None, "no-asked"),
    (Witnesses((), (LOADED,), HASHED), "no-asked"),
    (Witnesses((init(),), (), HASHED), "no-restored"),
    (Witnesses((init(),), (LOADED,), None), "no-file"),
    (Witnesses((init(),), (LOADED,), Weights("", "a" * 16)), "no-file"),
    (Witnesses((init(),), (LOADED,), Weights("a" * 16, "")), "no-memory"),
    (Witnesses((init(),), (event("fresh"),), HASHED), "path-unseen"),
    (Witnesses((init(),), (event("init"),), HASHED), "path-unseen"),
    (Witnesses((init("out/checkpoints/last"),), (event("init", "out/checkpoints/000400"),), HASHED), "path-untold"),
    (Witnesses((init("<computed>"),), (LOADED,), HASHED), "path-untold"),
    (Witnesses((init(), init("/other", "weight_loader.params_path")), (LOADED,), HASHED), "ambiguous"),
    (Witnesses((resume("/w/out"),), (event("init", "/w/base"),), HASHED), "resume-unseen"),
])
def test_a_witness_that_was_not_heard_leaves_it_open(witnesses, code):
    codes, failed, unsure = judged(witnesses)
    assert code in codes
    assert (failed, unsure) == (False, True)


def test_nothing_on_either_side_is_no_pass():
    assert judge_provenance(None, None, Expected())[1:] == (False, True)


def test_another_checkpoint_than_was_asked_for_fails():
    """The configuration is called pi05_libero; its loader reads pi05_base; what was restored is pi0_base."""
    codes, failed, _ = judged(Witnesses((init(),), (event("init", "/c/openpi-assets/checkpoints/pi0_base/params"),), HASHED))
    assert (codes, failed) == ({"other-checkpoint"}, True)


def test_a_backbone_loaded_beside_the_checkpoint_does_no_harm():
    beside = event("init", "/m/Qwen3-VL-4B/model.safetensors.index.json")
    assert judged(Witnesses((init(),), (beside, LOADED), HASHED)) == (set(), False, False)


def test_a_fallback_to_an_older_checkpoint_fails():
    side = Witnesses((resume("o/checkpoints/global_step_800", "train.load_checkpoint_path"),), (
        event("fallback", "o/checkpoints/global_step_800"), event("resume", "o/checkpoints/global_step_600")), HASHED)
    codes, failed, _ = alone(side)
    assert (codes, failed) == ({"fallback", "other-checkpoint"}, True)


def test_a_resume_that_began_from_scratch_fails():
    codes, failed, _ = alone(Witnesses((init(), resume()), (LOADED, event("fresh")), HASHED))
    assert (codes, failed) == ({"not-resumed"}, True)


def test_a_resume_that_went_on_where_it_should_passes():
    side = Witnesses((init(), resume("out/run1")), (LOADED, event("resume", "/w/out/run1/checkpoints/global_step_400")),
                     HASHED)
    assert alone(side, Expected(resume=True)) == (set(), False, False)


def test_a_folder_of_another_run_fails():
    side = Witnesses((resume("/w/out/run2"),), (event("resume", "/w/out/run1/checkpoints/global_step_400"),), HASHED)
    codes, failed, _ = alone(side)
    assert (codes, failed) == ({"other-checkpoint"}, True)


def test_an_old_run_taken_up_without_being_asked_fails():
    codes, failed, _ = judged(Witnesses((init(),), (LOADED, event("resume", "/w/out/checkpoint-500")), HASHED))
    assert failed
    assert codes == {"resumed-unasked", "starts-differ"}


@pytest.mark.parametrize("field", ["train.enable_resume", "auto_resume"])
def test_a_first_run_with_automatic_resume_is_a_fresh_start(field):
    """LingBot's `enable_resume` on an empty folder: nothing was lost, unless the manifest expects a resume."""
    side = Witnesses((init(), resume(field=field)), (LOADED, event("fresh")), HASHED)
    assert alone(side) == (set(), False, False)
    codes, failed, _ = alone(side, Expected(resume=True))
    assert (failed, "start-resume" in codes) == (True, True)


def test_a_manifest_that_expects_a_fresh_start_is_held_to_what_happened():
    started = Witnesses((init(), resume()), (LOADED, event("fresh")), HASHED)
    assert alone(started, Expected(resume=False)) == (set(), False, False)
    went_on = Witnesses((init(), resume()), (LOADED, event("resume", "/w/exp/500")), HASHED)
    codes, failed, _ = alone(went_on, Expected(resume=False))
    assert (codes, failed) == ({"start-fresh"}, True)


def test_sides_that_went_on_from_other_steps_fail():
    sides = [Witnesses((resume(),), (event("resume", "/w/exp", step),), HASHED) for step in (400, 600)]
    codes, failed, _ = judged(sides[0], sides[1])
    assert (codes, failed) == ({"steps-differ"}, True)


def test_base_weights_after_a_resume_are_a_new_start():
    side = Witnesses((init(), resume()), (event("resume", "/w/exp/500"), LOADED), HASHED)
    codes, _, unsure = alone(side)
    assert "resume-unseen" in codes
    assert unsure


def test_a_fresh_start_after_a_resume_is_told_even_where_no_path_was():
    side = Witnesses((resume(),), (event("init"), event("resume", "/w/exp/500"), event("fresh")), HASHED)
    codes, failed, _ = alone(side)
    assert (codes, failed) == ({"not-resumed"}, True)


def test_steps_of_resumes_that_were_left_again_are_not_compared():
    sides = [Witnesses((init(),), (event("resume", "/w/exp", step), LOADED), HASHED) for step in (400, 600)]
    assert judged(*sides) == (set(), False, False)


def test_the_same_line_of_another_rank_is_not_taken_for_a_restart():
    side = Witnesses((init(), resume()), (LOADED, event("resume", "/w/exp/500"), LOADED), HASHED)
    codes, failed, unsure = alone(side)
    assert "restarted" in codes
    assert (failed, unsure) == (False, True)


def test_a_newly_initialised_head_fails_by_name_unless_declared():
    head = event("partial", tensors=("action_head.weight", "action_head.bias"))
    side = Witnesses((init(),), (LOADED, head), HASHED)
    notes, failed, _ = judge_provenance(side, side, Expected())
    assert failed
    assert "action_head.bias, action_head.weight" in tell(notes[0], "en")
    assert alone(side, Expected(new=("action_head.*",))) == (set(), False, False)


def test_a_declared_head_must_be_new_on_both_sides():
    side = Witnesses((init(),), (LOADED, event("partial", tensors=("action_head.weight",))), HASHED)
    codes, failed, _ = judged(side, expected=Expected(new=("action_head.*",)))
    assert (codes, failed) == ({"new-differ"}, True)


def test_a_checkpoint_that_filled_an_untold_part_fails():
    codes, failed, _ = alone(Witnesses((init(),), (LOADED, event("partial")), HASHED))
    assert (codes, failed) == ({"partial"}, True)


def test_a_loader_that_replaced_the_head_fails():
    """As in a public report: file and log were right, and the head in memory was another one."""
    replaced = Weights("a" * 16, "b" * 16, ("lm_head.weight",), 1)
    notes, failed, _ = judge_provenance(GOOD, Witnesses((init(),), (LOADED,), replaced), Expected())
    assert failed
    assert "replaced 1 tensors" in tell(notes[0], "en")
    assert "lm_head.weight" in tell(notes[0], "en")


def test_a_loader_that_casts_without_loss_passes():
    assert not judged(Witnesses((init(),), (LOADED,), Weights("a" * 16, "b" * 16)))[1]


def test_the_manifests_checkpoint_is_a_fourth_witness():
    assert judged(GOOD, expected=Expected("openpi-assets/checkpoints/pi05_base")) == (set(), False, False)
    codes, failed, _ = judged(GOOD, expected=Expected("openpi-assets/checkpoints/pi05_droid"))
    assert (codes, failed) == ({"asked-other"}, True)


def test_training_from_scratch_that_loads_something_fails():
    scratch = Witnesses((init(""),), (event("fresh"),), HASHED)
    assert alone(scratch) == (set(), False, False)
    codes, failed, _ = alone(Witnesses((init(""),), (LOADED,), HASHED))
    assert (codes, failed) == ({"init-unasked"}, True)
    codes, failed, _ = alone(scratch, Expected("pi05_base"))
    assert (codes, failed) == ({"asked-nothing"}, True)


@pytest.mark.parametrize(("asked", "restored", "same"), [
    ("gs://openpi-assets/checkpoints/pi0_base/params", "~/.cache/openpi/openpi-assets/checkpoints/pi0_base/params", True),
    ("lerobot/pi0_base", "/c/hub/models--lerobot--pi0_base/snapshots/e3a5218ef7a5/model.safetensors", True),
    ("lerobot/pi0_base", "/c/hub/models--lerobot--pi05_base/snapshots/e3a5218ef7a5/model.safetensors", False),
    ("./out/checkpoint-500/", "/w/out/checkpoint-500", True),
    ("out/checkpoint-500", "/w/out/checkpoint-400", False),
    ("out", "/w/out/checkpoint-400", True),
    ("out/checkpoint-500", "/w/out", False),
    ("out/checkpoint-500", "/w/out/checkpoint-500/checkpoint-400", False),
    ("/w/a/pi0", "/w/b/pi05", False),
    ("/w/a/5000", "/w/b/5000", False),
    ("/mnt/x/pi0_base", "/data/y/pi0_base", None),
    ("out/checkpoints/last/pretrained_model", "out/checkpoints/000400/pretrained_model", None),
    ("other/checkpoints/last", "out/checkpoints/000400", False),
    ("5000", "/w/exp/5000", None),
    ("/w/qwen", "/w/qwen/model-00001-of-00004.safetensors", True),
    ("", "/w/qwen", None),
    ("C:\\ckpt\\pi0", "C:/ckpt/pi0", True),
])
def test_names_of_one_checkpoint_and_of_two(asked, restored, same):
    assert same_checkpoint(asked, restored) is same
