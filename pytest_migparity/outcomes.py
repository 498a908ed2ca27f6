"""How a level test ends when it does not pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.outcomes import Failed
else:
    Failed = pytest.fail.Exception


class ParityFailure(Failed):
    """The level FAILs: the evidence shows a difference beyond a limit."""

    def __init__(self, text: str) -> None:
        super().__init__(text, pytrace=False)


class Inconclusive(Failed):
    """The level cannot tell. A failure to pytest, so that nothing reads it as green; shown as `?`, exit code 12."""

    def __init__(self, text: str) -> None:
        super().__init__(text, pytrace=False)
