"""One side of one model: from its sites to the tables of each kind of evidence, fetched and read when asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Generic, TypeVar

from .core.dumped import Dump
from .core.errors import UserError
from .core.evidence import EnvLock, Evidence, Recorded, Trajectory
from .core.verdict import Note, note

if TYPE_CHECKING:
    from .core.manifest import Manifest
    from .core.outputs import OutputSet
    from .gather import Gathered, GatheredFile, Wanted
    from .judges.identity import Identity
    from .judges.provenance import Witnesses
    from .judges.recorded import Run
    from .wire.layout import Layout
    from .wire.rollouts import Rollouts

Table = TypeVar("Table")
Opened = dict[str, Callable[[], BinaryIO]]


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

    def weights(self) -> Handle[Identity | Dump]:
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

    def rollouts(self) -> Handle[Rollouts]:
        """The episodes of the closed loop."""
        return Handle(self.name, "rollouts", "main", self._read_rollouts, self._where("rollouts"))

    def _recorded(self, kind: str) -> Handle[Run | Dump]:
        return Handle(self.name, kind, "main", lambda: self._read_recording(kind), self._where(kind))

    def _read_identity(self) -> Evidence[Identity | Dump]:
        from .gather import Wanted
        from .readers.msprobe import is_msprobe, read_msprobe

        found = {kind: self._gather(Wanted(kind)) for kind in ("weights", "data")}
        optional = not self.manifest.recipe.dataset and not found["data"].files
        problems = [*found["weights"].problems, *(() if optional else found["data"].problems)]
        files = [file for kind in found.values() for file in kind.files]
        runs: tuple[Recorded[Identity | Dump], ...] = ()
        if files:
            witness = found["weights"].witness(self.name, files[0])
            try:
                if is_msprobe(files[0].name):
                    table, repairs = read_msprobe(_opened(found["weights"].files))
                    runs = (Recorded(table, witness, repairs),)
                    problems += [note("dump-data", file=file.name) for file in found["data"].files]
                else:
                    identity = self._identity_of(_opened(files))
                    runs = (Recorded(identity, witness),)
                    problems += self._other_maps(identity)
            except UserError as error:
                problems.append(note("evidence-unreadable", side=self.name, kind="weights", why=str(error)))
        more = tuple(found["data"].witness(self.name, file) for file in found["data"].files)
        return Evidence(self.name, "weights", runs, problems=_on_side(problems, self.name), beside=more if runs else ())

    def _identity_of(self, opened: Mapping[str, Callable[[], BinaryIO]]) -> Identity:
        """The digests of a side, what it says of how its run started, and what the declared map leaves out."""
        from .judges.identity import Identity
        from .readers.tensors import read_digests

        digests = read_digests({name: file for name, file in opened.items() if not _is_start(name)})
        mapped = any(digest.layout for digest in digests.values())
        dropped = tuple(f"{', '.join(rule.sources)} ({rule.drop})" for rule in self._layout().rules
                        if rule.drop) if mapped and self.manifest.weights.layout else ()
        return Identity(digests, _start_of_run(opened), dropped)

    def _other_maps(self, identity: Identity) -> list[Note]:
        """Digests that were made through another layout map than the manifest's."""
        from .wire.layout import layout_hash

        found = {what: digest.layout for what, digest in identity.digests.items() if digest.layout}
        if not found:
            return []
        declared = layout_hash(self._layout()) if self.manifest.weights.layout else "none"
        return [note("identity-other-map", what=what, found=layout, declared=declared)
                for what, layout in found.items() if layout != declared]

    def _layout(self) -> Layout:
        """The map that the manifest names; UserError where it cannot be read."""
        from .wire.layout import MAX_TEXT, LayoutError, parse

        named = self.manifest.weights.layout
        try:
            with (self.base / named).open("rb") as stream:
                return parse(stream.read(4 * MAX_TEXT + 1).decode("utf-8"))
        except OSError as error:
            raise UserError(f"[weights] layout = {named!r}: {error.strerror or error}") from None
        except (UnicodeDecodeError, LayoutError) as error:
            raise UserError(f"[weights] layout = {named!r}: {error}") from None

    def _read_recording(self, kind: str) -> Evidence[Run | Dump]:
        from .gather import Wanted
        from .readers.msprobe import is_msprobe, read_msprobe
        from .readers.tensors import read_recordings

        def read(opened: Opened) -> tuple[Run | Dump, tuple[Note, ...]]:
            return read_msprobe(opened) if is_msprobe(next(iter(opened))) else (read_recordings(opened), ())

        return self._runs(Wanted(kind), read)

    def _read_rollouts(self) -> Evidence[Rollouts]:
        from .gather import Wanted
        from .readers.rollouts import read_rollouts

        return self._runs(Wanted("rollouts", file=self.manifest.rollouts.file), read_rollouts)

    def _read_actions(self, task: str) -> Evidence[OutputSet]:
        from .gather import Wanted
        from .readers.actions import read_actions

        tasks = self.manifest.cases("task")
        if task not in tasks:
            raise UserError(f"{self.manifest.name} has no task {task!r}; declared: {', '.join(tasks)}")
        missing: list[Note] = []

        def read(opened: Opened) -> tuple[OutputSet | None, tuple[Note, ...]]:
            table = read_actions(opened)
            of_task = table.of_task(task, tasks)
            if of_task is None:
                missing.append(note("actions-task-unsaid", task=task))
            elif not of_task.sample:
                names = ", ".join(sorted({*table.task})[:5]) or "-"
                missing.append(note("actions-task-absent", task=task, names=names))
                of_task = None
            return of_task, ()

        evidence = self._runs(Wanted("actions"), read)
        return replace(evidence, problems=(*evidence.problems, *_on_side(missing, self.name)))

    def _runs(self, wanted: Wanted, read: Callable[[Opened], tuple[Table | None, tuple[Note, ...]]]) -> Evidence[Table]:
        """The run and its reruns, each of whose files `read` makes one table of, or none."""
        found = self._gather(wanted)
        problems = list(found.problems)
        tables: dict[int, Recorded[Table]] = {}
        for rerun in sorted({file.rerun for file in found.files}):
            files = [file for file in found.files if file.rerun == rerun]
            try:
                table, repairs = read(_opened(files))
                if table is not None:
                    tables[rerun] = Recorded(table, found.witness(self.name, files[0]), repairs)
            except UserError as error:
                problems.append(note("evidence-unreadable", side=self.name, kind=wanted.kind, why=str(error)))
        runs = (tables.pop(0),) if 0 in tables else ()
        ranks = [found.witness(self.name, file) for file in found.files if file.rerun == 0][1:] if runs else ()
        return Evidence(self.name, wanted.kind, runs, tuple(tables.values()), _on_side(problems, self.name),
                        tuple(ranks))

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
        from .readers.msprobe import is_msprobe, read_packed_env
        from .wire.env import MAX_BYTES, EnvError

        found = self._gather(Wanted("env"))
        problems = list(found.problems)
        runs: list[Recorded[EnvLock]] = []
        if found.files:
            try:
                lock = read_packed_env(_opened(found.files)) if is_msprobe(found.files[0].name) else \
                    read_env({file.name: _start_of(file, MAX_BYTES + 1) for file in found.files})
                runs.append(Recorded(lock, found.witness(self.name, found.files[0])))
            except (EnvError, UserError) as error:
                problems.append(note("evidence-unreadable", side=self.name, kind="env", why=str(error)))
        return Evidence(self.name, "env", tuple(runs), problems=_on_side(problems, self.name))

    def _read_loss(self, series: str) -> Evidence[Trajectory]:
        from .core.manifest import SeriesTable
        from .gather import Wanted
        from .trainlog import read_trajectory

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


def _start_of(file: GatheredFile, most: int) -> bytes:
    with file.open() as stream:
        return stream.read(most)


def _opened(files: Sequence[GatheredFile]) -> Opened:
    return {file.name: file.open for file in files}


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
