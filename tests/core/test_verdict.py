"""A verdict travels as one canonical JSON string and comes back the same."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.core.levels import Direction
from pytest_migparity.core.limits import Limit
from pytest_migparity.core.verdict import (
    Check,
    Coverage,
    Divergence,
    Finding,
    Note,
    Outcome,
    Verdict,
    Witness,
    settle,
)

floats = st.floats(allow_nan=False)
texts = st.text(max_size=20).filter(lambda text: text not in ("NaN", "Infinity", "-Infinity"))
scalars = st.one_of(texts, st.integers(-10**9, 10**9), floats, st.booleans())
limits = st.builds(Limit, declared=floats, direction=st.sampled_from(Direction), source=texts, cap=floats,
                   because=st.none() | texts, loosens=st.none() | floats, floor=st.none() | floats, resolution=floats)
checks = st.builds(Check, name=texts, value=floats, limit=st.none() | limits, unit=texts, blocked=texts)
notes = st.builds(Note, code=texts, params=st.dictionaries(texts, scalars, max_size=3))
findings = st.builds(
    Finding, outcome=st.sampled_from(Outcome), checks=st.lists(checks, max_size=3).map(tuple),
    coverage=st.builds(Coverage, unit=texts, compared=st.integers(0), of=st.integers(0)),
    first_divergence=st.none() | st.builds(Divergence, kind=texts, at=texts | st.integers(0), baseline=scalars,
                                           candidate=scalars),
    notes=st.lists(notes, max_size=2).map(tuple), hints=st.lists(notes, max_size=2).map(tuple), mode=texts)
witnesses = st.builds(Witness, side=texts, producer=texts, name=texts, sha256=texts)
verdicts = st.builds(Verdict, level=texts, model=texts, case=texts, finding=findings,
                     evidence=st.lists(witnesses, max_size=2).map(tuple))


@given(verdicts)
def test_every_verdict_comes_back_equal_and_as_the_same_bytes(verdict):
    text = verdict.to_json()
    assert Verdict.from_json(text) == verdict
    assert Verdict.from_json(text).to_json() == text


def example(value: float) -> Verdict:
    limit = Limit(declared=1e-3, direction=Direction.MAX, source="marker", cap=1e-2)
    finding = Finding(Outcome.FAIL, (Check("mean", value, limit),), Coverage("steps", 3, 3),
                      Divergence("step", 2, 0.5, math.nan))
    return Verdict("L5", "m", "main", finding)


def test_non_finite_numbers_travel_as_strings_that_any_json_reader_takes():
    document = json.loads(example(math.nan).to_json(), parse_constant=lambda name: pytest.fail(f"bare {name}"))
    assert document["schema"] == "migparity.verdict/1"
    assert document["checks"][0]["value"] == "NaN"
    assert document["first_divergence"]["candidate"] == "NaN"
    assert math.isnan(Verdict.from_json(example(math.nan).to_json()).finding.checks[0].value)


def test_keys_are_sorted_and_nothing_is_padded():
    text = example(2e-3).to_json()
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("text", ["[]", '{"schema":"migparity.verdict/2"}', "{}"])
def test_another_schema_is_refused(text):
    with pytest.raises(ValueError, match=r"migparity\.verdict/1"):
        Verdict.from_json(text)


def ok(name="a"):
    return Check(name, 0.0, Limit(declared=1.0, direction=Direction.MAX, source="marker", cap=1.0))


def violated():
    return Check("b", 2.0, Limit(declared=1.0, direction=Direction.MAX, source="marker", cap=1.0))


def blind():
    return Check("c", 0.0, ok().limit, blocked="loss-too-short")


@pytest.mark.parametrize(("checks", "kwargs", "outcome"), [
    ((ok(),), {}, Outcome.PASS),
    ((ok(), blind()), {}, Outcome.INCONCLUSIVE),
    ((violated(), blind()), {}, Outcome.FAIL),
    ((), {}, Outcome.INCONCLUSIVE),
    ((Check("figure", 1.0),), {}, Outcome.INCONCLUSIVE),  # figures without limits prove nothing
    ((ok(),), {"unsure": True}, Outcome.INCONCLUSIVE),
    ((ok(),), {"failed": True, "unsure": True}, Outcome.FAIL),
])
def test_only_measured_checks_that_all_hold_pass(checks, kwargs, outcome):
    assert settle(checks, **kwargs) is outcome


@pytest.mark.parametrize(("model", "producers", "shown"), [
    ("lingbot", ("rehearsal", "rehearsal"), "lingbot@rehearsal"),
    ("lingbot", ("real", "rehearsal"), "lingbot@rehearsal"),
    ("lingbot", ("real", "manual"), "lingbot"),
    ("rehearsal", ("rehearsal", "rehearsal"), "rehearsal"),
])
def test_rehearsal_evidence_is_never_shown_as_the_models_own(model, producers, shown):
    evidence = tuple(Witness("baseline", producer, "loss.jsonl", "0" * 64) for producer in producers)
    assert Verdict("L5", model, "main", example(0.0).finding, evidence).display == shown
