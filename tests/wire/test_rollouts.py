"""rollouts.jsonl: what is written is read back, and what breaks a rule is named with its line."""

import pytest

from pytest_migparity.wire.rollouts import Episode, RolloutError, from_text, to_line

LINE = '{"task": "lift", "seed": 1, "success": true, "harness": "sim 1"}\n'


def test_an_episode_with_every_field_comes_back():
    episode = Episode("lift", 7, True, 112, init="s7", instruction="i", noise="n", success_safe=True, interventions=2,
                      first_collision=17.5, collisions=("arm-table",), goal_error=0.01, score=0.5, timeout=False,
                      harness="sim 1", envs=4, horizon=300, device="npu")
    assert from_text(to_line(episode)).episodes == (episode,)


def test_an_episode_without_an_outcome_says_why_and_has_none():
    crashed = Episode("lift", 7, None, error="crash", harness="sim 1")
    assert from_text(to_line(crashed)).episodes == (crashed,)
    claimed = from_text('{"task": "lift", "seed": 1, "success": true, "error": "rejected"}\n')
    assert claimed.episodes[0].success is None


@pytest.mark.parametrize("text, why", [
    ("", "no episode in it"),
    (LINE + LINE.strip(), "line 2 has no end"),
    (LINE + '{"task": "lift", "se\n', "line 2 is no JSON object"),
    (LINE + "[1]\n", "line 2 is no JSON object but"),
    (LINE + '{"task": "lift", "seed": 2, "success": NaN}\n', "NaN is no outcome"),
    (LINE + '{"task": "lift", "seed": 2, "success": null}\n', 'line 2: "success" is missing or null'),
    (LINE + '{"task": "lift", "seed": 2}\n', 'line 2: "success" is missing or null'),
    (LINE + '{"task": "lift", "seed": 2, "success": 1}\n', 'line 2: "success" is 1, expected true or false'),
    (LINE + '{"task": "lift", "seed": 2.0, "success": true}\n', 'line 2: "seed" is 2.0, expected a whole number'),
    (LINE + '{"task": "lift", "seed": true, "success": true}\n', '"seed" is True'),
    (LINE + '{"seed": 2, "success": true}\n', 'line 2: "task" is missing'),
    (LINE + '{"task": "lift", "success": true}\n', "1 of 2 episodes have no seed"),
    (LINE + '{"task": "lift", "seed": 2, "success": true, "steps": -1}\n', '"steps" is -1'),
    (LINE + '{"task": "lift", "seed": 2, "success": true, "score": 1.5}\n', '"score" is 1.5'),
    (LINE + '{"task": "lift", "seed": 2, "success": true, "goal_error": 1e999}\n', '"goal_error" is inf'),
    (LINE + '{"task": "lift", "seed": 2, "success": true, "collisions": "arm"}\n', '"collisions" is'),
    (LINE + '{"task": "lift", "seed": 2, "error": "tired"}\n', "\"error\" is 'tired'"),
    (LINE + '"' + "a" * 70000 + '"\n', "longer than 65536"),
    (LINE + "[" * 60000 + "\n", "line 2 is no JSON object"),
])
def test_a_line_that_breaks_a_rule_is_named(text, why):
    with pytest.raises(RolloutError) as caught:
        from_text(text)
    assert why in str(caught.value)


def test_blank_lines_and_unknown_keys_are_no_harm():
    assert len(from_text("\n" + LINE + "\n" + LINE.replace("}", ', "mine": [1]}')).episodes) == 2
    assert from_text(LINE).unpaired == ""
    assert from_text('{"task": "lift", "success": true}\n').unpaired
