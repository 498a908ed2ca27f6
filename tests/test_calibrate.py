"""`migparity calibrate`: what reruns show is what is printed, written, and later held against the candidate."""

import json
import math
import shutil
import sys
from fractions import Fraction

import numpy as np
import pytest
from evidence_kit import curve, write_losses

from pytest_migparity import cli, manifest_edit
from pytest_migparity.assess import assess
from pytest_migparity.calibrate import at_least, calibrate
from pytest_migparity.core.errors import UserError
from pytest_migparity.core.evidence import Evidence, Policy, Recorded, Trajectory
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floor, Floors, default_limits, limit_for
from pytest_migparity.core.manifest import load_manifest
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.judges.difftraj import judge_loss
from pytest_migparity.judges.loss_departure import SHIPPED
from pytest_migparity.sides import Side

L5 = LEVELS["L5"]
CHECKS = ["step0", "first3", "spike", "final", "mean", "tail", "drift", "spearman", "order"]
MANIFEST = """\
# the port of my policy
[model]
name = "mine" # as everybody calls it

[baseline]
site = "file:baseline"

[candidate]
site = "file:candidate"

[floors.L5]
tail = { value = 1e-4, runs = 3, because = "three reruns in May" } # ask Li

# what settles the answer
[ladder]
enough = ["L5"]
"""


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["migparity", "calibrate", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    shown = capsys.readouterr()
    return stop.value.code, shown.out, shown.err


def log(path, losses, seconds=1.0):
    """A loss.jsonl that also says how long a step took, as two runs never agree on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"step": step, "loss": loss, "seconds": seconds + step}) + "\n"
                            for step, loss in enumerate(losses)))
    return path


@pytest.fixture
def apart(tmp_path):
    """Three runs whose ln loss is 0, 1e-5 and 3e-5 above the curve: pairs 1e-5, 2e-5 and 3e-5 apart at every step."""
    return [log(tmp_path / f"{name}.jsonl", curve(offset=offset))
            for name, offset in (("a", 0.0), ("b", 1e-5), ("c", 3e-5))]


@pytest.fixture
def equal(tmp_path):
    return [log(tmp_path / f"{name}.jsonl", curve(), seconds) for name, seconds in (("a", 1), ("b", 2), ("c", 3))]


@pytest.fixture
def wild(tmp_path):
    """Two runs that part by 10 % half way: nobody's rerun."""
    parted = [loss * (1.1 if step >= 30 else 1.0) for step, loss in enumerate(curve())]
    return [log(tmp_path / "w1.jsonl", curve()), log(tmp_path / "w2.jsonl", parted)]


@pytest.fixture
def manifest(tmp_path):
    path = tmp_path / "model" / "model.toml"
    path.parent.mkdir()
    path.write_text(MANIFEST)
    return path


# ---- what is measured


def test_floors_are_the_largest_over_all_pairs_and_the_figures_geometric_means(apart):
    found = calibrate(apart)
    floors = found.floors.by_check
    assert list(floors) == [*CHECKS, "late", "noise"]
    for name in ("step0", "first3", "final", "mean", "tail"):
        assert floors[name].value == pytest.approx(3e-5, rel=1e-5)
    assert floors["drift"].value == pytest.approx(0, abs=1e-9)
    assert floors["spearman"].value == pytest.approx(0, abs=1e-9)
    assert floors["late"].value == pytest.approx((1e-5 * 2e-5 * 3e-5) ** (1 / 3), rel=1e-5)
    assert {(floor.runs, floor.pairs) for floor in floors.values()} == {(3, 3)}
    assert (found.first, found.last, found.steps, found.runs) == (0, 59, 60, ("a.jsonl", "b.jsonl", "c.jsonl"))
    limits = {row["name"]: row["limit"] for row in found.document()["floors"]}
    assert limits["step0"] == pytest.approx(3e-4, rel=1e-5)  # ten floors, above the measured 5e-5 and below 1e-3
    assert (limits["mean"], limits["tail"], limits["late"]) == (1e-2, 5e-3, None)


def test_a_floor_above_a_third_of_the_limit_lifts_it(tmp_path):
    runs = [log(tmp_path / "a.jsonl", curve()), log(tmp_path / "b.jsonl", curve(offset=4e-3))]
    rows = {row["name"]: row for row in calibrate(runs).document()["floors"]}
    assert rows["mean"]["limit"] == pytest.approx(1.2e-2, rel=1e-5)
    assert rows["step0"] == {"name": "step0", "value": pytest.approx(4e-3), "runs": 2, "pairs": 1, "refused": True,
                             "limit": 1e-3, "direction": "max"}


def test_only_the_first_steps_are_measured_where_that_is_asked(tmp_path):
    parted = [loss * (1.001 if step >= 30 else 1.0) for step, loss in enumerate(curve())]
    runs = [log(tmp_path / "a.jsonl", curve()), log(tmp_path / "b.jsonl", parted)]
    assert calibrate(runs).floors.of("final") == pytest.approx(math.log(1.001), rel=1e-5)
    head = calibrate(runs, steps=30)
    assert (head.last, head.floors.of("final")) == (29, 0.0)


def test_a_model_brings_its_limits_and_its_steps(tmp_path, manifest, apart):
    manifest.write_text(MANIFEST + '[recipe]\nsteps = 40\n[limits.L5]\nmean = 1e-6\n')
    found = calibrate(apart, manifest=load_manifest(manifest))
    assert found.steps == 40
    assert {row["name"]: row["limit"] for row in found.document()["floors"]}["mean"] == pytest.approx(9e-5, rel=1e-5)
    assert calibrate(apart, steps=50, manifest=load_manifest(manifest)).steps == 50


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path):
    runs = [log(tmp_path / name / "out" / "loss.jsonl", curve(offset=offset))
            for name, offset in (("one", 0.0), ("two", 1e-6))]
    assert calibrate(runs).runs == ("one/out/loss.jsonl", "two/out/loss.jsonl")


