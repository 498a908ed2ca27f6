"""What holds for all episodes; the statistics against independent implementations."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from episodes import counted, judged, pairs, run
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from pytest_migparity.core.verdict import Outcome
from pytest_migparity.judges.betting import ALMOST, NEVER, certificate, one_bet, two_bets
from pytest_migparity.judges.loop_fixed import lower_bound, paired_sample, score_z, tango_z, unpaired_p, unpaired_sample
from pytest_migparity.judges.loop_plan import discordance, pairs_needed
from pytest_migparity.judges.loop_scores import score_bound
from pytest_migparity.judges.loop_tasks import holm, paired_p

RANK = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1, Outcome.PASS: 2}
cells = st.fixed_dictionaries({name: st.integers(0, 60) for name in ("kept", "lost", "gained", "failed")})
streams = st.lists(st.sampled_from([(1, 0), (1, -1), (0, 1), (0, 0)]), min_size=1, max_size=80)


def value(finding, name):
    return next(check.value for check in finding.checks if check.name == name)


# ---- the verdict


@given(cells.filter(lambda found: sum(found.values()) > 0))
@settings(max_examples=25, deadline=None)
def test_swapping_the_sides_negates_the_estimate(found):
    a, b = pairs(**found)
    assert value(judged(a, b), "loss") == pytest.approx(-value(judged(b, a), "loss"))


@given(cells.filter(lambda found: sum(found.values()) > 0), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_the_order_of_lines_changes_nothing(found, random):
    a, b = pairs(**found)
    shuffled = [list(side) for side in (a, b)]
    for side in shuffled:
        random.shuffle(side)
    assert judged(*shuffled) == judged(a, b)


@given(cells.filter(lambda found: sum(found.values()) > 0), st.sampled_from(["push", "lift-2", "任务"]),
       st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_other_names_of_tasks_and_seeds_change_no_fixed_sample_statistic(found, task, first):
    a, b = pairs(**found)
    renamed = [[episode._replace(task=task, seed=episode.seed + first) for episode in side] for side in (a, b)]
    for name in ("loss", "lost", "gained", "tango_z"):
        assert value(judged(*renamed), name) == pytest.approx(value(judged(a, b), name), nan_ok=True)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 60), st.sampled_from(["push", "lift"]))
@settings(max_examples=25, deadline=None)
def test_the_order_and_names_of_unpaired_episodes_change_nothing(base, cand, size, task):
    sides = [counted(min(good, size), size) for good in (base, cand)]
    other = [side._replace(episodes=tuple(episode._replace(task=task) for episode in side.episodes[::-1]))
             for side in sides]
    ours, theirs = judged(*sides), judged(*other)
    assert ours.outcome == theirs.outcome
    assert [(check.name, check.value) for check in ours.checks] == [(check.name, check.value) for check in theirs.checks]


@given(st.integers(0, 40), st.integers(0, 40), st.integers(40, 60))
@settings(max_examples=25, deadline=None)
def test_a_failure_of_the_candidate_in_place_of_a_success_never_helps_unpaired(base, cand, size):
    before = judged(counted(base, size), counted(cand + 1, size + 1))
    after = judged(counted(base, size), counted(cand, size + 1))
    assert RANK[after.outcome] <= RANK[before.outcome]
    assert value(after, "alpha") >= value(before, "alpha") - 1e-12


@given(streams, st.floats(0.02, 0.3))
def test_a_lost_pair_at_the_end_never_certifies(stream, margin):
    """Fixed-sample: Tango's statistic falls. Betting: capital against a loss never grows by a loss."""
    b, d = [pair[0] for pair in stream], [pair[1] for pair in stream]
    target = math.log(20)
    if certificate(b, d, 1, margin, 0.5, 2.0, 0, False, target)[0] == NEVER:
        assert certificate([*b, 1], [*d, -1], 1, margin, 0.5, 2.0, 0, False, target)[0] == NEVER
    lost, gained, n = d.count(-1), d.count(1), len(d)
    assert tango_z(lost + 1, gained, n + 1, margin) <= tango_z(lost, gained, n, margin) + 1e-9


@given(st.integers(1, 20))
def test_nothing_or_everything_on_both_sides_is_not_decided_by_a_few(size):
    for outcome in (0, 1):
        assert judged(run([outcome] * size), run([outcome] * size)).outcome is Outcome.INCONCLUSIVE


@given(cells.filter(lambda found: sum(found.values()) > 0))
@settings(max_examples=25, deadline=None)
def test_dropping_the_candidates_failures_never_turns_a_verdict_green(found):
    a, b = pairs(**found)
    kept = [episode for episode in b if episode.success] or b
    whole = judged(a, b)
    if len(kept) < len(b) and whole.outcome is not Outcome.PASS:
        assert judged(a, kept).outcome is not Outcome.PASS


# ---- betting


