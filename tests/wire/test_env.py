"""A lock from outside is bounded and well-formed, or refused by the key that is wrong."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.host.envlock import collect, render
from pytest_migparity.wire.env import MAX_BYTES, SCHEMA, EnvError, parse

GOOD = {"schema": SCHEMA, "python": {"version": "3.11.9"}, "env": {"OMP_NUM_THREADS": "8"},
        "packages": {"numpy": ["1.26.4", "index", "aa", "binary"], "x": ["1", "vcs", "", "?", {"commit": "ab"}]}}


def edited(**changes):
    return json.dumps({**GOOD, **changes})


def test_a_good_document_comes_back_as_it_is():
    assert parse(json.dumps(GOOD)) == GOOD


def test_what_the_collector_writes_is_accepted():
    lock = collect(environ={"OMP_NUM_THREADS": "8", "RANK": "3"}, torch=False)
    assert parse(render(lock)) == json.loads(json.dumps(lock))


@pytest.mark.parametrize("text, named", [
    ("", "not JSON"), ("[1,2", "not JSON"), ("[]", "schema"), ("null", "schema"), (edited(schema="x/1"), "schema"),
    ("[" * 100_000, "not JSON"), (edited(a=json.loads("[" * 500 + "]" * 500)), "nested"),
    ('{"a":1,"a":2}', "'a' is given twice"), ('{"a":NaN}', "NaN"), ("1" * 5000, "not JSON"),
    (" " * (MAX_BYTES + 1), "larger"), (edited(packages=[]), "packages"), (edited(env={"A": 1}), "env.A"),
    (edited(packages={"numpy": "1.26"}), "packages.numpy"), (edited(packages={"numpy": ["1.26"]}), "packages.numpy"),
    (edited(packages={"numpy": ["1", "index", None, "?"]}), "packages.numpy"),
    (edited(packages={"numpy": ["1", "index", "", "?", {"modified": -1}]}), "numpy.modified"),
    (edited(packages={"numpy": ["1", "index", "", "?", {"modified": True}]}), "numpy.modified"),
    (edited(packages={"numpy": ["1", "index", "", "?", {"shadowed": "1.0"}]}), "numpy.shadowed"),
    (edited(rank={"rank": "0"}), "rank.rank"), (edited(listed="PATH"), "listed"),
    (edited(trees={"up": {"commit": 5}}), "up.commit"), (edited(configs={"t": {"values": {"a": {}}}}), "values.a"),
    (edited(torch={"flags": {"x": {}}}), "flags.x"), (edited(cuda={"devices": {}}), "cuda.devices"),
    (edited(extensions={"op": ["aa"]}), "extensions.op"), (edited(env={"A": "\ud800"}), "half a character"),
    (json.dumps({key: value for key, value in GOOD.items() if key != "packages"}), "packages"),
])
def test_a_hostile_or_broken_document_is_refused_by_its_key(text, named):
    with pytest.raises(EnvError) as caught:
        parse(text)
    assert named in str(caught.value)


def test_a_part_that_could_not_be_collected_is_accepted_as_such():
    assert parse(edited(packages={"error": "OSError"}, trees={"up": {"error": "no git"}}, torch={"error": "died"}))


anything = st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
                        lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)), max_leaves=15)


@given(st.dictionaries(st.sampled_from(["packages", "env", "rank", "trees", "configs", "torch", "cuda", "extensions"]),
                       anything))
def test_any_json_gives_a_document_or_an_env_error(changes):
    with suppress(EnvError):  # anything else is a traceback in front of a user
        assert parse(edited(**changes))["schema"] == SCHEMA


@given(st.data())
def test_a_truncated_document_is_refused(data):
    text = json.dumps(GOOD)
    with pytest.raises(EnvError):
        parse(text[:data.draw(st.integers(0, len(text) - 1))])
