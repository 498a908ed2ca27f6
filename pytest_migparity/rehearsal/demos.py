"""Demonstrations: the teacher's paths for fixed lists of seeds, kept as a small file inside the package.

    python -m pytest_migparity.rehearsal.demos --write PATH      generates the file again, byte for byte (about 20 s)

Only path vertices are kept, as float32; timing is cheap and exact to repeat. Problems without a solution are left out.
"""

import argparse
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.rehearsal.arm import Floats
from pytest_migparity.rehearsal.teacher import plan, problems, replay, timed

TRAINING_SEEDS = range(4000)
HELD_OUT_SEEDS = range(100_000, 100_320)
HELD_OUT_COUNT = 256


@dataclass(frozen=True, slots=True)
class Demonstrations:
    """Solved problems: seeds (n,), and for each the path vertices (2..4, 6) in rad."""

    seeds: NDArray[np.int32]
    paths: tuple[Floats, ...]

    @property
    def start(self) -> Floats:
        """Start configurations (n, 6)."""
        return np.stack([path[0] for path in self.paths])

    @property
    def goal(self) -> Floats:
        """Goal configurations (n, 6)."""
        return np.stack([path[-1] for path in self.paths])


def demonstrate(seeds: Sequence[int]) -> Demonstrations:
    """Plan every problem of `seeds`, keep those whose replay is safe. Vertices are rounded to float32 first."""
    found, has_problem = problems(seeds)
    planned = plan(found[has_problem])
    solved = [
        (seed, path.astype(np.float32).astype(np.float64))
        for seed, path in zip(np.asarray(seeds)[has_problem], planned, strict=True)
        if path is not None
    ]
    safe, _ = replay([timed(path) for _, path in solved])
    kept = [pair for pair, ok in zip(solved, safe, strict=True) if ok]
    return Demonstrations(np.array([seed for seed, _ in kept], np.int32), tuple(path for _, path in kept))


@cache
def load(part: str) -> Demonstrations:
    """The packaged demonstrations: `part` is "training" or "held_out" (256 problems for evaluation)."""
    with files("pytest_migparity.rehearsal").joinpath("data/demos.npz").open("rb") as stream:
        arrays = np.load(io.BytesIO(stream.read()), allow_pickle=False)
        seeds, counts, vertices = (arrays[f"{part}_{name}"] for name in ("seeds", "counts", "vertices"))
    ends = np.cumsum(counts.astype(np.int64))
    paths = np.split(vertices.astype(np.float64), ends[:-1])
    return Demonstrations(seeds, tuple(paths))


def write(path: Path) -> None:
    """Generate both parts and write them to `path`. The zip holds fixed dates, so equal arrays give equal bytes."""
    held_out = demonstrate(HELD_OUT_SEEDS)
    parts = {
        "training": demonstrate(TRAINING_SEEDS),
        "held_out": Demonstrations(held_out.seeds[:HELD_OUT_COUNT], held_out.paths[:HELD_OUT_COUNT]),
    }
    arrays: dict[str, Any] = {}
    for part, demos in parts.items():
        arrays[f"{part}_seeds"] = demos.seeds
        arrays[f"{part}_counts"] = np.array([len(p) for p in demos.paths], np.int8)
        arrays[f"{part}_vertices"] = np.concatenate(demos.paths).astype(np.float32)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    path.write_bytes(buffer.getvalue())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, required=True, metavar="PATH")
    write(parser.parse_args().write)