def size_by_enumeration(chance, pairs, alpha, *args):
    """The exact chance that a certificate is reached within so many pairs: over every stream there is."""
    total = 0.0
    for stream in product(chance, repeat=pairs):
        b, d = [pair[0] for pair in stream], [pair[1] for pair in stream]
        if certificate(b, d, *args, math.log(1 / alpha))[0] != NEVER:
            total += math.prod(chance[pair] for pair in stream)
    return total


@pytest.mark.parametrize("alpha", [0.5, 0.8])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("rate, lost", [(0.5, 0.45), (0.8, 0.6), (1.0, 0.4)])
def test_a_loss_of_the_margin_is_certified_away_no_more_often_than_alpha(rate, lost, known, alpha):
    """Margin .4 and alpha .5 or .8, where six pairs can decide at all; the mean of D is exactly -.4."""
    gained = lost - 0.4
    chance = {(1, -1): lost, (1, 0): rate - lost, (0, 1): gained, (0, 0): 1 - rate - gained}
    chance = {pair: share for pair, share in chance.items() if share > 1e-12}
    size = size_by_enumeration(chance, 6, alpha, 1, 0.4, rate, 1e9 if known else 2.0, 0, known)
    assert 0 < size <= alpha + 1e-9


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("rate, differ", [(0.5, 0.3), (0.8, 0.15)])
def test_no_loss_is_failed_no_more_often_than_alpha(rate, differ, known):
    chance = {(1, -1): differ, (1, 0): rate - differ, (0, 1): differ, (0, 0): 1 - rate - differ}
    size = size_by_enumeration(chance, 6, 0.5, -1, 0.1, rate, 1e9 if known else 2.0, 0, known)
    assert 0 < size <= 0.5


@pytest.mark.parametrize("sign, lost, gained", [(1, 3, 0), (1, 4, 1), (-1, 2, 2)])
def test_registered_episodes_are_certified_wrongly_in_no_more_orders_than_alpha(sign, lost, gained):
    """8 registered episodes, 5 of them the baseline's successes; every distinct order; a loss of 3/8, or of none."""
    every = [(1, -1)] * lost + [(1, 0)] * (5 - lost) + [(0, 1)] * gained + [(0, 0)] * (3 - gained)
    orders = sorted(set(permutations(every)))
    reached = [certificate([b for b, _ in order], [d for _, d in order], sign, 3 / 8, 5 / 8, 0.0, 8, True,
                           math.log(2))[0] != NEVER for order in orders]
    assert sum(reached) / len(orders) <= 0.5


@given(st.floats(0.001, 0.4), st.floats(0.001, 0.4), st.floats(-0.3, -0.01), st.sampled_from([1.0, -1.0]))
def test_one_bet_is_the_best_one(lost, gained, centre, sign):
    """Against scipy's bounded search."""
    x = sign * (np.array([-1.0, 1.0, 0.0]) - centre)
    chance = np.array([lost, gained, 1 - lost - gained])
    most = ALMOST / max(-x.min(), 1e-9)
    best = optimize.minimize_scalar(lambda bet: -(chance * np.log1p(bet * x)).sum(), bounds=(0, most), method="bounded",
                                    options={"xatol": 1e-10})
    found = one_bet(lost, gained, centre, sign)
    assert 0 <= found <= most
    assert (chance * np.log1p(found * x)).sum() >= -best.fun - 1e-9


def test_two_bets_are_the_best_ones():
    """Against scipy's simplex search on four outcomes."""
    x, y = np.array([-0.9, 0.1, 1.1, 0.1]), np.array([0.4, 0.4, -0.6, -0.6])
    chance = np.array([0.08, 0.52, 0.08, 0.32])

    def lost(bets):
        factors = 1 + bets[0] * x + bets[1] * y
        return math.inf if bets[0] < 0 or factors.min() <= 0 else -(chance * np.log(factors)).sum()

    best = optimize.minimize(lost, (0.1, 0.0), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14})
    assert two_bets(tuple(x), tuple(y), tuple(chance), 0.0, 0.0) == pytest.approx(best.x, abs=1e-4)


def test_29_of_29_certify_a_margin_of_a_tenth_where_the_rate_is_known_to_be_1():
    """.9^29 = .047 and .9^28 = .052: what an exact test takes."""
    for count, outcome in ((28, NEVER), (29, 29)):
        assert certificate([1] * count, [0] * count, 1, 0.1, 1.0, 1e9, 0, False, math.log(20))[0] == outcome
    lost_one = certificate([1] * 120, [0] * 10 + [-1] + [0] * 109, 1, 0.1, 1.0, 50.0, 0, False, math.log(20))
    assert 29 < lost_one[0] <= 120, "one lost pair must not ruin for good"


# ---- fixed-sample tests


def nearest_null(counts, margin):
    """The largest likelihood of (lost, gained, tied) at gained - lost = -margin, by search over the chance of a loss."""
    lost, gained, tied = counts

    def minus(q):
        return -(stats.multinomial.logpmf([lost, gained, tied], lost + gained + tied,
                                          [q, q - margin, 1 - 2 * q + margin]))

    return optimize.minimize_scalar(minus, bounds=(margin + 1e-9, (1 + margin) / 2 - 1e-9), method="bounded",
                                    options={"xatol": 1e-12}).x


