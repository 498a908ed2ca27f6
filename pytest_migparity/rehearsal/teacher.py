"""The teacher: plans a collision-free joint path from start to goal, and times it.

Retract, swing, approach: where the straight joint line is blocked, the arm folds part of the way towards a tucked
posture, swings, and unfolds. One rule for every problem gives consistent labels; a roadmap did not (41 % success
against 86 %, facts/rehearsal.md). Deterministic: a problem is a function of its seed.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.rehearsal.arm import (
    CONTROL_PERIOD,
    JOINT_HIGH,
    JOINT_LOW,
    JOINTS,
    MAX_SPEED,
    Floats,
    tip_position,
)
from pytest_migparity.rehearsal.cell import gaps

Bools = NDArray[np.bool_]

CLEARANCE = 40.0
"""mm between arm and everything else along a planned path."""
PATH_RESOLUTION = 0.05
"""rad between checked configurations of a straight joint segment."""
SEGMENTS_AT_ONCE = 4000

CANDIDATES = 48
"""Configurations drawn per problem; start and goal are the first two that fit."""
PROBLEM_STREAM = 7
LEAST_TIP_TRAVEL = 250.0
LEAST_TIP_HEIGHT = 60.0
LEAST_TIP_RADIUS = 250.0

TUCKED: Floats = np.array([0, -0.35, 2.1, -0.6, 0.0, 0.6])
"""Folded posture whose sweep of joint 0 clears the whole cell; its joint 0 is never used."""
RETRACTIONS: Floats = np.array([0, 0.2, 0.4, 0.6, 0.8, 1.0])

CRUISE = 0.8
"""Fraction of MAX_SPEED."""
BRAKING = 0.25
SLOWEST_STEP = 0.012
RAMP_STEPS = 3

HORIZON = 80
"""Commands per episode."""
REPLAY_CLEARANCE = 8.0
CHECKS_PER_COMMAND = 3


def problems(seeds: Sequence[int] | NDArray[np.int64]) -> tuple[Floats, Bools]:
    """Start and goal configurations: (n, 2, 6) rad, and whether the seed has a problem at all: (n,).

    Both are clear of everything by CLEARANCE + 10 mm, and the tip has to travel at least LEAST_TIP_TRAVEL.
    """
    draws = np.stack(
        [np.random.default_rng([PROBLEM_STREAM, int(s)]).uniform(JOINT_LOW, JOINT_HIGH, (CANDIDATES, JOINTS))
         for s in seeds]
    )  # fmt: skip
    flat = draws.reshape(-1, JOINTS)
    tip = tip_position(flat)
    usable = gaps(flat, CLEARANCE + 11).min(1) > CLEARANCE + 10
    usable &= (tip[:, 2] > LEAST_TIP_HEIGHT) & (np.hypot(tip[:, 0], tip[:, 1]) > LEAST_TIP_RADIUS)
    usable, tip = usable.reshape(len(draws), -1), tip.reshape(len(draws), -1, 3)

    found = np.zeros((len(draws), 2, JOINTS))
    has_problem = np.zeros(len(draws), bool)
    for i, candidates in enumerate(draws):
        choices = np.flatnonzero(usable[i])
        if len(choices) < 2:
            continue
        travel = np.linalg.norm(tip[i, choices] - tip[i, choices[0]], axis=1)
        far = choices[travel > LEAST_TIP_TRAVEL]
        if len(far):
            found[i] = candidates[[choices[0], far[0]]]
            has_problem[i] = True
    return found, has_problem


def plan(start_goal: Floats) -> list[Floats | None]:
    """Vertices of a clear joint path for each problem (n, 2, 6): (2..4, 6) arrays, or None where none was found.

    The straight line if it is clear; else the fastest clear retract-swing-approach over all pairs of retractions.
    """
    direct = _clear_segments(start_goal[:, 0], start_goal[:, 1])
    paths: list[Floats | None] = [
        pair.copy() if clear else None for pair, clear in zip(start_goal, direct, strict=True)
    ]
    blocked = np.flatnonzero(~direct)
    if not len(blocked):
        return paths
    start, goal = start_goal[blocked, 0], start_goal[blocked, 1]
    retreat, ascent = _retractions(start), _retractions(goal)
    count = len(RETRACTIONS)
    swing_from, swing_to = np.repeat(retreat, count, 1), np.tile(ascent, (1, count, 1))
    reachable = (_clear_up_to(retreat)[:, :, None] & _clear_up_to(ascent)[:, None, :]).reshape(len(blocked), -1)
    problem, choice = np.nonzero(reachable)
    clear = reachable.copy()
    clear[problem, choice] = _clear_segments(swing_from[problem, choice], swing_to[problem, choice])
    cost = _duration(swing_from, start[:, None]) + _duration(swing_from, swing_to) + _duration(swing_to, goal[:, None])
    cost = np.where(clear, cost, np.inf)
    best = cost.argmin(1)
    for k, i in enumerate(blocked):
        if np.isfinite(cost[k, best[k]]):
            paths[i] = _without_repeats([start[k], swing_from[k, best[k]], swing_to[k, best[k]], goal[k]])
    return paths


def timed(vertices: Floats) -> Floats:
    """Waypoints (T + 1, 6), one per control period, along vertices (v, 6): ramp up, cruise, brake, rounded corners."""
    segment = np.abs((vertices[1:] - vertices[:-1]) / MAX_SPEED).max(1)
    position = np.concatenate([[0], np.cumsum(segment)])
    length, at = position[-1], 0.0
    stops = [0.0]
    cruise = CRUISE * CONTROL_PERIOD
    while at < length - 1e-9:
        step = min(cruise, max(SLOWEST_STEP, BRAKING * (length - at)), cruise * min(1, len(stops) / RAMP_STEPS))
        at = min(length, at + step)
        stops.append(at)
    way = np.stack([np.interp(np.array(stops), position, vertices[:, k]) for k in range(JOINTS)], 1)
    if len(vertices) > 2 and len(way) > 6:
        rounded = way.copy()
        rounded[1:-1] = (way[:-2] + way[1:-1] * 2 + way[2:]) / 4
        return rounded
    return way


def motion_gaps(start: Floats, end: Floats, cap: float) -> Floats:
    """Capped gaps while moving from start to end (n, 6) each: (CHECKS_PER_COMMAND, n, groups) mm."""
    u = (np.arange(1, CHECKS_PER_COMMAND + 1) / CHECKS_PER_COMMAND)[:, None, None]
    between = (start * (1 - u) + end * u).reshape(-1, JOINTS)
    return gaps(between, cap).reshape(CHECKS_PER_COMMAND, len(start), -1)


def replay(ways: Sequence[Floats]) -> tuple[Bools, Floats]:
    """Drive each list of waypoints: is it safe, within speed limits and the horizon (n,), and its least gap (n,) mm."""
    start = np.concatenate([w[:-1] for w in ways])
    end = np.concatenate([w[1:] for w in ways])
    moves = np.array([len(w) - 1 for w in ways])
    begins = np.cumsum(moves) - moves
    least = np.minimum.reduceat(motion_gaps(start, end, 20.0).min((0, 2)), begins)
    speed = np.maximum.reduceat((np.abs(end - start) / CONTROL_PERIOD / MAX_SPEED).max(1), begins)
    return (least > REPLAY_CLEARANCE) & (speed <= 1.0) & (moves <= HORIZON), least


def _clear_segments(start: Floats, end: Floats) -> Bools:
    """Whether straight joint segments start -> end, (n, 6) each, keep CLEARANCE: (n,)."""
    checks = np.maximum(2, np.ceil(np.abs(end - start).max(1) / PATH_RESOLUTION).astype(int) + 1)
    clear = np.ones(len(start), bool)
    for low in range(0, len(start), SEGMENTS_AT_ONCE):
        block = slice(low, low + SEGMENTS_AT_ONCE)
        count = checks[block]
        segment = np.repeat(np.arange(len(count)), count)
        begins = np.cumsum(count) - count
        u = ((np.arange(count.sum()) - begins[segment]) / (count[segment] - 1))[:, None]
        q = start[block][segment] * (1 - u) + end[block][segment] * u
        free = gaps(q, CLEARANCE + 1).min(1) > CLEARANCE
        clear[block] = np.logical_and.reduceat(free, begins)
    return clear


def _retractions(q: Floats) -> Floats:
    """Configurations between q (n, 6) and its tucked posture, joint 0 kept: (n, len(RETRACTIONS), 6)."""
    tucked = np.concatenate([q[:, :1], np.broadcast_to(TUCKED[1:], (len(q), JOINTS - 1))], 1)
    return q[:, None] + RETRACTIONS[None, :, None] * (tucked - q)[:, None]


def _clear_up_to(via: Floats) -> Bools:
    """For each retraction of via (n, k, 6): is the whole way to it clear? (n, k)."""
    legs = _clear_segments(via[:, :-1].reshape(-1, JOINTS), via[:, 1:].reshape(-1, JOINTS)).reshape(len(via), -1)
    return np.concatenate([np.ones((len(via), 1), bool), np.logical_and.accumulate(legs, 1)], 1)


def _duration(a: Floats, b: Floats) -> Floats:
    """Seconds from a to b at full speed, over the last axis."""
    longest: Floats = (np.abs(a - b) / MAX_SPEED).max(-1)
    return longest


def _without_repeats(vertices: list[Floats]) -> Floats:
    kept = [vertices[0]] + [b for a, b in pairwise(vertices) if not np.array_equal(a, b)]
    return np.array(kept)
