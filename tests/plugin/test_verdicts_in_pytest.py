"""What pytest shows and returns for each verdict, with and without workers."""

import json
import xml.etree.ElementTree as ET

import pytest
from evidence_kit import NUDGED, curve

WORKERS = [pytest.param([], id="alone"), pytest.param(["-n", "2"], id="n2")]


@pytest.mark.parametrize("workers", WORKERS)
def test_equal_trajectories_pass_with_exit_0(pytester, make_model, workers):
    make_model(candidate=NUDGED)
    result = pytester.runpytest_subprocess("-m", "L5", "--migparity-model", "mine", *workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*mine*L5 loss*PASS*", "mine: accuracy lost? no: L5 pass; L0 not checked", "*1 passed*"])


@pytest.mark.parametrize("workers", WORKERS)
def test_another_trajectory_fails_with_exit_1_and_says_where(pytester, make_model, workers):
    make_model(candidate=[loss * (1.05 if step >= 12 else 1.0) for step, loss in enumerate(NUDGED)])
    result = pytester.runpytest_subprocess("-m", "L5", "--migparity-model", "mine", *workers)
    assert result.ret == 1
    result.stdout.fnmatch_lines([
        "mine · L5 loss · FAIL",
        "  mean * limit 1.0e-02 (marker)   would pass at *",
        "  first divergence: step 12 (baseline *, candidate *)",
        "  again: pytest -m L5 --migparity-model mine",
        "mine: accuracy lost? YES, first at L5 (main), step 12; L0 not checked",
    ])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize("workers", WORKERS)
def test_missing_evidence_is_a_question_mark_and_exit_12(pytester, make_model, workers):
    home = make_model(producer=None)
    (home / "candidate" / "loss.jsonl").unlink()
    result = pytester.runpytest_subprocess("-m", "L5", "--migparity-model", "mine", "-rA", *workers)
    assert result.ret == 12
    result.stdout.fnmatch_lines([
        "*INCONCLUSIVE*", "mine · L5 loss · INCONCLUSIVE", "  candidate loss: no file there is one*",
        "mine: accuracy lost? CANNOT TELL:*", "*1 inconclusive*",
    ])


def test_the_progress_letter_is_a_question_mark_and_verbose_says_the_word(pytester, make_model):
    home = make_model(producer=None)
    (home / "candidate" / "loss.jsonl").unlink()
    pytester.runpytest_subprocess("-m", "L5", "--migparity-model", "mine").stdout.re_match_lines([r".*\.py \?"])
    pytester.runpytest_subprocess("-m", "L5", "--migparity-model", "mine", "-v").stdout.fnmatch_lines(
        ["*test_L5_loss_parity[[]mine-main[]] INCONCLUSIVE*"])


def test_a_failure_outweighs_what_cannot_be_told(pytester, make_model):
    make_model("bad", candidate=curve(offset=0.1))
    unsure = make_model("unsure", producer=None)
    (unsure / "candidate" / "loss.jsonl").unlink()
    result = pytester.runpytest_subprocess("-m", "L5", "--migparity-model", "bad", "--migparity-model", "unsure")
    assert result.ret == 1
    result.assert_outcomes(failed=1)


OWN = """
import pytest

@pytest.mark.L5(mean=1e-3)
def test_own_level(baseline, candidate, series, judge):
    {body}

def test_plain():
    assert {plain}
"""


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("body, plain, status", [
    ("judge(baseline.loss(series), candidate.loss(series))", True, 0),
    ("judge(baseline.loss(series), candidate.loss(series))", False, 1),
    ("pass", True, 12),
    ("pass", False, 1),
    ("pytest.skip('later')", True, 12),
    ("pytest.xfail('known')", True, 12),
    ("assert False, 'my own check'", True, 1),
    ("judge(candidate.loss(series), baseline.loss(series))", True, 12),
])
def test_a_level_that_a_user_wrote_is_never_green_without_a_verdict(pytester, make_model, body, plain, status, workers):
    make_model(candidate=NUDGED)
    pytester.makepyfile(OWN.format(body=body, plain=plain))
    result = pytester.runpytest_subprocess("--migparity-model", "mine", ".", *workers)
    assert result.ret == status


@pytest.mark.parametrize("verdict, status", [("PASS", 0), ("FAIL", 1), ("INCONCLUSIVE", 12)])
def test_a_verdict_that_the_test_swallows_still_counts(pytester, make_model, verdict, status):
    home = make_model(candidate=curve(offset=0.1) if verdict == "FAIL" else NUDGED, producer=None)
    if verdict == "INCONCLUSIVE":
        (home / "candidate" / "loss.jsonl").unlink()
    pytester.makepyfile("""
        import pytest

        @pytest.mark.L5
        def test_swallows(baseline, candidate, series, judge):
            try:
                judge(baseline.loss(series), candidate.loss(series))
            except BaseException:
                pass
    """)
    result = pytester.runpytest_subprocess("--migparity-model", "mine", ".", "--junitxml=out.xml")
    assert result.ret == status
    result.assert_outcomes(passed=int(verdict == "PASS"), failed=int(verdict == "FAIL"))
    assert ("<failure" in (pytester.path / "out.xml").read_text()) is (verdict != "PASS")


@pytest.mark.parametrize("workers", WORKERS)
def test_a_level_test_that_never_judged_is_no_passed_test_to_anyone(pytester, make_model, workers):
    """Whoever reads the JUnit file alone sees a failure, and pytest's own line says inconclusive."""
    make_model(candidate=NUDGED)
    pytester.makepyfile(OWN.format(body="pass", plain=True))
    result = pytester.runpytest_subprocess("--migparity-model", "mine", ".", "--junitxml=out.xml", *workers)
    result.stdout.fnmatch_lines(["*passed without a verdict: it never called judge*", "*1 passed, 1 inconclusive*"])
    assert (pytester.path / "out.xml").read_text().count("<failure") == 1


def test_an_expected_failure_is_still_a_fail_of_the_run(pytester, make_model):
    make_model(candidate=curve(offset=0.1))
    pytester.makepyfile("""
        import pytest

        @pytest.mark.xfail
        @pytest.mark.L5
        def test_waived(baseline, candidate, series, judge):
            judge(baseline.loss(series), candidate.loss(series))
    """)
    assert pytester.runpytest_subprocess("--migparity-model", "mine", ".").ret == 1


def test_a_run_that_judges_nothing_never_exits_0(pytester, make_model):
    make_model()
    pytester.makepyfile("def test_plain(): pass")
    result = pytester.runpytest_subprocess("--migparity-model", "mine", "test_a_run_that_judges_nothing_never_exits_0.py")
    assert result.ret == 12
    result.stdout.fnmatch_lines(["nothing was judged"])


def verdicts_of(path):
    """node name -> properties, from a JUnit file."""
    suite = ET.parse(path).getroot().find("testsuite")
    cases = {case.get("name"): [(item.get("name"), item.get("value")) for item in case.iter("property")]
             for case in suite.iter("testcase")}
    run = [(item.get("name"), item.get("value")) for item in suite.find("properties")]
    return cases, run, suite


def test_junit_carries_the_verdict_and_is_the_same_with_workers(pytester, make_model):
    make_model("good", candidate=NUDGED)
    make_model("bad", candidate=curve(offset=0.1))
    unsure = make_model("unsure", producer=None)
    (unsure / "candidate" / "loss.jsonl").unlink()
    models = [word for name in ("good", "bad", "unsure") for word in ("--migparity-model", name)]
    pytester.runpytest_subprocess("-m", "L5", *models, "--junitxml=one.xml")
    pytester.runpytest_subprocess("-m", "L5", *models, "--junitxml=two.xml", "-n", "2")
    one, two = verdicts_of(pytester.path / "one.xml"), verdicts_of(pytester.path / "two.xml")
    assert {name: sorted(found) for name, found in one[0].items()} == {name: sorted(found) for name, found in two[0].items()}
    assert sorted(one[1]) == sorted(two[1])
    found = dict(one[0]["test_L5_loss_parity[bad-main]"])
    assert found["migparity.check"] == "L5[bad-main]"
    assert (found["migparity.model"], found["migparity.level"], found["migparity.case"]) == ("bad", "L5", "main")
    assert found["migparity.outcome"] == "FAIL"
    assert found["migparity.first_divergence"] == "step 0"
    assert float(found["migparity.value.step0"]) == pytest.approx(0.1)
    assert found["migparity.evidence"].startswith("baseline=real:")
    assert json.loads(found["migparity.verdict"])["schema"] == "migparity.verdict/1"
    assert [value for name, value in one[1] if name == "migparity.answer"] == [
        "bad: accuracy lost? YES, first at L5 (main), step 0; L0 not checked",
        "good: accuracy lost? no: L5 pass; L0 not checked",
        "unsure: accuracy lost? CANNOT TELL: L5 cannot tell (its section says what is missing); L0 not checked; "
        "manual evidence took part",
    ]
    assert (one[2].get("failures"), one[2].get("errors"), one[2].get("skipped")) == ("2", "0", "0")


def test_what_people_read_is_chinese_where_asked_and_the_verdict_is_the_same(pytester, make_model):
    make_model(candidate=curve(offset=0.1))
    pytester.runpytest_subprocess("-m", "L5", "--migparity-model", "mine", "--junitxml=en.xml")
    result = pytester.runpytest_subprocess("-m", "L5", "--migparity-model", "mine", "--junitxml=zh.xml",
                                           "--migparity-lang", "zh")
    result.stdout.fnmatch_lines(["mine · L5 损失 · 不通过", "  首个分歧点：*", "mine：精度是否有损失？是*"])
    documents = [dict(verdicts_of(pytester.path / name)[0]["test_L5_loss_parity[mine-main]"])["migparity.verdict"]
                 for name in ("en.xml", "zh.xml")]
    assert documents[0] == documents[1]


@pytest.mark.parametrize("variables, chinese", [({"LC_ALL": "zh_CN.UTF-8"}, True), ({"LC_ALL": "", "LANG": "zh_CN.GBK"}, True),
                                                ({"LC_ALL": "de_DE.UTF-8", "LANG": "zh_CN.UTF-8"}, False)])
def test_the_language_follows_the_locale(pytester, make_model, monkeypatch, variables, chinese):
    monkeypatch.delenv("LC_MESSAGES", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    make_model(candidate=NUDGED)
    result = pytester.runpytest_subprocess("-m", "L5", "--migparity-model", "mine")
    assert ("精度是否有损失" in result.stdout.str()) is chinese
