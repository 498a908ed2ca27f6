"""L3: which differences of module outputs pass, which fail, and what was never compared."""

from __future__ import annotations

import math

import numpy as np
import pytest
from recordings import codes, draws, event, judged, normal, recording

from pytest_migparity.core.verdict import Outcome, State
from pytest_migparity.judges.event_relation import apart
from pytest_migparity.wire.record import Facts

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


def outputs(*arrays, depth=0, step=0):
    return [event("output", f"m{number}", array, step, depth) for number, array in enumerate(arrays)]


def distant(array, relative, seed=9):
    """The array with a dense difference of that relative L2 size."""
    noise = draws(seed).standard_normal(array.shape)
    return (array + noise * relative * np.linalg.norm(array) / np.linalg.norm(noise)).astype(np.float32)


def figures(finding):
    return {check.name: check.value for check in finding.checks}


def states(finding):
    return {check.name: check.state for check in finding.checks if check.limit}


@pytest.mark.parametrize("precision, eps", [("float32", 2.0**-21), ("tf32", 2.0**-10), ("float16", 2.0**-10),
                                            ("bfloat16", 2.0**-7)])
def test_the_error_is_the_distance_in_units_of_the_declared_precision(precision, eps):
    """Three units at depth 0; the sketch of 64 lanes knows a distance to 9 % (one standard deviation)."""
    array = normal(100, 80)
    finding = judged("L3", recording(outputs(array)), recording(outputs(distant(array, 3 * eps))),
                     precisions=(precision,))
    assert figures(finding)["error"] == pytest.approx(3, rel=0.3)
    assert finding.outcome is PASS
    beyond = judged("L3", recording(outputs(array)), recording(outputs(distant(array, 8 * eps))),
                    precisions=(precision,))
    assert beyond.outcome is FAIL
    assert figures(beyond)["error"] == pytest.approx(8, rel=0.3)


def test_the_coarsest_of_two_declared_precisions_decides():
    array = normal(100, 80)
    sides = recording(outputs(array)), recording(outputs(distant(array, 2.0**-7)))
    assert judged("L3", *sides, precisions=("float32", "bfloat16")).outcome is PASS
    assert judged("L3", *sides, precisions=("float32", "float32")).outcome is FAIL


def test_a_scale_shows_in_the_norm_and_not_in_the_cosine():
    """A factor of 1.06: ln 1.06 = .0583 beyond .05, where rounding in 8 bits would excuse the distance."""
    array = normal(64, 64)
    finding = judged("L3", recording(outputs(array)), recording(outputs(array * np.float32(1.06))),
                     precisions=("float8_e4m3",))
    assert figures(finding)["norm"] == pytest.approx(math.log(1.06), rel=1e-4)
    assert figures(finding)["cosine"] == pytest.approx(1, abs=2e-3)
    assert states(finding) == {"error": State.OK, "cosine": State.OK, "norm": State.VIOLATED}


def test_a_sign_flip_keeps_every_norm_and_fails():
    array = normal(64, 64)
    finding = judged("L3", recording(outputs(array)), recording(outputs(-array)), precisions=("float8_e4m3",))
    assert figures(finding)["norm"] == 0
    assert figures(finding)["cosine"] == pytest.approx(-1, abs=0.4)
    assert finding.outcome is FAIL
    (item,) = finding.notes
    assert float(item.params["scale"]) == pytest.approx(-1, abs=1e-4)


def test_the_growth_along_depth_is_the_ratio_of_one_distance_to_the_one_before():
    arrays = [normal(100, 80, seed=seed) for seed in range(6)]
    apart_by = [distant(array, 1e-5 * 2.0**depth, seed=50 + depth) for depth, array in enumerate(arrays)]
    sides = (recording([event("output", f"m{depth}", array, 0, depth) for depth, array in enumerate(found)])
             for found in (arrays, apart_by))
    assert figures(judged("L3", *sides, precisions=("bfloat16",)))["growth"] == pytest.approx(2, rel=0.1)


