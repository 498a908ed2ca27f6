"""No tampering with a good pair of recordings makes L2, L3 or L4 pass over a difference that is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import codes, event, evidence, judged, normal, recording

from pytest_migparity.core.evidence import Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome
from pytest_migparity.judges.forward import judge_forward
from pytest_migparity.wire.record import Facts, Recording

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
OUTPUTS = {f"layers.{k}": normal(16, 24, seed=k) for k in range(4)}


def made(outputs=OUTPUTS, **changes):
    """A recording of one step with everything in it."""
    ids = np.arange(64).reshape(4, 16)
    events = [event("input", "ids", ids), event("input", "state", normal(4, 14, seed=20)),
              event("draw", "noise", normal(4, 30, seed=21)),
              *(event("output", name, array, depth=depth) for depth, (name, array) in enumerate(outputs.items())),
              event("grad", "w", changes.get("grad", normal(24, 24, seed=30))),
              event("update", "w", changes.get("update", 1e-3 * normal(24, 24, seed=31)))]
    facts = {"loss": 1.25, "clip_factor": 1.0, "moved": 576, "parameters": 576, "skipped": False}
    return recording(events, [Facts(0, **{**facts, **changes.get("facts", {})})])


GOOD = made()
LEVELS_JUDGED = ("L2", "L3", "L4")


def rounding(array, seed=1):
    return (array * (1 + 1e-7 * np.random.default_rng(seed).uniform(-1, 1, array.shape))).astype(np.float32)


def test_the_pair_that_is_tampered_with_passes():
    other = made({name: rounding(array) for name, array in OUTPUTS.items()})
    assert {level: judged(level, GOOD, other).outcome for level in LEVELS_JUDGED} == dict.fromkeys(LEVELS_JUDGED, PASS)


SPOIL = {
    "scaled": lambda x, random: x * np.float32(1.01),
    "negated": lambda x, random: -x,
    "rolled": lambda x, random: np.roll(x, 1, axis=-1),
    "permuted": lambda x, random: x[random.permutation(len(x))],
    "shifted": lambda x, random: x + np.float32(0.01),
    "one element": lambda x, random: np.where(np.arange(x.size).reshape(x.shape) == 5, x + 1, x),
    "one row zero": lambda x, random: np.where(np.arange(len(x))[:, None] == 3, 0, x),
    "noise": lambda x, random: x + np.float32(1e-3) * random.standard_normal(x.shape),
    "NaN": lambda x, random: np.where(np.arange(x.size).reshape(x.shape) == 5, np.nan, x),
    "Inf": lambda x, random: np.where(np.arange(x.size).reshape(x.shape) == 5, np.inf, x),
    "zero": lambda x, random: np.zeros_like(x),
    "transposed": lambda x, random: np.ascontiguousarray(x.T),
    "reshaped": lambda x, random: x.reshape(-1),
    "cut": lambda x, random: x[:-1],
    "random": lambda x, random: random.standard_normal(x.shape),
}


@pytest.mark.parametrize("spoil", SPOIL)
@pytest.mark.parametrize("name", OUTPUTS)
def test_a_spoiled_output_fails_l3_at_its_own_module(spoil, name):
    array = SPOIL[spoil](OUTPUTS[name], np.random.default_rng(77)).astype(np.float32)
    for baseline, candidate in ((GOOD, made({**OUTPUTS, name: array})), (made({**OUTPUTS, name: array}), GOOD)):
        finding = judged("L3", baseline, candidate)
        assert finding.outcome is FAIL
        assert finding.first_divergence.at == f"step 0 output {name}"


FINE = ("scaled", "one element", "noise")  # of an update: within what Adam makes of rounding


@pytest.mark.parametrize("which, spoil", [("grad", spoil) for spoil in SPOIL] +
                         [("update", spoil) for spoil in SPOIL if spoil not in FINE])
def test_a_spoiled_gradient_or_update_fails_l4(spoil, which):
    good = normal(24, 24, seed=30) if which == "grad" else 1e-3 * normal(24, 24, seed=31)
    array = SPOIL[spoil](good, np.random.default_rng(3)).astype(np.float32)
    finding = judged("L4", GOOD, made(**{which: array}))
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == f"step 0 {which} w"


@pytest.mark.parametrize("changes", [{"loss": 1.26}, {"loss": float("nan")}, {"loss": 0.0}, {"clip_factor": 0.9},
                                     {"moved": 500}, {"skipped": True}])
def test_a_fact_that_differs_fails_l4(changes):
    assert judged("L4", GOOD, made(facts=changes)).outcome is FAIL
    assert judged("L4", made(facts=changes), GOOD).outcome is FAIL


def negated(one):
    """The event as if nothing had been measured of it, and its content another."""
    return one._replace(fine=(), tensor=one.tensor._replace(stats=None, narrow="", values="", hash="0" * 16))


TAMPER = {
    "an event left out": lambda r, k: r._replace(events=r.events[:k] + r.events[k + 1:]),
    "an event renamed": lambda r, k: r._replace(events=(*r.events[:k], r.events[k]._replace(name="x"), *r.events[k + 1:])),
    "another step": lambda r, k: r._replace(events=tuple(e._replace(step=e.step + 1) for e in r.events)),
    "another hash": lambda r, k: r._replace(algorithm="xxh3_128"),
    "another world": lambda r, k: r._replace(world_size=2),
    "another share": lambda r, k: r._replace(events=(*r.events[:k], r.events[k]._replace(valid=0.5), *r.events[k + 1:])),
    "something unrecorded": lambda r, k: r._replace(unrecorded=(("x", "why"),)),
    "nothing": lambda r, k: r._replace(events=()),
    "no numbers": lambda r, k: r._replace(facts=()),
    "numbers of another step": lambda r, k: r._replace(facts=tuple(f._replace(step=f.step + 7) for f in r.facts)),
    "half the weights": lambda r, k: r._replace(facts=tuple(f._replace(moved=288, parameters=288) for f in r.facts)),
    "an event coarsened and changed": lambda r, k: r._replace(events=(*r.events[:k], negated(r.events[k]),
                                                                      *r.events[k + 1:])),
    "other instruments": lambda r, k: r._replace(meta=(("instruments", "dump"),)),
}


@pytest.mark.parametrize("tamper", TAMPER)
@settings(max_examples=15, deadline=None)
@given(place=st.integers(0, len(GOOD.events) - 1), swap=st.booleans())
def test_what_was_left_out_or_relabelled_never_passes_everywhere(tamper, place, swap):
    other: Recording = TAMPER[tamper](GOOD, place)
    pair = (other, GOOD) if swap else (GOOD, other)
    outcomes = {level: judged(level, *pair).outcome for level in LEVELS_JUDGED}
    assert set(outcomes.values()) - {PASS}, outcomes


@settings(max_examples=60, deadline=None)
@given(done=st.lists(st.tuples(st.sampled_from(sorted(TAMPER)), st.integers(0, 100)), min_size=1, max_size=4),
       swap=st.booleans())
def test_no_number_of_tamperings_makes_a_pass(done, swap):
    other: Recording = GOOD
    for tamper, place in done:
        other = TAMPER[tamper](other, place % max(len(other.events), 1)) if other.events else other
    outcomes = {level: judged(level, *((other, GOOD) if swap else (GOOD, other))).outcome for level in LEVELS_JUDGED}
    assert set(outcomes.values()) - {PASS}, outcomes


@settings(max_examples=150, deadline=None)
@given(size=st.integers(1, 200), places=st.integers(1, 200), amount=st.floats(-3, 1), seed=st.integers(0, 2**32 - 1),
       shared=st.booleans())
def test_a_difference_of_any_reach_is_never_called_rounding(size, places, amount, seed, shared):
    """A change of 1e-3 and more in one element or all of them; of float32, where 2e-6 of the norm is rounding."""
    random = np.random.default_rng(seed)
    array = random.standard_normal(size).astype(np.float32)
    change = np.zeros(size)
    where = random.choice(size, min(places, size), replace=False)
    change[where] = 10**amount * (1 if shared else random.choice([-1, 1], where.size) * random.uniform(0.5, 1, where.size))
    sides = (recording([event("output", "x", each)]) for each in (array, (array + change).astype(np.float32)))
    assert judged("L3", *sides).outcome is FAIL


def test_facts_that_one_side_does_not_state_are_open():
    silent = GOOD._replace(facts=(Facts(0, loss=1.25),))
    finding = judged("L4", GOOD, silent)
    assert finding.outcome is INCONCLUSIVE
    assert "step-one-sided" in codes(finding)
    assert judged("L4", GOOD, GOOD._replace(facts=())).outcome is INCONCLUSIVE


def test_one_file_for_both_sides_is_open_unless_rehearsed():
    sides = [evidence(side, GOOD) for side in ("baseline", "candidate")]
    same = [replace(side, runs=(Recorded(side.runs[0].table, replace(side.runs[0].witness, sha256="ab" * 32)),))
            for side in sides]
    finding = judge_forward(*same, limits=default_limits(LEVELS["L3"]), floors=Floors(), policy=Policy())
    assert finding.outcome is INCONCLUSIVE
    assert "record-same-file" in codes(finding)


@pytest.mark.parametrize("size", [1, 2, 5, 10])
def test_small_tensors_are_measured_as_they_are(size):
    """Up to 64 elements mostly lie in lanes of their own; of up to 10 only two share one, and the first is alone."""
    array = normal(size, seed=2) + 3
    other = array.copy()
    other[0] *= 1.02
    finding = judged("L3", recording([event("output", "x", array)]), recording([event("output", "x", other)]))
    assert finding.outcome is FAIL
    true = 0.02 * abs(array[0]) / np.linalg.norm(array)
    assert float(finding.notes[0].params["relative"]) == pytest.approx(true, rel=1e-3)


def test_two_ranks_where_one_is_missing_are_open():
    ranks = tuple(GOOD._replace(rank=rank, world_size=2) for rank in range(2))
    assert judged("L3", ranks, ranks).outcome is PASS
    finding = judged("L3", ranks, ranks[:1])
    assert finding.outcome is INCONCLUSIVE
    assert "record-ranks" in codes(finding)
    assert judged("L3", ranks[:1], ranks[:1]).outcome is INCONCLUSIVE


@pytest.mark.parametrize("level", LEVELS_JUDGED)
def test_no_recording_at_all_is_open(level):
    assert judged(level, (), ()).outcome is INCONCLUSIVE
    assert judged(level, GOOD, ()).outcome is INCONCLUSIVE


def test_a_fault_on_the_second_rank_is_found_there():
    ranks = tuple(GOOD._replace(rank=rank, world_size=2) for rank in range(2))
    bad = (ranks[0], made({**OUTPUTS, "layers.2": -OUTPUTS["layers.2"]})._replace(rank=1, world_size=2))
    finding = judged("L3", ranks, bad)
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "rank 1 step 0 output layers.2"


def test_bfloat16_is_judged_by_its_numbers_where_it_is_declared():
    def short(array, seed):
        return (array * (1 + 2.0**-9 * np.random.default_rng(seed).uniform(-1, 1, array.shape))).astype(np.float32)

    other = made({name: short(array, 3) for name, array in OUTPUTS.items()})
    assert judged("L3", GOOD, other, precisions=("float32", "bfloat16")).outcome is PASS
    undeclared = judged("L3", GOOD, other)
    assert undeclared.outcome is FAIL
    (error, *_) = undeclared.checks
    worst = max(np.linalg.norm(short(array, 3) - array) / np.linalg.norm(array) / 1.03**depth
                for depth, array in enumerate(OUTPUTS.values()))
    assert error.value == pytest.approx(worst / 2.0**-21, rel=0.4)
