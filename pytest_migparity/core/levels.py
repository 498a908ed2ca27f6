"""The ladder L0..L7: what each level asks, of which evidence, and the checks whose limits a marker may carry."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from .errors import UserError, did_you_mean

SIDES = ("baseline", "candidate")


class Direction(enum.StrEnum):
    """Which side of the limit is good."""

    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """One check of a level: its published limit, and the value beyond which no floor, digit or manifest excuses it.

    `default` repeats the marker of the level's conformance test (a test holds them equal), so that the command line
    judges by the same limits without pytest. `cap` is a bound on what floors, digits and reasons may make of it.
    `measured`: the limit in force, or ten floors where that is more, once two floors or more were measured.

    L5's limits are where the trajectory study (facts/loss.md) calls a single statistic an outright failure; for
    first3 where its good pairs end (1.3e-2); for final, drift and spearman, which it does not give, in proportion; no
    good pair has a spike beyond 1e-3. The
    finer differences, of which a single statistic cannot tell good from bad, are weighed by the departure.
    """

    name: str
    default: float
    cap: float
    direction: Direction = Direction.MAX
    unit: str = ""
    measured: float | None = None

    def refuses(self, value: float) -> str:
        """Why `value` can be no limit of this check; empty where it can."""
        if value < 0 or (self.direction is Direction.MIN and value > 1):
            return f"expected {'0 to 1' if self.direction is Direction.MIN else '0 or more'}"
        return f"beyond {self.cap:g}, which no reason excuses" if self.looser(value, self.cap) else ""

    def looser(self, value: float, than: float) -> bool:
        """Does `value` let more through than `than`?"""
        return value > than if self.direction is Direction.MAX else value < than


@dataclass(frozen=True, slots=True)
class Level:
    """One rung of the ladder. `kinds` of evidence it judges; `per`: a case for each series, each task, or one.

    `figures` are statistics without a limit of their own that a floor may be measured for, with the largest floor that
    still excuses anything.
    """

    name: str
    title: str
    question: str
    kinds: tuple[str, ...]
    checks: Mapping[str, CheckSpec]
    per: Literal["", "series", "task"] = ""
    figures: Mapping[str, float] = field(default_factory=dict)

    def check(self, name: str) -> CheckSpec:
        """The spec of one check; a misspelled name is the user's error."""
        try:
            return self.checks[name]
        except KeyError:
            raise UserError(f"{self.name} has no limit {name!r}; {did_you_mean(name, self.checks)}") from None


def _level(name: str, title: str, question: str, kinds: str, *checks: CheckSpec,
           per: Literal["", "series", "task"] = "", figures: Mapping[str, float] | None = None) -> Level:
    return Level(name, title, question, tuple(kinds.split()), {spec.name: spec for spec in checks}, per,
                 figures or {})


_LOSS_CHECKS = (
    CheckSpec("step0", 1e-3, cap=1e-3, measured=5e-5),
    CheckSpec("first3", 2e-2, cap=2e-2, measured=1e-3),
    CheckSpec("spike", 1e-3, cap=5e-2),
    CheckSpec("final", 5e-2, cap=1e-1),
    CheckSpec("mean", 1e-2, cap=3e-2),
    CheckSpec("tail", 5e-3, cap=3e-2),
    CheckSpec("drift", 1e-2, cap=6e-2, unit="per run"),
    CheckSpec("spearman", 0.9, cap=0.9, direction=Direction.MIN),
    CheckSpec("order", 0.9, cap=0.5, direction=Direction.MIN),
    CheckSpec("departure", 2.35, cap=3.0, unit="decades"),
)

_EPS = "x 1.03^depth eps"
_IDENTITY_CHECKS = (
    CheckSpec("differing", 0, cap=0, unit="tensors"),
    CheckSpec("unmatched", 0, cap=0, unit="tensors"),
)
_INPUT_CHECKS = (
    CheckSpec("ids", 0, cap=0, unit="tensors"),
    CheckSpec("noise", 0, cap=0, unit="tensors"),
    CheckSpec("features", 1e-5, cap=1e-2),
    CheckSpec("pixels", 2e-2, cap=5e-2),
)
_FORWARD_CHECKS = (
    CheckSpec("error", 4, cap=64, unit=_EPS),
    CheckSpec("cosine", 0.99, cap=0.9, direction=Direction.MIN),
    CheckSpec("norm", 5e-2, cap=0.2),
)
_STEP_CHECKS = (
    CheckSpec("loss", 1e-3, cap=1e-2),
    CheckSpec("grad", 4, cap=64, unit=_EPS),
    CheckSpec("clip", 1e-2, cap=0.1),
    CheckSpec("update", 5e-2, cap=0.2),
    CheckSpec("moved", 1e-2, cap=0.1),
    CheckSpec("skipped", 0, cap=0, unit="steps"),
    CheckSpec("state", 0, cap=0, unit="tensors"),
)
_LOOP_CHECKS = (
    CheckSpec("margin", 0.10, cap=0.20, unit="of success"),
    CheckSpec("alpha", 0.05, cap=0.10, unit="p"),
)

_ACTION_CHECKS = (
    CheckSpec("close", 0.05, cap=0.15, unit="std"),
    CheckSpec("far", 0.5, cap=0.5, unit="std"),
    CheckSpec("worst", 0.5, cap=1.0, unit="std"),
    CheckSpec("flips", 0.01, cap=0.05),
    CheckSpec("turn", 0.2, cap=0.2, unit="rad"),
    CheckSpec("reach", 0.03, cap=0.03, unit="m"),
    CheckSpec("kl", 0.01, cap=0.1, unit="nats"),
    CheckSpec("neighbours", 0.9, cap=0.8, direction=Direction.MIN),
)

LEVELS: Mapping[str, Level] = {
    level.name: level
    for level in (
        _level("L0", "environment", "Same software stack and effective configuration, apart from what was declared?",
               "env"),
        _level("L1", "identity", "Same weights and data, and were the intended ones really loaded?",
               "weights data env", *_IDENTITY_CHECKS),
        _level("L2", "inputs", "Do both models receive the same tensors?", "inputs", *_INPUT_CHECKS),
        _level("L3", "forward", "At which module do the activations first part?", "forward", *_FORWARD_CHECKS),
        _level("L4", "step", "Is one optimizer step the same: loss, gradients, updates?", "step", *_STEP_CHECKS),
        _level("L5", "loss", "Do both sides train along the same trajectory?", "loss", *_LOSS_CHECKS,
               per="series", figures={"late": 1e-3, "noise": 2.0}),
        _level("L6", "action error", "Same input, same noise: same output, as far as the task can tell?", "actions",
               *_ACTION_CHECKS, per="task"),
        _level("L7", "closed loop", "Is the task's success rate no worse, beyond a margin?", "rollouts",
               *_LOOP_CHECKS),
    )
}


def level_named(name: str) -> Level:
    """The level `name`; an unknown one is the user's error."""
    try:
        return LEVELS[name]
    except KeyError:
        raise UserError(f"there is no level {name!r}; {did_you_mean(name, LEVELS)}") from None
