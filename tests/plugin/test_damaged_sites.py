"""No damage to a site ever turns anything into PASS: every file of both sides, from PASS, FAIL and INCONCLUSIVE alike.

Each scene is a model's two sides and what each case says of them as they are. Then one file after another is damaged in
every way, the case is judged again through the same door as the conformance tests, and the file is put back.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from evidence_kit import REPO

from pytest_migparity.assess import assess
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import default_limits
from pytest_migparity.core.manifest import Manifest, load_manifest
from pytest_migparity.core.verdict import Outcome, Verdict
from pytest_migparity.sides import Handle, Side
from pytest_migparity.wire import receipt
from pytest_migparity.wire.receipt import Receipt, recipe_hash

FIXTURES = REPO / "fixtures"
SIDES = ("baseline", "candidate")
PASS, FAIL, UNSURE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
Case = tuple[str, str]  # level, series
STACK, LOSS, PRINTED = ("L0", "main"), ("L5", "main"), ("L5", "printed")


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """A site that is waited for for ever is a fault like any other, not the end of the CI."""
    def late(*_: object) -> None:
        raise TimeoutError("the site was waited for longer than two minutes")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Scene:
    """A model folder, what each case says of it undamaged, and what its evidence would deserve without receipts."""

    home: Path
    says: Mapping[Case, Outcome]
    receipts: bool = True
    marked: bool = True  # the environment lock says that a receipt belongs beside it
    deserves: Mapping[Case, Outcome] = field(default_factory=dict)

    @cached_property
    def manifest(self) -> Manifest:
        return load_manifest(self.home / "model.toml")

    def handle(self, side: str, case: Case) -> Handle[Any]:
        one = Side(self.manifest, side, self.home)
        return one.env() if case[0] == "L0" else one.loss(case[1])

    def used(self, side: str, case: Case) -> set[str]:
        """The files of a side that a case's verdict rests on, beside the receipt."""
        if case == STACK:
            return {"env.json"}
        if case == PRINTED:
            return {"train.log"}
        return {"loss.jsonl", *(["loss.rerun1.jsonl"] if self.receipts and side == "baseline" else [])}