def test_a_log_of_four_decimals_says_that_its_floor_is_the_digits(tmp_path):
    for name, seconds in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.csv").write_text("step,loss,seconds\n" + "".join(
            f"{step},{loss:.4f},{seconds}\n" for step, loss in enumerate(curve())))
    notes = {item.code: item.params for item in calibrate([tmp_path / "a.csv", tmp_path / "b.csv"]).notes}
    smallest = min(round(loss, 4) for loss in curve())
    assert notes["calibrate-digits"]["digits"] == pytest.approx(1e-4 / smallest)  # half a unit on either side


# ---- what is no measurement


def test_one_run_is_none(apart, monkeypatch, capsys):
    code, _, error = run(monkeypatch, capsys, apart[0])
    assert (code, "give two logs or more, not 1" in error) == (4, True)
    assert run(monkeypatch, capsys)[0] == 4


@pytest.mark.parametrize("how", ["twice", "copy", "link"])
def test_one_run_under_two_names_measures_nothing(how, tmp_path, apart):
    other = tmp_path / "other.jsonl"
    if how == "copy":
        shutil.copy(apart[0], other)
    elif how == "link":
        other.symlink_to(apart[0])
    with pytest.raises(UserError, match=r"the same bytes as .*a.jsonl: one run under two names"):
        calibrate([apart[0], apart[1], apart[0] if how == "twice" else other])


@pytest.mark.parametrize("bad, shown", [(math.nan, "nan"), (math.inf, "inf"), (-0.5, "-0.5"), (0.0, "0")])
def test_a_broken_run_is_named_with_its_step(bad, shown, tmp_path, apart):
    losses = curve()
    losses[7] = bad
    with pytest.raises(UserError, match=rf"broken.jsonl: the loss at step 7 is {shown}, .*leave it out"):
        calibrate([*apart, log(tmp_path / "broken.jsonl", losses)])


def test_two_runs_broken_at_the_same_step_are_broken(tmp_path):
    losses = curve()
    losses[7] = math.nan
    with pytest.raises(UserError, match="the loss at step 7 is nan"):
        calibrate([log(tmp_path / "a.jsonl", losses, 1), log(tmp_path / "b.jsonl", losses, 2)])


def test_runs_that_cover_other_steps_are_refused_with_what_would_do(tmp_path, apart):
    short = log(tmp_path / "short.jsonl", curve()[:50], 2)
    with pytest.raises(UserError, match=r"short.jsonl has no step 50-59; leave that run out, or .* --steps"):
        calibrate([apart[0], short])
    assert calibrate([apart[0], short], steps=50).steps == 50
    with pytest.raises(UserError, match="has no step 60-99"):
        calibrate(apart, steps=100)


