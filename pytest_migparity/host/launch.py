"""Run an unpatched training command with its random draws keyed and its scalars at full precision; leave a receipt.

    launch --out DIR --seed 42 --draw 'noise=model:sample_noise' -- torchrun train.py --config c.yaml

The command runs as it is: no file of its source tree is written, not even byte code. `host.launch_hook` is what acts in
its processes.
"""

import argparse
import json
import os
import sys
import tempfile
from typing import Any, Dict, List, Optional, Sequence

from .launch_folder import prepare
from .launch_group import run_group
from .launch_receipt import tree_state, write_receipt

_TEXTS = {"draws": dict, "loss": list, "loggers": list, "record": list, "model": str, "valid": dict, "seed": int}


class LaunchError(ValueError):
    """The launcher was asked for something it cannot do."""


def main(argv: Optional[Sequence[str]] = None) -> int:
    """The command `launch`; returns the program's own exit code, 4 where the launcher was asked wrongly."""
    words = list(sys.argv[1:] if argv is None else argv)
    cut = words.index("--") if "--" in words else len(words)
    options, command = _parser().parse_args(words[:cut]), words[cut + 1:]
    try:
        if not command:
            raise LaunchError("no command; put it behind --, as in: launch --out DIR -- torchrun train.py")
        plan = _plan(options)
        recipe = _json(options.recipe) if options.recipe else {}
        return _launch(options.out, plan, recipe, command)
    except (LaunchError, OSError) as error:
        sys.stderr.write("migparity launch: %s\n" % error)
        return 4


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="launch", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", required=True, help="a new or empty folder for loss.jsonl, recordings and receipt")
    parser.add_argument("--seed", type=int, default=None, help="what the keyed draws follow from (default 0)")
    parser.add_argument("--draw", action="append", default=[], metavar="[NAME=]PATTERN",
                        help="functions whose draws are keyed, as module:function; default: all in a forward pass")
    parser.add_argument("--config", help="the same as JSON: seed, draws, loss, loggers, record, model, valid")
    parser.add_argument("--loss", action="append", default=[], metavar="TAG", help="the logged name that is the loss")
    parser.add_argument("--logger", action="append", default=[], metavar="MODULE:FUNCTION",
                        help="a function of the program that is given a dict of scalars")
    parser.add_argument("--record", default="", metavar="STEPS", help="record optimizer steps, as 0-1 or 0,1,10")
    parser.add_argument("--model-class", default="", metavar="MODULE:CLASS", help="the module that is recorded")
    parser.add_argument("--recipe", help="the recipe as JSON; its hash is in the receipt")
    return parser


def _plan(options: argparse.Namespace) -> Dict[str, Any]:
    """What the wrappers are told, from the configuration and then the command line."""
    given = _json(options.config) if options.config else {}
    for key, value in given.items():
        if not isinstance(value, _TEXTS.get(key, ())):
            raise LaunchError("%s: %r is not a setting, or not a %s; known are %s" % (
                options.config, key, getattr(_TEXTS.get(key), "__name__", "known one"), ", ".join(sorted(_TEXTS))))
    streams = {str(name): _list(patterns, "draws.%s" % name) for name, patterns in given.get("draws", {}).items()}
    for word in options.draw:
        name, _, pattern = word.rpartition("=")
        streams.setdefault(name or "draw", []).append(pattern)
    loggers = [*_list(given.get("loggers", []), "loggers"), *options.logger]
    for pattern in [*loggers, *(pattern for patterns in streams.values() for pattern in patterns)]:
        if ":" not in pattern:
            raise LaunchError("%r names no function; write module:function" % pattern)
    return {"seed": options.seed if options.seed is not None else given.get("seed", 0), "draws": streams,
            "loss": [*_list(given.get("loss", []), "loss"), *options.loss], "loggers": loggers,
            "record": _steps(options.record) if options.record else [int(step) for step in given.get("record", [])],
            "model": options.model_class or given.get("model", ""), "valid": given.get("valid", {})}


def _list(value: Any, key: str) -> List[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise LaunchError("%s is %r, expected a list of strings" % (key, value))
    return list(value)


def _steps(text: str) -> List[int]:
    """`0-1,10` as 0, 1, 10."""
    steps: List[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            steps += range(int(first), int(last or first) + 1)
    except ValueError:
        raise LaunchError("--record %r is no list of steps; write 0-1 or 0,1,10" % text) from None
    return steps


def _json(path: str) -> Dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (ValueError, RecursionError) as error:
        raise LaunchError("%s: not JSON: %s" % (path, error)) from None
    if not isinstance(found, dict):
        raise LaunchError("%s: not a JSON object" % path)
    return found


def _launch(out: str, plan: Dict[str, Any], recipe: Dict[str, Any], command: List[str]) -> int:
    os.makedirs(out, exist_ok=True)
    if os.listdir(out):
        raise LaunchError("%s is not empty; evidence is never overwritten: name a new folder with --out" % out)
    before = tree_state(os.getcwd(), out)
    with tempfile.TemporaryDirectory(prefix="migparity-launch-") as folder:
        parts = os.path.join(folder, "parts")
        os.mkdir(parts)
        prepare(folder, {**plan, "out": os.path.abspath(out), "parts": parts})
        path = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            code = run_group(command, environment)
        except (FileNotFoundError, PermissionError) as error:
            raise LaunchError("%s cannot be started: %s" % (command[0], error.strerror)) from None
        reports = [_json(os.path.join(parts, name)) for name in sorted(os.listdir(parts)) if name.endswith(".json")]
    write_receipt(out, recipe, reports, before, tree_state(os.getcwd(), out))
    if code < 0:
        return 128 - code  # as a shell says it: ended by a signal
    return code


if __name__ == "__main__":
    sys.exit(main())
