"""From a site to the bytes of one artifact: receipt, choice of files, fetch, and every reason not to trust them."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast
from urllib.parse import quote

from .channels.file import ChannelError
from .channels.sites import Channel, open_site
from .channels.store import Store, Stored, StoreError
from .core.errors import UserError
from .core.verdict import Note, Witness, note
from .wire import receipt as receipts
from .wire.receipt import Entry, Receipt, ReceiptError

# Without a receipt or a manifest's word. The first set of patterns that any file matches is taken, with all files that
# match one of it: full precision before printed digits, our own tools' before msprobe's.
_LOCKS = ("env.json", "env.rank*.json")
_DUMP, _PACK = ("dump.json",), ("config_check_pack.zip",)
_MONITORED = ("actv_*-*.csv", "actv_grad_*-*.csv", "grad_*reduced_*-*.csv", "param_origin_*-*.csv", "exp_avg_*-*.csv")
_USUAL: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "loss": (("loss.jsonl",), ("*tfevents*",), ("loss.csv",), ("trainer_log.jsonl",), ("*.log",), ("*.txt",),
             ("*.csv",), ("*.jsonl",)),
    "env": (("env.json",), ("env.rank*.json",), _PACK),
    "weights": (("weights.digest", "weights.*.digest", "loaded.digest", "provenance.json"), _DUMP, _MONITORED, _PACK),
    "data": (("data.digest",),),
    "actions": (("actions.npz",), ("actions.parquet",)),
    "inputs": (("*.record",), _DUMP, _MONITORED, _PACK),
    "forward": (("*.record",), _DUMP, _MONITORED),
    "step": (("*.record",), _DUMP, _MONITORED),
    "rollouts": (("rollouts.jsonl",), ("rollouts.*",), ("eval_info.json",), ("_result.txt",), ("eval*.log",)),
}
# A rerun is a floor; it never stands in for a run that is gone.
_RERUN = re.compile(r"\.rerun\d*\.")
_IN_MEMORY = 1 << 26  # bytes of a file named by hand; a larger one is copied to disk
_FIRST_OBJECT = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which artifact: its kind and series, the manifest's `file` for it, and how it is told from other series.

    `claimed` are the files that other series name as theirs; `sole`: this is the only series, or the only one without
    a file of its own, so that a file under another name can be nobody else's.
    """

    kind: str
    series: str = ""
    file: str | None = None
    claimed: frozenset[str] = frozenset()
    sole: bool = True

    def entry(self, name: str) -> Entry:
        """A file that no receipt lists."""
        return Entry(self.kind, name, "", 0, self.series)


@dataclass(frozen=True, slots=True)
class GatheredFile:
    """One fetched file: its name at the site, how to open its verified bytes, and whether it is a rerun.

    `open` is called once: what was named by hand is a snapshot that goes when it is closed.
    """

    name: str
    open: Callable[[], BinaryIO]
    sha256: str
    rerun: int = 0


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a site holds of one artifact, and what stands against trusting it."""

    files: tuple[GatheredFile, ...] = ()
    receipt: Receipt | None = None
    problems: tuple[Note, ...] = ()

    def witness(self, side: str, file: GatheredFile) -> Witness:
        """Whose evidence a file is; without a receipt it is manual."""
        if self.receipt is None:
            return Witness(side, "manual", file.name, file.sha256)
        return Witness(side, self.receipt.producer, file.name, file.sha256, self.receipt.recipe, self.receipt.commit,
                       self.receipt.order)


def gather(url: str, base: Path, wanted: Wanted, recipe: str) -> Gathered:
    """Fetch one artifact. Never raises for what is wrong at the site: that is a problem note, with what to do."""
    kind = wanted.kind
    try:
        channel = open_site(url, base)
        names = channel.names()
    except UserError as error:
        return Gathered(problems=(note("site-unreachable", kind=kind, site=url, why=str(error)),))
    store = Store()
    try:
        receipt = _receipt(channel, names, store)
    except StoreError as error:
        return Gathered(problems=(note("cache-unusable", kind=kind, why=str(error)),))
    except (ReceiptError, ChannelError) as error:
        return Gathered(problems=(note("receipt-unreadable", kind=kind, site=url, why=str(error)),))
    problems: list[Note] = []
    if receipt is None and _receipt_was_lost(channel, names, store):
        problems.append(note("receipt-lost", kind=kind, site=url))
    if receipt is not None and receipt.recipe != recipe:
        problems.append(note("recipe-differs", kind=kind, site=url, found=receipt.recipe[:12] or "none",
                             expected=recipe[:12]))
    alone = bool(getattr(channel, "single", False))
    entries, why = _choose(names, receipt, wanted, alone=alone)
    problems += why
    files = []
    for entry in entries:
        try:
            stored = _fetch(channel, store, entry.path)
            if entry.sha256 and stored.sha256 != entry.sha256:
                problems.append(note("receipt-hash-differs", kind=kind, site=url, file=entry.path,
                                     found=stored.sha256[:12], expected=entry.sha256[:12]))
            files.append(GatheredFile(writable(entry.path), partial(store.open, stored), stored.sha256,
                                      entry.rerun))
        except StoreError as error:
            problems.append(note("cache-unusable", kind=kind, why=str(error)))
        except ChannelError as error:
            problems.append(note("evidence-not-fetched", kind=kind, site=url, file=entry.path, why=str(error)))
    if not any(file.rerun == 0 for file in files) and not problems:
        problems.append(note("evidence-missing", kind=kind, site=url))
    return Gathered(tuple(files), receipt, tuple(problems))


def read_in_place(path: Path) -> list[GatheredFile]:
    """A training log named by hand: one file, or the event files of a TensorBoard folder."""
    channel = open_site(f"file:{quote(str(path))}", Path.cwd())
    names = [path.name] if path.is_file() else channel.names()
    if path.is_dir():
        names = [name for name in names if "tfevents" in name]
        if not names:
            raise UserError(f"{path}: a folder without TensorBoard event files; name the training log in it")
    files = []
    for name in names:
        snapshot, sha256 = _snapshot(channel, name)
        files.append(GatheredFile(name if path.is_dir() else str(path), partial(_same, snapshot), sha256))
    return files


def _same(snapshot: BinaryIO) -> BinaryIO:
    return snapshot


def _snapshot(channel: Channel, name: str) -> tuple[BinaryIO, str]:
    """(a copy of a file as it is now, its sha256): it may still be written to, and one state of it is judged."""
    copy = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - whoever reads it closes it
    digest = hashlib.sha256()
    with channel.open(name) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
            copy.write(block)
    copy.seek(0)
    return cast("BinaryIO", copy), digest.hexdigest()


def _fetch(channel: Channel, store: Store, name: str) -> Stored:
    with channel.open(name) as stream:
        return store.add(stream)


def _receipt(channel: Channel, names: list[str], store: Store) -> Receipt | None:
    if receipts.NAME not in names:
        return None
    stored = _fetch(channel, store, receipts.NAME)
    if stored.bytes > receipts.MAX_BYTES:
        raise ReceiptError(f"larger than {receipts.MAX_BYTES} bytes")
    try:
        receipt = receipts.parse(store.read(stored).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ReceiptError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    texts = [*receipt[:2], *receipt[3:], *(text for entry in receipt.files for text in (entry.path, entry.series))]
    for text in map(str, texts):
        if writable(text) != text:
            raise ReceiptError(f"a string holds half a character: {writable(text)[:80]}")
    return receipt


def writable(text: str) -> str:
    """`text` with what no report could hold (file names that are not UTF-8, half characters in JSON) escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _receipt_was_lost(channel: Channel, names: list[str], store: Store) -> bool:
    """Our tools mark what they write with a receipt, in its first JSON object: without it the folder is not whole."""
    for name in names:
        if _matches(name, (*_LOCKS, "*.jsonl")):
            try:
                with store.open(_fetch(channel, store, name)) as stream:
                    text = stream.readline(_FIRST_OBJECT) if name.endswith(".jsonl") else stream.read(_FIRST_OBJECT)
                first = json.loads(text)
            except (ValueError, RecursionError, UserError):
                continue
            if isinstance(first, dict) and first.get("receipt") == receipts.NAME:
                return True
    return False


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    path = PurePosixPath(name)
    return any(path.match(pattern) for pattern in patterns)


