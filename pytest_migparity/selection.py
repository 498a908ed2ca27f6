"""Which models, limits and cases the level tests run for: options in, parameters out. Standard library and pytest."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .core.errors import UserError, did_you_mean
from .core.levels import LEVELS, SIDES, Level
from .suite import find_model, known_models, suite_path

if TYPE_CHECKING:
    from .core.limits import Limits
    from .core.manifest import Manifest

RESERVED = ("model", "baseline", "candidate", "series", "task", "judge")
_FIXTURES = "pytest_migparity.fixtures"


@dataclass(frozen=True, slots=True)
class Chosen:
    """One model of this run: its manifest and where that lies.

    `sites` are those of the command line, `configured` those of the user's sites.toml; the manifest's come last.
    """

    manifest: Manifest
    path: Path
    sites: Mapping[str, str] = field(default_factory=dict)
    configured: Mapping[str, str] = field(default_factory=dict)

    def site(self, side: str) -> str | None:
        """The URL that takes the place of the manifest's, if any."""
        return self.sites.get(side) or self.configured.get(side)


MODELS: pytest.StashKey[dict[str, Chosen]] = pytest.StashKey()


def models_from(config: pytest.Config) -> dict[str, Chosen]:
    """The models and sites that the options name; UserError says what is wrong with them."""
    names: list[str] = config.getoption("migparity_model")
    sites: list[str] = config.getoption("migparity_site")
    if not names:
        if sites:
            raise UserError(f"--migparity-site {sites[0]} has no model to belong to; add --migparity-model NAME")
        return {}
    from .core.manifest import load_manifest

    folders = model_folders(config)
    found: dict[str, Chosen] = {}
    for name in dict.fromkeys(names):
        path = find_model(name, *folders)
        if path is None:
            raise UserError(f"no model {name!r}: no folder or file of that name holds a model.toml; "
                            f"{did_you_mean(name, set(known_models(*folders)))}")
        manifest = load_manifest(path)
        if manifest.name in found and found[manifest.name].path != path:
            raise UserError(f"{path} and {found[manifest.name].path} both name their model {manifest.name!r}")
        found[manifest.name] = Chosen(manifest, path)
    from .channels.configured import configured_sites

    return {name: Chosen(chosen.manifest, chosen.path, _sites_of(name, sites, found), configured_sites(name))
            for name, chosen in sorted(found.items())}


def model_folders(config: pytest.Config) -> tuple[Path, ...]:
    """Where models are found by name: fixtures/ of the rootdir and of the working folder.

    They differ more often than one expects: a path given to any option that pytest does not know early moves the
    rootdir to that path.
    """
    return config.rootpath / "fixtures", config.invocation_params.dir / "fixtures"


def check_reports(config: pytest.Config) -> None:
    """Refuse `--migparity-report` files that could not be written, before anything is judged."""
    files: list[str] = config.getoption("migparity_report")
    if files:
        from .reports.files import check_report

        for file in files:
            check_report(file)


def _sites_of(model: str, options: Sequence[str], models: Mapping[str, Chosen]) -> dict[str, str]:
    """`[MODEL:]SIDE=URL` options that concern one model."""
    from .channels.sites import check_url

    sites: dict[str, str] = {}
    for option in options:
        target, equals, url = option.partition("=")
        owner, colon, side = target.rpartition(":")
        if not equals or side not in SIDES or not url:
            raise UserError(f"--migparity-site {option!r}: expected [MODEL:]SIDE=URL with SIDE baseline or candidate, "
                            "e.g. candidate=file:run7")
        if colon and owner not in models:
            raise UserError(f"--migparity-site {option!r}: {owner!r} is not a model of this run; "
                            f"{did_you_mean(owner, models)}")
        check_url(url)
        if not colon or owner == model:
            if side in sites and sites[side] != url:
                raise UserError(f"--migparity-site gives the {side} of {model} two sites: {sites[side]} and {url}")
            sites[side] = url
    return sites


def level_of(node: pytest.Item | Any) -> Level | None:
    """The level whose marker a test carries, if any."""
    names = {mark.name for mark in node.iter_markers()} & LEVELS.keys()
    return LEVELS[min(names)] if names else None


