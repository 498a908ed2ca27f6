"""Every fault of the catalogue really happens in a run, and L0 to L5 say of it what the catalogue declares.

Baseline and candidate are recorded here, on one machine: the bits of another machine's BLAS are not part of the claim.
The manifest says what kind of model the rehearsal trains; without that L5 may be unsure of a fault, and never passes it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from urllib.parse import quote

import pytest
from evidence_kit import REPO

from pytest_migparity.assess import assess, judge_evidence
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Declared, Floors, default_limits
from pytest_migparity.core.manifest import Manifest, load_manifest
from pytest_migparity.core.verdict import Outcome, State, Verdict
from pytest_migparity.rehearsal.faults import CATALOGUE, Fault
from pytest_migparity.rehearsal.recipe import recipe_from
from pytest_migparity.rehearsal.rehearse import rehearse
from pytest_migparity.sides import Side
from pytest_migparity.wire import receipt
from pytest_migparity.wire.receipt import recipe_hash

FIXTURES = REPO / "fixtures"
MANIFESTS = {name: load_manifest(FIXTURES / name / "model.toml") for name in ("rehearsal", "lingbot")}
OF_NO_FAMILY = MANIFESTS["rehearsal"].model_copy(
    update={"model": MANIFESTS["rehearsal"].model.model_copy(update={"family": None})})
RECIPE = MANIFESTS["rehearsal"].recipe.canonical()

ISSUE = {  # kinds and faults as the issue lists them, in the catalogue's spelling
    "precision": {"bf16", "fp16-loss-scale", "int8-weights"},
    "gradient": {"missing-bias-gradient", "wrong-reduction", "clipping-ignored", "accumulation-not-averaged"},
    "optimizer": {"eps-misplaced", "weight-decay-coupled", "bf16-master-weights"},
    "data": {"data-order", "off-by-one", "sample-corrupted"},
    "input": {"feature-scaled", "six-features-scaled", "axis-flip", "stale-normalisation"},
    "weights": {"other-checkpoint", "layer-scaled", "permuted-columns"},
    "network": {"relu-for-gelu", "euler-9"},
    "environment": {"other-version", "other-origin", "stale-evidence"},
    "degenerate": {"all-zero-output", "untrained"},
}
HANDLES = {"L0": "env", "L1": "weights", "L2": "inputs", "L3": "forward", "L4": "step", "L6": "actions",
           "L7": "rollouts"}
LADDER = ("L0", "L1", "L2", "L3", "L4", "L5", "L6", "L7")
HARMLESS = {"other-kernel", "two-blas-threads", "undeclared-package-bump", "euler-11"}


def judged(level: str, manifest: Manifest, home: Path, case: str = "main", limits: Mapping[str, Declared] | None = None,
           **sites: Path) -> Verdict:
    """The verdict of one level as the conformance test reaches it; a side without a site is the embedded one."""
    handles = []
    for name in ("baseline", "candidate"):
        side = Side(manifest, name, home, f"file:{quote(str(sites[name]))}" if name in sites else None)
        handles.append(side.loss(case) if level == "L5" else getattr(side, HANDLES[level])())
    return assess(level, *handles, manifest=manifest, limits=limits or default_limits(LEVELS[level]))


def every_level(baseline: Path, candidate: Path) -> dict[str, Verdict]:
    return {level: judged(level, MANIFESTS["rehearsal"], FIXTURES / "rehearsal", baseline=baseline, candidate=candidate)
            for level in LADDER}


def violated(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.finding.checks if check.state is State.VIOLATED]


@pytest.fixture(scope="session")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The official run of this machine, with its rerun on another BLAS kernel: the floor."""
    out = tmp_path_factory.mktemp("official") / "baseline"
    rehearse(out, recipe=RECIPE, rerun=True)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("fault", [pytest.param(fault, id=name) for name, fault in CATALOGUE.items()])
def test_a_fault_gets_the_outcome_that_was_declared_before_it_was_run(
    official: Path, tmp_path: Path, fault: Fault
) -> None:
    rehearse(tmp_path / "candidate", recipe=RECIPE, fault=fault.name)
    found = every_level(official, tmp_path / "candidate")
    assert set(LADDER[:6]) <= set(fault.expect)
    assert {level: str(found[level].outcome) for level in fault.expect} == fault.expect, \
        {level: violated(verdict) for level, verdict in found.items()}
    assert {verdict.producers for verdict in found.values()} == {("rehearsal",)}
    _says_where(fault, found)
    unsure = judged("L5", OF_NO_FAMILY, FIXTURES / "rehearsal", baseline=official, candidate=tmp_path / "candidate").outcome
    assert unsure in (Outcome.INCONCLUSIVE, Outcome(fault.expect["L5"])), "without a family another verdict"
    if fault.stale:
        codes = [[(note.code, note.params["side"]) for note in verdict.finding.notes[:1]] for verdict in found.values()]
        assert codes == [[("recipe-differs", "candidate")]] * len(LADDER)
    else:
        coverage = found["L5"].finding.coverage
        assert (coverage.compared, coverage.of, coverage.dropped) == (100, 100, 0)