def loss_rows(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in rows:
        change(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def part_from_step_12(row: dict[str, Any]) -> None:
    row["loss"] *= 1.05 if row["step"] >= 12 else 1.0


def edit_lock(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    lock = json.loads(path.read_text("utf-8"))
    change(lock)
    path.write_text(json.dumps(lock), "utf-8")


def other_kinematics(lock: dict[str, Any]) -> None:
    lock["packages"]["arm-kinematics"][0] = "1.1.0"


def unmark(document: dict[str, Any]) -> None:
    """As tools that know no receipts write it: `migparity envlock`, somebody's training script."""
    document.pop("receipt", None)


def sign_again(folder: Path, producer: str, recipe: str | None = None) -> None:
    """The receipt as the host would have written it for the files as they are now."""
    signed = receipt.read(str(folder))
    assert signed is not None
    files = tuple(receipt.entry_for(str(folder), entry.path, entry.kind, entry.series, entry.rerun)
                  for entry in signed.files)
    receipt.write(str(folder), Receipt(producer, recipe or signed.recipe, files))


def scene(name: str, folder: Path) -> Scene:
    """Build one scene from a copy of an embedded model."""
    model = "lingbot" if name.startswith("lingbot") else "rehearsal"
    home = folder / model
    shutil.copytree(FIXTURES / model, home)
    candidate = home / "candidate"
    stale = recipe_hash({"seed": 7})
    if name == "lingbot as recorded":
        return Scene(home, {STACK: UNSURE, LOSS: PASS, PRINTED: PASS})
    if name == "rehearsal as recorded":
        return Scene(home, {STACK: PASS, LOSS: PASS})
    if name == "rehearsal, candidate at fault":
        loss_rows(candidate / "loss.jsonl", part_from_step_12)
        edit_lock(candidate / "env.json", other_kinematics)
        sign_again(candidate, "rehearsal")
        return Scene(home, {STACK: FAIL, LOSS: FAIL})
    if name == "lingbot, candidate at fault":
        loss_rows(candidate / "loss.jsonl", part_from_step_12)
        text = (candidate / "train.log").read_text("utf-8")
        (candidate / "train.log").write_text(text.replace("Loss 1.", "Loss 2."), "utf-8")
        sign_again(candidate, "rehearsal")
        return Scene(home, {STACK: UNSURE, LOSS: FAIL, PRINTED: FAIL})
    if name == "rehearsal, candidate stale":
        sign_again(candidate, "rehearsal", stale)
        return Scene(home, {STACK: UNSURE, LOSS: UNSURE})
    if name == "rehearsal, baseline stale, candidate at fault":
        loss_rows(candidate / "loss.jsonl", part_from_step_12)
        sign_again(candidate, "rehearsal")
        sign_again(home / "baseline", "rehearsal", stale)
        return Scene(home, {STACK: UNSURE, LOSS: UNSURE})
    if name == "rehearsal, candidate real":
        sign_again(candidate, "real")
        return Scene(home, {STACK: UNSURE, LOSS: UNSURE}, deserves={STACK: PASS, LOSS: PASS})
    return not_rehearsed(name, home, candidate)


def not_rehearsed(name: str, home: Path, candidate: Path) -> Scene:
    """The same files as evidence of real machines: signed as real, or without receipts at all."""
    deserves = {STACK: PASS, LOSS: PASS}
    if "at fault" in name:
        loss_rows(candidate / "loss.jsonl", part_from_step_12)
        edit_lock(candidate / "env.json", other_kinematics)
        deserves = {STACK: FAIL, LOSS: FAIL}
    marked = "unmarked" not in name and "manual" not in name
    for side in SIDES:
        if not marked:
            edit_lock(home / side / "env.json", unmark)
            for log in (home / side).glob("loss*.jsonl"):
                loss_rows(log, unmark)
        sign_again(home / side, "real", recipe_hash({"seed": 7}) if "stale" in name and side == "candidate" else None)
        if "manual" in name:
            (home / side / receipt.NAME).unlink()
    says = {STACK: UNSURE, LOSS: UNSURE} if "stale" in name else deserves
    return Scene(home, says, "manual" not in name, marked, deserves)


SIGNED = (
    "lingbot as recorded", "rehearsal as recorded", "rehearsal, candidate at fault", "lingbot, candidate at fault",
    "rehearsal, candidate stale", "rehearsal, baseline stale, candidate at fault", "rehearsal, candidate real",
    "real", "real, candidate at fault", "real, candidate stale", "real, unmarked",
    "real, unmarked, candidate at fault", "real, unmarked, candidate stale",
)
MANUAL = ("manual", "manual, candidate at fault")
SCENES = SIGNED + MANUAL


def judged(here: Scene, side: str, case: Case, other: Handle[Any]) -> Verdict:
    """The verdict with `side` as it is on disk now; `other` is the undamaged other side, fetched once."""
    mine = here.handle(side, case)
    handles = (mine, other) if side == "baseline" else (other, mine)
    return assess(case[0], *handles, manifest=here.manifest, limits=default_limits(LEVELS[case[0]]))


def kept(handle: Handle[Any]) -> Handle[Any]:
    """A handle that fetches once."""
    evidence = handle.load()
    return Handle(handle.side, handle.kind, handle.case, lambda: evidence)


def others(here: Scene, side: str) -> dict[Case, Handle[Any]]:
    other = SIDES[1 - SIDES.index(side)]
    return {case: kept(here.handle(other, case)) for case in here.says}


Damage = Callable[[Path], None]


def truncations(path: Path) -> Iterator[tuple[str, Damage]]:
    """To nothing, one byte, half, without its last line, its last 1, 2, 10 bytes, and at four seeded places."""
    data = path.read_bytes()
    seed = random.Random(zlib.crc32(path.parts[-2].encode() + path.name.encode()))
    without_last_line = data.rstrip(b"\n").rfind(b"\n") + 1
    lengths = {0, 1, len(data) // 2, without_last_line, len(data) - 1, len(data) - 2, len(data) - 10,
               *(seed.randrange(1, len(data)) for _ in range(4))}
    for length in sorted(lengths):
        yield f"cut to {length} of {len(data)} bytes", lambda at, length=length: write(at, data[:length])


def write(path: Path, data: bytes) -> None:
    """As a new file: the one before may be a link or not be writable."""
    path.unlink()
    path.write_bytes(data)


def replaced_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / path.name).write_bytes(b"{}")


def replaced_by_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replaced_by_link(target: Path) -> Damage:
    def link(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return link


def damages(here: Scene, side: str, path: Path, outside: Path) -> Iterator[tuple[str, Damage]]:
    """Every way to damage one file."""
    data = path.read_bytes()
    yield "deleted", Path.unlink
    yield from truncations(path)
    seed = random.Random(zlib.crc32(b"flip" + path.name.encode()))
    for position in (0, len(data) // 2, len(data) - 1, *(seed.randrange(len(data)) for _ in range(6))):
        bit = seed.choice((0x01, 0x02, 0x08, 0x80))
        flipped = data[:position] + bytes([data[position] ^ bit]) + data[position + 1:]
        yield f"byte {position} xor {bit:#x}", lambda at, flipped=flipped: write(at, flipped)
    yield "a NUL in the middle", lambda at: write(at, data[: len(data) // 2] + b"\0" + data[len(data) // 2:])
    yield "overwritten with zeros", lambda at: write(at, bytes(len(data)))
    yield "doubled", lambda at: write(at, data + data)
    yield "in UTF-16", lambda at: write(at, data.decode("latin-1").encode("utf-16"))
    yield "a folder in its place", replaced_by_folder
    yield "a FIFO in its place", replaced_by_fifo
    outside.write_bytes(data)  # the right bytes, and still not this site's
    yield "a link out of the site", replaced_by_link(outside)
    yield "a link to itself", replaced_by_link(path)
    yield "a link to nothing", replaced_by_link(path.parent / "nothing")
    if here.receipts:  # without one, another file of that name is simply other evidence
        yield from swaps(here, side, path)


def fits(theirs: Path, folder: Path) -> bool:
    """Is their receipt the right one for the files of this folder, so that it would mend what is wrong with ours?"""
    signed = receipt.read(str(theirs))
    assert signed is not None
    return all((folder / entry.path).is_file() and receipt.entry_for(str(folder), entry.path, entry.kind).sha256 ==
               entry.sha256 for entry in signed.files)


def swaps(here: Scene, side: str, path: Path) -> Iterator[tuple[str, Damage]]:
    """Whole files that belong elsewhere."""
    theirs = here.home / SIDES[1 - SIDES.index(side)] / path.name
    if theirs.is_file():
        yield "the other side's file", lambda at: write(at, theirs.read_bytes())
    for model in ("rehearsal", "lingbot"):  # healthy recordings; of this very model where the scene is a changed one
        for recorded in (FIXTURES / model / at / path.name for at in SIDES):
            if recorded.is_file() and not (path.name == receipt.NAME and fits(recorded.parent, path.parent)):
                yield "an older run's file", lambda at, recorded=recorded: write(at, recorded.read_bytes())


@contextmanager
def restored(folder: Path) -> Iterator[None]:
    """Put the whole folder back afterwards."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    try:
        yield
    finally:
        shutil.rmtree(folder)
        folder.mkdir()
        for name, data in before.items():
            (folder / name).write_bytes(data)


def whole(path: Path, data: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes() == data


def excused(here: Scene, case: Case, verdict: Verdict, gone: set[str]) -> bool:
    """Without its receipt, and without a lock that misses it, a site is manual evidence: judged, marked, on its own
    merits. Anything else that passes and did not pass before is a hole."""
    lost = receipt.NAME in gone and (not here.marked or "env.json" in gone)
    return lost and "manual" in verdict.producers and here.deserves.get(case) is PASS


@pytest.fixture
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    return scene(request.param, tmp_path)


@pytest.mark.parametrize("here", SCENES, indirect=True)
def test_a_scene_says_what_it_is_meant_to_say_before_it_is_damaged(here: Scene) -> None:
    found = {case: judged(here, "candidate", case, kept(here.handle("baseline", case))).outcome for case in here.says}
    assert found == here.says


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("here", SCENES, indirect=True)
def test_no_damage_to_one_file_turns_anything_into_a_pass(here: Scene, side: str, tmp_path: Path) -> None:
    folder, rest = here.home / side, others(here, side)
    wrong = []
    for name in sorted(path.name for path in folder.iterdir()):
        path, data = folder / name, (folder / name).read_bytes()
        for what, damage in damages(here, side, path, tmp_path / "outside"):
            with restored(folder):
                damage(path)
                if whole(path, data):
                    continue  # that damage leaves these bytes as they were
                gone = set() if path.is_file() and not path.is_symlink() else {name}
                for case, before in here.says.items():
                    verdict = judged(here, side, case, rest[case])
                    covered = here.receipts and name in here.used(side, case)
                    if verdict.outcome is PASS and (before is not PASS or covered) and \
                            not excused(here, case, verdict, gone):
                        wrong.append((name, what, case, before))
    assert not wrong


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("here", SCENES, indirect=True)
def test_no_two_deletions_turn_anything_into_a_pass(here: Scene, side: str) -> None:
    folder, rest = here.home / side, others(here, side)
    wrong = []
    for gone in combinations(sorted(path.name for path in folder.iterdir()), 2):
        with restored(folder):
            for name in gone:
                (folder / name).unlink()
            for case, before in here.says.items():
                verdict = judged(here, side, case, rest[case])
                needed = receipt.NAME in gone or here.used(side, case) & set(gone)
                if verdict.outcome is PASS and (before is not PASS or needed) and \
                        not excused(here, case, verdict, set(gone)):
                    wrong.append((gone, case, before))
    assert not wrong


@pytest.mark.parametrize("here", [name for name in SIGNED if "unmarked" not in name], indirect=True)
def test_a_site_whose_receipt_is_lost_is_inconclusive(here: Scene) -> None:
    for side in SIDES:
        rest = others(here, side)
        with restored(here.home / side):
            (here.home / side / receipt.NAME).unlink()
            for case in here.says:
                verdict = judged(here, side, case, rest[case])
                assert verdict.outcome is UNSURE
                assert "receipt-lost" in [note.code for note in verdict.finding.notes]


@pytest.mark.parametrize("here", [name for name in SIGNED if "unmarked" not in name], indirect=True)
def test_a_log_of_our_own_tools_misses_its_receipt_with_the_lock_gone_too(here: Scene) -> None:
    """Nor does a rehearsal's log become manual evidence that way."""
    for side in SIDES:
        rest = others(here, side)
        with restored(here.home / side):
            for name in (receipt.NAME, "env.json"):
                (here.home / side / name).unlink()
            assert {judged(here, side, case, rest[case]).outcome for case in here.says} == {UNSURE}


@pytest.mark.parametrize("here", [name for name in SIGNED if "unmarked" in name], indirect=True)
def test_without_receipt_and_lock_a_log_is_judged_as_manual_and_no_better_than_it_deserves(here: Scene) -> None:
    for side in SIDES:
        rest = others(here, side)
        with restored(here.home / side):
            for name in (receipt.NAME, "env.json"):
                (here.home / side / name).unlink()
            verdict = judged(here, side, LOSS, rest[LOSS])
            stale_other = here.says[LOSS] is UNSURE and side == "baseline"
            assert verdict.outcome is (UNSURE if stale_other else here.deserves[LOSS])
            assert [witness.producer for witness in verdict.evidence if witness.side == side] == ["manual"]
            assert judged(here, side, STACK, rest[STACK]).outcome is UNSURE


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("here", MANUAL, indirect=True)
def test_a_manual_log_that_lost_its_last_steps_is_inconclusive_or_failed(here: Scene, side: str) -> None:
    """The manifest's recipe says 100 steps: fewer are no agreement, and no excuse for what the rest shows."""
    path, rest = here.home / side / "loss.jsonl", kept(here.handle(SIDES[1 - SIDES.index(side)], LOSS))
    lines = path.read_text("utf-8").splitlines(keepends=True)
    for left in (1, 2, 11, 50, 98, 99):
        with restored(path.parent):
            path.write_text("".join(lines[:left]), "utf-8")
            verdict = judged(here, side, LOSS, rest)
            parted = here.says[LOSS] is FAIL and left > 13
            assert verdict.outcome is (FAIL if parted else UNSURE), left
            assert verdict.finding.coverage.of == 100
            notes = [note for note in verdict.finding.notes if note.code == "loss-missing"]
            assert [(note.params["side"], note.params["count"]) for note in notes] == [(side, 100 - left)]


@pytest.mark.parametrize("side", SIDES)
def test_a_rerun_is_never_taken_for_the_run_that_is_gone(tmp_path: Path, side: str) -> None:
    """Without a receipt the files speak by name: `loss.rerun1.jsonl` beside a failed and deleted `loss.jsonl`."""
    here = scene("manual, candidate at fault", tmp_path)
    shutil.copy(here.home / "baseline" / "loss.jsonl", here.home / side / "loss.rerun1.jsonl")
    rest = kept(here.handle(SIDES[1 - SIDES.index(side)], LOSS))
    assert judged(here, side, LOSS, rest).outcome is FAIL
    (here.home / side / "loss.jsonl").unlink()
    assert judged(here, side, LOSS, rest).outcome is UNSURE


def test_both_sides_cut_at_the_same_step_do_not_agree(tmp_path: Path) -> None:
    here = scene("manual", tmp_path)
    for side in SIDES:
        path = here.home / side / "loss.jsonl"
        path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:60]), "utf-8")
    assert judged(here, "candidate", LOSS, here.handle("baseline", LOSS)).outcome is UNSURE


@pytest.mark.parametrize("side", SIDES)
def test_the_other_sides_log_handed_in_again_proves_nothing(tmp_path: Path, side: str) -> None:
    """Copied over without a receipt: it agrees with itself whatever the port does."""
    here = scene("manual, candidate at fault", tmp_path)
    other = SIDES[1 - SIDES.index(side)]
    shutil.copy(here.home / other / "loss.jsonl", here.home / side / "loss.jsonl")
    assert judged(here, side, LOSS, here.handle(other, LOSS)).outcome is UNSURE


def test_the_other_sides_lock_handed_in_again_proves_nothing(tmp_path: Path) -> None:
    here = scene("manual, candidate at fault", tmp_path)
    shutil.copy(here.home / "baseline" / "env.json", here.home / "candidate" / "env.json")
    assert judged(here, "candidate", STACK, here.handle("baseline", STACK)).outcome is UNSURE


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_whose_lock_is_gone_is_missed(tmp_path: Path, rank: int) -> None:
    """Without a receipt: each lock says how many processes there were."""
    here = scene("manual", tmp_path)
    declared = (here.home / "model.toml").read_text("utf-8")
    (here.home / "model.toml").write_text(declared.replace("world_size = 1", "world_size = 2"), "utf-8")
    for side in SIDES:
        lock = json.loads((here.home / side / "env.json").read_text("utf-8"))
        (here.home / side / "env.json").unlink()
        for number in (0, 1):
            (here.home / side / f"env.rank{number}.json").write_text(
                json.dumps({**lock, "rank": {"rank": number, "world": 2}}), "utf-8")
    rest = kept(here.handle("baseline", STACK))
    assert judged(here, "candidate", STACK, rest).outcome is PASS
    (here.home / "candidate" / f"env.rank{rank}.json").unlink()
    assert judged(here, "candidate", STACK, rest).outcome is UNSURE