def test_depth_excuses_no_more_than_a_hundred_modules_do():
    """1.03^100 = 19.2: 1 % in float32 is 2e4 units, at whatever depth a recorder counted."""
    array = normal(64, 64)
    finding = judged("L3", recording(outputs(array, depth=2000)), recording(outputs(distant(array, 1e-2), depth=2000)))
    assert finding.outcome is FAIL
    assert figures(finding)["error"] == pytest.approx(1e-2 * 2**21 / 1.03**100, rel=0.3)


def test_nan_on_one_side_fails_and_on_both_sides_proves_nothing():
    array = normal(8, 8)
    broken = array.copy()
    broken[2, 3] = np.nan
    for pair in ((array, broken), (broken, array)):
        finding = judged("L3", *(recording(outputs(each)) for each in pair))
        assert finding.outcome is FAIL
        assert codes(finding) == {"record-non-finite"}
    alike = judged("L3", recording(outputs(broken, array)), recording(outputs(broken, array)))
    assert alike.outcome is INCONCLUSIVE
    assert codes(alike) == {"record-broken-alike"}


def test_a_nan_that_has_moved_fails():
    one, other = normal(8, 8), normal(8, 8)
    one[2, 3], other[2, 3], other[0, 0] = np.nan, one[0, 0], np.nan
    finding = judged("L3", recording(outputs(one)), recording(outputs(other)))
    assert finding.outcome is FAIL
    assert "record-permuted" in codes(finding)


def test_zeros_on_both_sides_prove_nothing():
    zero = np.zeros((8, 8), np.float32)
    assert codes(judged("L3", recording(outputs(zero)), recording(outputs(zero)))) == {"forward-vacuous"}
    last = judged("L3", recording(outputs(normal(8, 8), zero)), recording(outputs(normal(8, 8), zero)))
    assert last.outcome is INCONCLUSIVE
    assert codes(last) == {"forward-vacuous-output"}
    within = judged("L3", recording(outputs(zero, normal(8, 8))), recording(outputs(zero, normal(8, 8))))
    assert within.outcome is PASS
    assert (within.coverage.compared, within.coverage.of) == (1, 2)


def test_a_module_of_one_side_is_open_unless_the_manifest_says_why():
    array = normal(8, 8)
    sides = recording(outputs(array, array)), recording(outputs(array))
    finding = judged("L3", *sides)
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"record-one-sided"}
    assert finding.coverage.baseline_only == 1
    assert judged("L3", *sides, skipped={"m1": "fused into m0"}).outcome is PASS
    assert judged("L3", *sides, skipped={"*": "everything"}).outcome is INCONCLUSIVE


# ---- the same elements in another order


def test_a_swap_that_cancels_out_in_the_sketch_fails():
    """Elements 9 and 12 of 70 share a lane and a sign: only the multiset of elements shows that they changed places."""
    array = normal(70, seed=3)
    swapped = array.copy()
    swapped[[9, 12]] = array[[12, 9]]
    baseline, candidate = (event("output", "state", each) for each in (array, swapped))
    assert baseline.fine == pytest.approx(candidate.fine, rel=1e-6, abs=1e-6)
    assert apart(baseline, candidate).fault == "permuted"
    finding = judged("L3", recording([baseline]), recording([candidate]))
    assert finding.outcome is FAIL
    assert codes(finding) == {"record-permuted"}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 14, 30, 64])
def test_a_difference_in_a_small_tensor_is_measured_in_size(size):
    for seed in range(10):
        random = draws(seed)
        array = random.standard_normal(size).astype(np.float32)
        other = (array + 10 ** random.uniform(-4, -1) * random.standard_normal(size)).astype(np.float32)
        true = np.linalg.norm(other.astype(np.float64) - array) / np.linalg.norm(array.astype(np.float64))
        far = apart(event("output", "x", array), event("output", "x", other))
        assert true / 2 < far.relative < true * 2
        assert far.relative <= far.high


# ---- steps


def test_probes_that_one_side_left_out_are_open():
    """The probe that would have shown it: the candidate's recording begins after it."""
    baseline = [event("output", "m", normal(8, 8, seed=step), step) for step in range(3)]
    finding = judged("L3", recording(baseline), recording(baseline[1:]))
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"record-one-sided"}