def test_a_log_that_prints_every_tenth_step_covers_the_recipe(tmp_path):
    for name, offset in (("a", 0.0), ("b", 1e-6)):
        (tmp_path / f"{name}.csv").write_text("step,loss\n" + "".join(
            f"{step},{loss!r}\n" for step, loss in enumerate(curve(101, offset=offset)) if step and step % 10 == 0))
    assert calibrate([tmp_path / "a.csv", tmp_path / "b.csv"], steps=100).steps == 10


def test_rows_of_which_nobody_knows_which_count_are_refused(tmp_path, apart):
    with (twice := tmp_path / "twice.jsonl").open("w") as stream:
        for step, loss in enumerate(curve()):
            stream.write(json.dumps({"step": step, "loss": loss}) + "\n")
            if step == 3:
                stream.write(json.dumps({"step": step, "loss": loss * 1.5}) + "\n")
    with pytest.raises(UserError, match=r"nobody knows which count; migparity readlog .*twice.jsonl"):
        calibrate([apart[0], twice])


@pytest.mark.parametrize("text", ["", "no log at all\n", "step,loss\n"])
def test_what_is_no_log_is_a_mistake_of_usage(text, tmp_path, apart, monkeypatch, capsys):
    (tmp_path / "none.log").write_text(text)
    code, _, error = run(monkeypatch, capsys, apart[0], tmp_path / "none.log")
    assert (code, "none.log" in error) == (4, True)


@pytest.mark.parametrize("level, said", [("L0", "has no floors; levels that have: L5"), ("L9", "no level 'L9'")])
def test_a_level_without_floors_is_refused(level, said, apart, monkeypatch, capsys):
    code, _, error = run(monkeypatch, capsys, "--level", level, *apart)
    assert (code, said in error) == (4, True)


def test_a_model_that_draws_its_noise_on_the_device_needs_no_floors(manifest, apart, monkeypatch, capsys):
    manifest.write_text(MANIFEST + '[recipe]\nnoise = "device"\n')
    code, _, error = run(monkeypatch, capsys, *apart, "--write", manifest)
    assert (code, "it needs no floors" in error) == (4, True)


# ---- what it says of a further pair


def test_the_bound_counts_pairs_that_share_no_run():
    assert [at_least(runs) for runs in (2, 3, 4, 5, 10, 11)] == [
        Fraction(1, 2), Fraction(1, 2), Fraction(2, 3), Fraction(2, 3), Fraction(5, 6), Fraction(5, 6)]


@pytest.mark.parametrize("draw", ["normal", "cauchy", "coin", "odd one out"])
@pytest.mark.parametrize("runs", [2, 3, 4, 5, 8])
def test_a_further_pair_stays_within_the_floor_as_often_as_was_said(runs, draw):
    """Whatever the runs are like: 20,000 sides, `runs` reruns each and two more; |x - y| is how far a pair is apart."""
    rng = np.random.default_rng(runs)
    size = (20_000, runs + 2)
    x = {"normal": rng.normal, "cauchy": lambda size: rng.standard_cauchy(size),
         "coin": lambda size: rng.integers(0, 2, size).astype(float),
         "odd one out": lambda size: (rng.random(size) < 0.1) * rng.random(size)}[draw](size=size)
    i, j = np.triu_indices(runs, 1)
    floor = np.abs(x[:, i] - x[:, j]).max(axis=1)
    within = float((np.abs(x[:, -1] - x[:, -2]) <= floor).mean())
    assert within >= float(at_least(runs)) - 4 * math.sqrt(0.25 / len(x))
    again = float((np.abs(x[:, 0] - x[:, -1]) <= floor).mean())  # a measured run against a further one: one run less
    assert again >= float(at_least(runs - 1)) - 4 * math.sqrt(0.25 / len(x))
    if runs == 2 and draw in ("normal", "cauchy"):
        assert within == pytest.approx(0.5, abs=0.015)  # there the bound is met exactly: by symmetry 1/2


# ---- a floor of exactly 0


def test_equal_losses_of_runs_that_differ_otherwise_are_a_floor_of_0(equal, monkeypatch, capsys):
    found = calibrate(equal)
    assert {name: floor.value for name, floor in found.floors.by_check.items()} == dict.fromkeys(CHECKS, 0.0)
    assert [item.code for item in found.notes] == ["calibrate-equal"]
    code, out, _ = run(monkeypatch, capsys, *equal)
    assert code == 0
    assert "all 3 pairs are equal in every loss" in out


