"""A candidate's log that was mangled on its way never looks better than it was: FAIL and INCONCLUSIVE never become PASS.

The recipe's steps are declared, as a manifest does it. Where the property does not hold yet, a test that is expected to
fail shows the smallest case, and the property leaves that case out by name.
"""

from hashlib import sha256

import mangling
import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from pytest_migparity.assess import judge_evidence
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.evidence import Evidence, Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Finding, Outcome, Witness, note
from pytest_migparity.judges import difftraj
from pytest_migparity.readers.loss import read_loss

LIMITS = default_limits(LEVELS["L5"])
N = 60
POSITIONS = "hf-stdout bare"  # its rows have no step: they are numbered from 1
NUMBERED = sorted(set(mangling.WRITERS) - {POSITIONS})
FULL_DIGITS = ("csv", "jsonl", "mllog", "hf-state", "wandb", "deepspeed bare")  # 8 significant digits and more
LAYOUT = ("drop", "reorder", "join_lines", "truncate", "re_encode", "duplicate")  # no digit becomes another
QUIET = settings(deadline=None, derandomize=True, database=None)


def evidence(side, data):
    """As `assess` does it: a log that is none is a problem of that side."""
    try:
        reading = read_loss(data, side)
    except UserError as error:
        return Evidence(side, "loss", problems=(note("evidence-unreadable", side=side, kind="loss", why=str(error)),))
    witness = Witness(side, "real", side, sha256(data).hexdigest())
    return Evidence(side, "loss", (Recorded(reading.table, witness, reading.repairs, reading.repaired, reading.dropped),))


def judge(kind, baseline, candidate, family=None):
    every = mangling.EVERY.get(kind, 1)
    return judge_evidence("L5", evidence("baseline", baseline), evidence("candidate", candidate), limits=LIMITS,
                          floors=Floors(), policy=Policy(steps=N * every, interval=every, family=family))


def codes(data):
    try:
        return [item.code for item in read_loss(data, "log").repairs]
    except UserError:
        return []


# --- pairs of runs that do not pass


def curve(rng):
    t = np.arange(N)
    return 3 * np.exp(-t / rng.uniform(5, 60)) + rng.uniform(0.05, 1) + rng.uniform(0, 0.1) * rng.random(N)


