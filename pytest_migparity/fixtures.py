"""The fixtures of a level test: model, baseline, candidate, series, task, judge. Bodies import lazily."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from . import selection
from .collected import VERDICT

if TYPE_CHECKING:
    from .core.manifest import Manifest
    from .core.verdict import Verdict
    from .sides import Handle, Side

    Judge = Callable[[Handle[Any], Handle[Any]], Verdict]


def _chosen(request: pytest.FixtureRequest) -> selection.Chosen:
    name = getattr(request, "param", None) or selection.model_of(request.node)
    models = request.config.stash[selection.MODELS]
    if name not in models:
        pytest.fail("the migparity fixtures work in level tests only: mark the test with a level, "
                    "e.g. @pytest.mark.L5, and name a model with --migparity-model", pytrace=False)
    return models[name]


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Manifest:
    """The manifest of the model under verification."""
    return _chosen(request).manifest


def _side(request: pytest.FixtureRequest, name: str) -> Side:
    from .sides import Side

    chosen = _chosen(request)
    return Side(chosen.manifest, name, chosen.path.parent, chosen.site(name), request.config.invocation_params.dir)


@pytest.fixture
def baseline(request: pytest.FixtureRequest, model: Manifest) -> Side:
    """The official run: `baseline.loss(series)`, `baseline.env()` are lazy handles on its evidence."""
    return _side(request, "baseline")


@pytest.fixture
def candidate(request: pytest.FixtureRequest, model: Manifest) -> Side:
    """The migrated run, with the same handles as the baseline."""
    return _side(request, "candidate")


@pytest.fixture
def series(request: pytest.FixtureRequest) -> str:
    """The loss series that this case judges."""
    return _case(request, "series")


@pytest.fixture
def task(request: pytest.FixtureRequest) -> str:
    """The task that this case judges."""
    return _case(request, "task")


def _case(request: pytest.FixtureRequest, kind: str) -> str:
    if not hasattr(request, "param"):
        pytest.fail(f"the fixture {kind!r} is parametrized in level tests only: mark the test with a level, "
                    "e.g. @pytest.mark.L5", pytrace=False)
    return str(request.param)


@pytest.fixture
def judge(request: pytest.FixtureRequest, model: Manifest) -> Judge:
    """Judge two sides' evidence by the level in the test's marker; raises unless the verdict is PASS."""
    node = request.node

    def run(baseline: Handle[Any], candidate: Handle[Any]) -> Verdict:
        from .assess import assess, refused
        from .core.errors import UserError
        from .core.verdict import Outcome
        from .outcomes import Inconclusive, ParityFailure
        from .reports.messages import language
        from .reports.verdict_text import properties, verdict_text

        level = selection.level_of(node)
        if level is None:
            pytest.fail("judge() works in level tests only: mark the test with a level, e.g. @pytest.mark.L5",
                        pytrace=False)
        case = selection.case_of(node)
        try:
            limits = selection.limits_of(node, model)
            verdict = assess(level.name, baseline, candidate, manifest=model, limits=limits, case=case)
        except UserError as error:
            verdict = refused(level.name, model.name, case, str(error))
        node.user_properties += [(VERDICT, verdict.to_json()), *properties(verdict)]
        if verdict.outcome is Outcome.PASS:
            return verdict
        text = verdict_text(verdict, selection.again(node, level.name, model.name),
                            language(request.config.getoption("migparity_lang")))
        raise (ParityFailure if verdict.outcome is Outcome.FAIL else Inconclusive)(text)

    return run
