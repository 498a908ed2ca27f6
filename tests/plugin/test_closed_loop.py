"""`pytest -m L7`: from episodes at two sites to a verdict, an exit code and a text."""

import json

import pytest
from episodes import pairs

from pytest_migparity.wire import receipt
from pytest_migparity.wire.receipt import Receipt, recipe_hash
from pytest_migparity.wire.rollouts import to_line


@pytest.fixture
def evaluated(make_model):
    """A model whose sides hold so many pairs of episodes of each kind, and a receipt if asked for."""

    def make(extra="", producer=None, **cells):
        home = make_model(producer=None, extra=extra)
        expected = recipe_hash({"seed": 1})
        for side, episodes in zip(("baseline", "candidate"), pairs(**cells), strict=True):
            (home / side / "rollouts.jsonl").write_text("".join(map(to_line, episodes)), "utf-8")
            if producer:
                entry = receipt.entry_for(str(home / side), "rollouts.jsonl", "rollouts", "")
                receipt.write(str(home / side), Receipt(producer, expected, (entry,)))
        return home

    return make


def run(pytester, *options):
    return pytester.runpytest("-m", "L7", "--migparity-model", "mine", "-p", "no:cacheprovider", *options)


def test_the_same_success_passes_and_says_after_how_many_pairs(pytester, evaluated):
    evaluated(kept=100, lost=1, gained=2, failed=30)
    result = run(pytester)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*L7 closed loop*PASS*133/133 pairs*", "*certified after * of 133 pairs*"])


def test_a_lost_success_fails_with_the_task_and_the_limit(pytester, evaluated):
    evaluated(kept=60, lost=60, failed=30)
    result = run(pytester)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*mine · L7 closed loop · FAIL*", "*margin * limit 0.1000 (marker)*would pass at*",
                                 "*first divergence: task lift (baseline 0.8, candidate 0.4)*"])


def test_too_few_episodes_are_inconclusive_in_both_languages(pytester, evaluated):
    evaluated(kept=10, failed=2)
    result = run(pytester)
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*12 pairs cannot decide a margin of 0.1*"])
    assert run(pytester, "--migparity-lang", "zh").ret == 12


def test_no_episodes_say_what_to_fetch(pytester, make_model):
    make_model(producer=None)
    result = run(pytester)
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*baseline rollouts: no file there is one*"])


def test_a_truncated_line_and_a_nan_are_named_and_pass_nothing(pytester, evaluated):
    home = evaluated(kept=200)
    file = home / "candidate" / "rollouts.jsonl"
    file.write_text(file.read_text("utf-8").rstrip("\n"), "utf-8")
    result = run(pytester)
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*candidate rollouts: rollouts.jsonl: line 200 has no end*"])
    file.write_text(json.dumps({"task": "lift", "seed": 1, "success": float("nan")}) + "\n", "utf-8")
    result = run(pytester)
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*line 1: NaN is no outcome*"])


def test_a_manifest_may_tighten_the_margin_and_needs_a_reason_to_loosen_it(pytester, evaluated):
    evaluated(kept=100, lost=1, gained=2, failed=30, extra="[limits.L7]\nmargin = 0.02\n")
    assert run(pytester).ret == 12
    evaluated(kept=100, lost=1, gained=2, failed=30, extra="[limits.L7]\nmargin = 0.15\n")
    result = run(pytester)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*margin = 0.15 is looser than the published 0.1*"])


def test_receipts_and_declared_tasks_are_held_against_the_episodes(pytester, evaluated):
    home = evaluated(kept=200, gained=1, failed=50, producer="real", extra="[tasks.lift]\ntitle = 'lift it'\n")
    assert run(pytester).ret == 0
    file = home / "candidate" / "rollouts.jsonl"
    file.write_text(file.read_text("utf-8").replace("false", "true"), "utf-8")
    result = run(pytester)
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*changed after the run*"])


def test_the_manifest_says_which_rate_was_published_and_which_file_holds_the_episodes(pytester, evaluated):
    home = evaluated(kept=150, failed=100, extra="[rollouts]\nfile = 'l7/eval.jsonl'\npublished = 0.9\n")
    for side in ("baseline", "candidate"):
        (home / side / "l7").mkdir()
        (home / side / "rollouts.jsonl").rename(home / side / "l7" / "eval.jsonl")
    result = run(pytester)
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*the baseline's rate is 0.6 of 250 episodes, and 0.9 was published*"])
