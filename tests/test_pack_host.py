"""The one file for hosts runs under Python 3.9, says what a host lacks, and makes the digest that the command makes."""

import glob
import os
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

from pytest_migparity.cli import app
from pytest_migparity.pack_host import pack_host


@pytest.fixture(scope="module")
def pyz(tmp_path_factory):
    path = tmp_path_factory.mktemp("host") / "migparity-host.pyz"
    path.write_bytes(pack_host())
    return path


def run(python, *words, cwd):
    return subprocess.run([python, "-I", *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False)


def python39():
    """A Python 3.9: named in MIGPARITY_PYTHON39, on the path, or one of pyenv's."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    named = [os.environ.get("MIGPARITY_PYTHON39"), shutil.which("python3.9"),
             *glob.glob(os.path.join(glob.escape(root), "versions", "3.9*", "bin", "python"))]
    for python in filter(None, named):
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip("no Python 3.9 here; name one in MIGPARITY_PYTHON39")
    return ""


def test_it_holds_host_and_wire_and_nothing_else_of_ours(pyz):
    assert pyz.read_bytes() == pack_host()
    assert pyz.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(pyz) as archive:
        names = set(archive.namelist())
    assert {name.rpartition("/")[0] for name in names} == {"", "pytest_migparity", "pytest_migparity/host",
                                                           "pytest_migparity/wire"}
    assert {"__main__.py", "pytest_migparity/__init__.py", "pytest_migparity/host/envlock.py"} <= names


def test_a_checkpoint_in_shards_is_the_digest_that_the_command_makes(pyz, tmp_path):
    np.savez(tmp_path / "a.npz", w=np.float32(range(12)), b=np.ones(3))
    for index in (0, 1):
        done = run(sys.executable, pyz, "digest", "a.npz", "--out", f"s{index}", "--shard", f"{index}/2", "--hash", "sha256",
                   cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"s{index}: 1 tensors, level 1, sha256" in done.stdout
        assert f"shard {index}/2: merge it" in done.stdout
    torn = run(sys.executable, pyz, "merge", "s1", "--out", "m", cwd=tmp_path)
    assert (torn.returncode, torn.stderr) == (4, "migparity merge: shard 0/2 is missing\n")
    assert run(sys.executable, pyz, "merge", "s0", "s1", "--out", "m", cwd=tmp_path).returncode == 0
    again = run(sys.executable, "-m", "pytest_migparity.host", "digest", "a.npz", "--out", "w", "--hash", "sha256",
                cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "m").read_bytes() == (tmp_path / "w").read_bytes()


@pytest.mark.parametrize("words, said", [
    (("digest", "absent.npz", "--out", "x"), "migparity digest: absent.npz: No such file or directory\n"),
    (("digest", "absent.npz"), "digest: error: the following arguments are required: --out\n"),
    (("merge", "absent", "--out", "x"), "migparity merge: absent: No such file or directory\n"),
    (("dance",), "migparity host: expected one of digest, envlock, launch, merge, got dance\n")])
def test_a_mistake_is_said_and_is_exit_code_4(pyz, tmp_path, words, said):
    done = run(sys.executable, pyz, *words, cwd=tmp_path)
    assert done.returncode == 4
    assert done.stderr.endswith(said)


def test_under_python_3_9_without_numpy_it_says_what_to_install_and_locks_all_the_same(pyz, tmp_path):
    python = python39()
    (tmp_path / "a.npz").write_bytes(b"")
    has_numpy = run(python, "-c", "import numpy", cwd=tmp_path).returncode == 0
    done = run(python, pyz, "digest", "a.npz", "--out", "x", cwd=tmp_path)
    assert done.returncode == 4
    assert ("numpy is not installed" in done.stderr) is not has_numpy
    assert done.stderr.count("\n") == 1
    locked = run(python, pyz, "envlock", "--no-torch", "--out", "env.json", cwd=tmp_path)
    assert locked.returncode == 0, locked.stderr
    compiled = run(python, "-m", "zipfile", "-e", pyz, "out", cwd=tmp_path)
    assert compiled.returncode == 0
    whole = run(python, "-m", "compileall", "-q", "out", cwd=tmp_path)
    assert whole.returncode == 0, whole.stdout


def test_it_launches_a_program(pyz, tmp_path):
    done = run(sys.executable, pyz, "launch", "--out", "out", "--", sys.executable, "-c", "raise SystemExit(7)", cwd=tmp_path)
    assert done.returncode == 7, done.stderr
    assert (tmp_path / "out" / "artifacts.json").exists()


def migparity(*words):
    return CliRunner().invoke(app, list(map(str, words)), env={"LC_ALL": "C"})


def test_the_command_writes_it_and_keeps_an_existing_file(tmp_path):
    done = migparity("hostfile", "--out", tmp_path / "h.pyz")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "h.pyz").read_bytes() == pack_host()
    (tmp_path / "h.pyz").write_bytes(b"mine")
    assert "exists; move it away" in str(migparity("hostfile", "--out", tmp_path / "h.pyz").exception)
    assert (tmp_path / "h.pyz").read_bytes() == b"mine"


def test_the_commands_digest_shards_and_merge_them(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.float32(range(12)), b=np.ones(3))
    parts = [tmp_path / f"s{index}" for index in range(2)]
    for index, part in enumerate(parts):
        done = migparity("digest", tmp_path / "a.npz", "--out", part, "--shard", f"{index}/2")
        assert done.exit_code == 0, done.output
        assert done.output.splitlines()[1] == f"  shard {index}/2: merge it with the others"
    refused = migparity("diffdigest", parts[0], parts[0])
    assert "only shard 0/2: `migparity merge` all of them" in str(refused.exception)
    assert "shard 1/2 is missing" in str(migparity("merge", parts[0], "--out", tmp_path / "m").exception)
    done = migparity("merge", *parts, "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert "2 tensors, level 1" in done.output
    assert "exists; move it away" in str(migparity("merge", *parts, "--out", tmp_path / "m").exception)
    assert migparity("digest", tmp_path / "a.npz", "--out", tmp_path / "w").exit_code == 0
    assert (tmp_path / "m").read_text() == (tmp_path / "w").read_text()
    assert migparity("diffdigest", tmp_path / "m", tmp_path / "w").exit_code == 0
