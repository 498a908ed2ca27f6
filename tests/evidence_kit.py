"""Small evidence made to measure: curves, logs, receipts."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from pytest_migparity.core.manifest import load_manifest
from pytest_migparity.wire import receipt
from pytest_migparity.wire.receipt import Receipt, recipe_hash

REPO = Path(__file__).resolve().parents[1]
SHARED = REPO.parent / "shared"


def curve(steps: int = 60, *, offset: float = 0.0, slope: float = 0.0) -> list[float]:
    """A loss curve with a texture of its own; a candidate's ln ratio is `offset + slope * step`."""
    return [(2.0 * math.exp(-step / 30) + 0.2 + 0.05 * math.sin(2.3 * step)) * math.exp(offset + slope * step)
            for step in range(steps)]


NUDGED = curve(offset=1e-6)  # another chip on a good day


def write_losses(path: Path, losses: Sequence[float]) -> None:
    """A loss.jsonl as LingBot v1 writes it."""
    path.write_text("".join(json.dumps({"step": step, "loss": loss}) + "\n" for step, loss in enumerate(losses)))


def sign(home: Path, producer: str = "real") -> None:
    """Give both sides of a model's folder receipts that fit the manifest and the files as they are now."""
    expected = recipe_hash(load_manifest(home / "model.toml").recipe.canonical())
    for side in ("baseline", "candidate"):
        files = [receipt.entry_for(str(home / side), path.name, "loss", "main")
                 for path in sorted((home / side).glob("loss*"))]
        receipt.write(str(home / side), Receipt(producer, expected, tuple(files)))
