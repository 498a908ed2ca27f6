"""TensorBoard event files as a training log. Needs the package `tensorboard` (extra `tensorboard`)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from pytest_migparity.core.errors import UserError, did_you_mean

from .errors import ReadError
from .reading import Reading, reading_of
from .rows import Rows
from .table import LOSS_NAMES

if TYPE_CHECKING:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

PREFIXES = ("training/", "train/")
MAX_FILES = 1000


def read_tensorboard(folder: Path, *, column: str = "loss", step_offset: int = 0) -> Reading:
    """The scalars of one run's event files, every point of them, in the order written.

    `folder` holds `events.out.tfevents.*`, itself or in exactly one folder below; or is one such file. Scalars are
    float32: their digits are those that tell float32 numbers apart. Raises ReadError where there is no event file or no
    scalar in it, UserError where the package is missing or several runs lie in the folder.
    """
    return _read(_run_folder(folder), str(folder), column, step_offset)


def read_events(files: Mapping[str, Callable[[], AbstractContextManager[BinaryIO]]], *, column: str = "loss",
                step_offset: int = 0) -> Reading:
    """As `read_tensorboard`, of event files already fetched, by name; names order them and say their run."""
    parents = sorted({str(PurePosixPath(name).parent) for name in files})
    if len(parents) > 1:
        raise UserError(f"event files of several runs: {', '.join(parents[:5])}; name one of them")
    with TemporaryDirectory(prefix="migparity-") as folder:
        for number, name in enumerate(sorted(files)):
            with files[name]() as stream, (Path(folder) / f"events.out.tfevents.{number:06}").open("wb") as copy:
                shutil.copyfileobj(stream, copy)
        return _read(Path(folder), ", ".join(sorted(files)[:3]), column, step_offset)


def _read(run: Path, name: str, column: str, step_offset: int) -> Reading:
    accumulator = _accumulator(run, name)
    try:
        accumulator.Reload()
    except Exception as error:  # a foreign parser over a foreign file: protobuf's DecodeError, and what lies behind it
        raise ReadError(name, found=f"an event that does not parse ({type(error).__name__})",
                        expected="TensorBoard event files", remedy="fetch the file again, or hand in the text log"
                        ) from error
    rows = Rows(name)
    tags: list[str] = sorted(accumulator.Tags()["scalars"])
    if not tags:
        raise ReadError(name, found="event files without a scalar", expected="the training loss as a scalar",
                        remedy="is it the training run's folder, and was it copied whole?")
    names = {tag: _column(tag, tags) for tag in tags}
    short = [tag for tag in tags if names[tag] == column]
    if len(short) > 1:
        raise UserError(f"{name}: the scalars {', '.join(short[:5])} may each be {column!r}; "
                        'name one in the manifest: column = "..."')
    judged = column if column in tags else next(iter(short), None)
    judged = judged or next((tag for known in LOSS_NAMES if column == "loss" for tag in tags if tag == known), None)
    if judged is None:
        raise UserError(f"{name}: there is no scalar {column!r}; {did_you_mean(column, tags)}; "
                        'name it in the manifest: column = "..."')
    latest = {names[tag]: {event.step: str(np.float32(event.value)) for event in accumulator.Scalars(tag)}
              for tag in tags if tag != judged}
    for number, event in enumerate(accumulator.Scalars(judged), 1):
        others = {key: points.get(event.step, "") for key, points in latest.items() if key != "loss"}
        rows.add(number, str(event.step), {"loss": str(np.float32(event.value)), **others})
    rows.series = judged
    return reading_of(rows, "tensorboard", "event files", column="loss", step_offset=step_offset)


def _column(tag: str, tags: list[str]) -> str:
    """`training/loss` is `loss` where no other tag is."""
    for prefix in PREFIXES:
        short = tag.removeprefix(prefix)
        if short != tag and short not in tags:
            return short
    return tag


def _run_folder(folder: Path) -> Path:
    """The one folder at or below `folder` that holds event files."""
    if not folder.exists():
        raise ReadError(str(folder), found="nothing there", expected="a TensorBoard folder", remedy="check the path")
    if folder.is_file():
        return folder
    found: set[Path] = set()
    for count, path in enumerate(folder.rglob("*tfevents*")):
        if count >= MAX_FILES:
            break
        found.add(path.parent)
    if not found:
        raise ReadError(str(folder), found="no file named *tfevents*", expected="a TensorBoard folder",
                        remedy="LingBot writes it to {output_dir}/runs")
    if len(found) > 1:
        listed = ", ".join(sorted(str(path.relative_to(folder)) for path in found)[:5])
        raise UserError(f"{folder}: several runs lie in it ({listed}); name one of them")
    return found.pop()


def _accumulator(run: Path, name: str) -> EventAccumulator:
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        raise UserError(f"{name}: reading TensorBoard folders needs the package tensorboard; "
                        "pip install 'pytest-migparity[tensorboard]'") from None
    return EventAccumulator(str(run), size_guidance={"scalars": 0, "tensors": 0}, purge_orphaned_data=False)
