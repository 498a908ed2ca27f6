"""What a host runs: `python -m pytest_migparity.host envlock ...` or `launch ...`."""

import sys
from typing import List

COMMANDS = ("envlock", "launch")


def main(words: List[str]) -> int:
    """Run one command; 4 where there is none of that name."""
    if not words or words[0] not in COMMANDS:
        sys.stderr.write("migparity host: expected one of %s, got %s\n"
                         % (", ".join(COMMANDS), words[0] if words else "nothing"))
        return 4
    if words[0] == "launch":
        from . import launch

        return launch.main(words[1:])
    from . import envlock

    return envlock.main(words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
