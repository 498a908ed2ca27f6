"""A log's lines, decoded piece by piece: memory holds a block of them, never the file."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO

from pytest_migparity.core.verdict import Note, note

from .errors import ReadError
from .text import LOG, plain_digits, refuse_bytes, unix_lines, without_ansi

BLOCK = 1 << 20
HEAD = 1 << 16
LONGEST_LINE = 1 << 24  # bytes; a minified trainer_state.json is one line, and no other is longer than a few thousand
_UTF16 = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class Lines:
    """The lines of one log, to be gone through once: `(number from 1, text)`, or in blocks of whole lines.

    UTF-8 with or without BOM and UTF-16 with BOM are read; GBK (GB 18030) from where UTF-8 fails. Line ends become
    unix ones, terminal codes go, full-width digits become plain ones; a last character torn by truncation is dropped.
    Raises ReadError for empty and binary data, for bytes of no known encoding and for a line without end.

    `name` is for messages. Once all lines were seen, `torn` says that the last does not end with a newline, so that it
    may be cut, `encoding` what was found, and `notes()` what was undone.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name = name
        self.torn = False
        self.encoding = "UTF-8"
        self._stream = stream
        self._foreign = False  # has there been UTF-8 beyond ASCII?
        self._gbk = False
        self._line = 1  # the number of the next block's first line
        self._said: dict[str, Note] = {}
        self._wide = 0
        self._ahead: list[tuple[int, str]] = []
        self._texts = self._decoded()

    @property
    def head(self) -> str:
        """The first 64 Ki characters, without taking them away."""
        while sum(len(text) for _, text in self._ahead) < HEAD and (block := next(self._texts, None)):
            self._ahead.append(block)
        return "".join(text for _, text in self._ahead)[:HEAD]

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for first, text in self.blocks():
            yield from enumerate(text.removesuffix("\n").split("\n"), first)

    def blocks(self) -> Iterator[tuple[int, str]]:
        """(number of the first line, about a million characters of whole lines); the last may lack its newline."""
        while self._ahead:
            yield self._ahead.pop(0)
        yield from self._texts

    def notes(self) -> list[Note]:
        """What was undone on the way from bytes to lines."""
        wide = [note("read-wide-digits", file=self.name, digits=self._wide)] if self._wide else []
        return [*(self._said[code] for code in ("read-bom", "read-encoding", "read-torn-text", "read-ansi")
                  if code in self._said), *wide]

    def _decoded(self) -> Iterator[tuple[int, str]]:
        for data, last in self._whole_lines():
            text = unix_lines(self._text(data, last))
            plain = without_ansi(text)
            if plain != text:
                self._say("read-ansi")
            plain, wide = plain_digits(plain)
            self._wide += wide
            if plain:
                self.torn = not plain.endswith("\n")
                first = self._line
                self._line += plain.count("\n")
                yield first, plain

    def _whole_lines(self) -> Iterator[tuple[bytes, bool]]:
        """(bytes cut behind a line end, is that the rest of the file).

        No character of UTF-8 or GBK holds a newline, so that a piece cut there is never cut inside one.
        """
        held: list[bytes] = []
        for piece in self._bytes():
            cut = piece.rfind(b"\n") + 1 or piece.rfind(b"\r", 0, -1) + 1  # a CR at the end may belong to a CRLF
            if cut:
                yield b"".join([*held, piece[:cut]]), False
                held = [piece[cut:]]
            else:
                held.append(piece)
                if sum(map(len, held)) > LONGEST_LINE:
                    raise ReadError(self.name, line=self._line, found=f"a line of more than {LONGEST_LINE} bytes",
                                    expected=LOG, remedy="cut the log down to its loss lines (grep) and hand that in")
        yield b"".join(held), True

    def _bytes(self) -> Iterator[bytes]:
        """The file's bytes, as UTF-8 where it is UTF-16."""
        piece = self._stream.read(BLOCK)
        refuse_bytes(piece, self.name)
        for bom, encoding in _UTF16:
            if piece.startswith(bom):
                self.encoding = "UTF-16"
                self._say("read-encoding", encoding="UTF-16")
                yield from self._transcoded(piece[2:], encoding)
                return
        if piece.startswith(codecs.BOM_UTF8):
            self.encoding = "UTF-8 with BOM"
            self._say("read-bom")
            piece = piece[3:]
        seen = 0
        while piece:
            at = piece.find(b"\0")
            if at >= 0:
                raise ReadError(self.name, found=f"binary data (a NUL byte at offset {seen + at})", expected=LOG,
                                remedy="hand in the text log, saved as UTF-8")
            seen += len(piece)
            yield piece
            piece = self._stream.read(BLOCK)

    def _transcoded(self, piece: bytes, encoding: str) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        more = True
        while more:
            more = bool(piece)
            text = decoder.decode(piece, final=not more)
            if "\ufffd" in text:
                self._say("read-torn-text")
            yield text.encode()
            piece = self._stream.read(BLOCK)

    def _text(self, data: bytes, last: bool) -> str:
        """Whole lines as text; from the first block on that is no UTF-8 they are GBK."""
        bad = 0
        if not self._gbk:
            try:
                text = data.decode("utf-8")
                self._foreign = self._foreign or not text.isascii()
                return text
            except UnicodeDecodeError as error:
                if last and error.start >= len(data) - 3 and error.reason == "unexpected end of data":
                    self._say("read-torn-text")
                    return data[: error.start].decode("utf-8")
                bad = error.start
        decoder = codecs.getincrementaldecoder("gb18030")()
        try:
            text = decoder.decode(data, final=not last)
        except UnicodeDecodeError as error:
            line = self._line + unix_lines(data[: bad or error.start].decode("latin-1")).count("\n")
            found = f"bytes that are neither UTF-8 nor GBK ({data[bad or error.start:][:4].hex(' ')})"
            raise ReadError(self.name, line=line, found=found, expected=LOG, remedy="save it as UTF-8") from None
        if decoder.getstate()[0]:
            self._say("read-torn-text")
        if not self._gbk:
            self._gbk, self.encoding = True, "UTF-8, then GBK" if self._foreign else "GBK"
            self._say("read-encoding", encoding=self.encoding)
        return text

    def _say(self, code: str, **params: str) -> None:
        self._said.setdefault(code, note(code, file=self.name, **params))
