"""Which device a worker's simulator renders on: EGL counts all devices of a host, CUDA only those it is shown.

MuJoCo's `MUJOCO_EGL_DEVICE_ID` is a number of the host's, robosuite holds it against `CUDA_VISIBLE_DEVICES`, and a
number that is not among these makes a worker die, or render on somebody else's device.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_migparity.core.errors import UserError

EGL = "MUJOCO_EGL_DEVICE_ID"
VISIBLE = "CUDA_VISIBLE_DEVICES"


def rendering(worker: int, settings: Mapping[str, str]) -> dict[str, str]:
    """What to set for the worker of this number, from 0; nothing where rendering does not go through EGL.

    Workers take turns over the visible devices. UserError where EGL is told a device that CUDA is not shown.
    """
    if settings.get("MUJOCO_GL") != "egl" and settings.get("PYOPENGL_PLATFORM") != "egl":
        return {}
    visible = [word.strip() for word in settings.get(VISIBLE, "").split(",") if word.strip()]
    chosen = settings.get(EGL)
    if not visible:
        return {}
    if not all(word.isascii() and word.isdigit() for word in visible):  # by UUID: EGL knows no such names
        if chosen is None:
            raise UserError(f"{VISIBLE} = {','.join(visible)} names devices by UUID, and EGL counts them: set {EGL} to "
                            "the number that nvidia-smi gives this device")
        return {}
    if chosen is not None:
        if chosen not in visible:
            raise UserError(f"{EGL} = {chosen}, and {VISIBLE} = {','.join(visible)} does not show that device: EGL "
                            "counts the host's devices, not the visible ones; set one of these, or unset it")
        return {}
    return {EGL: visible[worker % len(visible)]}
