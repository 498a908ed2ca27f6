"""The six-joint arm: links, joint limits, and forward kinematics in batch. Lengths in mm, angles in rad."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

JOINTS = 6
LINK_COUNT = JOINTS + 1
JOINT_OFFSETS = ((0, 0, 120), (0, 0, 180), (0, 0, 420), (0, 0, 380), (0, 0, 100), (0, 0, 90))
"""Origin of joint k in the frame of link k (link 0 is the base)."""
JOINT_AXES = "zyyyzy"
TOOL_TIP = (0, 0, 150)
"""The tip, in the frame of the last link."""

JOINT_LOW: Floats = np.array([-1.9, -0.5, 0.3, -1.3, -1.3, -0.2])
JOINT_HIGH: Floats = np.array([1.9, 1.4, 2.3, 1.3, 1.3, 1.7])
MAX_SPEED: Floats = np.array([1.0, 1.0, 1.2, 1.5, 1.5, 1.5])
"""Joint speed limits, rad/s."""
CONTROL_PERIOD = 0.1
"""Seconds between two commands."""


@dataclass(frozen=True, slots=True)
class Frames:
    """Pose of links 0..6 for n configurations, in the base frame.

    origin: (7, n, 3) mm; x, y, z: (7, n, 3) unit axes.
    """

    origin: Floats
    x: Floats
    y: Floats
    z: Floats

    def point(self, link: int, local: tuple[float, float, float] | Floats) -> Floats:
        """A point fixed to `link`, in the base frame: (n, 3) mm."""
        place: Floats = self.origin[link] + self.x[link] * local[0] + self.y[link] * local[1] + self.z[link] * local[2]
        return place


def forward_kinematics(q: Floats) -> Frames:
    """Frames of every link for joint angles q of shape (n, 6).

    Elementwise products only (no matmul), so that a configuration's bits do not depend on the batch it is in.
    """
    q = np.asarray(q, np.float64)
    count = len(q)
    sine, cosine = np.sin(q), np.cos(q)
    origin = np.zeros((JOINTS + 1, count, 3))
    axes = np.zeros((3, JOINTS + 1, count, 3))
    for axis in range(3):
        axes[axis, 0, :, axis] = 1.0
    x, y, z = axes
    for k, (offset, turn) in enumerate(zip(JOINT_OFFSETS, JOINT_AXES, strict=True)):
        c, s = cosine[:, k : k + 1], sine[:, k : k + 1]
        origin[k + 1] = origin[k] + x[k] * offset[0] + y[k] * offset[1] + z[k] * offset[2]
        if turn == "z":
            x[k + 1], y[k + 1], z[k + 1] = x[k] * c + y[k] * s, y[k] * c - x[k] * s, z[k]
        else:
            z[k + 1], x[k + 1], y[k + 1] = z[k] * c + x[k] * s, x[k] * c - z[k] * s, y[k]
    return Frames(origin, x, y, z)


def tip_position(q: Floats) -> Floats:
    """Tool tip for joint angles (n, 6): (n, 3) mm."""
    return forward_kinematics(q).point(JOINTS, TOOL_TIP)
