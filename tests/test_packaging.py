"""What is shipped: the wheel carries the suite and the recorded fixtures, and the sdist builds the same wheel."""

import hashlib
import subprocess
import sys
import zipfile

import pytest
from evidence_kit import REPO


def build(source, out, kind):
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", str(out), str(source)],
                   check=True, capture_output=True, text=True)
    (built,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if not (REPO / "pyproject.toml").is_file() or not (REPO / "pytest_migparity").is_dir():
        pytest.skip("not a source checkout")
    return build(REPO, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.mark.slow
def test_the_wheel_carries_suite_and_fixtures_below_its_one_top_level_name(wheel):
    names = contents(wheel)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"pytest_migparity"}
    for wanted in ("conformance/test_L0_envmatch.py", "conformance/test_L5_loss_parity.py", "fixtures/lingbot/model.toml",
                   "fixtures/lingbot/candidate/artifacts.json", "fixtures/rehearsal/baseline/loss.rerun1.jsonl"):
        assert f"pytest_migparity/_suite/{wanted}" in names
    for wanted in ("rehearsal/data/demos.npz", "py.typed"):
        assert f"pytest_migparity/{wanted}" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


@pytest.mark.slow
def test_the_sdist_builds_the_same_wheel(wheel, tmp_path):
    sdist = build(REPO, tmp_path / "sdist", "sdist")
    subprocess.run(["tar", "-xzf", str(sdist), "-C", str(tmp_path)], check=True)
    (unpacked,) = [path for path in tmp_path.iterdir() if path.name.startswith("pytest_migparity-")]
    again = build(unpacked, tmp_path / "again", "wheel")
    assert contents(again) == contents(wheel)


@pytest.mark.slow
def test_the_entry_points_are_two_plugins_and_one_command(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        lines = [line for line in archive.read(name).decode().splitlines() if line]
    assert lines == ["[console_scripts]", "migparity = pytest_migparity.cli:main", "[pytest11]",
                     "migparity = pytest_migparity.plugin", "migparity-fixtures = pytest_migparity.fixtures"]
