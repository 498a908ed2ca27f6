"""Fetch -> read -> judge for one level of one model: what the fixtures, the command line and watch share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeVar

from .core.dumped import Dump
from .core.errors import UserError
from .core.evidence import EnvLock, Evidence, Policy, Recorded, Trajectory
from .core.levels import Direction, level_named
from .core.limits import Floor, Floors, Limits, default_limits
from .core.outputs import OutputSet
from .core.verdict import Coverage, Finding, Note, Outcome, Verdict, Witness, note

if TYPE_CHECKING:
    from .core.manifest import Manifest
    from .gather import Gathered, GatheredFile, Wanted
    from .judges.identity import Identity
    from .judges.provenance import Witnesses
    from .judges.recorded import Run
    from .readers.reading import Reading

Table = TypeVar("Table")

_JUDGES = {"L0": ("envmatch", "judge_env"), "L1": ("identity", "judge_identity"), "L2": ("inputs", "judge_inputs"),
           "L3": ("forward", "judge_forward"), "L4": ("onestep", "judge_step"), "L5": ("difftraj", "judge_loss"),
           "L6": ("action_error", "judge_actions")}

_DUMP_JUDGES = {"L3": ("dumped", "judge_dumped_forward")}


@dataclass(frozen=True, slots=True)
class Handle(Generic[Table]):
    """Evidence that is fetched and read when a judge asks for it. `place` is its site in full, where that is known."""

    side: str
    kind: str
    case: str
    fetch: Callable[[], Evidence[Table]]
    place: str = ""

    def load(self) -> Evidence[Table]:
        """Fetch and read; what goes wrong is in the evidence's `problems`."""
        return self.fetch()


