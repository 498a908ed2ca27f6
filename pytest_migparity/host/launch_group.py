"""A program and all it started, as one group: what stops the launcher stops every rank and worker."""

import contextlib
import os
import signal
import subprocess
from typing import Any, Dict, List

_PATIENCE = 15.0  # seconds from one signal to the next, stronger one: a checkpoint may be being written


def run_group(command: List[str], environment: Dict[str, str]) -> int:
    """Run to the end; its exit code, negative where a signal ended it. Ctrl-C and SIGTERM go to the whole group."""
    if os.name != "posix":
        return subprocess.call(command, env=environment)
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return process.wait()
    except KeyboardInterrupt:
        return _stop(process)
    finally:
        signal.signal(signal.SIGTERM, before)
        _signal(process.pid, signal.SIGKILL)  # what the program left running


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _stop(process: "subprocess.Popen[bytes]") -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        _signal(process.pid, number)
        try:
            return process.wait(_PATIENCE)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            continue
    return process.wait()


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing of it is left
        os.killpg(group, number)