def _says_where(fault: Fault, found: Mapping[str, Verdict]) -> None:
    """A FAIL names its first divergence, in the declared place; a PASS names none."""
    environment, loss = (found[level].finding.first_divergence for level in ("L0", "L5"))
    if fault.expect["L0"] == "FAIL":
        assert environment is not None
        assert environment.at == fault.first_key
    elif fault.expect["L0"] == "PASS":
        assert environment is None
    red = [level for level in ("L1", "L2", "L3", "L4") if fault.expect[level] == "FAIL"]
    if red:
        divergence = found[red[0]].finding.first_divergence
        assert divergence is not None
        assert divergence.at == fault.first_tensor, (red[0], divergence)
    if fault.expect["L5"] == "FAIL":
        assert loss is not None
        assert loss.kind == "step"
        first, last = fault.first_step or (-1, -1)
        assert first <= int(loss.at) <= last, f"step {loss.at}, declared {first} to {last}"
    elif fault.expect["L5"] == "PASS":
        assert loss is None


def test_the_catalogue_has_every_fault_that_the_issue_names() -> None:
    by_kind: dict[str, set[str]] = {}
    for fault in CATALOGUE.values():
        by_kind.setdefault(fault.kind, set()).add(fault.name)
    assert by_kind == {**ISSUE, "harmless": HARMLESS}
    assert sum(kind != "harmless" for kind in (fault.kind for fault in CATALOGUE.values())) >= 18


def test_what_is_declared_is_no_surprise_for_its_kind() -> None:
    """A catalogue that declares a broken gradient PASS would let the judge off: the declarations are held themselves."""
    for fault in CATALOGUE.values():
        if fault.kind == "harmless" or fault.name == "euler-9":
            assert (fault.expect["L0"], fault.expect["L5"]) == ("PASS", "PASS"), fault.name
        elif fault.name == "stale-evidence":
            assert (fault.expect["L0"], fault.expect["L5"]) == ("INCONCLUSIVE", "INCONCLUSIVE")
        elif fault.kind == "environment":
            assert (fault.expect["L0"], fault.expect["L5"]) == ("FAIL", "PASS"), fault.name
            assert fault.first_key
        else:
            assert (fault.expect["L0"], fault.expect["L5"]) == ("PASS", "FAIL"), fault.name
            assert fault.first_step is not None
            assert fault.first_step[1] < RECIPE["steps"] // 5, "a first step that may lie anywhere says nothing"
            assert "FAIL" in {fault.expect[level] for level in ("L1", "L2", "L3", "L4")}, "no level says where"
            assert fault.first_tensor is not None


