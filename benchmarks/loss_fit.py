"""Fitting the constants of the departure, and trying them on pairs that took no part in the fit.

The three outcomes of a pair under the real judge (departure clear, in doubt, beyond) do not depend on the constants:
they are judged once, and a scale only chooses among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from loss_pairs import NONE, Pair
from scipy.optimize import minimize

from pytest_migparity.core.evidence import FAMILIES
from pytest_migparity.core.levels import Direction
from pytest_migparity.core.limits import Floors
from pytest_migparity.core.verdict import Finding, Outcome
from pytest_migparity.judges.loss_departure import Departure, Reference, Scale, span

LIMIT = 2.0  # even odds, for every family: what differs between families is in their references
SPREAD = 0.1, 1.3  # the doubt above the limit is at least 0.1 + 1.3 / sqrt(test cases fitted on)
WIDTHS = np.arange(0.1, 1.01, 0.05)
BUDGET = 0.028
SLACK = 0.002  # above what fails whatever the departure is
FOLDS = 10
ABOVE_GOOD = 1.5
RIDGE = 1.0
_FAR = 1e9


@dataclass(frozen=True)
class Sample:
    """One pair under one choice of floors: its figures, and its outcome for each state of the departure."""

    pair: Pair
    floors: Floors
    figures: Departure | None
    clear: Outcome
    doubt: Outcome
    beyond: Outcome
    excess: float

    def outcome(self, scale: Scale) -> Outcome:
        """What the judge says under other constants."""
        low, high = self.departure(scale)
        if np.isnan(low):
            return self.clear
        return self.beyond if low > scale.beyond else self.clear if high <= scale.clear else self.doubt

    def departure(self, scale: Scale) -> tuple[float, float]:
        """(lowest, highest) departure; NaN where there are too few points."""
        if self.figures is None:
            return float("nan"), float("nan")
        return span(self.figures, self.pair.family, self.floors, scale)

    def score(self, scale: Scale) -> float:
        """For the ROC: the decades by which the departure, or the worst other check, is beyond its limit."""
        low, high = self.departure(scale)
        return float(np.nanmax([(low + high) / 2 - scale.beyond, self.excess]))


def sample(pair: Pair, *, with_floors: bool) -> Sample:
    """Judge a pair with the departure held clear, in doubt, and beyond."""
    floors = pair.floors if with_floors else NONE
    low = {name: Reference(1e-5, 1e-2, _FAR) for name in FAMILIES}
    high = {name: Reference(1e-5, 1e-2, -_FAR) for name in FAMILIES}
    held = [pair.judge(floors, scale) for scale in
            (Scale(low, 0.0, 1.0), Scale(low, -2 * _FAR, 1.0), Scale(high, 0.0, 1.0))]
    return Sample(pair, floors, pair.figures(), *(finding.outcome for finding in held), _excess(held[0]))


def _excess(finding: Finding) -> float:
    """The largest lg(value / limit) of the checks beside the departure (of a correlation: of distances from 1)."""
    worst = -_FAR
    for check in finding.checks:
        if check.limit is None or check.blocked or check.name == "departure":
            continue
        flip = check.limit.direction is Direction.MIN
        value, limit = (1 - check.value, 1 - check.limit.effective) if flip else (check.value, check.limit.effective)
        if value > 0:
            worst = max(worst, float(np.log10(value / limit)))
    return worst


def fit(samples: Sequence[Sample]) -> Scale:
    """References, allowances that put every family's even odds at LIMIT, limits within the budget of false alarms."""
    used = [each for each in samples if each.figures is not None and each.pair.family is not None]
    bad = np.array([each.pair.bad for each in used])
    family = np.array([each.pair.family for each in used])
    seen = [name for name in FAMILIES if np.count_nonzero((family == name) & ~bad) >= 3]
    references = {name: _typical([each for each, good in zip(used, ~bad, strict=True)
                                  if good and each.pair.family == name]) for name in seen}
    kept = [each for each in used if each.pair.family in seen]
    bad = np.array([each.pair.bad for each in kept])
    value = np.array([each.departure(Scale(references, 0.0, 0.0))[0] for each in kept])
    members = [each.pair.family or "" for each in kept]
    odds = _even_odds(value, bad, members, seen)
    for name in seen:  # a family with hardly a bad pair says nothing of where they begin
        good = value[~bad & np.array([each == name for each in members])]
        odds[name] = min(odds[name], float(np.quantile(good, 0.975)) + ABOVE_GOOD)
    references = {name: replace(references[name], allowance=odds[name] - LIMIT) for name in seen}
    return _limits(samples, references)


