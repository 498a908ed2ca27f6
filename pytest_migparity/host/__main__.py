"""What a host runs: `python -m pytest_migparity.host digest ...`, or `python migparity-host.pyz digest ...`."""

import importlib
import sys
from typing import Any, List

COMMANDS = {"digest": "digest_command:digest", "merge": "digest_command:merge", "envlock": "envlock:main",
            "launch": "launch:main"}  # imported only when it is run: what a host lacks stops no other command


def main(words: List[str]) -> int:
    """Run one command; 4 where there is none of that name, or it was called wrongly."""
    if not words or words[0] not in COMMANDS:
        sys.stderr.write("migparity host: expected one of %s, got %s\n"
                         % (", ".join(sorted(COMMANDS)), words[0] if words else "nothing"))
        return 4
    module, _, function = COMMANDS[words[0]].partition(":")
    run: Any = getattr(importlib.import_module("." + module, __package__), function)
    try:
        return int(run(words[1:]))
    except SystemExit as stop:  # argparse's, with 2 for a mistake
        return 4 if stop.code == 2 else int(stop.code or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
