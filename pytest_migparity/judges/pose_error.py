"""What actions mean in space: angles between rotations that some dimensions are together, and where the tip ends up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.core.outputs import Chain, Pose
from pytest_migparity.core.verdict import Note, note

from .kinematics import joint_angles, tip
from .output_parts import Part
from .rotations import geodesic, matrices, rotation_spread

Floats = NDArray[np.float64]

_CONSTANT = 1e-6  # rad; a smaller spread is what arithmetic leaves of one rotation


@dataclass(frozen=True, slots=True)
class InSpace:
    """Errors in space: `parts` one for each rotation, `angles` rad of rotations and of the tip, `reach` m of the tip.

    `unsure` and `broken` as in Measured.
    """

    parts: tuple[Part, ...] = ()
    angles: tuple[Floats, ...] = ()
    reach: Floats | None = None
    unsure: tuple[Note, ...] = ()
    broken: tuple[Note, ...] = ()

    def __add__(self, other: InSpace) -> InSpace:
        """Both together; the tip is the later's where it has one."""
        return InSpace(self.parts + other.parts, self.angles + other.angles,
                       self.reach if other.reach is None else other.reach, self.unsure + other.unsure,
                       self.broken + other.broken)


def pose_error(pose: Pose, names: Sequence[str], a: Floats, b: Floats) -> InSpace:
    """The angle between both sides' rotations, in units of the baseline's spread about its mean rotation.

    A rotation that is none on one side (a quaternion of zeros) breaks the level, on both it leaves it open.
    """
    at = places(pose.dimensions, names)
    if at is None:
        return InSpace(unsure=(_undeclared("pose", pose.dimensions, names),))
    turned = [matrices(pose.kind, side[..., at]) for side in (a, b)]
    whole = [np.isfinite(each).all((-2, -1)) for each in turned]
    title = " ".join(pose.dimensions)
    lost = (note("action-no-rotation", name=title, kind=pose.kind),)
    if (whole[0] != whole[1]).any():
        return InSpace(broken=lost)
    if not whole[0].all():
        return InSpace(unsure=lost)
    angle, spread = geodesic(*turned), rotation_spread(turned[0])
    return InSpace((Part(title, angle, spread if spread > _CONSTANT else 0.0, "rad"),), (angle,))


def tip_error(chain: Chain, names: Sequence[str], sides: Sequence[tuple[Floats, Floats | None]]) -> InSpace:
    """How far the tip and its orientation are apart where both sides' actions lead; each side is (actions, state)."""
    at = places(chain.joints, names)
    if at is None:
        return InSpace(unsure=(_undeclared("kinematics", chain.joints, names),))
    tips = []
    for actions, state in sides:
        angles = joint_angles(chain, actions[..., at], state)
        if angles is None or not np.isfinite(angles).all():
            return InSpace(unsure=(note("action-no-state"),))
        tips.append(tip(chain, angles))
    (place, turn), (their_place, their_turn) = tips
    return InSpace(angles=(geodesic(turn, their_turn),), reach=np.linalg.norm(their_place - place, axis=-1))


def places(wanted: Sequence[str], names: Sequence[str]) -> list[int] | None:
    """The indices of dimensions by name; None where one is missing."""
    at = {name: k for k, name in enumerate(names)}
    return [at[name] for name in wanted] if all(name in at for name in wanted) else None


def _undeclared(what: str, wanted: Sequence[str], names: Sequence[str]) -> Note:
    return note("action-undeclared", what=what, name=next(name for name in wanted if name not in names))
