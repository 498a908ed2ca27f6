"""Evidence as it really arrives: missing, empty, foreign, damaged, mislabelled. One clear reason each, never a pass.

Each case goes through the same door as the conformance tests; what a person would read names the file or the site.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from evidence_kit import NUDGED, curve, write_losses

from pytest_migparity import cli
from pytest_migparity.assess import assess
from pytest_migparity.channels.store import ENV as CACHE
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import default_limits
from pytest_migparity.core.manifest import load_manifest
from pytest_migparity.core.verdict import Outcome, Verdict
from pytest_migparity.rehearsal.rehearse import rehearse
from pytest_migparity.reports.messages import catalogue, tell
from pytest_migparity.sides import Side
from pytest_migparity.wire import receipt
from pytest_migparity.wire.receipt import Receipt, recipe_hash

PASS, FAIL, UNSURE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
MakeModel = Callable[..., Path]


def judged(home: Path, *, level: str = "L5", series: str = "main", candidate: str | None = None) -> Verdict:
    """The verdict; `candidate` as it would stand in --migparity-site."""
    manifest = load_manifest(home / "model.toml")
    sides = (Side(manifest, "baseline", home), Side(manifest, "candidate", home, candidate, home))
    handles = [side.env() if level == "L0" else side.loss(series) for side in sides]
    return assess(level, *handles, manifest=manifest, limits=default_limits(LEVELS[level]))


def told(verdict: Verdict) -> str:
    """All that the report says of it, in English; every code has a sentence, and the verdict can be written down."""
    assert Verdict.from_json(verdict.to_json()) == verdict
    assert verdict.to_json().encode("utf-8")
    assert {note.code for note in verdict.finding.notes} <= catalogue().keys()
    return "\n".join(tell(note, "en") for note in verdict.finding.notes)


def zipped(text: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("loss.jsonl", text)
    return made.getvalue()


GOOD = "".join(json.dumps({"step": step, "loss": loss}) + "\n" for step, loss in enumerate(NUDGED)).encode()
LOCK = json.dumps({"schema": "migparity.env/1", "python": {}, "packages": {}, "env": {}}).encode()

NO_LOG = {  # what lies where the log should be -> what the reader must be told beside the file's name
    "empty": (b"", "an empty file"),
    "blank": (b"\n\n  \n", "without a single character"),
    "zeros": (bytes(4096), "without a single character"),
    "binary": (b"\x00\x01\x02" + os.urandom(64) + GOOD, "binary data (a NUL byte at offset 0)"),
    "random": (b"\xff\xfe\xfd\x00" + bytes(range(256)), ""),
    "html": (b"<!DOCTYPE html><html><body>Sign in</body></html>", "an HTML page"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(32), "a PNG picture"),
    "jpeg": (b"\xff\xd8\xff\xe0" + bytes(32), "a JPEG picture"),
    "zip": (zipped(GOOD), "a zip archive"),
    "gzip": (gzip.compress(GOOD), "a gzip archive"),
    "pickle": (b"\x80\x04\x95" + bytes(32), "a Python pickle"),
    "lfs pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12\n",
                    "a Git LFS pointer"),
    "prose": ("训练已完成, see the chat\n".encode(), "one of the formats"),
    "an environment lock": (LOCK, ""),
    "a JSON list": (b"[1, 2, 3]\n", "one of the formats"),
    "no loss in it": (b'{"step": 0, "lr": 1}\n{"step": 1, "lr": 1}\n', "no column 'loss'"),
    "not a number": (GOOD.replace(b'"loss": ', b'"loss": "?', 1).replace(b"}", b'"}', 1), "line 1"),
    "steps abbreviated": (b'{"step": "1K", "loss": 1}\n{"step": "2K", "loss": 1}\n', "a whole number"),
    "deep nesting": (b'{"step": 0, "loss": ' + b"[" * 200_000 + b"\n", "one of the formats"),
    "one line of 2 MB": (b'{"step": 0, "loss": 1' + b"0" * (2 << 20) + b"}\n", "one of the formats"),
}


@pytest.mark.parametrize("side", ["baseline", "candidate"])
@pytest.mark.parametrize("producer", ["real", None], ids=["signed", "manual"])
@pytest.mark.parametrize("content, reason", NO_LOG.values(), ids=NO_LOG)
def test_what_is_no_log_is_inconclusive_and_named(
    make_model: MakeModel, content: bytes, reason: str, producer: str | None, side: str
) -> None:
    home = make_model(candidate=NUDGED, producer=None)
    (home / side / "loss.jsonl").write_bytes(content)
    if producer:
        sign_as_they_are(home)
    verdict = judged(home)
    assert verdict.outcome is UNSURE
    text = told(verdict)
    assert f"{side} loss: loss.jsonl" in text
    assert reason in text
    assert len(text) < 600, "a hostile file must not fill the report"


def sign_as_they_are(home: Path, **changes: Any) -> None:
    """Receipts that fit the files, but for `changes` in the candidate's."""
    recipe = recipe_hash(load_manifest(home / "model.toml").recipe.canonical())
    for side in ("baseline", "candidate"):
        signed = Receipt("real", recipe, (receipt.entry_for(str(home / side), "loss.jsonl", "loss", "main"),))
        receipt.write(str(home / side), signed._replace(**changes) if side == "candidate" else signed)


