"""Steps that a log abbreviates: rebuilt rightly, and only where everything agrees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.readers.steps import Proportion, Spacing, abbreviated


@pytest.mark.parametrize(("number", "text"), [
    (0, "0"), (999, "999"), (1000, "1K"), (1200, "1K"), (1499, "1K"), (1500, "2K"), (1501, "2K"), (2500, "2K"),
    (2501, "3K"), (99_600, "100K"), (999_499, "999K"), (999_600, "1000K"), (1_000_000, "1M"), (10**9, "1B"),
    (10**12, "1T"), (10**15, "1Q"),
])
def test_abbreviations_are_those_of_format_big_number(number, text):
    """By hand from its definition: divide by 1000 until below 1000, print without decimals (halves to even)."""
    assert abbreviated(number) == text


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_larger_number_has_no_smaller_abbreviation(a, b):
    factor = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9}

    def size(number):
        text = abbreviated(number)
        digits = text.rstrip("KMB")
        return int(digits) * factor[text[len(digits):]]

    assert size(min(a, b)) <= size(max(a, b))
    assert abs(size(a) - a) <= max(500, a / 1000) or a >= 10**6


@given(st.floats(1e-5, 10), st.integers(1, 300), st.integers(1, 60), st.integers(0, 4))
def test_rounded_multiples_are_always_in_proportion(factor, every, count, decimals):
    proportion = Proportion()
    for i in range(1, count + 1):
        assert proportion.admits(i * every, round(factor * i * every, decimals), decimals)


def test_a_jump_in_the_epochs_is_out_of_proportion():
    proportion = Proportion()
    assert all(proportion.admits(step, step / 1000, 2) for step in range(100, 1000, 100))
    assert not proportion.admits(1000, 1.1, 2)


def test_spacing_is_the_commonest_distance_and_a_resume_is_none():
    spacing = Spacing()
    assert not spacing.started
    for step in (1, 10, 20, 30, 20, 30, 40):
        spacing.add(step)
    assert (spacing.usual, spacing.regular, spacing.started) == (10, True, True)
    for step in (45, 51, 60):
        spacing.add(step)
    assert not spacing.regular
