"""One environment lock as typed values. What is missing or malformed is None or empty: never an exception."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Package:
    """An installed distribution: see `host.envlock` for kind, payload and build. `dirty` None: git was silent."""

    version: str
    kind: str = "index"
    payload: str = ""
    build: str = "?"
    commit: str = ""
    archive: str = ""
    patch: str = ""
    modified: int = 0
    added: int = 0
    checked: int = 0
    missing: int = 0
    unchecked: int = 0
    dirty: int | None = None
    shadowed: tuple[str, ...] = ()
    error: str = ""

    @property
    def unread(self) -> str:
        """Why the entry does not say what is installed, "" where it does."""
        return self.error or ("" if self.version.strip().lower() not in ("", "none", "?", "unknown") else "no version")


@dataclass(frozen=True, slots=True)
class Tree:
    """A source tree; `commit` is empty and `dirty` None where git could not be asked."""

    commit: str = ""
    dirty: int | None = None
    untracked: int = 0
    repo: str = ""
    port: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """An effective configuration; `values` is None where the host could not read the file."""

    sha256: str = ""
    values: Mapping[str, object] | None = None
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """One lock. `packages` and `listed` are None where they were not recorded, `rank` and `world` where no launcher set
    them; `vendors` is empty where unknown.
    """

    packages: Mapping[str, Package] | None
    env: Mapping[str, str]
    listed: frozenset[str] | None
    trees: Mapping[str, Tree]
    configs: Mapping[str, Config]
    extensions: Mapping[str, tuple[str, tuple[str, ...]]]
    flags: Mapping[str, object]
    flags_seen: str
    torch_version: str
    torch_cuda: str
    built_for: tuple[str, ...]
    present: tuple[str, ...]
    vendors: frozenset[str]
    errors: tuple[tuple[str, str], ...]
    rank: int | None
    world: int | None

    @property
    def flags_in_process(self) -> bool:
        """Are the flags those of the running program, rather than a probe's defaults or nobody's?"""
        return bool(self.flags) and self.flags_seen == "process"


def normal(name: str) -> str:
    """The PEP 503 form of a package name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def show(value: object, limit: int = 80) -> str:
    """A value as a reader sees it in a note; an absent one is (not set)."""
    if value is None:
        return "(not set)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def view(document: object) -> View:
    """The typed view of one document."""
    doc = _mapping(document)
    torch, npu_torch = _mapping(doc.get("torch")), _mapping(_mapping(doc.get("torch")).get("npu"))
    cuda, npu, rank = _mapping(doc.get("cuda")), _mapping(doc.get("npu")), _mapping(doc.get("rank"))
    capabilities = {f"sm_{_text(row[1]).replace('.', '')}" for row in _rows(cuda.get("devices")) if len(row) > 1}
    present = _texts(torch.get("present")) or tuple(sorted(capabilities))
    vendors = set()
    if _rows(cuda.get("devices")) or present:
        vendors.add("cuda")
    if _rows(npu.get("devices")) or npu_torch.get("available") is True:
        vendors.add("npu")
    packages, listed = doc.get("packages"), doc.get("listed")
    recorded = isinstance(packages, Mapping) and not isinstance(packages.get("error"), str)
    return View(
        packages={normal(str(name)): package for name, item in _mapping(packages).items()
                  if (package := _package(item)) is not None} if recorded else None,
        env={str(key): item for key, item in _mapping(doc.get("env")).items() if isinstance(item, str)},
        listed=frozenset(_texts(listed)) if isinstance(listed, list | tuple) else None,
        trees={str(name): _tree(_mapping(item)) for name, item in _mapping(doc.get("trees")).items()},
        configs={str(name): _config(_mapping(item)) for name, item in _mapping(doc.get("configs")).items()},
        extensions={str(name): (_text(item[0]), _texts(item[1])) for name, item in
                    _mapping(doc.get("extensions")).items() if isinstance(item, list | tuple) and len(item) == 2},
        flags=_mapping(torch.get("flags")), flags_seen=_text(torch.get("seen")),
        torch_version=_text(torch.get("version")), torch_cuda=_text(torch.get("cuda")),
        built_for=_texts(torch.get("built_for")), present=present, vendors=frozenset(vendors), errors=_errors(doc),
        rank=_known_count(rank.get("rank")), world=_known_count(rank.get("world")) or None,
    )


def _package(item: object) -> Package | None:
    if not isinstance(item, list | tuple) or len(item) < 4 or not isinstance(item[0], str):
        return None
    more = _mapping(item[4]) if len(item) > 4 else {}
    return Package(
        version=item[0], kind=_text(item[1]), payload=_text(item[2]), build=_text(item[3]),
        commit=_text(more.get("commit")), archive=_text(more.get("archive")), patch=_text(more.get("patch")),
        modified=_count(more.get("modified")), added=_count(more.get("added")), checked=_count(more.get("checked")),
        missing=_count(more.get("missing")), unchecked=_count(more.get("unchecked")),
        dirty=_known_count(more.get("dirty")), shadowed=_texts(more.get("shadowed")), error=_text(more.get("error")),
    )


def _tree(item: Mapping[str, Any]) -> Tree:
    return Tree(_text(item.get("commit")), _known_count(item.get("dirty")), _count(item.get("untracked")),
                _text(item.get("repo")), _mapping(item.get("port")))


def _config(item: Mapping[str, Any]) -> Config:
    values = item.get("values")
    return Config(_text(item.get("sha256")), values if isinstance(values, Mapping) else None,
                  _count(item.get("dropped")))


def _errors(doc: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    found = []
    for part in sorted(str(key) for key in doc):
        section = _mapping(doc.get(part))
        if isinstance(section.get("error"), str):
            found.append((part, section["error"]))
        elif part in ("trees", "configs", "extensions"):
            found += [(f"{part}.{name}", item["error"]) for name, item in section.items()
                      if isinstance(item, Mapping) and isinstance(item.get("error"), str)]
    return tuple(found)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list | tuple) else ()


def _rows(value: object) -> list[Any]:
    return [row for row in value if isinstance(row, list | tuple)] if isinstance(value, list | tuple) else []


def _count(value: object) -> int:
    return _known_count(value) or 0


def _known_count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