def test_a_log_that_is_a_folder_is_inconclusive(make_model: MakeModel) -> None:
    home = make_model(candidate=NUDGED, producer=None)
    (home / "candidate" / "loss.jsonl").unlink()
    (home / "candidate" / "loss.jsonl").mkdir()
    verdict = judged(home)
    assert verdict.outcome is UNSURE
    assert "candidate loss: no file there is one (found: nothing)" in told(verdict)


@pytest.mark.parametrize("lost, first", [(1, "the first step"), (3, "the first three")])
def test_a_log_without_its_first_steps_is_inconclusive(make_model: MakeModel, lost: int, first: str) -> None:
    home = make_model(candidate=NUDGED, producer=None)
    lines = GOOD.splitlines(keepends=True)
    (home / "candidate" / "loss.jsonl").write_bytes(b"".join(lines[lost:]))
    verdict = judged(home)
    assert verdict.outcome is UNSURE, first
    missing = [note.params for note in verdict.finding.notes if note.code == "loss-missing"]
    assert [(dict(item)["side"], dict(item)["count"]) for item in missing] == [("candidate", lost)]
    assert {check.name: check.blocked for check in verdict.finding.checks}["step0"] == "loss-check-head"


def test_a_log_cut_in_the_middle_of_a_record_is_inconclusive_and_says_so(make_model: MakeModel) -> None:
    home = make_model(candidate=NUDGED, producer=None)
    (home / "candidate" / "loss.jsonl").write_bytes(GOOD[:-10])
    verdict = judged(home)
    assert verdict.outcome is UNSURE
    assert verdict.finding.coverage.dropped == 1
    assert "loss.jsonl" in told(verdict)


@pytest.mark.parametrize("name", ["train.log", "loss.csv"])
def test_a_gbk_log_is_read_and_the_encoding_is_told(make_model: MakeModel, name: str) -> None:
    """A Chinese trainer's log saved by a Chinese Windows: the numbers are judged as they are."""
    home = make_model(candidate=NUDGED, producer=None)
    (home / "candidate" / "loss.jsonl").unlink()
    rows = [("# 训练日志,损失\nstep,loss\n" if name == "loss.csv" else "训练开始\n")]
    for step, loss in enumerate(NUDGED):
        rows.append(f"{step},{loss!r}\n" if name == "loss.csv" else f"信息 - Step {step}/60, Epoch 1, Loss {loss!r}, 完成\n")
    for encoding, outcome in (("gbk", PASS), ("utf-8", PASS)):
        (home / "candidate" / name).write_text("".join(rows), encoding=encoding)
        verdict = judged(home)
        assert verdict.outcome is outcome, told(verdict)
        assert (f"{name}" in told(verdict) and "GBK" in told(verdict)) is (encoding == "gbk")
    (home / "candidate" / name).write_bytes("".join(rows).encode("gbk") + b"\xff\xff\xff\n")
    assert judged(home).outcome is UNSURE
    assert "neither UTF-8 nor GBK" in told(judged(home))


