"""Public reports of L6 (shared/casebook/cases.csv, paraphrased): each row's input, and the verdict it deserves."""

from dataclasses import replace

import numpy as np
import pytest
from outputs import chunks, codes, judged, outputs, values

from pytest_migparity.core.outputs import ActionRules
from pytest_migparity.core.verdict import Outcome

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
JOINTS = ("x", "y", "z", "rx", "ry", "rz", "gripper")


def test_c02_greedy_texts_that_part_at_position_37_are_open_without_logits():
    ours = np.random.default_rng(0).integers(0, 32000, (20, 60))
    theirs = ours.copy()
    theirs[:, 37:] = np.random.default_rng(1).integers(0, 32000, (20, 23))
    finding = judged(outputs(ours, kind="tokens"), outputs(theirs, kind="tokens"))
    assert finding.outcome is INCONCLUSIVE
    (item,) = [item for item in finding.notes if item.code == "action-text-parts"]
    assert item.params["position"] == 37


def test_c04_rewards_of_sampled_rollouts_have_no_noise_in_common():
    """One run each, A - .03 with a noise of .05 on it: nobody says which draws, so nothing is compared."""
    a = np.random.default_rng(0).uniform(0.2, 0.6, (40, 1, 1))
    b = a - 0.03 + 0.05 * np.random.default_rng(1).standard_normal(a.shape)
    sides = [outputs(side, names=("reward",), noise=(), steps=1) for side in (a, b)]
    finding = judged(*sides)
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"action-noise-unsaid"}


def test_c31_actions_that_nobody_un_normalised_fail_and_each_dimension_is_a_line():
    a = np.clip(0.02 * chunks(50, 4, 7), -0.05, 0.05)
    std = a.std((0, 1))
    finding = judged(outputs(a, names=JOINTS), outputs(a / std, names=JOINTS))
    assert finding.outcome is FAIL
    slopes = {item.params["name"]: item.params["slope"] for item in finding.hints}
    assert slopes == {name: pytest.approx(1 / size) for name, size in zip(JOINTS, std, strict=True)}


def test_c32_an_inverted_gripper_fails_by_name_though_six_dimensions_are_equal():
    a = chunks(50, 4, 7)
    a[..., 6] = np.where(a[..., 6] > 0, 1.0, -1.0)
    b = a.copy()
    b[..., 6] *= -1
    rules = ActionRules(gripper=("gripper",))
    finding = judged(outputs(a, names=JOINTS), outputs(b, names=JOINTS), rules=rules)
    assert finding.outcome is FAIL
    assert finding.first_divergence.at.startswith("gripper of")
    assert values(finding)["flips"] == 1
    assert [(item.params["name"], item.params["slope"]) for item in finding.hints] == [("gripper", pytest.approx(-1))]
    assert values(finding)["mean_abs"] == pytest.approx(2 / 7), "which a mean over all would call small"


def test_c54_a_replay_of_recorded_actions_says_nothing_of_the_policy():
    policy = outputs(chunks(50, 4, 7), names=JOINTS)
    replay = replace(policy, source="replay")
    for pair in ((policy, replay), (replay, policy), (replay, replay)):
        finding = judged(*pair)
        assert finding.outcome is INCONCLUSIVE
        assert "action-replayed" in codes(finding)


def test_c88_a_text_that_parts_at_a_margin_of_a_hundredth_passes_by_its_logits():
    """Greedy text turns at position 9, where the first choice was .01 ahead; the logits agree."""
    logits = np.random.default_rng(0).standard_normal((20, 16, 64))
    first = logits.argmax(2)
    np.put_along_axis(logits, first[..., None], 6.0, 2)
    second = (first[4, 9] + 1) % 64
    logits[4, 9, second] = 5.99
    other = logits + 2e-3 * np.random.default_rng(1).standard_normal(logits.shape)
    other[4, 9, second] = 6.005
    text = first.copy()
    turned = other.argmax(2)
    assert (turned[4, 9], (turned != text).sum()) == (second, 1)
    other[4, 10:] = np.random.default_rng(2).standard_normal((6, 64))  # another context from there on
    finding = judged(outputs(logits, kind="logits", tokens=text), outputs(other, kind="logits", tokens=turned))
    assert finding.outcome is PASS
    (item,) = [item for item in finding.notes if item.code == "action-choices"]
    assert (item.params["name"], item.params["position"], item.params["margin"]) == ("s4", 9, pytest.approx(0.01))
