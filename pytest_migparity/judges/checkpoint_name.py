"""Two names of a checkpoint, as a configuration and a log write them: the same one?"""

from __future__ import annotations

import re

_HUB = re.compile(r"(?:datasets|models|spaces)--([^/]+?)--([^/]+)/snapshots/[0-9a-f]{6,64}")
_INSIDE = re.compile(r"params|pretrained_model|hf_ckpt|model(?:[-_.]\d{5}-of-\d{5})?\.safetensors(?:\.index\.json)?"
                     r"|pytorch_model[^/]*\.bin(?:\.index\.json)?|mp_rank_\d+[^/]*|latest_checkpointed_iteration\.txt")
_STEP = re.compile(r"(?:global_?step|checkpoint|iter|iteration|step|epoch|ckpt)?[-_]?0*(\d{1,15})", re.IGNORECASE)
_MOVING = {"last", "latest", "final", "best"}


def same_checkpoint(asked: str, restored: str) -> bool | None:
    """Is what was restored what was asked for? None where the names cannot tell.

    The file inside a checkpoint and the folder in front of it do not count: `gs://bucket/pi05_base/params` is found in
    a cache as `~/.cache/openpi/bucket/pi05_base/params`, `org/name` as `models--org--name/snapshots/REVISION`. The
    folder of a run stands for its latest checkpoint. A name that moves (`last`), or one that is nothing but a number,
    is no proof; nor is the same name in another folder.
    """
    wanted, found = _parts(asked), _parts(restored)
    if not wanted or not found or "<" in asked + restored:
        return None
    if wanted[-1].lower() in _MOVING:
        return None if _ends_alike(wanted[:-1], found[:-1]) is not False else False
    if _ends_alike(wanted, found):
        return None if len(min(wanted, found, key=len)) == 1 and _STEP.fullmatch(wanted[-1]) else True
    if _STEP.fullmatch(found[-1]) and not _STEP.fullmatch(wanted[-1]):
        folder = found[:-2] if found[-2:-1] == ["checkpoints"] and wanted[-1] != "checkpoints" else found[:-1]
        return _ends_alike(wanted, folder) or False
    if wanted[-1] == found[-1] and (not _STEP.fullmatch(found[-1]) or wanted[-2:] == found[-2:]):
        return None  # another mount, or a link resolved
    return False


def _parts(name: str) -> list[str]:
    """A path's components from the checkpoint's own up, without scheme, dots and the file inside the checkpoint."""
    name = re.sub(r"^[A-Za-z][\w+.-]*://", "", name.strip().replace("\\", "/"))
    name = _HUB.sub(r"\1/\2", name)
    parts = [part for part in name.split("/") if part not in ("", ".", "~")]
    while len(parts) > 1 and _INSIDE.fullmatch(parts[-1]):
        parts.pop()
    return parts


def _ends_alike(left: list[str], right: list[str]) -> bool | None:
    """Is the shorter path the end of the longer one? None where there is nothing of one."""
    amount = min(len(left), len(right))
    return left[-amount:] == right[-amount:] if amount else None


def step_of(path: str) -> int | None:
    """The training step that a checkpoint's name ends with, where it does."""
    parts = _parts(path)
    found = _STEP.fullmatch(parts[-1]) if parts else None
    return int(found[1]) if found else None
