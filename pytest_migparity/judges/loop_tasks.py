"""Which tasks lost success: diagnostics beside the suite's verdict, with Holm's correction for their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from .loop_fixed import unpaired_p

Row = tuple[str, tuple[int, int], tuple[int, int], tuple[int, int] | None]
"""task, (successes, episodes) of each side, (lost, gained) where its episodes are paired"""


@dataclass(frozen=True, slots=True)
class TaskLoss:
    """One task: successes out of episodes of each side, and the one-sided p of "nothing was lost", Holm-adjusted."""

    task: str
    baseline: tuple[int, int]
    candidate: tuple[int, int]
    p: float

    @property
    def rates(self) -> tuple[float, float]:
        """Success rates of baseline and candidate."""
        return self.baseline[0] / max(self.baseline[1], 1), self.candidate[0] / max(self.candidate[1], 1)


def paired_p(lost: int, gained: int) -> float:
    """Exact sign test: chance of as many lost ones among the pairs that differ, where each is as likely gained."""
    return float(stats.binom.sf(lost - 1, lost + gained, 0.5)) if lost + gained else 1.0


def by_task(rows: Sequence[Row]) -> list[TaskLoss]:
    """Tasks, the surest loss first."""
    raw = [paired_p(*pair) if pair is not None else unpaired_p(*a, *b, 0.0, worse=True) if a[1] and b[1] else 1.0
           for _, a, b, pair in rows]
    return sorted((TaskLoss(task, a, b, p) for (task, a, b, _), p in zip(rows, holm(raw), strict=True)),
                  key=lambda found: (found.p, found.rates[1] - found.rates[0], found.task))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment: the smallest of k is multiplied by k, the next by k - 1, ..., never falling."""
    adjusted, largest = [1.0] * len(p), 0.0
    for rank, at in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        largest = max(largest, min(1.0, (len(p) - rank) * p[at]))
        adjusted[at] = largest
    return adjusted
