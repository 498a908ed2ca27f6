"""The catalogue is complete, and every entry is a real difference."""

import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.rehearsal.faults import CATALOGUE, NO_FAULT, OFFICIAL_HOST, Fault, fault_named
from pytest_migparity.rehearsal.recipe import STANDARD, recipe_from
from pytest_migparity.rehearsal.variant import OFFICIAL

KINDS = {"precision", "gradient", "optimizer", "data", "input", "weights", "network", "environment", "degenerate",
         "harmless"}  # fmt: skip
FAULTS = [pytest.param(fault, id=name) for name, fault in CATALOGUE.items()]


def test_every_kind_has_its_faults() -> None:
    assert {fault.kind for fault in CATALOGUE.values()} == KINDS
    assert sum(fault.kind != "harmless" for fault in CATALOGUE.values()) >= 20
    assert all(name == fault.name for name, fault in CATALOGUE.items())


def test_no_two_entries_are_the_same_run() -> None:
    runs = [(repr(fault.variant), repr(fault.host), fault.stale) for fault in CATALOGUE.values()]
    assert len(set(runs)) == len(runs)


@pytest.mark.parametrize("fault", FAULTS)
def test_an_entry_differs_from_the_official_run_and_says_how(fault: Fault) -> None:
    assert fault.variant != OFFICIAL or fault.host != OFFICIAL_HOST or fault.stale
    assert fault.cause
    assert "\n" not in fault.cause


@pytest.mark.parametrize("fault", FAULTS)
def test_an_entry_declares_l0_and_l5_and_where_a_failure_starts(fault: Fault) -> None:
    assert {"L0", "L5"} <= set(fault.expect)
    assert set(fault.expect) <= {f"L{k}" for k in range(8)}
    assert set(fault.expect.values()) <= {"PASS", "FAIL", "INCONCLUSIVE"}
    assert (fault.first_step is not None) == (fault.expect["L5"] == "FAIL")
    assert (fault.first_key is not None) == (fault.expect["L0"] == "FAIL")
    if fault.first_step:
        assert 0 <= fault.first_step[0] <= fault.first_step[1] < STANDARD.steps


def test_no_name_is_the_official_run() -> None:
    assert fault_named(None) is NO_FAULT
    assert NO_FAULT.variant == OFFICIAL


def test_a_misspelled_fault_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="eps-misplaced"):
        fault_named("eps-mispaced")


@pytest.mark.parametrize(
    ("table", "key"),
    [({"steps": 0}, "steps"), ({"steps": 9999}, "steps"), ({"seed": -1}, "seed"), ({"seed": "x"}, "seed"),
     ({"grad_accumulation": 3}, "grad_accumulation"), ({"steps": True}, "steps")],
)  # fmt: skip
def test_a_recipe_that_cannot_run_names_its_key(table: dict[str, object], key: str) -> None:
    with pytest.raises(UserError, match=rf"recipe\.{key} = "):
        recipe_from(table)


def test_a_recipe_may_carry_keys_of_its_own_model() -> None:
    recipe = recipe_from({"seed": 42, "steps": 50, "world_size": 1, "noise": "injected"})
    assert (recipe.seed, recipe.steps, recipe.grad_accumulation) == (42, 50, 1)