def _choose(names: list[str], receipt: Receipt | None, wanted: Wanted, *,
            alone: bool) -> tuple[list[Entry], list[Note]]:
    """The files of an artifact: the receipt's, else the manifest's, else by the usual names.

    `alone`: the site is one file, named by hand; for loss it is the log, whatever its name, unless it is another's.
    """
    if receipt is not None:
        return _receipted(names, receipt, wanted, alone=alone)
    names = [name for name in names if name not in wanted.claimed]
    if wanted.file is not None and not (alone and wanted.sole):
        place = wanted.file.rstrip("/")
        chosen = [name for name in names if name == place or name.startswith(f"{place}/") or
                  (alone and name == PurePosixPath(place).name)]
        problems = [] if chosen else [note("evidence-file-gone", kind=wanted.kind, file=wanted.file)]
        return [wanted.entry(name) for name in chosen], problems
    if wanted.kind == "loss" and not wanted.sole:
        return [], [note("evidence-one-for-all", kind=wanted.kind, series=wanted.series)]
    if alone and wanted.kind == "loss" and names:
        return [wanted.entry(name) for name in names], []
    for nested in (False, True):  # what lies on top comes before what someone put away
        found = _by_usual_names([name for name in names if nested or "/" not in name], wanted)
        if any(found):
            return found
    return [], [note("evidence-missing-names", kind=wanted.kind, names=", ".join(names[:5]) or "nothing")]


def _receipted(names: list[str], receipt: Receipt, wanted: Wanted, *, alone: bool) -> tuple[list[Entry], list[Note]]:
    """What the receipt lists; every listed file must be there, unless one of them was named by hand."""
    entries = receipt.entries(wanted.kind, wanted.series)
    there = [entry for entry in entries if entry.path in names]
    gone = [] if alone else [note("evidence-file-gone", kind=wanted.kind, file=entry.path)
                             for entry in entries if entry not in there]
    if not (there if alone else entries):
        gone.append(note("evidence-not-in-receipt", kind=wanted.kind, series=wanted.series))
    return there, gone


def _by_usual_names(names: list[str], wanted: Wanted) -> tuple[list[Entry], list[Note]]:
    for patterns in _USUAL.get(wanted.kind, ()):
        chosen = [name for name in names if _matches(name, patterns) and not _RERUN.search(PurePosixPath(name).name)]
        if len(chosen) > 1 and wanted.kind == "loss" and "tfevents" not in patterns[0]:
            return [], [note("evidence-ambiguous", kind=wanted.kind, files=", ".join(chosen[:5]), series=wanted.series)]
        if chosen:
            return [wanted.entry(name) for name in chosen], []
    return [], []
