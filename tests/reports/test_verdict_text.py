"""A verdict is written for the person who must act."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.core.answer import answer_for
from pytest_migparity.core.levels import Direction
from pytest_migparity.core.limits import Limit
from pytest_migparity.core.verdict import Check, Coverage, Divergence, Finding, Outcome, Verdict, Witness, note
from pytest_migparity.reports.files import as_json, as_markdown
from pytest_migparity.reports.terminal import summary, table
from pytest_migparity.reports.verdict_text import headline, number, verdict_text


def limit(declared, **more):
    return Limit(declared=declared, direction=Direction.MAX, source="marker", cap=1.0, **more)


def verdict(outcome=Outcome.FAIL, checks=None, model="lingbot", producer="real", **more):
    if checks is None:
        checks = (Check("mean", 3.14e-2, limit(1e-3)), Check("final", 1e-4, limit(5e-3)))
    finding = Finding(outcome, checks, Coverage("steps", 50, 50), **more)
    return Verdict("L5", model, "main", finding, (Witness("baseline", producer, "loss.jsonl", "ab" * 32),))


def test_the_failure_text_of_the_style_guide():
    shown = verdict_text(
        verdict(first_divergence=Divergence("step", 12, 0.116, 0.1194),
                hints=(note("hint-data-order", order=0.1),)), "pytest -m L5 --model lingbot", "en")
    assert shown.splitlines()[:3] == [
        "lingbot · L5 loss · FAIL",
        "  mean       3.1e-02    limit 1.0e-03 (marker)   would pass at 3.2e-02",
        "  first divergence: step 12 (baseline 0.116, candidate 0.1194)",
    ]
    assert shown.splitlines()[-1] == "  again: pytest -m L5 --model lingbot"
    assert "final" not in shown  # what holds is not in the way
    assert "likely: data order" in shown
    assert "compared: 50 of 50 steps" in shown


def test_where_a_limit_came_from_is_always_said():
    loosened = limit(2e-3, because="MoE floor", loosens=1e-3)
    digits = limit(2e-5, resolution=6.7e-5)
    floor = limit(1e-3, floor=5e-4)
    shown = verdict_text(verdict(checks=(Check("a", 1.0, loosened), Check("b", 1.0, digits), Check("c", 1.0, floor))),
                         "", "en")
    assert "limit 2.0e-03 (marker; loosened from 1.0e-03: MoE floor)" in shown
    assert "limit 6.7e-05 (marker; lifted from 2.0e-05 to the printed digits)" in shown
    assert "limit 1.5e-03 (marker; 3 x floor 5.0e-04)" in shown


def test_loosened_and_lifted_limits_of_a_pass_are_listed_in_every_report():
    passing = verdict(Outcome.PASS, (Check("mean", 1e-4, limit(2e-3, because="MoE floor", loosens=1e-3)),))
    for shown in ("\n".join(summary([passing], [], lang="en", missing={}, not_needed=[], levels=[], width=80)),
                  as_markdown([passing], [], {}, "en")):
        assert "loosened from 1.0e-03: MoE floor" in shown
    assert json.loads(as_json([passing], [], {}, "en"))["verdicts"][0]["checks"][0]["limit"]["because"] == "MoE floor"


def test_rehearsal_is_said_in_the_table_the_markdown_and_the_answer():
    rehearsed = verdict(Outcome.PASS, (Check("mean", 0.0, limit(1e-3)),), producer="rehearsal")
    assert "lingbot@rehearsal" in table([rehearsed], "en", 80)
    shown = as_markdown([rehearsed], [answer_for("lingbot", [rehearsed])], {}, "en")
    assert shown.startswith("**lingbot@rehearsal: accuracy lost? no")
    assert "says nothing about the real model" in shown.splitlines()[0]


def test_the_answer_is_the_last_line_of_the_summary():
    lines = summary([verdict()], [answer_for("lingbot", [verdict()])], lang="en", missing={"t.py::x": "not run"}, not_needed=["m L1"], levels=[], width=80)
    assert lines[-1].startswith("lingbot: accuracy lost? YES")
    assert any("t.py::x" in line for line in lines)
    assert any("m L1" in line for line in lines)


def test_the_headline_is_what_decides():
    ok, near, bad = Check("a", 0.1, limit(1.0)), Check("b", 0.9, limit(1.0)), Check("c", 1.1, limit(1.0))
    blind = Check("d", 0.0, limit(1.0), blocked="loss-too-short")
    assert headline(verdict(Outcome.PASS, (ok, near))).name == "b"
    assert headline(verdict(Outcome.FAIL, (ok, bad, near, blind))).name == "c"
    assert headline(verdict(Outcome.INCONCLUSIVE, (ok, near, blind))).name == "d"
    assert headline(verdict(Outcome.INCONCLUSIVE, ())) is None


def test_columns_line_up_under_wide_characters():
    from rich.cells import cell_len

    rows = table([verdict(), verdict(Outcome.PASS, (Check("mean", 0.0, limit(1e-3)),))], "zh", 100).splitlines()
    starts = {cell_len(row[:row.index("mean")]) for row in rows[1:]}
    assert len(starts) == 1


def test_a_hostile_name_cannot_close_the_code_block():
    shown = as_markdown([verdict(notes=(note("evidence-unreadable", side="baseline", kind="loss", why="```\n# x"),))],
                        [], {}, "en")
    assert shown.count("```") == 2


@given(st.floats().filter(lambda value: not 1e300 < abs(value) < float("inf")))
def test_every_float_has_a_short_figure_that_reads_back_near_it(value):
    shown = number(value)
    assert len(shown) <= 9
    if value == value and abs(value) != float("inf"):
        assert float(shown) == value or abs(float(shown) - value) <= 0.06 * abs(value)
