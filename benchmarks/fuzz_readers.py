"""Mangled logs by the hundred thousand through every reader: nothing but a reading or an error of the user's may come.

    python benchmarks/fuzz_readers.py --inputs 200000

Each input is a log of one format (tests/sample_logs.py) after one to three manglings (tests/mangling.py), now and then
with a few words of other formats in it. It is read as what it looks like, or by a reader forced on it. A failure
is any other exception, a read of more than 2 CPU seconds (no input is larger than 64 KiB), or a table that is none: it
is printed, and the input is kept in a file. The same seed gives the same inputs. Exit code 1 where anything failed.
"""

from __future__ import annotations

import argparse
import collections
import json
import logging
import math
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import mangling
from sample_logs import WRITERS, event_file, events, log

from pytest_migparity.core.errors import UserError
from pytest_migparity.core.evidence import Trajectory
from pytest_migparity.readers.loss import read_loss
from pytest_migparity.readers.registry import TENSORBOARD, builtin

SLOW = 2.0  # CPU seconds
FORCED = 0.25
TENSORBOARD_SHARE = 0.02  # it goes through files, and its parser is TensorBoard's own
TOKENS = (  # what the formats are told by, and what numbers and files may be
    b"Step 5/9, Epoch 1, Loss ", b"iteration 7/ 9 | lm loss: ", b" step:20 smpl:2K ", b"step:1K smpl:",
    b"Step 3: loss=", b"step=4 loss=", b"step:  6  loss:  ", b"validate step: ", b":::MLLOG ", b'{"log_history": [',
    b'"step": ', b'"Step","r - train/loss"', b"__MIN", b"{'loss': ", b"'eval_loss': ", b"'step': ", b" 3/9 [00:",
    b"logging_steps=10", b"from global step 5", b"log_freq: 10", b"step=10, skipped=6, lr=[", b"steps: 7 loss: ",
    b"iter time (s): ", b"OVERFLOW! ", b"step,loss\n", b"step;loss\n1,5;2\n", b"run_id,experiment_name\n", b"1 8.04\n",
    b"\x1b[31m", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\r\n", b"\n", b"\0", b"\x80", b"\xe8\xae", b"nan", b"-inf",
    b"NaN", b"Infinity", b"1e999", b"9" * 20, b"-1", b"1,234", b"1.234,5", "１２".encode(), "“loss”: ".encode(),
    b"null", b"{", b"}", b"[", b"]", b'"', b"'", b"|", b",",
)


LINES = (  # lines that stand among the rows of a log
    b"{'eval_loss': 0.45, 'eval_runtime': 3.5, 'epoch': 0.4}", b"{'train_runtime': 100.5, 'train_loss': 0.5}",
    b"{'loss': 0.5, 'loss': 0.25, 'epoch': 0.4}", b'{"step": 4, "eval_loss": 9.0}', b'{"loss": 2.0}',
    b'{"step": 4, "step": 5, "loss": 2.0}', b'{"step": null, "loss": {"a": 1}, "done": true}',
    b"[titan] - root - INFO - validate step:  5  loss:  9.9000", b'"Step","Run - train/loss","b - train/loss"',
    b"run_id,experiment_name,loss", b"Step,loss,LOSS", b"step,train_loss,training loss", b"# comment",
    b':::MLLOG {"key": "eval_loss", "value": 9.5, "metadata": {"samples_count": 160}}',
    b':::MLLOG {"key": "train_loss", "value": "x", "metadata": [1]}', b"OVERFLOW! Rank 0 Skipping step.",
    b"loss: 0.5, ppl: 3.0", b"[Rank 0] step=0, skipped=0, lr=[], mom=[]", b"logging_steps=10, logging_first_step=True",
    b"  Total optimization steps = 1,000", b"Continuing training from global step 500", b"'log_freq': 10,",
    b"<!DOCTYPE html>", b"version https://git-lfs.github.com/spec/v1", b"\x89PNG", b"PK\x03\x04",
)
DOCUMENTS = (  # whole files
    b'{"log_history": []}', b'{"log_history": 3}', b'{"log_history": [3], "logging_steps": 5}',
    b'{"log_history": [{"step": 5, "loss": null, "eval_loss": 3}, {"step": 5, "loss": 2.5, "mode": "x", "a": [1]}, '
    b'{"step": 5, "eval_loss": 2.5}, {"step": 5, "train_runtime": 9}], "logging_steps": 5}',
    b'step;loss;lr\n1;"2,5";1e-4\n2;"2,25";1e-4\n', b"step,loss\n1,5\n2\n",
    b'"step","loss"\n"1","1,234.5"\n"2","1,233"\n',
    b"run_id,experiment_name,loss\na,b,2.5\n",
)


def samples() -> list[bytes]:
    """Logs of every format: a short one, one with odd values, one of several hundred rows; and odd documents."""
    found = list(DOCUMENTS)
    for kind in WRITERS:
        draw = random.Random(kind)
        found.append(log(kind, [draw.uniform(0.1, 9) for _ in range(8)]))
        found.append(log(kind, [2.0, math.nan, 0.0, -1.0, math.inf, 1e-300, 1e300, 1e-5, 2.0]))
        found.append(log(kind, [3 / (1 + number / 50) for number in range(200)]))
    return found