@pytest.mark.slow
def test_a_fault_fails_from_a_fresh_folder_with_two_commands(tmp_path: Path) -> None:
    """`migparity rehearse --fault eps-misplaced --out d`, then pytest -m L5 with d as the candidate: FAIL, exit 1."""
    migparity = [sys.executable, "-c", "from pytest_migparity.cli import main; main()"]
    made = subprocess.run([*migparity, "rehearse", "--fault", "eps-misplaced", "--out", "d"], cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert made.stdout.strip() == "d: actions.npz, artifacts.json, data.digest, env.json, loss.jsonl, rank0.record, rollouts.jsonl, weights.digest"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "L5", "--migparity-model", "rehearsal", "--migparity-site",
         "candidate=file:d", "-p", "no:cacheprovider"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "rehearsal · L5 loss · FAIL" in done.stdout
    assert "rehearsal: accuracy lost? YES, first at L5" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


EMBEDDED = [("lingbot", "baseline"), ("lingbot", "candidate"), ("rehearsal", "baseline"), ("rehearsal", "candidate")]


@pytest.mark.parametrize("model, side", EMBEDDED)
def test_embedded_evidence_is_of_the_recipe_in_its_manifest(model: str, side: str) -> None:
    """A recipe that was edited after the recording would make the newcomer's first verdict INCONCLUSIVE."""
    folder, recipe = FIXTURES / model / side, MANIFESTS[model].recipe.canonical()
    signed = receipt.read(str(folder))
    assert signed is not None
    assert (signed.producer, signed.recipe) == ("rehearsal", recipe_hash(recipe))
    listed = {entry.path for entry in signed.files}
    assert listed | {receipt.NAME} == {path.name for path in folder.iterdir()}
    assert all(receipt.entry_for(str(folder), entry.path, entry.kind, entry.series, entry.rerun) == entry
               for entry in signed.files)
    lock = json.loads((folder / "env.json").read_text("utf-8"))
    assert lock.get("receipt") == receipt.NAME, "without the mark a lost receipt is not missed: record the fixtures again"
    effective = lock["configs"]["recipe"]["values"]
    assert effective == asdict(recipe_from(recipe)), "the training's constants changed: record the fixtures again"
    assert len((folder / "loss.jsonl").read_text("utf-8").splitlines()) == recipe["steps"]


@pytest.mark.slow
def test_embedded_losses_are_what_the_training_code_gives_today(official: Path) -> None:
    """Within 1e-3, which every other CPU keeps over 20 steps and no change to the training code does."""
    today, recorded = ([json.loads(line)["loss"] for line in (folder / "loss.jsonl").read_text("utf-8").splitlines()]
                       for folder in (official, FIXTURES / "rehearsal" / "baseline"))
    assert today[:20] == pytest.approx(recorded[:20], rel=1e-3)


@pytest.mark.parametrize("model, level, case, outcome", [
    ("lingbot", "L0", "main", Outcome.INCONCLUSIVE), ("lingbot", "L5", "main", Outcome.PASS),
    ("lingbot", "L5", "printed", Outcome.PASS),
    *((model, level, "main", Outcome.PASS) for model in ("lingbot", "rehearsal") for level in ("L1", "L2", "L3", "L4")),
    ("rehearsal", "L0", "main", Outcome.PASS), ("rehearsal", "L5", "main", Outcome.PASS),
])
def test_embedded_evidence_judges_as_the_readme_says(model: str, level: str, case: str, outcome: Outcome) -> None:
    manifest = MANIFESTS[model]
    verdict = judged(level, manifest, FIXTURES / model, case)
    assert verdict.outcome is outcome
    assert {witness.producer for witness in verdict.evidence} == {"rehearsal"}
    assert {witness.side for witness in verdict.evidence} == {"baseline", "candidate"}
    assert verdict.display == ("lingbot@rehearsal" if model == "lingbot" else "rehearsal")
    if level == "L5":
        assert (verdict.finding.coverage.compared, verdict.finding.coverage.of) == (manifest.recipe.steps,) * 2
        assert verdict.finding.first_divergence is None


def test_the_embedded_lingbot_stack_cannot_be_told_for_want_of_transformers() -> None:
    """The rehearsal has no transformers: absent on both sides proves nothing."""
    notes = judged("L0", MANIFESTS["lingbot"], FIXTURES / "lingbot").finding.notes
    assert {note.params["name"] for note in notes if note.code == "env-absent"} == {"transformers", "lerobot", "datasets"}


def test_the_printed_case_knows_its_digits_and_needs_no_lifted_limit() -> None:
    """Four decimals at a loss of 1.48: half a unit on both sides is 1e-4 / 1.4826 = 6.7e-5, below the published 1e-3."""
    checks = {check.name: check for check in judged("L5", MANIFESTS["lingbot"], FIXTURES / "lingbot",
                                                     "printed").finding.checks}
    limits = {name: check.limit for name, check in checks.items() if check.limit is not None}
    assert [name for name, limit in limits.items() if limit.lifted or limit.blind] == []
    assert limits["step0"].resolution == pytest.approx(6.745e-5, rel=1e-3)
    assert limits["step0"].effective == 1e-3


def test_the_embedded_full_precision_case_needs_no_lifted_limit() -> None:
    for model in MANIFESTS:
        checks = judged("L5", MANIFESTS[model], FIXTURES / model).finding.checks
        assert not any(check.limit.lifted for check in checks if check.limit is not None)


def test_another_recipe_makes_the_embedded_evidence_stale() -> None:
    """The counterpart: the fixtures pass for their recipe, not because nobody looks at it."""
    manifest = MANIFESTS["rehearsal"]
    later = manifest.model_copy(update={"recipe": manifest.recipe.model_copy(update={"seed": 1})})
    for level in LADDER:
        verdict = judged(level, later, FIXTURES / "rehearsal")
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert [note.code for note in verdict.finding.notes[:2]] == ["recipe-differs"] * 2


def test_a_limit_below_what_another_kernel_does_fails_the_embedded_pair() -> None:
    """The verdict really hangs on the limits: with step0 = 1e-12 and no floors the two kernels part."""
    manifest = MANIFESTS["rehearsal"]
    limits = {name: replace(limit, value=1e-12) if name == "step0" else limit
              for name, limit in default_limits(LEVELS["L5"]).items()}
    baseline, candidate = (Side(manifest, name, FIXTURES / "rehearsal").loss().load()
                           for name in ("baseline", "candidate"))
    finding = judge_evidence("L5", baseline, candidate, limits=limits, floors=Floors(), policy=manifest.policy())
    assert finding.outcome is Outcome.FAIL
