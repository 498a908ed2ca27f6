"""The folder that goes before all others on PYTHONPATH of a launched program: its `sitecustomize`, and our host files.

The files are copied under a package name of their own, so that the program finds them whatever its interpreter, and so
that no package of the program is hidden by them.
"""

import json
import os
from importlib import resources
from typing import Any, Dict

PACKAGE = "_migparity_launched"

_SITECUSTOMIZE = '''\
"""Runs when Python starts: the host's own sitecustomize, if there is one, then the launcher's wrappers."""

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_spec = importlib.machinery.PathFinder.find_spec(
    "sitecustomize", [entry for entry in sys.path if os.path.abspath(entry) != _here])
if _spec is not None and _spec.loader is not None:
    _own = importlib.util.module_from_spec(_spec)
    sys.modules["sitecustomize"] = _own
    _spec.loader.exec_module(_own)

from {package}.host.launch_hook import install

install(os.path.join(_here, "plan.json"))
'''


def prepare(folder: str, plan: Dict[str, Any]) -> None:
    """Fill the folder: our files, the plan, and the `sitecustomize` that acts on it."""
    ours = __name__.partition(".")[0]
    root = os.path.join(folder, PACKAGE)
    os.mkdir(root)
    _write(os.path.join(root, "__init__.py"), b"")
    for room in ("host", "wire"):
        os.mkdir(os.path.join(root, room))
        for item in resources.files("%s.%s" % (ours, room)).iterdir():
            if item.name.endswith(".py"):
                _write(os.path.join(root, room, item.name), item.read_bytes())
    _write(os.path.join(folder, "plan.json"), json.dumps(plan).encode("utf-8"))
    _write(os.path.join(folder, "sitecustomize.py"), _SITECUSTOMIZE.format(package=PACKAGE).encode("utf-8"))


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as stream:
        stream.write(content)
