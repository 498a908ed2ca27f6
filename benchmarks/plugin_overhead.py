"""What the plugin costs other people's tests, and how long a cold L5 verdict takes.

    python benchmarks/plugin_overhead.py --json

collect_ms_without / collect_ms_with: CPU time of `pytest --co -q` over a folder of plain tests, with the plugin
blocked and loaded; ratio: the median of the pairwise ratios. l5_cold_s: wall time of
`pytest -m L5 --migparity-model lingbot` in a new process; imports_s: wall time of its peer,
`python -c "import numpy, scipy.stats, pandas"`. l5_cold_alone_s: the same without hypothesis, whose plugin imports
all of it at the end of every pytest run and is there only for those who develop. Interleaved, medians.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

PEER = "import numpy, scipy.stats, pandas"
PLAIN = [sys.executable, "-m", "pytest", "--co", "-q", "-p", "no:cacheprovider"]
BLOCKED = ["-p", "no:migparity", "-p", "no:migparity-fixtures"]
COLD = [sys.executable, "-m", "pytest", "-m", "L5", "--migparity-model", "lingbot", "-p", "no:cacheprovider"]


def run(command: Sequence[str], folder: Path, environ: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of one command that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environ, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(rounds: int) -> dict[str, float]:
    """Interleaved rounds; medians."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    without, with_it, cold, alone, imports = [], [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder, empty = Path(name, "plain"), Path(name, "empty")
        folder.mkdir()
        empty.mkdir()
        for index in range(20):
            body = "\n".join(f"def test_{number}(): pass" for number in range(25))
            (folder / f"test_{index}.py").write_text(body)
        environ["MIGPARITY_CACHE"] = str(Path(name, "cache"))
        for number in range(rounds + 1):
            pair = [run([*PLAIN, *BLOCKED], folder, environ)[1], run(PLAIN, folder, environ)[1]]
            seconds = [run(command, empty, environ)[0] for command in (COLD, [*COLD, "-p", "no:hypothesispytest"],
                                                                       [sys.executable, "-c", PEER])]
            if number:  # the first round warms the page cache
                without.append(pair[0])
                with_it.append(pair[1])
                cold.append(seconds[0])
                alone.append(seconds[1])
                imports.append(seconds[2])
    return {
        "collect_ms_without": round(1e3 * statistics.median(without), 1),
        "collect_ms_with": round(1e3 * statistics.median(with_it), 1),
        "ratio": round(statistics.median(b / a for a, b in zip(without, with_it, strict=True)), 3),
        "l5_cold_s": round(statistics.median(cold), 3),
        "imports_s": round(statistics.median(imports), 3),
        "l5_cold_alone_s": round(statistics.median(alone), 3),
        "l5_cold_over_imports": round(statistics.median(a / b for a, b in zip(cold, imports, strict=True)), 3),
        "rounds": rounds,
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    figures = measure(arguments.rounds)
    print(json.dumps(figures) if arguments.json else "\n".join(f"{key:<22}{value}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
