"""From two handles to a verdict: what stands between the judge and evidence that proves nothing."""

import numpy as np
import pytest
from evidence_kit import curve
from recordings import event, recording

from pytest_migparity.assess import assess
from pytest_migparity.core.evidence import Evidence, Recorded, Trajectory
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import default_limits
from pytest_migparity.core.manifest import Manifest, load_manifest
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.sides import Handle, Side
from pytest_migparity.wire import receipt, record

MANIFEST = Manifest.model_validate({"model": {"name": "m"}, "baseline": {"site": "file:a"},
                                    "candidate": {"site": "file:b"}})
RUN = curve()
PARTED = [loss * (1.006 if step > 20 else 1.0) for step, loss in enumerate(curve(offset=1e-6))]


def recorded(losses, side, sha256, producer="real"):
    steps = np.arange(len(losses))
    table = Trajectory(steps, {"loss": np.array(losses)}, {"loss": np.zeros(len(losses))})
    return Recorded(table, Witness(side, producer, f"{sha256}.jsonl", sha256))


def verdict(candidate, reruns=(), producer="real"):
    ours = Evidence("baseline", "loss", (recorded(RUN, "baseline", "run", producer),), tuple(reruns))
    theirs = Evidence("candidate", "loss", (recorded(candidate, "candidate", "port", producer),))
    handles = [Handle(side.side, "loss", "main", lambda side=side: side) for side in (ours, theirs)]
    return assess("L5", *handles, manifest=MANIFEST, limits=default_limits(LEVELS["L5"]))


@pytest.mark.parametrize(("apart", "tail"), [(1.003, 3 * np.log(1.003)), (1.02, 3e-2)])
def test_reruns_of_the_baseline_lift_limits_up_to_the_cap_and_say_so(apart, tail):
    """A rerun 0.3 % apart makes 0.9 % ordinary, one of 2 % no more than the cap; one pair leaves step0 as published."""
    rerun = recorded([loss * (apart if step > 20 else 1.0) for step, loss in enumerate(RUN)], "baseline", "again")
    limits = {check.name: check.limit for check in verdict(PARTED, [rerun]).finding.checks}
    assert verdict(PARTED).outcome is Outcome.FAIL  # a tail of 6e-3
    assert limits["tail"].floor == pytest.approx(np.log(apart))
    assert limits["tail"].effective == pytest.approx(tail)
    assert limits["step0"].effective == 1e-3


def test_two_reruns_are_three_pairs_and_hold_the_first_step_to_what_they_show():
    reruns = [recorded([loss * (1 + size * (-1) ** step) for step, loss in enumerate(RUN)], "baseline", f"again{size}")
              for size in (1e-6, 2e-6)]
    limits = {check.name: check.limit for check in verdict(PARTED, reruns).finding.checks}
    assert limits["step0"].floor == pytest.approx(2e-6, rel=1e-3)
    assert limits["step0"].effective == 5e-5


@pytest.mark.parametrize("sha256", ["port", "port and a newline"])
def test_the_candidates_own_log_as_the_baselines_rerun_excuses_nothing(sha256):
    found = verdict(PARTED, [recorded(PARTED, "baseline", sha256)])
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "rerun-is-run" in [note.code for note in found.finding.notes]


def test_a_rehearsals_rerun_may_repeat_the_other_side():
    near = curve(offset=1e-7)
    assert verdict(near, [recorded(near, "baseline", "again", "rehearsal")], "rehearsal").outcome is Outcome.PASS


def test_a_rerun_of_the_baseline_lifts_the_limits_of_l3_to_three_times_what_it_shows(tmp_path):
    """A recording whose rerun is 3 of the limit's units away lifts the limit of 4 to 9; without the rerun it stays."""
    array = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32)
    noise = np.random.default_rng(1).standard_normal(array.shape)
    noise *= np.linalg.norm(array) / np.linalg.norm(noise) * 2.0**-21
    (tmp_path / "model.toml").write_text('[model]\nname = "m"\n[baseline]\nsite = "file:baseline"\n[candidate]\n'
                                         'site = "file:candidate"\n')
    manifest = load_manifest(tmp_path / "model.toml")
    for side, files in (("baseline", {"r.record": 0.0, "r.rerun1.record": 3.0}), ("candidate", {"r.record": 7.0})):
        (tmp_path / side).mkdir()
        for name, size in files.items():
            made = recording([event("output", "x", (array + size * noise).astype(np.float32))])
            (tmp_path / side / name).write_text(record.to_text(made))
        entries = tuple(receipt.entry_for(str(tmp_path / side), name, "forward", "", int("rerun" in name))
                        for name in files)
        receipt.write(str(tmp_path / side), receipt.Receipt("rehearsal", receipt.recipe_hash({}), entries))

    def verdict():
        sides = [Side(manifest, side, tmp_path).forward() for side in ("baseline", "candidate")]
        return assess("L3", *sides, manifest=manifest, limits=default_limits(LEVELS["L3"]))

    lifted = verdict()
    assert lifted.outcome is Outcome.PASS, lifted.finding.notes
    assert lifted.finding.checks[0].limit.effective == pytest.approx(9, rel=0.3)
    (tmp_path / "baseline" / "artifacts.json").unlink()
    (tmp_path / "baseline" / "r.rerun1.record").unlink()
    (tmp_path / "candidate" / "artifacts.json").unlink()
    assert verdict().outcome is Outcome.FAIL


