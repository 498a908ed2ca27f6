"""Rotations against scipy's, the tip against closed forms, and what is no rotation."""

from dataclasses import replace

import numpy as np
import pytest
from outputs import chunks, codes, judged, outputs, values
from scipy.spatial.transform import Rotation

from pytest_migparity.core.outputs import ActionRules, Chain, Pose
from pytest_migparity.core.verdict import Outcome, State
from pytest_migparity.judges.kinematics import tip
from pytest_migparity.judges.rotations import geodesic, matrices, rotation_spread
from pytest_migparity.rehearsal.arm import JOINT_AXES, JOINT_OFFSETS, TOOL_TIP, tip_position

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


def written(kind, rotation):
    """A scipy Rotation as numbers of one representation."""
    if kind == "axis-angle":
        return rotation.as_rotvec()
    if kind == "rotation-6d":
        return np.concatenate([rotation.as_matrix()[:, :, 0], rotation.as_matrix()[:, :, 1]], 1)
    quaternion = rotation.as_quat()
    return quaternion if kind == "quaternion" else np.roll(quaternion, 1, 1)


KINDS = ["axis-angle", "quaternion", "quaternion-wxyz", "rotation-6d"]


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_and_angles_are_scipys(kind):
    a, b = Rotation.random(300, random_state=1), Rotation.random(300, random_state=2)
    ours = [matrices(kind, written(kind, each)) for each in (a, b)]
    assert ours[0] == pytest.approx(a.as_matrix(), abs=1e-12)
    assert geodesic(*ours) == pytest.approx((a.inv() * b).magnitude(), abs=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_scaled_representations_mean_the_same_rotation(kind):
    if kind == "axis-angle":
        pytest.skip("its length is the angle")
    rotation = Rotation.random(20, random_state=3)
    assert matrices(kind, 2.5 * written(kind, rotation)) == pytest.approx(rotation.as_matrix(), abs=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-5, 0.3, 2.0, np.pi - 1e-6, np.pi])
def test_the_angle_about_one_axis_is_that_angle(angle):
    turned = matrices("axis-angle", np.array([0.0, angle, 0.0]))
    assert geodesic(np.eye(3), turned) == pytest.approx(angle, rel=1e-6, abs=1e-15)


def test_a_quaternion_and_its_negative_are_one_rotation():
    q = Rotation.random(30, random_state=4).as_quat()
    assert geodesic(matrices("quaternion", q), matrices("quaternion", -q)) == pytest.approx(0, abs=1e-9)


def test_axis_angles_on_both_sides_of_a_half_turn_are_near():
    """Component by component they are 2 pi apart."""
    a, b = np.array([[0, 0, np.pi - 0.01]]), np.array([[0, 0, -np.pi + 0.01]])
    assert geodesic(matrices("axis-angle", a), matrices("axis-angle", b)) == pytest.approx(0.02)


def test_the_spread_of_turns_about_one_axis_is_their_root_mean_square():
    angles = np.array([-0.3, -0.1, 0.1, 0.3])
    turns = matrices("axis-angle", angles[:, None] * np.array([0.0, 0.0, 1.0]))
    assert rotation_spread(turns) == pytest.approx(np.sqrt(np.mean(angles**2)), rel=1e-9)


@pytest.mark.parametrize("kind, values", [("quaternion", np.zeros(4)), ("rotation-6d", np.zeros(6)),
                                          ("rotation-6d", np.array([1.0, 0, 0, 2.0, 0, 0]))])
def test_what_is_no_rotation_is_not_taken_for_one(kind, values):
    assert np.isnan(matrices(kind, values)).any()


# ---- in the judge

POSE = ActionRules(poses=(Pose("quaternion", ("qx", "qy", "qz", "qw")),))
NAMES = ("x", "qx", "qy", "qz", "qw")


def posed(rotation, samples=40):
    x = chunks(samples, 1, 1)
    return outputs(np.concatenate([x, rotation.as_quat()[:, None]], 2), names=NAMES)


def test_a_pose_is_judged_by_the_angle_and_not_by_its_numbers():
    rotation = Rotation.from_rotvec(0.4 * np.random.default_rng(0).standard_normal((40, 3)))
    other = rotation * Rotation.from_rotvec([0.005, 0, 0])
    a, b = posed(rotation), posed(other)
    flipped = replace(b, values=b.values * np.array([1, -1, -1, -1, -1]) + np.array([1e-6, 0, 0, 0, 0]))
    finding = judged(a, flipped, rules=POSE)
    assert finding.outcome is PASS
    assert values(finding)["turn"] == pytest.approx(0.005, rel=1e-6)
    assert judged(a, flipped).outcome is FAIL, "without the declaration -q is another q"


def test_a_turn_beyond_a_fifth_of_a_radian_is_open_even_where_the_spread_is_large():
    rotation = Rotation.random(60, random_state=5)
    finding = judged(posed(rotation, 60), posed(rotation * Rotation.from_rotvec([0.25, 0, 0]), 60), rules=POSE)
    assert finding.outcome is INCONCLUSIVE
    assert {check.name for check in finding.checks if check.state is State.BLIND} >= {"turn"}


