"""Kinematics and capsule gaps, against computations made another way."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_migparity.rehearsal import arm, cell
from pytest_migparity.rehearsal.segments import squared_distance

Floats = NDArray[np.float64]


def configurations(count: int, seed: int = 0) -> Floats:
    """Joint angles (count, 6) within the limits."""
    return np.random.default_rng(seed).uniform(arm.JOINT_LOW, arm.JOINT_HIGH, (count, arm.JOINTS))


def homogeneous(q: Floats) -> list[Floats]:
    """4 x 4 link poses of one configuration, as a chain of matrix products."""
    pose = np.eye(4)
    chain = [pose]
    for angle, offset, axis in zip(q, arm.JOINT_OFFSETS, arm.JOINT_AXES, strict=True):
        c, s = np.cos(angle), np.sin(angle)
        turn = {"z": [[c, -s, 0], [s, c, 0], [0, 0, 1]], "y": [[c, 0, s], [0, 1, 0], [-s, 0, c]]}[axis]
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = turn, offset
        pose = pose @ step
        chain.append(pose)
    return chain


def test_kinematics_agree_with_homogeneous_matrices() -> None:
    q = configurations(20)
    frames = arm.forward_kinematics(q)
    for i, row in enumerate(q):
        for link, pose in enumerate(homogeneous(row)):
            np.testing.assert_allclose(frames.origin[link, i], pose[:3, 3], atol=1e-9)
            axes = np.stack([frames.x[link, i], frames.y[link, i], frames.z[link, i]], 1)
            np.testing.assert_allclose(axes, pose[:3, :3], atol=1e-12)
        tip = homogeneous(row)[-1] @ np.array([*arm.TOOL_TIP, 1.0])
        np.testing.assert_allclose(arm.tip_position(q)[i], tip[:3], atol=1e-9)


def test_upright_arm_has_its_tip_above_the_base() -> None:
    assert arm.tip_position(np.zeros((1, 6)))[0].tolist() == [0, 0, 120 + 180 + 420 + 380 + 100 + 90 + 150]


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        pytest.param(((0, 0, 0), (2, 0, 0)), ((1, -1, 3), (1, 1, 3)), 3, id="crossing"),
        pytest.param(((0, 0, 0), (2, 0, 0)), ((0, 4, 0), (2, 4, 0)), 4, id="parallel, side by side"),
        pytest.param(((0, 0, 0), (2, 0, 0)), ((5, 4, 0), (9, 4, 0)), 5, id="parallel, end to end"),
        pytest.param(((0, 0, 0), (2, 0, 0)), ((9, 4, 0), (5, 4, 0)), 5, id="antiparallel"),
        pytest.param(((0, 0, 0), (2, 0, 0)), ((1, 0, 0), (7, 0, 0)), 0, id="overlapping on one line"),
        pytest.param(((1, 1, 1), (1, 1, 1)), ((0, 0, 3), (5, 0, 3)), 5**0.5, id="point and segment"),
        pytest.param(((0, 0, 3), (5, 0, 3)), ((1, 1, 1), (1, 1, 1)), 5**0.5, id="segment and point"),
        pytest.param(((1, 2, 3), (1, 2, 3)), ((1, 2, 5), (1, 2, 5)), 2, id="two points"),
        pytest.param(((0, 0, 0), (1, 0, 0)), ((2, 0, 0), (2, 0, 1)), 1, id="both clamped"),
    ],
)
def test_segment_distance_has_its_closed_form(first: object, second: object, distance: float) -> None:
    (p, q), (r, s) = np.array(first, np.float64), np.array(second, np.float64)
    found = squared_distance(p[:, None], (q - p)[:, None], r[:, None], (s - r)[:, None])
    assert np.sqrt(found[0]) == pytest.approx(distance, abs=1e-12)


def test_segment_distance_is_what_sampling_finds() -> None:
    random = np.random.default_rng(1)
    p, d, r, e = random.normal(size=(4, 3, 300)) * 100
    u = np.linspace(0, 1, 201)
    on_first = p[..., None] + d[..., None] * u
    on_second = r[..., None] + e[..., None] * u
    exact = np.sqrt(squared_distance(p, d, r, e))
    for k in range(300):
        apart = np.linalg.norm(on_first[:, k, :, None] - on_second[:, k, None, :], axis=0).min()
        assert apart - 3.0 <= exact[k] <= apart + 1e-9


def test_gaps_are_what_sampled_capsules_show() -> None:
    q = configurations(4)
    found = cell.gaps(q, 1e4)
    scene = cell.build_cell()
    u = np.linspace(0, 1, 201)[:, None]
    for i, row in enumerate(q):
        poses = homogeneous(row)
        solids = []
        for capsule in cell.ARM_CAPSULES:
            ends = [(poses[capsule.body] @ np.array([*end, 1.0]))[:3] for end in (capsule.start, capsule.end)]
            solids.append((capsule, ends[0] * (1 - u) + ends[1] * u))
        expected = {}
        for k, (link, kind, other) in enumerate(scene.groups):
            mine = [solid for solid in solids if solid[0].body == link]
            theirs = [s for s in solids if s[0].body == other] if kind == "self" else [
                (o, np.array(o.start) * (1 - u) + np.array(o.end) * u) for o in cell.obstacles() if o.body == other
            ]  # fmt: skip
            expected[k] = min(
                np.linalg.norm(a[:, None] - b[None], axis=2).min() - first.radius - second.radius
                for first, a in mine for second, b in theirs
            )  # fmt: skip
        for k, value in expected.items():
            assert value - 6.0 <= found[i, k] <= value + 1e-6


def test_cap_only_cuts_gaps_off() -> None:
    q = configurations(200)
    assert np.array_equal(np.minimum(cell.gaps(q, 1e4), 40.0), cell.gaps(q, 40.0))


def test_splitting_capsules_changes_no_gap() -> None:
    q = configurations(30)
    np.testing.assert_allclose(cell.gaps(q, 150.0, cell=cell.build_cell(3, 4)), cell.gaps(q, 150.0), atol=1e-9)


@pytest.mark.parametrize("budget", [1, 5000, 100_000, 1 << 20])
def test_any_budget_gives_the_same_bits(budget: int) -> None:
    q = configurations(40 if budget == 1 else 300)
    assert np.array_equal(cell.gaps(q, 150.0, budget=budget), cell.gaps(q, 150.0, budget=1 << 40))


def test_rows_do_not_depend_on_their_batch() -> None:
    q = configurations(64)
    alone = np.concatenate([cell.gaps(row[None], 150.0) for row in q])
    assert np.array_equal(alone, cell.gaps(q, 150.0))


def test_no_configurations_give_no_rows() -> None:
    assert cell.gaps(np.zeros((0, 6)), 40.0).shape == (0, len(cell.build_cell().groups))


def test_the_dense_cell_stays_far_under_two_gibibytes() -> None:
    dense = cell.build_cell(12, 26)
    assert dense.pairs >= 66_000
    q = configurations(4096)
    cell.gaps(q[:1], 40.0, cell=dense)
    tracemalloc.start()
    try:
        whole = cell.gaps(q, 40.0, cell=dense, budget=256 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 30
    some = slice(1000, 1100)
    assert np.array_equal(cell.gaps(q[some], 40.0, cell=dense, budget=1 << 20), whole[some])


def test_pairs_are_ordered_by_group() -> None:
    assert all(a <= b for a, b in pairwise(cell.build_cell().pair_group))
