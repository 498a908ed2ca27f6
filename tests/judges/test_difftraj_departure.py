"""The departure by hand calculation: what it weighs, what a family and floors do to it, and where it leaves doubt.

One pair on paper, 20 steps. ln baseline alternates between -.05 and +.05 and d between 0 and c = 1e-3, in phase. The 19
first differences of either alternate in sign, ten against nine: their standard deviation is sqrt(360)/19 of their size.
(A slope adds nothing to it; it and a curvature of 1e-8 only keep equal losses and equal differences apart.)

    late      mean of 0, c, 0, c                  = c / 2  = 5e-4
    jump      c sqrt(360) / 19
    movement  0.1 sqrt(360) / 19,  noise = c / .1 = 1e-2
    lg(late / jump) = lg(19 / (2 sqrt(360)))      = -0.300428

against late 5e-6 and noise 1e-4: lg 100 + 5/2 (-0.300428) + 1/2 lg 100 = 3 - 0.751069 = 2.248931 decades.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.core.evidence import FAMILIES, Evidence, Policy, Recorded, Trajectory
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Declared, Floor, Floors, default_limits
from pytest_migparity.core.verdict import Outcome, State, Witness
from pytest_migparity.judges.difftraj import floors_of_pairs, judge_loss
from pytest_migparity.judges.loss_departure import SHIPPED, Reference, Scale

LIMITS = default_limits(LEVELS["L5"])
STEPS = np.arange(1, 21)
PAPER = np.exp(0.05 * (-1.0) ** STEPS - 1e-3 * STEPS + 1e-8 * STEPS**2)
TURNS = (STEPS % 2 == 0).astype(float)
DECADES = 2.248931
ONE = {"dense": Reference(5e-6, 1e-4)}
TWO = {**ONE, "moe": Reference(5e-5, 1e-4)}  # ten times the floor: one decade less


def table(loss, quantum=0.0, **columns):
    columns = {"loss": loss, **{name: np.full(loss.shape, float(value)) for name, value in columns.items()}}
    return Trajectory(np.arange(1, loss.size + 1), columns, {"loss": np.full(loss.shape, quantum)})


def judge(ours, theirs, scale=SHIPPED, floors=None, limits=LIMITS, **policy):
    sides = [Evidence(side, "loss", (Recorded(each, Witness(side, "real", side, side)),))
             for side, each in (("baseline", ours), ("candidate", theirs))]
    return judge_loss(*sides, limits=limits, floors=floors or Floors(), policy=Policy(**policy), scale=scale)


def on_paper(scale, c=1e-3, ours=None, theirs=None, **given):
    return judge(table(PAPER, **(ours or {})), table(PAPER * np.exp(c * TURNS), **(theirs or {})), scale, **given)


def departure(finding):
    return next(each for each in finding.checks if each.name == "departure")


def codes(finding):
    return [item.code for item in finding.notes]


def violated(finding):
    return {each.name for each in finding.checks if each.state is State.VIOLATED}


# --- the figure, its limits, the doubt between them


def test_the_pair_on_paper_departs_by_2_249_decades():
    finding = on_paper(Scale(ONE, 2.3, 2.4), family="dense")
    assert departure(finding).value == pytest.approx(DECADES, abs=1e-6)
    assert departure(finding).limit.effective == 2.4
    assert finding.outcome is Outcome.PASS


@pytest.mark.parametrize(("clear", "beyond", "outcome"), [
    (2.25, 2.4, Outcome.PASS), (2.24, 2.4, Outcome.INCONCLUSIVE), (2.0, 2.25, Outcome.INCONCLUSIVE),
    (2.0, 2.24, Outcome.FAIL),
])
def test_up_to_clear_is_good_beyond_is_bad_and_between_nobody_knows(clear, beyond, outcome):
    finding = on_paper(Scale(ONE, clear, beyond), family="dense")
    assert finding.outcome is outcome
    assert (departure(finding).blocked == "loss-check-doubt") == (outcome is Outcome.INCONCLUSIVE)
    assert ("loss-departure-doubt" in codes(finding)) == (outcome is Outcome.INCONCLUSIVE)
    assert violated(finding) == ({"departure"} if outcome is Outcome.FAIL else set())


def test_a_declared_limit_stands_for_both_where_it_is_the_stricter():
    """1.5: beyond it fails at once, however far away `clear` is."""
    strict = LIMITS | {"departure": Declared(1.5, "marker")}
    assert on_paper(Scale(ONE, 2.3, 2.4), limits=strict, family="dense").outcome is Outcome.FAIL
    assert on_paper(Scale(ONE, 2.3, 2.4), limits=strict | {"departure": Declared(2.26, "marker")},
                    family="dense").outcome is Outcome.PASS


def test_ten_times_the_difference_is_one_and_a_half_decades_more():
    """late and jump grow alike; lg late counts once, lg of jump / movement half."""
    assert departure(on_paper(Scale(ONE, 9, 9), c=1e-2, family="dense")).value == pytest.approx(DECADES + 1.5, abs=1e-6)


def test_a_steady_difference_is_worse_than_a_jumping_one_of_its_size():
    """Constant 5e-4: late as before, jump nothing (5e-7 is called equal), noise at its lower end of 1e-3.

    2 + 5/2 lg(5e-4 / 5e-7) + 1/2 lg(1e-3 / 1e-4) = 2 + 7.5 + .5 = 10.
    """
    finding = judge(table(PAPER), table(PAPER * np.exp(5e-4)), Scale(ONE, 2, 2.5), family="dense")
    assert departure(finding).value == pytest.approx(10.0, abs=1e-6)
    assert finding.outcome is Outcome.FAIL
    assert violated(finding) == {"departure"}


def test_equal_curves_have_the_least_departure():
    """late = jump = 5e-7, noise 1e-3: lg(1e-1) + 0 + 1/2 lg 10 = -.5."""
    finding = on_paper(Scale(ONE, 2, 2.5), c=0.0, family="dense", ours={"step_time": 1.0}, theirs={"step_time": 2.0})
    assert departure(finding).value == pytest.approx(-0.5, abs=1e-6)


def test_an_allowance_is_taken_off():
    allowing = {"dense": Reference(5e-6, 1e-4, allowance=0.75)}
    assert departure(on_paper(Scale(allowing, 2, 2.5), family="dense")).value == pytest.approx(DECADES - 0.75, abs=1e-6)


@pytest.mark.parametrize("n", [3, 9])
def test_fewer_than_ten_points_have_no_departure(n):
    finding = judge(table(PAPER[:n]), table(PAPER[:n] * np.exp(1e-7 * TURNS[:n])))
    assert departure(finding).blocked == "loss-check-short"
    assert finding.outcome is Outcome.INCONCLUSIVE


HUNDRED = np.arange(1, 101)
HUNDRED_LOSS = 2.0 * np.exp(-HUNDRED / 40) + 0.5 + 0.05 * np.sin(2.3 * HUNDRED)


def outcomes(d):
    """By family, the outcome of a pair that is d apart."""
    return {family: judge(table(HUNDRED_LOSS), table(HUNDRED_LOSS * np.exp(d)), family=family).outcome
            for family in (*FAMILIES, None)}


def test_a_steady_offset_of_half_a_thousandth_is_beyond_every_family():
    assert set(outcomes(np.full(100, 5e-4)).values()) == {Outcome.FAIL}


def test_one_odd_row_more_never_turns_a_steady_offset_green():
    """5e-4 at every step fails; the same and one row 1.8e-2 apart (within every single limit) differs more, not less."""
    assert Outcome.PASS not in outcomes(5e-4 + 1.8e-2 * (HUNDRED == 50)).values()


def test_a_row_of_twice_the_loss_is_no_pass():
    assert Outcome.PASS not in outcomes(1e-7 * np.sin(7.7 * HUNDRED) + np.log(2.0) * (HUNDRED == 50)).values()


# --- the family


@pytest.mark.parametrize(("clear", "beyond", "outcomes"), [
    (1.3, 2.0, {"dense": Outcome.FAIL, "moe": Outcome.PASS, None: Outcome.INCONCLUSIVE}),
    (1.0, 1.2, {"dense": Outcome.FAIL, "moe": Outcome.FAIL, None: Outcome.FAIL}),
    (2.3, 2.4, {"dense": Outcome.PASS, "moe": Outcome.PASS, None: Outcome.PASS}),
    (1.0, 2.0, {"dense": Outcome.FAIL, "moe": Outcome.INCONCLUSIVE, None: Outcome.INCONCLUSIVE}),
])
def test_without_a_family_every_family_must_agree(clear, beyond, outcomes):
    """1.249 decades from a mixture of experts' good pairs, 2.249 from a dense model's."""
    scale = Scale(TWO, clear, beyond)
    assert {family: on_paper(scale, family=family).outcome for family in outcomes} == outcomes
    assert on_paper(scale, family="a family that nobody measured").outcome is outcomes[None]


def test_an_unknown_family_is_what_the_note_says():
    said = next(item for item in on_paper(Scale(TWO, 1.3, 2.0)).notes if item.code == "loss-departure-family")
    assert (said.params["low"], said.params["high"]) == (pytest.approx(DECADES - 1), pytest.approx(DECADES))
    assert (said.params["clear"], said.params["beyond"]) == (1.3, 2.0)


@given(st.integers(0, 2**32 - 1), st.floats(-7, -2), st.floats(-7, -2))
def test_dropping_the_family_never_decides_what_a_family_would_decide_otherwise(seed, offset, noise):
    found = outcomes(10.0**offset * (1 - np.exp(-HUNDRED / 20))
                     + 10.0**noise * np.random.default_rng(seed).normal(size=100))
    nobody = found.pop(None)
    assert nobody is Outcome.INCONCLUSIVE or set(found.values()) == {nobody}


def test_the_published_limit_is_the_scales():
    """The marker prints it; the judge must not hold another one."""
    assert LEVELS["L5"].checks["departure"].default == SHIPPED.beyond
    assert SHIPPED.clear < SHIPPED.beyond <= LEVELS["L5"].checks["departure"].cap
    assert set(SHIPPED.references) == set(FAMILIES)


# --- floors


def test_floors_are_geometric_means_over_pairs():
    """c = 1e-2 and 1e-4: late 5e-3 and 5e-5, noise .1 and 1e-3; their geometric means are 5e-4 and 1e-2."""
    reruns = [(table(PAPER), table(PAPER * np.exp(c * TURNS))) for c in (1e-2, 1e-4)]
    floors = floors_of_pairs(reruns)
    assert floors.of("late") == pytest.approx(5e-4)
    assert floors.of("noise") == pytest.approx(1e-2)
    assert floors.of("final") == pytest.approx(1e-2)  # of single statistics the largest
    assert (floors.by_check["late"].pairs, floors.by_check["final"].pairs) == (2, 2)


def test_floors_are_pooled_with_two_reruns_worth_of_the_reference():
    """Two pairs at 5e-4 and 1e-2, references 5e-6 and 1e-4: in the middle, 5e-5 and 1e-3: 1.5 decades less.

    (2 lg 5e-4 + 2 lg 5e-6) / 4 = lg 5e-5. One pair weighs a third: lg late + 2/3, lg noise + 2/3, half of it: 1 in all.
    """
    scale = Scale(ONE, 9, 9)
    for pairs, less in ((1, 1.0), (2, 1.5), (6, 2.25)):
        floors = Floors({"late": Floor(5e-4, "reruns", 2, pairs), "noise": Floor(1e-2, "reruns", 2, pairs)})
        assert departure(on_paper(scale, floors=floors, family="dense")).value == pytest.approx(DECADES - less, abs=1e-6)


def test_a_rerun_that_repeats_every_bit_tightens_no_departure():
    """That a device repeats itself does not say how far another one may be: only the pair that differs counts."""
    assert "late" not in floors_of_pairs([(table(PAPER), table(PAPER))] * 2).by_check
    floors = floors_of_pairs([(table(PAPER), table(PAPER)), (table(PAPER), table(PAPER * np.exp(1e-3 * TURNS)))])
    assert (floors.by_check["late"].value, floors.by_check["late"].pairs) == (pytest.approx(5e-4), 1)
    assert floors.by_check["step0"].pairs == 2


def test_reruns_far_apart_excuse_no_more_than_a_thousandth():
    """Two pairs at .1 count as 1e-3 each: (2 lg 1e-3 + 2 lg 5e-6) / 4, 1.150515 decades above the reference."""
    floors = Floors({"late": Floor(0.1, "reruns", 2, 2)})
    value = departure(on_paper(Scale(ONE, 9, 9), floors=floors, family="dense")).value
    assert value == pytest.approx(DECADES - np.log10(1e-3 / 5e-6) / 2, abs=1e-6)


def test_a_broken_rerun_is_no_floor():
    broken = PAPER.copy()
    broken[7] = np.nan
    assert floors_of_pairs([(table(PAPER), table(broken))]) == Floors()


LENIENT = Scale({"dense": Reference(1.0, 1.0)}, 2.0, 2.5)  # nothing departs: what fails, fails by its own check


@pytest.mark.parametrize(("floor", "pairs", "limit"), [
    (None, 0, 1e-3), (1e-6, 1, 1e-3), (1e-6, 2, 5e-5), (0.0, 3, 5e-5), (3e-5, 2, 3e-4), (5e-4, 2, 1e-3),
])
@pytest.mark.parametrize("first", [4e-5, 2e-4, 9e-4, 1.1e-3])
def test_two_floors_or_more_tighten_the_first_step(first, floor, pairs, limit):
    """max(5e-5, 10 x floor), never beyond 1e-3."""
    loss = PAPER * np.exp(1e-9 * (-1.0) ** STEPS)
    loss[0] *= np.exp(first)
    floors = Floors({} if floor is None else {"step0": Floor(floor, "reruns", pairs + 1, pairs)})
    finding = judge(table(PAPER), table(loss), LENIENT, floors, family="dense")
    assert finding.outcome is (Outcome.FAIL if first > limit else Outcome.PASS)
    assert violated(finding) == ({"step0"} if first > limit else set()) | ({"spike"} if first > 1e-3 else set())


# --- zeros in the gradient


@pytest.mark.parametrize(("ours", "theirs", "more"), [
    (100, 141, 0.25), (141, 100, 0.25), (100, 139, 0.0), (100, 100, 0.0), (None, 141, 0.0), (100, None, 0.0),
    (np.nan, 141, 0.0), (0, 0, 0.0),
])
def test_num_zeros_that_moved_by_more_than_40_percent_add_a_quarter(ours, theirs, more):
    columns = [{} if value is None else {"num_zeros": value} for value in (ours, theirs)]
    finding = on_paper(Scale(ONE, 9, 9), ours=columns[0], theirs=columns[1], family="dense")
    assert departure(finding).value == pytest.approx(DECADES + more, abs=1e-6)


# --- printed digits


def falling(last, decimals, n=100):
    """From 2.5 to `last`, as printed."""
    step = np.arange(1, n + 1)
    return table(np.round(2.5 * (last / 2.5) ** (step / n) * (1 + 0.02 * np.sin(2.3 * step)), decimals),
                 quantum=10.0**-decimals)


@pytest.mark.parametrize("family", [*FAMILIES, None])
@pytest.mark.parametrize(("last", "decimals"), [(0.05, 3), (0.005, 4), (0.5, 2)])
def test_digits_that_leave_no_room_are_no_pass(last, decimals, family):
    """Three decimals at a loss of .05 are 2 % of it; the first step, at 2.5, would be resolved."""
    finding = judge(falling(last, decimals), falling(last, decimals), family=family)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert departure(finding).state is State.BLIND


def test_a_blind_departure_says_why():
    assert "departure" in [name for item in judge(falling(0.5, 2), falling(0.5, 2), family="dense").notes
                           if item.code == "loss-digits-blind" for name in item.params["checks"].split(", ")]


def test_a_constant_loss_of_a_twentieth_in_three_decimals_is_no_pass():
    loss = np.round(0.05 + 0.004 * np.sin(2.3 * np.arange(1, 101)), 3)
    finding = judge(table(loss, quantum=1e-3), table(loss, quantum=1e-3), family="dense")
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-digits-blind" in codes(finding)


def test_digits_never_hide_what_they_do_show():
    """Half as much again at every step, in three decimals at .05: blind, and beyond all the same."""
    loss = np.round(0.05 + 0.004 * np.sin(2.3 * np.arange(1, 101)), 3)
    finding = judge(table(loss, quantum=1e-3), table(np.round(1.5 * loss, 3), quantum=1e-3), family="dense")
    assert finding.outcome is Outcome.FAIL


def test_rounding_alone_is_weighed_as_rounding():
    """Both sides print one curve, each with its own rounding, in five decimals at a loss of 2: no departure."""
    rng = np.random.default_rng(3)
    step = np.arange(1, 101)
    loss = 2.0 + 0.05 * np.sin(2.3 * step)
    sides = [table(loss + rng.uniform(-5e-6, 5e-6, 100), quantum=1e-5) for _ in range(2)]
    assert judge(*sides, family="dense").outcome is Outcome.PASS


def test_one_odd_row_below_the_spikes_does_not_hide_a_steady_offset():
    """5e-4 everywhere and 1e-2 once, twenty medians: the one row's jumps lower the departure to where good pairs are."""
    finding = judge(table(PAPER), table(PAPER * np.exp(5e-4 + 1e-2 * (STEPS[len(STEPS) // 2] == STEPS))), family="moe")
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "loss-departure-hidden" in codes(finding)