def test_quaternions_of_zeros_fail_on_one_side_and_prove_nothing_on_both():
    rotation = Rotation.random(40, random_state=6)
    good, zeros = posed(rotation), posed(rotation)
    zeros = replace(zeros, values=zeros.values * np.array([1, 0, 0, 0, 0]))
    near = replace(zeros, values=zeros.values + np.array([1e-6, 0, 0, 0, 0]))
    assert judged(good, zeros, rules=POSE).outcome is FAIL
    assert judged(zeros, near, rules=POSE).outcome is INCONCLUSIVE
    assert "action-no-rotation" in codes(judged(zeros, near, rules=POSE))


# ---- kinematics

Z = (0.0, 0.0, 1.0)
PLANAR = Chain(("q1", "q2"), links=(((0, 0, 0), Z), ((0.5, 0, 0), Z)), tool=(0.3, 0, 0))
DH = Chain(("q1", "q2"), dh=((0.5, 0, 0, 0), (0.3, 0, 0, 0)))


@pytest.mark.parametrize("chain", [PLANAR, DH], ids=["links", "dh"])
def test_a_planar_arm_is_where_the_closed_form_says(chain):
    q = np.random.default_rng(0).uniform(-3, 3, (50, 2))
    place, turn = tip(chain, q)
    x = 0.5 * np.cos(q[:, 0]) + 0.3 * np.cos(q.sum(1))
    y = 0.5 * np.sin(q[:, 0]) + 0.3 * np.sin(q.sum(1))
    assert place == pytest.approx(np.stack([x, y, 0 * x], 1), abs=1e-12)
    assert turn == pytest.approx(Rotation.from_rotvec(q.sum(1)[:, None] * np.array(Z)).as_matrix(), abs=1e-12)


def test_a_denavit_hartenberg_row_is_turn_shift_shift_turn():
    """One joint: Rz(theta) Tz(d) Tx(a) Rx(alpha), against scipy's matrices."""
    a, alpha, d, theta, q = 0.4, 0.7, 0.2, 0.1, 0.9
    place, turn = tip(Chain(("q",), dh=((a, alpha, d, theta),), tool=(0.0, 0.0, 0.1)), np.array([[q]]))
    about_z, about_x = Rotation.from_euler("z", q + theta), Rotation.from_euler("x", alpha)
    assert place[0] == pytest.approx(about_z.apply([a, 0, d]) + (about_z * about_x).apply([0, 0, 0.1]))
    assert turn[0] == pytest.approx((about_z * about_x).as_matrix())


def test_the_rehearsals_arm_is_a_chain_like_any_other():
    """The arm's own kinematics, written for speed, are an independent implementation."""
    axes = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": Z}
    chain = Chain(tuple(f"j{k}" for k in range(6)),
                  links=tuple((tuple(v / 1000 for v in offset), axes[axis])
                              for offset, axis in zip(JOINT_OFFSETS, JOINT_AXES, strict=True)),
                  tool=tuple(v / 1000 for v in TOOL_TIP))
    q = np.random.default_rng(1).uniform(-1.5, 1.5, (40, 6))
    assert tip(chain, q)[0] == pytest.approx(tip_position(q) / 1000, abs=1e-12)


def moved(samples=30, size=0.0, **fields):
    values_ = np.random.default_rng(2).uniform(-1, 1, (samples, 4, 2))
    return outputs(values_ + size, names=("q1", "q2"), **fields)


def test_the_tip_of_joint_angles_by_the_small_angle():
    """At q2 = 0 a turn of the first joint by e moves a tip .8 m away by 2 x .8 sin(e / 2)."""
    q = np.random.default_rng(3).uniform(-1, 1, (30, 1, 1)) * np.array([1.0, 0.0])
    got = values(judged(outputs(q, names=("q1", "q2")), outputs(q + np.array([0.01, 0]), names=("q1", "q2")),
                        rules=ActionRules(chain=PLANAR)))
    assert got["reach"] == pytest.approx(2 * 0.8 * np.sin(0.005))
    assert got["turn"] == pytest.approx(0.01)


def test_steps_add_up_from_the_recorded_state():
    """Four steps of .002 in excess end .008 rad off, whatever the way before; a scale of .5 halves that."""
    state = np.random.default_rng(4).uniform(-1, 1, (30, 2)) * np.array([1.0, 0.0])
    a = moved(state=state)
    a = replace(a, values=a.values * np.array([1.0, 0.0]))
    b = replace(a, values=a.values + np.array([0.002, 0.0]))
    for scale, last in (((), 0.008), ((0.5, 0.5), 0.004)):
        got = values(judged(a, b, rules=ActionRules(chain=replace(PLANAR, mode="delta", scale=scale))))
        assert got["reach_max"] == pytest.approx(2 * 0.8 * np.sin(last / 2))


def test_three_centimetres_at_the_tip_are_open_where_the_joints_alone_would_pass():
    a = moved(200)
    finding = judged(a, replace(a, values=a.values + 0.025), rules=ActionRules(chain=replace(PLANAR, tool=(1.5, 0, 0))))
    assert values(finding)["close"] < 0.05
    assert values(finding)["reach"] > 0.03
    assert finding.outcome is INCONCLUSIVE


def test_steps_without_a_state_are_open():
    a = moved()
    finding = judged(a, replace(a, values=a.values + 1e-4), rules=ActionRules(chain=replace(PLANAR, mode="delta")))
    assert finding.outcome is INCONCLUSIVE
    assert "action-no-state" in codes(finding)
