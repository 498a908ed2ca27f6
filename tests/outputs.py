"""Outputs of a model as L6 is given them, with the noise of a policy and the errors of another machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pytest_migparity.core.evidence import Evidence, Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floor, Floors, default_limits
from pytest_migparity.core.outputs import ActionRules, OutputSet
from pytest_migparity.core.verdict import Finding, Witness
from pytest_migparity.judges.action_error import judge_actions

NAMES = ("x", "y", "gripper")


def chunks(samples: int = 40, horizon: int = 5, dims: int = 3, seed: int = 0) -> Any:
    """Actions [sample, horizon, dim] of a spread of about 1."""
    return np.random.default_rng(seed).standard_normal((samples, horizon, dims))


def outputs(values: Any, *, kind: str = "actions", site: str = "gpu", trained: str | None = None,
            **fields: Any) -> OutputSet:
    """An OutputSet of an array, with ids, noise of its own for each sample, and ten sampler steps for actions."""
    array = np.asarray(values, np.float64)
    if kind == "actions" and array.ndim == 3:
        array = array[:, None]
    ids = tuple(f"s{k}" for k in range(len(array)))
    policy = {"noise": tuple(f"noise of {name}" for name in ids), "steps": 10} if kind == "actions" else {}
    return OutputSet(**{"kind": kind, "values": array, "sample": ids, "site": site, "trained": trained or site,
                        **policy, **fields})


def evidence(side: str, table: OutputSet, producer: str = "real") -> Evidence[OutputSet]:
    return Evidence(side, "actions", (Recorded(table, Witness(side, producer, "actions.npz", side * 8)),))


def judged(baseline: OutputSet, candidate: OutputSet, *, rules: ActionRules | None = None,
           floors: dict[str, float] | None = None, producer: str = "real") -> Finding:
    """The finding of L6; a candidate that names no site of its own is of the NPU."""
    if {candidate.site, candidate.trained, baseline.site, baseline.trained} == {"gpu"}:
        candidate = replace(candidate, site="npu", trained="npu")
    return judge_actions(evidence("baseline", baseline, producer), evidence("candidate", candidate, producer),
                         limits=default_limits(LEVELS["L6"]),
                         floors=Floors({name: Floor(value, "reruns") for name, value in (floors or {}).items()}),
                         policy=Policy(actions=rules or ActionRules()))


def values(finding: Finding) -> dict[str, float]:
    return {check.name: check.value for check in finding.checks}


def codes(finding: Finding) -> set[str]:
    return {item.code for item in finding.notes}
