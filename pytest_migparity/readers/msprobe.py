"""What people bring of Ascend msprobe, by the names of its files: dumps, the tables of its monitor, a pack."""

from __future__ import annotations

from pathlib import PurePosixPath

from pytest_migparity.core.dumped import Dump
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.verdict import Note

from .msprobe_dump import Files, read_dump
from .msprobe_monitor import is_monitored, read_monitor
from .msprobe_pack import read_pack


def read_msprobe(files: Files) -> tuple[Dump, tuple[Note, ...]]:
    """One side's statistics and the notes of what was not read. UserError says what is wrong with which file.

    A comparison table holds both sides and is read by `msprobe_compare`.
    """
    names = [PurePosixPath(name).name for name in files]
    if names and all(name == "dump.json" for name in names):
        return read_dump(files)
    if names and all(map(is_monitored, names)):
        return read_monitor(files)
    if len(names) == 1 and names[0].endswith(".zip"):
        (name,) = files
        with files[name]() as stream:
            pack, repairs = read_pack(stream, name)
        return pack.dump, repairs
    raise UserError(f"{', '.join(sorted(files)[:5]) or 'nothing'}: expected the dump.json files of msprobe, or the tables "
                    "of its monitor, or one configuration pack")
