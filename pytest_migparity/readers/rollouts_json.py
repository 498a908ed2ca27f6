"""Episodes in JSON documents: lerobot's eval_info.json, ManiSkill's RecordEpisode; MimicGen's yield is refused."""

from __future__ import annotations

import json
from typing import Any

from pytest_migparity.wire.rollouts import Episode, Rollouts

from .errors import ReadError, shown

_DRIFTS = "lerobot drops the seeds, and LIBERO's initial states drift with the outcomes before them"


def read_document(text: str, name: str) -> Rollouts:
    """The episodes of a JSON document, by its keys; ReadError where it is none of these, or breaks its own form."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReadError(name, found=f"no whole JSON document ({error})", remedy="fetch it again",
                        expected="eval_info.json or a list of episodes") from None
    if isinstance(data, dict) and "num_attempts" in data:
        raise ReadError(name, found="MimicGen's statistics: the yield of generating data",
                        expected="a policy's success rate", remedy="evaluate the policy")
    if isinstance(data, dict) and isinstance(data.get("episodes"), list):
        return _maniskill(data, name)
    if isinstance(data, dict) and isinstance(data.get("per_episode"), list):
        return _episodes(data["per_episode"], name)
    if isinstance(data, dict) and isinstance(data.get("per_task"), list):
        return _per_task(data["per_task"], name)
    keys = ", ".join(map(str, data)) if isinstance(data, dict) else ""
    raise ReadError(name, found=f"a JSON document with {shown(keys)}",
                    expected="episodes (ManiSkill), per_episode or per_task (lerobot)", remedy="hand in rollouts.jsonl")


def _outcome(value: Any, name: str, where: str) -> bool:
    if not isinstance(value, bool):
        raise ReadError(name, found=f"{where}: success {shown(str(value))}", expected="true or false",
                        remedy="an episode without an outcome is no failure: run it again")
    return value


def _maniskill(data: dict[str, Any], name: str) -> Rollouts:
    """ManiSkill: every episode has its seed; paired by it."""
    info = data.get("env_info")
    info = info if isinstance(info, dict) else {}
    horizon = info.get("max_episode_steps")
    episodes = []
    for at, item in enumerate(data["episodes"]):
        where = f"episode {at}"
        if not isinstance(item, dict) or isinstance(item.get("episode_seed"), bool) or \
                not isinstance(item.get("episode_seed"), int):
            raise ReadError(name, found=f"{where} without an episode_seed", expected="a whole number in each",
                            remedy="record again with seeds")
        steps = item.get("elapsed_steps")
        episodes.append(Episode(str(info.get("env_id") or "main"), item["episode_seed"],
                                _outcome(item.get("success"), name, where), harness="ManiSkill",
                                steps=steps if isinstance(steps, int) else None,
                                horizon=horizon if isinstance(horizon, int) else None))
    return _some(episodes, name, "")


def _episodes(rows: list[Any], name: str) -> Rollouts:
    """Lerobot's older form, with a seed for each episode."""
    found = []
    for at, item in enumerate(rows):
        item = item if isinstance(item, dict) else {}
        seed = item.get("seed")
        found.append(Episode("main", seed if isinstance(seed, int) and not isinstance(seed, bool) else None,
                             _outcome(item.get("success"), name, f"episode {at}"), harness="lerobot"))
    seeded = all(episode.seed is not None for episode in found)
    return _some(found if seeded else [episode._replace(seed=None) for episode in found], name,
                 "" if seeded else "its episodes have no seeds")


def _per_task(rows: list[Any], name: str) -> Rollouts:
    """Lerobot's present form: outcomes by task and no seeds; never paired by position."""
    found = []
    for item in rows:
        metrics = item.get("metrics") if isinstance(item, dict) else None
        successes = metrics.get("successes") if isinstance(metrics, dict) else None
        if not isinstance(item, dict) or not isinstance(successes, list):
            raise ReadError(name, found="a task without metrics.successes", expected="a list of outcomes",
                            remedy="hand in eval_info.json as lerobot wrote it")
        task = f"{item.get('task_group', 'main')}/{item.get('task_id', 0)}"
        found += [Episode(task, None, _outcome(each, name, task), harness="lerobot") for each in successes]
    return _some(found, name, _DRIFTS)


def _some(episodes: list[Episode], name: str, unpaired: str) -> Rollouts:
    if not episodes:
        raise ReadError(name, found="no episode", expected="at least one",
                        remedy="did the evaluation run? fetch it again")
    return Rollouts(tuple(episodes), unpaired)
