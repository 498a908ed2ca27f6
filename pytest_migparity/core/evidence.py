"""Evidence tables and where they come from. Arrays are numpy's, but importing this module imports none of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .outputs import ActionRules
from .verdict import Note, Witness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

FAMILIES = ("dense", "moe", "dropout")

Table = TypeVar("Table", covariant=True)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One training log: `step` strictly increasing, every column as long as it.

    `columns` holds `loss` and, where the log has them, `grad_norm`, `lr`, ... as float64. `quantum[name]` is the size
    of one unit in the last printed place, row by row: 0 would be exact, NaN says that nothing was logged in that cell.
    `interval` is the usual distance between logged steps. A printed loss is the mean over `window` steps. `joints` are
    the first steps after each resume of the run, `replaced` the losses that a resume took the place of, by step.
    """

    step: Ints
    columns: Mapping[str, Floats]
    quantum: Mapping[str, Floats]
    interval: int = 1
    window: int = 1
    joints: tuple[int, ...] = ()
    replaced: Mapping[int, float] = field(default_factory=dict)

    @property
    def loss(self) -> Floats:
        """The judged series."""
        return self.columns["loss"]


@dataclass(frozen=True, slots=True)
class EnvLock:
    """One side's environment as `host.envlock` wrote it, one document per rank (usually one)."""

    ranks: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Recorded(Generic[Table]):
    """One artifact as read: the table, whose it is, and what the reader did to it."""

    table: Table
    witness: Witness
    repairs: tuple[Note, ...] = ()
    repaired: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Evidence(Generic[Table]):
    """One side's evidence of one kind.

    `runs` is one in strict mode and several in weak mode, `reruns` are repeats of the same side for floors, `problems`
    say why evidence is missing or cannot be trusted: with any of them a level cannot pass. `beside` are the witnesses
    of files that belong to a run without being its first.
    """

    side: str
    kind: str
    runs: tuple[Recorded[Table], ...] = ()
    reruns: tuple[Recorded[Table], ...] = ()
    problems: tuple[Note, ...] = ()
    beside: tuple[Witness, ...] = ()

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """Whose evidence this is, run by run, and of what was judged beside."""
        return (*(run.witness for run in self.runs), *self.beside)


@dataclass(frozen=True, slots=True)
class EnvRules:
    """What must match between two environments and what may differ.

    `must_match` maps a package to a PEP 440 specifier or version, or "*" for "whatever it is, the same"; `may_differ`
    holds fnmatch patterns; `overrides` maps a declared exception on one side to its reason.
    """

    must_match: Mapping[str, str] = field(default_factory=dict)
    may_differ: tuple[str, ...] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    upstream_repo: str = ""
    upstream_commit: str = ""
    requested: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Policy:
    """How the model wants to be judged: the mode, the steps that must be covered, the rules of the environment.

    `interval` is the declared distance between logged steps: of `steps` steps every `interval`-th must be there.
    `first` is the first step that both sides have where they go on from one checkpoint. `family` says which good pairs
    the model's are like: dense, moe (mixture of experts) or dropout (random masks drawn in training, encoder-decoders).
    `world_size` is how many processes the recipe trains with; None where no recipe says so. `recipe` holds the numbers
    that the recipe states beside (lr, global_batch_size, ...).

    `precisions` are those that the recipe and the sides declare to compute in; the coarsest one decides what rounding
    explains. `noise_names` and `pixel_names` are patterns of recorded inputs, `skipped` maps patterns of recorded
    tensors that exist on one side only to the reason. `tied_left_out`: a file may leave out what is tied to another
    tensor; `cast`: one side holds the weights rounded to this dtype. `checkpoint` is what both sides start from,
    `resume` whether they go on with a run (None: not said), `new_tensors` patterns of what the checkpoint need not
    fill. `has_dataset`: the recipe names a data set, whose
    identity L1 must see. `actions` says which dimensions are grippers, rotations and joints. `tasks` are those of the
    closed loop's suite, empty where none is declared, `published` the rate that the official checkpoint is known for,
    `training_success` the one that its own training logged last.
    """

    mode: str = "strict"
    steps: int | None = None
    first: int | None = None
    interval: int = 1
    family: str | None = None
    world_size: int | None = None
    recipe: Mapping[str, float] = field(default_factory=dict)
    precisions: tuple[str, ...] = ()
    noise_names: tuple[str, ...] = ()
    pixel_names: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    tied_left_out: bool = False
    cast: str | None = None
    checkpoint: str = ""
    resume: bool | None = None
    new_tensors: tuple[str, ...] = ()
    has_dataset: bool = False
    actions: ActionRules = field(default_factory=ActionRules)
    tasks: tuple[str, ...] = ()
    published: float | None = None
    training_success: float | None = None
    env: EnvRules = field(default_factory=EnvRules)
