"""The manifest `model.toml`: one model under verification, read into frozen types, every mistake named by its key.

The one module of `core` that imports pydantic; whoever needs a manifest imports it inside a function.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, field_validator

from .errors import UserError, did_you_mean
from .evidence import EnvRules, Policy
from .levels import LEVELS, SIDES, Direction, Level
from .limits import Declared, Floor, Floors
from .manifest_actions import ActionsTable

FILE = "model.toml"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*(-[A-Za-z0-9_.]+)*")


Precision = Literal["float64", "float32", "tf32", "hf32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Upstream(_Table):
    """The official code, unpatched on the baseline."""

    repo: str
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")]


class ModelTable(_Table):
    """Who is verified. `notes` are open points that every report of the model should carry in mind.

    `family`: how much two good runs of such a model differ (core.evidence.Policy).
    """

    name: str
    title: str = ""
    family: Literal["dense", "moe", "dropout"] | None = None
    upstream: Upstream | None = None
    notes: list[str] = []

    @field_validator("name")
    @classmethod
    def _plain_name(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError("a name has letters, digits, '_', '.' and single '-'; no blanks, slashes or '@'")
        return value


class Asset(_Table):
    """A data set, checkpoint or simulator: what it is, how large, by which hash or commit it is known."""

    id: str
    bytes: Annotated[int, Field(gt=0)] | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    commit: str | None = None
    whole: bool | None = None
    layout: str | None = None
    note: str | None = None


class Recipe(_Table):
    """What both sides run. Its hash (`wire.receipt.recipe_hash` of `canonical()`) is in every receipt."""

    dataset: Asset | None = None
    checkpoint: Asset | None = None
    simulator: Asset | None = None
    seed: int | None = None
    steps: Annotated[int, Field(gt=0)] | None = None
    world_size: Annotated[int, Field(gt=0)] | None = None
    grad_accumulation: Annotated[int, Field(gt=0)] = 1
    precision: Precision | None = None
    noise: Literal["injected", "device", "none"] = "none"
    values: Mapping[str, str | int | FiniteFloat | bool] = {}

    def canonical(self) -> dict[str, Any]:
        """Only what was said, so that a key added to the schema later changes no existing hash."""
        return self.model_dump(exclude_unset=True, exclude_none=True)


class ArtifactTable(_Table):
    """One kind of artifact that lives at a site of its own."""

    site: str


class SideTable(_Table):
    """One side: a label for people, where its artifacts are, and what was declared to differ there.

    `precision`: what this side computes in, where it is not the recipe's.
    """

    label: str = ""
    site: str
    precision: Precision | None = None
    overrides: Mapping[str, str] = {}
    artifacts: Mapping[str, ArtifactTable] = {}


class WeightsTable(_Table):
    """L1: `tied_left_out` says that a checkpoint may leave out a tensor that is tied to another.

    `cast`: one side holds the other's weights rounded to this dtype; the wider side proves it with the digest of its
    own rounded copy. `layout`: the file, beside the manifest, of the map that brought one side's tensors to the other's
    names and layout. Both sides start from `checkpoint`, as a `resume` or not; what matches `new` it need not fill.
    """

    tied_left_out: bool = False
    cast: Literal["bfloat16", "float16", "float32"] | None = None
    layout: str = ""
    checkpoint: str = ""
    resume: bool | None = None
    new: list[str] = []


class RecordTable(_Table):
    """L2 to L4: patterns of recorded inputs that are noise or pixels, and of tensors that one side alone can have.

    `one_sided` maps such a pattern to the reason.
    """

    noise: list[str] = []
    pixels: list[str] = []
    one_sided: Mapping[str, str] = {}


class SeriesTable(_Table):
    """One loss series: its file (relative to the site), reader, column, and what to subtract from its step numbers.

    `interval`: the log prints every so many steps. `first_step`: both sides go on from one checkpoint, with this step.
    """

    file: str | None = None
    format: str | None = None
    column: str = "loss"
    step_offset: int = 0
    interval: Annotated[int, Field(gt=0)] = 1
    first_step: Annotated[int, Field(ge=0)] | None = None
    title: str = ""


class TaskTable(_Table):
    """One task of the closed loop."""

    title: str = ""


Share = Annotated[float, Field(ge=0, le=1)]


class RolloutsTable(_Table):
    """L7: the episodes' file below the site; rates (0 to 1) that the official checkpoint is known for.

    `published`: by its authors; `training_success`: by the last evaluation in its own training log.
    """

    file: str | None = None
    published: Share | None = None
    training_success: Share | None = None


class EnvTable(_Table):
    """The environment's rules; `requested` options must be effective on both sides."""

    must_match: Mapping[str, str] = {}
    may_differ: list[str] = []
    requested: Mapping[str, str] = {}


