"""From two files of tensors to a verdict by the two commands, and what a mistake says."""

import subprocess
import sys

import numpy as np
import pytest
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


def test_a_closer_look_names_the_part_that_differs(tmp_path):
    big = np.arange((1 << 20) + 9000, dtype=np.float32)
    other = big.copy()
    other[(1 << 20) + 5000] += 1
    for name, array in (("a", big), ("b", other)):
        np.savez(tmp_path / f"{name}.npz", w=array)
    for number, part in enumerate(("w", f"w[{1 << 20}:{(1 << 20) + 9000}]")):
        for name in "ab":
            done = migparity("digest", tmp_path / f"{name}.npz", "--zoom", part, "--out", tmp_path / f"{name}{number}",
                             "--level", 0)
            assert done.exit_code == 0, done.output
    done = migparity("diffdigest", tmp_path / "a1", tmp_path / "b1")
    assert done.exit_code == 1
    assert done.output.splitlines()[0] == "FAIL: 3 tensors, 2 equal, 0 value-equal, 1 not"
    assert f"w[{(1 << 20) + 4096}:{(1 << 20) + 8192}]" in done.output.splitlines()[1]
    absent = migparity("digest", tmp_path / "a.npz", "--zoom", "v", "--out", tmp_path / "c")
    assert (absent.exit_code, "no tensor or part 'v'" in str(absent.exception)) == (1, True)


def test_a_map_digests_under_the_other_sides_names(tmp_path):
    q, k, v = (np.arange(64, dtype=np.float32).reshape(8, 8) + 100 * number for number in range(3))
    np.savez(tmp_path / "a.npz", **{"l.0.q": q, "l.0.k": k, "l.0.v": v})
    (tmp_path / "map.json").write_text(
        '{"schema": "migparity.layout/1", "rules": [{"from": ["l.{i}.q", "l.{i}.k", "l.{i}.v"], "to": "layer{i}.qkv", '
        '"ops": [{"op": "merge", "axis": 0}]}]}')
    b = digested(tmp_path, "b", **{"layer0.qkv": np.concatenate([q, k, v])})
    done = migparity("digest", tmp_path / "a.npz", "--layout", tmp_path / "map.json", "--out", tmp_path / "a.digest",
                     "--hash", "sha256")
    assert done.exit_code == 0, done.output
    lines = migparity("diffdigest", tmp_path / "a.digest", b).output.splitlines()
    assert lines[0] == "PASS: 1 tensors, 1 equal, 0 value-equal, 0 not"
    assert "the baseline's tensors are as the layout map" in lines[1]


MAP = """{"schema": "migparity.layout/1", "rules": [
    {"from": "old.{name*}", "to": "new.{name}"}, {"from": "ema.{name*}", "drop": "of the trainer alone"}]}"""


@pytest.mark.parametrize(("declared", "used", "outcome", "said"), [
    ("map.json", "map.json", "PASS", "identity-mapped"), ("", "map.json", "INCONCLUSIVE", "identity-other-map"),
    ("map.json", "other.json", "INCONCLUSIVE", "identity-other-map"), ("gone.json", "map.json", "INCONCLUSIVE",
                                                                       "evidence-unreadable")])
