"""Which models, levels and cases run; every mistake in naming them ends the run with one clear message."""

import pytest
from evidence_kit import NUDGED, sign, write_losses

LEVEL_TEST = """
import pytest

@pytest.mark.L5({limits})
def test_own(baseline, candidate, series, judge):
    judge(baseline.loss(series), candidate.loss(series))
"""


def run(pytester, *words):
    """In a process of its own."""
    return pytester.runpytest_subprocess(*words)


@pytest.mark.parametrize("words, message", [
    (["--migparity-model", "mien"], "*no model 'mien'*did you mean 'mine'?*"),
    (["--migparity-model", "no/such/model.toml"], "*no model 'no/such/model.toml'*"),
    (["--migparity-model", ""], "*no model ''*"),
    (["--migparity-model", "mine", "--migparity-site", "candidat=file:x"], "*expected [[]MODEL:[]]SIDE=URL*"),
    (["--migparity-model", "mine", "--migparity-site", "candidate"], "*expected [[]MODEL:[]]SIDE=URL*"),
    (["--migparity-model", "mine", "--migparity-site", "candidate=x"], "*site 'x' is no URL*write file:x*"),
    (["--migparity-model", "mine", "--migparity-site", "candidate=fil:x"], "*no channel for fil:*did you mean 'file'?*"),
    (["--migparity-model", "mine", "--migparity-site", "your:candidate=file:x"], "*'your' is not a model of this run*"),
    (["--migparity-model", "mine", "--migparity-site", "candidate=file:x", "--migparity-site", "candidate=file:y"],
     "*gives the candidate of mine two sites*"),
    (["--migparity-site", "candidate=file:x"], "*has no model to belong to*"),
    (["--migparity-model", "mine", "--migparity-report", "out.pdf"], "*suffix says the format*"),
    (["--migparity-model", "mine", "--migparity-report", "no/out.md"], "*there is no folder*"),
    (["--migparity-model", "mine", "--migparity-report", "notes.md"], "*no report of ours made is there*"),
])
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "n2"])
def test_a_mistake_in_the_options_is_exit_4_and_one_message(pytester, make_model, words, message, workers):
    make_model()
    (pytester.path / "notes.md").write_text("# mine\n")
    result = run(pytester, *words, *workers)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: " + message])
    result.stderr.no_fnmatch_line("*Traceback*")
    assert (pytester.path / "notes.md").read_text() == "# mine\n"


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "n2"])
@pytest.mark.parametrize("extra, message", [
    ("[recipes]\n", "*fixtures/mine/model.toml: unknown key recipes; did you mean 'recipe'?*"),
    ("[limits.L5]\nmean = 2e-2\n", "*fixtures/mine/model.toml: *limits.L5] mean = 0.02 is looser*because*"),
])
def test_a_mistake_in_the_manifest_is_exit_4_from_the_controller(pytester, make_model, extra, message, workers):
    make_model(producer=None, extra=extra)
    result = run(pytester, "--migparity-model", "mine", *workers)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: " + message])
    result.stderr.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "n2"])
@pytest.mark.parametrize("limits, message", [
    ("meen=1e-3", "*L5 has no limit 'meen'; did you mean 'mean'?*"),
    ("mean='small'", "*a limit is a finite number*"),
    ("1e-3", "*limits are named, e.g. L5(mean=1e-3)*"),
])
def test_a_misspelled_limit_is_a_clean_collection_error(pytester, make_model, limits, message, workers):
    make_model()
    pytester.makepyfile(LEVEL_TEST.format(limits=limits))
    result = run(pytester, "--migparity-model", "mine", ".", *workers)
    assert result.ret == (1 if workers else 2)  # xdist ends a run with collection errors with 1
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_a_manifest_limit_looser_than_a_stricter_marker_needs_a_reason_too(pytester, make_model):
    make_model(extra="[limits.L5]\nmean = 9e-4\n", producer=None)
    pytester.makepyfile(LEVEL_TEST.format(limits="mean=1e-4"))
    result = run(pytester, "--migparity-model", "mine", ".")
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*mean = 0.0009 is looser than 0.0001 (marker)*"])


def test_a_level_test_without_a_model_is_an_error_not_an_empty_parameter_set(pytester):
    pytester.makepyfile(LEVEL_TEST.format(limits=""))
    result = run(pytester)
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*needs a model: add --migparity-model NAME; known: *lingbot*rehearsal*"])


def test_a_level_that_has_no_test_says_which_levels_exist(pytester, make_model):
    make_model()
    pytester.makepyfile(only=LEVEL_TEST.format(limits=""))
    for workers in ([], ["-n", "2"]):
        result = run(pytester, "only.py", "-m", "L6", "--migparity-model", "mine", *workers)
        assert result.ret == 5
        result.stdout.fnmatch_lines(["*levels that exist here: L5*"])


def test_every_declared_series_is_a_case_in_sorted_order(pytester, make_model):
    home = make_model(producer=None, extra="[series.b]\nfile = 'loss.jsonl'\n[series.a]\nfile = 'loss.jsonl'\n",
                      candidate=NUDGED)
    result = run(pytester, "-m", "L5", "--migparity-model", str(home), "--co", "-q")
    assert [line.split("::")[1] for line in result.outlines if "::" in line] == [
        "test_L5_loss_parity[mine-a]", "test_L5_loss_parity[mine-b]"]


