"""A benchmark that does not run measures nothing. Its figures are never asserted here, only that they are there."""

import json
import subprocess
import sys

import pytest
from evidence_kit import REPO


@pytest.mark.slow
def test_plugin_overhead_prints_its_figures():
    script = REPO / "benchmarks" / "plugin_overhead.py"
    if not script.is_file():
        pytest.skip("not a source checkout")
    done = subprocess.run([sys.executable, str(script), "--json", "--rounds", "1"], capture_output=True, text=True,
                          check=True)
    figures = json.loads(done.stdout)
    assert {"collect_ms_without", "collect_ms_with", "ratio", "l5_cold_s", "imports_s"} <= figures.keys()
    assert all(value > 0 for value in figures.values())


@pytest.mark.slow
def test_read_logs_prints_its_figures():
    script = REPO / "benchmarks" / "read_logs.py"
    if not script.is_file():
        pytest.skip("not a source checkout")
    done = subprocess.run([sys.executable, str(script), "--json", "--rounds", "1", "--rows", "2000"], capture_output=True,
                          text=True, check=True)
    figures = json.loads(done.stdout)
    assert figures.keys() == {"megatron", "lingbot", "jsonl", "csv"}
    for each in figures.values():
        assert {"ratio", "reader_seconds", "peer_seconds", "reader_mb", "peer_mb"} <= each.keys()
        assert each["ratio"] > 0


@pytest.mark.slow
def test_fuzz_readers_prints_its_figures():
    script = REPO / "benchmarks" / "fuzz_readers.py"
    if not script.is_file():
        pytest.skip("not a source checkout")
    runs = [subprocess.run([sys.executable, str(script), "--json", "--inputs", "150", "--seed", "7"], capture_output=True,
                           text=True, check=True) for _ in range(2)]
    first, again = (json.loads(done.stdout) for done in runs)
    assert first["inputs"] == sum(first["outcomes"].values()) == 150
    assert first["failures"] == []
    assert {"slowest_s", "slowest", "grown_mb", "seconds"} <= first.keys()
    assert [again[name] for name in ("outcomes", "formats")] == [first[name] for name in ("outcomes", "formats")]
