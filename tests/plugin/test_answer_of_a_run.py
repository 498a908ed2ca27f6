"""The answer, the exit code and the reports speak of what was not judged, however it came about."""

import json

import pytest
from evidence_kit import NUDGED, write_losses

TWO = "[series.a]\nfile = 'a.jsonl'\n[series.b]\nfile = 'b.jsonl'\n"
LEVEL = """
import pytest

@pytest.mark.L5
def test_own(baseline, candidate, series, judge):
    if series == "b":
        {body}
    judge(baseline.loss(series), candidate.loss(series))
"""


@pytest.fixture
def two_series(make_model):
    home = make_model(candidate=NUDGED, producer=None, extra=TWO)
    for side in ("baseline", "candidate"):
        for name in ("a", "b"):
            (home / side / f"{name}.jsonl").write_bytes((home / side / "loss.jsonl").read_bytes())
        (home / side / "loss.jsonl").unlink()
    return home


def run(pytester, *words):
    return pytester.runpytest_subprocess("--migparity-model", "mine", *words)


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "n2"])
@pytest.mark.parametrize("body, status", [
    ("pytest.skip('later')", 12),
    ("pytest.xfail('known')", 12),
    ("return", 12),
    ("assert False, 'my own'", 1),
    ("judge(baseline.loss(series), candidate.loss(series)); assert False, 'beside it'", 1),
    ("judge(baseline.loss('a'), candidate.loss('a')); return", 12),
    ("judge(baseline, candidate)", 12),
    ("judge(baseline.env(), candidate.env())", 12),
])
def test_a_selected_case_without_a_standing_verdict_is_never_a_no(pytester, two_series, body, status, workers):
    pytester.makepyfile(LEVEL.format(body=body))
    result = run(pytester, ".", "--migparity-report", "out.md", "--migparity-report", "out.json", "--junitxml=out.xml",
                 *workers)
    assert result.ret == status
    said = [line for line in result.outlines if line.startswith("mine: accuracy lost?")]
    assert len(said) == 1
    assert said[0].startswith("mine: accuracy lost? CANNOT TELL")
    assert (pytester.path / "out.md").read_text().startswith("**mine: accuracy lost? CANNOT TELL")
    assert json.loads((pytester.path / "out.json").read_text())["answers"] == said
    assert "CANNOT TELL" in (pytester.path / "out.xml").read_text()


@pytest.mark.parametrize("words", [["-k", "mine-a"], ["--deselect", "test_own.py::test_own[mine-b]"],
                                   ["test_own.py::test_own[mine-a]"]])
def test_a_declared_case_that_was_left_out_is_named(pytester, two_series, words):
    """Every selected case passed, so the exit code is 0; the answer still does not say no."""
    pytester.makepyfile(test_own=LEVEL.format(body="pass"))
    result = run(pytester, *(["."] if "test_own.py::test_own[mine-a]" not in words else []), *words)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["mine: accuracy lost? CANNOT TELL: L0, L5[[]b[]] not checked*"])


def test_a_run_cut_short_names_what_did_not_run(pytester, two_series):
    write_losses(two_series / "candidate" / "a.jsonl", [2 * loss for loss in NUDGED])
    result = run(pytester, "-m", "L5", "-x")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["not judged: *mine-b[]] (not run)", "mine: accuracy lost? YES, first at L5 (a)*L5[[]b[]]*"])


def test_a_crash_is_said_in_the_answer(pytester, two_series):
    pytester.makepyfile(LEVEL.format(body="import os; os._exit(3)"))
    result = run(pytester, ".", "-n", "2")
    assert result.ret == 12
    result.stdout.fnmatch_lines(["not judged: *mine-b[]] (worker crashed)", "mine: accuracy lost? CANNOT TELL:*L5[[]b[]]*"])


def test_a_required_level_without_evidence_is_exit_12_unless_levels_were_asked_for(pytester, make_model):
    make_model(candidate=NUDGED, extra="[ladder]\nenough = ['L5', 'L7']\n")
    unasked = run(pytester)
    assert unasked.ret == 12
    unasked.stdout.fnmatch_lines(["mine: accuracy lost? CANNOT TELL: L7 cannot tell*; L0 not checked"])
    assert run(pytester, "-m", "L5").ret == 0


@pytest.mark.parametrize("names", [["candidate"], ["baseline"], ["series"], ["series, value"]])
def test_a_parameter_of_our_names_is_refused(pytester, make_model, names):
    make_model()
    pytester.makepyfile(f"""
        import pytest

        @pytest.mark.L5
        @pytest.mark.parametrize({names[0]!r}, [("x", "y")])
        def test_own(model, {names[0]}): pass
    """)
    result = run(pytester, ".")
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*is parametrized over *, which the manifest alone may set*"])