def test_a_rerun_that_cannot_be_compared_measures_no_floor(tmp_path):
    """Its shape is another at one module: that is no noise, and what else it shows lifts nothing."""
    array = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32)
    (tmp_path / "model.toml").write_text('[model]\nname = "m"\n[baseline]\nsite = "file:baseline"\n[candidate]\n'
                                         'site = "file:candidate"\n')
    manifest = load_manifest(tmp_path / "model.toml")
    for side, files in (("baseline", {"r.record": 1.0, "r.rerun1.record": 1 + 2.0**-19}),
                        ("candidate", {"r.record": 1 + 2.0**-18})):
        (tmp_path / side).mkdir()
        for name, factor in files.items():
            more = [event("output", "y", array)] if "rerun" in name else []
            made = recording([event("output", "x", (array * factor).astype(np.float32)), *more])
            (tmp_path / side / name).write_text(record.to_text(made))
        entries = tuple(receipt.entry_for(str(tmp_path / side), name, "forward", "", int("rerun" in name))
                        for name in files)
        receipt.write(str(tmp_path / side), receipt.Receipt("rehearsal", receipt.recipe_hash({}), entries))
    sides = [Side(manifest, side, tmp_path).forward() for side in ("baseline", "candidate")]
    found = assess("L3", *sides, manifest=manifest, limits=default_limits(LEVELS["L3"]))
    assert found.finding.checks[0].limit.effective == 4
    assert found.outcome is Outcome.FAIL  # 8 units away


def test_one_ranks_file_on_both_sides_proves_nothing(tmp_path):
    """Not only the first rank's: of the second the same file was handed in for both."""
    (tmp_path / "model.toml").write_text('[model]\nname = "m"\n[baseline]\nsite = "file:baseline"\n[candidate]\n'
                                         'site = "file:candidate"\n')
    manifest = load_manifest(tmp_path / "model.toml")
    for side in ("baseline", "candidate"):
        (tmp_path / side).mkdir()
        for rank in range(2):
            made = recording([event("output", "x", np.ones(100, np.float32) + rank)], rank=rank, world=2,
                             made=side if rank == 0 else "both")
            (tmp_path / side / f"rank{rank}.record").write_text(record.to_text(made))
    sides = [Side(manifest, side, tmp_path).forward() for side in ("baseline", "candidate")]
    found = assess("L3", *sides, manifest=manifest, limits=default_limits(LEVELS["L3"]))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "record-same-file" in [item.code for item in found.finding.notes]
    assert len(found.evidence) == 4


@pytest.mark.parametrize("mode, noise, expected", [("keyed", "injected", Outcome.PASS),
                                                   ("unkeyed", "injected", Outcome.INCONCLUSIVE),
                                                   ("unkeyed", "none", Outcome.PASS)])
def test_a_run_that_drew_outside_is_open_where_the_recipe_injects_its_noise(tmp_path, mode, noise, expected):
    (tmp_path / "model.toml").write_text(f'[model]\nname = "m"\n[recipe]\nnoise = "{noise}"\n[baseline]\n'
                                         'site = "file:baseline"\n[candidate]\nsite = "file:candidate"\n')
    manifest = load_manifest(tmp_path / "model.toml")
    for side in ("baseline", "candidate"):
        (tmp_path / side).mkdir()
        text = record.to_text(recording([event("output", "x", np.arange(9, dtype=np.float32) + (side == "candidate") * 1e-7)],
                                        made=side))
        (tmp_path / side / "r.record").write_text(text)
        draws = receipt.Draws(mode, {"m:noise": 3}, {"m:dropout": 2} if mode == "unkeyed" else {})
        receipt.write(str(tmp_path / side), receipt.Receipt(
            "real", receipt.recipe_hash(manifest.recipe.canonical()),
            (receipt.entry_for(str(tmp_path / side), "r.record", "forward"),), draws=draws))
    sides = [Side(manifest, side, tmp_path).forward() for side in ("baseline", "candidate")]
    verdict = assess("L3", *sides, manifest=manifest, limits=default_limits(LEVELS["L3"]))
    assert verdict.outcome is expected, verdict.finding.notes
    unkeyed = [item.params["why"] for item in verdict.finding.notes if item.code == "draws-unkeyed"]
    assert unkeyed == ([] if expected is Outcome.PASS else ["m:dropout 2 times"] * 2)
