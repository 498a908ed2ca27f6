"""msprobe's comparison tables: real rows in every mode, its verdicts ignored, and what is no such table."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.core.evidence import Evidence, Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.judges.compared import judge_comparison
from pytest_migparity.readers import msprobe_compare
from pytest_migparity.readers.msprobe_compare import read_comparison

DATA = Path(__file__).parent / "data" / "msprobe" / "compare"


def real(name):
    with (DATA / f"{name}.csv").open("rb") as stream:
        return read_comparison(stream, f"{name}.csv")


def judged(comparison, **policy):
    recorded = Recorded(comparison, Witness("candidate", "manual", "compare_result.csv", "ab"))
    return judge_comparison(Evidence("candidate", "forward", (recorded,)), limits=default_limits(LEVELS["L3"]),
                            floors=Floors(), policy=Policy(**policy))


def table(change=lambda row: None, name="flip", rows=None):
    """A real table with every row changed, read again."""
    with (DATA / f"{name}.csv").open(newline="") as stream:
        held = list(csv.DictReader(stream))
    for row in held:
        change(row)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(held[0]))
    writer.writeheader()
    writer.writerows(held if rows is None else [*held, *rows(held)])
    return out.getvalue().encode()


def read(raw, name="compare_result.csv"):
    return read_comparison(io.BytesIO(raw), name)


def codes(finding):
    return {item.code for item in finding.notes}


def test_a_tensor_comparison_is_read_with_both_sides_and_its_metrics():
    comparison, repairs = real("flip")
    assert repairs == ()
    row = next(row for row in comparison.rows if row.baseline.name == "Module.b.1.l1.Linear.forward.0.parameters.weight")
    assert row.candidate.shape == row.baseline.shape == (64, 32)
    assert (row.baseline.stage, row.baseline.dtype) == ("weight", "float32")
    assert row.baseline.norm == pytest.approx(row.candidate.norm), "flipped columns keep the norm"
    assert row.cosine < 0.1


def test_flipped_columns_fail_at_the_module_that_holds_them_whatever_msprobe_says():
    finding = judged(real("flip")[0])
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence.at == "step 0 output Module.b.1.l1.Linear.forward.0.output.0"
    assert "dump-comparison" in codes(finding)


def test_the_results_of_msprobe_are_not_looked_at():
    def all_pass(row):
        row.update({"Result": "pass", "Err_message": "[]"})

    def all_error(row):
        row.update({"Result": "error", "Err_message": "dtype"})

    assert read(table(all_pass)) == read(table(all_error))


def test_a_scalar_argument_of_another_value_fails_where_it_is_passed():
    finding = judged(real("scalar")[0])
    assert finding.outcome is Outcome.FAIL
    assert (finding.first_divergence.at, finding.first_divergence.baseline, finding.first_divergence.candidate) == (
        "step 0 input Torch.mul.0.forward.input.1", 1.0, 2.0)


def test_nan_on_one_side_fails():
    finding = judged(real("nan")[0])
    assert finding.outcome is Outcome.FAIL
    assert "dump-non-finite" in codes(finding)


def test_rows_of_one_side_are_reported_and_no_pass():
    finding = judged(real("onesided")[0])
    assert finding.outcome is Outcome.INCONCLUSIVE
    (alone,) = [item for item in finding.notes if item.code == "record-one-sided"]
    assert (alone.params["side"], alone.params["count"]) == ("candidate", 2)


def test_checksums_that_differ_do_not_say_by_how_much():
    finding = judged(real("md5")[0])
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "dump-unknown" in codes(finding)


def test_checksums_that_agree_pass_and_are_counted():
    raw = table(lambda row: row.update({"NPU MD5": row["BENCH MD5"]}), "md5")
    finding = judged(read(raw)[0])
    assert finding.outcome is Outcome.PASS
    assert next(item for item in finding.notes if item.code == "dump-checksums").params["count"] == 1


def level(row):
    """The candidate's half of a row made equal to the baseline's, the metrics perfect."""
    for key in ("max", "min", "mean", "l2norm"):
        row[f"NPU {key}"] = row[f"Bench {key}"]
    row.update({"Cosine": "1.0", "EucDist": "0.0"})


def test_equal_tensors_pass_on_the_strength_of_their_distances():
    finding = judged(read(table(level))[0])
    assert finding.outcome is Outcome.PASS
    assert {check.name: check.value for check in finding.checks} == {"error": 0.0, "norm": 0.0, "cosine": 1.0}
    assert "dump-statistics" not in codes(finding)


def test_a_cosine_alone_fails():
    def turned(row):
        level(row)
        if row["Bench Name"] == "Module.b.1.B.forward.0.output.0":
            row["Cosine"] = "-0.85"

    finding = judged(read(table(turned))[0])
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence.at == "step 0 output Module.b.1.B.forward.0.output.0"


def test_a_distance_that_statistics_do_not_show_fails():
    def apart(row):
        level(row)
        if row["Bench Name"] == "Module.b.1.B.forward.0.output.0":
            row["EucDist"] = str(1e-3 * float(row["Bench l2norm"]))

    finding = judged(read(table(apart))[0])
    assert finding.outcome is Outcome.FAIL
    # 1e-3 of the norm, two layers deep, in units of 1.03^2 * 2^-21
    assert finding.checks[0].value == pytest.approx(1e-3 / (1.03**2 * 2.0**-21), rel=1e-6)


def test_a_perfect_cosine_does_not_excuse_another_norm():
    def scaled(row):
        level(row)
        if row["Bench Name"] == "Module.b.1.B.forward.0.output.0":
            row["NPU l2norm"] = str(1.2 * float(row["Bench l2norm"]))

    assert judged(read(table(scaled))[0]).outcome is Outcome.FAIL


@pytest.mark.parametrize("cell", ["unsupported", "N/A", "nan", "too large", "", "1e999"])
def test_cells_without_a_metric_leave_the_statistics(cell):
    def blank(row):
        level(row)
        if ".output." in row["Bench Name"]:
            row.update({"Cosine": cell, "EucDist": cell})

    comparison, _ = read(table(blank))
    assert not any(math.isfinite(row.cosine) for row in comparison.rows if row.baseline.stage == "output")
    finding = judged(comparison)
    assert finding.outcome is (Outcome.FAIL if cell == "1e999" else Outcome.PASS)


def test_rank_and_step_come_from_the_files_name():
    comparison, _ = read(table(), "out/step3/compare_result_step3_rank2-rank2_2026.csv")
    assert {(row.baseline.step, row.baseline.rank) for row in comparison.rows} == {(3, 2)}


@pytest.mark.parametrize("raw, said", [
    (b"", "no comparison table"), (b"a,b\n1,2\n", "no comparison table"), (b"PK\x03\x04\x00\x00", "xlsx"),
    (b"\xff\xfe\x00", "no comparison table"), (b'NPU Name,Bench Name\n"' + b"x" * 200_000 + b'",y\n', "not CSV"),
    (b"NPU Name,Bench Name\nonly\n", "cut or edited"), (b"NPU Name,Bench Name\n", "no row with a tensor"),
    (b"NPU Name,Bench Name\nx,y\n", "no row with a tensor"),
])
def test_what_is_no_table_is_one_error_that_names_the_file(raw, said):
    with pytest.raises(UserError, match=said) as caught:
        read(raw)
    assert "compare_result.csv" in str(caught.value)


def test_a_table_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(msprobe_compare, "MAX_BYTES", 2000)
    with pytest.raises(UserError, match="larger than 2000 bytes"):
        read(table())


def test_a_cut_table_is_refused_rather_than_judged_in_part():
    with pytest.raises(UserError, match="cut or edited"):
        read(table()[:-40].rsplit(b",", 3)[0])


def test_a_tensor_that_comes_twice_is_refused():
    with pytest.raises(UserError, match="compared twice"):
        read(table(rows=lambda held: held[:1]))
