"""Layout documents: what they say, and every way in which one can contradict itself."""

import json

import pytest

from pytest_migparity.wire.layout import MAX_TEXT, LayoutError, Operation, from_rules, layout_hash, parse, pattern


def document(*rules):
    return json.dumps({"schema": "migparity.layout/1", "rules": list(rules)})


def test_a_rule_is_read_with_everything_it_says():
    (rule,) = parse(document({"from": ["l.{i}.q", "l.{i}.k", "l.{i}.v"], "to": "d.{i}.qkv", "otherwise": True,
                              "ops": [{"op": "merge_qkv", "heads": 32, "groups": 8}]})).rules
    assert rule.sources == ("l.{i}.q", "l.{i}.k", "l.{i}.v")
    assert rule.targets == ("d.{i}.qkv",)
    assert rule.operations == (Operation("merge_qkv", heads=32, groups=8),)
    assert rule.otherwise
    assert not rule.tie


def test_a_placeholder_holds_no_dot_unless_it_says_so():
    one, any_ = pattern("l.{i}.w").expression, pattern("l.{i*}.w").expression
    assert one.fullmatch("l.10.w")["i"] == "10"
    assert one.fullmatch("l.1.0.w") is None
    assert any_.fullmatch("l.1.0.w")["i"] == "1.0"
    assert one.fullmatch("lx10.w") is None  # the dot is a dot


def test_the_hash_is_of_what_is_said_and_not_of_how():
    spread = parse('{"rules": [\n {"to": ["b"],\n "from": ["a"], "ops": []}], "schema": "migparity.layout/1"}')
    assert layout_hash(spread) == layout_hash(from_rules([{"from": "a", "to": "b"}]))
    others = [{"from": "a", "to": "c"}, {"from": "a", "to": "b", "tie": True},
              {"from": "a", "to": "b", "ops": [{"op": "transpose", "axes": [1, 0]}]},
              {"from": "a", "to": "b", "ops": [{"op": "transpose", "axes": [0, 1]}]}]
    assert len({layout_hash(spread), *(layout_hash(from_rules([rule])) for rule in others)}) == 5
    assert len(layout_hash(spread)) == 16


@pytest.mark.parametrize(("rule", "said"), [
    ({"to": "b"}, "rule 1 is not a table"),
    ("a", "rule 1 is not a table"),
    ({"from": "a", "to": "b", "axis": 1}, "rule 1 is not a table"),
    ({"from": "a"}, "needs one of"),
    ({"from": "a", "to": "b", "drop": "c"}, "needs one of"),
    ({"from": [], "to": "b"}, "not a name pattern"),
    ({"from": [1], "to": "b"}, "not a name pattern"),
    ({"from": "a" * 1001, "to": "b"}, "not a name pattern"),
    ({"from": "a", "to": "b", "tie": 1}, "not true or false"),
    ({"from": "a", "to": "b", "tie": True, "otherwise": True}, "both tie and otherwise"),
    ({"from": ["a", "b"], "drop": "unused"}, "takes one pattern"),
    ({"from": "a", "drop": ""}, "not a name pattern"),
    ({"from": "a", "to": "b", "ops": "rename"}, "not a list"),
    ({"from": "a", "to": "b", "ops": [{"op": "exec"}]}, "expected \"op\" to be one of"),
    ({"from": "a", "to": "b", "ops": [{"op": "transpose"}]}, "transpose takes axes, found nothing"),
    ({"from": "a", "to": "b", "ops": [{"op": "transpose", "axes": [0, True]}]}, "expected an integer from 0"),
    ({"from": "a", "to": "b", "ops": [{"op": "transpose", "axes": [-1]}]}, "expected an integer from 0"),
    ({"from": "a", "to": "b", "ops": [{"op": "split", "sizes": [0]}]}, "expected an integer from 1"),
    ({"from": "a", "to": "b", "ops": [{"op": "split", "heads": 2}]}, "split takes axis, sizes"),
    ({"from": "a", "to": "b", "ops": [{"op": "rope", "heads": 2, "to": "thirds"}]}, "expected halves or pairs"),
    ({"from": "a.{e}", "to": "b", "ops": [{"op": "stack", "over": "e}"}]}, "expected a placeholder"),
    ({"from": "a.{e}", "to": "b"}, "placeholders of \"from\" are ['e'], those of \"to\" []"),
    ({"from": "a", "to": "b.{e}"}, "placeholders of \"from\" are []"),
    ({"from": "a", "to": "b", "ops": [{"op": "stack", "over": "e"}]}, "placeholders of \"from\" are []"),
    ({"from": "a.{e}", "to": "b.{e}", "ops": [{"op": "stack", "over": "e"}]}, "stacked or unstacked"),
    ({"from": "a.{e}.{f}", "to": "b", "ops": [{"op": "stack", "over": "e"}, {"op": "stack", "over": "f"}]}, "twice"),
    ({"from": ["a.{i}", "b"], "to": "c"}, "do not have the same placeholders"),
    ({"from": "a", "same_as": "b.{i}"}, "placeholders"),
    ({"from": "{a}{b}", "to": "b"}, "without a dot between them"),
    ({"from": "-".join(f"{{p{at}}}" for at in range(8)), "to": "b"}, "without a dot between them"),
    ({"from": "{a}.{a}", "to": "{a}"}, "twice"),
    ({"from": "{a*}.{b*}", "to": "{a}.{b}"}, "two placeholders that may hold dots"),
    ({"from": "a.{0}", "to": "b"}, "belongs to no placeholder"),
    ({"from": "a.{i.__class__}", "to": "b"}, "belongs to no placeholder"),
    ({"from": "a.{i!r}", "to": "b"}, "belongs to no placeholder"),
])
def test_a_rule_that_makes_no_sense_is_refused(rule, said):
    with pytest.raises(LayoutError) as caught:
        parse(document(rule))
    assert said in str(caught.value)


@pytest.mark.parametrize("text", [
    "", "[]", "{", '{"schema": "migparity.layout/1"}', '{"schema": "migparity.layout/2", "rules": [{"from": "a"}]}',
    document(), '{"schema": "migparity.layout/1", "rules": {"from": "a", "to": "b"}}', "[" * 100_000,
    " " * (MAX_TEXT + 1), json.dumps({"schema": "migparity.layout/1", "rules": [{"from": "a", "to": "b"}], "x": 1}),
    document(*[{"from": "a", "to": "b"}] * 1001),
])
def test_a_document_that_is_no_map_is_refused(text):
    with pytest.raises(LayoutError):
        parse(text)


def test_patterns_and_names_made_to_be_slow_are_not():
    """What is accepted is matched in one pass, or in one for each end of the part that may hold dots."""
    slow = pattern("{a}-.{b}-.{rest*}.{c}-.{d}-x").expression
    for name in ("-" * 2000, "-." * 1000, "a-." * 700 + "y", "." * 2000):
        assert slow.fullmatch(name) is None
    assert slow.fullmatch("1-.2-.r.s.3-.4-x").groupdict() == {"a": "1", "b": "2", "rest": "r.s", "c": "3", "d": "4"}
