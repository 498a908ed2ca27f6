"""rollouts.jsonl: one line for each episode of the closed loop, written as it ends.

`{"task": "lift", "seed": 7, "success": true, "steps": 112, "harness": "robotwin 13c3c47"}` is a whole line; the other
keys of `Episode` are optional. A line that breaks a rule makes the file unreadable, and so does a last line without its
end: an episode that cannot be read is never left out in silence.
"""

from __future__ import annotations

import json
import math
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

NAME = "rollouts.jsonl"
MAX_LINE = 1 << 16  # characters
MAX_EPISODES = 1 << 20
ERRORS = ("crash", "rejected", "aborted")
_CUT = "the run was stopped while it was written, or the file was cut: fetch it again, or run that episode again"


class RolloutError(ValueError):
    """A file of episodes that cannot be read, with its line, what was found and what was expected."""


class Episode(NamedTuple):
    """One episode. `success` is None only where `error` says why there is no outcome.

    error: "" or crash (policy, server or simulator died), rejected (the expert's planner refused the seed), aborted.
    init, instruction, noise: digests, or the text itself, of the initial state, the instruction and the noise stream.
    success_safe: the outcome with the safety layer on; interventions: how often it stepped in. first_collision: time
    step of the first collision, None where there was none (`collisions`, pairs that touched, says whether anybody
    looked). goal_error: least distance to the goal. score: a secondary score, 0 to 1. timeout: ended at the horizon.
    harness: name and version of what ran it; envs: parallel environments; horizon: most steps; device: what the policy
    computed on; reason: what was last heard of an episode without an outcome.
    """

    task: str
    seed: Optional[int]
    success: Optional[bool]
    steps: Optional[int] = None
    error: str = ""
    init: str = ""
    instruction: str = ""
    noise: str = ""
    success_safe: Optional[bool] = None
    interventions: Optional[int] = None
    first_collision: Optional[float] = None
    collisions: Optional[Tuple[str, ...]] = None
    goal_error: Optional[float] = None
    score: Optional[float] = None
    timeout: Optional[bool] = None
    harness: str = ""
    envs: Optional[int] = None
    horizon: Optional[int] = None
    device: str = ""
    reason: str = ""


class Rollouts(NamedTuple):
    """One run's episodes, in file order. paired: may they be matched by (task, seed)? `unpaired` says why not.

    from_counts: only the numbers of successes are known, so that one episode is as good as another.
    """

    episodes: Tuple[Episode, ...]
    unpaired: str = ""
    from_counts: bool = False


_TEXTS = ("init", "instruction", "noise", "harness", "device", "reason")
_COUNTS = ("steps", "interventions", "envs", "horizon")
_NUMBERS = ("first_collision", "goal_error", "score")
_FLAGS = ("success_safe", "timeout")


def to_line(episode: Episode) -> str:
    """An episode as one line, held to the rules that reading checks; what is not known is left out."""
    data = {key: value for key, value in episode._asdict().items() if value is not None and value != ""}
    line = json.dumps(data, sort_keys=True, ensure_ascii=False, allow_nan=False)
    parse_line(line, 1)
    return line + "\n"


def from_text(text: str) -> Rollouts:
    """The episodes of a file; RolloutError names the first line that breaks a rule."""
    if not text.strip():
        raise RolloutError("no episode in it; did the run write it? fetch it again")
    lines = text.split("\n")
    if lines[-1].strip():
        raise RolloutError("line %d has no end (%.40r): %s" % (len(lines), lines[-1], _CUT))
    return rollouts_of(parse_line(line, number) for number, line in enumerate(lines, 1) if line.strip())


def rollouts_of(episodes: Iterable[Episode]) -> Rollouts:
    """Episodes as a run; RolloutError where there are too many, or some have a seed and others none."""
    kept: List[Episode] = []
    for episode in episodes:
        kept.append(episode)
        if len(kept) > MAX_EPISODES:
            raise RolloutError("more than %d episodes" % MAX_EPISODES)
    without = sum(episode.seed is None for episode in kept)
    if 0 < without < len(kept):
        raise RolloutError("%d of %d episodes have no seed: give each its own, or none" % (without, len(kept)))
    return Rollouts(tuple(kept), "its episodes have no seeds" if without else "")


def parse_line(line: str, number: int) -> Episode:
    """One line as an episode; RolloutError names the line and the key."""
    if len(line) > MAX_LINE:
        raise RolloutError("line %d is longer than %d characters" % (number, MAX_LINE))
    try:
        data = json.loads(line, parse_constant=_not_a_number)
    except RolloutError as error:
        raise RolloutError("line %d: %s" % (number, error)) from None
    except (ValueError, RecursionError) as error:
        raise RolloutError("line %d is no JSON object (%s): %s" % (number, error, _CUT)) from None
    if not isinstance(data, dict):
        raise RolloutError("line %d is no JSON object but %.40r" % (number, line))
    try:
        return _episode(data)
    except RolloutError as error:
        raise RolloutError("line %d: %s" % (number, error)) from None


def _not_a_number(text: str) -> float:
    raise RolloutError("%s is no outcome and no number" % text)


def _episode(data: Dict[str, Any]) -> Episode:
    found: Dict[str, Any] = {"task": _text(data, "task"), "seed": _whole(data, "seed"), "error": _text(data, "error")}
    if not found["task"]:
        raise RolloutError('"task" is missing or empty')
    if found["error"] and found["error"] not in ERRORS:
        raise RolloutError('"error" is %.40r, expected one of %s' % (found["error"], ", ".join(ERRORS)))
    success = _flag(data, "success")
    if success is None and not found["error"]:
        raise RolloutError('"success" is missing or null, and no "error" says why; expected true or false')
    found["success"] = None if found["error"] else success
    found.update({key: _text(data, key) for key in _TEXTS})
    found.update({key: _whole(data, key) for key in _COUNTS})
    found.update({key: _number(data, key) for key in _NUMBERS})
    found.update({key: _flag(data, key) for key in _FLAGS})
    for key in _COUNTS:
        if found[key] is not None and found[key] < 0:
            raise RolloutError('"%s" is %d, expected 0 or more' % (key, found[key]))
    if found["score"] is not None and not 0 <= found["score"] <= 1:
        raise RolloutError('"score" is %g, expected 0 to 1' % found["score"])
    pairs = data.get("collisions")
    if pairs is not None and not (isinstance(pairs, list) and all(isinstance(pair, str) for pair in pairs)):
        raise RolloutError('"collisions" is %.40r, expected a list of names like "arm-table"' % (pairs,))
    return Episode(collisions=None if pairs is None else tuple(pairs), **found)


def _text(data: Dict[str, Any], key: str) -> str:
    value = data.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RolloutError('"%s" is %.40r, expected a string' % (key, value))
    return value


def _whole(data: Dict[str, Any], key: str) -> Optional[int]:
    value = data.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise RolloutError('"%s" is %.40r, expected a whole number' % (key, value))
    return value


def _number(data: Dict[str, Any], key: str) -> Optional[float]:
    value = data.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise RolloutError('"%s" is %.40r, expected a finite number' % (key, value))
    return float(value)


def _flag(data: Dict[str, Any], key: str) -> Optional[bool]:
    value = data.get(key)
    if value is not None and not isinstance(value, bool):
        raise RolloutError('"%s" is %.40r, expected true or false' % (key, value))
    return value
