"""The labelled real pairs: reading them, the families of their models, and what published rules say of them."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from pytest_migparity.core.evidence import Evidence, Policy, Recorded, Trajectory
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Finding, Witness
from pytest_migparity.judges.difftraj import floors_of_pairs, judge_loss
from pytest_migparity.judges.loss_departure import SHIPPED, Departure, Scale, departure_of
from pytest_migparity.judges.traj_align import align, series_of
from pytest_migparity.judges.traj_stats import first_zeros
from pytest_migparity.readers.loss import read_loss

LIMITS = default_limits(LEVELS["L5"])
NONE = Floors()
# the software whose good pairs the references were measured on: a plain model of another stack has no known family
MEASURED = ("NVIDIA/Megatron-LM", "pytorch/torchtitan", "KellerJordan/modded-nanogpt")
MOE = re.compile(r"moe|mixtral|deepseek|expert|_ep[248]|qwen3", re.IGNORECASE)
DROPOUT = re.compile(r"bert|(^|[/_])t5", re.IGNORECASE)


@dataclass(frozen=True)
class Pair:
    """One row of cases.csv: both tables, floors, the model's family as its configuration's path tells it."""

    case: str
    label: str
    relation: str
    source: str
    group: str
    family: str | None
    first: int | None
    baseline: Trajectory
    candidate: Trajectory
    floors: Floors
    note: str

    @property
    def bad(self) -> bool:
        """Is it labelled as a pair that must be caught?"""
        return self.label == "neg"

    def figures(self) -> Departure | None:
        """The figures of the departure."""
        a, b = series_of(self.baseline), series_of(self.candidate)
        if a is None or b is None:
            return None
        pair = align(a, b, first=self.first)
        return departure_of(pair, first_zeros(self.baseline, self.candidate, pair))

    def judge(self, floors: Floors = NONE, scale: Scale = SHIPPED, steps: int | None = None) -> Finding:
        """The real judge's finding; with `steps`, on the first so many common steps only."""
        sides = [Evidence(side, "loss",
                          (Recorded(_cut(table, steps), Witness(side, "manual", side, side + self.case)),))
                 for side, table in (("baseline", self.baseline), ("candidate", self.candidate))]
        return judge_loss(sides[0], sides[1], limits=LIMITS, floors=floors, scale=scale,
                          policy=Policy(family=self.family, first=self.first))


def _cut(table: Trajectory, last: int | None) -> Trajectory:
    if last is None:
        return table
    kept = table.step <= last
    return Trajectory(table.step[kept], {name: values[kept] for name, values in table.columns.items()},
                      {name: values[kept] for name, values in table.quantum.items()}, table.interval)


def family_of(repo: str, path: str) -> str | None:
    """What the configuration's path says of the model; None where neither it nor the software tells."""
    if MOE.search(path):
        return "moe"
    if DROPOUT.search(path):
        return "dropout"
    return "dense" if repo in MEASURED else None


def load(data: Path) -> list[Pair]:
    """All pairs of `data`/cases.csv."""

    @cache
    def table(name: str) -> Trajectory:
        return read_loss((data / "runs" / name).read_bytes(), name).table

    pairs = []
    with (data / "cases.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            path = row["baseline_path"]
            floors = [(table(one), table(other)) for one, other in (each.split("|") for each in row["floors"].split())]
            baseline, candidate = table(row["baseline"]), table(row["candidate"])
            resumed = "resume from checkpoint" in row["relation"]
            pairs.append(Pair(
                row["case"], row["label"], row["relation"], row["repo"], _group(row["repo"], path),
                family_of(row["repo"], path), int(candidate.step[0]) if resumed else None, baseline, candidate,
                floors_of_pairs(floors, source="cases.csv") if floors else NONE, row["note"]))
    return pairs


def _group(repo: str, path: str) -> str:
    """The test case: its folder, or the model that a file's name begins with."""
    parts = path.split("/")
    return parts[-2] if "golden" in parts[-1] or repo not in MEASURED[1:2] else parts[-1].rsplit("_", 2)[0]


def published(pair: Pair) -> dict[str, bool]:
    """Does each published rule pass the pair? Sources: facts on loss rules (docs/explanation.md names them)."""
    _, i, j = np.intersect1d(pair.baseline.step, pair.candidate.step, return_indices=True)
    a, b = pair.baseline.loss[i], pair.candidate.loss[j]
    finite = np.isfinite(a) & np.isfinite(b) & (a != 0)
    a, b = a[finite], b[finite]
    relative = np.abs(b - a) / np.abs(a)
    bound = np.where(a > 2, 0.10, np.where(a > 0.5, 0.05, 0.02))  # Megatron-Bridge, by loss size
    bridge = (np.corrcoef(a, b)[0, 1] >= 0.95 if a.size > 2 and a.std() > 0 and b.std() > 0 else False)
    return {
        "exact": bool(np.array_equal(a, b)),
        "mean_1pct": bool(relative.mean() <= 0.01),
        "mean_2pct": bool(relative.mean() <= 0.02),
        "mean_4pct": bool(relative.mean() <= 0.04),
        "step_1pct": bool(relative.max() <= 0.01),
        "step_2pct": bool(relative.max() <= 0.02),
        "megatron_5pct": bool(np.mean(~np.isclose(np.round(a, 5), np.round(b, 5), rtol=0.05, atol=0)) <= 0.01),
        "bridge": bool(bridge and np.mean(relative > bound) <= 0.10 and relative[-1] <= 0.03),
        "mindformers": bool(relative[0] < 0.005 and relative.mean() < 0.01),
    }
