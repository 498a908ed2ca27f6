"""`--migparity-report FILE`: the verdicts as JSON or Markdown, by the file's suffix."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_migparity.core.answer import Answer
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.verdict import Outcome, Verdict

from .terminal import answer_line, not_judged, remarks
from .verdict_text import check_line, headline, title, verdict_text

SUFFIXES = (".json", ".md")
SCHEMA = "migparity.report/1"
_LAST_LINE = f"<!-- {SCHEMA} -->"


def check_report(path: str) -> None:
    """Refuse a report that could not be written, or would replace what is not ours, before anything is judged."""
    file = Path(path)
    if file.suffix not in SUFFIXES:
        raise UserError(f"--migparity-report {path}: the suffix says the format; write {' or '.join(SUFFIXES)}")
    if not file.absolute().parent.is_dir():
        raise UserError(f"--migparity-report {path}: there is no folder {file.absolute().parent} to write a file in")
    if (file.exists() or file.is_symlink()) and not (file.is_file() and _ours(file)):
        raise UserError(f"--migparity-report {path}: something that no report of ours made is there; it is left alone, "
                        "name another file")


def _ours(file: Path) -> bool:
    try:
        text = file.read_text("utf-8")
        if file.suffix == ".md":
            return text.rstrip().endswith(_LAST_LINE)
        document = json.loads(text)
        return isinstance(document, dict) and document.get("schema") == SCHEMA
    except (OSError, ValueError, RecursionError):
        return False


def write_reports(paths: Sequence[str], verdicts: Sequence[Verdict], answers: Sequence[Answer],
                  missing: Mapping[str, str], lang: str) -> list[str]:
    """Write every report, atomically; what could not be written is returned as a sentence each."""
    problems = []
    for path in paths:
        render = as_json if Path(path).suffix == ".json" else as_markdown
        part = Path(path).with_name(f".{Path(path).name}.{os.getpid()}.part")
        try:
            with part.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(render(verdicts, answers, missing, lang))
            os.replace(part, path)
        except OSError as error:
            problems.append(f"--migparity-report {path}: not written: {error.strerror or error}")
            part.unlink(missing_ok=True)
    return problems


def as_json(verdicts: Sequence[Verdict], answers: Sequence[Answer], missing: Mapping[str, str], lang: str) -> str:
    """The answers and the verdict documents."""
    return json.dumps({"schema": SCHEMA, "answers": [answer_line(answer, lang) for answer in answers],
                       "not_judged": dict(missing),
                       "verdicts": [json.loads(verdict.to_json()) for verdict in verdicts]},
                      indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def as_markdown(verdicts: Sequence[Verdict], answers: Sequence[Answer], missing: Mapping[str, str], lang: str) -> str:
    """The answer first, a line for each verdict, what stands beside them, details folded."""
    lines = [f"**{answer_line(answer, lang)}**" for answer in answers]
    for verdict in verdicts:
        check = headline(verdict)
        lines.append(f"- {title(verdict, lang)}" + (f": {check_line(check, lang)}" if check else ""))
    lines += [f"- {line}" for line in (*remarks(verdicts, lang), *not_judged(missing, lang))]
    for verdict in verdicts:
        body = verdict_text(verdict, "", lang, every_check=True)
        mark = " open" if verdict.outcome is not Outcome.PASS else ""
        lines += [f"<details{mark}><summary>{title(verdict, lang)}</summary>", "", "```text",
                  body.replace("```", "'''"), "```", "</details>"]
    return "\n".join([*lines, _LAST_LINE]) + "\n"
