"""How it fails: against a log-rank test worked out by hand and scipy's own, and what must not be cried."""

import numpy as np
import pytest
from episodes import judged, run
from scipy import stats

from pytest_migparity.core.verdict import Outcome
from pytest_migparity.judges.failure_modes import failure_modes, log_rank, mode_notes
from pytest_migparity.reports.messages import catalogue, tell
from pytest_migparity.wire.rollouts import Episode


def episodes(count, *, seed, success=0.5, contact=0.5, at=17, error=0.05, layer=0.1):
    """Episodes with collisions around step `at`, of the table in so many of them."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        hit = rng.random() < contact
        found.append(Episode("lift", number, bool(rng.random() < success), int(rng.integers(80, 120)), harness="sim 1",
                             first_collision=float(rng.integers(at - 5, at + 6)) if hit else None,
                             collisions=("arm-table",) if hit else (), goal_error=float(rng.gamma(2, error)),
                             interventions=int(rng.random() < layer), timeout=bool(rng.random() < 0.2)))
    return found


def test_the_log_rank_test_by_hand():
    """Times 1, 3+ against 2, 4 (+: censored). Time 1: 2 of 4 at risk, expected 1/2, variance 1/4; time 2: one of three
    is of the first, expected 1/3, variance 2/9; time 4: none of the first. Chi-square (1 - 5/6)^2 / (17/36) = 1/17."""
    p = log_rank(np.array([1.0, 3.0]), np.array([True, False]), np.array([2.0, 4.0]), np.array([True, True]))
    assert p == pytest.approx(stats.chi2.sf(1 / 17, 1))


def test_the_log_rank_test_is_scipys():
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, 40, 60).astype(float), rng.integers(1, 30, 50).astype(float)
    seen_a, seen_b = rng.random(60) < 0.7, rng.random(50) < 0.8
    peer = stats.logrank(*(stats.CensoredData(uncensored=time[seen], right=time[~seen])
                           for time, seen in ((a, seen_a), (b, seen_b))))
    assert log_rank(a, seen_a, b, seen_b) == pytest.approx(peer.pvalue)


def test_what_changed_is_named_first_and_what_did_not_is_not():
    """Table contacts 51 % to 17 % of episodes: what the scaled axis did (facts/closedloop.md)."""
    modes = failure_modes(episodes(400, seed=1, contact=0.51), episodes(400, seed=2, contact=0.17))
    told = {note.code for note in mode_notes(modes)}
    assert "loop-mode-contact" in told
    assert told <= {"loop-mode-contact", "loop-mode-collided", "loop-mode-collision-time"}
    contact = next(mode for mode in modes if mode.name == "contact")
    assert (contact.what, contact.baseline, contact.candidate) == ("arm-table", pytest.approx(0.51, abs=0.08),
                                                                   pytest.approx(0.17, abs=0.08))


def test_a_later_first_contact_is_seen_with_its_censoring():
    modes = failure_modes(episodes(300, seed=3, at=17), episodes(300, seed=4, at=22))
    first = modes[0]
    assert (first.name, first.baseline, first.candidate) == ("collision-time", pytest.approx(17, abs=1.5),
                                                             pytest.approx(22, abs=1.5))


def test_two_samples_of_one_policy_differ_in_nothing_more_often_than_one_time_in_twenty():
    cried = sum(bool(mode_notes(failure_modes(episodes(60, seed=2 * at), episodes(60, seed=2 * at + 1))))
                for at in range(100))
    assert cried <= stats.binom.ppf(0.999, 100, 0.05)


def test_what_a_side_did_not_record_is_no_mode():
    assert failure_modes(run([1, 0, 1]), run([0, 0, 1])) == []


def test_a_fail_says_how_it_fails_in_both_languages_and_a_pass_does_not():
    a = episodes(400, seed=5, success=0.9, contact=0.5)
    finding = judged(a, episodes(400, seed=6, success=0.4, contact=0.9))
    assert finding.outcome is Outcome.FAIL
    assert "arm-table touch in" in " ".join(tell(hint, "en") for hint in finding.hints)
    assert judged(a, episodes(400, seed=5, success=0.9, contact=0.5)).hints == ()
    assert {f"loop-mode-{name}" for name in ("collision-time", "collided", "timeout", "goal-error", "intervened",
                                             "success-safe", "failed-after", "contact")} <= catalogue().keys()
