"""What stands against comparing two sides' episodes, and what a comparison of them cannot prove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from scipy import stats

from pytest_migparity.core.evidence import Evidence, Policy
from pytest_migparity.core.verdict import Note, note
from pytest_migparity.wire.rollouts import Rollouts

from .loop_fixed import lower_bound
from .loop_pairs import Matches, differing, match

PROTOCOL = ("harness", "envs", "horizon")
NAMED = 5
UNLIKELY = 0.01
PUBLISHED_SPREAD = 0.05
"""Runs of one published checkpoint differ by up to 4.2 points at 5000 episodes (facts/closedloop.md)."""

Sides = tuple[Evidence[Rollouts], Evidence[Rollouts]]


def listed(names: Iterable[object]) -> str:
    """The first few of some names, and how many more there are."""
    every = [str(name) for name in names]
    rest = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return ", ".join(every[:NAMED]) + rest


def counts(rollouts: Rollouts) -> tuple[int, int]:
    """(successes, episodes that have an outcome)."""
    outcomes = [episode.success for episode in rollouts.episodes if episode.success is not None]
    return sum(outcomes), len(outcomes)


def protocol_notes(ours: Rollouts, theirs: Rollouts) -> tuple[list[Note], list[Note]]:
    """(what makes the two incomparable, remarks): how the episodes were run, which must be one way on both sides."""
    against, remarks = [], []
    for name in PROTOCOL:
        seen = [sorted({getattr(episode, name) for episode in side.episodes} - {None, ""}) for side in (ours, theirs)]
        mixed = [side for side, values in zip(("baseline", "candidate"), seen, strict=True) if len(values) > 1]
        if mixed:
            against += [note("loop-mixed", side=side, what=name, values=listed(seen[side != "baseline"]))
                        for side in mixed]
        elif seen[0] != seen[1] and all(seen):
            against.append(note("loop-protocol", what=name, baseline=str(seen[0][0]), candidate=str(seen[1][0])))
        elif name == "harness" and not all(seen):
            remarks.append(note("loop-harness-unsaid"))
    return against, remarks


def task_notes(ours: Rollouts, theirs: Rollouts, declared: tuple[str, ...]) -> list[Note]:
    """Tasks that one side has alone, or that the manifest does not declare, or declares and nobody ran."""
    seen = [{episode.task for episode in side.episodes} for side in (ours, theirs)]
    found = []
    if seen[0] != seen[1]:
        found.append(note("loop-other-tasks", baseline=listed(sorted(seen[0] - seen[1])) or "-",
                          candidate=listed(sorted(seen[1] - seen[0])) or "-"))
    both = seen[0] | seen[1]
    if declared and both != set(declared):
        found.append(note("loop-undeclared-tasks", missing=listed(sorted(set(declared) - both)) or "-",
                          more=listed(sorted(both - set(declared))) or "-"))
    return found


def pair_notes(matches: Matches) -> list[Note]:
    """Pairs that are none: seeds on one side alone, and sides that started from something else."""
    found = []
    alone = {side: matches.one_sided(side) for side in ("baseline", "candidate")}
    if not matches.whole:
        found.append(note("loop-other-seeds"))
    elif any(alone.values()):
        found.append(note("loop-missing", baseline=len(alone["candidate"]), candidate=len(alone["baseline"]),
                          names=listed(f"{item.key[0]} {item.key[1]}" for item in
                                       (alone["baseline"] or alone["candidate"]))))
    found += [note("loop-not-same", what=name, pairs=len(items), names=listed(f"{item.key[0]} {item.key[1]}"
                                                                             for item in items))
              for name, items in differing(matches.ordered).items()]
    return found


def kept_apart(ours: Rollouts, theirs: Rollouts, repeated: tuple[int, int]) -> list[Note]:
    """Remarks on what is no plain outcome: crashes and rejected seeds, and rows that repeat one."""
    found = []
    for side, rollouts, again in (("baseline", ours, repeated[0]), ("candidate", theirs, repeated[1])):
        errors = Counter(episode.error for episode in rollouts.episodes if episode.error)
        found += [note("loop-errors", side=side, count=count, error=error) for error, count in sorted(errors.items())]
        if again:
            found.append(note("loop-repeated", side=side, rows=again, left=len(rollouts.episodes) - again))
    return found


def vacuous_notes(successes: int, episodes: int, margin: float, alpha: float, policy: Policy) -> list[Note]:
    """A baseline that hardly succeeds has no loss of the margin to show: its bound must lie above the margin."""
    bound = lower_bound(successes, episodes, alpha)
    if bound > margin:
        return []
    found = [note("loop-vacuous", successes=successes, episodes=episodes, bound=bound, margin=margin)]
    if policy.training_success is not None:
        code = "loop-evaluated-wrongly" if policy.training_success > margin else "loop-trained-to-nothing"
        found.append(note(code, rate=policy.training_success))
    return found


def published_notes(successes: int, episodes: int, published: float | None) -> list[Note]:
    """The baseline's rate must be the published one, up to chance or to how much published runs differ."""
    if published is None or not episodes:
        return []
    rate = successes / episodes
    if abs(rate - published) <= PUBLISHED_SPREAD:
        return []
    if stats.binomtest(successes, episodes, published).pvalue >= UNLIKELY:
        return []
    return [note("loop-published", rate=rate, episodes=episodes, published=published)]


def spread_notes(sides: Sides, loss: float, margin: float) -> list[Note]:
    """Runs of one side that differ by more than chance: what one run says is then not what its side says.

    A loss beyond the margin by three times the largest difference stands all the same.
    """
    found = []
    for side in sides:
        runs = [run.table for run in (*side.runs, *side.reruns)]
        if len(runs) < 2:
            continue
        totals = [counts(run) for run in runs]
        rates = [good / max(of, 1) for good, of in totals]
        apart = max(rates) - min(rates)
        if same_rate_p(runs, totals) < UNLIKELY and loss < margin + 3 * apart:
            found.append(note("loop-runs-spread", side=side.side, runs=len(runs), least=min(rates), most=max(rates)))
    return found


def same_rate_p(runs: list[Rollouts], totals: list[tuple[int, int]]) -> float:
    """P of "all runs of a side have one rate": by pairs against the first run where seeds allow it, else chi-square."""
    if all(not run.unpaired for run in runs):
        tests = []
        for run in runs[1:]:
            apart = [item.difference for item in match(runs[0], run).whole]
            lost, gained = apart.count(-1), apart.count(1)
            tests.append(stats.binomtest(lost, lost + gained).pvalue if lost + gained else 1.0)
        return float(min(1.0, min(tests) * len(tests)))
    table = [[good, of - good] for good, of in totals]
    if any(of == 0 for _, of in totals) or not all(sum(column) for column in zip(*table, strict=True)):
        return 1.0
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def question(ours: Rollouts, theirs: Rollouts) -> Note:
    """Which question the two sides' devices answer: the whole stack, or the trained weights alone."""
    seen: Mapping[str, list[str]] = {side: sorted({episode.device for episode in rollouts.episodes} - {""})
                                     for side, rollouts in (("baseline", ours), ("candidate", theirs))}
    if not all(seen.values()):
        return note("loop-question-unsaid")
    if seen["baseline"] == seen["candidate"]:
        return note("loop-question-weights", device=listed(seen["baseline"]))
    return note("loop-question-stack", baseline=listed(seen["baseline"]), candidate=listed(seen["candidate"]))
