"""What a guarded unpickler gives in place of a function: it can be called, and a file can change nothing of it."""

from typing import Any, Callable


class Call:
    """A function as an object without attributes: pickle's BUILD could give those of a real one other values."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *words: Any) -> Any:
        """What the function gives."""
        return self._function(*words)

    def __setstate__(self, state: Any) -> None:
        raise ValueError("a pickle that changes what it calls")