def test_some_equal_pairs_are_said(apart, tmp_path):
    again = log(tmp_path / "again.jsonl", curve(), seconds=9)
    notes = {item.code: item.params for item in calibrate([*apart, again]).notes}
    assert notes["calibrate-some-equal"] == {"equal": 1, "pairs": 6}


@pytest.mark.parametrize("pairs", [1, 3, 45])
def test_a_floor_of_0_leaves_the_published_limits(pairs):
    floors = Floors({name: Floor(0.0, "reruns", 10, pairs) for name in CHECKS})
    in_force = {name: limit_for(spec, default_limits(L5), floors).effective for name, spec in L5.checks.items()}
    published = {name: spec.default for name, spec in L5.checks.items()}
    measured = {} if pairs == 1 else {"step0": 5e-5, "first3": 1e-3}  # two floors and more: as measured
    assert in_force == {**published, **measured}


@pytest.mark.parametrize("family", ["dense", "moe", "dropout", None])
@pytest.mark.parametrize("shape", ["white", "walk"])
def test_floors_of_0_fail_no_harmless_pair(shape, family, equal):
    """1e-6 of noise, steady or gathering over the run, as another chip makes it."""
    floors, rng = calibrate(equal).floors, np.random.default_rng(0)
    steps, losses = np.arange(100), np.array(curve(100))
    for _ in range(50):
        noise = rng.normal(0, 1e-6, 100) if shape == "white" else np.cumsum(rng.normal(0, 1e-7, 100))
        sides = [Evidence(side, "loss", (Recorded(Trajectory(steps, {"loss": loss}, {"loss": np.zeros(100)}),
                                                  Witness(side, "manual", side, side)),))
                 for side, loss in (("baseline", losses), ("candidate", losses * np.exp(noise)))]
        finding = judge_loss(*sides, limits=default_limits(L5), floors=floors, policy=Policy(family=family))
        assert finding.outcome is Outcome.PASS


# ---- what is printed


def test_the_table_and_the_statement(apart, monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "--level", "L5", *apart)
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert out.splitlines()[0] == "L5: 3 runs, 3 pairs, 60 steps (0 to 59)"
    assert ["step0", "3.0e-05", "3", "3", "3.0e-04"] in lines
    assert ["mean", "3.0e-05", "3", "3", "1.0e-02"] in lines
    assert ["late", "1.8e-05", "3", "3", "weighed", "in", "departure"] in lines
    assert next(line for line in lines if line[:1] == ["spearman"])[-2:] == [">=", "0.9000"]
    assert ("with 3 runs (1 disjoint pairs) a further good pair stays within the largest floor of a check with "
            "probability at least 1/2, if it is made as these were; 3x the floor is what is allowed") in out
    assert "3 次运行（1 对互不重叠）" in run(monkeypatch, capsys, *apart, "--lang", "zh")[1]


def test_the_document(apart, monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, *apart, "--json")
    document = json.loads(out)
    assert code == 0
    assert document["schema"] == "migparity.calibration/1"
    assert document["confidence"] == {"disjoint_pairs": 1, "at_least": 0.5}
    assert document["steps"] == {"first": 0, "last": 59, "count": 60}
    assert [row["name"] for row in document["floors"]] == [*CHECKS, "late", "noise"]
    assert "written" not in document


@pytest.mark.parametrize("words, said", [
    (["--lang", "fr"], "expected en or zh"), (["--source", "us"], "--source goes with --import"),
    (["--replace"], "--replace with --write"), (["--import", "x.toml", "--source", "us"], "--import FILE takes no RUN")])
def test_options_that_do_not_go_together(words, said, apart, monkeypatch, capsys):
    code, _, error = run(monkeypatch, capsys, *apart, *words)
    assert (code, said in error) == (4, True)


# ---- what is written