@dataclass(frozen=True, slots=True)
class Side:
    """One side of one model: `base` is the folder that relative sites start from, `site` overrides the manifest's."""

    manifest: Manifest
    name: str
    base: Path
    site: str | None = None
    site_base: Path = field(default_factory=Path.cwd)

    def _place(self, kind: str) -> tuple[str, Path]:
        if self.site is not None:
            return self.site, self.site_base
        table = self.manifest.side(self.name)
        own = table.artifacts.get(kind)
        return (own.site if own else table.site), self.base

    def _where(self, kind: str) -> str:
        """The site in full, to tell whether both sides are read from one place."""
        url, base = self._place(kind)
        return str((base / url.removeprefix("file:")).resolve()) if url.startswith("file:") else url

    def env(self) -> Handle[EnvLock]:
        """The environment lock."""
        return Handle(self.name, "env", "main", self._read_env, self._where("env"))

    def loss(self, series: str = "main") -> Handle[Trajectory]:
        """The training log of one series."""
        return Handle(self.name, "loss", series, lambda: self._read_loss(series), self._where("loss"))

    def weights(self) -> Handle[Identity]:
        """The digests of weights and data."""
        return Handle(self.name, "weights", "main", self._read_identity, self._where("weights"))

    def inputs(self) -> Handle[Run | Dump]:
        """The recorded tensors that the model was given."""
        return self._recorded("inputs")

    def forward(self) -> Handle[Run | Dump]:
        """The recorded outputs of the model's modules."""
        return self._recorded("forward")

    def step(self) -> Handle[Run | Dump]:
        """The recorded optimizer steps: losses, gradients, updates."""
        return self._recorded("step")

    def actions(self, task: str = "main") -> Handle[OutputSet]:
        """What the model gave for chosen samples of one task."""
        return Handle(self.name, "actions", task, lambda: self._read_actions(task), self._where("actions"))

    def _recorded(self, kind: str) -> Handle[Run | Dump]:
        return Handle(self.name, kind, "main", lambda: self._read_recording(kind), self._where(kind))

    def _read_identity(self) -> Evidence[Identity]:
        from .gather import Wanted
        from .judges.identity import Identity
        from .readers.tensors import read_digests

        found = {kind: self._gather(Wanted(kind)) for kind in ("weights", "data")}
        optional = not self.manifest.recipe.dataset and not found["data"].files
        problems = [*found["weights"].problems, *(() if optional else found["data"].problems)]
        files = [file for kind in found.values() for file in kind.files]
        runs: tuple[Recorded[Identity], ...] = ()
        if files:
            try:
                opened = {file.name: file.open for file in files}
                digests = read_digests({name: file for name, file in opened.items() if not _is_start(name)})
                witness = found["weights"].witness(self.name, files[0])
                runs = (Recorded(Identity(digests, _start_of_run(opened)), witness),)
            except UserError as error:
                problems.append(note("evidence-unreadable", side=self.name, kind="weights", why=str(error)))
        more = tuple(found["data"].witness(self.name, file) for file in found["data"].files)
        return Evidence(self.name, "weights", runs, problems=_on_side(problems, self.name), beside=more if runs else ())

    def _read_recording(self, kind: str) -> Evidence[Run | Dump]:
        from .gather import Wanted
        from .readers.msprobe_dump import read_dump
        from .readers.tensors import read_recordings

        found = self._gather(Wanted(kind))
        problems = list(found.problems)
        read: dict[int, Recorded[Run | Dump]] = {}
        for rerun in sorted({file.rerun for file in found.files}):
            files = [file for file in found.files if file.rerun == rerun]
            try:
                opened = {file.name: file.open for file in files}
                repairs: tuple[Note, ...] = ()
                table: Run | Dump
                if files[0].name.endswith("dump.json"):
                    table, repairs = read_dump(opened)
                else:
                    table = read_recordings(opened)
                read[rerun] = Recorded(table, found.witness(self.name, files[0]), repairs)
            except UserError as error:
                problems.append(note("evidence-unreadable", side=self.name, kind=kind, why=str(error)))
        runs = (read.pop(0),) if 0 in read else ()
        return Evidence(self.name, kind, runs, tuple(read.values()), _on_side(problems, self.name))

    def _read_actions(self, task: str) -> Evidence[OutputSet]:
        from .gather import Wanted
        from .readers.actions import read_actions

        tasks = self.manifest.cases("task")
        if task not in tasks:
            raise UserError(f"{self.manifest.name} has no task {task!r}; declared: {', '.join(tasks)}")
        found = self._gather(Wanted("actions"))
        problems = list(found.problems)
        read: dict[int, Recorded[OutputSet]] = {}
        for rerun in sorted({file.rerun for file in found.files}):
            files = [file for file in found.files if file.rerun == rerun]
            try:
                table = read_actions({file.name: file.open for file in files})
                of_task = table.of_task(task, tasks)
                if of_task is None:
                    problems.append(note("actions-task-unsaid", task=task))
                elif not of_task.sample:
                    problems.append(note("actions-task-absent", task=task,
                                         names=", ".join(sorted({*table.task})[:5]) or "-"))
                else:
                    read[rerun] = Recorded(of_task, found.witness(self.name, files[0]))
            except UserError as error:
                problems.append(note("evidence-unreadable", side=self.name, kind="actions", why=str(error)))
        runs = (read.pop(0),) if 0 in read else ()
        return Evidence(self.name, "actions", runs, tuple(read.values()), _on_side(problems, self.name))

    def _gather(self, wanted: Wanted) -> Gathered:
        from .gather import gather
        from .wire.receipt import recipe_hash

        url, base = self._place(wanted.kind)
        found = gather(url, base, wanted, recipe_hash(self.manifest.recipe.canonical()))
        draws = found.receipt.draws if found.receipt else None
        if draws is None or draws.mode == "keyed" or self.manifest.recipe.noise != "injected" or wanted.kind == "env":
            return found
        why = "; ".join([*draws.reasons, *(f"{site} {count} times" for site, count in sorted(draws.outside.items()))])
        return replace(found, problems=(*found.problems, note("draws-unkeyed", kind=wanted.kind, why=why[:300])))

    def _read_env(self) -> Evidence[EnvLock]:
        from .gather import Wanted
        from .readers.env import read_env
        from .wire.env import MAX_BYTES, EnvError

        found = self._gather(Wanted("env"))
        problems = list(found.problems)
        runs: list[Recorded[EnvLock]] = []
        if found.files:
            try:
                lock = read_env({file.name: _start_of(file, MAX_BYTES + 1) for file in found.files})
                runs.append(Recorded(lock, found.witness(self.name, found.files[0])))
            except (EnvError, UserError) as error:
                problems.append(note("evidence-unreadable", side=self.name, kind="env", why=str(error)))
        return Evidence(self.name, "env", tuple(runs), problems=_on_side(problems, self.name))

    def _read_loss(self, series: str) -> Evidence[Trajectory]:
        from .core.manifest import SeriesTable
        from .gather import Wanted

        if series not in self.manifest.cases("series"):
            raise UserError(f"{self.manifest.name} has no series {series!r}; "
                            f"declared: {', '.join(self.manifest.cases('series'))}")
        table = self.manifest.series.get(series, SeriesTable())
        others = [other for name, other in self.manifest.series.items() if name != series]
        found = self._gather(Wanted(
            "loss", series, table.file, claimed=frozenset(other.file for other in others if other.file),
            sole=not others or (table.file is None and all(other.file for other in others))))
        problems = list(found.problems)
        by_run: dict[int, list[GatheredFile]] = {}
        for file in found.files:
            by_run.setdefault(file.rerun, []).append(file)
        read: dict[int, Recorded[Trajectory]] = {}
        for rerun, files in sorted(by_run.items()):
            try:
                read[rerun] = read_trajectory(files, found.witness(self.name, files[0]), table.column, table.format,
                                              table.step_offset)
            except UserError as error:
                problems.append(note("evidence-unreadable", side=self.name, kind="loss", why=str(error)))
        weak = self.manifest.policy(series).mode == "weak"  # several runs are then the evidence, not a floor
        runs = tuple(recorded for rerun, recorded in read.items() if weak or rerun == 0)
        reruns = tuple(recorded for rerun, recorded in read.items() if not weak and rerun > 0)
        return Evidence(self.name, "loss", runs, reruns, _on_side(problems, self.name))


