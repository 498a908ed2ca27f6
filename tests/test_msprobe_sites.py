"""Folders of what msprobe wrote, as a user points at them: found by their usual names, judged by our rules."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pytest_migparity.assess import assess
from pytest_migparity.cli import app
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import default_limits
from pytest_migparity.core.manifest import load_manifest
from pytest_migparity.core.verdict import Outcome
from pytest_migparity.sides import Side

DATA = Path(__file__).parent / "readers" / "data" / "msprobe"
PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
KIND = {"L0": "env", "L1": "weights", "L2": "inputs", "L3": "forward", "L4": "step"}


@pytest.fixture
def sites(tmp_path):
    (tmp_path / "model.toml").write_text('[model]\nname = "m"\n[baseline]\nsite = "file:baseline"\n[candidate]\n'
                                         'site = "file:candidate"\n')
    return tmp_path


def verdict(sites, level):
    manifest = load_manifest(sites / "model.toml")
    handles = [getattr(Side(manifest, side, sites), KIND[level])() for side in ("baseline", "candidate")]
    return assess(level, *handles, manifest=manifest, limits=default_limits(LEVELS[level]))


def codes(found):
    return [item.code for item in found.finding.notes]


def put(sites, baseline, candidate, change=lambda text: text):
    shutil.copytree(DATA / baseline, sites / "baseline")
    shutil.copytree(DATA / candidate, sites / "candidate")
    for path in (sites / "candidate").rglob("*.*"):
        if path.is_file():
            path.write_text(change(path.read_text()))


def test_random_weights_fail_where_msprobe_passes_them(sites):
    put(sites, "base", "random")
    for level in ("L1", "L3"):
        assert verdict(sites, level).outcome is FAIL
    divergence = verdict(sites, "L3").finding.first_divergence
    assert "Module.b.0.l1.Linear.forward.0" in divergence.at
    assert "manual" in {witness.producer for witness in verdict(sites, "L3").evidence}


def test_equal_dumps_pass_l3_alone_and_one_file_on_both_sides_proves_nothing(sites):
    put(sites, "base", "base", lambda text: text + "\n")
    assert verdict(sites, "L3").outcome is PASS
    weights = verdict(sites, "L1")
    assert (weights.outcome, "dump-weights-statistics" in codes(weights)) == (INCONCLUSIVE, True)
    assert verdict(sites, "L4").outcome is INCONCLUSIVE
    inputs = verdict(sites, "L2")
    assert (inputs.outcome, "dump-not-judged" in codes(inputs)) == (INCONCLUSIVE, True)
    shutil.copytree(DATA / "base", sites / "candidate", dirs_exist_ok=True)
    same = verdict(sites, "L3")
    assert (same.outcome, "record-same-file" in codes(same)) == (INCONCLUSIVE, True)


def test_the_monitors_tables_show_the_step_and_never_pass_it(sites):
    put(sites, "monitor", "monitor", lambda text: text + "\n")
    found = verdict(sites, "L4")
    assert (found.outcome, "dump-step-statistics" in codes(found)) == (INCONCLUSIVE, True)
    assert found.finding.coverage.compared > 0
    shutil.rmtree(sites / "candidate")
    shutil.rmtree(sites / "baseline")
    put(sites, "monitor", "monitor", lambda text: text.replace("b.0.l1.weight,0,0.237776", "b.0.l1.weight,0,0.437776"))
    changed = verdict(sites, "L4")
    assert changed.outcome is FAIL
    assert "b.0.l1.weight" in changed.finding.first_divergence.at


@pytest.mark.parametrize(("change", "said"), [
    (lambda text: text[:len(text) // 2], "evidence-unreadable"), (lambda text: "{}", "evidence-unreadable")])
def test_a_torn_dump_is_said_and_never_passes(sites, change, said):
    put(sites, "base", "base", change)
    for level in ("L1", "L3", "L4"):
        found = verdict(sites, level)
        assert (found.outcome, said in codes(found)) == (INCONCLUSIVE, True)


def test_a_dump_is_not_held_against_a_digest(sites):
    put(sites, "base", "base")
    (sites / "candidate" / "weights.digest").write_text((DATA.parents[3] / "fixtures" / "lingbot" / "candidate" /
                                                         "weights.digest").read_text())
    found = verdict(sites, "L1")
    assert (found.outcome, "dump-one-sided" in codes(found)) == (INCONCLUSIVE, True)


def packed(path, weight, version="2.13.0"):
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pip", f"torch={version}\nnumpy=2.4.6\n")
        archive.writestr("env", '{"HCCL_DETERMINISTIC": "true", "HOME": "/root"}')
        archive.writestr("weights/step0/rank0/weight.json",
                         f'{{"l.weight": {{"min": -1.5, "max": 2.5, "mean": {weight}, "norm": 8.25}}}}')


def test_a_configuration_pack_answers_l0_and_l1_as_far_as_it_goes(sites):
    """A pack knows packages and variables; it knows neither devices nor flags, and of weights only statistics."""
    packed(sites / "baseline" / "config_check_pack.zip", 0.25)
    packed(sites / "candidate" / "config_check_pack.zip", 0.35, version="2.12.0")
    assert verdict(sites, "L1").outcome is FAIL
    environment = verdict(sites, "L0")
    assert environment.outcome is not PASS
    assert "torch" in " ".join(str(value) for item in environment.finding.notes for value in item.params.values())
    shutil.rmtree(sites / "candidate")
    packed(sites / "candidate" / "config_check_pack.zip", 0.25)
    (sites / "candidate" / "data.digest").write_text("not looked at")
    weights = verdict(sites, "L1")
    assert (weights.outcome, "dump-data" in codes(weights)) == (INCONCLUSIVE, True)


def test_the_command_judges_a_comparison_table_and_not_its_result_column():
    done = CliRunner().invoke(app, ["diffmsprobe", str(DATA / "compare" / "flip.csv"), "--lang", "en"])
    assert done.exit_code == 1
    assert "first divergence: tensor step 0 output Module.b.1.l1.Linear.forward.0.output.0" in done.output
    one_sided = CliRunner().invoke(app, ["diffmsprobe", str(DATA / "compare" / "onesided.csv"), "--json"])
    assert (one_sided.exit_code, '"INCONCLUSIVE"' in one_sided.output) == (12, True)
    other = CliRunner().invoke(app, ["diffmsprobe", str(DATA / "README.md")])
    assert "no comparison table of msprobe" in str(other.exception)
