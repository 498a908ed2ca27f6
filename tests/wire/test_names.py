"""Names become templates and are the same names again; what no writer of ours wrote is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.wire.names import MAX_NAMES, fold, unfold

PARTS = st.builds("{}[{}:{}]".format, st.sampled_from(["a", "a.1"]), st.integers(0, 9), st.integers(0, 9))
NAMES = st.lists(st.text("ab.0123#%é", min_size=1, max_size=8) | PARTS, unique=True, max_size=12)


@given(NAMES)
def test_what_is_folded_unfolds_to_the_sorted_names(names):
    assert unfold(fold(sorted(names))) == sorted(names)


def test_the_layers_of_a_model_are_one_entry():
    names = sorted(f"layers.{k}.experts.{e}.up" for k in range(12) for e in range(8))
    assert fold(names) == [["layers.#.experts.#.up", ["0-11", "0-7"]]]


def test_combinations_that_do_not_all_occur_are_listed():
    assert fold(["a.0.b.1", "a.1.b.0"]) == [["a.#.b.#", [[0, 1], [1, 0]]]]


def test_numbers_with_leading_zeros_stay_as_they_are():
    assert fold(["shard-00007"]) == ["shard-00007"]


@pytest.mark.parametrize("entry", [7, ["a.#"], ["a.#", "0-3"], ["a.#", ["0-3", "0-3"]], ["a.#", ["3"]], ["a.#", [["x"]]],
                                   ["a.#", [[1, 2]]], ["a.#", [[-1]]], ["a.#", [[True]]], [["a"], ["0-1"]],
                                   ["a", [0, 4, 0]], ["a", [4, 4, 1]], ["a", [0, 4]], ["a", [0, True, 1]]])
def test_an_entry_of_another_form_is_refused(entry):
    with pytest.raises(ValueError, match=r"is no name|has no range|has no number"):
        unfold([entry])


def test_a_few_bytes_never_stand_for_more_names_than_a_model_has():
    assert len(unfold([["#", [f"1-{MAX_NAMES}"]]])) == MAX_NAMES
    for entries in ([["#", ["0-999999999"]]], [["#.#", ["0-99999", "0-99999"]]], [["#", [f"1-{MAX_NAMES}"]], "a"] * 2):
        with pytest.raises(ValueError, match="more than 200000 names"):
            unfold(entries)


def test_the_parts_of_a_tensor_are_one_entry():
    names = sorted(f"l.3.w[{start}:{min(start + 4096, 21000)}]" for start in range(8192, 21000, 4096))
    assert fold(names) == [["l.3.w", [8192, 21000, 4096]]]
    assert unfold(fold([*names, "v"])) == [*names, "v"]


def test_parts_with_a_gap_are_no_run():
    names = ["w[0:4]", "w[8:12]"]
    assert unfold(fold(names)) == names
    assert fold(names) == [["w[#:#]", [[0, 4], [8, 12]]]]


def test_a_run_of_more_parts_than_a_model_has_tensors_is_refused():
    assert len(unfold([["w", [0, MAX_NAMES, 1]]])) == MAX_NAMES
    for entry in (["w", [0, MAX_NAMES + 1, 1]], ["w", [0, 10**17, 3]]):
        with pytest.raises(ValueError, match="more than 200000 names"):
            unfold([entry])
