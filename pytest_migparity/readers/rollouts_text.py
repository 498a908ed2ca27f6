"""Episodes in what evaluations print: RoboTwin, XPolicyLab, openpi on LIBERO, SimplerEnv's videos, robomimic."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import PurePosixPath

from pytest_migparity.wire.rollouts import Episode, Rollouts

from .errors import ReadError, shown
from .rollouts_counts import whole_count

ROBOTWIN = re.compile(r"Success rate: (\d+)/(\d+) => ([\d.]+)%, current seed: (\d+)")
XPOLICYLAB = re.compile(r"episode=(\d+) \| worker=\d+ \| seed=(\d+) \| success=(\w+)")
LIBERO = re.compile(r"(?:^|[\s:\]])(?:Task: (?P<task>[^\n]{1,200})|Starting episode (?P<start>\d+)\.\.\.|"
                    r"Success: (?P<success>True|False)\b)", re.MULTILINE)
VIDEO = re.compile(r"(success|failure)_([^/\s][^/\n]*)\.mp4")
RESULT = re.compile(r"\ATimestamp: [^\n]*\s+Instruction Type: [^\n]*\s+[\d.]+\s*\Z")
ROBOMIMIC = re.compile(r"Average Rollout Stats[^{\n]*\n?\s*(\{[^{}]*\})")
_AGAIN = "fetch the file again, or run the evaluation again"


def task_of(name: str) -> str:
    """The task that a file without a task in it is of: its name, where that says more than what the file is."""
    stem = PurePosixPath(name).stem
    return "main" if stem.startswith(("rollouts", "eval", "_result", "stdout", "log")) else stem


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def read_robotwin(text: str, name: str) -> Rollouts:
    """RoboTwin's running count: an episode succeeded where the count of successes grew.

    The expert's planner is not deterministic, so that two runs accept other seeds: paired by seed, never by position.
    """
    episodes, before = [], (0, 0)
    for found in ROBOTWIN.finditer(text):
        now = int(found[1]), int(found[2])
        if now[1] != before[1] + 1 or now[0] - before[0] not in (0, 1):
            raise ReadError(name, line=_line(text, found.start()),
                            found=f"{now[0]}/{now[1]} after {before[0]}/{before[1]}",
                            expected="a count that grows by one episode a line",
                            remedy="hand in one whole log for each task, or " + _AGAIN)
        episodes.append(Episode(task_of(name), int(found[4]), now[0] > before[0], harness="RoboTwin"))
        before = now
    return Rollouts(tuple(episodes))


def read_xpolicylab(text: str, name: str) -> Rollouts:
    """XPolicyLab's batch output: one line an episode, in the order in which workers finished."""
    episodes = []
    for found in XPOLICYLAB.finditer(text):
        if found[3] not in ("True", "False"):
            raise ReadError(name, line=_line(text, found.start()), found=f"success={shown(found[3])}",
                            expected="True or False", remedy=_AGAIN)
        episodes.append(Episode(task_of(name), int(found[2]), found[3] == "True", harness="XPolicyLab"))
    return Rollouts(tuple(episodes))


def read_libero(text: str, name: str) -> Rollouts:
    """Openpi's LIBERO log: (task, number) names the initial state; exceptions count as failures there."""
    episodes: list[Episode] = []
    task, started, at = "", None, 0
    for found in LIBERO.finditer(text):
        at = found.start()
        if found["success"] is not None:
            if started is None or not task:
                raise ReadError(name, line=_line(text, at), found="an outcome", remedy="hand in the whole log",
                                expected="a task and 'Starting episode N...' before it")
            episodes.append(Episode(task, started, found["success"] == "True", harness="openpi LIBERO"))
            started = None
            continue
        if started is not None and found["start"] is not None:
            raise ReadError(name, line=_line(text, at), found=f"episode {started} of {shown(task)} without an outcome",
                            expected="'Success: True' or 'Success: False'", remedy=_AGAIN)
        task = found["task"].strip() if found["task"] is not None else task
        started = int(found["start"]) if found["start"] is not None else started
    if started is not None:
        raise ReadError(name, line=_line(text, at),
                        found=f"episode {started} of {shown(task)} without an outcome at the end",
                        expected="'Success: True' or 'Success: False'", remedy=_AGAIN)
    return Rollouts(tuple(episodes))


def read_videos(text: str, name: str) -> Rollouts:
    """A list of SimplerEnv's videos: the file's name is the outcome, then the poses that the episode started from."""
    episodes = []
    for number, row in enumerate(text.split("\n"), 1):
        if not row.strip():
            continue
        path = PurePosixPath(row.strip())
        found = VIDEO.fullmatch(path.name)
        if found is None:
            raise ReadError(name, line=number, found=shown(row), expected="success_... .mp4 or failure_... .mp4",
                            remedy="list the videos alone: find . -name '*.mp4'")
        start = f"{path.parent.name}/{found[2]}"
        seed = int(hashlib.sha256(start.encode()).hexdigest()[:12], 16)
        episodes.append(Episode(path.parent.name or "main", seed, found[1] == "success", init=start,
                                harness="SimplerEnv"))
    return Rollouts(tuple(episodes))


def read_result(text: str, name: str) -> Rollouts:
    """RoboTwin's _result.txt: a rate and no number of episodes, which nothing can be computed from."""
    raise ReadError(name, found=f"a rate of {shown(text.split()[-1])} without its number of episodes",
                    expected="the episodes", remedy="hand in what the evaluation printed: 'Success rate: 3/7 => ...'")


def read_robomimic(text: str, name: str) -> Rollouts:
    """Robomimic's averages: N is the number of successes over the rate, and must be whole."""
    found = ROBOMIMIC.findall(text)
    if len(found) > 1:
        raise ReadError(name, found=f"{len(found)} evaluations", expected="that of one checkpoint",
                        remedy="leave the one that is meant")
    try:
        stats = json.loads(found[0])
        rate, successes = float(stats["Success_Rate"]), float(stats["Num_Success"])
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise ReadError(name, found="Average Rollout Stats without Success_Rate and Num_Success", expected="both",
                        remedy=_AGAIN) from None
    if not rate > 0 or not successes > 0:
        raise ReadError(name, found=f"Success_Rate {rate:g}, Num_Success {successes:g}", expected="a rate above 0",
                        remedy="from no success the number of episodes cannot be told: hand in counts as a CSV")
    episodes = successes / rate
    if abs(episodes - round(episodes)) > 1e-6 * episodes:
        raise ReadError(name, found=f"{successes:g} successes at a rate of {rate:g}",
                        expected="a whole number of episodes", remedy="hand in counts: task,successes,episodes")
    return whole_count(name, {task_of(name): (round(successes), round(episodes))})
