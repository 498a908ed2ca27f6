"""What digesting tensors costs beside the machine's own reading speed, and beside what people use instead.

    python benchmarks/digest.py --json [--mebibytes 1024] [--rounds 7] [--msprobe VENV/bin/python]

In every round, in turn and on the same bytes (page cache, two threads): reading them (the sum of their 64-bit words,
the roofline); statistics and sketch of the array; the whole digest, with content hash, of the mapped safetensors file;
and the peers: openssl's sha256 in two processes, blake3, np.allclose, torch.testing.assert_close, and loading both
sides for cosine and relative L2. Each figure is the median over the rounds, each ratio the median of the rounds' own
ratios. `vs_*` is the peer's time for the same question over ours; of a comparison of two files ours is digesting both
and comparing the digests. With `--msprobe` (a Python that has `mindstudio-probe` and torch) the comparison is
msprobe's own: 300 tensors of 2^20 float32 a side, dumped in its format and compared by its command.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)
import numpy as np  # noqa: E402  after the settings above

from pytest_migparity.host.digest import algorithm_here, digest  # noqa: E402
from pytest_migparity.host.digest_kernels import fastest  # noqa: E402
from pytest_migparity.host.digest_numpy import LEAF  # noqa: E402
from pytest_migparity.host.tensor_files import open_tensors  # noqa: E402
from pytest_migparity.judges.digestmatch import match  # noqa: E402

THREADS = 2
MSPROBE_TENSORS = 300


def both(work: Callable[[int], None]) -> float:
    """Seconds that two threads need, each for its half."""
    threads = [threading.Thread(target=work, args=(half,)) for half in range(THREADS)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def timed(work: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def read(words: Any) -> float:
    """The roofline: seconds to add up all 64-bit words with two threads."""
    size = len(words) // THREADS
    return both(lambda half: words[half * size:(half + 1) * size].sum() and None)


def sketch(elements: Any, dtype: str) -> float:
    """Seconds for statistics and sketch of all leaves with two threads, without hash."""
    measure = fastest()

    def half(which: int) -> None:
        for start in range(which * LEAF, elements.size, THREADS * LEAF):
            measure(elements[start:start + LEAF], dtype, start)

    return both(half)


def write(path: Path, array: Any, dtype: str) -> Path:
    """One tensor as a safetensors file."""
    held = array.tobytes()
    header = json.dumps({"w": {"dtype": dtype, "shape": list(array.shape), "data_offsets": [0, len(held)]}}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header + held)
    return path


def openssl(paths: list[Path]) -> float:
    """Seconds for one sha256 process a file."""
    start = time.perf_counter()
    running = [subprocess.Popen(["openssl", "dgst", "-sha256", str(path)], stdout=subprocess.DEVNULL) for path in paths]
    for process in running:
        process.wait()
    return time.perf_counter() - start


def cosine(paths: list[Path]) -> None:
    """Load both sides, then cosine and relative L2."""
    from safetensors.numpy import load_file

    a, b = (load_file(path)["w"] for path in paths)
    norms = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    assert float(a @ b) / norms[0] / norms[1] > 0.99
    assert float(np.linalg.norm(a - b)) / norms[0] < 0.1


def peers(paths: list[Path]) -> dict[str, Callable[[], Any]]:
    """What others do with two float32 files on one machine; those whose package is missing are left out."""
    found: dict[str, Callable[[], Any]] = {"openssl": lambda: openssl(paths), "cosine": lambda: cosine(paths)}
    try:
        import blake3

        found["blake3"] = lambda: [blake3.blake3(max_threads=THREADS).update_mmap(path).digest() for path in paths]
    except ImportError:
        pass
    arrays = [np.memmap(path, np.float32, "r", offset=path.stat().st_size % 4096) for path in paths]
    found["allclose"] = lambda: np.allclose(*arrays, rtol=1e-2, atol=1)
    try:
        import torch

        tensors = [torch.from_numpy(np.array(array)) for array in arrays]
        found["assert_close"] = lambda: torch.testing.assert_close(*tensors, rtol=1e-2, atol=1)
    except ImportError:
        pass
    return found


MSPROBE = """
import json, os, sys, torch
home, count = sys.argv[1], int(sys.argv[2])
for side in range(2):
    folder = os.path.join(home, "side%d" % side, "step0", "rank0")
    os.makedirs(os.path.join(folder, "dump_tensor_data"))
    torch.manual_seed(0)
    data = {}
    for number in range(count):
        name = "Module.l%d.Linear.forward.0" % number
        tensor = torch.randn(1 << 20)
        if side:
            tensor *= 1 + 1e-3 * torch.randn(1 << 20)
        torch.save(tensor, os.path.join(folder, "dump_tensor_data", name + ".output.0.pt"))
        stats = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1 << 20], "Max": float(tensor.max()),
                 "Min": float(tensor.min()), "Mean": float(tensor.mean()), "Norm": float(tensor.norm()),
                 "requires_grad": False, "data_name": name + ".output.0.pt"}
        data[name] = {"input_args": [], "input_kwargs": {}, "output": [stats]}
    head = {"task": "tensor", "level": "L0", "framework": "pytorch",
            "dump_data_dir": os.path.join(folder, "dump_tensor_data"), "data": data}
    json.dump(head, open(os.path.join(folder, "dump.json"), "w"))
    json.dump({}, open(os.path.join(folder, "stack.json"), "w"))
    json.dump({}, open(os.path.join(folder, "construct.json"), "w"))
