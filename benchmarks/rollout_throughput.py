"""Episodes per second of `migparity rollout` beside the same policy evaluated serially.

    python benchmarks/rollout_throughput.py --json [--episodes 300] [--rounds 3] [--workers 2] [--rows 2]

FetchPickAndPlace-v4 (extra `sim`) with the small flow-matching policy of tests/rollouts/fetch.py, trained first.
Serial: one process that simulates and asks its policy itself, episode after episode, one BLAS thread. Ours: workers,
and the policy's server, which answers in batches. Same seeds; `same_outcomes` says whether every episode ended alike.
Processes start anew in each round, and their start counts. The figures are medians over rounds that take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pytest_migparity.rollouts.run import Order, Run
from pytest_migparity.wire.rollouts import from_text

FETCH = Path(__file__).resolve().parent.parent / "tests" / "rollouts"
HORIZON = 50
SERIAL = """
import sys
from pathlib import Path
import fetch
from pytest_migparity.rollouts.episode import run_episode
from pytest_migparity.wire.rollouts import to_line

policy, environment = fetch.Policy(), fetch.Fetch()

def ask(observation, noise, seed, query):
    return policy.act({name: value[None] for name, value in observation.items()}, noise[None])[0]

with Path(sys.argv[1]).open("w") as stream:
    for seed in range(int(sys.argv[2])):
        stream.write(to_line(run_episode(environment, ask, "pick", seed, noise_shape=policy.noise_shape,
                                         executed=policy.executed, horizon=int(sys.argv[3]), harness="fetch")))
"""


def outcomes(path: Path) -> dict[int | None, bool | None]:
    """Success by seed."""
    return {episode.seed: episode.success for episode in from_text(path.read_text("utf-8")).episodes}


def serial(out: Path, episodes: int) -> float:
    """Seconds of the serial evaluation."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-W", "ignore", "-c", SERIAL, out, str(episodes), str(HORIZON)], check=True,
                   stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def parallel(out: Path, episodes: int, workers: int, rows: int) -> float:
    """Seconds of the runner."""
    start = time.perf_counter()
    Run(Order("fetch:Fetch", [("pick", seed) for seed in range(episodes)], out, policy="fetch:Policy", workers=workers,
              rows=rows, horizon=HORIZON, harness="fetch"))()
    return time.perf_counter() - start


def measure(home: Path, episodes: int, rounds: int, workers: int, rows: int) -> dict[str, Any]:
    """Both, in turns."""
    subprocess.run([sys.executable, "-W", "ignore", FETCH / "fetch.py", home / "policy.npz"], check=True,
                   stderr=subprocess.DEVNULL)
    times: dict[str, list[float]] = {"serial": [], "ours": []}
    same = True
    for turn in range(rounds):
        places = [home / f"{name}{turn}.jsonl" for name in times]
        times["serial"].append(serial(places[0], episodes))
        times["ours"].append(parallel(places[1], episodes, workers, rows))
        same = same and outcomes(places[0]) == outcomes(places[1])
    ratios = [one / other for one, other in zip(*times.values(), strict=True)]
    return {"episodes": episodes, "workers": workers, "rows": rows, "rounds": rounds, "same_outcomes": same,
            "serial_per_second": episodes / statistics.median(times["serial"]),
            "ours_per_second": episodes / statistics.median(times["ours"]), "ratio": statistics.median(ratios)}


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ.update({"PYTHONPATH": os.pathsep.join([str(FETCH), *sys.path]),
                           "FETCH_POLICY": str(home / "policy.npz"), "OPENBLAS_NUM_THREADS": "1",
                           "PYTHONWARNINGS": "ignore"})
        found = measure(home, asked.episodes, asked.rounds, asked.workers, asked.rows)
    if asked.json:
        print(json.dumps(found, indent=2, sort_keys=True))
    else:
        print("\n".join(f"{name:<20}{value}" for name, value in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
