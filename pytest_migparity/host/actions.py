"""Write `actions.npz`: what a model gave for chosen samples, to be held against another machine's by L6.

`write_actions("actions.npz", chunks, samples, meta, noise=noise_digests(noise))`.
"""

import json
import os
from typing import Any, Dict, Optional, Sequence

import numpy as np

from ..wire.actions import ActionsError, Meta, digest_of, render

Array = Any


def write_actions(path: str, values: Array, sample: Sequence[Any], meta: Meta, *,
                  noise: Optional[Sequence[str]] = None, task: Optional[Sequence[str]] = None,
                  state: Optional[Array] = None, tokens: Optional[Array] = None,
                  label: Optional[Sequence[str]] = None) -> None:
    """Write outputs of one model to a new file.

    values: actions [sample, horizon, dim] or [sample, candidate, horizon, dim]; logits [sample, position, class];
    tokens [sample, position]; embeddings [sample, feature]; boxes [sample, box, 4]; masks [sample, height, width].
    sample: an id for each, unique. noise: a digest for each sample's starting noise. state [sample, joint]: where the
    joints were. tokens [sample, position]: what was really decoded, beside logits. Raises ActionsError for what does
    not fit together, FileExistsError for a file that is there.
    """
    arrays: Dict[str, Array] = {"meta": np.array(render(meta)), "values": np.asarray(values),
                                "sample": np.array([str(each) for each in sample])}
    for name, given in (("noise", noise), ("task", task), ("label", label)):
        if given is not None:
            arrays[name] = np.array([str(each) for each in given])
    for name, array in (("state", state), ("tokens", tokens)):
        if array is not None:
            arrays[name] = np.asarray(array)
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise ActionsError("%s holds Python objects, not numbers of one type" % name)
        if name != "meta" and len(array) != len(arrays["sample"]):
            raise ActionsError("%s has %d rows for %d samples" % (name, len(array), len(arrays["sample"])))
    with open(path, "xb") as stream:
        np.savez_compressed(stream, **arrays)
        stream.flush()
        os.fsync(stream.fileno())


def noise_digests(noise: Array) -> Sequence[str]:
    """A digest of each row: of its float32 numbers, so that it does not depend on where they were drawn."""
    rows = np.ascontiguousarray(noise, "<f4")
    return [digest_of(row.tobytes()) for row in rows]


def numbers_digest(numbers: Dict[str, Any]) -> str:
    """A digest of named numbers, such as the mean and standard deviation that un-normalise an action."""
    plain = {name: np.asarray(value, np.float64).tolist() for name, value in numbers.items()}
    return digest_of(json.dumps(plain, sort_keys=True).encode("utf-8"))