def read_trajectory(files: Sequence[GatheredFile], witness: Witness, column: str = "loss", format: str | None = None,
                    step_offset: int = 0) -> Recorded[Trajectory]:
    """One training log as read: one file, or one TensorBoard folder's event files. UserError where it is no log."""
    reading = read_log(files, column, format, step_offset)
    return Recorded(reading.table, witness, reading.repairs, reading.repaired, reading.dropped)


def read_log(files: Sequence[GatheredFile], column: str = "loss", format: str | None = None,
             step_offset: int = 0) -> Reading:
    """As `read_trajectory`, with the report of what the reader did."""
    if all("tfevents" in file.name for file in files):
        from .readers.loss_tensorboard import read_events

        return read_events({file.name: file.open for file in files}, column=column, step_offset=step_offset)
    if len(files) > 1:
        raise UserError(f"{', '.join(file.name for file in files)}: one training log is one file, or event files")
    from .readers.loss import read_loss

    with files[0].open() as stream:
        return read_loss(stream, files[0].name, column=column, format=format, step_offset=step_offset)


def _start_of(file: GatheredFile, most: int) -> bytes:
    with file.open() as stream:
        return stream.read(most)


def _is_start(name: str) -> bool:
    return Path(name).name == "provenance.json"


def _start_of_run(opened: Mapping[str, Callable[[], BinaryIO]]) -> Witnesses | None:
    """What a side says of how its run started; UserError where its document cannot be read."""
    from .judges.provenance import Witnesses
    from .readers.restored import restored_in
    from .wire.provenance import MAX_BYTES, ProvenanceError, parse

    name = next((name for name in opened if _is_start(name)), None)
    if name is None:
        return None
    with opened[name]() as stream:
        raw = stream.read(MAX_BYTES + 1)
    try:
        document = parse(raw.decode("utf-8"))
    except (UnicodeDecodeError, ProvenanceError) as error:
        raise UserError(f"{name}: {error}") from None
    return Witnesses(document.asked, restored_in(document.lines), document.weights)


