"""All that pytest sees: options, markers, collection, reporting. Thin; imports the standard library and pytest only."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from . import selection
from .collected import COLLECTED, Collected, tag
from .core.errors import UserError
from .core.levels import LEVELS
from .ledger import Ledger
from .suite import suite_path


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's own options; the repository's conftest adds the short `--model`."""
    group = parser.getgroup("migparity", "accuracy after a migration (pytest-migparity)")
    group.addoption("--migparity-model", dest="migparity_model", action="append", default=[], metavar="NAME|PATH",
                    help="model to verify: a name under fixtures/, or a folder or file with its model.toml; repeatable")
    group.addoption("--migparity-site", dest="migparity_site", action="append", default=[],
                    metavar="[MODEL:]SIDE=URL", help="where a side's artifacts are, e.g. candidate=file:d; repeatable")
    group.addoption("--migparity-report", dest="migparity_report", action="append", default=[], metavar="FILE",
                    help="write the verdicts to FILE (.json or .md); repeatable")
    group.addoption("--migparity-lang", dest="migparity_lang", choices=("en", "zh"), default=None,
                    help="language of what people read (default: from the locale)")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, find the models, and put the conformance suite in place when nothing else was named."""
    for level in LEVELS.values():
        names = ", ".join(f"{check.name}={check.default:g}" for check in level.checks.values())
        config.addinivalue_line("markers", f"{level.name}({names}): {level.title}: {level.question}")
    try:
        models = selection.models_from(config)
        selection.check_reports(config)
    except UserError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[selection.MODELS] = models
    config.stash[COLLECTED] = Collected()
    if models and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args[:] = [str(suite_path())]
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Ledger(config, models), "migparity-ledger")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every level test runs once for each model, and for each series or task that the model's manifest declares."""
    level = selection.level_of(metafunc.definition)
    if level is not None:
        metafunc.config.stash[COLLECTED].levels.add(level.name)
        try:
            selection.parametrize(metafunc)
        except UserError as error:
            raise pytest.Collector.CollectError(str(error)) from None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the levels that the manifest does not need."""
    dropped = selection.not_needed(config, items)
    if dropped:
        items[:] = [item for item in items if item not in dropped]
        config.hook.pytest_deselected(items=dropped)
    config.stash[COLLECTED].not_needed.update(f"{selection.model_of(item)} {_level_name(item)}" for item in dropped)


def pytest_collection_finish(session: pytest.Session) -> None:
    """After every plugin had its say: the level tests that are to run."""
    session.config.stash[COLLECTED].selected.update(
        {item.nodeid: (selection.model_of(item), level, selection.case_of(item))
         for item in session.items if (level := _level_name(item))})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tag the report of a level test with its level, and with its outcome where pytest has no word for it."""
    report = yield
    if level := _level_name(item):
        tag(report, call, level)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, object] | None:
    """INCONCLUSIVE is `?` and yellow; pytest knows no such outcome."""
    if getattr(report, "migparity_outcome", "") == "INCONCLUSIVE":
        return "inconclusive", "?", ("INCONCLUSIVE", {"yellow": True})
    return None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """An xdist worker sends home what it collected."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["migparity"] = session.config.stash[COLLECTED].pack()


def _level_name(item: pytest.Item) -> str:
    level = selection.level_of(item)
    return level.name if level else ""