def an_input(logs: list[bytes], draw: random.Random) -> tuple[bytes, str | None]:
    """(bytes, format that is forced on them or None)."""
    if draw.random() < TENSORBOARD_SHARE:
        return an_event_file(logs, draw)[: mangling.MOST], draw.choice((None, TENSORBOARD))
    names = draw.choices(list(mangling.MANGLINGS), k=draw.randint(1, 3))
    data = mangling.mangled(draw.choice(logs), names, logs, draw.getrandbits(40))
    for _ in range(draw.choice((0, 0, 0, 1, 4))):
        at = draw.randint(0, len(data))
        if draw.random() < 0.5:
            at = draw.choice((0, data.find(b"\n", at) + 1))
            data = data[:at] + draw.choice(LINES) + b"\n" + data[at:]
        else:
            data = data[:at] + draw.choice(TOKENS) + data[at + draw.choice((0, 0, 1, 5)):]
    return data[: mangling.MOST], draw.choice(list(builtin())) if draw.random() < FORCED else None


def an_event_file(logs: list[bytes], draw: random.Random) -> bytes:
    """TensorBoard's events, mangled one by one inside sound records, or the file as a whole."""
    names = draw.choices(("truncate", "flip", "splice", "stretch"), k=draw.randint(1, 3))
    records = events([(step, draw.choice((3.0 / step, math.nan, -1.0))) for step in range(1, 6)])
    if draw.random() < 0.5:
        return mangling.mangled(event_file(records), names, logs, draw.getrandbits(40))
    return event_file(mangling.mangled(record, names, logs, draw.getrandbits(40)) if draw.random() < 0.3 else record
                      for record in records)


def refuse_no_table(table: Trajectory) -> None:
    """AssertionError where a table is not what every judge relies on."""
    rows, loss = table.step.shape, table.quantum["loss"]
    faults = {
        "no row": not table.step.size,
        "steps that do not rise": not bool(np.all(np.diff(table.step) > 0)),
        "a step below 0": bool((table.step < 0).any()),
        "an interval below 1": table.interval < 1 or table.window < 0,
        "a column of another length": any(
            table.columns[name].shape != rows or table.quantum[name].shape != rows for name in table.columns),
        "a loss of unknown digits": not bool(np.all(loss >= 0)),
        "a joint that is no step": not set(table.joints) <= set(table.step.tolist()),
    }
    assert not any(faults.values()), ", ".join(fault for fault, found in faults.items() if found)


def read(data: bytes, format: str | None) -> tuple[str, str]:
    """(what came of it, the format it was read as); everything that a verdict or a report would use is used."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            reading = read_loss(data, "log", format=format)
    except UserError as error:
        str(error).encode()
        return type(error).__name__, ""
    refuse_no_table(reading.table)
    json.dumps(reading.report.to_json()).encode()
    return "Reading", reading.format


def fuzz(inputs: int, seed: int, keep: Path) -> dict[str, Any]:
    """Read so many inputs; the figures. Inputs that fail are written to `keep`."""
    draw, logs = random.Random(seed), samples()
    outcomes: collections.Counter[str] = collections.Counter()
    formats: collections.Counter[str] = collections.Counter()
    failures: list[str] = []
    slowest, before = (0.0, ""), 0
    for number in range(inputs):
        data, format = an_input(logs, draw)
        start, failed = time.process_time(), ""
        try:
            outcome, read_as = read(data, format)
        except Exception as error:
            outcome, read_as = f"{type(error).__name__} (unhandled)", ""
            failed = "".join(traceback.format_exception(error)[-3:])
        outcomes[outcome] += 1
        formats.update([read_as] if read_as else [])
        seconds = time.process_time() - start
        slowest = max(slowest, (seconds, f"input {number}, {len(data)} bytes, format {format}"))
        if seconds > SLOW:
            failed = f"{seconds:.2f} CPU seconds"
        if failed:
            path = keep / f"seed{seed}-{number}-{format}"
            path.write_bytes(data)
            failures.append(f"{path}: {failed}")
        if number == inputs // 10:  # by then every module is imported and every size of input was seen
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"inputs": inputs, "seed": seed, "outcomes": dict(outcomes.most_common()),
            "formats": dict(formats.most_common()), "failures": failures, "slowest_s": round(slowest[0], 3),
            "slowest": slowest[1],
            "grown_mb": round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, 1)}


def main() -> None:
    """Print the figures; exit 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for inputs that fail; a new one if not given")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    arguments = parser.parse_args()
    logging.getLogger("tensorboard").setLevel(logging.ERROR)  # it remarks on every odd event
    keep = arguments.keep or Path(tempfile.mkdtemp(prefix="migparity-fuzz-"))
    keep.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    figures = fuzz(arguments.inputs, arguments.seed, keep)
    figures["seconds"] = round(time.perf_counter() - start, 1)
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name}: {value}" if name != "failures" else f"failures: {len(figures['failures'])}")
        print(*figures["failures"], sep="\n")
    sys.exit(1 if figures["failures"] else 0)


if __name__ == "__main__":
    main()
