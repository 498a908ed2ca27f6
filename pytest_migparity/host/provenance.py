"""What a run's configuration asks its loader for, and the lines of its log that may say what was loaded.

Configurations are read, never run: JSON; YAML where PyYAML is installed; TOML where Python has it; Python source by
its literals alone, because openpi keeps its configurations there. The field that the loader reads counts, not the
configuration's name.
"""

import ast
import json
import os
import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, Sequence, Tuple

from ..wire.provenance import MAX_LINE, MAX_LINES, Asked, LogLine, Provenance, ProvenanceError

MAX_CONFIG = 1 << 20  # bytes
_MAX_VALUES = 100_000  # of one configuration, aliases of YAML counted each time
_MAX_DEPTH = 50
FIELDS = {
    "init": ("pretrained_path", "policy.path", "pytorch_weight_path", "weight_loader.params_path", "params_path",
             "init_checkpoint", "initial_load_path", "finetune_from", "pretrained_checkpoint", "load_from",
             "pretrained_model_name_or_path", "model_name_or_path", "model_path"),
    "resume": ("load_checkpoint_path", "resume_from_checkpoint", "resume_from", "resume_path", "resume_ckpt",
               "enable_resume", "auto_resume", "resume", "load"),
}  # the loaders' fields; of several in one configuration the first of its row decides
_LINE = re.compile(r"checkpoint|restor|resum|from scratch|weights|initialized|missing key|loading model|state.dict|"
                   r"global step|load report|^\s*-\s+[\w.]+(?::\s+found shape|\s*$)|\|\s*(?:missing|mismatch)\s*\|",
                   re.IGNORECASE)


def collect_asked(files: Sequence[str], arguments: Sequence[str] = (), config: str = "") -> Tuple[Asked, ...]:
    """Every loader's field in the configurations and on the command line, and which of them decides.

    `arguments` (`--policy.path=x`, `--resume`) override a field of the same name. `config` picks the entry of that
    name out of a Python file with many. ProvenanceError names a file that cannot be read.
    """
    found = [asked for path in files for asked in _known(_values(path, config), os.path.basename(path))]
    overriding = list(_known(_from_arguments(arguments), "command line"))
    for asked in overriding:
        found = [item for item in found if _last(item.field) != _last(asked.field)]
    found += overriding
    return tuple(asked._replace(chosen=asked in chosen) for chosen in [_deciding(found)] for asked in found)


def _deciding(found: Sequence[Asked]) -> List[Asked]:
    """Of each intent the fields of the highest rank that ask for something; else those that say no."""
    chosen: List[Asked] = []
    for intent in FIELDS:
        own = [item for item in found if item.intent == intent]
        best = [item for item in own if item.value] or own
        ranks = [_rank(item) for item in best]
        chosen += [item for item, rank in zip(best, ranks) if rank == min(ranks)]
    return chosen


def _rank(asked: Asked) -> int:
    fields = FIELDS[asked.intent]
    return next(at for at, field in enumerate(fields) if _is(asked.field, field))


def _is(field: str, known: str) -> bool:
    return field == known or (known != "load" and field.endswith("." + known))


def _last(field: str) -> str:
    return field.rpartition(".")[2]


def _known(values: Iterable[Tuple[str, Any]], file: str) -> Iterator[Asked]:
    for field, value in values:
        for intent, fields in FIELDS.items():
            if not any(_is(field, known) for known in fields):
                continue
            if value is None or value is False or value == "":
                yield Asked(field[:MAX_LINE], "", file, intent)
            elif value is True or str(value).lower() == "true":
                yield Asked(field[:MAX_LINE], "true" if intent == "resume" else "", file, intent)
            elif isinstance(value, str):
                yield Asked(field[:MAX_LINE], _plain(value), file, intent)
            break


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)[:MAX_LINE]


def _from_arguments(arguments: Sequence[str]) -> Iterator[Tuple[str, Any]]:
    """`--a.b=c`, `--a-b c`, `--flag`, `--no-flag`, and Hydra's `a.b=c`."""
    words = list(arguments)
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not (word.startswith("--") or equals):
            continue
        field = name.lstrip("-+").replace("-", "_")
        following = words[at + 1] if at + 1 < len(words) and not words[at + 1].startswith("--") else None
        if word.startswith("--no-"):
            yield field[len("no_"):], False
        elif equals:
            yield field, {"none": None, "null": None, "false": False}.get(value.lower(), value)
        else:
            yield field, True if following is None else following


