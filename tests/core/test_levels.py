"""The ladder and its tests say the same limits."""

import ast

from pytest_migparity.core.levels import LEVELS
from pytest_migparity.suite import suite_path


def test_the_marker_of_each_conformance_test_repeats_the_published_limits():
    seen = {}
    for path in sorted(suite_path().glob("test_L*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for mark in node.decorator_list:
                    call = mark if isinstance(mark, ast.Call) else None
                    name = (call.func if call else mark).attr
                    seen[name] = {key.arg: ast.literal_eval(key.value) for key in call.keywords} if call else {}
    assert seen.keys() >= {"L0", "L5"}
    for name, limits in seen.items():
        assert limits == {check.name: check.default for check in LEVELS[name].checks.values()}, name


def test_no_cap_is_stricter_than_its_limit():
    for level in LEVELS.values():
        for check in level.checks.values():
            assert not check.looser(check.default, check.cap), f"{level.name} {check.name}"


def test_the_outright_failures_of_the_study_are_what_nothing_excuses():
    """step0 > 1e-3, mean > 1e-2, tail > 5e-3 are called failures as they stand; order < .5 is no floor's doing."""
    checks = LEVELS["L5"].checks
    assert (checks["step0"].default, checks["step0"].cap) == (1e-3, 1e-3)
    assert (checks["mean"].default, checks["tail"].default) == (1e-2, 5e-3)
    assert checks["order"].cap == 0.5


def test_a_limit_for_measured_floors_is_stricter_than_the_published_one():
    measured = {check.name: check.measured for check in LEVELS["L5"].checks.values() if check.measured is not None}
    assert measured == {"step0": 5e-5, "first3": 1e-3}
    assert all(value < LEVELS["L5"].checks[name].default for name, value in measured.items())
