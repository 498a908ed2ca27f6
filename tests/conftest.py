"""What every test may lean on: a cache of its own, a model made to measure, and heavy libraries imported once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy  # noqa: F401  pytester's in-process runs restore sys.modules, and numpy does not survive a second import
import pandas  # noqa: F401
import pydantic  # noqa: F401
import pytest
from evidence_kit import SHARED, curve, sign, write_losses

os.environ["MIGPARITY_CACHE"] = tempfile.mkdtemp(prefix="migparity-test-cache-")
os.environ["MIGPARITY_CONFIG"] = tempfile.mkdtemp(prefix="migparity-test-config-")


@pytest.fixture
def shared() -> Path:
    """The facts, labelled trajectories and casebook beside a checkout; not on a user's machine."""
    if not (SHARED / "data" / "loss" / "cases.csv").is_file():
        pytest.skip(f"the labelled data is not beside this checkout ({SHARED.name}/ is absent)")
    return SHARED


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are asserted in English, whatever the locale of the machine."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


MakeModel = Callable[..., Path]


@pytest.fixture
def make_model(request: pytest.FixtureRequest, tmp_path: Path) -> MakeModel:
    """Write `<folder>/fixtures/<name>/` with a manifest and two sides of loss evidence; returns the manifest's folder.

    The folder is pytester's where the test has one.
    """
    here: Path = request.getfixturevalue("pytester").path if "pytester" in request.fixturenames else tmp_path

    def make(name: str = "mine", *, baseline: Sequence[float] | None = None, candidate: Sequence[float] | None = None,
             extra: str = "", producer: str | None = "real", folder: Path = here, recipe: str = "") -> Path:
        home = folder / "fixtures" / name
        for side, losses in (("baseline", baseline), ("candidate", candidate)):
            (home / side).mkdir(parents=True, exist_ok=True)
            write_losses(home / side / "loss.jsonl", curve() if losses is None else losses)
        (home / "model.toml").write_text(
            f'[model]\nname = "{name}"\n[recipe]\nseed = 1\n{recipe}\n[baseline]\nsite = "file:baseline"\n'
            f'[candidate]\nsite = "file:candidate"\n{extra}', encoding="utf-8")
        if producer:
            sign(home, producer)
        return home

    return make
