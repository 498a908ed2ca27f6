"""What L7 costs before it is run: rollouts for each margin, by how alike the two sides' outcomes are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .core.errors import UserError, did_you_mean
from .core.levels import LEVELS
from .core.limits import declare
from .suite import find_model, known_models

SCHEMA = "migparity.plan/1"
CORRELATIONS = (0.5, 0.7, 0.9)
_MARGINS = (0.05, 0.10, 0.15, 0.20)
_RATE = 0.5  # where nothing is known: the rate that costs most


@dataclass(frozen=True, slots=True)
class Row:
    """One margin: pairs at each of CORRELATIONS, and episodes of each side where they cannot be paired."""

    margin: float
    paired: tuple[int, ...]
    unpaired: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The table, and what it was made for; `declared` is the margin that is judged by."""

    rate: float
    alpha: float
    declared: float
    rows: tuple[Row, ...]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"schema": SCHEMA, "level": "L7", "correlations": list(CORRELATIONS), **asdict(self)}


def planned(model: str | None, rate: float | None) -> Plan:
    """The plan for a model's margin and published rate, or for the published margin; UserError for an unknown model."""
    from .judges.loop_fixed import unpaired_sample
    from .judges.loop_plan import discordance, pairs_needed

    level = LEVELS["L7"]
    published, limits = None, declare(level, {}, {}, "plan")
    if model is not None:
        from .core.manifest import load_manifest

        path = find_model(model, Path.cwd() / "fixtures")
        if path is None:
            raise UserError(f"no model {model!r}: no folder or file of that name holds a model.toml; "
                            f"{did_you_mean(model, set(known_models(Path.cwd() / 'fixtures')))}")
        manifest = load_manifest(path)
        published, limits = manifest.rollouts.published, declare(level, {}, manifest.declared_limits("L7"), str(path))
    expected = rate if rate is not None else published if published is not None else _RATE
    margin, alpha = limits["margin"].value, limits["alpha"].value
    if expected <= margin:
        raise UserError(f"a rate of {expected:g} has no loss of {margin:g} to show: choose easier tasks")
    rows = tuple(Row(each, tuple(pairs_needed(discordance(expected, rho), each, alpha) for rho in CORRELATIONS),
                     unpaired_sample(expected, 0.0, each, alpha))
                 for each in sorted({*_MARGINS, margin}) if each < expected)
    return Plan(expected, alpha, margin, rows)