class LimitTable(_Table):
    """A limit or floor with its reason."""

    value: float
    because: str | None = None
    runs: Annotated[int, Field(gt=0)] = 1


class LadderTable(_Table):
    """Which levels settle the answer."""

    enough: list[str] = []


class Manifest(_Table):
    """A model as its `model.toml` declares it."""

    model: ModelTable
    recipe: Recipe = Recipe()
    baseline: SideTable
    candidate: SideTable
    series: Mapping[str, SeriesTable] = {}
    tasks: Mapping[str, TaskTable] = {}
    env: EnvTable = EnvTable()
    weights: WeightsTable = WeightsTable()
    record: RecordTable = RecordTable()
    actions: ActionsTable = ActionsTable()
    rollouts: RolloutsTable = RolloutsTable()
    limits: Mapping[str, Mapping[str, LimitTable | float]] = {}
    floors: Mapping[str, Mapping[str, LimitTable | float]] = {}
    ladder: LadderTable = LadderTable()

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    def side(self, side: str) -> SideTable:
        """The baseline's or the candidate's table."""
        return self.baseline if side == "baseline" else self.candidate

    def cases(self, kind: Literal["series", "task"]) -> list[str]:
        """The declared cases in sorted order; `main` where none is declared."""
        return sorted(self.series if kind == "series" else self.tasks) or ["main"]

    def declared_limits(self, level: str) -> dict[str, Declared]:
        """The manifest's own limits of one level."""
        return {name: Declared(value, "manifest", because)
                for name, value, because, _ in _numbers(self.limits.get(level, {}))}

    def declared_floors(self, level: str) -> Floors:
        """Floors measured earlier and written into the manifest."""
        return Floors({name: Floor(value, because or "manifest", runs, max(1, runs * (runs - 1) // 2))
                       for name, value, because, runs in _numbers(self.floors.get(level, {}))})

    def policy(self, case: str = "main") -> Policy:
        """How judges are to treat this model, and the series of this case."""
        overrides = {**self.baseline.overrides, **self.candidate.overrides}
        upstream = self.model.upstream
        rules = EnvRules(
            must_match=self.env.must_match, may_differ=tuple(self.env.may_differ), overrides=overrides,
            upstream_repo=upstream.repo if upstream else "", upstream_commit=upstream.commit if upstream else "",
            requested=self.env.requested,
        )
        series = self.series.get(case, SeriesTable())
        declared = (self.recipe.precision, self.baseline.precision, self.candidate.precision)
        return Policy(precisions=tuple(name for name in declared if name), noise_names=tuple(self.record.noise),
                      pixel_names=tuple(self.record.pixels), skipped=self.record.one_sided,
                      tied_left_out=self.weights.tied_left_out, cast=self.weights.cast,
                      checkpoint=self.weights.checkpoint, resume=self.weights.resume,
                      new_tensors=tuple(self.weights.new),
                      has_dataset=self.recipe.dataset is not None, actions=self.actions.rules(),
                      tasks=tuple(sorted(self.tasks)), published=self.rollouts.published,
                      training_success=self.rollouts.training_success,
                      mode="weak" if self.recipe.noise == "device" else "strict", steps=self.recipe.steps,
                      first=series.first_step, interval=series.interval, family=self.model.family,
                      world_size=self.recipe.world_size, env=rules,
                      recipe={name: float(value) for name, value in self.recipe.values.items()
                              if isinstance(value, (int, float)) and not isinstance(value, bool)})


def _numbers(table: Mapping[str, LimitTable | float]) -> Iterator[tuple[str, float, str | None, int]]:
    for name, item in table.items():
        if isinstance(item, LimitTable):
            yield name, item.value, item.because, item.runs
        else:
            yield name, item, None, 1


def load_manifest(path: Path) -> Manifest:
    """Read a manifest file; UserError names the file, the key, what was found and what to do."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        data = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None
    try:
        manifest = Manifest.model_validate(data)
    except ValidationError as error:
        raise UserError(f"{path}: {_explain(error)}") from None
    for problem in _contradictions(manifest):
        raise UserError(f"{path}: {problem}")
    return manifest


def _explain(error: ValidationError) -> str:
    """Every problem of a manifest on a line of its own: key, what was found, what was expected."""
    lines = []
    for item in error.errors(include_url=False):
        where = [str(part) for part in item["loc"] if part not in ("LimitTable", "float")]
        key = ".".join(where)
        if item["type"] == "extra_forbidden":
            lines.append(f"unknown key {key}; {did_you_mean(where[-1], _known_keys(where[:-1]))}")
        elif item["type"] == "missing":
            lines.append(f"missing key {key}; add it")
        else:
            lines.append(f"{key} = {item['input']!r}: {item['msg'].removeprefix('Value error, ')}")
    return "\n  ".join(dict.fromkeys(lines))


def _known_keys(where: list[str]) -> set[str]:
    """The keys the schema knows at a place."""
    table: Any = Manifest
    for part in where:
        annotation = table.model_fields[part].annotation if part in getattr(table, "model_fields", {}) else table
        table = _table_in(annotation) or table
    return set(table.model_fields)


def _table_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_table_in(argument) for argument in getattr(annotation, "__args__", ()))
    return next((table for table in found if table), None)


def _contradictions(manifest: Manifest) -> Iterator[str]:
    """What the schema alone cannot see."""
    for name in manifest.ladder.enough:
        if name not in LEVELS:
            yield f"[ladder] enough names {name!r}; {did_you_mean(name, LEVELS)}"
    for table, entries in (("limits", manifest.limits), ("floors", manifest.floors)):
        for level_name, checks in entries.items():
            if level_name not in LEVELS:
                yield f"[{table}.{level_name}]: no such level; {did_you_mean(level_name, LEVELS)}"
                continue
            yield from _bad_numbers(table, LEVELS[level_name], checks)
    for kind in (kind for side in SIDES for kind in manifest.side(side).artifacts):
        kinds = {kind for level in LEVELS.values() for kind in level.kinds}
        if kind not in kinds:
            yield f"artifacts.{kind}: no such kind of artifact; {did_you_mean(kind, kinds)}"
    for side in SIDES:
        for place in (manifest.side(side).site, *(own.site for own in manifest.side(side).artifacts.values())):
            if ":" not in place:
                yield f"{side}: site {place!r} is no URL; for a folder or file on this machine write file:{place}"
    for name in (*manifest.series, *manifest.tasks):
        if not _NAME.fullmatch(name):
            yield f"series or task {name!r}: a name has letters, digits, '_', '.' and single '-'"


def _bad_numbers(table: str, level: Level, checks: Mapping[str, LimitTable | float]) -> Iterator[str]:
    for name, value, because, _ in _numbers(checks):
        where = f"[{table}.{level.name}] {name}"
        known = (*level.checks, *level.figures) if table == "floors" else tuple(level.checks)
        if name not in known:
            yield f"{where}: no such check; {did_you_mean(name, known)}"
            continue
        if name in level.figures:
            yield from _bad_figure(where, name, value, because, level.figures[name])
            continue
        spec = level.checks[name]
        shown = f"{where} = {value:g}"
        # a floor of a correlation is a distance from 1
        problem = spec.refuses(value if table == "limits" or spec.direction is Direction.MAX else 1 - value)
        if not math.isfinite(value) or value < 0:
            yield f"{shown}: expected a finite number, 0 or more"
        elif problem:
            yield f"{shown}: {problem}"
        elif table == "floors" and not (because or "").strip():
            yield (f"{shown}: say where it was measured: "
                   f'{name} = {{value = {value:g}, because = "5 reruns on ...", runs = 5}}')
        elif table == "limits" and spec.looser(value, spec.default) and not (because or "").strip():
            yield (f"{shown} is looser than the published {spec.default:g}; "
                   f'say why: {name} = {{value = {value:g}, because = "..."}}')


def _bad_figure(where: str, name: str, value: float, because: str | None, largest: float) -> Iterator[str]:
    """What is wrong with the floor of a statistic that has no limit."""
    if not math.isfinite(value) or value < 0:
        yield f"{where} = {value:g}: expected a finite number, 0 or more"
    elif value > largest:
        yield f"{where} = {value:g}: beyond {largest:g}, which no reason excuses"
    elif not (because or "").strip():
        yield (f"{where} = {value:g}: say where it was measured: "
               f'{name} = {{value = {value:g}, because = "5 reruns on ...", runs = 5}}')
