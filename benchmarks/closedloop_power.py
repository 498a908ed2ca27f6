"""How many pairs L7's betting test takes, and how often it errs, by simulation, beside other tests of the question.

Each cell: p, the baseline's rate; loss, the candidate's; margin; rho, the correlation of paired outcomes. `ours` are
mean pairs to a decision with the baseline's rate known beforehand, as in the K0 columns of the facts beside it;
`rate_unknown`: without. `questions` names what else may be asked: of the population with a record of the baseline, or
of 500 registered episodes alone. `bet_reference` is the uniform mixture of five bet fractions; `fixed_paired` and
`unpaired` (for each arm) are sample sizes for power .9; `oracle` would know how often pairs differ; `step` is null
unless sequentialized-barnard-tests is installed. numba compiles the very functions that judge.

    python benchmarks/closedloop_power.py --json [--trials 4000] [--seed 0]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import sys

import numba
import numpy as np

from pytest_migparity.judges import betting
from pytest_migparity.judges.loop_fixed import paired_sample, unpaired_sample

for _name in ("one_bet", "two_bets", "working_guess", "certificate"):
    setattr(betting, _name, numba.njit(getattr(betting, _name)))
_certificate = betting.certificate

ALPHA = 0.05
SURE = 1e9  # weight of a rate that is known
CAPS = {"pairs": 6000, "record": 3000, "registered": 500}
REGISTERED = 500
TABLE_TRIALS = 3000  # of the K0 columns, which are rounded means
RHO = (0.0, 0.5, 0.7, 0.9)
FRACTIONS = np.array([0.05, 0.15, 0.35, 0.65, 0.95])
K0 = {  # (loss, margin, p): pairs, record, registered at rho 0, .5, .7, .9 (facts/closedloop.md)
    (0.0, 0.05, 0.589): ((1103, 576, 359, 168), (572, 430, 303, 158), (234, 206, 172, 120)),
    (0.0, 0.05, 0.9): ((468, 247, 171, 101), (289, 210, 157, 99), (167, 137, 116, 87)),
    (0.0, 0.10, 0.3): ((273, 140, 92, 54), (121, 90, 67, 45), (87, 70, 57, 40)),
    (0.0, 0.10, 0.589): ((297, 154, 100, 58), (157, 116, 85, 54), (109, 87, 70, 49)),
    (0.0, 0.10, 0.9): ((130, 75, 56, 40), (93, 66, 53, 40), (75, 57, 48, 38)),
    (0.0, 0.10, 1.0): ((29,), (29,), (28,)),
    (0.1, 0.05, 0.589): ((409, 184, 107, 70), (215, 136, 89, 62), (134, 99, 73, 55)),
    (0.2, 0.10, 0.589): ((94, 44, 30, 30), (49, 33, 26, 26), (43, 31, 25, 25)),
}
NUISANCE = ((0.3, 0.0), (0.3, 0.7), (0.589, 0.0), (0.589, 0.5), (0.589, 0.9), (0.9, 0.0), (0.9, 0.5), (1.0, 0.0))


def chances(p: float, candidate: float, rho: float) -> tuple[float, float]:
    """(lost, gained) of two outcomes with these rates and correlation, as far as the rates allow it."""
    both = p * candidate + rho * math.sqrt(max(p * (1 - p) * candidate * (1 - candidate), 0.0))
    both = max(min(both, p, candidate), 0.0, p + candidate - 1)
    return p - both, candidate - both


@numba.njit
def _draw(p, lost, gained, length, registered, b, d):
    """Fill b and D: independent pairs, or a random order of the registered ones. Returns the rate."""
    if registered:
        ones, up = round(length * p), round(length * gained)
        down = up + round(length * (lost - gained))  # so that the loss itself is exact
        order = np.random.permutation(length)
        for i in range(length):
            at = order[i]
            b[i] = 1 if at < ones else 0
            d[i] = -1 if at < down else (1 if ones <= at < ones + up else 0)
        return ones / length
    for i in range(length):
        u = np.random.random()
        b[i] = 1 if u < p else 0
        d[i] = -1 if u < lost else (1 if p <= u < p + gained else 0)
    return p


@numba.njit
def _ours(p, lost, gained, margin, length, registered, known, guess, weight, trials, seed, target):
    """(decision 1 PASS, -1 FAIL, 0 neither; pairs) of each trial."""
    np.random.seed(seed)
    b, d = np.zeros(length, np.int64), np.zeros(length, np.int64)
    decisions, counts = np.zeros(trials, np.int64), np.zeros(trials, np.int64)
    for trial in range(trials):
        rate = _draw(p, lost, gained, length, registered, b, d)
        if not registered:
            rate = guess
        episodes = length if registered else 0
        passed, _ = _certificate(b, d, 1, margin, rate, weight, episodes, known, target)
        until = length if passed < 0 else passed
        failed, _ = _certificate(b[:until], d[:until], -1, margin, rate, weight, episodes, known, target)
        decisions[trial] = -1 if 0 <= failed < until else (1 if passed >= 0 else 0)
        counts[trial] = failed if decisions[trial] == -1 else until
    return decisions, counts


@numba.njit
def _reference(p, lost, gained, margin, length, trials, seed, target):
    """The uniform mixture of fixed bet fractions."""
    np.random.seed(seed)
    b, d = np.zeros(length, np.int64), np.zeros(length, np.int64)
    counts = np.zeros(trials, np.int64)
    for trial in range(trials):
        _draw(p, lost, gained, length, False, b, d)
        up, down = np.zeros(len(FRACTIONS)), np.zeros(len(FRACTIONS))
        net = 0
        counts[trial] = length
        for n in range(length):
            net += d[n]
            for k in range(len(FRACTIONS)):
                up[k] += math.log(1 + FRACTIONS[k] / (1 - margin) * (d[n] + margin))
                down[k] += math.log(1 - FRACTIONS[k] * d[n])
            if math.log(np.exp(up).mean()) >= target or (math.log(np.exp(down).mean()) >= target
                                                         and -net >= margin * (n + 1)):
                counts[trial] = n + 1
                break
    return counts


def simulate(p: float, loss: float, margin: float, rho: float, question: str, trials: int, seed: int,
             guess: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Decisions and pairs of one cell; `guess`: the judge's own two-episode guess of the rate in place of the rate."""
    lost, gained = chances(p, p - loss, rho)
    known, registered = question != "pairs", question == "registered"
    length = REGISTERED if registered else CAPS[question]
    return _ours(p, lost, gained, margin, length, registered, known, p if guess is None else guess,
                 SURE if guess is None else 2.0, trials, seed, math.log(1 / ALPHA))