def another(rng, loss, how, size):
    """Another chip's run, 1e-6 away, with one thing wrong."""
    t, near = np.arange(N), loss * np.exp(1e-6 * rng.normal(size=N))
    if how == "short":
        return near[:-1]
    if how == "nan":
        return np.where(t == rng.integers(N), np.nan, near)
    return near * np.exp(size * {"offset": np.ones(N), "growth": t / N, "late": (t >= N // 2).astype(float),
                                 "noise": rng.normal(size=N), "swing": np.sin(t * np.pi / 4)}[how])


@st.composite
def pairs(draw, kinds=NUMBERED, how=("short", "nan", "offset", "growth", "late", "noise", "swing")):
    """(kind of log, family, the baseline's losses, the candidate's, those of a third run)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    baseline = curve(rng)
    candidate = another(rng, baseline, draw(st.sampled_from(how)), 10.0 ** draw(st.floats(-4, 0)))
    return draw(st.sampled_from(kinds)), draw(st.sampled_from([None, "dense", "moe"])), baseline, candidate, curve(rng)


def some(names, most=3):
    return st.lists(st.sampled_from(sorted(names)), min_size=1, max_size=most)


ROUNDS = ("fewer_digits",)  # it has a property of its own
STEADY = some(set(mangling.MANGLINGS) - set(ROUNDS))
SEEDS = st.integers(0, 2**40)


def holds_rows_of(data, candidate, baseline):
    """Is any line of the candidate, that the baseline does not have, still in it?"""
    own = set(candidate.splitlines()) - set(baseline.splitlines())
    return any(line and line in data for line in own)


# --- what holds


def stays(pair, names, foreign, seed):
    """The property with rows of a third run, in the same format and in another."""
    kind, family, ours, theirs, third = pair
    baseline, candidate = mangling.log(kind, ours), mangling.log(kind, theirs)
    assume(judge(kind, baseline, candidate, family).outcome is not Outcome.PASS)
    data = mangling.mangled(candidate, names, [mangling.log(kind, third), mangling.log(foreign, third)], seed)
    assert judge(kind, baseline, data, family).outcome is not Outcome.PASS


@given(pairs(), STEADY, st.sampled_from(NUMBERED), SEEDS)
@settings(QUIET, max_examples=600)
def test_no_mangling_turns_a_verdict_green(pair, names, foreign, seed):
    stays(pair, names, foreign, seed)


@given(pairs(), some({"glue", "concatenate", "splice"}, 1), some(set(mangling.MANGLINGS) - set(ROUNDS), 2), st.booleans(), SEEDS)
@settings(QUIET, max_examples=600)
def test_rows_of_the_baseline_turn_no_verdict_green(pair, glued, names, first, seed):
    """Left out: rows that look like a resume of the run (see the test below), and a file without a row of the
    candidate's: nobody can tell whose that is."""
    kind, family, ours, theirs, _ = pair
    baseline, candidate = mangling.log(kind, ours), mangling.log(kind, theirs)
    assume(judge(kind, baseline, candidate, family).outcome is not Outcome.PASS)
    data = mangling.mangled(candidate, [*glued, *names] if first else [*names, *glued], [baseline], seed)
    if judge(kind, baseline, data, family).outcome is Outcome.PASS:
        assert "read-resumed" in codes(data) or not holds_rows_of(data, candidate, baseline)


@given(pairs(NUMBERED, ("offset",)), st.integers(2, 6))
@settings(QUIET, max_examples=300)
def test_rounding_hides_no_difference_beyond_its_own_size(pair, places):
    """A steady difference above eight times what rounding to these decimals can do to a loss."""
    kind, family, ours, theirs, _ = pair
    baseline, candidate = mangling.log(kind, ours), mangling.log(kind, theirs)
    assume(judge(kind, baseline, candidate, family).outcome is not Outcome.PASS)
    assume(np.abs(np.log(theirs / ours)).min() > 8 * 0.5 * 10.0**-places / ours.min())
    assert judge(kind, baseline, mangling.rounded(candidate, places), family).outcome is not Outcome.PASS


@given(st.sampled_from(FULL_DIGITS), st.integers(0, 2**32 - 1), some(LAYOUT), SEEDS)
@settings(QUIET, max_examples=200)
def test_a_copy_of_the_baseline_stays_a_copy(kind, texture, names, seed):
    """In logs of full digits, and where the copy does not look like a resumed run (see the test below)."""
    baseline = mangling.log(kind, curve(np.random.default_rng(texture)))
    data = mangling.mangled(baseline, names, [baseline], seed)
    assert "read-resumed" in codes(data) or judge(kind, baseline, data).outcome is not Outcome.PASS


# --- the property can fail


BROKEN = {
    "passes everything": ("judge_loss", lambda *sides, policy, **_: Finding(
        Outcome.PASS, (), difftraj.Coverage("steps", 0, 0), mode=policy.mode)),
    "misses missing rows": ("coverage_notes", lambda *_: []),
    "trusts every row": ("doubtful", lambda _: False),
    "takes a NaN for nothing": ("settle", lambda checks, **_: Outcome.PASS),
}


@pytest.mark.parametrize("how", sorted(BROKEN))
def test_a_broken_judge_does_not_get_through(how, monkeypatch):
    monkeypatch.setattr(difftraj, *BROKEN[how])

    @given(pairs(), STEADY, st.sampled_from(NUMBERED), SEEDS)
    @settings(QUIET, max_examples=600, phases=[Phase.generate], report_multiple_bugs=False)
    def check(pair, names, foreign, seed):
        stays(pair, names, foreign, seed)

    with pytest.raises(AssertionError):
        check()
