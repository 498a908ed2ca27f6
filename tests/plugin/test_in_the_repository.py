"""From this repository the short `--model` works, and what is shown can be typed again."""

import subprocess
import sys

import pytest
from evidence_kit import REPO


def run(*words):
    return subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words], cwd=REPO,
                          capture_output=True, text=True, check=False)


@pytest.fixture(autouse=True)
def only_in_a_checkout():
    if not (REPO / "conftest.py").is_file():
        pytest.skip("not a source checkout")


def test_readmes_first_command_says_rehearsal_on_line_one_and_passes():
    done = run("-m", "L5", "--model", "lingbot")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("migparity: lingbot@rehearsal = embedded rehearsal evidence")
    assert "NOT the real model" in lines[0]
    assert lines[-2].startswith("lingbot@rehearsal: accuracy lost? no: L5 pass; L0 not checked; rehearsal evidence")


def test_the_printed_log_passes_and_says_that_its_four_digits_are_equal():
    done = run("-m", "L5", "--model", "lingbot", "-k", "printed")
    assert done.returncode == 0
    assert "PASS: both sides are equal in every digit over 50 steps" in done.stdout


def test_l0_of_lingbot_cannot_tell_because_no_side_has_transformers():
    done = run("-m", "L0 or L5", "--model", "lingbot")
    assert done.returncode == 12
    assert "transformers must match and neither side has it" in done.stdout
    assert "lingbot@rehearsal: accuracy lost? CANNOT TELL: L0 cannot tell" in done.stdout


def test_the_again_command_uses_the_repositorys_own_option(tmp_path):
    done = run("-m", "L5", "--model", "rehearsal", "--migparity-site", f"candidate=file:{tmp_path}")
    assert done.returncode == 12
    assert f"again: pytest -m L5 --model rehearsal --migparity-site candidate=file:{tmp_path}" in done.stdout


def test_real_evidence_on_one_side_only_is_named_as_mixed(tmp_path):
    (tmp_path / "loss.jsonl").write_text((REPO / "fixtures/lingbot/candidate/loss.jsonl").read_text())
    done = run("-m", "L5", "--model", "lingbot", "--migparity-site", f"candidate=file:{tmp_path}")
    assert done.returncode == 12
    assert "the baseline's evidence is rehearsal and the candidate's is manual" in done.stdout
    assert "baseline evidence: rehearsal; candidate evidence: manual" in done.stdout.splitlines()[0]