def share(hits: np.ndarray) -> dict[str, float]:
    """A simulated rate with its standard error."""
    rate = float(hits.mean())
    return {"rate": rate, "se": math.sqrt(max(rate * (1 - rate), 1 / len(hits)) / len(hits))}


def oracle(p: float, loss: float, margin: float, rho: float) -> float | None:
    """Pairs that Kelly's bet takes where the chances are known: ln(1/alpha) over growth, of the true certificate."""
    lost, gained = chances(p, p - loss, rho)
    sign, centre = (1.0, -margin) if loss < margin else (-1.0, 0.0)
    bet = betting.one_bet(lost, gained, centre, sign)
    growth = sum(chance * math.log(max(1 + bet * sign * (d - centre), 1e-12))
                 for chance, d in ((lost, -1), (gained, 1), (1 - lost - gained, 0)))
    return math.log(1 / ALPHA) / growth if growth > 0 else None


def cell(p: float, loss: float, margin: float, rho: float, k0: tuple[float, ...], trials: int,
         seed: int) -> dict[str, object]:
    """One row of the table: every question, every peer."""
    found: dict[str, object] = {"p": p, "loss": loss, "margin": margin, "rho": rho}
    right = 1 if loss < margin else -1
    questions = {}
    for question, column in zip(CAPS, k0, strict=True):
        decisions, counts = simulate(p, loss, margin, rho, question, trials, seed)
        error = float(counts.std() / math.sqrt(trials))
        doubt = float(counts.std()) * math.sqrt(1 / trials + 1 / TABLE_TRIALS)
        questions[question] = {"mean": float(counts.mean()), "se": error, "power": float((decisions == right).mean()),
                               "k0": column, "no_worse": bool(counts.mean() <= column + 0.5 + 2 * doubt)}
    unaided = simulate(p, loss, margin, rho, "pairs", trials, seed, guess=0.5)[1]
    lost, gained = chances(p, p - loss, rho)
    reference = _reference(p, lost, gained, margin, CAPS["pairs"], max(trials // 4, 1), seed, math.log(1 / ALPHA))
    return {**found, "ours": questions["pairs"]["mean"], "questions": questions, "rate_unknown": float(unaided.mean()),
            "bet_reference": float(reference.mean()), "oracle": oracle(p, loss, margin, rho),
            "fixed_paired": paired_sample(loss, margin, lost + gained, ALPHA),
            "unpaired": unpaired_sample(p, loss, margin, ALPHA), "step": step(p, loss)}


def step(p: float, loss: float) -> float | None:
    """Mean episodes of STEP's own test of superiority, where that package is installed: it knows no margin."""
    if loss <= 0 or importlib.util.find_spec("sequentialized_barnard_tests") is None:
        return None
    from sequentialized_barnard_tests import Decision, Hypothesis, MirroredStepTest

    test = MirroredStepTest(alternative=Hypothesis.P0MoreThanP1, alpha=ALPHA, n_max=500, shape_parameter=0.0,
                            use_p_norm=False)
    rng, taken = np.random.default_rng(0), []
    for _ in range(100):
        result = test.run_on_sequence(rng.random(500) < p, rng.random(500) < p - loss)
        taken.append(len(result.result_for_alternative) if result.decision != Decision.FailToDecide else 500)
    return float(np.mean(taken))


def errors(trials: int, seed: int) -> dict[str, object]:
    """The worst false PASS, at a loss of exactly the margin, and false FAIL, at none, over nuisance values."""
    worst: dict[str, object] = {}
    for name, wrong in (("worst_false_pass", 1), ("worst_false_fail", -1)):
        rows = []
        for question in CAPS:
            for margin in (0.05, 0.10):
                for p, rho in NUISANCE:
                    decisions, _ = simulate(p, margin if wrong == 1 else 0.0, margin, rho, question, trials, seed)
                    rows.append({"question": question, "margin": margin, "p": p, "rho": rho,
                                 **share(decisions == wrong)})
        worst[name] = max(row["rate"] for row in rows)
        worst[f"{name}_at"] = max(rows, key=lambda row: row["rate"])
        by_question = {question: max(row["rate"] for row in rows if row["question"] == question) for question in CAPS}
        worst[f"{name}_by_question"] = by_question
    return worst


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cells = [cell(p, loss, margin, rho, tuple(column[at] for column in columns), options.trials, options.seed)
             for (loss, margin, p), columns in K0.items() for at, rho in enumerate(RHO[: len(columns[0])])]
    figures = {**errors(options.trials, options.seed), "trials": options.trials, "alpha": ALPHA, "cells": cells}
    if options.json:
        sys.stdout.write(json.dumps(figures, indent=1) + "\n")
        return
    for name in ("worst_false_pass", "worst_false_fail"):
        sys.stdout.write(f"{name} {figures[name]:.4f} at {figures[f'{name}_at']}\n")
    for row in cells:
        shown = " ".join(f"{name} {each['mean']:.1f} (K0 {each['k0']})" for name, each in row["questions"].items())
        sys.stdout.write(f"p {row['p']} loss {row['loss']} margin {row['margin']} rho {row['rho']}: {shown} "
                         f"rate unknown {row['rate_unknown']:.1f} reference {row['bet_reference']:.1f} "
                         f"fixed {row['fixed_paired']} unpaired {row['unpaired']}\n")


if __name__ == "__main__":
    main()
