"""The collector as a host runs it: copied alone, under old Pythons, by command line, one process for each rank."""

import glob
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_migparity.host import envlock
from pytest_migparity.wire.env import parse

SOURCE = Path(envlock.__file__)


def python39():
    """A Python 3.9: named in MIGPARITY_PYTHON39, on the path, or one of pyenv's."""
    root = os.environ.get("PYENV_ROOT") or os.path.join(os.path.expanduser("~"), ".pyenv")
    named = [os.environ.get("MIGPARITY_PYTHON39"), shutil.which("python3.9"),
             *glob.glob(os.path.join(glob.escape(root), "versions", "3.9*", "bin", "python"))]
    for one in filter(None, named):
        if subprocess.run([one, "-c", "import sys; sys.exit(sys.version_info[:2] != (3, 9))"],
                          capture_output=True, check=False).returncode == 0:
            return one
    pytest.skip("no Python 3.9 here; name one in MIGPARITY_PYTHON39")


def run(folder, *arguments, python=sys.executable, env=None):
    return subprocess.run([python, "envlock.py", *arguments], cwd=folder, capture_output=True, timeout=120, check=False,
                          env={"PATH": os.environ["PATH"], **(env or {})})


@pytest.fixture
def alone(tmp_path):
    folder = tmp_path / "alone"
    folder.mkdir()
    shutil.copy(SOURCE, folder)
    return folder


def test_python39_runs_the_copied_file_and_writes_a_lock_we_read(alone):
    done = run(alone, "--package", "pip", python=python39())
    assert (done.returncode, done.stderr) == (0, b"")
    lock = parse(done.stdout.decode())
    assert lock["python"]["version"].startswith("3.9.")
    assert lock["packages"]["pip"][2]
    assert sorted(path.name for path in alone.iterdir()) == ["envlock.py"]  # it left nothing behind


@pytest.mark.skipif(sys.version_info < (3, 10), reason="this Python cannot list its standard library")
def test_the_file_imports_the_standard_library_only():
    import ast
    names = {name.split(".")[0] for node in ast.walk(ast.parse(SOURCE.read_text(encoding="utf-8")))
             for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else
                          [node.module or "."] if isinstance(node, ast.ImportFrom) else [])}
    assert names - {"tomli", "yaml"} <= sys.stdlib_module_names


def test_it_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "pytest_migparity.host.envlock", "--no-torch"], capture_output=True,
                          timeout=120, check=True)
    assert "pytest" in parse(done.stdout.decode())["packages"]


def test_an_existing_file_is_kept(alone):
    (alone / "env.json").write_text("mine")
    done = run(alone, "--out", "env.json")
    assert done.returncode == 1
    assert b"env.json exists" in done.stderr
    assert (alone / "env.json").read_text() == "mine"


def test_an_unwritable_target_is_one_sentence(alone):
    done = run(alone, "--no-torch", "--out", "no/such/folder/env.json")
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"cannot write no/such/folder/env.json" in done.stderr


def test_each_rank_writes_its_own_lock(alone):
    for rank in ("0", "1"):
        env = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2"}
        assert run(alone, "--no-torch", "--out", "env.json", "--per-rank", env=env).returncode == 0
    lock = json.loads((alone / "env.rank1.json").read_text(encoding="utf-8"))
    assert lock["rank"] == {"rank": 1, "local_rank": 1, "world": 2}
    assert not (alone / "env.json").exists()


@pytest.mark.parametrize("arguments", [["--tree", "nameless"], ["--config", "=x"], ["--unknown"]])
def test_a_wrong_command_line_is_a_usage_error(alone, arguments):
    done = run(alone, *arguments)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_this_environment_fits_in_16_kilobytes():
    """A real one, with more than 60 packages; the issue asks for about 10 KB."""
    text = envlock.render(envlock.collect(packages=["pytest"], torch=False))
    if len(json.loads(text)["packages"]) < 50:
        pytest.skip("this environment has too few packages to measure")
    assert len(text.encode()) < 16 * 1024


def write_torch(folder, body, version="2.6.0"):
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text(body)
    info = folder / f"torch-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")


TORCH = """
class version: cuda = "12.4"; git_version = "0123456789abcdef"
class cuda:
    is_available = staticmethod(lambda: True)
    get_arch_list = staticmethod(lambda: ["sm_80", "sm_90"])
    device_count = staticmethod(lambda: 2)
    get_device_capability = staticmethod(lambda i: (8, 0))
    class nccl: version = staticmethod(lambda: (2, 21, 5))
class backends:
    class cudnn: version = staticmethod(lambda: 90100); allow_tf32 = True; benchmark = False; deterministic = False
    class cuda:
        class matmul: allow_tf32 = False
__version__ = "2.6.0+cu124"
get_float32_matmul_precision = lambda: "highest"
are_deterministic_algorithms_enabled = lambda: True
print("a chatty import")
"""


def test_torch_is_asked_in_a_child(alone):
    write_torch(alone, TORCH)
    torch = json.loads(run(alone).stdout)["torch"]
    assert torch["seen"] == "probe"
    assert (torch["version"], torch["cuda"], torch["cudnn"], torch["nccl"]) == ("2.6.0+cu124", "12.4", 90100, "2.21.5")
    assert (torch["built_for"], torch["present"]) == (["sm_80", "sm_90"], ["sm_80"])
    assert torch["flags"] == {"deterministic": True, "matmul_precision": "highest", "cuda.matmul.allow_tf32": False,
                              "cudnn.allow_tf32": True, "cudnn.benchmark": False, "cudnn.deterministic": False}
    assert "torch" not in json.loads(run(alone, "--no-torch").stdout)


@pytest.mark.parametrize("body", ["import os; os._exit(139)", "raise ImportError('libcudart.so.12: not found')",
                                  "import os; os.kill(os.getpid(), 11)"])
def test_a_torch_that_kills_its_process_does_not_kill_the_lock(alone, body):
    write_torch(alone, body)
    done = run(alone)
    assert done.returncode == 0
    lock = parse(done.stdout.decode())
    assert lock["torch"]["error"]
    assert lock["packages"]["torch"][0] == "2.6.0"
