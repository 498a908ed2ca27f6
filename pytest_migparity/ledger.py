"""The verdicts of a run: report status, exit code, JUnit properties, summary table, answer."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from .selection import Chosen

INCONCLUSIVE_EXIT = 12
VERDICT = "migparity.verdict"  # the JUnit property, and the name under which a verdict crosses xdist


@dataclass(slots=True)
class Collected:
    """What one process collected: level names seen, node ids selected, levels that the manifest does not need."""

    levels: set[str] = field(default_factory=set)
    selected: set[str] = field(default_factory=set)
    not_needed: set[str] = field(default_factory=set)

    def pack(self) -> str:
        """As one plain string, the only thing xdist is trusted with."""
        return json.dumps([sorted(self.levels), sorted(self.selected), sorted(self.not_needed)])

    def add(self, packed: str) -> None:
        """What a worker packed."""
        levels, selected, not_needed = json.loads(packed)
        self.levels.update(levels)
        self.selected.update(selected)
        self.not_needed.update(not_needed)


COLLECTED: pytest.StashKey[Collected] = pytest.StashKey()


def tag(report: pytest.TestReport, call: pytest.CallInfo[None], level: str) -> None:
    """Mark a level test's report, in plain strings that survive xdist; never leave green what judged nothing."""
    from .outcomes import Inconclusive

    marks = vars(report)
    marks["migparity_level"] = level
    verdicts = [str(value) for name, value in report.user_properties if name == VERDICT]
    outcomes = {json.loads(verdict)["outcome"] for verdict in verdicts}
    if call.when != "call":
        return
    if call.excinfo is not None:
        if call.excinfo.errisinstance(Inconclusive):
            marks["migparity_outcome"] = "INCONCLUSIVE"
    elif report.passed and not verdicts:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} passed without a verdict: it never called judge(baseline..., candidate...)"
        marks["migparity_outcome"] = "INCONCLUSIVE"
    elif report.passed and outcomes != {"PASS"}:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} passed over a verdict of {', '.join(sorted(outcomes - {'PASS'}))}"
        if "FAIL" not in outcomes:
            marks["migparity_outcome"] = "INCONCLUSIVE"


class Ledger:
    """The controller's record of the run; a plugin of its own, so that every hook is a method."""

    def __init__(self, config: pytest.Config, models: Mapping[str, Chosen]) -> None:
        self.config = config
        self.models = models
        self.verdicts: dict[str, list[str]] = {}  # node id -> verdict JSON
        self.inconclusive: list[pytest.TestReport] = []
        self.broken: set[str] = set()  # failed, and not by being inconclusive
        self.unjudged: dict[str, str] = {}  # selected level tests that ended without a verdict -> why

    # -- what happened

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a report says of a level; note which failures are something else."""
        level = getattr(report, "migparity_level", "")
        outcome = getattr(report, "migparity_outcome", "")
        verdicts = [str(value) for name, value in report.user_properties if name == VERDICT] if level else []
        if level and report.when == "call":
            self.verdicts.setdefault(report.nodeid, []).extend(verdicts)
        if outcome == "INCONCLUSIVE":
            self.inconclusive.append(report)
        crashed = report.when not in ("setup", "call", "teardown") and bool(self.models)
        if crashed or (level and not verdicts and (report.when == "setup" or report.skipped) and not report.passed):
            self.unjudged[report.nodeid] = "worker crashed" if crashed else report.outcome
        elif report.failed and outcome != "INCONCLUSIVE":
            self.broken.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected is a failure of the run."""
        if report.failed:
            self.broken.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """What an xdist worker collected comes home with it."""
        if packed := (getattr(node, "workeroutput", None) or {}).get("migparity"):
            self.config.stash[COLLECTED].add(packed)

    # -- what it means

    def missing(self) -> dict[str, str]:
        """Selected level tests without a verdict, and why."""
        selected = self.config.stash[COLLECTED].selected
        judged = {nodeid for nodeid, verdicts in self.verdicts.items() if verdicts}
        never = dict.fromkeys(sorted(selected - judged - self.unjudged.keys() - self.broken), "not run")
        return {**self.unjudged, **never}

    def exit_status(self, status: int | pytest.ExitCode) -> int | pytest.ExitCode:
        """0 every selected case passed; 1 something failed; 12 nothing failed but something is not known."""
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or self.config.option.collectonly:
            return status
        outcomes = {json.loads(text)["outcome"] for texts in self.verdicts.values() for text in texts}
        unexplained = status == pytest.ExitCode.TESTS_FAILED and not (self.inconclusive or self.unjudged or self.broken)
        if "FAIL" in outcomes or self.broken or unexplained:
            return pytest.ExitCode.TESTS_FAILED
        judged_nothing = bool(self.models) and not outcomes
        if "INCONCLUSIVE" in outcomes or self.inconclusive or self.missing() or judged_nothing:
            return INCONCLUSIVE_EXIT
        return status

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Set the exit code, and put the answer into the JUnit file before it is written."""
        if self.models or self.verdicts or self.config.stash[COLLECTED].selected:
            session.exitstatus = self.exit_status(session.exitstatus)
            self._to_junit()
            if files := self.config.getoption("migparity_report"):
                from .reports.files import write_reports

                for problem in write_reports(files, self._parsed(), self._enough(), self._lang()):
                    self.config.issue_config_time_warning(pytest.PytestWarning(problem), stacklevel=2)
        yield

    # -- what people see

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """The first line of the run: whose evidence it is about to judge."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or not self.models:
            return
        from .announce import announcement

        for chosen in self.models.values():
            reporter.write_line(announcement(chosen, self._lang()))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
        """Why what is inconclusive is so; then, below everything else, the table and the answer."""
        if self.inconclusive:
            terminalreporter.section("INCONCLUSIVE", yellow=True)
            for report in self.inconclusive:
                terminalreporter.write_line(str(report.longreprtext).rstrip() + "\n")
        yield
        collected = self.config.stash[COLLECTED]
        if self.config.option.collectonly or not (self.models or self.verdicts or collected.selected):
            return
        from .reports.terminal import summary

        terminalreporter.section("migparity")
        lines = summary(self._parsed(), self._enough(), lang=self._lang(), missing=self.missing(),
                        not_needed=sorted(collected.not_needed), levels=[] if self.broken else sorted(collected.levels),
                        width=terminalreporter._tw.fullwidth)
        for line in lines:
            terminalreporter.write_line(line)

    def _to_junit(self) -> None:
        from _pytest.junitxml import xml_key

        xml = self.config.stash.get(xml_key, None)
        if xml is None:
            return
        from .reports.terminal import answers

        for line in answers(self._parsed(), self._enough(), self._lang()):
            xml.add_global_property("migparity.answer", line)

    def _parsed(self) -> list[Any]:
        from .core.verdict import Verdict

        verdicts = [Verdict.from_json(text) for texts in self.verdicts.values() for text in texts]
        return sorted(verdicts, key=lambda verdict: (verdict.model, verdict.level, verdict.case))

    def _enough(self) -> dict[str, list[str]]:
        return {name: chosen.manifest.ladder.enough for name, chosen in self.models.items()}

    def _lang(self) -> str:
        from .reports.messages import language

        return language(self.config.getoption("migparity_lang"))