def limits_of(node: pytest.Item | Any, manifest: Manifest) -> Limits:
    """The limits in force for one test and one model: the marker's, replaced by the manifest's."""
    from .core.limits import declare

    level = level_of(node)
    assert level is not None
    marker = node.get_closest_marker(level.name)
    assert marker is not None
    if marker.args:
        raise UserError(f"{node.nodeid}: {level.name}{marker.args!r}: limits are named, e.g. {level.name}(mean=1e-3)")
    return declare(level, marker.kwargs, manifest.declared_limits(level.name), node.nodeid)


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Give a level test its models and cases, in sorted order, with ids that say which; refuse what would mislead."""
    models = metafunc.config.stash[MODELS]
    level = level_of(metafunc.definition)
    assert level is not None
    if not models:
        raise UserError(f"{metafunc.definition.nodeid} needs a model: add --migparity-model NAME; "
                        f"known: {', '.join(known_models(*model_folders(metafunc.config)))}")
    levels = {mark.name for mark in metafunc.definition.iter_markers()} & LEVELS.keys()
    if len(levels) > 1:
        raise UserError(f"{metafunc.definition.nodeid} carries several levels: {', '.join(sorted(levels))}; one each")
    _refuse_strangers(metafunc)
    for mark in metafunc.definition.iter_markers("parametrize"):
        names = mark.args[0].split(",") if mark.args and isinstance(mark.args[0], str) else list(*mark.args[:1])
        if taken := {name.strip() for name in names} & set(RESERVED):
            raise UserError(f"{metafunc.definition.nodeid} is parametrized over {', '.join(sorted(taken))}, which the "
                            "manifest alone may set; rename the parameter")
    for chosen in models.values():
        limits_of(metafunc.definition, chosen.manifest)
    case = next((name for name in ("series", "task") if name in metafunc.fixturenames), None)
    if "model" not in metafunc.fixturenames:
        raise UserError(f"{metafunc.definition.nodeid} is a level test and uses none of the fixtures "
                        f"{', '.join(RESERVED)}: it would judge nothing")
    if case is None:
        metafunc.parametrize("model", list(models), indirect=True, ids=list(models), scope="function")
        return
    rows = [(name, which) for name, chosen in models.items() for which in chosen.manifest.cases(case)]
    metafunc.parametrize(("model", case), rows, indirect=True, ids=[f"{name}-{which}" for name, which in rows],
                         scope="function")


def _refuse_strangers(metafunc: pytest.Metafunc) -> None:
    """A conftest that defines its own `baseline` would put unknown evidence under our verdict."""
    for name in RESERVED:
        for definition in metafunc._arg2fixturedefs.get(name, ()):
            if definition.func.__module__ != _FIXTURES:
                code = definition.func.__code__
                raise UserError(
                    f"the fixture {name!r} of {code.co_filename}:{code.co_firstlineno} would replace the one that "
                    f"{metafunc.definition.name} judges by; rename it, or run with --noconftest or from another folder"
                )


def asked_for_levels(config: pytest.Config) -> bool:
    """Did the user choose by -m, -k or node id? What is chosen is judged, whatever the manifest needs."""
    return bool(config.option.markexpr or config.option.keyword or any("::" in str(arg) for arg in config.args))


def not_needed(config: pytest.Config, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Level tests outside `[ladder] enough`, unless the user asked for levels by -m, -k or node id."""
    if asked_for_levels(config):
        return []
    models = config.stash[MODELS]
    return [item for item in items
            if (level := level_of(item)) is not None and (name := model_of(item)) in models
            and (enough := models[name].manifest.ladder.enough) and level.name not in enough]


def case_of(item: pytest.Item | Any) -> str:
    """The series or task that a parametrized level test judges; `main` where it has neither."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    return str(params.get("series", params.get("task", "main")))


def model_of(item: pytest.Item | Any) -> str:
    """The model that a parametrized level test runs for."""
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("model", "")) if callspec else ""


def again(node: pytest.Item, level: str, model: str) -> str:
    """The command that shows a verdict again, from where this run was started: by level, or a test of one's own."""
    config = node.config
    in_repository = suite_path().parent == config.rootpath
    chosen = config.stash[MODELS][model]
    name = model if find_model(model, *model_folders(config)) == chosen.path else str(chosen.path)
    which = ["-m", level] if node.path.is_relative_to(suite_path()) else [node.nodeid]
    words = ["pytest", *which, "--model" if in_repository else "--migparity-model", name]
    for side, url in sorted(chosen.sites.items()):
        words += ["--migparity-site", f"{side}={url}"]
    return shlex.join(words)
