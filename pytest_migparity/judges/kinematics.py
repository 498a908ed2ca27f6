"""Where an arm's tip is: forward kinematics of a serial chain that the manifest declares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.core.outputs import Chain

from .rotations import turn_about

Floats = NDArray[np.float64]

_AT_ONCE = 1 << 16  # configurations
_Z, _X = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])


def joint_angles(chain: Chain, moves: Floats, state: Floats | None) -> Floats | None:
    """Angles (sample, candidate, horizon, joint) in rad of the joints that actions `moves` of that shape command.

    With `delta` they add up from the sample's `state` (sample, joint) in rad; None where that was not recorded.
    """
    scaled = moves * np.asarray(chain.scale) if chain.scale else moves
    if chain.mode == "absolute":
        return scaled
    if state is None or state.shape[-1] != len(chain.joints):
        return None
    angles: Floats = state[:, None, None, :] + np.cumsum(scaled, axis=2)
    return angles


def tip(chain: Chain, angles: Floats) -> tuple[Floats, Floats]:
    """(position (..., 3) m, orientation (..., 3, 3)) of the tool for joint angles (..., joints) rad."""
    flat = angles.reshape(-1, angles.shape[-1])
    parts = [_tip(chain, flat[at:at + _AT_ONCE]) for at in range(0, len(flat), _AT_ONCE)]
    place = np.concatenate([part[0] for part in parts]) if parts else np.zeros((0, 3))
    turn = np.concatenate([part[1] for part in parts]) if parts else np.zeros((0, 3, 3))
    return place.reshape(*angles.shape[:-1], 3), turn.reshape(*angles.shape[:-1], 3, 3)


def _tip(chain: Chain, angles: Floats) -> tuple[Floats, Floats]:
    place = np.zeros((len(angles), 3))
    turn = np.broadcast_to(np.eye(3), (len(angles), 3, 3))
    for (offset, axis), angle in zip(chain.links, angles.T, strict=bool(chain.links)):
        place = place + turn @ np.array(offset)
        turn = turn @ turn_about(np.array(axis), angle)
    for (a, alpha, d, theta), angle in zip(chain.dh, angles.T, strict=bool(chain.dh)):
        turn = turn @ turn_about(_Z, angle + theta)
        place = place + turn @ np.array([a, 0.0, d])
        turn = turn @ turn_about(_X, np.array([alpha]))
    return place + turn @ np.array(chain.tool), turn
