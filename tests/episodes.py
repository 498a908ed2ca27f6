"""Episodes made to measure, and their verdict."""

from __future__ import annotations

from pytest_migparity.core.evidence import Evidence, Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Declared, Floors, default_limits
from pytest_migparity.core.verdict import Finding, Witness
from pytest_migparity.judges.closedloop import judge_rollouts
from pytest_migparity.wire.rollouts import Episode, Rollouts, rollouts_of

Pair = tuple[int, int]


def run(outcomes, task="lift", first=0, **more) -> list[Episode]:
    """One episode for each outcome (1, 0, or the word of an error), with seeds from `first` on."""
    return [Episode(task, first + at, bool(each), harness="sim 1", **more) if each in (0, 1)
            else Episode(task, first + at, None, error=each, harness="sim 1", **more)
            for at, each in enumerate(outcomes)]


def pairs(kept=0, lost=0, gained=0, failed=0, task="lift") -> tuple[list[Episode], list[Episode]]:
    """Episodes of both sides with so many pairs of each kind, interleaved by their seeds' hashes."""
    cells = [(1, 1)] * kept + [(1, 0)] * lost + [(0, 1)] * gained + [(0, 0)] * failed
    return run([a for a, _ in cells], task), run([b for _, b in cells], task)


def counted(successes: int, episodes: int, task: str = "suite") -> Rollouts:
    """So many successes of so many episodes, nothing else known."""
    rows = tuple(Episode(task, None, at < successes) for at in range(episodes))
    return Rollouts(rows, "only counts are known", from_counts=True)


def judged(baseline, candidate, *, margin=0.10, alpha=0.05, reruns=((), ()), policy=None, digests=("a", "b"),
           producer="real") -> Finding:
    """The finding for two runs; `reruns` are more runs of each side."""
    sides = []
    for name, episodes, again, digest in zip(("baseline", "candidate"), (baseline, candidate), reruns, digests, strict=True):
        witness = Witness(name, producer, "rollouts.jsonl", digest)
        read = [Recorded(each if isinstance(each, Rollouts) else rollouts_of(each), witness)
                for each in (episodes, *again)]
        sides.append(Evidence(name, "rollouts", (read[0],), tuple(read[1:])))
    limits = {**default_limits(LEVELS["L7"]), "margin": Declared(margin, "marker"), "alpha": Declared(alpha, "marker")}
    return judge_rollouts(*sides, limits=limits, floors=Floors(), policy=policy or Policy())


def codes(finding: Finding) -> list[str]:
    return [item.code for item in finding.notes]
