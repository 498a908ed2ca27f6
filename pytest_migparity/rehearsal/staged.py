"""Tiny distributions for a run's environment, so that its environment lock finds real packages with a real origin."""

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

KINEMATICS = "arm-kinematics"
"""The arm's driver package: its version must match between the sides."""
TELEMETRY = "arm-telemetry"
"""A package that no manifest names."""
FORK_URL = "https://git.example.org/forks/arm-kinematics"
FORK_COMMIT = "5c1f0e9b7a3d2c4e6f8091a2b3c4d5e6f7a8b9c0"


@dataclass(frozen=True, slots=True)
class Distribution:
    """One installed distribution: name, version, and whether it came from the index or from a fork's repository."""

    name: str
    version: str
    origin: Literal["index", "fork"] = "index"


def install(distribution: Distribution, folder: Path) -> None:
    """Write it into `folder` as an installer would: module, METADATA, WHEEL, RECORD; direct_url if a fork."""
    module = distribution.name.replace("-", "_")
    info = f"{module}-{distribution.version}.dist-info"
    source = f'"""Part of the rehearsal arm."""\n\n__version__ = "{distribution.version}"\n'
    if distribution.origin == "fork":
        source += "LINK_LENGTHS_IN_METERS = True\n"
    contents = {
        f"{module}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {distribution.name}\nVersion: {distribution.version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/INSTALLER": "migparity-rehearsal\n",
    }
    if distribution.origin == "fork":
        vcs = {"vcs": "git", "commit_id": FORK_COMMIT, "requested_revision": "main"}
        contents[f"{info}/direct_url.json"] = json.dumps({"url": FORK_URL, "vcs_info": vcs})
    record = [_record_line(path, text) for path, text in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
    (folder / info).mkdir(parents=True, exist_ok=True)
    for path, text in contents.items():
        (folder / path).write_text(text, encoding="utf-8", newline="\n")


def _record_line(path: str, text: str) -> str:
    raw = text.encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(raw)}"
