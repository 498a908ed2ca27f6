"""How a level test ends when it does not pass."""

from __future__ import annotations

import pytest


class ParityFailure(pytest.fail.Exception):
    """The level FAILs: the evidence shows a difference beyond a limit."""

    def __init__(self, text: str) -> None:
        super().__init__(text, pytrace=False)


class Inconclusive(pytest.fail.Exception):
    """The level cannot tell. A failure to pytest, so that nothing reads it as green; shown as `?`, exit code 12."""

    def __init__(self, text: str) -> None:
        super().__init__(text, pytrace=False)