NO_RECEIPT: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not JSON"),
    "not JSON": (b"{", "not JSON"),
    "a list": (b"[]", '"schema" is not'),
    "another schema": (b'{"schema": "migparity.receipt/9"}', '"schema" is not'),
    "HTML": (b"<html></html>", "not JSON"),
    "not UTF-8": ('{"schema": "回执"}'.encode("gbk"), "not UTF-8"),
    "NaN": (b'{"schema": NaN}', '"schema" is not'),
    "2 MB of nesting": (b"[" * (2 << 20), "larger than 1048576 bytes"),
    "900 kB of nesting": (b"[" * 900_000, "not JSON"),
    "2 MB of blanks": (b" " * (2 << 20), "larger than 1048576 bytes"),
}


@pytest.mark.parametrize("content, reason", NO_RECEIPT.values(), ids=NO_RECEIPT)
def test_what_is_no_receipt_is_inconclusive(make_model: MakeModel, content: bytes, reason: str) -> None:
    home = make_model(candidate=NUDGED)
    (home / "candidate" / receipt.NAME).write_bytes(content)
    verdict = judged(home)
    assert verdict.outcome is UNSURE
    text = told(verdict)
    assert "artifacts.json at file:candidate cannot be used" in text
    assert reason in text
    assert len(text) < 600


def entry(path: str = "loss.jsonl", sha256: str = "0" * 64, kind: str = "loss", series: str = "main") -> dict[str, Any]:
    return {"kind": kind, "path": path, "sha256": sha256, "bytes": 1, "series": series}


MISFITS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "of another recipe": (lambda data: data.update(recipe=recipe_hash({"seed": 2})), "stale, or another run"),
    "of no recipe": (lambda data: data.pop("recipe"), "of recipe none"),
    "another hash": (lambda data: data.update(files=[entry()]), "truncated or changed after the run"),
    "a file that is absent": (lambda data: data.update(files=[entry("gone.jsonl")]), "gone.jsonl is named but not there"),
    "one present, a rerun absent": (
        lambda data: data["files"].append({**entry("loss.rerun1.jsonl"), "rerun": 1}),
        "loss.rerun1.jsonl is named but not there"),
    "lists nothing": (lambda data: data.update(files=[]), "lists none of it"),
    "lists another series": (lambda data: data["files"][0].update(series="other"), "lists none of it"),
    "lists another kind": (lambda data: data["files"][0].update(kind="env"), "lists none of it"),
    "escapes with ../": (lambda data: data.update(files=[entry("../baseline/loss.jsonl")]), "leaves its folder"),
    "an absolute path": (lambda data: data.update(files=[entry("/etc/passwd")]), "leaves its folder"),
    "escapes with a backslash": (lambda data: data.update(files=[entry("..\\baseline\\loss.jsonl")]),
                                 "leaves its folder"),
    "a drive": (lambda data: data.update(files=[entry("C:loss.jsonl")]), "leaves its folder"),
    "the file twice": (lambda data: data.update(files=data["files"] * 2), "one training log is one file"),
    "half a character": (lambda data: data.update(commit="abc\ud800"), "half a character"),
    "an unknown producer": (lambda data: data.update(producer="me"), '"producer" is'),
    "files as a string": (lambda data: data.update(files="loss.jsonl"), '"files" is not a list'),
    "a short hash": (lambda data: data["files"][0].update(sha256="abc"), "not 64 hex digits"),
    "rehearsal against real": (lambda data: data.update(producer="rehearsal"), "rehearsal evidence answers only"),
}


@pytest.mark.parametrize("change, reason", MISFITS.values(), ids=MISFITS)
@pytest.mark.parametrize("losses", [NUDGED, curve(offset=0.1)], ids=["equal", "parted"])
def test_a_receipt_that_does_not_fit_is_inconclusive(
    make_model: MakeModel, change: Callable[[dict[str, Any]], None], reason: str, losses: list[float]
) -> None:
    """Neither agreement nor difference can be told from evidence that is not what it says."""
    home = make_model(candidate=losses)
    path = home / "candidate" / receipt.NAME
    data = json.loads(path.read_text("utf-8"))
    change(data)
    path.write_text(json.dumps(data), "utf-8")
    verdict = judged(home)
    assert verdict.outcome is UNSURE
    assert reason in told(verdict)


@pytest.mark.parametrize("site, reason", [
    ("file:nowhere", "file:nowhere: there is no such folder or file"),
    ("file:model.toml/below", "there is no such folder or file"),
    ("file:empty", "no file there is one (found: nothing)"),
    ("file:other", "no file there is one (found: notes.md)"),
    ("file:rerun", "no file there is one (found: loss.rerun1.jsonl)"),
    ("file:" + "a" * 300, "File name too long"),
    ("file:~nobody-of-that-name/x", "write the folder's path in full"),
    ("file:pipe", "there is no such folder or file"),
    ("file:piped", "no file there is one (found: nothing)"),
    ("file:two", "several files could be it (a.log, b.log)"),
])
def test_a_site_without_evidence_is_inconclusive_and_named(make_model: MakeModel, site: str, reason: str) -> None:
    home = make_model(candidate=NUDGED)
    for folder in ("empty", "other", "rerun", "piped", "two"):
        (home / folder).mkdir()
    (home / "other" / "notes.md").write_bytes(GOOD)
    (home / "rerun" / "loss.rerun1.jsonl").write_bytes(GOOD)
    os.mkfifo(home / "pipe")
    os.mkfifo(home / "piped" / "loss.jsonl")
    for name in ("a.log", "b.log"):
        (home / "two" / name).write_bytes(GOOD)
    verdict = judged(home, candidate=site)
    assert verdict.outcome is UNSURE
    assert reason in told(verdict)


