"""Every code the L5 judge and the log readers emit has a sentence in both languages."""

import re
from pathlib import Path
from string import Formatter

import pytest

import pytest_migparity
from pytest_migparity.reports.messages import loss, reading

MESSAGES = {**loss.MESSAGES, **reading.MESSAGES}
ROOT = Path(pytest_migparity.__file__).parent
SOURCES = [ROOT / "judges" / "difftraj.py", *(ROOT / "judges").glob("loss*.py"), *(ROOT / "judges").glob("traj*.py"),
           *(ROOT / "readers").glob("*.py")]
NOTE = re.compile(r'note\("([a-z0-9-]+)"((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)')
EMITTED = {code for path in SOURCES
           for code in re.findall(r'"((?:loss|hint|read)-[a-z0-9-]+)"', path.read_text(encoding="utf-8"))}


def test_the_codes_in_the_source_are_the_codes_with_messages():
    assert set(MESSAGES) == EMITTED


def fields(template):
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("code", sorted(MESSAGES))
def test_both_languages_say_the_same_parameters(code):
    english, chinese = MESSAGES[code]
    assert fields(english) == fields(chinese)
    assert "" not in fields(english)
    assert re.search("[一-鿿]", chinese)
    assert not re.search("[一-鿿]", english)
    assert not code.startswith("loss-check-") or not fields(english)


def test_every_note_passes_the_parameters_its_sentence_names():
    """`note("code", a=..., b=...)` in the source against {a} {b} in the templates."""
    seen = set()
    for path in SOURCES:
        for code, rest in NOTE.findall(path.read_text("utf-8")):
            if code in MESSAGES and "**" not in rest:
                seen.add(code)
                assert fields(MESSAGES[code][0]) <= set(re.findall(r"\b(\w+)=(?!=)", rest)), code
    assert len(seen) > 30
