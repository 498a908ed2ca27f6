"""A receipt says whose the files are; a hostile or torn one is refused by the key that is wrong."""

import contextlib
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.wire import receipt
from pytest_migparity.wire.receipt import Entry, Receipt, ReceiptError

GOOD = {"schema": "migparity.receipt/1", "producer": "real", "recipe": "ab", "files": [
    {"kind": "loss", "path": "loss.jsonl", "sha256": "0" * 64, "bytes": 3, "series": "main"}]}


def edited(**changes):
    return json.dumps({**GOOD, **changes})


def entry(**changes):
    return edited(files=[{**GOOD["files"][0], **changes}])


def test_written_and_read_back(tmp_path):
    (tmp_path / "loss.jsonl").write_bytes(b"abc")
    wanted = Receipt("rehearsal", "12" * 32, (receipt.entry_for(str(tmp_path), "loss.jsonl", "loss", "main"),),
                     created="2026-01-01T00:00:00Z", commit="ecca77b")
    receipt.write(str(tmp_path), wanted)
    assert receipt.read(str(tmp_path)) == wanted
    assert wanted.files[0].sha256 == hashlib.sha256(b"abc").hexdigest()
    assert wanted.files[0].bytes == 3
    assert not list(tmp_path.glob("*.part"))


def test_draws_of_a_launched_run_are_written_and_read_back(tmp_path):
    drawn = receipt.Draws("unkeyed", {"model:noise randn": 4}, {"model:forward dropout": 2}, ("2 draws outside",))
    receipt.write(str(tmp_path), Receipt("real", "12" * 32, (), draws=drawn))
    assert receipt.read(str(tmp_path)).draws == drawn
    assert receipt.parse(edited()).draws is None


@pytest.mark.parametrize(("draws", "said"), [
    (None, "needs"), ({"mode": "keyed"}, "needs"), ({"mode": "strict", "wrapped": {}, "outside": {}}, "needs"),
    ({"mode": "keyed", "wrapped": {"a": True}, "outside": {}}, "needs"),
    ({"mode": "keyed", "wrapped": {}, "outside": {}, "reasons": "x"}, "needs"),
    ({"mode": "keyed", "wrapped": {}, "outside": {"a": 1}}, "lists what was not"),
    ({"mode": "keyed", "wrapped": {}, "outside": {}, "reasons": ["x"]}, "lists what was not"),
])
def test_draws_that_contradict_themselves_are_refused(draws, said):
    with pytest.raises(ReceiptError, match=said):
        receipt.parse(edited(draws=draws))


def test_no_receipt_is_none_and_a_folder_in_its_place_is_an_error(tmp_path):
    assert receipt.read(str(tmp_path)) is None
    (tmp_path / receipt.NAME).mkdir()
    with pytest.raises(ReceiptError):
        receipt.read(str(tmp_path))


@pytest.mark.parametrize("text, message", [
    ("", "not JSON"),
    ("[" * 100_000, "not JSON"),
    ("[]", "schema"),
    (edited(schema="migparity.receipt/2"), "schema"),
    (edited(producer="official"), "producer"),
    (edited(recipe=3), "recipe"),
    (edited(files={}), "files"),
    (edited(files=["loss.jsonl"]), r"files\[0\]"),
    (entry(sha256="0"), "64 hex"),
    (entry(bytes="3"), "bytes"),
    (entry(series=1), "series"),
])
def test_a_receipt_that_breaks_its_own_rules_is_refused_by_key(text, message):
    with pytest.raises(ReceiptError, match=message):
        receipt.parse(text)


@pytest.mark.parametrize("path", ["../loss.jsonl", "/etc/passwd", "a/../../b", "C:\\x", "\\\\host\\x", "a//b", "", ".",
                                  "a\0b", "a/./b", "..\\x"])
def test_a_path_that_leaves_the_folder_is_refused(path):
    with pytest.raises(ReceiptError, match="leaves its folder"):
        receipt.parse(entry(path=path))


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "x"]), inner,
                                                                               max_size=4), max_leaves=8))
def test_no_json_value_does_anything_but_parse_or_be_refused(value):
    text = json.dumps({**GOOD, **value} if isinstance(value, dict) else value)
    with contextlib.suppress(ReceiptError):
        assert isinstance(receipt.parse(text), Receipt)


def test_a_run_comes_before_its_reruns():
    files = (Entry("loss", "b", "0" * 64, 1, "main", 2), Entry("loss", "a", "0" * 64, 1, "main", 0),
             Entry("env", "env.json", "0" * 64, 1), Entry("loss", "c", "0" * 64, 1, "printed"))
    assert [item.path for item in Receipt("real", "", files).entries("loss", "main")] == ["a", "b"]


def test_the_recipe_hash_does_not_depend_on_key_order():
    assert receipt.recipe_hash({"a": 1, "b": 2}) == receipt.recipe_hash({"b": 2, "a": 1})
    assert receipt.recipe_hash({"a": 1}) != receipt.recipe_hash({"a": 2})
