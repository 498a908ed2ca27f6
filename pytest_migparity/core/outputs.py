"""What a model gave for samples it was asked about, and how a manifest says that actions are to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

ROTATIONS: Mapping[str, int] = {"axis-angle": 3, "quaternion": 4, "quaternion-wxyz": 4, "rotation-6d": 6}
"""Pose representations, and how many dimensions each takes. A quaternion is x, y, z, w unless its name says else."""


@dataclass(frozen=True, slots=True)
class OutputSet:
    """One side's outputs, a row for each sample.

    `values` by kind: actions [sample, candidate, horizon, dim]; logits [sample, position, class]; tokens
    [sample, position]; embeddings [sample, feature]; boxes [sample, box, 4], a missing box is NaN; masks
    [sample, height, width]. `noise` are digests, empty where none is said. The rest as in wire.actions.Meta.
    """

    kind: str
    values: Floats
    sample: tuple[str, ...]
    noise: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    steps: int = 0
    normalisation: str = "none"
    normalisation_digest: str = ""
    site: str = ""
    trained: str = ""
    source: str = "policy"
    state: Floats | None = None
    tokens: Ints | None = None
    label: tuple[str, ...] = ()

    def rows(self, order: Sequence[int]) -> OutputSet:
        """The samples at these places, in this order."""
        import numpy as np

        places = np.asarray(order, np.int64)
        chosen: dict[str, Any] = {name: tuple(each[k] for k in order) if (each := getattr(self, name)) else ()
                                  for name in ("sample", "noise", "task", "label")}
        chosen |= {name: None if (each := getattr(self, name)) is None else each[places]
                   for name in ("values", "state", "tokens")}
        return replace(self, **chosen)

    def same_values(self, other: OutputSet) -> bool:
        """Do both hold the same numbers in every bit?"""
        import numpy as np

        return np.array_equal(self.values, other.values, equal_nan=True)

    def of_task(self, task: str, tasks: Sequence[str]) -> OutputSet | None:
        """The samples of one task of a model with `tasks`; None where the file does not say which those are."""
        if self.task:
            return self.rows([k for k, name in enumerate(self.task) if name == task or tasks == ["main"]])
        return self if len(tasks) == 1 else None


@dataclass(frozen=True, slots=True)
class Pose:
    """Some dimensions that are one rotation together."""

    kind: str
    dimensions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """A serial arm. `links`: for each joint its offset (m) from the one before and the axis it turns about.

    A row of Denavit-Hartenberg parameters is a joint about z and what follows it; `tool` is the tip in the last frame.
    `joints` names the dimensions that move it. `mode`: an action is the joint's angle (rad), or with `delta` what is
    added to it, from the sample's `state` on; `scale` turns an action's unit into rad, joint by joint.
    """

    joints: tuple[str, ...]
    links: tuple[tuple[tuple[float, float, float], tuple[float, float, float]], ...] = ()
    dh: tuple[tuple[float, float, float, float], ...] = ()
    tool: tuple[float, float, float] = (0.0, 0.0, 0.0)
    mode: Literal["absolute", "delta"] = "absolute"
    scale: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionRules:
    """How a model's actions are to be read: its rotations, and what arm the joints move.

    `gripper` names dimensions that are open or closed, on either side of `threshold`.
    """

    gripper: tuple[str, ...] = ()
    threshold: float = 0.0
    poses: tuple[Pose, ...] = ()
    chain: Chain | None = None
