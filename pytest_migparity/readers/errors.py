"""What a reader says of a file it cannot read."""

from __future__ import annotations

from pytest_migparity.core.errors import UserError


class ReadError(UserError):
    """A file that is not what it should be: which file and line, what was found, what was expected, what to do."""

    def __init__(self, name: str, *, found: str, expected: str, remedy: str, line: int | None = None) -> None:
        self.name, self.line, self.found, self.expected, self.remedy = name, line, found, expected, remedy
        where = name if line is None else f"{name}, line {line}"
        super().__init__(f"{where}: found {found}; expected {expected}; {remedy}")


def shown(text: str, length: int = 60) -> str:
    """A piece of a hostile file, printable and short, in quotes."""
    piece = "".join(char if char.isprintable() else "?" for char in text[: length + 1])
    return repr(piece[:length] + ("..." if len(piece) > length else ""))
