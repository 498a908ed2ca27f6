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
