"""The truth table of DESIGN, row by row."""

import pytest

from pytest_migparity.core.answer import Lost, answer_for
from pytest_migparity.core.verdict import Coverage, Divergence, Finding, Outcome, Verdict, Witness

STEP = Divergence("step", 12, 0.116, 0.119)
PACKAGE = Divergence("package", "transformers", "4.57.3", "4.51.0")


def verdicts(producer="real", **levels):
    return [
        Verdict(level, "m", "main", Finding(Outcome(outcome), (), Coverage("steps", 1, 1),
                                            {"L0": PACKAGE}.get(level, STEP) if outcome == "FAIL" else None),
                (Witness("baseline", producer, "f", "0"),))
        for level, outcome in levels.items()
    ]


def codes(answer):
    return [remark.code for remark in answer.remarks]


ROWS = [
    # verdicts, enough, lost, a remark that must be there
    ({"L0": "PASS", "L5": "PASS"}, ["L0", "L5"], Lost.NO, "answer-agree"),
    ({"L0": "FAIL", "L5": "PASS"}, ["L0", "L5"], Lost.NO, "answer-stacks-differ"),
    ({"L0": "PASS", "L5": "FAIL"}, ["L0", "L5"], Lost.YES, "answer-first-at-where"),
    ({"L0": "FAIL", "L5": "FAIL"}, ["L0", "L5"], Lost.YES, "answer-cause-not-separated"),
    ({"L5": "FAIL", "L7": "PASS"}, [], Lost.NO, "answer-task-unaffected"),
    ({"L1": "FAIL", "L7": "PASS"}, [], Lost.YES, "answer-first-at-where"),
    ({"L5": "FAIL", "L7": "INCONCLUSIVE"}, [], Lost.YES, "answer-first-at-where"),
    ({"L5": "PASS", "L7": "FAIL"}, [], Lost.YES, "answer-first-at-where"),
    ({"L0": "INCONCLUSIVE", "L5": "PASS"}, ["L0", "L5"], Lost.CANNOT_TELL, "answer-level-cannot-tell"),
    ({"L0": "PASS", "L5": "INCONCLUSIVE"}, [], Lost.CANNOT_TELL, "answer-level-cannot-tell"),
    ({"L0": "INCONCLUSIVE", "L5": "FAIL"}, ["L0", "L5"], Lost.YES, "answer-first-at-where"),
    ({"L6": "INCONCLUSIVE", "L7": "PASS"}, [], Lost.NO, "answer-agree"),
    ({"L5": "PASS"}, ["L0", "L5"], Lost.NO, "answer-not-checked"),
    ({"L5": "PASS"}, ["L0", "L5", "L7"], Lost.CANNOT_TELL, "answer-not-checked"),
    ({"L5": "FAIL"}, ["L0", "L5", "L7"], Lost.YES, "answer-not-checked"),
    ({"L0": "PASS"}, ["L0"], Lost.CANNOT_TELL, "answer-only-environment"),
    ({"L0": "FAIL"}, [], Lost.CANNOT_TELL, "answer-stacks-differ"),
]


@pytest.mark.parametrize(("levels", "enough", "lost", "remark"), ROWS)
def test_truth_table(levels, enough, lost, remark):
    answer = answer_for("m", verdicts(**levels), enough)
    assert answer.lost is lost
    assert remark in codes(answer)


def test_the_lowest_failing_level_and_its_place_are_named():
    (remark,) = [item for item in answer_for("m", verdicts(L3="FAIL", L5="FAIL"), []).remarks if "first" in item.code]
    assert remark.params == {"level": "L3", "case": "main", "kind": "step", "at": 12}


def test_one_failing_case_of_a_level_is_enough():
    several = verdicts(L5="PASS") + verdicts(L5="FAIL") + verdicts(L5="INCONCLUSIVE")
    assert answer_for("m", several, []).lost is Lost.YES


@pytest.mark.parametrize(("producer", "remark"), [("rehearsal", "answer-rehearsal"), ("manual", "answer-manual")])
def test_evidence_that_is_not_the_real_runs_is_said_in_the_answer(producer, remark):
    assert remark in codes(answer_for("m", verdicts(producer, L5="PASS"), []))


@pytest.mark.parametrize("outcome, lost", [("PASS", Lost.CANNOT_TELL), ("FAIL", Lost.YES)])
def test_a_case_without_a_verdict_is_named_and_never_a_no(outcome, lost):
    answer = answer_for("m", verdicts(L5=outcome), [], unjudged=["L5[b]"])
    assert answer.lost is lost
    (remark,) = [item for item in answer.remarks if item.code == "answer-not-checked"]
    assert remark.params["levels"] == "L0, L5[b]"


def test_no_verdict_at_all_is_cannot_tell():
    answer = answer_for("m", [], ["L5"], unjudged=["L5"])
    assert (answer.model, answer.lost) == ("m", Lost.CANNOT_TELL)
