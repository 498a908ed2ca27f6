"""The pages say what the code does: links resolve, the tutorial runs as printed, tables and examples match the code."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest
from evidence_kit import NUDGED, REPO, curve, write_losses
from pydantic import BaseModel

from pytest_migparity.core.levels import LEVELS, Direction
from pytest_migparity.core.manifest import Manifest
from pytest_migparity.core.verdict import Check, Divergence, Outcome
from pytest_migparity.wire.receipt import Entry, Receipt

DOCS = REPO / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), REPO / "README.md", REPO / "README.zh.md"]
BLOCK = re.compile(r"^(?:<!-- (?P<mark>[^>]*) -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    """A fenced block, its language, and the HTML comment right above it."""

    kind: str
    body: str
    mark: str


def blocks(page: Path) -> Iterator[Block]:
    for match in BLOCK.finditer(page.read_text("utf-8")):
        yield Block(match["kind"], match["body"], match["mark"] or "")


def prose(page: Path) -> str:
    return BLOCK.sub("", page.read_text("utf-8"))


def section(page: Path, heading: str) -> str:
    """The text below a heading, up to the next heading of the same or a higher level."""
    text = page.read_text("utf-8")
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert found, f"{page.name} has no section {heading!r}"
    rest = text[found.end():]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def anchors(page: Path) -> set[str]:
    """Heading ids as code hosts make them: lower case, punctuation gone, blanks to hyphens."""
    outside = BLOCK.sub("", page.read_text("utf-8"))
    titles = re.findall(r"^#+ (.+)$", outside, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


# ---- links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name} links to {target}; {file.name} has {sorted(anchors(file))}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_this_repository_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(r"`((?:pytest_migparity|conformance|fixtures|tests)/[\w./-]+\.\w+)`", page.read_text("utf-8"))
    assert not [name for name in named if not (REPO / name).exists()]


def test_both_readmes_give_the_same_commands() -> None:
    english, chinese = ([block.body for block in blocks(REPO / name) if block.kind == "bash"]
                        for name in ("README.md", "README.zh.md"))
    assert english
    assert english == chinese


# ---- the tutorial

NUMBER = re.compile(r"-?\b\d+\.\d+(?:e[+-]\d+)?(?:s\b|\b)|-?\b\d+e[+-]\d+\b|\b[0-9a-f]{12,}\b")


def stable(line: str) -> str:
    """A line without what differs between two machines: digits of floats, hashes, times, widths of rules."""
    line = NUMBER.sub("#", line)
    line = re.sub(r"by step \d+", "by step #", line)
    line = re.sub(r"[=_-]{3,}", "---", line)
    return " ".join(line.split())


def missing_lines(expected: str, output: str) -> list[str]:
    """The lines of a page's picture that the real output does not have; `...` stands for lines left out."""
    real = {stable(line) for line in output.splitlines()}
    return [line for line in expected.splitlines() if line.strip() not in ("", "...") and stable(line) not in real]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the tutorial needs of a clone, with this Python's commands as `.venv/bin`."""
    home = tmp_path_factory.mktemp("clone")
    for name in ("pytest_migparity", "conformance", "fixtures"):
        shutil.copytree(REPO / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(REPO / name, home / name)
    (home / "tests").mkdir()
    (home / ".venv").mkdir()
    (home / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    return home


def run(script: str, home: Path, *more: Path) -> subprocess.CompletedProcess[str]:
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COLUMNS"))}
    settings["PYTHONPATH"] = os.pathsep.join(map(str, (home, *more)))
    settings["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), settings.get("PATH", "")])
    return subprocess.run(["bash", "-c", script], cwd=home, env=settings, text=True, encoding="utf-8",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


@pytest.mark.slow
def test_the_tutorial_runs_as_printed(checkout: Path) -> None:
    """Every bash block in order, with the exit code that the comment above it states, and the lines shown below it."""
    output, ran = "", 0
    for block in blocks(DOCS / "tutorial.md"):
        if block.kind == "bash" and block.mark != "install":
            done = run(block.body, checkout)
            output, ran = done.stdout, ran + 1
            wanted = int(block.mark.removeprefix("exit ") or 0)
            assert done.returncode == wanted, f"{block.body}\nexit {done.returncode}, not {wanted}\n{output}"
        elif block.kind == "text":
            assert not missing_lines(block.body, output), output
    assert ran >= 12


# ---- the reference


def rows(text: str) -> list[list[str]]:
    """The cells of the Markdown tables in a text, code marks removed, without heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines]
    heads = {i - 1 for i, row in enumerate(cells) if set("".join(row)) <= set("-: ")}
    return [row for i, row in enumerate(cells) if i not in heads and i - 1 not in heads]


def test_the_table_of_limits_is_that_of_the_code() -> None:
    said = {(row[0], row[1]): (row[2], float(row[3]), float(row[4]), row[5])
            for row in rows(section(DOCS / "reference.md", "Limits"))}
    real = {(level.name, spec.name): ("at most" if spec.direction is Direction.MAX else "at least", spec.default,
                                      spec.cap, spec.unit)
            for level in LEVELS.values() for spec in level.checks.values()}
    assert said == real


def test_the_table_of_levels_is_that_of_the_code() -> None:
    said = [row[:4] for row in rows(section(DOCS / "reference.md", "Levels"))]
    assert said == [[level.name, level.title, level.question, ", ".join(level.kinds)] for level in LEVELS.values()]


def tables(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A pydantic model and every model inside it."""
    yield model
    for field in model.model_fields.values():
        pending = [field.annotation]
        while pending:
            kind = pending.pop()
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from tables(kind)
            else:
                pending += get_args(kind)


def test_every_key_of_a_manifest_is_in_the_reference() -> None:
    words = set(re.findall(r"\w+", section(DOCS / "reference.md", "Manifest")))
    keys = {name for table in tables(Manifest) for name in table.model_fields}
    assert "step_offset" in keys
    assert not keys - words


def test_every_key_of_a_receipt_is_in_the_reference() -> None:
    words = set(re.findall(r"\w+", section(DOCS / "reference.md", "Receipt")))
    assert not {*Receipt._fields, *Entry._fields, "schema"} - words


def keys_of(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for item in value.values() for key in keys_of(item)}
    return {key for item in value for key in keys_of(item)} if isinstance(value, list) else set()


def test_every_key_of_a_real_verdict_is_in_the_reference(tmp_path: Path) -> None:
    write_losses(tmp_path / "a.jsonl", curve())
    write_losses(tmp_path / "b.jsonl", curve(slope=1e-4))
    done = run(f"migparity difftraj {tmp_path}/a.jsonl {tmp_path}/b.jsonl --json", REPO)
    assert done.returncode == 1, done.stdout
    document = json.loads(done.stdout)
    assert document["first_divergence"]
    for item in (*document["notes"], *document["hints"]):
        item["params"] = {}  # each code has its own
    words = set(re.findall(r"\w+", section(DOCS / "reference.md", "Verdict document")))
    fields = {*Check.__dataclass_fields__, *Divergence.__dataclass_fields__}
    assert not (keys_of(document) | fields) - words
    assert {outcome.value for outcome in Outcome} <= words


def test_every_option_of_the_plugin_and_every_command_is_in_the_reference() -> None:
    text = (DOCS / "reference.md").read_text("utf-8")
    source = (REPO / "pytest_migparity" / "plugin.py").read_text("utf-8")
    options = re.findall(r'addoption\("(--[\w-]+)"', source)
    assert len(options) >= 4
    sources = [(REPO / "pytest_migparity" / name).read_text("utf-8") for name in ("cli.py", "cli_tensors.py", "cli_rollout.py")]
    commands = re.findall(r"@app\.command\(.*\)\ndef (\w+)", "".join(sources))
    assert len(commands) >= 14
    assert not [name for name in options if f"`{name}" not in text]
    assert not [name for name in commands if f"`migparity {name}" not in text]


# ---- the examples of the how-to


def plugged_in(folder: Path, heading: str) -> Path:
    """Install a how-to example as its pyproject says: the module, and the entry points as installed metadata."""
    found = list(BLOCK.finditer(section(DOCS / "how-to.md", heading)))
    code = next(match["body"] for match in found if match["kind"] == "python")
    project = next(match["body"] for match in found if match["kind"] == "toml")
    group, name, module, attribute = re.search(
        r'entry-points\."([\w.]+)"\]\n(\w+) = "(\w+):(\w+)"', project).groups()  # type: ignore[union-attr]
    folder.mkdir(parents=True)
    (folder / f"{module}.py").write_text(code, "utf-8")
    info = folder / f"{module}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:{attribute}\n")
    return folder


@pytest.mark.slow
def test_the_reader_of_the_how_to_reads_its_log(tmp_path: Path) -> None:
    site = plugged_in(tmp_path / "site", "A log format of my own")
    for name, losses in (("a.log", curve()), ("b.log", NUDGED)):
        (tmp_path / name).write_text("".join(f"[{k:05d}] train/l2={loss:.10f} lr=1e-4\n"
                                             for k, loss in enumerate(losses)))
    done = run(f"migparity difftraj {tmp_path}/a.log {tmp_path}/b.log", REPO, site)
    assert done.returncode == 0, done.stdout
    assert "compared: 60 of 60 steps" in done.stdout
    assert "step0      1.0e-06" in done.stdout


@pytest.mark.slow
def test_the_channel_of_the_how_to_serves_a_site(tmp_path: Path) -> None:
    site = plugged_in(tmp_path / "site", "A channel of my own")
    write_losses(tmp_path / "loss.jsonl", NUDGED)
    home = tmp_path / "work" / "fixtures" / "mine"
    (home / "baseline").mkdir(parents=True)
    write_losses(home / "baseline" / "loss.jsonl", curve())
    (home / "model.toml").write_text('[model]\nname = "mine"\n[baseline]\nsite = "file:baseline"\n'
                                     f'[candidate]\nsite = "zip:{tmp_path}/run.zip"\n')
    shutil.make_archive(str(tmp_path / "run"), "zip", tmp_path, "loss.jsonl")
    done = run(f"cd {tmp_path}/work && pytest -m L5 --migparity-model mine", REPO, site)
    assert done.returncode == 0, done.stdout
    assert "60/60 steps" in done.stdout


def manifests() -> list[str]:
    found = [block.body for name in ("how-to.md", "tutorial.md") for block in blocks(DOCS / name)
             if block.kind == "toml" and "[model]" in block.body]
    assert found
    return found


@pytest.mark.parametrize("text", manifests() if (DOCS / "how-to.md").exists() else [])
def test_a_whole_manifest_of_the_how_to_is_valid(text: str, tmp_path: Path) -> None:
    from pytest_migparity.core.manifest import load_manifest

    (tmp_path / "model.toml").write_text(text, "utf-8")
    assert load_manifest(tmp_path / "model.toml").name


def test_the_level_test_of_the_how_to_is_judged_by_its_own_limits(tmp_path: Path) -> None:
    found = BLOCK.finditer(section(DOCS / "how-to.md", "A level test of my own"))
    code = next(match["body"] for match in found if match["kind"] == "python")
    (tmp_path / "test_dense.py").write_text(code, "utf-8")
    done = run(f"cd {tmp_path} && pytest test_dense.py --migparity-model rehearsal -p no:cacheprovider", REPO)
    assert done.returncode == 0, done.stdout
    assert "(<= 1.0e-06)" in done.stdout
