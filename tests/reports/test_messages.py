"""Everything a person reads exists in both languages and takes the parameters it is given."""

import ast
import re
import string

import pytest

from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.verdict import Note, Outcome, State
from pytest_migparity.reports.messages import catalogue, say, tell
from pytest_migparity.suite import suite_path

PACKAGE = suite_path().parent / "pytest_migparity"


def placeholders(template):
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("code", sorted(catalogue()))
def test_both_languages_say_the_same_things(code):
    english, chinese = catalogue()[code]
    assert english.strip()
    assert chinese.strip()
    assert placeholders(english) == placeholders(chinese)


def calls_in(name):
    """Every literal code given to note() or say() in a module, with the names of its parameters."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == name
                    and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)):
                yield path.name, node.args[0].value, {key.arg for key in node.keywords}


def test_every_code_in_the_source_has_a_message():
    known = catalogue()
    missing = [(path, code) for name in ("note", "say") for path, code, _ in calls_in(name) if code not in known]
    assert missing == []


def test_every_problem_of_evidence_is_given_what_its_message_asks_for():
    """`side` is added by assess; the rest must be at the call."""
    from pytest_migparity.reports.messages.evidence import MESSAGES

    short = [(path, code, placeholders(MESSAGES[code][0]) - given - {"side"})
             for path, code, given in calls_in("note") if code in MESSAGES
             if placeholders(MESSAGES[code][0]) - given - {"side"}]
    assert short == []


def test_every_label_that_a_report_builds_by_name_exists():
    wanted = [f"level-{level}" for level in LEVELS] + [f"outcome-{outcome}" for outcome in Outcome]
    wanted += [f"answer-{lost}" for lost in ("no", "yes", "cannot tell")] + ["side-baseline", "side-candidate"]
    wanted += [f"producer-{producer}" for producer in ("real", "rehearsal", "manual")]
    wanted += [f"column-{name}" for name in ("model", "level", "outcome", "figure", "coverage")]
    assert [code for code in wanted if code not in catalogue()] == []
    assert State.BLIND  # named by check-blind
    assert "check-blind" in catalogue()


def test_chinese_is_chinese_and_english_is_ascii():
    """No sentence was left in the other language; names of tools and keys may stay as they are."""
    for code, (english, chinese) in catalogue().items():
        assert english.isascii(), code
        words = re.sub(r"\{[^}]*\}", "", chinese)
        if " " in re.sub(r"\{[^}]*\}", "", english).strip() and len(english) > 30:
            assert re.search(r"[\u4e00-\u9fff]", words), code


def test_an_unknown_code_is_shown_rather_than_hidden():
    assert tell(Note("from-the-future", {"b": 2, "a": 1}), "zh") == "from-the-future a=1 b=2"


def test_the_name_of_a_side_is_said_in_the_readers_language():
    assert say("evidence-unreadable", "zh", side="baseline", kind="loss", why="x").startswith("基线 loss")