def test_l1_takes_mapped_tensors_through_the_declared_map_alone(tmp_path, declared, used, outcome, said):
    """And says what the map left out; with another map, or none declared, nobody knows what was."""
    from pytest_migparity.assess import assess
    from pytest_migparity.core.levels import LEVELS
    from pytest_migparity.core.limits import default_limits
    from pytest_migparity.core.manifest import load_manifest
    from pytest_migparity.sides import Side

    (tmp_path / "model.toml").write_text(
        '[model]\nname = "m"\n[baseline]\nsite = "file:baseline"\n[candidate]\nsite = "file:candidate"\n'
        f'[weights]\nlayout = "{declared}"\n')
    (tmp_path / "map.json").write_text(MAP)
    (tmp_path / "other.json").write_text(MAP.replace("trainer alone", "trainer"))
    for side, names in (("baseline", ("old.w", "ema.w")), ("candidate", ("new.w",))):
        home = tmp_path / side
        home.mkdir()
        np.savez(tmp_path / f"{side}.npz", **{name: WEIGHT + name.startswith("ema") for name in names})
        given = ("--layout", tmp_path / used) if side == "baseline" else ()
        done = migparity("digest", tmp_path / f"{side}.npz", "--out", home / "weights.digest", *given)
        assert done.exit_code == 0, done.output
    manifest = load_manifest(tmp_path / "model.toml")
    verdict = assess("L1", *(Side(manifest, side, tmp_path).weights() for side in ("baseline", "candidate")),
                     manifest=manifest, limits=default_limits(LEVELS["L1"]))
    notes = {item.code: item.params for item in verdict.finding.notes}
    assert verdict.outcome == outcome
    assert said in notes
    if outcome == "PASS":
        assert notes["identity-mapped"]["dropped"] == "ema.{name*} (of the trainer alone)"


def test_a_closer_look_at_one_tensor_does_not_stand_for_the_checkpoint(tmp_path):
    from pytest_migparity.core.errors import UserError
    from pytest_migparity.readers.tensors import read_digests

    np.savez(tmp_path / "a.npz", w=np.arange(1 << 21, dtype=np.float32), v=np.zeros(4))
    assert migparity("digest", tmp_path / "a.npz", "--zoom", "w", "--out", tmp_path / "weights.digest").exit_code == 0
    with pytest.raises(UserError, match=r"weights.digest: it holds w\[0:1048576\], a part of a tensor"):
        read_digests({"weights.digest": (tmp_path / "weights.digest").open("rb").__enter__})


RUN = {"baseline": "Loaded PyTorch weights from /ckpt/pi05_base", "candidate": "Loaded PyTorch weights from /ckpt/pi0_old"}


def test_a_run_that_restored_another_checkpoint_fails_l1(tmp_path, monkeypatch):
    from pytest_migparity.assess import assess
    from pytest_migparity.core.levels import LEVELS
    from pytest_migparity.core.limits import default_limits
    from pytest_migparity.core.manifest import load_manifest
    from pytest_migparity.core.verdict import Outcome
    from pytest_migparity.sides import Side

    (tmp_path / "model.toml").write_text('[model]\nname = "m"\n[baseline]\nsite = "file:baseline"\n[candidate]\n'
                                         'site = "file:candidate"\n')
    manifest = load_manifest(tmp_path / "model.toml")

    def verdict():
        sides = [Side(manifest, side, tmp_path).weights() for side in RUN]
        return assess("L1", *sides, manifest=manifest, limits=default_limits(LEVELS["L1"]))

    for side, line in RUN.items():
        (tmp_path / side).mkdir()
        digested(tmp_path / side, "weights", w=WEIGHT)
        (tmp_path / side / "weights.npz").unlink()
        (tmp_path / side / "config.yaml").write_text("pytorch_weight_path: /ckpt/pi05_base\n")
        (tmp_path / side / "train.log").write_text(f"starting\n{line}\nstep 1\n")
    without = verdict()
    assert without.outcome is Outcome.PASS
    assert without.finding.notes == ()
    for side in RUN:
        home = tmp_path / side
        done = migparity("provenance", "--config", home / "config.yaml", "--log", home / "train.log", "--weights",
                         home / "weights.digest", "--loaded", home / "weights.digest", "--out", home / "provenance.json")
        assert done.exit_code == 0, done.output
    told = verdict()
    assert told.outcome is Outcome.FAIL
    assert "pi0_old" in " ".join(str(value) for item in told.finding.notes for value in item.params.values())
    (tmp_path / "candidate" / "provenance.json").write_text("{")
    assert verdict().outcome is Outcome.INCONCLUSIVE
