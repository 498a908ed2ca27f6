"""What people bring of Ascend msprobe, by the names of its files: dumps, the tables of its monitor, a pack."""

from __future__ import annotations

from pathlib import PurePosixPath

from pytest_migparity.core.dumped import Dump, Pack
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.evidence import EnvLock
from pytest_migparity.core.verdict import Note

from .msprobe_dump import Files, read_dump
from .msprobe_monitor import is_monitored, read_monitor
from .msprobe_pack import read_pack


def is_msprobe(name: str) -> bool:
    """Is a file one that msprobe writes, by its name?"""
    return PurePosixPath(name).name == "dump.json" or is_monitored(name) or name.endswith(".zip")


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
        pack, repairs = _pack(files)
        return pack.dump, repairs
    raise UserError(f"{', '.join(sorted(files)[:5]) or 'nothing'}: expected the dump.json files of msprobe, or the "
                    "tables of its monitor, or one configuration pack")


def read_packed_env(files: Files) -> EnvLock:
    """The environment that one configuration pack holds: packages, and the variables that numbers hinge on.

    It knows no device, driver, flag or source tree. UserError where there are several packs, or it is none.
    """
    if len(files) > 1:
        raise UserError(f"{', '.join(sorted(files)[:5])}: one side has one configuration pack")
    return EnvLock((_pack(files)[0].environment,))


def _pack(files: Files) -> tuple[Pack, tuple[Note, ...]]:
    (name,) = files
    with files[name]() as stream:
        return read_pack(stream, name)
