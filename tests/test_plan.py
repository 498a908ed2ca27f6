"""`migparity plan`: what a margin costs before a rollout is run."""

import json

import pytest
from typer.testing import CliRunner

from pytest_migparity.cli import app
from pytest_migparity.core.errors import UserError
from pytest_migparity.plan import planned


def test_the_table_is_near_what_was_simulated_and_falls_with_the_margin():
    """facts/closedloop.md at .589: margin .05 576/359/168 paired, 1656 unpaired; .10 154/100/58 and 413."""
    plan = planned(None, 0.589)
    rows = {row.margin: row for row in plan.rows}
    assert rows[0.05].paired == pytest.approx((576, 359, 168), rel=0.1)
    assert rows[0.10].paired == pytest.approx((154, 100, 58), rel=0.1)
    assert (rows[0.05].unpaired, rows[0.10].unpaired) == pytest.approx((1656, 413), rel=0.02)
    assert all(rows[0.20].paired[at] < rows[0.15].paired[at] for at in range(3))


def test_a_model_brings_its_margin_and_its_published_rate(make_model):
    home = make_model(producer=None, extra="[rollouts]\npublished = 0.9\n[limits.L7]\nmargin = 0.04\n")
    plan = planned(str(home), None)
    assert (plan.rate, plan.declared) == (0.9, 0.04)
    assert 0.04 in [row.margin for row in plan.rows]


def test_a_rate_that_has_nothing_to_lose_is_refused():
    with pytest.raises(UserError, match=r"a rate of 0\.08 has no loss of 0\.1 to show"):
        planned(None, 0.08)


def test_the_command_prints_a_table_and_a_document():
    done = CliRunner().invoke(app, ["plan", "--rate", "0.8", "--json"])
    document = json.loads(done.stdout)
    assert (document["schema"], document["rate"], document["correlations"]) == ("migparity.plan/1", 0.8, [0.5, 0.7, 0.9])
    shown = CliRunner().invoke(app, ["plan", "--rate", "0.8", "--lang", "en"])
    assert any(line.startswith("* 0.1 ") for line in shown.stdout.splitlines())
    assert "无损失" in CliRunner().invoke(app, ["plan", "--rate", "0.8", "--lang", "zh"]).stdout