def test_a_folder_that_cannot_be_listed_is_inconclusive(
    make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is below a folder that the user may not enter could be the newer log: half a listing is no listing."""
    home = make_model(candidate=NUDGED, producer=None)
    (home / "candidate" / "later").mkdir()
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("later"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    verdict = judged(home)
    assert verdict.outcome is UNSURE
    assert "later: Permission denied" in told(verdict)


@pytest.mark.parametrize("name", ["run#2", "run?x=1", "100%", "50%25", "a b", "损失", "run;v=1"])
def test_a_folder_with_an_odd_name_is_the_folder_that_is_judged(make_model: MakeModel, name: str) -> None:
    """Were `#2` cut off as a URL's fragment, the good run beside it would be judged instead."""
    home = make_model(candidate=NUDGED, producer=None)
    for folder, losses in (("run", NUDGED), ("100", NUDGED), (name, curve(offset=0.1))):
        (home / folder).mkdir()
        write_losses(home / folder / "loss.jsonl", losses)
    assert judged(home, candidate=f"file:{quote(name)}").outcome is FAIL
    if "%25" not in name:
        assert judged(home, candidate=f"file:{name}").outcome is FAIL


def test_a_name_that_is_not_utf8_is_no_crash(make_model: MakeModel) -> None:
    home = make_model(candidate=NUDGED, producer=None)
    (home / "candidate" / "loss.jsonl").unlink()
    (home / "candidate" / os.fsdecode(b"\xcb\xf0\xca\xa7.dat")).write_bytes(GOOD)
    (home / "candidate" / "other.dat").write_bytes(GOOD)
    verdict = judged(home)
    assert verdict.outcome is UNSURE
    assert "(found: other.dat, " in told(verdict)


@pytest.mark.parametrize("producer", ["real", None], ids=["signed", "manual"])
def test_half_a_character_in_a_log_is_no_crash(make_model: MakeModel, producer: str | None) -> None:
    """JSON can spell a lone surrogate, which no report and no message between workers can hold."""
    home = make_model(candidate=NUDGED, producer=None)
    (home / "candidate" / "loss.jsonl").write_bytes(GOOD.replace(b'"loss"', b'"\\ud800 - loss \\udfff"'))
    if producer:
        sign_as_they_are(home)
    verdict = judged(home)
    assert verdict.outcome is UNSURE
    assert "there is no column 'loss'" in told(verdict)


@pytest.mark.parametrize("name", ["train.log", "loss.jsonl", "noname"])
def test_a_site_may_be_one_file(make_model: MakeModel, name: str) -> None:
    home = make_model(candidate=curve(offset=0.1), producer=None)
    (home / name).write_bytes(GOOD)
    verdict = judged(home, candidate=f"file:{name}")
    assert verdict.outcome is PASS
    assert [(item.side, item.producer, item.name) for item in verdict.evidence] == [
        ("baseline", "manual", "loss.jsonl"), ("candidate", "manual", name)]
    (home / name).write_bytes(b"")
    assert judged(home, candidate=f"file:{name}").outcome is UNSURE
    assert judged(home, candidate=f"file:{name}", level="L0").outcome is UNSURE


def test_the_first_step_may_be_lost_in_a_single_file_too(make_model: MakeModel) -> None:
    home = make_model(candidate=NUDGED, producer=None)
    (home / "train.log").write_bytes(GOOD.split(b"\n", 1)[1])
    assert judged(home, candidate="file:train.log").outcome is UNSURE


def test_a_cache_that_cannot_be_written_is_inconclusive_and_named(
    make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below a regular file nobody can make a folder, root neither."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(CACHE, str(tmp_path / "file" / "cache"))
    for producer in ("real", None):
        verdict = judged(make_model(f"of-{producer}", candidate=NUDGED, producer=producer))
        assert verdict.outcome is UNSURE
        assert "MIGPARITY_CACHE" in told(verdict)
        assert str(tmp_path / "file" / "cache") in told(verdict)


NO_LOCK = {
    "empty": (b"", "not JSON"),
    "not JSON": (b'{"schema": ', "not JSON"),
    "another schema": (b'{"schema": "migparity.env/9"}', '"schema" is not'),
    "a training log": (GOOD, "not JSON"),
    "HTML": (b"<html></html>", "not JSON"),
    "not UTF-8": ("{'回执'}".encode("gbk"), "not UTF-8"),
    "deep nesting": (b"[" * 900_000, "not JSON"),
    "too large": (b" " * (2 << 20), "larger than 1048576 bytes"),
    "a key twice": (LOCK[:-1] + b', "env": {}}', "given twice"),
    "no packages": (LOCK.replace(b'"packages"', b'"pakages"'), '"packages" is missing'),
    "NaN": (LOCK[:-1] + b', "cpu": {"cores": NaN}}', "NaN is not a JSON number"),
}


@pytest.mark.parametrize("content, reason", NO_LOCK.values(), ids=NO_LOCK)
def test_what_is_no_environment_lock_is_inconclusive_and_named(
    make_model: MakeModel, content: bytes, reason: str
) -> None:
    home = make_model(candidate=NUDGED, producer=None, extra='[env]\nmust_match = { numpy = "*" }\n')
    (home / "baseline" / "env.json").write_bytes(LOCK)
    (home / "candidate" / "env.json").write_bytes(content)
    verdict = judged(home, level="L0")
    assert verdict.outcome is UNSURE
    assert "candidate env: env.json: " in told(verdict)
    assert reason in told(verdict)
    assert len(told(verdict)) < 600


def test_an_unknown_series_is_the_callers_mistake(make_model: MakeModel) -> None:
    home = make_model(candidate=NUDGED, extra="[series.total]\n[series.action]\n")
    with pytest.raises(UserError, match=r"mine has no series 'totl'; declared: action, total"):
        judged(home, series="totl")


def test_a_series_that_was_not_recorded_is_inconclusive(make_model: MakeModel) -> None:
    """And the log of another series never stands in for it."""
    home = make_model(candidate=NUDGED, extra='[series.action]\nfile = "action.csv"\n')
    assert judged(home, series="action").outcome is UNSURE  # the receipts list none of it
    for side in ("baseline", "candidate"):
        (home / side / receipt.NAME).unlink()
    verdict = judged(home, series="action")
    assert verdict.outcome is UNSURE
    assert "action.csv is named but not there" in told(verdict)


def test_an_unknown_column_is_inconclusive_and_named(make_model: MakeModel) -> None:
    home = make_model(candidate=NUDGED, extra='[series.main]\ncolumn = "los"\n')
    verdict = judged(home)
    assert verdict.outcome is UNSURE
    assert "no column 'los'; did you mean 'loss'?" in told(verdict)


def test_an_unknown_format_is_inconclusive_and_named(make_model: MakeModel) -> None:
    home = make_model(candidate=NUDGED, extra='[series.main]\nformat = "lingbt"\n')
    verdict = judged(home)
    assert verdict.outcome is UNSURE
    assert "no log format 'lingbt'; did you mean 'lingbot'?" in told(verdict)


def test_an_unknown_fault_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no fault 'eps-misplacd' in the catalogue; did you mean 'eps-misplaced'\?"):
        rehearse(tmp_path / "out", recipe={"seed": 1}, fault="eps-misplacd")
    assert not (tmp_path / "out").exists()


def migparity(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
              ) -> tuple[object, str, str]:
    """(exit code, stdout, stderr) of the command, in this process; any exception but SystemExit is a traceback."""
    monkeypatch.setattr(sys, "argv", ["migparity", *words])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    out, err = capsys.readouterr()
    return exit_.value.code, out, err


def test_an_unknown_fault_is_exit_4_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = migparity(monkeypatch, capsys, "rehearse", "--fault", "bf-16", "--out", str(tmp_path / "d"))
    assert (code, out) == (4, "")
    assert err == "migparity: no fault 'bf-16' in the catalogue; did you mean 'bf16'?\n"
    assert not (tmp_path / "d").exists()


ARGUMENTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "there is no such folder or file"),
    "below a file": (lambda path: None, "there is no such folder or file"),
    "empty": (lambda path: path.write_bytes(b""), "an empty file"),
    "binary": (lambda path: path.write_bytes(b"\x01\x00\x02" * 99), "binary data"),
    "picture": (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n"), "a PNG picture"),
    "html": (lambda path: path.write_bytes(b"<html>"), "an HTML page"),
    "folder": (Path.mkdir, "a folder without TensorBoard event files"),
    "pipe": (os.mkfifo, "there is no such folder or file"),
    "prose": (lambda path: path.write_text("hello\n"), "one of the formats"),
}


@pytest.mark.parametrize("place", [0, 1], ids=["baseline", "candidate"])
@pytest.mark.parametrize("make, reason", ARGUMENTS.values(), ids=ARGUMENTS)
def test_difftraj_refuses_what_is_no_log_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest, make: Callable[[Path], object], reason: str, place: int,
) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_bytes(GOOD)
    if "below a file" in request.node.callspec.id:
        bad = good / "bad.jsonl"
    make(bad)
    code, out, err = migparity(monkeypatch, capsys, "difftraj", *map(str, (bad, good) if place == 0 else (good, bad)))
    assert (code, out) == (4, "")
    assert err.startswith("migparity: ")
    assert err.count("\n") == 1
    assert "bad.jsonl" in err
    assert reason in err


def test_difftraj_on_one_file_twice_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_bytes(GOOD)
    code, _, _ = migparity(monkeypatch, capsys, "difftraj", *[str(tmp_path / "a.jsonl")] * 2)
    assert code == 12


def test_difftraj_without_the_first_step_is_exit_12(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_losses(tmp_path / "a.jsonl", curve())
    (tmp_path / "b.jsonl").write_bytes(GOOD.split(b"\n", 1)[1])
    code, out, _ = migparity(monkeypatch, capsys, "difftraj", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"))
    assert code == 12
    assert "INCONCLUSIVE" in out


def test_the_console_says_no_traceback_either(tmp_path: Path) -> None:
    """The one case in a process of its own: what a terminal shows."""
    command = [sys.executable, "-c", "from pytest_migparity.cli import main; main()", "difftraj", "no.csv", "no.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stdout == ""
    assert done.stderr.startswith("migparity: ")
    assert "no.csv" in done.stderr
    assert done.stderr.count("\n") == 1
