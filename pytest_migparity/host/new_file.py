"""Files that are written whole or not at all, and never over another."""

import os


def refuse_existing(out: str) -> None:
    """ValueError where a file is there already: evidence is never overwritten."""
    if os.path.exists(out):
        raise ValueError("%s exists; move it away or choose another --out" % out)


def write_new(out: str, text: str) -> None:
    """Write ASCII to a file at once: whoever reads it sees all of it, or what was there before."""
    part = out + ".part"
    try:
        with open(part, "w", encoding="ascii", newline="\n") as stream:
            stream.write(text)
        os.replace(part, out)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise
