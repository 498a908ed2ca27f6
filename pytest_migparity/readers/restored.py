"""What a training log says was loaded: by openpi and orbax, LingBot and VeOmni, HF, LeRobot, Megatron, DeepSpeed.

The lines are those of upstream code, or of logs people posted. A line that no pattern knows says nothing: whoever
judges must not take silence for a fresh start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pytest_migparity.wire.provenance import MAX_LINE, MAX_TENSORS, LogLine, Restored

_SCANNED = 1 << 14  # characters of a line that are looked at: a list of newly initialised tensors is long
_MAX_FOUND = 1000
_FOLLOWING = 100  # lines after a heading in which its tensors are listed
_WORDS = re.compile(r"checkpoint|restor|resum|scratch|weights|initialized|missing key|loading model|state dict|"
                    r"global step|load report|state_dict|keys loaded", re.IGNORECASE)
_PATH = r"(?P<path>[^\s\"']{1,1000})"
_STEP = r"(?P<step>\d{1,15})"

_PATTERNS = tuple((kind, re.compile(text)) for kind, text in (
    ("fallback", rf"Failed to load checkpoint {_PATH}: "),                                      # LingBot
    ("fallback", r"No valid checkpoint could be loaded"),
    ("fresh", r"No checkpoints in [^\s]{1,1000} now!"),
    ("fresh", r"does not contain any checkpoints\. Aborting resume"),                            # openpi
    ("fresh", r"will not load any checkpoints and will start from"),                             # Megatron
    ("fresh", r"Starting training from scratch"),                                                # LingBot
    ("resume", rf"Load distributed checkpoint from {_PATH} successfully!"),                      # LingBot, VeOmni
    ("resume", rf"Resuming from experiment checkpoint directory: {_PATH} at step {_STEP}"),       # openpi, torch
    ("resume", rf"successfully loaded checkpoint from {_PATH}.{{0,60}}? at iteration {_STEP}"),   # Megatron
    ("init", rf"loading release checkpoint from {_PATH}"),
    ("init", r"Restoring (?:checkpoint|item) from (?P<path>[^\s\"']{1,1000}/params)/?\.?(?:\s|$)"),  # openpi, orbax
    ("resume", rf"Restoring (?:checkpoint|item) from {_PATH}"),
    ("init", rf"Loaded PyTorch weights from {_PATH}"),                                           # openpi, torch
    ("resume", rf"Attempting to resume from {_PATH}"),                                           # HF with DeepSpeed
    ("resume", rf"Loading model from {_PATH}\.(?:\s|$)"),                                        # HF Trainer
    ("resume", rf"Resum(?:ing|ed) (?:training )?from checkpoint:? {_PATH}"),                     # accelerate
    ("resume", rf"Loading the checkpoint from {_PATH}"),                                         # torchtitan
    ("resume", rf"(?:Continuing training from global step|Resumed training from step) {_STEP}"),  # HF; openpi, torch
    ("partial", rf"were not initialized from the model checkpoint at {_PATH} and are newly initialized"),  # HF
    ("init", rf"loading weights file .{{0,1000}}? from cache at {_PATH}"),
    ("init", rf"loading weights file {_PATH}"),
    ("partial", r"There were missing keys in the checkpoint model loaded:"),
    ("partial", r"Missing key\(s\) when loading model:"),                                        # LeRobot
    ("partial", r"Missing keys when loading state dict: \d{1,9} keys"),
    ("partial", r"Could not remap state dict keys:"),
    ("partial", r"Missing key\(s\) in state_dict:"),                                             # torch
    ("init", r"Loading weights from local directory"),                                           # LeRobot
    ("init", rf"LOAD REPORT from: {_PATH}"),                                                     # HF 5
))
_QUOTED = re.compile(r"[\"']([^\"'\s]{1,1000})[\"']")
_LISTED = re.compile(r"\s*-\s+([\w.]{1,1000})(?::\s+found shape|\s*$)", re.ASCII)
_REPORTED = re.compile(r"\s*([\w.{}*\[\], -]{1,300}?)\s*\|\s*(?:MISSING|MISMATCH)\s*\|", re.ASCII)


def read_restored(lines: Iterable[tuple[int, str]]) -> tuple[Restored, ...]:
    """What was loaded, in the order of the log; `lines` are (number from 1, text).

    At most 1000 events: a log that holds more says the same again for every rank.
    """
    found: list[Restored] = []
    listing = 0  # lines in which tensors of the last event may still be listed
    for number, text in lines:
        text = text[:_SCANNED]
        listed = _LISTED.match(text) or _REPORTED.match(text) if listing else None
        if listed:
            _add(found, Restored("partial", number, _shown(text), tensors=(listed[1].strip(),)))
            continue
        listing = 0 if "nexpected key" in text else max(0, listing - 1)
        if not _WORDS.search(text):
            continue
        for event in _events(number, text):
            if event.kind == "partial" and listing:
                _add(found, event)
            elif len(found) < _MAX_FOUND:
                found.append(event)
            listing = _FOLLOWING if event.kind == "partial" or "LOAD REPORT" in text else 0
    return tuple(found)


def restored_in(lines: Iterable[LogLine]) -> tuple[Restored, ...]:
    """The same, of the lines that a host picked out."""
    return read_restored((line.number, line.text) for line in lines)


def _events(number: int, text: str) -> Iterator[Restored]:
    shown = _shown(text)
    for kind, expression in _PATTERNS:
        match = expression.search(text)
        if match is None:
            continue
        groups = match.groupdict()
        path = (groups.get("path") or "").rstrip(".,;:)!")
        step = int(groups["step"]) if groups.get("step") else None
        names = tuple(dict.fromkeys(_QUOTED.findall(text[match.end():])))[:MAX_TENSORS] if kind == "partial" else ()
        if kind == "partial" and path:
            yield Restored("init", number, shown, path)
        yield Restored(kind, number, shown, path, step, names)
        return


def _shown(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text.strip())[:MAX_LINE]


def _add(found: list[Restored], event: Restored) -> None:
    """Tensors listed under a heading belong to the heading's event."""
    last = found[-1] if found else event
    if last.kind != "partial" and len(found) < _MAX_FOUND:
        found.append(event)
    elif last.kind == "partial":
        found[-1] = last._replace(tensors=tuple(dict.fromkeys((*last.tensors, *event.tensors)))[:MAX_TENSORS])
