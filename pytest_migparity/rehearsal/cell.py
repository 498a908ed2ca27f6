"""The cluttered cell: capsules of arm and obstacles, and their gaps in batch under a memory budget. Units mm."""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.rehearsal.arm import LINK_COUNT, Floats, forward_kinematics
from pytest_migparity.rehearsal.segments import squared_distance

Ints = NDArray[np.int64]
Point = tuple[float, float, float]

DEFAULT_BUDGET = 4 << 20
COARSE_BYTES = 72
"""Working bytes per configuration and pair in the coarse phase: 4 float64 arrays and temporaries."""
FINE_BYTES = 8 * 48
"""Working bytes per surviving pair in the fine phase: gathered ends, the segment distance, its temporaries."""
LEAST_FINE_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Capsule:
    """A segment with a radius. `body` is the link that carries it, or the kind of obstacle it belongs to."""

    body: int
    start: Point
    end: Point
    radius: float


ARM_CAPSULES = (
    Capsule(0, (0, 0, 0), (0, 0, 100), 75),
    Capsule(1, (0, 0, 0), (0, 0, 170), 65),
    Capsule(2, (0, 60, 0), (0, 60, 200), 50),
    Capsule(2, (0, 60, 200), (0, 60, 420), 45),
    Capsule(3, (0, 0, 20), (0, 0, 200), 42),
    Capsule(3, (0, 0, 200), (0, 0, 360), 38),
    Capsule(4, (0, 0, 0), (0, 0, 90), 35),
    Capsule(5, (0, 0, 0), (0, 0, 80), 33),
    Capsule(6, (0, 0, 0), (0, 0, 90), 28),
    Capsule(6, (-30, 0, 90), (30, 0, 90), 14),
    Capsule(6, (0, 0, 90), (0, 0, 140), 12),
)
OBSTACLE_KINDS = ("pillar", "beam", "fixture", "rail")



def obstacles() -> tuple[Capsule, ...]:
    """The fixed furniture: 4 pillars, 2 beams, 6 spherical fixtures on the table, 8 rails below it."""
    pillars = [
        Capsule(0, _polar(angle, radius, 0), _polar(angle, radius, height), 40)
        for angle, radius, height in [(-75, 620, 560), (-25, 760, 700), (25, 560, 420), (70, 700, 620)]
    ]
    beams = [Capsule(1, (350, -700, 980), (350, 700, 980), 45), Capsule(1, (760, -500, 760), (760, 100, 760), 35)]
    places = [(-50, 430, 60, 60), (0, 480, 50, 55), (48, 450, 90, 60), (95, 500, 70, 55), (-95, 450, 120, 60),
              (5, 760, 150, 60)]  # fmt: skip
    fixtures = [Capsule(2, _polar(a, r, z), _polar(a, r, z), radius) for a, r, z, radius in places]
    rails = [Capsule(3, _polar(angle, 220, -70), _polar(angle, 1000, -70), 50) for angle in range(-105, 106, 30)]
    return (*pillars, *beams, *fixtures, *rails)


@dataclass(frozen=True, slots=True)
class Cell:
    """Capsules as arrays, and the pairs of them whose gap is watched.

    Arm capsules come first, obstacles after them; `pair_first` and `pair_second` index that joint list. Pairs are
    sorted by `pair_group`; a group is (link, obstacle kind) or (link, link at least three further out).
    """

    arm_link: Ints
    arm_start: Floats
    arm_end: Floats
    obstacle_start: Floats
    obstacle_end: Floats
    radius: Floats
    groups: tuple[tuple[int, str, int], ...]
    pair_group: Ints
    pair_first: Ints
    pair_second: Ints

    @property
    def pairs(self) -> int:
        """How many pairs of capsules are watched."""
        return len(self.pair_group)

    def columns(self, kind: str, *, link: int | None = None, other: int | None = None) -> list[int]:
        """Columns of `gaps` whose group is of `kind` ("obstacle" or "self"), narrowed to a link or its opposite."""
        return [
            k for k, (i, name, j) in enumerate(self.groups)
            if name == kind and link in (None, i) and other in (None, j)
        ]  # fmt: skip


@cache
def build_cell(arm_split: int = 1, obs_split: int = 1) -> Cell:
    """The cell, every capsule cut into `split` equal pieces (same solids; more pairs, to load the distance code)."""
    arm, furniture = _split(ARM_CAPSULES, arm_split), _split(obstacles(), obs_split)
    groups = [(i, "obstacle", kind) for i in range(1, LINK_COUNT) for kind in range(len(OBSTACLE_KINDS))]
    groups += [(i, "self", j) for i in range(LINK_COUNT) for j in range(i + 3, LINK_COUNT)]
    index = {group: k for k, group in enumerate(groups)}
    pairs = []
    for i, capsule in enumerate(arm):
        if capsule.body > 0:  # the base does not move
            pairs += [(index[capsule.body, "obstacle", o.body], i, len(arm) + j) for j, o in enumerate(furniture)]
        pairs += [
            (index[capsule.body, "self", other.body], i, j)
            for j, other in enumerate(arm)
            if other.body >= capsule.body + 3
        ]
    pair_group, pair_first, pair_second = np.array(sorted(pairs), np.int64).T
    return Cell(
        arm_link=np.array([c.body for c in arm]),
        arm_start=np.array([c.start for c in arm], np.float64),
        arm_end=np.array([c.end for c in arm], np.float64),
        obstacle_start=np.array([c.start for c in furniture], np.float64),
        obstacle_end=np.array([c.end for c in furniture], np.float64),
        radius=np.array([c.radius for c in (*arm, *furniture)], np.float64),
        groups=tuple(groups),
        pair_group=np.ascontiguousarray(pair_group),
        pair_first=np.ascontiguousarray(pair_first),
        pair_second=np.ascontiguousarray(pair_second),
    )


