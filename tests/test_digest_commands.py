"""From two files of tensors to a verdict by the two commands, and what a mistake says."""

import subprocess
import sys

import numpy as np
from typer.testing import CliRunner

from pytest_migparity.cli import app

WEIGHT = (np.arange(600, dtype=np.float32).reshape(20, 30) - 250) / 7


def migparity(*words, env=None):
    return CliRunner().invoke(app, list(map(str, words)), env={"LC_ALL": "C", **(env or {})})


def digested(folder, name, **arrays):
    np.savez(folder / f"{name}.npz", **arrays)
    done = migparity("digest", folder / f"{name}.npz", "--out", folder / f"{name}.digest", "--hash", "sha256")
    assert done.exit_code == 0, done.output
    assert f"{len(arrays)} tensors, level 1, sha256" in done.output
    return folder / f"{name}.digest"


def test_equal_and_value_equal_pass(tmp_path):
    ones = np.ones(5, np.float32)
    a, b = digested(tmp_path, "a", w=WEIGHT, n=ones), digested(tmp_path, "b", w=WEIGHT, n=ones.astype(np.float64))
    done = migparity("diffdigest", a, b)
    assert done.exit_code == 0
    assert done.output.splitlines() == ["PASS: 2 tensors, 1 equal, 1 value-equal, 0 not",
                                        "  n: value-equal, float32 [5] and float64 [5]"]


def test_every_fault_is_a_line_and_exit_code_1(tmp_path):
    a = digested(tmp_path, "a", w=WEIGHT, v=WEIGHT + 1, u=WEIGHT)
    b = digested(tmp_path, "b", w=-WEIGHT, v=(WEIGHT + 1)[::-1], x=np.ones(3))
    done = migparity("diffdigest", a, b)
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        "FAIL: 4 tensors, 0 equal, 0 value-equal, 4 not",
        "  u: missing in the candidate (float32 [20, 30])",
        "  v: the same elements in another order: rows, heads or a layout permuted, or a square transposed",
        "  w: the sign is flipped",
        "  x: only in the candidate (float64 [3])"]
    assert "w：符号反转" in migparity("diffdigest", a, b, "--lang", "zh").output


def test_nothing_to_compare_is_exit_code_12(tmp_path):
    done = migparity("diffdigest", digested(tmp_path, "a"), digested(tmp_path, "b"))
    assert done.exit_code == 12
    assert "nothing to compare" in done.output


def test_an_existing_file_is_kept(tmp_path):
    out = digested(tmp_path, "a", w=WEIGHT)
    before = out.read_bytes()
    done = migparity("digest", tmp_path / "a.npz", "--out", out)
    assert "exists; move it away" in str(done.exception)
    assert out.read_bytes() == before


def test_a_mistake_is_one_line_and_exit_code_4(tmp_path):
    (tmp_path / "torn.digest").write_text("migparity.digest/1 bytes=4 sha256=0123456789abcdef\nabc\n")
    (tmp_path / "weights.pt").write_bytes(b"\x80\x02.")
    for words, said in [
        (["digest", "absent.npz", "--out", "x"], "absent.npz: No such file"),
        (["digest", "weights.pt", "--out", "x"], "could run code: not opened"),
        (["digest", "weights.pt", "--out", "x", "--hash", "md5"], "--hash md5: known: sha256, xxh3_128"),
        (["diffdigest", "torn.digest", "torn.digest"], "torn.digest: holds 2 bytes, expected the 4"),
        (["diffdigest", "weights.pt", "torn.digest"], "weights.pt: the first line is"),
    ]:
        done = subprocess.run([sys.executable, "-c", "from pytest_migparity.cli import main; main()", *words],
                              cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 4, words
        assert done.stderr.startswith("migparity: ")
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_xxhash_asked_for_where_it_is_not_is_said(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", WEIGHT)
    monkeypatch.setitem(sys.modules, "xxhash", None)
    done = migparity("digest", tmp_path / "a.npy", "--out", tmp_path / "x", "--hash", "xxh3_128")
    assert "needs the package xxhash" in str(done.exception)
