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


def test_every_cap_is_looser_than_its_limit():
    for level in LEVELS.values():
        for check in level.checks.values():
            assert check.looser(check.cap, check.default), f"{level.name} {check.name}"