def _typical(good: Sequence[Sample]) -> Reference:
    figures = [each.figures for each in good if each.figures is not None]
    return Reference(float(10 ** np.mean([np.log10(each.late) for each in figures])),
                     float(10 ** np.mean([np.log10(each.noise) for each in figures])))


def _even_odds(value: np.ndarray, bad: np.ndarray, family: Sequence[str], seen: Sequence[str]) -> dict[str, float]:
    """Per family the departure at which good and bad are equally likely: one logistic slope, one intercept each."""
    member = np.array([[name == each for each in seen] for name in family], dtype=float)
    centre, spread = value.mean(), value.std()
    design = np.column_stack([(value - centre) / spread, member, np.ones(value.size)])

    def loss(weights: np.ndarray) -> float:
        logit = design @ weights
        penalty = RIDGE * np.dot(weights[:-1], weights[:-1]) / 2
        return float(np.logaddexp(0, np.where(bad, -logit, logit)).sum() + penalty)

    weights = minimize(loss, np.zeros(design.shape[1]), method="BFGS").x
    return {name: float(centre - spread * (weights[1 + i] + weights[-1]) / weights[0]) for i, name in enumerate(seen)}


def _limits(samples: Sequence[Sample], references: dict[str, Reference]) -> Scale:
    """Of all pairs of limits around LIMIT the one that catches most within the budget of false alarms, then the wider.

    The budget holds for pairs with floors and without, each alone.
    """
    least = SPREAD[0] + SPREAD[1] / np.sqrt(len({each.pair.group for each in samples}))
    parts = [part for part in ([each for each in samples if not each.floors.by_check],
                               [each for each in samples if each.floors.by_check]) if part]
    never = Scale(references, _FAR, 2 * _FAR)
    budgets = [max(BUDGET, rates(part, never)["false_alarm"] + SLACK) for part in parts]
    best, found = (-1.0, 0.0), Scale(references, LIMIT - WIDTHS[-1], LIMIT + WIDTHS[-1])
    for above in WIDTHS[least - 1e-9 <= WIDTHS]:
        for below in WIDTHS:
            scale = Scale(references, float(LIMIT - below), float(LIMIT + above))
            result = rates(samples, scale)
            worth = (round(result["caught"] - 0.5 * result["inconclusive"], 4), below)
            if worth > best and all(rates(part, scale)["false_alarm"] <= budget
                                    for part, budget in zip(parts, budgets, strict=True)):
                best, found = worth, scale
    return found


def rates(samples: Iterable[Sample], scale: Scale) -> dict[str, float]:
    """Shares of bad pairs that FAIL, of good pairs that FAIL, and of all that are INCONCLUSIVE."""
    return tally([(each.pair.bad, each.outcome(scale)) for each in samples])


def tally(judged: Sequence[tuple[bool, Outcome]]) -> dict[str, float]:
    """The same of (bad, outcome); INCONCLUSIVE is neither caught nor passed and stays in every denominator."""
    bad = np.array([each for each, _ in judged], dtype=bool)
    fail = np.array([outcome is Outcome.FAIL for _, outcome in judged])
    unsure = np.array([outcome is Outcome.INCONCLUSIVE for _, outcome in judged])
    return {"caught": _share(fail[bad]), "false_alarm": _share(fail[~bad]), "inconclusive": _share(unsure),
            "missed": _share((~fail & ~unsure)[bad]), "n_neg": int(bad.sum()), "n_pos": int((~bad).sum())}


def _share(of: np.ndarray) -> float:
    return float(of.mean()) if of.size else float("nan")


def cross_validate(samples: Sequence[Sample], judged: Sequence[Sample], seed: int
                   ) -> list[tuple[Sample, Outcome, float]]:
    """`judged`, each under constants fitted without any pair of its test case: (sample, outcome, score)."""
    groups = sorted({each.pair.group for each in samples})
    fold = dict(zip(np.random.default_rng(seed).permutation(groups).tolist(),
                    [i % FOLDS for i in range(len(groups))], strict=True))
    found = []
    for number in range(FOLDS):
        scale = fit([each for each in samples if fold[each.pair.group] != number])
        found += [(each, each.outcome(scale), each.score(scale))
                  for each in judged if fold[each.pair.group] == number]
    return found


def roc_area(score: np.ndarray, bad: np.ndarray) -> float:
    """The chance that a bad pair scores above a good one, ties counting half (Mann-Whitney)."""
    from scipy.stats import rankdata

    rank = rankdata(score)
    n = int(bad.sum())
    return float((rank[bad].sum() - n * (n + 1) / 2) / (n * (bad.size - n)))