def test_models_by_path_and_by_name_run_side_by_side(pytester, make_model, tmp_path):
    make_model("near", candidate=NUDGED)
    far = make_model("far", candidate=NUDGED, folder=tmp_path / "elsewhere")
    result = run(pytester, "-m", "L5", "--migparity-model", "near", "--migparity-model", str(far / "model.toml"))
    assert result.ret == 0
    result.assert_outcomes(passed=2)


def test_the_again_command_of_a_level_of_ones_own_names_that_test(pytester, make_model):
    make_model(candidate=[2 * loss for loss in NUDGED])
    pytester.makepyfile(test_mine=LEVEL_TEST.format(limits=""))
    result = run(pytester, "--migparity-model", "mine", ".")
    result.stdout.fnmatch_lines(["  again: pytest 'test_mine.py::test_own[[]mine-main[]]' --migparity-model mine"])


def test_collecting_alone_judges_nothing_and_is_no_failure(pytester, make_model):
    make_model()
    result = run(pytester, "-m", "L5", "--migparity-model", "mine", "--collect-only")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*accuracy lost*")


def test_a_site_on_the_command_line_replaces_one_side_of_one_model(pytester, make_model):
    make_model("one", candidate=NUDGED)
    make_model("two", candidate=NUDGED)
    (pytester.path / "new").mkdir()
    write_losses(pytester.path / "new" / "loss.jsonl", [2 * loss for loss in NUDGED])
    result = run(pytester, "-m", "L5", "--migparity-model", "one", "--migparity-model", "two",
                 "--migparity-site", "two:candidate=file:new")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([
        "two · L5 loss · FAIL",
        "  again: pytest -m L5 --migparity-model two --migparity-site candidate=file:new",
    ])


def test_configured_sites_take_the_manifests_place_and_give_way_to_the_command_line(pytester, make_model, monkeypatch):
    make_model(candidate=NUDGED)
    config = pytester.path / "config"
    (config / "npu").mkdir(parents=True)
    monkeypatch.setenv("MIGPARITY_CONFIG", str(config))
    write_losses(config / "npu" / "loss.jsonl", [2 * loss for loss in NUDGED])
    (config / "sites.toml").write_text('[mine.candidate]\nsite = "file:npu"\n')
    assert run(pytester, "-m", "L5", "--migparity-model", "mine").ret == 1
    assert run(pytester, "-m", "L5", "--migparity-model", "mine", "--migparity-site",
               "candidate=file:fixtures/mine/candidate").ret == 0


@pytest.mark.parametrize("text, message", [
    ("[mine.candidat]\nsite = 'file:x'\n", "*sites.toml: [[]mine.candidat]: no such side; did you mean 'candidate'?*"),
    ("[mine.candidate]\nurl = 'file:x'\n", "*sites.toml: [[]mine.candidate] has no site*"),
    ("[mine.candidate]\nsite = 'x'\n", "*site 'x' is no URL*"),
    ("[mine\n", "*sites.toml: *"),
    ("mine = 3\n", "*sites.toml: [[]mine] is not a table*"),
])
def test_a_mistake_in_sites_toml_is_exit_4(pytester, make_model, monkeypatch, text, message):
    make_model()
    monkeypatch.setenv("MIGPARITY_CONFIG", str(pytester.path))
    (pytester.path / "sites.toml").write_text(text)
    result = run(pytester, "--migparity-model", "mine")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: " + message])


def test_embedded_evidence_never_passes_once_one_side_is_configured(pytester, monkeypatch):
    """Real evidence on one side and the embedded rehearsal's on the other are named as mixed."""
    (pytester.path / "real").mkdir()
    write_losses(pytester.path / "real" / "loss.jsonl", NUDGED)
    (pytester.path / "sites.toml").write_text("[lingbot.candidate]\nsite = 'file:real/loss.jsonl'\n")
    monkeypatch.setenv("MIGPARITY_CONFIG", str(pytester.path))
    result = run(pytester, "-m", "L5", "--migparity-model", "lingbot", "-k", "main")
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*the baseline's evidence is rehearsal and the candidate's is manual*"])


def test_enough_settles_which_levels_run_unless_levels_are_asked_for(pytester, make_model):
    make_model(extra="[ladder]\nenough = ['L5']\n", candidate=NUDGED)
    result = run(pytester, "--migparity-model", "mine")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["not needed*: mine L0, mine L1, mine L2, mine L3, mine L4, mine L6, mine L7", "mine: accuracy lost? no: L5 pass; L0 not checked"])
    asked = run(pytester, "--migparity-model", "mine", "-m", "L0 or L5")
    assert asked.ret == 12  # there is no environment lock
    workers = run(pytester, "--migparity-model", "mine", "-n", "2")
    assert workers.ret == 0
    workers.stdout.fnmatch_lines(["not needed*: mine L0, mine L1, mine L2, mine L3, mine L4, mine L6, mine L7"])


def test_without_enough_every_level_of_the_suite_runs(pytester, make_model):
    home = make_model(candidate=NUDGED)
    sign(home)
    result = run(pytester, "--migparity-model", "mine")
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*L0 environment*INCONCLUSIVE*", "*L5 loss*PASS*"])


def test_reports_are_written_by_suffix(pytester, make_model):
    make_model(candidate=NUDGED)
    for _ in range(2):  # our own reports may be written again
        run(pytester, "-m", "L5", "--migparity-model", "mine", "--migparity-report", "out.md", "--migparity-report", "out.json")
    assert (pytester.path / "out.md").read_text().startswith("**mine: accuracy lost? no: L5 pass; L0 not checked**")
    assert '"outcome": "PASS"' in (pytester.path / "out.json").read_text()
