"""`migparity-host.pyz`: what runs on a host, `host/` and `wire/`, as one file that Python runs as it is.

The same sources make the same bytes, so that a receipt can name the file by its hash.
"""

from __future__ import annotations

import io
import zipfile
from importlib import resources

_MAIN = """\
import sys

if sys.version_info < (3, 9):
    sys.exit("migparity-host.pyz needs Python 3.9 or later, this is %d.%d" % sys.version_info[:2])

from pytest_migparity.host.__main__ import main

sys.exit(main(sys.argv[1:]))
"""
_SHEBANG = b"#!/usr/bin/env python3\n"
_WHEN = (2020, 1, 1, 0, 0, 0)  # of every file in it


def pack_host() -> bytes:
    """The file's bytes."""
    ours = resources.files("pytest_migparity")
    files = {"__main__.py": _MAIN.encode(), "pytest_migparity/__init__.py": (ours / "__init__.py").read_bytes()}
    for room in ("host", "wire"):
        for item in (ours / room).iterdir():
            if item.name.endswith(".py"):
                files[f"pytest_migparity/{room}/{item.name}"] = item.read_bytes()
    stream = io.BytesIO()
    stream.write(_SHEBANG)
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return stream.getvalue()