def test_one_file_cannot_answer_for_several_series(pytester, make_model):
    home = make_model(candidate=NUDGED, producer=None, extra="[series.a]\n[series.b]\n")
    result = run(pytester, "-m", "L5")
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*the manifest declares several series and nothing says which one this file is*"])
    assert (home / "candidate" / "loss.jsonl").exists()


def test_a_file_named_by_hand_answers_only_for_the_series_it_belongs_to(pytester, two_series):
    result = run(pytester, "-m", "L5", "--migparity-site", "candidate=file:fixtures/mine/candidate/a.jsonl")
    assert result.ret == 12
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["mine · L5 loss [[]b[]] · INCONCLUSIVE", "*b.jsonl is named but not there*"])


def test_both_sides_from_one_place_prove_nothing(pytester, make_model):
    home = make_model()
    result = run(pytester, "-m", "L5", "--migparity-site", f"candidate=file:{home}/baseline")
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*both sides were read from one and the same place*"])


def test_a_receipt_beside_a_file_named_by_hand_counts(pytester):
    """The embedded log named as a file is still the rehearsal's."""
    from pytest_migparity.suite import fixtures_path

    sites = [f"{side}=file:{fixtures_path()}/lingbot/{side}/loss.jsonl" for side in ("baseline", "candidate")]
    result = pytester.runpytest_subprocess("-m", "L5", "-k", "lingbot-main", "--migparity-model", "lingbot",
                                           "--migparity-site", sites[0], "--migparity-site", sites[1])
    assert result.ret == 0
    result.stdout.fnmatch_lines(["lingbot@rehearsal: accuracy lost? *"])


def test_an_older_file_put_away_in_a_folder_does_not_stand_in_for_the_run(pytester, make_model):
    home = make_model(candidate=NUDGED, producer=None)
    (home / "candidate" / "old").mkdir()
    (home / "candidate" / "loss.jsonl").rename(home / "candidate" / "old" / "loss.jsonl")
    write_losses(home / "candidate" / "train.jsonl", [2 * loss for loss in NUDGED])
    assert run(pytester, "-m", "L5").ret == 1


@pytest.mark.parametrize("name, content", [("out.json.part", "mine"), (".out.json.part", "mine")])
def test_a_report_takes_no_file_of_the_users_with_it(pytester, make_model, name, content):
    make_model(candidate=NUDGED)
    (pytester.path / name).write_text(content)
    assert run(pytester, "-m", "L5", "--migparity-report", "out.json").ret == 0
    assert (pytester.path / name).read_text() == content


@pytest.mark.parametrize("name, content", [("doc.md", "about migparity.report/1 and more\n"),
                                           ("doc.json", '{"text": "migparity.report/1"}')])
def test_a_file_that_only_mentions_our_reports_is_left_alone(pytester, make_model, name, content):
    make_model(candidate=NUDGED)
    (pytester.path / name).write_text(content)
    result = run(pytester, "-m", "L5", "--migparity-report", name)
    assert result.ret == 4
    assert (pytester.path / name).read_text() == content


def test_a_report_that_could_not_be_written_is_no_success(pytester, make_model):
    make_model(candidate=NUDGED)
    result = run(pytester, "-m", "L5", "--migparity-report", "/proc/nobody.json", "-W", "error")
    assert result.ret == 4
    result.stdout.fnmatch_lines(["--migparity-report /proc/nobody.json: not written:*", "mine: accuracy lost? no*"])


def test_a_loosened_marker_is_listed_though_it_passes(pytester, make_model):
    make_model(candidate=[loss * 1.05 for loss in NUDGED])
    pytester.makepyfile("""
        import pytest

        @pytest.mark.L5(step0=9e-4, final=8e-2, mean=2e-2, tail=2e-2, drift=2e-2)
        def test_own(baseline, candidate, series, judge):
            judge(baseline.loss(series), candidate.loss(series))
    """)
    result = run(pytester, ".")
    assert result.ret == 1  # 5 % is beyond what any marker may allow
    make_model("fine", candidate=NUDGED)
    result = pytester.runpytest_subprocess("--migparity-model", "fine", ".")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["fine · L5 loss · PASS: final * (marker; loosened from 5.0e-02: -)",
                                 "fine: accuracy lost? no*4 limits were loosened"])


def test_a_relative_model_survives_a_test_that_changes_the_working_folder(pytester, make_model):
    make_model(candidate=NUDGED)
    pytester.makepyfile("""
        import os
        import pytest

        @pytest.mark.L5
        def test_own(baseline, candidate, series, judge, tmp_path):
            os.chdir(tmp_path)
            judge(baseline.loss(series), candidate.loss(series))
    """)
    assert pytester.runpytest_subprocess("--migparity-model", "fixtures/mine", ".").ret == 0


def test_a_name_longer_than_any_file_is_an_unknown_model(pytester):
    result = pytester.runpytest_subprocess("--migparity-model", "x" * 5000)
    assert result.ret == 4
    result.stderr.no_fnmatch_line("*Error:*Traceback*")
