"""`sites.toml` in the user's config folder: where a model's sides are in daily use, so that no command need say it."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from urllib.parse import quote

from pytest_migparity.core.errors import UserError, did_you_mean
from pytest_migparity.core.levels import SIDES

from .sites import check_url

ENV = "MIGPARITY_CONFIG"


def config_file() -> Path:
    """$MIGPARITY_CONFIG/sites.toml, else the one in the user's config folder."""
    if chosen := os.environ.get(ENV):
        return Path(chosen) / "sites.toml"
    import platformdirs

    return Path(platformdirs.user_config_dir("migparity")) / "sites.toml"


def configured_sites(model: str) -> dict[str, str]:
    """Side -> URL for one model: `[lingbot.candidate] site = "file:/data/npu"`; empty where nothing is configured.

    A relative `file:` starts from the folder of sites.toml. UserError names the file and the key.
    """
    path = config_file()
    try:
        if not path.exists():
            return {}
        if not path.is_file():
            raise UserError(f"{path}: no regular file")
        tables = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: {error}") from None
    sides = tables.get(model, {})
    if not isinstance(sides, dict):
        raise UserError(f"{path}: [{model}] is not a table of baseline and candidate")
    found: dict[str, str] = {}
    for side, table in sides.items():
        if side not in SIDES:
            raise UserError(f"{path}: [{model}.{side}]: no such side; {did_you_mean(side, SIDES)}")
        site = table.get("site") if isinstance(table, dict) else None
        if not isinstance(site, str):
            raise UserError(f'{path}: [{model}.{side}] has no site; add site = "file:/folder"')
        check_url(site)
        found[side] = _anchored(site, path.parent)
    return found


def _anchored(site: str, folder: Path) -> str:
    """A relative `file:` made absolute, so that it means the same from every working folder."""
    rest = site.removeprefix("file:")
    if rest == site or rest.startswith(("/", "~")):
        return site
    return f"file:{quote(str(folder.absolute()))}/{rest}"
