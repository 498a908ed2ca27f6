"""What is named by hand, without a manifest: two training logs, judged once or while they grow; msprobe's table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .assess import copied_reruns, judge_evidence
from .core.errors import UserError
from .core.evidence import Evidence, Policy, Recorded, Trajectory
from .core.levels import LEVELS
from .core.limits import Floors, default_limits
from .core.verdict import Outcome, Verdict, Witness
from .gather import read_in_place
from .judges.loss_floors import rerun_problems
from .trainlog import read_trajectory

SETTLED_AFTER = 100  # steps: those the departure weighs
PATIENCE = 3600.0  # seconds without a new row after which a log that is followed counts as ended


@dataclass(frozen=True, slots=True)
class Logs:
    """What to compare: the two logs, reruns of the baseline for floors, the series, and how it is to be judged."""

    baseline: Path
    candidate: Path
    reruns: tuple[Path, ...] = ()
    column: str = "loss"
    policy: Policy = field(default_factory=Policy)

    def judge(self, *, so_far: bool = False) -> Verdict:
        """The verdict on the logs as they are now; `so_far`: on the steps that both have, the rest is still to come.

        UserError for a file that is no log.
        """
        ours, theirs = self._read(self.baseline, "baseline"), self._read(self.candidate, "candidate")
        ours = replace(ours, reruns=tuple(self._read(path, "baseline").runs[0] for path in self.reruns))
        theirs = replace(theirs, problems=tuple(copied_reruns(ours, theirs)))
        intervals = {side.runs[0].table.interval for side in (ours, theirs)}
        policy = replace(self.policy, interval=intervals.pop() if len(intervals) == 1 else 1)
        if ours.reruns:
            ours = replace(ours, problems=tuple(rerun_problems(ours, policy.steps)))
        if so_far:
            last = min(int(side.runs[0].table.step[-1]) for side in (ours, theirs))
            ours, theirs = _until(ours, last), _until(theirs, last)
        finding = judge_evidence("L5", ours, theirs, limits=default_limits(LEVELS["L5"]),
                                 floors=self._floors(ours), policy=replace(policy, steps=None) if so_far else policy)
        return Verdict("L5", "difftraj", "main", finding, (*ours.witnesses, *theirs.witnesses))

    def _read(self, path: Path, side: str) -> Evidence[Trajectory]:
        """A log, or a TensorBoard folder, given by hand: manual evidence."""
        files = read_in_place(path)
        witness = Witness(side, "manual", path.name, files[0].sha256)
        return Evidence(side, "loss", (read_trajectory(files, witness, self.column),))

    def _floors(self, baseline: Evidence[Trajectory]) -> Floors:
        if not baseline.reruns:
            return Floors()
        runs = (*baseline.runs, *baseline.reruns)
        if len({run.witness.sha256 for run in runs}) < len(runs):
            raise UserError("a rerun is the same file as the baseline or another rerun: it measures no floor; "
                            "name the logs of runs of their own")
        from .judges.difftraj import floors_of

        return floors_of([run.table for run in runs], steps=self.policy.steps)


def judge_msprobe_table(path: Path) -> Verdict:
    """The verdict of L3 on one of msprobe's comparison tables, named by hand; UserError for a file that is none."""
    from .judges.compared import judge_comparison
    from .readers.msprobe_compare import read_comparison

    (file,) = read_in_place(path)
    with file.open() as stream:
        table, repairs = read_comparison(stream, str(path))
    recorded = Recorded(table, Witness("candidate", "manual", path.name, file.sha256), repairs)
    finding = judge_comparison(Evidence("candidate", "forward", (recorded,)), limits=default_limits(LEVELS["L3"]),
                               floors=Floors(), policy=Policy())
    return Verdict("L3", "diffmsprobe", "main", finding, (recorded.witness,))


def _until(side: Evidence[Trajectory], last: int) -> Evidence[Trajectory]:
    """The rows up to step `last`."""
    run = side.runs[0]
    kept = run.table.step <= last
    table = replace(run.table, step=run.table.step[kept],
                    columns={name: values[kept] for name, values in run.table.columns.items()},
                    quantum={name: values[kept] for name, values in run.table.quantum.items()})
    return replace(side, runs=(replace(run, table=table),))


def follow(logs: Logs, *, every: float, patience: float = PATIENCE, sleep: Callable[[float], None] = time.sleep
           ) -> Iterator[tuple[Verdict, bool]]:
    """(verdict, final) each time one of the logs has grown; both may still be empty or not yet there.

    Final are a FAIL that no later step can mend, and the verdict on the whole once both logs have the last step
    (`policy.steps`, else the longer log's end when neither grows for `patience` seconds).
    """
    seen: Sequence[tuple[int, int]] = ()
    waited = 0.0
    while True:
        now = [_size(path) for path in (logs.baseline, logs.candidate)]
        if now == seen and waited >= patience:
            yield logs.judge(), True
            return
        if now != seen:
            seen, waited = now, 0.0
            verdict = _so_far(logs)
            if verdict is not None:
                whole = verdict if logs.policy.steps is None else logs.judge()
                coverage = whole.finding.coverage
                done = whole is not verdict and coverage.compared >= coverage.of > 0
                final = done or _settled(verdict)
                yield (whole if done else verdict), final
                if final:
                    return
        sleep(every)
        waited += every


def _settled(verdict: Verdict) -> bool:
    """Is this FAIL there to stay? NaN is, and any after the weighed steps.

    Of 283 labelled good pairs 13 fail on their first 10 steps, 9 on 20, 7 on 50, and 6 in the end.
    """
    if verdict.outcome is not Outcome.FAIL:
        return False
    broken = any(item.code in ("loss-non-finite", "loss-not-positive") for item in verdict.finding.notes)
    return broken or verdict.finding.coverage.compared > SETTLED_AFTER


def _so_far(logs: Logs) -> Verdict | None:
    """The verdict on the rows there are; None while a log has none yet."""
    try:
        return logs.judge(so_far=True)
    except UserError:
        return None


def _size(path: Path) -> tuple[int, int]:
    """(bytes, time of the last change) of a file, or of all files in a folder."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    states = [each.stat() for each in files]
    return sum(state.st_size for state in states), max((state.st_mtime_ns for state in states), default=0)
