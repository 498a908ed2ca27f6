"""Result files as people have them: what is an episode, what may be paired, and what must be refused."""

import io
import json

import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.readers.rollouts import read_rollouts


def read(text, name="rollouts.log", **more):
    files = {name: text, **more}
    return read_rollouts({each: (lambda body=body: io.BytesIO(body.encode())) for each, body in files.items()})[0]


def refused(text, name="rollouts.log"):
    with pytest.raises(UserError) as caught:
        read(text, name)
    return str(caught.value)


def rows(table):
    return [(episode.task, episode.seed, episode.success) for episode in table.episodes]


ROBOTWIN = ("\x1b[32mSuccess rate: 1/1 => 100.0%, current seed: 100000\x1b[0m\n"
            "Success rate: 1/2 => 50.0%, current seed: 100003\nSuccess rate: 2/3 => 66.7%, current seed: 100004\n")


def test_robotwins_running_count_is_taken_apart_by_seed():
    table = read(ROBOTWIN)
    assert rows(table) == [("main", 100000, True), ("main", 100003, False), ("main", 100004, True)]
    assert table.unpaired == ""


def test_a_count_that_jumps_or_restarts_is_refused():
    assert "line 2: found 2/3 after 1/1" in refused(ROBOTWIN.replace("1/2", "2/3"))
    assert "line 4: found 1/1 after 2/3" in refused(ROBOTWIN + ROBOTWIN)


def test_a_file_for_each_task_is_a_suite():
    table = read(ROBOTWIN, "open_box.log", **{"stack.log": ROBOTWIN})
    assert [task for task, _, _ in rows(table)] == ["open_box"] * 3 + ["stack"] * 3


def test_a_rate_alone_is_refused_and_what_to_hand_in_is_said():
    assert "0.61' without its number of episodes" in refused(
        "Timestamp: 2025-01-01\n\nInstruction Type: unseen\n\n0.61\n", "_result.txt")


def test_xpolicylab_is_paired_by_seed_whatever_worker_ran_it():
    table = read("episode=4 | worker=1 | seed=100012 | success=True\nepisode=3 | worker=0 | seed=100010 | success=False\n")
    assert rows(table) == [("main", 100012, True), ("main", 100010, False)]
    assert "success='None'" in refused("episode=4 | worker=1 | seed=100012 | success=None\n")


LIBERO = ("INFO:root:\nTask: open the drawer\nINFO:root:Starting episode 1...\nINFO:root:Success: True\n"
          "INFO:root:Starting episode 2...\nINFO:root:Success: False\nINFO:root:\nTask: close it\n"
          "INFO:root:Starting episode 1...\nINFO:root:Success: True\n")


def test_openpis_libero_log_is_paired_by_task_and_number():
    assert rows(read(LIBERO)) == [("open the drawer", 1, True), ("open the drawer", 2, False), ("close it", 1, True)]


def test_an_episode_without_its_outcome_is_not_left_out():
    assert "without an outcome at the end" in refused(LIBERO + "INFO:root:Starting episode 2...\n")
    assert "without an outcome" in refused(LIBERO.replace("INFO:root:Success: False\n", "").replace(
        "Task: close it\n", "Starting episode 3...\n"))


def test_lerobot_is_never_paired_by_position():
    document = {"per_task": [{"task_group": "libero_10", "task_id": 0, "metrics": {"successes": [True, False]}},
                             {"task_group": "libero_10", "task_id": 1, "metrics": {"successes": [True]}}],
                "overall": {"pc_success": 66.7}}
    for indent in (None, 2):
        table = read(json.dumps(document, indent=indent), "eval_info.json")
        assert rows(table) == [("libero_10/0", None, True), ("libero_10/0", None, False), ("libero_10/1", None, True)]
        assert "drift" in table.unpaired


def test_lerobots_older_form_has_seeds():
    table = read(json.dumps({"per_episode": [{"episode_ix": 0, "seed": 7, "success": True}]}), "eval_info.json")
    assert (rows(table), table.unpaired) == ([("main", 7, True)], "")