def _values(path: str, config: str) -> Iterator[Tuple[str, Any]]:
    """(dotted name, plain value) of everything in a configuration file."""
    name = os.path.basename(path)
    try:
        with open(path, "rb") as stream:
            data = stream.read(MAX_CONFIG + 1)
        if len(data) > MAX_CONFIG:
            raise ProvenanceError("%s: larger than %d bytes" % (name, MAX_CONFIG))
        text = data.decode("utf-8")
        parsed = _PARSERS.get(os.path.splitext(path)[1].lower(), _unknown)(text, config)
    except OSError as error:
        raise ProvenanceError("%s: %s" % (name, error.strerror)) from None
    except ProvenanceError as error:
        raise ProvenanceError("%s: %s" % (name, error)) from None
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise ProvenanceError("%s cannot be read: %s" % (name, (str(error) or type(error).__name__).splitlines()[0])) \
            from None
    return _flat(parsed, name)


def _flat(tree: Any, name: str) -> Iterator[Tuple[str, Any]]:
    waiting: List[Tuple[str, Any, int]] = [("", tree, 0)]
    seen = 0
    while waiting:
        field, value, depth = waiting.pop()
        seen += 1
        if seen > _MAX_VALUES or depth > _MAX_DEPTH:
            raise ProvenanceError("%s: more than %d values, or nested deeper than %d" % (name, _MAX_VALUES, _MAX_DEPTH))
        below = list(value.items()) if isinstance(value, dict) else []
        if isinstance(value, list):
            below = [(str(at), item) for at, item in enumerate(value)]
        waiting += [(("%s.%s" % (field, key)) if field else str(key), item, depth + 1)
                    for key, item in reversed(below)]
        if not isinstance(value, (dict, list)):
            yield field, value


def _json(text: str, _: str) -> Any:
    return json.loads(text)


def _yaml(text: str, _: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ProvenanceError("PyYAML is not installed here: install it, or hand in the configuration as JSON") \
            from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ProvenanceError("no YAML: %s" % str(error).splitlines()[0]) from None


def _toml(text: str, _: str) -> Any:
    try:
        import tomllib
    except ImportError:
        raise ProvenanceError("TOML needs Python 3.11: hand in the configuration as JSON") from None
    return tomllib.loads(text)


def _python(text: str, config: str) -> Any:
    """Keyword arguments and assignments of Python source, as far as they are literals.

    A class without keywords, as in `weight_loader=CheckpointWeightLoader("gs://...")`, gives its first argument the
    name `params_path`. Nothing is run.
    """
    tree = ast.parse(text)
    if config:
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and any(
            key.arg == "name" and _literal(key.value) == config for key in node.keywords)]
        if len(calls) != 1:
            raise ProvenanceError("%d configurations are called %.80r, expected one" % (len(calls), config))
        return _call(calls[0])
    return {target.id: _node(node.value) for node in ast.walk(tree) if isinstance(node, ast.Assign)
            for target in node.targets if isinstance(target, ast.Name)}


def _call(node: ast.Call) -> Dict[str, Any]:
    values = {key.arg: _node(key.value) for key in node.keywords if key.arg}
    if node.args and isinstance(_literal(node.args[0]), str):
        values.setdefault("params_path", _literal(node.args[0]))
    return values


def _node(node: ast.AST) -> Any:
    if isinstance(node, ast.Call):
        return _call(node)
    return _literal(node)


def _literal(node: ast.AST) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return "<computed>"


def _unknown(_: str, __: str) -> Any:
    raise ProvenanceError("expected a configuration as .json, .yaml, .toml or .py")


_PARSERS: Dict[str, Callable[[str, str], Any]] = {
    ".json": _json, ".yaml": _yaml, ".yml": _yaml, ".toml": _toml, ".py": _python}


def log_lines(lines: Iterable[str]) -> Tuple[LogLine, ...]:
    """The lines of a log that may say what was loaded, numbered from 1, at most 1000 of them."""
    found: List[LogLine] = []
    for number, line in enumerate(lines, 1):
        line = line[:1 << 14]
        if len(found) < MAX_LINES and _LINE.search(line):
            found.append(LogLine(number, _plain(line.rstrip())))
    return tuple(found)


def leaving(document: Provenance, scrubbed: Callable[[str], str]) -> Provenance:
    """The document as it may leave the machine: every text through `scrubbed` (`host.envlock.Scrubber.text`).

    All of them alike, so that a path still is the same path in the configuration and in the log.
    """
    return document._replace(
        asked=tuple(item._replace(value=scrubbed(item.value)[:MAX_LINE], file=scrubbed(item.file)[:MAX_LINE])
                    for item in document.asked),
        lines=tuple(item._replace(text=scrubbed(item.text)[:MAX_LINE]) for item in document.lines))