def _on_side(problems: list[Note], side: str) -> tuple[Note, ...]:
    from .gather import writable

    return tuple(Note(item.code, {"side": side, **{key: writable(value) if isinstance(value, str) else value
                                                   for key, value in item.params.items()}}) for item in problems)


def judge_evidence(level: str, baseline: Evidence[Any], candidate: Evidence[Any], *, limits: Limits, floors: Floors,
                   policy: Policy) -> Finding:
    """Run the level's judge, and keep it from passing, or failing, on evidence that cannot be trusted."""
    level_named(level)
    if level not in _JUDGES:
        raise UserError(f"{level} has no judge yet; levels that exist: {', '.join(_JUDGES)}")
    problems = [*baseline.problems, *candidate.problems, *_mixed(baseline, candidate)]
    if not baseline.runs or not candidate.runs:
        return Finding(Outcome.INCONCLUSIVE, (), Coverage(candidate.kind, 0, 0), notes=tuple(problems),
                       mode=policy.mode)
    dumps = [isinstance(side.runs[0].table, Dump) for side in (baseline, candidate)]
    if any(dumps) and not (all(dumps) and level in _DUMP_JUDGES):
        why = note("dump-one-sided") if not all(dumps) else note("dump-not-judged", level=level)
        return Finding(Outcome.INCONCLUSIVE, (), Coverage(candidate.kind, 0, 0), notes=(*problems, why),
                       mode=policy.mode)
    module, name = (_DUMP_JUDGES if all(dumps) else _JUDGES)[level]
    judge = getattr(import_module(f".judges.{module}", __package__), name)
    finding: Finding = judge(baseline, candidate, limits=limits, floors=floors, policy=policy)
    if not problems:
        return finding
    known = [item for item in finding.notes if item not in problems]
    return replace(finding, outcome=Outcome.INCONCLUSIVE, notes=(*problems, *known))


def _mixed(baseline: Evidence[Any], candidate: Evidence[Any]) -> list[Note]:
    """Rehearsal evidence answers only rehearsal evidence."""
    theirs = [{witness.producer for witness in side.witnesses} for side in (baseline, candidate)]
    if all(theirs) and ("rehearsal" in theirs[0]) != ("rehearsal" in theirs[1]):
        return [note("producers-mixed", baseline=", ".join(sorted(theirs[0])), candidate=", ".join(sorted(theirs[1])))]
    return []


def copied_reruns(baseline: Evidence[Any], candidate: Evidence[Any]) -> list[Note]:
    """A candidate's log that is listed as the baseline's rerun would measure its own difference as the floor.

    Rehearsals are repeatable to the bit, and a rerun may honestly equal the other side's run.
    """
    runs = [run for run in candidate.runs if run.witness.producer != "rehearsal"]
    return [note("rerun-is-run", file=rerun.witness.name) for rerun in baseline.reruns
            if any(_repeats(rerun, run) for run in runs)]


def _repeats(one: Recorded[Any], other: Recorded[Any]) -> bool:
    """The same bytes, or another file with the same losses or outputs in every bit."""
    if one.witness.sha256 == other.witness.sha256:
        return True
    if isinstance(one.table, OutputSet) and isinstance(other.table, OutputSet):
        return one.table.same_values(other.table)
    if not isinstance(one.table, Trajectory) or not isinstance(other.table, Trajectory):
        return False
    import numpy as np

    return np.array_equal(one.table.step, other.table.step) and np.array_equal(one.table.loss, other.table.loss)