"""


def msprobe(python: Path, home: Path) -> dict[str, float]:
    """Seconds of msprobe's compare on its own dump, and of digesting the same 600 tensors and comparing the digests."""
    subprocess.run([python, "-c", MSPROBE, str(home), str(MSPROBE_TENSORS)], check=True)
    sides = [home / f"side{side}" / "step0" / "rank0" for side in range(2)]
    command = [python.parent / "msprobe", "compare", "-tp", sides[1] / "dump.json", "-gp", sides[0] / "dump.json", "-o",
               home / "out"]
    theirs = timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    if not list((home / "out").glob("*compare_result*")):
        raise SystemExit("msprobe compare wrote no result: nothing to measure against")

    def ours() -> None:
        match(*(digest([tensor._replace(name=path.stem) for path in sorted((side / "dump_tensor_data").iterdir())
                        for tensor in open_tensors(str(path))]) for side in sides))

    ours()
    return {"msprobe": theirs, "ours": statistics.median(timed(ours) for _ in range(3))}


def one_round(arrays: dict[str, Any], files: dict[str, list[Path]], others: dict[str, Callable[[], Any]]
              ) -> dict[str, float]:
    """Seconds of everything, once, in turn."""
    seconds: dict[str, float] = {}
    for short, dtype in (("f32", "float32"), ("bf16", "bfloat16")):
        words = arrays[short].view(np.uint64)
        seconds[f"{short}_read"] = read(words)
        seconds[f"{short}_sketch"] = sketch(arrays[short], dtype)
        seconds[f"{short}_read_again"] = read(words)
        seconds[f"{short}_mapped"] = timed(lambda short=short: digest(open_tensors(str(files[short][0]))))  # type: ignore[misc]
    pair = files["f32"]
    seconds["ours_pair"] = timed(lambda: match(*(digest(open_tensors(str(path))) for path in pair)))
    for name, work in others.items():
        seconds[name] = timed(work)
    return seconds


def figures(rounds: list[dict[str, float]], size: int) -> dict[str, float]:
    """Ratios by round, their medians, and speeds in GB/s."""
    def median(of: Callable[[dict[str, float]], float]) -> float:
        return statistics.median(of(seconds) for seconds in rounds)

    found = {}
    for short in ("f32", "bf16"):
        roof = median(lambda s, short=short: size / min(s[f"{short}_read"], s[f"{short}_read_again"]) / 1e9)  # type: ignore[misc]
        found[f"{short}_read_gbs"] = roof
        for which, key in (("sketch", "roofline"), ("mapped", "mapped")):
            found[f"{short}_{which}_gbs"] = median(lambda s, k=f"{short}_{which}": size / s[k] / 1e9)  # type: ignore[misc]
            found[f"{short}_{key}_ratio"] = median(
                lambda s, k=f"{short}_{which}", short=short:  # type: ignore[misc]
                min(s[f"{short}_read"], s[f"{short}_read_again"]) / s[k])
    for name in ("openssl", "blake3", "allclose", "assert_close", "cosine"):
        if name in rounds[0]:
            found[f"{name}_gbs"] = median(lambda s, name=name: 2 * size / s[name] / 1e9)  # type: ignore[misc]
            found[f"vs_{name}"] = median(lambda s, name=name: s[name] / s["ours_pair"])  # type: ignore[misc]
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--mebibytes", type=int, default=1024, help="size of a file")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--msprobe", type=Path, help="a Python with mindstudio-probe and torch")
    asked = parser.parse_args()
    random, size = np.random.default_rng(0), asked.mebibytes << 20
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        base = (random.standard_normal(size // 4, np.float32) * np.float32(0.02)).astype(np.float32)
        other = base * (1 + np.float32(1e-3) * random.standard_normal(base.size, np.float32))
        short = np.concatenate([base, other]).view(np.uint32) >> np.uint32(16)
        arrays = {"f32": base, "bf16": short.astype(np.uint16)}
        files = {"f32": [write(home / "a.safetensors", base, "F32"), write(home / "b.safetensors", other, "F32")],
                 "bf16": [write(home / "c.safetensors", arrays["bf16"], "BF16")]}
        del other, short
        others = peers(files["f32"])
        one_round(arrays, files, {})  # compile, and fill the page cache
        rounds = [one_round(arrays, files, others) for _ in range(asked.rounds)]
        result: dict[str, Any] = {"kernel": fastest().__module__.rpartition(".")[2], "hash": algorithm_here(),
                                  "mebibytes": asked.mebibytes, "rounds": asked.rounds, **figures(rounds, size)}
        if asked.msprobe:
            seconds = msprobe(asked.msprobe, home / "msprobe")
            result |= {"msprobe_seconds": seconds["msprobe"], "ours_seconds": seconds["ours"],
                       "vs_msprobe": seconds["msprobe"] / seconds["ours"]}
    if asked.json:
        print(json.dumps(result, indent=2, sort_keys=True))
    else:
        for key, value in sorted(result.items()):
            print(f"{key:24} {value:.3f}" if isinstance(value, float) else f"{key:24} {value}")


if __name__ == "__main__":
    sys.exit(main())
