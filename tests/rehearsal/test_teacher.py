"""The teacher's demonstrations: safe, complete, and the same when generated again."""

import numpy as np

from pytest_migparity.rehearsal import demos
from pytest_migparity.rehearsal.arm import JOINT_HIGH, JOINT_LOW
from pytest_migparity.rehearsal.teacher import CLEARANCE, plan, problems, replay, timed


def test_every_packaged_demonstration_replays_without_a_collision() -> None:
    for part, count in (("training", 3500), ("held_out", 256)):
        safe, least = replay([timed(path) for path in demos.load(part).paths])
        assert len(safe) >= count
        assert safe.all()
        assert least.min() > 0


def test_generating_a_part_again_gives_the_packaged_arrays() -> None:
    packaged = demos.load("training")
    again = demos.demonstrate(range(60))
    assert np.array_equal(again.seeds, packaged.seeds[: len(again.seeds)])
    assert packaged.seeds[len(again.seeds)] >= 60
    for mine, theirs in zip(again.paths, packaged.paths, strict=False):
        assert np.array_equal(mine, theirs)


def test_evaluation_problems_were_never_trained_on() -> None:
    training, held_out = demos.load("training"), demos.load("held_out")
    assert not set(training.seeds.tolist()) & set(held_out.seeds.tolist())
    assert len(set(held_out.seeds.tolist())) == 256


def test_a_problem_is_a_function_of_its_seed() -> None:
    together, _ = problems(range(5))
    alone, _ = problems([3])
    assert np.array_equal(together[3], alone[0])


def test_paths_join_start_and_goal_within_joint_limits() -> None:
    found, has_problem = problems(range(30))
    for pair, path in zip(found[has_problem], plan(found[has_problem]), strict=True):
        if path is not None:
            assert np.array_equal(path[[0, -1]], pair)
            assert (path >= JOINT_LOW).all()
            assert (path <= JOINT_HIGH).all()


def test_timing_starts_and_ends_at_rest_on_the_path() -> None:
    way = timed(demos.load("training").paths[0])
    speed = np.abs(np.diff(way, axis=0)).max(1)
    assert np.array_equal(way[[0, -1]], demos.load("training").paths[0][[0, -1]])
    assert speed[-1] < speed.max() / 2


def test_a_path_through_an_obstacle_is_not_safe() -> None:
    middle = np.array([0.0, 1.4, 2.3, 1.3, 0.0, 1.0])
    safe, least = replay([np.stack([middle, middle + 1e-3])])
    assert not safe[0]
    assert least[0] < CLEARANCE
