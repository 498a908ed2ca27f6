"""Outputs of a model as `actions.npz` or parquet holds them: checked, and as one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from pytest_migparity.core.outputs import OutputSet
from pytest_migparity.wire.actions import MAX_NAME, MAX_TEXT, MEMBERS, ActionsError, Meta, parse

from .errors import ReadError, shown
from .npz import Arrays, read_npz

_AXES = {"actions": (3, 4), "logits": (3,), "tokens": (2,), "embeddings": (2,), "boxes": (3,), "masks": (3,)}
_SHAPES = {"actions": "[sample, horizon, dim] or [sample, candidate, horizon, dim]",
           "logits": "[sample, position, class]", "tokens": "[sample, position]", "embeddings": "[sample, feature]",
           "boxes": "[sample, box, 4]", "masks": "[sample, height, width]"}


def read_actions(files: Mapping[str, Callable[[], BinaryIO]]) -> OutputSet:
    """One side's outputs, from its one file; UserError names the file, what was found and what was expected."""
    if len(files) != 1:
        raise ReadError(", ".join(files) or "actions", found=f"{len(files)} files", expected="one file of outputs",
                        remedy="leave the one that is meant")
    (name, opened), = files.items()
    with opened() as stream:
        start = stream.read(4)
        stream.seek(0)
        if start == b"PAR1":
            from .actions_parquet import read_parquet

            arrays = read_parquet(stream, name)
        else:
            arrays = read_npz(stream, name, MEMBERS)
    return _table(name, arrays)


def _table(name: str, arrays: Arrays) -> OutputSet:
    for member in ("meta", "values", "sample"):
        if member not in arrays:
            raise _error(name, f"no member {member!r}", "an npz with meta, values and sample")
    text = arrays["meta"]
    if text.dtype.kind != "U" or text.shape != () or text.nbytes > 4 * MAX_TEXT:
        raise _error(name, f"'meta' of type {text.dtype} and shape {text.shape}", "one string, the JSON document")
    try:
        meta = parse(str(text))
    except ActionsError as error:
        raise _error(name, str(error), "the document that wire.actions describes") from None
    values = _numbers(name, "values", arrays["values"])
    if values.ndim not in _AXES[meta.kind] or (meta.kind == "boxes" and values.shape[-1] != 4):
        raise _error(name, f"'values' of shape {values.shape}", f"{meta.kind} as {_SHAPES[meta.kind]}")
    if meta.kind == "actions" and values.ndim == 3:
        values = values[:, None]
    if meta.names and len(meta.names) != values.shape[-1]:
        raise _error(name, f"{len(meta.names)} names for {values.shape[-1]} dimensions", "a name for each")
    sample = _texts(name, "sample", arrays["sample"], len(values))
    if len(set(sample)) < len(sample):
        twice = Counter(sample).most_common(1)[0][0]
        raise _error(name, f"the sample {shown(twice)} twice", "each sample once")
    return _assembled(name, arrays, meta, values, sample)


def _assembled(name: str, arrays: Arrays, meta: Meta, values: NDArray[np.float64],
               sample: tuple[str, ...]) -> OutputSet:
    count = len(sample)
    texts = {member: _texts(name, member, arrays[member], count) if member in arrays else ()
             for member in ("noise", "task", "label")}
    state = _numbers(name, "state", arrays["state"]) if "state" in arrays else None
    tokens = arrays.get("tokens")
    if state is not None and (state.ndim != 2 or len(state) != count):
        raise _error(name, f"'state' of shape {state.shape}", f"[sample, joint], for {count} samples")
    if tokens is not None and (tokens.dtype.kind not in "iu" or tokens.shape != values.shape[:2]):
        raise _error(name, f"'tokens' of type {tokens.dtype} and shape {tokens.shape}",
                     f"integers [sample, position], {values.shape[:2]}")
    return OutputSet(
        kind=meta.kind, values=values, sample=sample, names=meta.names, units=meta.units, steps=meta.steps,
        normalisation=meta.normalisation, normalisation_digest=meta.normalisation_digest, site=meta.site,
        trained=meta.trained, source=meta.source, state=state,
        tokens=None if tokens is None else tokens.astype(np.int64), **texts)


def _numbers(name: str, member: str, array: NDArray[Any]) -> NDArray[np.float64]:
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        raise _error(name, f"{member!r} of type {array.dtype} and shape {array.shape}", "an array of numbers")
    with np.errstate(all="ignore"):
        return cast("NDArray[np.float64]", array.astype(np.float64))


def _texts(name: str, member: str, array: NDArray[Any], count: int) -> tuple[str, ...]:
    if array.shape != (count,) or array.dtype.kind not in "iuU":
        raise _error(name, f"{member!r} of type {array.dtype} and shape {array.shape}",
                     f"a text or whole number for each of {count} samples")
    found = tuple(str(each) for each in array.tolist())
    bad = next((each for each in found if not 0 < len(each) <= MAX_NAME or not each.isprintable()), None)
    if bad is not None:
        raise _error(name, f"{shown(bad)} in {member!r}", f"1 to {MAX_NAME} printable characters")
    return found


def _error(name: str, found: str, expected: str) -> ReadError:
    return ReadError(name, found=found, expected=expected, remedy="write it with host.actions.write_actions")