def gaps(q: Floats, cap: float, *, budget: int = DEFAULT_BUDGET, cell: Cell | None = None) -> Floats:
    """Smallest gap per group, capped: (n, groups) mm for joint angles q of shape (n, 6). Negative is penetration.

    A coarse phase drops pairs whose bounding spheres are further apart than `cap`; a fine phase measures the rest.
    Both work in chunks of about `budget` bytes; every value is computed elementwise, and a minimum does not depend
    on order, so the result has the same bits at any budget.
    """
    cell = cell or build_cell()
    q = np.asarray(q, np.float64)
    out = np.full((len(q), len(cell.groups)), float(cap))
    pairs_at_once = max(1, min(cell.pairs, budget // COARSE_BYTES))
    rows_at_once = max(1, min(len(q), budget // (COARSE_BYTES * pairs_at_once)))
    for row in range(0, len(q), rows_at_once):
        start, end = _capsule_ends(cell, q[row : row + rows_at_once])
        for first in range(0, cell.pairs, pairs_at_once):
            window = slice(first, first + pairs_at_once)
            near = _near_pairs(cell, start, end, cap, window)
            for at in range(0, len(near), fine := max(LEAST_FINE_ROWS, budget // FINE_BYTES)):
                _lower(out[row : row + rows_at_once], cell, start, end, near[at : at + fine], window)
    return out


def _capsule_ends(cell: Cell, q: Floats) -> tuple[Floats, Floats]:
    """Start and end of every capsule, arm then obstacles: two arrays (3, n, capsules)."""
    frames = forward_kinematics(q)
    arms = len(cell.arm_link)
    shape = (3, len(q), arms + len(cell.obstacle_start))
    start, end = np.empty(shape), np.empty(shape)
    for i, link in enumerate(cell.arm_link):
        start[:, :, i] = frames.point(link, cell.arm_start[i]).T
        end[:, :, i] = frames.point(link, cell.arm_end[i]).T
    start[:, :, arms:] = cell.obstacle_start.T[:, None, :]
    end[:, :, arms:] = cell.obstacle_end.T[:, None, :]
    return start, end


def _near_pairs(cell: Cell, start: Floats, end: Floats, cap: float, window: slice) -> Ints:
    """Flat indices (row * pairs in window + pair) of pairs whose bounding spheres come closer than `cap`."""
    first, second = cell.pair_first[window], cell.pair_second[window]
    center, span = (start + end) * 0.5, end - start
    reach = np.sqrt(span[0] * span[0] + span[1] * span[1] + span[2] * span[2]) * 0.5 + cell.radius
    apart = np.zeros((start.shape[1], len(first)))
    for axis in center:
        difference = np.take(axis, first, 1)
        difference -= np.take(axis, second, 1)
        difference *= difference
        apart += difference
    limit = np.take(reach, first, 1)
    limit += np.take(reach, second, 1)
    limit += cap
    limit *= limit
    return np.flatnonzero(apart.ravel() < limit.ravel())


def _lower(out: Floats, cell: Cell, start: Floats, end: Floats, near: Ints, window: slice) -> None:
    """Lower `out` (n, groups) to the gaps of the pairs `near`, which are ordered by row and, in it, by group."""
    row, pair = np.divmod(near, len(cell.pair_group[window]))
    pair += window.start
    first, second = cell.pair_first[pair], cell.pair_second[pair]
    start_1, start_2 = start[:, row, first], start[:, row, second]
    span_1, span_2 = end[:, row, first] - start_1, end[:, row, second] - start_2
    gap = np.sqrt(squared_distance(start_1, span_1, start_2, span_2))
    gap -= cell.radius[first]
    gap -= cell.radius[second]
    key = row * len(cell.groups) + cell.pair_group[pair]
    begins = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    keys = key[begins]
    flat = out.reshape(-1)
    flat[keys] = np.minimum(flat[keys], np.minimum.reduceat(gap, begins))


def _polar(angle: float, radius: float, height: float) -> Point:
    """A point at `angle` degrees around the base."""
    turn = np.deg2rad(angle)
    return float(radius * np.cos(turn)), float(radius * np.sin(turn)), float(height)


def _split(capsules: tuple[Capsule, ...], pieces: int) -> list[Capsule]:
    cuts = []
    for capsule in capsules:
        start, end = np.array(capsule.start, np.float64), np.array(capsule.end, np.float64)
        at = [tuple(float(v) for v in start + (end - start) * (k / pieces)) for k in range(pieces + 1)]
        for a, b in pairwise(at):
            cuts.append(Capsule(capsule.body, (a[0], a[1], a[2]), (b[0], b[1], b[2]), capsule.radius))
    return cuts