def test_floors_land_in_the_manifest_and_everything_else_stays(manifest, apart, monkeypatch, capsys):
    manifest.write_text(MANIFEST.replace("tail = { value = 1e-4", "departure = { value = 0.1"))
    manifest.chmod(0o640)
    code, out, _ = run(monkeypatch, capsys, *apart, "--write", manifest)
    assert code == 0
    assert f"{manifest}: [floors.L5] step0, first3, spike, final, mean, tail, drift, spearman, order, late, noise written" in out
    lines = manifest.read_text().splitlines()
    old = manifest.read_text()
    added = [line for line in lines if "3 reruns of baseline: a.jsonl, b.jsonl, c.jsonl; 2" in line]
    assert len(added) == 11
    assert all(line.endswith('; at most 60 steps"}') for line in added)
    kept = "\n".join(line for line in lines if line not in added) + "\n"
    assert kept == MANIFEST.replace("tail = { value = 1e-4", "departure = { value = 0.1")
    assert lines.index(added[0]) == lines.index("# what settles the answer") - 12  # above the blank line
    floors = load_manifest(manifest).declared_floors("L5").by_check
    assert (floors["mean"].value, floors["mean"].runs, floors["mean"].pairs) == (pytest.approx(3e-5, rel=1e-5), 3, 3)
    assert floors["departure"].value == 0.1
    assert manifest.stat().st_mode & 0o777 == 0o640
    assert list(manifest.parent.iterdir()) == [manifest]

    code, out, _ = run(monkeypatch, capsys, *apart, "--write", manifest)
    assert (code, "nothing to write" in out, manifest.read_text()) == (0, True, old)


def test_another_floor_is_replaced_only_when_that_is_said(manifest, apart, monkeypatch, capsys):
    code, _, error = run(monkeypatch, capsys, *apart, "--write", manifest)
    assert code == 4
    assert "[floors.L5] tail: 0.0001 (3 runs) is there, 3e-05 (3 runs) is new; --replace puts" in error
    assert manifest.read_text() == MANIFEST
    assert run(monkeypatch, capsys, *apart, "--write", manifest, "--replace")[0] == 0
    assert load_manifest(manifest).declared_floors("L5").of("tail") == pytest.approx(3e-5, rel=1e-5)
    assert '; at most 60 steps" } # ask Li' in manifest.read_text()


def test_the_same_value_from_more_runs_is_another_floor(manifest, equal, monkeypatch, capsys):
    manifest.write_text(MANIFEST.replace("tail = { value = 1e-4, runs = 3", "tail = { value = 0.0, runs = 2"))
    code, _, error = run(monkeypatch, capsys, *equal, "--write", manifest)
    assert (code, "tail: 0.0 (2 runs) is there, 0.0 (3 runs) is new" in error) == (4, True)


def test_a_floor_that_no_manifest_accepts_is_said_and_not_written(manifest, wild, monkeypatch, capsys):
    manifest.write_text(MANIFEST.partition("[floors.L5]")[0])
    code, out, _ = run(monkeypatch, capsys, *wild, "--write", manifest)
    assert code == 12
    h, text = math.log(1.1), " ".join(out.split())  # a step of h after 30 of 60 points: mean h / 2, slope 1.475 h
    slope = h * 30 * (44.5 / 59 - 0.5) / (60 * (60**2 - 1) / 12 / 59**2)
    assert (f"not written, beyond what any reason excuses: mean {h / 2:.1e} > 3.0e-02, tail {h:.1e} > 3.0e-02, "
            f"drift {slope:.4f} > 6.0e-02. Reruns of one side that are this far apart do not repeat the run") in text
    assert "not written either: late, noise" in text
    assert {row["name"]: row["limit"] for row in calibrate(wild).document()["floors"]}["tail"] == 5e-3
    floors = load_manifest(manifest).declared_floors("L5").by_check
    assert floors["step0"].value == floors["first3"].value == 0.0
    assert not {"mean", "tail", "late", "noise"} & floors.keys()


def test_many_runs_are_named_up_to_five(tmp_path, manifest, monkeypatch, capsys):
    runs = [log(tmp_path / f"r{k}.jsonl", curve(offset=k * 1e-6)) for k in range(7)]
    assert run(monkeypatch, capsys, *runs, "--write", manifest, "--replace")[0] == 0
    because = load_manifest(manifest).floors["L5"]["mean"].because
    assert because.startswith("7 reruns of baseline: r0.jsonl, r1.jsonl, r2.jsonl, r3.jsonl, r4.jsonl, ...; 2")


