"""Tables as text that survives a comment: an ASCII line with schema, size and checksum, then zlib in base85.

Blanks and line ends added on the way do no harm; any other change is noticed.
"""

import base64
import hashlib
import re
import zlib
from typing import Type

MAX_TEXT = 1 << 22  # characters: about 100 KB carry the 1000 tensors of an 8B model
MAX_TABLE = 1 << 23  # bytes, unpacked
_FIRST = re.compile(r"\s*(migparity\.[a-z]+/[^\s]{1,20}) bytes=([0-9]{1,9}) sha256=([0-9a-f]{16})(?:\s+|$)")
_AGAIN = "send it as a file or in a code block"


def pack(schema: str, table: bytes) -> str:
    """A table as text."""
    packed = zlib.compress(table, 9)
    body = base64.b85encode(packed).decode("ascii")
    lines = [body[start:start + 120] for start in range(0, len(body), 120)]
    first = "%s bytes=%d sha256=%s" % (schema, len(packed), hashlib.sha256(packed).hexdigest()[:16])
    return "\n".join([first, *lines]) + "\n"


def unpack(schema: str, text: str, error: Type[ValueError]) -> bytes:
    """The table of a text of `schema`; `error` for another version, and for a text that was cut or mangled."""
    if len(text) > MAX_TEXT:
        raise error("larger than %d characters" % MAX_TEXT)
    found = _FIRST.match(text)
    if not found:
        raise error("the first line is %.60r, expected %r, bytes=N and sha256=HEX" % (text[:60], schema))
    if found[1] != schema:
        raise error("this is %s, and only %s is read here: make it again with the same version on both sides"
                    % (found[1], schema))
    try:
        packed = base64.b85decode("".join(text[found.end():].split()).encode("ascii"))
    except ValueError as problem:
        raise error("mangled: %s; %s" % (problem, _AGAIN)) from None
    if len(packed) != int(found[2]):
        raise error("holds %d bytes, expected the %s of its first line: cut short, or mangled; %s"
                    % (len(packed), found[2], _AGAIN))
    if hashlib.sha256(packed).hexdigest()[:16] != found[3]:
        raise error("mangled: the checksum of its first line does not hold; %s" % _AGAIN)
    unpacker = zlib.decompressobj()
    try:
        table = unpacker.decompress(packed, MAX_TABLE)
    except zlib.error as problem:
        raise error("cannot be unpacked: %s" % problem) from None
    if not unpacker.eof or unpacker.unused_data:
        raise error("unpacks to more than %d bytes, or not to its end" % MAX_TABLE)
    return table
