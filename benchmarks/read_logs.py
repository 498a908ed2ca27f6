"""What reading a training log costs beside one pass of a compiled regular expression over the same file.

    python benchmarks/read_logs.py --json

For each format a log of changing numbers is written, then read by turns: by `read_loss`, and by its peer, the loop that
a reasonable person writes: `for line in file`, one compiled expression (for CSV `csv.reader`, for JSON lines
`json.loads`), `float` of every column that the reader returns. Every read is a process of its own; its figures are
CPU seconds of the read alone, without imports, and its peak memory. Medians; `ratio` is the median of the pairwise
ratios. The peer gives no printed digits, repairs nothing and notices nothing.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

SHARE = {"megatron": 1.0, "lingbot": 0.2, "jsonl": 0.2, "csv": 0.2}  # of --rows
MEGATRON = re.compile(
    rb"iteration +(\d+)/.*?consumed samples: +(\S+).*?per iteration \(ms\): (\S+).*?TFLOP/s/GPU\): (\S+)"
    rb".*?learning rate: (\S+).*?batch size: +(\S+).*?lm loss: (\S+).*?loss scale: (\S+).*?grad norm: (\S+)"
    rb".*?num zeros: (\S+).*?params norm: (\S+).*?skipped iterations: +(\S+).*?nan iterations: +(\S+)")
LINGBOT = re.compile(
    rb"- Step (\d+)/.*?Loss (\S+), VLA_Loss (\S+), Depth_Loss (\S+), .*?GradNorm (\S+), LR (\S+), StepTime (\S+)s")


def megatron(number: int, draw: random.Random) -> str:
    """One line of Megatron's log."""
    return (f"[default0]: [2026-09-11 12:{number // 60 % 60:02}:{number % 60:02}.987995] iteration {number:8}/ 7629408 "
            f"| consumed samples: {32 * number:12} | elapsed time per iteration (ms): {draw.uniform(7e3, 3e4):.1f} | "
            f"throughput per GPU (TFLOP/s/GPU): {draw.uniform(20, 30):.1f} | "
            f"learning rate: {draw.uniform(1e-5, 1e-3):.6E} | global batch size: {32:5} | "
            f"lm loss: {draw.uniform(0.5, 12):.6E} | loss scale: 1.0 | grad norm: {draw.uniform(0.1, 40):.3f} | "
            f"num zeros: {draw.randrange(5000)}.0 | params norm: {draw.uniform(400, 600):.3f} | "
            f"number of skipped iterations: {0:3} | number of nan iterations: {0:3} |\n")


def lingbot(number: int, draw: random.Random) -> str:
    """One line of LingBot-VLA's log."""
    return (f"01/02/2026 10:00:{number % 60:02} - INFO - __main__ - Step {number}/9000000, Epoch 1, "
            f"Loss {draw.uniform(0.05, 2):.4f}, VLA_Loss {draw.uniform(0.05, 2):.4f}, "
            f"Depth_Loss {draw.uniform(0.05, 2):.4f}, GradNorm {draw.uniform(0.1, 2):.4f}, LR {1e-4:.2e}, "
            f"StepTime {draw.uniform(7, 8):.3f}s, \n")


def jsonl(number: int, draw: random.Random) -> str:
    """One record of LingBot-VLA's loss.jsonl."""
    return json.dumps({"step": number, "epoch": 1, "loss": draw.uniform(0.05, 2), "grad_norm": draw.uniform(0.1, 2),
                       "lr": 1e-4, "step_time": draw.uniform(7, 8)}) + "\n"


def table(number: int, draw: random.Random) -> str:
    """One row of a table, its header before the first."""
    head = "step,loss,grad_norm,lr\n" if number == 1 else ""
    return f"{head}{number},{draw.uniform(0.05, 12)},{draw.uniform(0.1, 2)},{1e-4}\n"


LINES: dict[str, Callable[[int, random.Random], str]] = {
    "megatron": megatron, "lingbot": lingbot, "jsonl": jsonl, "csv": table}


def by_pattern(path: str, pattern: re.Pattern[bytes]) -> Iterator[list[float]]:
    """Every captured group as a number, line by line."""
    with open(path, "rb") as file:
        for line in file:
            if match := pattern.search(line):
                yield [float(group) for group in match.groups()]


def by_json(path: str) -> Iterator[list[float]]:
    """Every value as a number, line by line."""
    with open(path, "rb") as file:
        for line in file:
            yield [float(value) for value in json.loads(line).values()]


def by_csv(path: str) -> Iterator[list[float]]:
    """Every cell as a number, line by line."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        next(rows)
        for row in rows:
            yield [float(cell) for cell in row]


PEERS: dict[str, Callable[[str], Iterator[list[float]]]] = {
    "megatron": lambda path: by_pattern(path, MEGATRON), "lingbot": lambda path: by_pattern(path, LINGBOT),
    "jsonl": by_json, "csv": by_csv}


def one(who: str, format: str, path: str) -> dict[str, float]:
    """One read in this process: CPU seconds, peak resident MB beyond what the imports take, values read."""
    from pytest_migparity.readers import loss, loss_csv, loss_jsonl, loss_lines  # noqa: F401 - only the read is timed

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    if who == "peer":
        columns: list[list[float]] = []
        for row in PEERS[format](path):
            columns = columns or [[] for _ in row]
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        values = sum(map(len, columns))
    else:
        reading = loss.read_loss(Path(path), path)
        values = reading.table.step.size * (1 + len(reading.table.columns))
    seconds = time.process_time() - start
    return {"seconds": seconds, "mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
            "values": values}


def measured(format: str, rows: int, rounds: int) -> dict[str, float]:
    """Interleaved rounds of both over one log; medians."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    found: dict[str, list[dict[str, float]]] = {"reader": [], "peer": []}
    draw = random.Random(format)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        with path.open("w", encoding="utf-8") as file:
            file.writelines(LINES[format](number, draw) for number in range(1, rows + 1))
        for number in range(rounds):
            for who in sorted(found, reverse=number % 2 == 0):
                done = subprocess.run([sys.executable, __file__, "--one", who, format, str(path)], env=environ,
                                      check=True, capture_output=True, text=True)
                found[who].append(json.loads(done.stdout))
        megabytes = path.stat().st_size / 1e6
    if len({figures["values"] for each in found.values() for figures in each}) != 1:
        raise SystemExit(f"{format}: the peer read another number of values than the reader")
    ratios = [ours["seconds"] / theirs["seconds"] for ours, theirs in zip(found["reader"], found["peer"], strict=True)]
    return {
        "rows": rows, "file_mb": round(megabytes, 1), "ratio": round(statistics.median(ratios), 3),
        **{f"{who}_{figure}": round(statistics.median(each[figure] for each in found[who]), 2)
           for who in found for figure in ("seconds", "mb")},
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.add_argument("--rows", type=int, default=1_000_000, help="lines of Megatron's log; the others have fewer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--formats", nargs="+", choices=LINES, default=list(LINES))
    parser.add_argument("--one", nargs=3, metavar=("WHO", "FORMAT", "PATH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(*arguments.one)))
        return
    figures = {format: measured(format, max(1, int(SHARE[format] * arguments.rows)), arguments.rounds)
               for format in arguments.formats}
    if arguments.json:
        print(json.dumps(figures))
        return
    for format, each in figures.items():
        print(format, *(f"{key}={value}" for key, value in each.items()))


if __name__ == "__main__":
    main()
