"""The verdicts of a run: exit code, JUnit, summary table, answer. The controller's, never a worker's."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from .collected import COLLECTED, outcome_of, verdicts_in
from .core.levels import LEVELS
from .selection import Chosen, asked_for_levels

if TYPE_CHECKING:
    from .core.answer import Answer
    from .core.verdict import Verdict

INCONCLUSIVE_EXIT = 12


class Ledger:
    """The record of the run; a plugin of its own, so that every hook is a method."""

    def __init__(self, config: pytest.Config, models: Mapping[str, Chosen]) -> None:
        self.config = config
        self.models = models
        self.verdicts: dict[str, list[str]] = {}  # node id -> verdict documents
        self.inconclusive: list[pytest.TestReport] = []
        self.broken: set[str] = set()  # failed, and not by being inconclusive
        self.unjudged: dict[str, str] = {}  # level tests that ended without a verdict -> why
        self.unwritten: list[str] = []  # reports that could not be written -> why

    # -- what happened

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a report says of a level; note which failures are something else."""
        level, outcome = getattr(report, "migparity_level", ""), getattr(report, "migparity_outcome", "")
        verdicts = verdicts_in(report) if level else []
        if verdicts and report.when == "call":
            self.verdicts.setdefault(report.nodeid, []).extend(verdicts)
        if outcome == "INCONCLUSIVE":
            self.inconclusive.append(report)
        crashed = report.when not in ("setup", "call", "teardown") and bool(self.models)
        if crashed:
            self.unjudged[report.nodeid] = "worker crashed"
        elif level and not verdicts and not report.passed and (report.when == "setup" or report.skipped):
            self.unjudged[report.nodeid] = "skipped" if report.skipped else "error in setup"
        elif level and not verdicts and outcome == "INCONCLUSIVE":
            self.unjudged[report.nodeid] = "no verdict"
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

    @property
    def concerned(self) -> bool:
        """Did this run have to do with levels at all?"""
        return bool(self.models or self.verdicts or self.config.stash[COLLECTED].selected)

    def missing(self) -> dict[str, str]:
        """Selected level tests whose verdict does not stand, and why."""
        stands = {nodeid for nodeid, verdicts in self.verdicts.items()
                  if nodeid not in self.broken or any(outcome_of(verdict) == "FAIL" for verdict in verdicts)}
        reasons = {nodeid: "failed beside its verdict" if nodeid in self.verdicts else "failed without a verdict"
                   for nodeid in self.broken}
        selected = self.config.stash[COLLECTED].selected
        return {**self.unjudged, **{nodeid: reasons.get(nodeid, "not run") for nodeid in sorted(selected)
                                    if nodeid not in stands and nodeid not in self.unjudged}}

    def exit_status(self, status: int | pytest.ExitCode) -> int | pytest.ExitCode:
        """0 every selected case passed; 1 something failed; 12 nothing failed but something is not known."""
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or self.config.option.collectonly:
            return status
        outcomes = {outcome_of(text) for texts in self.verdicts.values() for text in texts}
        unexplained = status == pytest.ExitCode.TESTS_FAILED and not (self.inconclusive or self.unjudged or self.broken)
        if "FAIL" in outcomes or self.broken or unexplained:
            return pytest.ExitCode.TESTS_FAILED
        unknown = "INCONCLUSIVE" in outcomes or self.inconclusive or self.missing() or self._unsettled()
        return INCONCLUSIVE_EXIT if unknown or not outcomes else status

    def _unsettled(self) -> bool:
        """Nobody asked for certain levels or files, and a level that the manifest requires was not judged."""
        if asked_for_levels(self.config) or self.config.args_source is pytest.Config.ArgsSource.ARGS:
            return False
        judged = {(verdict.model, verdict.level) for verdict in self._parsed()}
        return any((name, level) not in judged for name, chosen in self.models.items()
                   for level in chosen.manifest.ladder.enough)

    def _unjudged_cases(self, model: str, verdicts: list[Verdict]) -> set[str]:
        """Cases of a model that were selected, or are declared beside judged ones of their level, without a verdict."""
        selected = self.config.stash[COLLECTED].selected
        found = {(level, case) for nodeid in self.missing()
                 for owner, level, case in [selected.get(nodeid, (model, nodeid, "main"))] if owner == model}
        judged = {(verdict.level, verdict.case) for verdict in verdicts}
        manifest = self.models[model].manifest
        for level in {verdict.level for verdict in verdicts}:
            declared = manifest.cases(per) if (per := LEVELS[level].per) else ["main"]
            found |= {(level, case) for case in declared} - judged
        return {level if case == "main" else f"{level}[{case}]" for level, case in found}

    def answers(self) -> list[Answer]:
        """One for each model."""
        from .core.answer import answer_for

        found = []
        for model, chosen in self.models.items():
            verdicts = [verdict for verdict in self._parsed() if verdict.model == model]
            unjudged = self._unjudged_cases(model, verdicts)
            if verdicts or unjudged:
                found.append(answer_for(model, verdicts, chosen.manifest.ladder.enough, unjudged))
        return found

    def _parsed(self) -> list[Verdict]:
        from .core.verdict import Verdict

        verdicts = [Verdict.from_json(text) for texts in self.verdicts.values() for text in texts]
        return sorted(verdicts, key=lambda verdict: (verdict.model, verdict.level, verdict.case))

    # -- what people see

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Set the exit code, and put the answer into the JUnit file before it is written."""
        if self.concerned and not self.config.option.collectonly:
            session.exitstatus = self.exit_status(session.exitstatus)
            self._to_junit()
            if files := self.config.getoption("migparity_report"):
                from .reports.files import write_reports

                self.unwritten = write_reports(files, self._parsed(), self.answers(), self.missing(), self._lang())
                if self.unwritten and session.exitstatus == pytest.ExitCode.OK:
                    session.exitstatus = pytest.ExitCode.USAGE_ERROR
        yield

    def _to_junit(self) -> None:
        from _pytest.junitxml import xml_key

        xml = self.config.stash.get(xml_key, None)
        if xml is not None:
            from .reports.terminal import answer_line

            for answer in self.answers():
                xml.add_global_property("migparity.answer", answer_line(answer, self._lang()))

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
        if self.config.option.collectonly or not self.concerned:
            return
        from .reports.terminal import summary

        collected = self.config.stash[COLLECTED]
        terminalreporter.section("migparity")
        for problem in self.unwritten:
            terminalreporter.write_line(problem, red=True)
        for line in summary(self._parsed(), self.answers(), lang=self._lang(), missing=self.missing(),
                            not_needed=sorted(collected.not_needed),
                            levels=[] if self.broken else sorted(collected.levels),
                            width=terminalreporter._tw.fullwidth):
            terminalreporter.write_line(line)

    def _lang(self) -> str:
        from .reports.messages import language

        return language(self.config.getoption("migparity_lang"))
