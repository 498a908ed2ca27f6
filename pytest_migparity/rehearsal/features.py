"""What the policy sees: one feature row per (configuration, goal)."""

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.rehearsal.arm import JOINT_HIGH, JOINT_LOW, JOINTS, LINK_COUNT, Floats, tip_position
from pytest_migparity.rehearsal.cell import OBSTACLE_KINDS, build_cell, gaps
from pytest_migparity.rehearsal.variant import OFFICIAL, Variant

GAP_CAP = 150.0
LOOK_AHEAD = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85)
"""Points of the straight joint line to the goal at which the gap is looked up; without them success falls 14 points."""
LOOK_AHEAD_CAP = 60.0
LOOK_AHEAD_UNIT = 40.0
JOINT_ERROR_UNIT = 0.3
TIP_CENTER: Floats = np.array([0.8, 0.0, 0.8])
TIP_UNIT = 500.0
TIP_ERROR_UNIT = 300.0

NAMES = (
    *(f"look_ahead_{u}" for u in LOOK_AHEAD),
    *(f"joint_{k}" for k in range(JOINTS)),
    *(f"goal_joint_{k}" for k in range(JOINTS)),
    *(f"joint_error_{k}" for k in range(JOINTS)),
    *(f"goal_{axis}" for axis in "xyz"),
    *(f"tip_{axis}" for axis in "xyz"),
    *(f"tip_error_{axis}" for axis in "xyz"),
    *(f"gap_link_{link}" for link in range(1, LINK_COUNT)),
    *(f"gap_{kind}" for kind in OBSTACLE_KINDS),
    "gap_self",
)
FEATURES = len(NAMES)

STALE_MARGIN = 0.4
"""rad by which an earlier revision of the arm's joint limits was wider below."""


def features(q: Floats, goal: Floats) -> NDArray[np.float32]:
    """Features of configurations q and goal configurations (n, 6): (n, FEATURES), each about within [-1.5, 1.5].

    Elementwise throughout: a row's bits do not depend on which rows it is computed with.
    """
    cell = build_cell()
    group = gaps(q, GAP_CAP)
    per_link = [group[:, cell.columns("obstacle", link=link)].min(1) for link in range(1, LINK_COUNT)]
    per_kind = [group[:, cell.columns("obstacle", other=kind)].min(1) for kind in range(len(OBSTACLE_KINDS))]
    near = np.stack([*per_link, *per_kind, group[:, cell.columns("self")].min(1)], 1)
    ahead = np.stack([gaps(q * (1 - u) + goal * u, LOOK_AHEAD_CAP).min(1) for u in LOOK_AHEAD], 1)
    tip, target = tip_position(q), tip_position(goal)
    columns = [
        np.clip(ahead / LOOK_AHEAD_UNIT, -1, 1.5),
        _normalised(q, JOINT_LOW),
        _normalised(goal, JOINT_LOW),
        np.clip((goal - q) / JOINT_ERROR_UNIT, -1.5, 1.5),
        target / TIP_UNIT - TIP_CENTER,
        tip / TIP_UNIT - TIP_CENTER,
        (target - tip) / TIP_ERROR_UNIT,
        near / GAP_CAP * 2 - 1,
    ]
    return np.concatenate(columns, 1).astype(np.float32)


def as_seen(x: NDArray[np.float32], q: Floats, goal: Floats, variant: Variant = OFFICIAL) -> NDArray[np.float32]:
    """The features x of (q, goal) as the variant's input code would have produced them."""
    if variant == OFFICIAL:
        return x
    x = x.copy()
    if variant.stale_joint_limits:
        first, second = NAMES.index("joint_0"), NAMES.index("goal_joint_0")
        x[:, first : first + JOINTS] = _normalised(q, JOINT_LOW - STALE_MARGIN)
        x[:, second : second + JOINTS] = _normalised(goal, JOINT_LOW - STALE_MARGIN)
    x[:, list(variant.scaled_features)] *= np.float32(variant.feature_scale)
    x[:, list(variant.negated_features)] *= np.float32(-1)
    return x


def _normalised(q: Floats, low: Floats) -> Floats:
    """Joint angles mapped from [low, JOINT_HIGH] to [-1, 1]."""
    return (q - (low + JOINT_HIGH) / 2) / ((JOINT_HIGH - low) / 2)
