"""Where a random draw comes from: the functions on the stack, as `module:function`, torch's own left out."""

import sys
from typing import Any, NamedTuple, Tuple

_OURS = __name__.partition(".")[0]
_SETTING_UP = ("__init__", "reset_parameters", "_init_weights", "init_weights")


class Site(NamedTuple):
    """The program's functions from the draw outwards, and what torch was doing.

    `forward`: within a module that was called. `checkpointed`: within an activation checkpoint, whose second pass must
    draw the same numbers again, which torch's generators do and keyed draws would not. `setting_up`: weights are being
    initialised.
    """

    callers: Tuple[str, ...]
    forward: bool
    checkpointed: bool
    setting_up: bool

    @property
    def name(self) -> str:
        """The function that asked for the draw."""
        return self.callers[0] if self.callers else "?"


def here() -> Site:
    """The site of the call that is being made."""
    callers = []
    forward = checkpointed = setting_up = False
    frame: Any = sys._getframe(1)
    while frame is not None:
        module, function = str(frame.f_globals.get("__name__", "?")), frame.f_code.co_name
        top = module.partition(".")[0]
        if top == "torch":
            forward = forward or (module == "torch.nn.modules.module" and function == "_call_impl")
            checkpointed = checkpointed or module == "torch.utils.checkpoint"
            setting_up = setting_up or module == "torch.nn.init"
        elif top != _OURS:
            callers.append("%s:%s" % (module, function))
        setting_up = setting_up or function in _SETTING_UP
        frame = frame.f_back
    return Site(tuple(callers), forward, checkpointed, setting_up and not forward)
