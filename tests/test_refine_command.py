"""`migparity refine` prints commands that can be run as they are, and ends with the element that differs."""

import shlex

import numpy as np
from typer.testing import CliRunner

from pytest_migparity.cli import app

NAME = "layers.0.it's $(touch w); `x`"


def migparity(*words):
    return CliRunner().invoke(app, list(map(str, words)), env={"LC_ALL": "C"})


def made(folder, side, words):
    """Run `migparity digest CHECKPOINT ... --out FILE` of a printed line for one side."""
    out = folder / f"{side}.{len(list(folder.iterdir()))}.digest"
    done = migparity(*({"CHECKPOINT": folder / f"{side}.npz", "FILE": out}.get(word, word) for word in words))
    assert done.exit_code == 0, done.output
    return out


def test_the_printed_commands_lead_to_the_element(tmp_path):
    weight = np.linspace(-1, 1, 9000, dtype=np.float32)
    np.savez(tmp_path / "baseline.npz", **{NAME: weight, "b": weight[:3]})
    weight[8200] = 0.75
    np.savez(tmp_path / "candidate.npz", **{NAME: weight, "b": weight[:3]})
    files = [made(tmp_path, side, ["digest", "CHECKPOINT", "--out", "FILE", "--level", "0", "--hash", "sha256"])
             for side in ("baseline", "candidate")]
    for _ in range(5):
        done = migparity("refine", *files)
        assert done.exit_code == 1
        (line,) = [line for line in done.output.splitlines() if "migparity digest" in line] or [""]
        if not line:
            break
        assert line.startswith("next, both sides: ")
        words = shlex.split(line.partition("migparity ")[2])
        files = [made(tmp_path, side, words) for side in ("baseline", "candidate")]
    # -1 + 8200 * 2 / 8999 = .8224, as float32; 0.75 is exactly 1.5 * 2^-1
    assert done.output.splitlines()[1:] == [
        "  1 of 64 parts differ",
        f"  {NAME}: element 8200 (in C order) is 0.82242471 (0x3f528a6d) in the baseline and 0.75 (0x3f400000) in the "
        "candidate", "nothing is left to ask"]


def test_equal_digests_ask_for_nothing_and_a_mistake_is_said(tmp_path):
    np.savez(tmp_path / "baseline.npz", w=np.arange(5))
    out = made(tmp_path, "baseline", ["digest", "CHECKPOINT", "--out", "FILE"])
    done = migparity("refine", out, out)
    assert (done.exit_code, done.output.splitlines()) == (0, ["PASS", "nothing is left to ask"])
    assert "无可进一步询问" in migparity("refine", out, out, "--lang", "zh").output
    (tmp_path / "torn").write_text("migparity.digest/1")
    assert "torn: the first line is" in str(migparity("refine", out, tmp_path / "torn").exception)
