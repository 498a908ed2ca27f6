"""The text of a recording: through and back, short where lanes repeat, and refused where it contradicts itself."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pytest_migparity.host.digest import fine_lanes, measured, summary
from pytest_migparity.host.tensors import of_array
from pytest_migparity.wire.packed import pack, unpack
from pytest_migparity.wire.record import SCHEMA, Event, Facts, RecordError, Recording, from_text, to_text


def event(stage, name, seed=0, step=0, **others):
    whole = measured(of_array(name, np.random.default_rng(seed).standard_normal(100).astype(np.float32)), level=1,
                     algorithm="sha256")
    return Event(step, stage, name, summary(whole, 1), fine=fine_lanes(whole), **others)


MADE = Recording(0, 1, "sha256", (event("output", "z", 1, depth=3), event("grad", "a", 2, valid=0.25),
                                  event("grad-reduced", "a", 2), event("grad", "b", 3), event("grad", "a", 4, step=1)),
                 (Facts(0, loss=float("inf"), moved=3, parameters=4, skipped=False),), (("noise", "keyed"),),
                 (("x", "why"),))


def head_of(text):
    line, _, rest = unpack(SCHEMA, text, RecordError).partition(b"\n")
    return json.loads(line), rest


def test_a_recording_comes_back_as_it_was():
    assert from_text(to_text(MADE)) == MADE


def test_lanes_that_repeat_are_carried_once():
    head, _ = head_of(to_text(MADE))
    assert (head["fine"], head["same"]) == ([0, 1, 3, 4], [[2, 1]])


def test_a_recording_without_shared_lanes_is_read_too():
    """Files of the first version carry every event's lanes and no `same`."""
    made = MADE._replace(events=MADE.events[:2])
    head, rest = head_of(to_text(made))
    assert head.pop("same") == []
    assert from_text(pack(SCHEMA, json.dumps(head).encode() + b"\n" + rest)) == made


@pytest.mark.parametrize("same", [[[2, 9]], [[99, 1]], [[2]], "no", [[2, 1], [2, 0, 1]]])
def test_lanes_that_point_nowhere_are_refused(same):
    head, rest = head_of(to_text(MADE))
    head["same"] = same
    with pytest.raises(RecordError, match="contradicts itself"):
        from_text(pack(SCHEMA, json.dumps(head).encode() + b"\n" + rest))


@pytest.mark.parametrize(("change", "said"), [
    ({"events": (MADE.events[0],) * 2}, "recorded twice"),
    ({"rank": 1}, "rank 1 of 1"),
    ({"events": (MADE.events[0]._replace(stage="outptu"),)}, "no such stage"),
    ({"events": (MADE.events[0]._replace(valid=0.0),)}, "valid share"),
    ({"events": (MADE.events[0]._replace(name="a\nb"),)}, "no name of an event"),
    ({"events": (MADE.events[0]._replace(fine=(1.0,)),)}, "fine lanes"),
    ({"facts": (Facts(1), Facts(0))}, "each once and in order"),
])
def test_a_recording_that_breaks_its_rules_is_not_written(change, said):
    with pytest.raises(RecordError, match=said):
        to_text(MADE._replace(**change))