def test_maniskill_is_paired_by_its_seeds():
    document = {"env_info": {"env_id": "PickCube-v1", "max_episode_steps": 50},
                "episodes": [{"episode_id": 0, "episode_seed": 3, "elapsed_steps": 21, "success": True}]}
    table = read(json.dumps(document, indent=1), "rollouts.json")
    assert rows(table) == [("PickCube-v1", 3, True)]
    assert (table.episodes[0].steps, table.episodes[0].horizon) == (21, 50)
    del document["episodes"][0]["success"]
    assert "episode 0: success 'None'" in refused(json.dumps(document, indent=1), "rollouts.json")


def test_the_yield_of_generated_data_is_no_policys_rate():
    assert "MimicGen" in refused(json.dumps({"success_rate": 60.0, "num_success": 6, "num_attempts": 10}), "rollouts.json")


def test_simplerenv_is_paired_by_the_start_in_the_file_name():
    one = read("run-a/PickCan/success_obj_-0.1_0.2_rot_0.mp4\nrun-a/PickCan/failure_obj_0.1_0.2_rot_0.mp4\n")
    other = read("b/PickCan/failure_obj_-0.1_0.2_rot_0.mp4\n")
    assert [episode.success for episode in one.episodes] == [True, False]
    assert other.episodes[0].seed == one.episodes[0].seed != one.episodes[1].seed
    assert "line 2: found 'notes.txt'" in refused("a/success_x.mp4\nnotes.txt\n")


def test_robomimics_average_is_a_count_when_it_is_whole():
    text = 'Epoch 50\nAverage Rollout Stats\n{\n "Horizon": 120.5,\n "Success_Rate": 0.8,\n "Num_Success": 40.0\n}\n'
    table = read(text)
    assert (sum(episode.success for episode in table.episodes), len(table.episodes)) == (40, 50)
    assert table.unpaired
    assert "2 evaluations" in refused(text + text)
    assert "a rate above 0" in refused(text.replace("0.8", "0.0").replace("40.0", "0.0"))
    assert "whole number of episodes" in refused(text.replace("0.8", "0.83"))


def test_counts_come_from_a_table_by_task():
    table = read("task,successes,episodes\nlift,7,10\npush,0,5\n", "rollouts.csv")
    assert len(table.episodes) == 15
    assert sum(episode.success for episode in table.episodes if episode.task == "lift") == 7
    assert read("task,rate,episodes\nlift,43.8%,500\n").episodes[218].success is True
    assert read("task,rate,episodes\nlift,43.8%,500\n").episodes[219].success is False


@pytest.mark.parametrize("text, why", [
    ("task,rate,episodes\nsuite,43.9%,500\n", "43.9% of 500 episodes: 219.5 successes"),
    ("task,rate\nsuite,0.61\n", "a rate without its number of episodes says nothing"),
    ("task,rate,episodes\nsuite,0.61,5000\n", "3025 to 3075 successes"),
    ("task,rate,episodes\nsuite,nan,500\n", "a rate of 'nan'"),
    ("task,rate,episodes\nsuite,61,100\n", "0 to 1, or 0% to 100%"),
    ("task,successes,episodes\nsuite,11,10\n", "11 successes of 10"),
    ("task,successes,episodes\nsuite,1,ten\n", "episodes 'ten'"),
    ("task,successes,episodes\nsuite,1,10\nsuite,2,10\n", "'suite' again"),
    ("task,successes,episodes\n", "0 episodes"),
    ("task,successes,episodes\nsuite,1,999999999\n", "expected 1 to"),
])
def test_a_table_of_counts_that_cannot_be_one_is_named(text, why):
    assert why in refused(text, "rollouts.csv")


@pytest.mark.parametrize("text, why", [("", "an empty file"), ("<html><body>log in", "an HTML page"),
                                       ('{"task": "a", "seed": 1, "success": true', "has no end"),
                                       ("\x89PNG", "no end")])
def test_what_is_no_result_is_refused(text, why):
    assert why in refused(text, "rollouts.jsonl")


def test_parts_of_one_run_must_all_list_episodes():
    line = '{"task": "a", "seed": %d, "success": true}\n'
    assert len(read(line % 1, "rollouts.0.jsonl", **{"rollouts.1.jsonl": line % 2}).episodes) == 2
    with pytest.raises(UserError, match="not all of them list episodes"):
        read(line % 1, "rollouts.0.jsonl", **{"rollouts.csv": "task,successes,episodes\nlift,7,10\n"})
