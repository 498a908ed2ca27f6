"""`--migparity-report FILE`: the verdicts as JSON or Markdown, by the file's suffix."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_migparity.core.errors import UserError
from pytest_migparity.core.verdict import Outcome, Verdict

from .terminal import answers
from .verdict_text import check_line, headline, title, verdict_text

SUFFIXES = (".json", ".md")
MARK = "migparity.report/1"


def check_report(path: str) -> None:
    """Refuse a report that could not be written, before anything is judged."""
    file = Path(path)
    if file.suffix not in SUFFIXES:
        raise UserError(f"--migparity-report {path}: the suffix says the format; write {' or '.join(SUFFIXES)}")
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise UserError(f"--migparity-report {path}: there is no folder {file.absolute().parent} to write a file in")
    if file.exists() and MARK not in file.read_text("utf-8", errors="replace"):
        raise UserError(f"--migparity-report {path}: a file that no report of ours made is there; it is left alone, "
                        "name another")


def write_reports(paths: Sequence[str], verdicts: Sequence[Verdict], enough: Mapping[str, Sequence[str]],
                  lang: str) -> list[str]:
    """Write every report, atomically; what could not be written is returned as a sentence each."""
    problems = []
    for path in paths:
        render = as_json if Path(path).suffix == ".json" else as_markdown
        temporary = Path(f"{path}.part")
        try:
            temporary.write_text(render(verdicts, enough, lang), encoding="utf-8", newline="\n")
            os.replace(temporary, path)
        except OSError as error:
            problems.append(f"--migparity-report {path}: {error.strerror or error}")
    return problems


def as_json(verdicts: Sequence[Verdict], enough: Mapping[str, Sequence[str]], lang: str) -> str:
    """The answers and the verdict documents."""
    return json.dumps({"schema": MARK, "answers": answers(verdicts, enough, lang),
                       "verdicts": [json.loads(verdict.to_json()) for verdict in verdicts]},
                      indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def as_markdown(verdicts: Sequence[Verdict], enough: Mapping[str, Sequence[str]], lang: str) -> str:
    """The answer first, a line for each verdict, details folded."""
    lines = [f"**{line}**" for line in answers(verdicts, enough, lang)]
    for verdict in verdicts:
        check = headline(verdict)
        lines.append(f"- {title(verdict, lang)}" + (f": {check_line(check, lang)}" if check else ""))
    for verdict in verdicts:
        body = verdict_text(verdict, "", lang, every_check=True)
        mark = " open" if verdict.outcome is not Outcome.PASS else ""
        lines += [f"<details{mark}><summary>{title(verdict, lang)}</summary>", "", "```text",
                  body.replace("```", "'''"), "```", "</details>"]
    return "\n".join([*lines, f"<!-- {MARK} -->"]) + "\n"
