"""Finds the conformance suite and the recorded fixtures: in the wheel (`_suite/`), else in the repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _shipped(name: str) -> Path:
    """`_suite/` exists in an installed wheel only; an editable install uses the repository's own folders."""
    in_wheel = _PACKAGE / "_suite" / name
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent / name


def suite_path() -> Path:
    """The folder of the level tests."""
    return _shipped("conformance")


def fixtures_path() -> Path:
    """The folder of the recorded models."""
    return _shipped("fixtures")


def known_models(*folders: Path) -> Iterator[str]:
    """The models that can be named without a path, nearest folder first."""
    for folder in dict.fromkeys((*folders, fixtures_path())):
        if folder.is_dir():
            yield from sorted(child.name for child in folder.iterdir() if (child / "model.toml").is_file())


def find_model(name: str, *folders: Path) -> Path | None:
    """The manifest of `NAME|PATH`, absolute: a path first, then each of `folders`, then what the package ships."""
    try:
        path = Path(name).absolute()  # a test that changes the working folder must not move it
        if name and (path / "model.toml").is_file():
            return path / "model.toml"
        if name and (path.suffix == ".toml" or path.is_file()):
            return path if path.is_file() else None
    except OSError:  # a name longer than any file's
        return None
    if not name or "/" in name or "\\" in name or name in (".", ".."):
        return None
    found = (folder / name / "model.toml" for folder in (*folders, fixtures_path()))
    return next((candidate for candidate in found if candidate.is_file()), None)