def test_an_update_on_one_side_does_not_hide_the_probes_after_it():
    probes = [event("output", "m", normal(8, 8, seed=step), step) for step in range(3)]
    other = [*probes[:2], event("output", "m", normal(8, 8, seed=9), 2)]
    assert judged("L3", recording(probes), recording(other)).outcome is FAIL
    finding = judged("L3", recording(probes), recording([*other, event("grad", "w", normal(4))]))
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"forward-other-update"}
    assert next(iter(finding.notes)).params == {"baseline": "none", "candidate": 0}


@pytest.mark.parametrize("facts, judged_steps", [(Facts(0, loss=1.0), 2), (Facts(0, moved=0, lr=0.0), 2),
                                                 (Facts(0, moved=5), 1), (Facts(0, lr=1e-4), 1)])
def test_outputs_after_an_update_are_not_held_against_anybody(facts, judged_steps):
    steps = [event("output", "m", normal(8, 8, seed=step), step) for step in range(2)]
    finding = judged("L3", recording(steps, [facts]), recording(steps, [facts]))
    assert finding.outcome is PASS
    assert finding.coverage.compared == judged_steps


def test_the_first_module_to_part_is_the_first_over_all_ranks():
    """Rank 1 parts at its first module, rank 0 at the second, which gathers from it."""
    good = [normal(8, 8, seed=seed) for seed in range(2)]
    bad = [-array for array in good]
    baseline = tuple(recording(outputs(*good), rank=rank, world=2) for rank in range(2))
    candidate = (recording(outputs(good[0], bad[1]), rank=0, world=2), recording(outputs(*bad), rank=1, world=2))
    finding = judged("L3", baseline, candidate)
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "rank 1 step 0 output m0"


# ---- what could not be measured


def test_a_coarse_recording_of_equal_outputs_passes():
    same = event("output", "a", normal(8, 8))._replace(fine=())
    assert judged("L3", recording([same]), recording([same])).outcome is PASS


def test_the_worst_module_is_the_one_that_is_shown():
    """A cosine near 0 and one of -1."""
    first, second = normal(64, 64), normal(64, 64, seed=1)
    finding = judged("L3", recording(outputs(first, second)), recording(outputs(normal(64, 64, seed=2), -second)))
    assert figures(finding)["cosine"] == pytest.approx(-1, abs=0.4)
    assert figures(finding)["error"] == pytest.approx(2 * 2**21, rel=0.3)


def unmeasured(made):
    return made._replace(fine=(), tensor=made.tensor._replace(stats=None, narrow="", values=""))


def test_what_could_not_be_measured_is_open_and_excuses_nothing():
    array = normal(8, 8)
    baseline, candidate = ([unmeasured(event("output", "a", each)), *outputs(normal(8, 8, seed=1))]
                           for each in (array, -array))
    finding = judged("L3", recording(baseline), recording(candidate))
    assert finding.outcome is INCONCLUSIVE
    assert set(states(finding).values()) == {State.BLIND}
    worse = [candidate[0], *outputs(-normal(8, 8, seed=1))]
    assert judged("L3", recording(baseline), recording(worse)).outcome is FAIL


def test_a_coarse_recording_of_one_module_loosens_no_other():
    """Without its fine lanes `a` is known to 1e-4; `m0` is 1e-5 off, which is 20 units of float32."""
    array, other = normal(8, 8), normal(100, 80, seed=1)
    coarse = [event("output", "a", each)._replace(fine=()) for each in (array, distant(array, 1e-6))]
    sides = [recording([coarse[0], *outputs(other)]), recording([coarse[1], *outputs(distant(other, 1e-5))])]
    finding = judged("L3", *sides)
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 0 output m0"
    alone = judged("L3", recording([coarse[0], *outputs(other)]), recording([coarse[1], *outputs(other)]))
    assert alone.outcome is INCONCLUSIVE, "a tensor that differs by less than its recording resolves"
    assert states(alone)["error"] is State.BLIND
