"""How a policy fails: what the candidate's episodes do differently, the most surprising first.

Each mode is one test of one field that both sides recorded, as of two independent samples; p-values are corrected for
the number of modes tested (Holm). They explain a verdict and decide none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pytest_migparity.core.verdict import Note
from pytest_migparity.wire.rollouts import Episode

from .loop_tasks import holm

ALPHA = 0.05
LISTED = 3
Sides = tuple[Sequence[Episode], Sequence[Episode]]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to differ: a share of episodes, or a median; `p` two-sided, corrected for the number of modes."""

    name: str
    what: str
    baseline: float
    candidate: float
    p: float


def failure_modes(baseline: Sequence[Episode], candidate: Sequence[Episode]) -> list[Mode]:
    """Every mode that both sides recorded, the most surprising first."""
    sides = (baseline, candidate)
    found = [mode for measured in (_collision_time, _collided, _timeouts, _goal_errors, _interventions, _lengths)
             for mode in measured(sides)]
    found += _pairs(sides)
    adjusted = holm([mode.p for mode in found])
    ranked = [Mode(mode.name, mode.what, mode.baseline, mode.candidate, p)
              for mode, p in zip(found, adjusted, strict=True)]
    return sorted(ranked, key=lambda mode: (mode.p, mode.name, mode.what))


def mode_notes(modes: Iterable[Mode]) -> tuple[Note, ...]:
    """The first few modes that chance does not explain."""
    sure = [mode for mode in modes if mode.p <= ALPHA]
    return tuple(Note(f"loop-mode-{mode.name}", {"what": mode.what, "baseline": mode.baseline,
                                                 "candidate": mode.candidate, "p": mode.p}) for mode in sure[:LISTED])


def log_rank(time_a: Floats, seen_a: NDArray[np.bool_], time_b: Floats, seen_b: NDArray[np.bool_]) -> float:
    """Two-sided p of Mantel's log-rank test; where `seen` is false the episode ended before anything happened."""
    times = np.unique(np.concatenate([time_a[seen_a], time_b[seen_b]]))
    surprise = variance = 0.0
    for time in times:
        risk_a, risk_b = int((time_a >= time).sum()), int((time_b >= time).sum())
        hit_a, hit_b = int((seen_a & (time_a == time)).sum()), int((seen_b & (time_b == time)).sum())
        risk, hit = risk_a + risk_b, hit_a + hit_b
        surprise += hit_a - hit * risk_a / risk
        if risk > 1:
            variance += hit * (risk_a / risk) * (risk_b / risk) * (risk - hit) / (risk - 1)
    return float(stats.chi2.sf(surprise * surprise / variance, 1)) if variance > 0 else 1.0


def _collision_time(sides: Sides) -> list[Mode]:
    """Time of the first collision, censored where an episode ended without one."""
    rows = [[episode for episode in side if episode.collisions is not None or episode.first_collision is not None]
            for side in sides]
    if not all(rows):
        return []
    data = []
    for side in rows:
        seen = np.array([episode.first_collision is not None for episode in side])
        ended = [episode.first_collision if episode.first_collision is not None else episode.steps for episode in side]
        if any(each is None for each in ended):
            return []
        data.append((np.array(ended, float), seen))
    if not all(seen.any() for _, seen in data):
        return []
    p = log_rank(data[0][0], data[0][1], data[1][0], data[1][1])
    ours, theirs = (float(np.median(time[seen])) for time, seen in data)
    return [Mode("collision-time", "", ours, theirs, p)]


def _share(sides: Sides, name: str, what: str, of: Callable[[Episode], bool | None]) -> list[Mode]:
    """A yes or no of each episode: Fisher's exact test of the two shares."""
    answers = [[value for episode in side if (value := of(episode)) is not None] for side in sides]
    if not all(answers):
        return []
    table = np.array([[sum(side), len(side) - sum(side)] for side in answers])
    p = float(stats.fisher_exact(table)[1])
    ours, theirs = (sum(side) / len(side) for side in answers)
    return [Mode(name, what, ours, theirs, p)]


def _median(sides: Sides, name: str, of: Callable[[Episode], float | None]) -> list[Mode]:
    """A number of each episode: Mann and Whitney's test of the two samples."""
    values = [[float(value) for episode in side if (value := of(episode)) is not None] for side in sides]
    if not all(values) or len({*values[0], *values[1]}) < 2:
        return []
    p = float(stats.mannwhitneyu(values[0], values[1], alternative="two-sided").pvalue)
    ours, theirs = (float(np.median(side)) for side in values)
    return [Mode(name, "", ours, theirs, p)]


def _collided(sides: Sides) -> list[Mode]:
    return _share(sides, "collided", "", lambda episode: None if episode.collisions is None and
                  episode.first_collision is None else bool(episode.collisions) or episode.first_collision is not None)


def _timeouts(sides: Sides) -> list[Mode]:
    return _share(sides, "timeout", "", lambda episode: episode.timeout)


def _goal_errors(sides: Sides) -> list[Mode]:
    return _median(sides, "goal-error", lambda episode: episode.goal_error)


def _interventions(sides: Sides) -> list[Mode]:
    """How often the safety layer stepped in, and success with it on: a layer can hide a policy that got worse."""
    return [*_share(sides, "intervened", "", lambda episode: None if episode.interventions is None
                    else episode.interventions > 0),
            *_share(sides, "success-safe", "", lambda episode: episode.success_safe)]


def _lengths(sides: Sides) -> list[Mode]:
    """Steps of failed episodes: a policy that stops early fails sooner."""
    return _median(sides, "failed-after", lambda episode: None if episode.success is not False or episode.steps is None
                   else float(episode.steps))


def _pairs(sides: Sides) -> list[Mode]:
    """Which things touched, in how many episodes of each side."""
    looked = [[episode for episode in side if episode.collisions is not None] for side in sides]
    names = sorted({pair for side in looked for episode in side for pair in episode.collisions or ()})
    return [mode for pair in names
            for mode in _share((looked[0], looked[1]), "contact", pair,
                               lambda episode, pair=pair: pair in (episode.collisions or ()))]  # type: ignore[misc]
