"""One entry for what a host runs."""

import json
import subprocess
import sys

import pytest


def host(*words, cwd):
    return subprocess.run([sys.executable, "-m", "pytest_migparity.host", *words], cwd=cwd, capture_output=True, text=True,
                          check=False)


@pytest.mark.parametrize("words, said", [((), "got nothing"), (("dance",), "got dance")])
def test_a_command_of_no_name_is_one_line(words, said, tmp_path):
    done = host(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    assert said in done.stderr


def test_the_launchers_exit_code_is_the_programs(tmp_path):
    done = host("launch", "--out", "out", "--", sys.executable, "-c", "raise SystemExit(7)", cwd=tmp_path)
    assert done.returncode == 7, done.stderr
    assert json.loads((tmp_path / "out" / "artifacts.json").read_text())["draws"]["mode"] in ("keyed", "unkeyed")


def test_a_lock_is_written(tmp_path):
    done = host("envlock", "--no-torch", "--out", "env.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "env.json").exists()