def measured_floors(level: str, baseline: Evidence[Any], manifest: Manifest) -> Floors:
    """The manifest's floors, and those that the baseline's reruns show; the larger of the two.

    Reruns of the candidate lift no limit: a migrated side that cannot repeat itself must not be excused by that.
    """
    declared = manifest.declared_floors(level)
    if not baseline.runs or not baseline.reruns:
        return declared
    if level == "L5":
        from .judges.difftraj import floors_of

        found = floors_of([recorded.table for recorded in (*baseline.runs, *baseline.reruns)],
                          steps=manifest.recipe.steps)
    else:
        found = _repeated(level, baseline, manifest.policy())
    by_check = dict(declared.by_check)
    for name, floor in found.by_check.items():
        if name not in by_check or floor.value > by_check[name].value:
            by_check[name] = floor
    return Floors(by_check, found.by_step)


def _repeated(level: str, baseline: Evidence[Any], policy: Policy) -> Floors:
    """How far the level's judge finds each rerun of the baseline from its run, check by check."""
    largest: dict[str, float] = {}
    limits = default_limits(level_named(level))
    for rerun in baseline.reruns:
        again = replace(baseline, runs=(rerun,), reruns=(), problems=())
        finding = judge_evidence(level, replace(baseline, reruns=(), problems=()), again, limits=limits,
                                 floors=Floors(), policy=policy)
        for check in finding.checks:
            if check.limit is not None and check.limit.direction is Direction.MAX and math.isfinite(check.value):
                largest[check.name] = max(check.value, largest.get(check.name, 0.0))
    runs = 1 + len(baseline.reruns)
    return Floors({name: Floor(value, f"{runs} runs of the baseline", runs, len(baseline.reruns))
                   for name, value in largest.items()})


def refused(level: str, model: str, case: str, why: str) -> Verdict:
    """The verdict where the question itself was wrong: nothing was compared."""
    finding = Finding(Outcome.INCONCLUSIVE, (), Coverage(level_named(level).kinds[0], 0, 0),
                      notes=(note("judge-refused", why=why),))
    return Verdict(level, model, case, finding)


def assess(level: str, baseline: Handle[Any], candidate: Handle[Any], *, manifest: Manifest,
           limits: Limits, case: str | None = None) -> Verdict:
    """One level of one model, from the two sides' handles to the verdict; `case`, where given, is what they must be."""
    case = getattr(baseline, "case", None) if case is None else case
    for handle in (baseline, candidate):
        if not isinstance(handle, Handle):
            raise UserError(f"judge() was given {type(handle).__name__}; give it evidence of both sides, "
                            "e.g. judge(baseline.loss(series), candidate.loss(series))")
        if handle.kind not in level_named(level).kinds:
            raise UserError(f"{level} judges {' and '.join(level_named(level).kinds)}, and was given {handle.kind}")
        if handle.case != case:
            raise UserError(f"the case {case!r} was given the {handle.kind} of {handle.case!r}")
    if (baseline.side, candidate.side) != ("baseline", "candidate"):
        raise UserError(f"judge(baseline, candidate) was given the {baseline.side} and then the {candidate.side}")
    if baseline.kind != candidate.kind:
        raise UserError(f"judge() was given {baseline.kind} of the baseline and {candidate.kind} of the candidate")
    ours, theirs = baseline.load(), candidate.load()
    if baseline.place and baseline.place == candidate.place:
        theirs = replace(theirs, problems=(*theirs.problems, note("same-site", site=Path(baseline.place).name)))
    theirs = replace(theirs, problems=(*theirs.problems, *copied_reruns(ours, theirs)))
    if level == "L5" and ours.runs and ours.reruns:
        from .judges.loss_floors import rerun_problems

        ours = replace(ours, problems=(*ours.problems, *rerun_problems(ours, manifest.recipe.steps)))
    finding = judge_evidence(level, ours, theirs, limits=limits, floors=measured_floors(level, ours, manifest),
                             policy=manifest.policy(baseline.case))
    return Verdict(level, manifest.name, baseline.case, finding, (*ours.witnesses, *theirs.witnesses))
