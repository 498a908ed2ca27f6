"""Recordings and digests of real arrays, as the judges of L1 to L4 are given them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pytest_migparity.core.evidence import Evidence, Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Finding, Witness
from pytest_migparity.host.digest import digest, fine_lanes, measured, summary
from pytest_migparity.host.tensors import of_array
from pytest_migparity.judges.forward import judge_forward
from pytest_migparity.judges.identity import Identity, judge_identity
from pytest_migparity.judges.inputs import judge_inputs
from pytest_migparity.judges.onestep import judge_step
from pytest_migparity.wire import record
from pytest_migparity.wire.record import Event, Facts, Recording

JUDGES = {"L1": judge_identity, "L2": judge_inputs, "L3": judge_forward, "L4": judge_step}


def event(stage: str, name: str, array: Any, step: int = 0, depth: int = 0, valid: float = 1.0,
          dtype: str = "") -> Event:
    """One array as it is recorded."""
    whole = measured(of_array(name, np.asarray(array), dtype), level=1, algorithm="sha256")
    return Event(step, stage, name, summary(whole, 1), depth, valid, fine_lanes(whole))


def recording(events: Iterable[Event] = (), facts: Iterable[Facts] = (), rank: int = 0, world: int = 1,
              **meta: str) -> Recording:
    """One rank's recording, through its text."""
    made = Recording(rank, world, "sha256", tuple(events), tuple(facts), tuple(sorted(meta.items())))
    return record.from_text(record.to_text(made))


def evidence(side: str, *tables: Any, kind: str = "forward", producer: str = "real") -> Evidence[Any]:
    """One side's evidence: the recordings of all its ranks, or an Identity."""
    table = tables[0] if tables and isinstance(tables[0], Identity) else tables
    return Evidence(side, kind, (Recorded(table, Witness(side, producer, "f", f"{side}{id(table)}")),))


def judged(level: str, baseline: Any, candidate: Any, **policy: Any) -> Finding:
    """The finding of one level; a side is a recording, several ranks' recordings, or an Identity."""
    sides = [evidence(side, *(found if isinstance(found, tuple) and not isinstance(found, Recording) else (found,)))
             for side, found in (("baseline", baseline), ("candidate", candidate))]
    return JUDGES[level](*sides, limits=default_limits(LEVELS[level]), floors=Floors(), policy=Policy(**policy))


def identity(weights: Mapping[str, Any], **others: Mapping[str, Any]) -> Identity:
    """An Identity of named arrays."""
    return Identity({what: digest([of_array(name, np.asarray(array)) for name, array in arrays.items()],
                                  algorithm="sha256")
                     for what, arrays in {"weights": weights, **others}.items()})


def draws(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def normal(*shape: int, seed: int = 0) -> Any:
    return draws(seed).standard_normal(shape).astype(np.float32)


def codes(finding: Finding) -> set[str]:
    return {item.code for item in finding.notes}
