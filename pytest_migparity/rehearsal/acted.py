"""The actions of the policy that a run trained, at states of held-out demonstrations: the evidence of L6."""

import os
from pathlib import Path

import numpy as np

from pytest_migparity.host.actions import noise_digests, numbers_digest, write_actions
from pytest_migparity.rehearsal.arm import CONTROL_PERIOD, JOINT_HIGH, JOINT_LOW, JOINTS, MAX_SPEED, Floats
from pytest_migparity.rehearsal.dataset import ACTION_SCALE, CHUNK
from pytest_migparity.rehearsal.demos import load
from pytest_migparity.rehearsal.features import STALE_MARGIN, as_seen, features
from pytest_migparity.rehearsal.precision import Singles
from pytest_migparity.rehearsal.rollout import act, noise
from pytest_migparity.rehearsal.teacher import timed
from pytest_migparity.rehearsal.variant import OFFICIAL, Variant
from pytest_migparity.wire.actions import NAME, Meta

NAMES = tuple(f"velocity_{k}" for k in range(JOINTS))
UNIT = "of the speed limit"
_BETWEEN = 7  # waypoints; a stride prime to the usual lengths spreads the states over the way


def states() -> tuple[list[str], Floats, Floats]:
    """(ids, joint angles, goals) (n, 6) rad: one state on the way of each held-out demonstration."""
    demos = load("held_out")
    ways = [timed(path) for path in demos.paths]
    at = [k * _BETWEEN % (len(way) - 1) for k, way in enumerate(ways)]
    ids = [f"problem {seed} step {step}" for seed, step in zip(demos.seeds, at, strict=True)]
    return ids, np.stack([way[step] for way, step in zip(ways, at, strict=True)]), demos.goal


def write_acted(folder: Path, weights: Singles, variant: Variant = OFFICIAL) -> None:
    """Write `actions.npz` of the policy with these weights, as the variant's inference code runs it.

    Noise is keyed by the problem. The normalisation is that of what the policy sees and of what it gives.
    """
    ids, joints, goal = states()
    start = np.stack([noise(int(seed), 0) for seed in load("held_out").seeds])
    seen = as_seen(features(joints, goal), joints, goal, variant)
    chunks = act(weights, seen, start, variant).reshape(len(ids), CHUNK, JOINTS)
    low = JOINT_LOW - STALE_MARGIN if variant.stale_joint_limits else JOINT_LOW
    used = numbers_digest({"low": low, "high": JOINT_HIGH, "speed": MAX_SPEED, "scale": ACTION_SCALE})
    kernel = f"CPU, kernel {os.environ.get('OPENBLAS_CORETYPE', 'default')}"
    meta = Meta("actions", NAMES, (UNIT,) * JOINTS, variant.euler_steps, "joint limits and speed limits", used, kernel,
                kernel)
    write_actions(str(folder / NAME), chunks, ids, meta, noise=noise_digests(start), state=joints)


STEP = tuple(float(speed) * CONTROL_PERIOD for speed in MAX_SPEED)
"""rad that an action of 1 moves each joint in one command: the `scale` of the manifest's kinematics."""
