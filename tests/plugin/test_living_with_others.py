"""The plugin is installed next to other people's tests: it must cost them nothing and never judge by their fixtures."""

import subprocess
import sys

import pytest
from evidence_kit import NUDGED

HEAVY = ("numpy", "scipy", "pandas", "paramiko", "pydantic", "rich", "typer", "httpx", "modelscope", "filelock", "tomlkit")


def test_loading_the_plugin_imports_nothing_heavy(pytester):
    """In a process of its own, with the plugin loaded as pytest loads it and one ordinary test run."""
    pytester.makepyfile(f"""
        import sys

        def test_nothing_heavy():
            assert "pytest_migparity.plugin" in sys.modules
            assert "pytest_migparity.fixtures" in sys.modules
            assert [name for name in {HEAVY!r} if name in sys.modules] == []
    """)
    result = pytester.runpytest_subprocess("-p", "no:hypothesispytest", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)


def test_core_and_wire_import_nothing_heavy_at_import_time():
    code = ("import sys\n"
            "from pytest_migparity.core import answer, errors, evidence, levels, limits, verdict\n"
            "from pytest_migparity.wire import env, receipt\n"
            f"print([name for name in {HEAVY!r} if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "n2"])
@pytest.mark.parametrize("name", ["baseline", "candidate", "judge", "model", "series"])
def test_a_strangers_fixture_of_our_name_is_named_and_refused(pytester, make_model, name, workers):
    make_model(candidate=NUDGED)
    pytester.makeconftest(f"""
        import pytest

        @pytest.fixture
        def {name}():
            return "mine"
    """)
    result = pytester.runpytest_subprocess("-m", "L5", "--migparity-model", "mine", *workers)
    assert result.ret == (1 if workers else 2)  # xdist ends a run with collection errors with 1
    result.stdout.fnmatch_lines([f"*the fixture '{name}' of *conftest.py:*would replace*--noconftest*"])
    around = pytester.runpytest_subprocess("-m", "L5", "--migparity-model", "mine", "--noconftest", *workers)
    assert around.ret == 0


def test_other_peoples_tests_keep_their_own_fixtures_options_and_markers(pytester):
    """Their `--model` option, their fixtures `model` and `baseline`, their skip and xfail: all as if we were absent."""
    pytester.makeconftest("""
        import pytest

        def pytest_addoption(parser):
            parser.addoption("--model", default="theirs")

        @pytest.fixture
        def model(request):
            return request.config.getoption("--model")

        @pytest.fixture
        def baseline():
            return 1
    """)
    pytester.makepyfile("""
        import pytest

        def test_theirs(model, baseline):
            assert (model, baseline) == ("theirs", 1)

        @pytest.mark.skip
        def test_skipped(): pass

        @pytest.mark.xfail
        def test_known(): assert False

        def test_broken(): assert False
    """)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1, skipped=1, xfailed=1, failed=1)
    assert result.ret == 1
    assert "migparity" not in result.stdout.str().replace("plugins: ", "plugins-line ").split("collected")[1]


def test_our_fixtures_outside_a_level_test_say_what_to_do(pytester):
    pytester.makepyfile("def test_it(judge): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*work in level tests only: mark the test with a level*"])


def test_a_level_test_that_uses_no_fixture_of_ours_is_refused(pytester, make_model):
    make_model()
    pytester.makepyfile("import pytest\n\n@pytest.mark.L5\ndef test_it(): pass")
    result = pytester.runpytest_subprocess("--migparity-model", "mine", ".")
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*it would judge nothing*"])


def test_markers_are_documented(pytester):
    pytester.runpytest_subprocess("--markers").stdout.fnmatch_lines(["@pytest.mark.L5(step0=0.001, *order=0.9, departure=*): loss: *"])