@pytest.mark.parametrize("lost, gained, tied", [(5, 9, 386), (20, 10, 70), (30, 5, 100)])
def test_tango_is_the_score_at_the_nearest_null(lost, gained, tied):
    n, margin = lost + gained + tied, 0.1
    q = nearest_null((lost, gained, tied), margin)
    deviation = math.sqrt(n * (2 * q - margin - margin**2))
    assert tango_z(lost, gained, n, margin) == pytest.approx((gained - lost + n * margin) / deviation, rel=1e-4)


@pytest.mark.parametrize("base, n, cand, m, margin", [(80, 100, 75, 100, 0.1), (10, 12, 9, 40, 0.2), (50, 90, 60, 70, 0.05)])
def test_farrington_and_manning_is_the_score_at_the_nearest_null(base, n, cand, m, margin):
    def minus(p):
        return -(stats.binom.logpmf(cand, m, p) + stats.binom.logpmf(base, n, p + margin))

    p = optimize.minimize_scalar(minus, bounds=(1e-9, 1 - margin - 1e-9), method="bounded", options={"xatol": 1e-12}).x
    deviation = math.sqrt(p * (1 - p) / m + (p + margin) * (1 - p - margin) / n)
    assert float(score_z(np.array(base), n, np.array(cand), m, margin)) == pytest.approx(
        (cand / m - base / n + margin) / deviation, rel=1e-4)


def test_without_a_margin_the_score_is_the_pooled_z_test():
    pooled = 140 / 200
    assert float(score_z(np.array(80), 100, np.array(60), 100, 0.0)) == pytest.approx(
        -0.2 / math.sqrt(pooled * (1 - pooled) * 2 / 100))


def test_the_exact_test_takes_29_of_29_where_the_normal_one_takes_25():
    assert unpaired_p(29, 29, 29, 29, 0.1) <= 0.05 < unpaired_p(28, 28, 28, 28, 0.1)
    assert unpaired_p(29, 29, 29, 29, 0.1) == pytest.approx(0.9**29, rel=1e-6)
    assert stats.norm.sf(float(score_z(np.array(25), 25, np.array(25), 25, 0.1))) < 0.05


def test_clopper_pearson_solves_its_equation():
    bound = lower_bound(7, 20, 0.05)
    assert stats.binom.sf(6, 20, bound) == pytest.approx(0.05)
    assert lower_bound(0, 20, 0.05) == 0


def test_holm_and_the_sign_test_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    assert paired_p(5, 0) == pytest.approx(1 / 32)
    assert paired_p(1, 1) == pytest.approx(0.75)
    assert paired_p(0, 0) == 1


def test_a_bound_of_scores_holds_and_tightens():
    """No difference at all: the bound of n pairs solves mean over bets of (1 + f loss / (1 - loss))^n = 20."""
    for pairs_seen in (40, 400):
        bound = score_bound(np.zeros(pairs_seen), 0.05)
        solved = optimize.brentq(lambda loss, n=pairs_seen: math.log(np.mean(
            (1 + np.array([0.05, 0.15, 0.35, 0.65, 0.95]) * loss / (1 - loss)) ** n)) - math.log(20), 1e-6, 0.5)
        assert bound == pytest.approx(solved, abs=2e-3)
    assert math.isnan(score_bound(np.zeros(0), 0.05))
    rng = np.random.default_rng(0)
    missed = sum(score_bound(rng.choice([-0.4, 0.0, 0.2], 150, p=[0.5, 0.3, 0.2]), 0.05) < 0.16 for _ in range(200))
    assert missed <= stats.binom.ppf(0.999, 200, 0.05)


# ---- planning


@pytest.mark.parametrize("rate, margin, correlation, mean", [
    (0.589, 0.05, 0.5, 576), (0.589, 0.05, 0.9, 168), (0.9, 0.05, 0.7, 171), (0.589, 0.10, 0.0, 297),
    (0.589, 0.10, 0.5, 154), (0.9, 0.10, 0.9, 40), (0.3, 0.10, 0.7, 92),
])
def test_the_plan_is_within_a_tenth_of_simulated_means(rate, margin, correlation, mean):
    """facts/closedloop.md, simulated by another implementation of the test."""
    assert pairs_needed(discordance(rate, correlation), margin, 0.05) == pytest.approx(mean, rel=0.1)


def test_fixed_samples_are_those_of_the_table():
    """facts/closedloop.md: 844/514/203 paired and 1656 unpaired for .05 at .589; simulated there, formulas here."""
    for correlation, wanted in ((0.5, 844), (0.7, 514), (0.9, 203)):
        assert paired_sample(0.0, 0.05, discordance(0.589, correlation), 0.05) == pytest.approx(wanted, rel=0.08)
    assert unpaired_sample(0.589, 0.0, 0.05, 0.05) == pytest.approx(1656, rel=0.02)
    assert unpaired_sample(0.589, 0.0, 0.10, 0.05) == pytest.approx(413, rel=0.02)
