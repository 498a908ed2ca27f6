"""The receipt of a launched run: its files, the state of the source tree, what was drawn by key and what was not."""

import hashlib
import os
import subprocess
import sys
from datetime import datetime, timezone
from typing import Any, Dict, List, NamedTuple, Sequence

from ..wire import receipt
from ..wire.receipt import Draws, Entry, Receipt

_RECORDED = ("inputs", "forward", "step")  # the kinds of evidence that one recording is


class Tree(NamedTuple):
    """A git working tree: its commit, and what `git status` and `git diff` say, hashed; empty outside of one."""

    commit: str = ""
    state: str = ""


def tree_state(folder: str, out: str) -> Tree:
    """The state of the working tree that holds `folder`; what lies in `out` is no part of it."""
    commit = _git(folder, "rev-parse", "HEAD").decode("ascii", "replace").strip()
    if not commit:
        return Tree()
    top = os.path.realpath(_git(folder, "rev-parse", "--show-toplevel").decode("utf-8", "replace").strip())
    place = os.path.relpath(os.path.realpath(out), top)
    but = [":(top)", ":(top,exclude,literal)%s" % place] if not place.startswith("..") and place != "." else [":(top)"]
    said = (_git(folder, "status", "--porcelain=v1", "--untracked-files=all", "--", *but),
            _git(folder, "diff", "HEAD", "--", *but))
    return Tree(commit, hashlib.sha256(b"\n".join(said)).hexdigest() if any(said) else "clean")


def _git(folder: str, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", "--no-optional-locks", *words], cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
    except OSError:
        return b""
    return done.stdout if done.returncode == 0 else b""


def draws_of(reports: Sequence[Dict[str, Any]]) -> Draws:
    """The draws of all processes together, and why the run is not one that another device repeats."""
    wrapped: Dict[str, int] = {}
    outside: Dict[str, int] = {}
    reasons: List[str] = []
    for report in reports:
        for table, key in ((wrapped, "wrapped"), (outside, "outside")):
            for site, count in report[key].items():
                table[site] = table.get(site, 0) + count
        reasons += report["failures"]
    trained = {report["rank"] for report in reports if report["steps"]}
    world = max((report["world_size"] for report in reports), default=1)
    if len(trained) < world:
        reasons.append("%d of %d ranks reported optimizer steps" % (len(trained), world))
    if outside:
        reasons.append("%d draws outside" % sum(outside.values()))
    return Draws("unkeyed" if reasons else "keyed", wrapped, outside, tuple(reasons))


def write_receipt(out: str, recipe: Dict[str, Any], reports: Sequence[Dict[str, Any]], before: Tree,
                  after: Tree) -> None:
    """Leave `artifacts.json` in `out`, and say on stderr what it says of the draws."""
    draws = draws_of(reports)
    tree = before.state if before == after else "changed while it ran"
    receipt.write(out, Receipt(
        producer="real", recipe=receipt.recipe_hash(recipe), files=tuple(_entries(out)), commit=before.commit,
        tree=tree, created=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), tool="migparity launch",
        draws=draws))
    sys.stderr.write("migparity: %d draws by key, %d outside: %s%s\n" % (
        sum(draws.wrapped.values()), sum(draws.outside.values()), draws.mode,
        " (%s); weak-mode evidence" % "; ".join(draws.reasons) if draws.reasons else ""))


def _entries(out: str) -> List[Entry]:
    entries = []
    for name in sorted(os.listdir(out)):
        kinds = _RECORDED if name.endswith(".record") else ("loss",) if name == "loss.jsonl" else ()
        entries += [receipt.entry_for(out, name, kind, "main" if kind == "loss" else "") for kind in kinds]
    return entries