@pytest.mark.parametrize("floors", [
    "", "[floors.L5]\n# none yet\n", "[floors]\nL5 = { drift = { value = 1e-5, because = \"May\" } }\n",
    "[floors.L5.drift]\nvalue = 1e-5\nbecause = \"May\"\n"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_however_floors_were_written_down(floors, ends, manifest, apart, monkeypatch, capsys):
    text = MANIFEST.partition("[floors.L5]")[0] + floors + "# the end\n"
    manifest.write_bytes(text.replace("\n", ends).encode())
    assert run(monkeypatch, capsys, *apart, "--write", manifest, "--replace")[0] == 0
    assert load_manifest(manifest).declared_floors("L5").of("mean") == pytest.approx(3e-5, rel=1e-5)
    assert "# the end" in manifest.read_text()


def test_a_link_stays_one_and_what_it_names_is_written(tmp_path, manifest, apart, monkeypatch, capsys):
    link = tmp_path / "here.toml"
    link.symlink_to(manifest)
    assert run(monkeypatch, capsys, *apart, "--write", link, "--replace")[0] == 0
    assert link.is_symlink()
    assert load_manifest(manifest).declared_floors("L5").of("mean") == pytest.approx(3e-5, rel=1e-5)


@pytest.mark.parametrize("text, said", [("[model\n", "not TOML"), ("[model]\nname = 'x'\n", "missing key"),
                                        (None, "cannot be read")])
def test_what_is_no_manifest_is_not_written_to(text, said, tmp_path, apart, monkeypatch, capsys):
    path = tmp_path / "model.toml"
    if text is not None:
        path.write_text(text)
    before = sorted(tmp_path.iterdir())
    code, _, error = run(monkeypatch, capsys, *apart, "--write", path)
    assert (code, said in error) == (4, True)
    assert sorted(tmp_path.iterdir()) == before
    assert text is None or path.read_text() == text


def test_an_edit_that_changes_anything_else_never_lands(manifest, apart, monkeypatch, capsys):
    put = manifest_edit._put
    monkeypatch.setattr(manifest_edit, "_put", lambda document, *rest: (put(document, *rest), document.pop("ladder")))
    code, _, error = run(monkeypatch, capsys, *apart, "--write", manifest, "--replace")
    assert (code, "nothing was written" in error) == (4, True)
    assert manifest.read_text() == MANIFEST
    assert list(manifest.parent.iterdir()) == [manifest]


# ---- what was measured elsewhere


def test_floors_and_limits_of_another_place_come_with_their_source(tmp_path, manifest, monkeypatch, capsys):
    bare = tmp_path / "lab.toml"
    bare.write_text('[floors.L5]\nmean = { value = 2e-5, runs = 5, because = "five nodes" }\norder = 0.002\n'
                    "[limits.L5]\ndrift = 2e-2\n[limits.L0]\nx = 1\n")
    code, out, _ = run(monkeypatch, capsys, "--import", bare, "--source", "lab \"B\", 8 cards", "--write", manifest)
    assert code == 0
    assert out == f"{manifest}: [floors.L5] mean, order written\n{manifest}: [limits.L5] drift written\n"
    after = load_manifest(manifest)
    floors, limits = after.declared_floors("L5").by_check, after.declared_limits("L5")
    assert floors["mean"] == Floor(2e-5, 'lab "B", 8 cards: five nodes', 5, 10)
    assert floors["order"] == Floor(0.002, 'lab "B", 8 cards', 1, 1)
    assert floors["tail"].value == 1e-4
    assert (limits["drift"].value, limits["drift"].because) == (2e-2, 'lab "B", 8 cards')
    assert set(limits) == {"drift"}
    assert 'drift = {value = 0.02, because = "lab' in manifest.read_text()


def test_nothing_of_a_replaced_limit_is_left(tmp_path, manifest, monkeypatch, capsys):
    manifest.write_text(MANIFEST + '[limits.L5]\ndrift = { value = 3e-2, runs = 4, because = "guessed" }\n')
    (tmp_path / "lab.toml").write_text("[limits.L5]\ndrift = 2e-2\n")
    words = ["--import", tmp_path / "lab.toml", "--source", "lab B", "--write", manifest]
    assert "drift: 0.03 (4 runs) is there, 0.02 is new" in run(monkeypatch, capsys, *words)[2]
    assert run(monkeypatch, capsys, *words, "--replace")[0] == 0
    assert manifest.read_text().replace(",  ", ", ").endswith('\ndrift = { value = 0.02, because = "lab B" }\n')


def test_a_whole_manifest_can_be_imported_from(tmp_path, manifest, monkeypatch, capsys):
    other = tmp_path / "other.toml"
    other.write_text(MANIFEST.replace("1e-4", "2e-4"))
    words = ["--import", other, "--source", "lab B", "--write", manifest]
    assert "0.0001 (3 runs) is there, 0.0002 (3 runs) is new" in run(monkeypatch, capsys, *words)[2]
    code, out, _ = run(monkeypatch, capsys, *words, "--replace", "--json")
    assert (code, json.loads(out)) == (0, {"written": {"floors": ["tail"]}})
    assert load_manifest(manifest).floors["L5"]["tail"].because == "lab B: three reruns in May"


@pytest.mark.parametrize("text, said", [
    ("[limits.L5]\nmean = 0.5\n", "mean = 0.5: beyond 0.03, which no reason excuses"),
    ("[floors.L5]\nmean = 0.5\n", "mean = 0.5: beyond 0.03"), ("[floors.L5]\nmaen = 1e-3\n", "did you mean 'mean'"),
    ("[floors.L5]\nmean = -1.0\n", "mean"), ("[floors.L5]\nmean = nan\n", "mean"),
    ("[floors.L5]\nmean = 'much'\n", "[floors.L5] mean = 'much': expected a number"),
    ("[floors.L5]\nmean = { value = 1e-3, evil = 1 }\n", "[floors.L5] mean"), ("floors = 3\n", "expected a number"),
    ("[floors.L4]\nx = 1\n", "nothing to import"), ("[model]\n", "nothing to import"), ("[[", "not TOML"),
    ("x = " + "[" * 5000, "not TOML"), ("#" * (1 << 20) + "\n", "larger than"), (None, "cannot be read")])
def test_what_cannot_be_imported_changes_nothing(text, said, tmp_path, manifest, monkeypatch, capsys):
    bare = tmp_path / "lab.toml"
    if text is not None:
        bare.write_text(text)
    code, _, error = run(monkeypatch, capsys, "--import", bare, "--source", "lab B", "--write", manifest)
    assert (code, said in error) == (4, True)
    assert manifest.read_text() == MANIFEST
    assert list(manifest.parent.iterdir()) == [manifest]


@pytest.mark.parametrize("words, said", [(["--write", "{}"], "--import needs --source"),
                                         (["--source", "lab B"], "needs --write")])
def test_an_import_needs_its_source_and_a_manifest(words, said, tmp_path, manifest, monkeypatch, capsys):
    (tmp_path / "lab.toml").write_text("[floors.L5]\nmean = 1e-5\n")
    code, _, error = run(monkeypatch, capsys, "--import", tmp_path / "lab.toml",
                         *(word.format(manifest) for word in words))
    assert (code, said in error) == (4, True)


# ---- from the logs to the verdict


def test_measured_floors_are_in_the_verdict(make_model, tmp_path, monkeypatch, capsys):
    """Each check has the floor that the logs show, and the departure is weighed by it."""
    home = make_model(candidate=curve(offset=1e-6))
    text = (home / "model.toml").read_text()
    (home / "model.toml").write_text(text.replace("[recipe]", 'family = "dense"\n[recipe]', 1))
    runs = [tmp_path / "run1.jsonl", tmp_path / "run2.jsonl"]
    for path, offset in zip(runs, (0.0, 4e-4), strict=True):
        write_losses(path, curve(offset=offset))

    def verdict():
        model = load_manifest(home / "model.toml")
        sides = [Side(model, side, home).loss() for side in ("baseline", "candidate")]
        return assess("L5", *sides, manifest=model, limits=default_limits(L5))

    before = {check.name: check for check in verdict().finding.checks}
    assert {check.limit.floor for check in before.values()} == {None}
    assert run(monkeypatch, capsys, *runs, "--write", home / "model.toml")[0] == 0
    found = verdict()
    after = {check.name: check for check in found.finding.checks}
    assert found.outcome is Outcome.PASS
    for name in ("step0", "first3", "final", "mean", "tail"):
        assert after[name].limit.floor == pytest.approx(4e-4, rel=1e-5)
    assert after["step0"].limit.effective == 1e-3  # 3 x 4e-4 is beyond the cap
    # one pair against two of the family's: a third of the way in logarithms; noise is at its least, 1e-3, at half weight
    reference = SHIPPED.references["dense"]
    moved = math.log10(4e-4 / reference.late) / 3 + 0.5 * math.log10(1e-3 / reference.noise) / 3
    assert before["departure"].value - after["departure"].value == pytest.approx(moved, rel=1e-4)
