"""The report of a reading, and `migparity readlog`, which prints it."""

import json
import re
import sys
from pathlib import Path

import pytest

import pytest_migparity
from pytest_migparity import cli
from pytest_migparity.readers import registry
from pytest_migparity.readers.loss import read_loss
from pytest_migparity.readers.report import DROPPED, OTHER, REPAIRED

MM = "iteration {0}/{1} | consumed samples: 8 | loss: {2} | grad norm: 12.500 |\n"
FULL = '\ufeffstep;loss;eval_loss\n10;2,5000;\n20;2,2500;\n20;2,2500;\n30;;9,5\n20;2,3750;\n30;2,1250;9,25\n40;2,1\n'


def read(text, **options):
    return read_loss(text.encode(), "run/log", **options)


def test_the_report_counts_every_row_by_its_reason():
    """Seven whole rows and a torn one: three kept; a repeat, one without a value, two before the resume, the torn one."""
    report = read(FULL).report
    assert report.to_json() == {
        "schema": "migparity.readlog/1", "file": "run/log", "format": "csv", "encoding": "UTF-8 with BOM",
        "rows": {"kept": 3, "dropped": {"read-torn-line": 1, "read-no-value": 1, "read-repeated": 2},
                 "repaired": {"read-decimal-comma": 7}, "merged": 1},
        "steps": {"first": 10, "last": 30, "interval": 10, "window": 1, "joints": []},
        "series": "loss", "among": ["eval_loss"],
        "resolution": {"loss": [1e-4, 1e-4], "eval_loss": [1e-2, 1e-2]},
        "notes": report.to_json()["notes"],
    }
    assert [item["code"] for item in report.to_json()["notes"]] == [
        "read-bom", "read-torn-line", "read-decimal-comma", "read-decimal-comma", "read-no-value", "read-repeated",
        "read-repeat-differs"]
    json.dumps(report.to_json(), allow_nan=False)


@pytest.mark.parametrize("text", [
    FULL, "step,loss\n1,4.0\n2,3.0\n3,9.0\n4,9.5\n2,2.5\n3,2.0\n", "step,loss\n1,2.1234\n2,2.1",
    '{"run": "x"}\n{"step": 1, "loss": 2.0}\n{"step": 1, "eval_loss": 3.0}\n{"step": 2, "loss": nan}\n{"st',
    MM.format(1, 10, "1.5") * 3 + MM.format(2, 10, "1.5")[:20], 'step,loss\n1,"1,234.5"\n"1,000",99.5\n'])
def test_the_reasons_add_up_to_the_totals(text):
    reading = read(text)
    assert sum(reading.report.dropped.values()) == reading.dropped
    assert sum(reading.report.repaired.values()) == reading.repaired
    assert OTHER not in {**reading.report.dropped, **reading.report.repaired}
    assert reading.report.kept == reading.table.step.size


def test_every_note_of_a_reader_is_either_counted_or_a_remark():
    """A new reason to drop or to mend rows must say which of its parameters counts them."""
    remarks = {
        "read-ansi", "read-bom", "read-encoding", "read-wide-digits", "read-torn-text", "read-unsorted",
        "read-repeat-differs", "read-value-twice", "read-steps-are-positions", "read-steps-from-bar",
        "read-steps-from-logging", "read-steps-from-engine", "read-step-is", "read-overflow", "read-chart-grouped",
        "read-chart-sampled", "read-resume-differs", "read-two-formats",
        "read-replaced-non-finite"}
    source = "".join(path.read_text("utf-8") for path in (Path(pytest_migparity.__file__).parent / "readers").glob("*.py"))
    assert set(re.findall(r'"(read-[a-z-]+)"', source)) == remarks | set(DROPPED) | set(REPAIRED)


class Windowed:
    """A format whose printed loss is a mean over ten steps, and which drops a row without saying why."""

    name = "windowed"

    def sniff(self, head):
        return 1.0

    def read(self, lines, rows):
        rows.window = 10
        rows.dropped = 1
        for number, line in lines:
            rows.add(number, str(10 * number), {"train/loss": line})


def test_what_a_format_says_of_its_window_is_in_the_table(monkeypatch):
    monkeypatch.setattr(registry, "builtin", lambda: {"windowed": Windowed()})
    reading = read("2.5\n2.25\n")
    assert (reading.table.window, reading.report.window, reading.table.interval) == (10, 10, 10)
    assert reading.report.series == "train/loss"
    assert reading.report.dropped == {OTHER: 1}


def test_resolution_is_of_each_column_and_of_printed_digits_alone():
    report = read("step,loss,lr,grad_norm,note\n1,2.5000,1.50E-05,nan,x\n2,2.2500,2.50E-04,inf,y\n").report
    assert report.resolution == {"loss": (1e-4, 1e-4), "lr": pytest.approx((1e-7, 1e-6))}


# --- the command


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["migparity", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    shown = capsys.readouterr()
    return stop.value.code, shown.out, shown.err


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    path = tmp_path / "train.log"
    path.write_text("".join(MM.format(i, 100, f"{2 + i / 100:.4f}") for i in range(1, 101)), "utf-8")
    return path


def test_readlog_prints_one_screen(log, monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "readlog", log)
    assert code == 0
    assert out.splitlines()[:5] == [
        f"{log} · megatron · UTF-8", "  rows: 100 kept, 0 dropped, 0 repaired, 0 merged",
        "  steps: 1 to 100, as a rule every 1", "  series: loss",
        "  last printed place: loss 1e-04, samples 1e+00, grad_norm 1e-03"]
    assert [line.split() for line in out.splitlines()[6:]] == [
        ["step", "loss", "samples", "grad_norm"], ["1", "2.01", "8", "12.5"], ["2", "2.02", "8", "12.5"],
        ["3", "2.03", "8", "12.5"], ["..."], ["98", "2.98", "8", "12.5"], ["99", "2.99", "8", "12.5"],
        ["100", "3", "8", "12.5"]]


def test_readlog_speaks_the_readers_language(log, monkeypatch, capsys):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert "行数：保留 100" in run(monkeypatch, capsys, "readlog", log)[1]


def test_readlog_prints_what_was_dropped_and_where_a_run_was_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LC_ALL", "C")
    path = tmp_path / "log.csv"
    path.write_text("step,loss,train_loss\n1,4.0,1\n2,3.0,1\n3,9.0,1\n2,2.5,1\n3,,1\n4,1.0,1\n")
    out = run(monkeypatch, capsys, "readlog", path)[1]
    assert "rows: 4 kept, 2 dropped" in out
    assert "resumed at: 2" in out
    assert "could be meant as well (--column): train_loss" in out
    assert "the log goes back 1 times, first to step 2" in out


def test_readlog_as_a_document_and_with_options(log, monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "readlog", log, "--json", "--column", "grad_norm", "--format", "megatron")
    document = json.loads(out)
    assert (code, document["series"], document["rows"]["kept"]) == (0, "grad_norm", 100)
    assert document["resolution"]["loss"] == pytest.approx([1e-3, 1e-3])


@pytest.mark.parametrize(("words", "said"), [
    (["readlog", "{}", "--column", "los"], "no column 'los'; did you mean 'loss'"),
    (["readlog", "{}", "--format", "megatrn"], "no log format 'megatrn'"), (["readlog", "{}/absent"], "absent"),
    (["readlog"], "Missing argument")])
def test_readlog_of_what_cannot_be_read_is_a_mistake_of_usage(words, said, log, monkeypatch, capsys):
    code, _, err = run(monkeypatch, capsys, *(word.format(log) for word in words))
    assert code == 4
    assert said in err
