"""Whatever bytes a reader is given, there comes a reading or an error of the user's: benchmarks/fuzz_readers.py, in small.

The benchmark is the long run; here are a few thousand of its inputs, and bytes from nowhere.
"""

import importlib.util
import sys

import numpy as np
import pytest
from evidence_kit import REPO
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_migparity.core.evidence import Trajectory
from pytest_migparity.readers.registry import builtin

SCRIPT = REPO / "benchmarks" / "fuzz_readers.py"


@pytest.fixture(scope="module")
def fuzzer():
    if not SCRIPT.is_file():
        pytest.skip("not a source checkout")
    pytest.importorskip("tensorboard")
    path = list(sys.path)
    spec = importlib.util.spec_from_file_location("fuzz_readers", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


def test_mangled_logs_of_every_format_give_a_reading_or_one_error(fuzzer, tmp_path):
    figures = fuzzer.fuzz(3000, 1, tmp_path)
    assert figures["failures"] == []
    assert figures["outcomes"].keys() == {"Reading", "ReadError", "UserError"}
    assert figures["formats"].keys() == {*builtin(), fuzzer.TENSORBOARD}  # and none of them only errors


def test_a_reader_that_breaks_is_found_and_its_input_kept(fuzzer, tmp_path, monkeypatch):
    real = fuzzer.read_loss

    def brittle(data, name, **options):
        if b"nan" in data:
            raise IndexError("a guard is missing")
        return real(data, name, **options)

    monkeypatch.setattr(fuzzer, "read_loss", brittle)
    figures = fuzzer.fuzz(100, 1, tmp_path)
    broken = figures["outcomes"]["IndexError (unhandled)"]
    assert len(figures["failures"]) == len(list(tmp_path.iterdir())) == broken > 0
    assert all(b"nan" in kept.read_bytes() for kept in tmp_path.iterdir())
    assert "a guard is missing" in figures["failures"][0]


def test_a_read_that_takes_too_long_is_found(fuzzer, tmp_path, monkeypatch):
    monkeypatch.setattr(fuzzer, "SLOW", 0.0)
    assert all(failure.endswith("CPU seconds") for failure in fuzzer.fuzz(20, 1, tmp_path)["failures"])
    assert len(list(tmp_path.iterdir())) == 20


@pytest.mark.parametrize("fault", ["steps that do not rise", "a joint that is no step", "a loss of unknown digits",
                                   "a column of another length", "a step below 0", "no row"])
def test_a_table_that_is_none_is_found(fuzzer, fault):
    step = np.array({"steps that do not rise": [2, 2], "a step below 0": [-1, 2], "no row": []}.get(fault, [1, 2]), np.int64)
    loss = np.ones(3 if fault == "a column of another length" else step.size)
    quantum = np.full(loss.size, np.nan if fault == "a loss of unknown digits" else 0.1)
    joints = (9,) if fault == "a joint that is no step" else ()
    with pytest.raises(AssertionError, match=fault):
        fuzzer.refuse_no_table(Trajectory(step, {"loss": loss}, {"loss": quantum}, joints=joints))


def pieces(tokens):
    return st.lists(st.one_of(st.sampled_from(tokens), st.binary(max_size=6),
                              st.from_regex(rb"\A[0-9]{1,4}[.,:]?[0-9]{0,4}\Z")), max_size=40).map(b"".join)


def test_words_of_the_formats_without_a_log_around_them(fuzzer):
    @given(st.one_of(pieces(fuzzer.TOKENS), st.binary(max_size=200)), st.sampled_from([None, *builtin()]))
    @settings(max_examples=500, deadline=None, derandomize=True, database=None)
    def check(data, format):
        assert fuzzer.read(data, format)[0] in ("Reading", "ReadError", "UserError")

    check()
