"""The tables of msprobe's training monitor: real ones, their printed digits, and what is no such table."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from recordings import codes

from pytest_migparity.core.errors import UserError
from pytest_migparity.core.evidence import Evidence, Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.judges.dumped import judge_dumped_forward, judge_dumped_step, judge_dumped_weights
from pytest_migparity.readers import msprobe_monitor
from pytest_migparity.readers.msprobe_monitor import is_monitored, read_monitor

DATA = Path(__file__).parent / "data" / "msprobe" / "monitor"
JUDGES = {"L1": judge_dumped_weights, "L3": judge_dumped_forward, "L4": judge_dumped_step}


def real(change=lambda name, text: text):
    """The real folder, each table's text changed."""
    texts = {path.relative_to(DATA).as_posix(): change(path.name, path.read_text()) for path in DATA.rglob("*.csv")}
    return {name: (lambda text=text: io.BytesIO(text.encode())) for name, text in texts.items() if is_monitored(name)}


def judged(level, candidate, **policy):
    sides = [Evidence(side, "step", (Recorded(read_monitor(files)[0], Witness(side, "real", "x", side)),))
             for side, files in (("baseline", real()), ("candidate", candidate))]
    return JUDGES[level](*sides, limits=default_limits(LEVELS[level]), floors=Floors(), policy=Policy(**policy))


def test_a_real_folder_is_read_by_stage_in_the_order_in_which_tensors_are_made():
    dump, repairs = read_monitor(real())
    assert list(dict.fromkeys(tensor.stage for tensor in dump.tensors)) == ["weight", "input", "output", "grad"]
    assert {tensor.rank for tensor in dump.tensors} == {0}
    first = next(tensor for tensor in dump.tensors if tensor.stage == "output")
    assert (first.name, first.shape, first.norm, first.dtype) == ("b.0.l1.output", (8, 64), 15.192196, "float32")
    assert first.quantum == pytest.approx(1e-6)
    (skipped,) = repairs
    assert (skipped.code, skipped.params["file"].endswith("actv_grad_0-0.csv")) == ("dump-skipped", True)


def test_updated_parameters_are_not_taken_for_the_ones_before():
    assert not is_monitored("x/param_updated_0-0.csv")
    names = [tensor.name for tensor in read_monitor(real())[0].tensors if tensor.stage == "weight"]
    assert len(names) == len(set(names)) == 8


def test_gradients_that_agree_are_no_pass_and_a_scaled_one_fails():
    assert judged("L4", real()).outcome is Outcome.INCONCLUSIVE

    def scaled(name, text):
        return text.replace("0,b.0.l1.weight,0,0.237776", "0,b.0.l1.weight,0,0.475552")

    finding = judged("L4", real(scaled))
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence.at == "step 0 grad b.0.l1.weight:grad_reduced"


def test_a_unit_in_the_last_printed_place_is_no_difference():
    def nudged(name, text):
        return text.replace("0.237776", "0.237777").replace("15.192196", "15.192197")

    assert judged("L4", real(nudged)).first_divergence is None
    assert judged("L3", real(nudged)).first_divergence is None


def test_digits_that_cannot_resolve_the_limit_leave_it_open():
    def three_decimals(name, text):
        return re.sub(r"-?[0-9]+\.[0-9]+", lambda number: f"{float(number[0]):.3f}", text)

    assert judged("L3", real()).outcome is Outcome.PASS, "six decimals of tensors near 1"
    finding = judged("L3", real(three_decimals))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert [check.state.value for check in finding.checks] == ["blind", "ok"]
    assert judged("L3", real(three_decimals), precisions=("bfloat16",)).outcome is Outcome.PASS, "bfloat16 needs no more"


def test_weights_are_open_too():
    finding = judged("L1", real())
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "dump-weights-statistics" in codes(finding)


def test_micro_steps_and_pipeline_stages_are_told_apart():
    text = ("vpp_stage,name,step,micro_step,norm,mean,max,min,shape,dtype\n"
            '0,a.output,0,0,1.0,0.0,1.0,-1.0,"[2, 2]",torch.float32\n'
            '0,a.output,0,1,2.0,0.0,1.0,-1.0,"[2, 2]",torch.float32\n'
            '1,a.output,0,0,3.0,0.0,1.0,-1.0,"[2, 2]",torch.float32\n')
    dump, _ = read_monitor({"t-rank3-x/actv_0-0.csv": lambda: io.BytesIO(text.encode())})
    assert [(tensor.name, tensor.norm) for tensor in dump.tensors] == [
        ("a.output", 1.0), ("a.output:micro1", 2.0), ("a.output:vpp1", 3.0)]
    assert {tensor.rank for tensor in dump.tensors} == {3}


HEAD = b"vpp_stage,name,step,norm,mean,max,min,shape,dtype\n"


@pytest.mark.parametrize("name, raw, said", [
    ("grad_reduced_0-0.csv", b"", "no column"), ("grad_reduced_0-0.csv", b"a,b\n1,2\n", "no column"),
    ("grad_reduced_0-0.csv", HEAD + b"0,w,0,1.0\n", "cut or edited"),
    ("grad_reduced_0-0.csv", HEAD + b"0,w,0,1,1,1,1,[2],torch.float32,extra\n", "cut or edited"),
    ("grad_reduced_0-0.csv", HEAD + b"0,w," + b"9" * 200_000 + b",1,1,1,1,[2],torch.float32\n", "not CSV"),
    ("grad_reduced_0-0.csv", HEAD, "holds a tensor"), ("loss.csv", HEAD, "expected a name like"),
])
def test_what_is_no_table_of_the_monitor_is_one_error(name, raw, said):
    with pytest.raises(UserError, match=said):
        read_monitor({name: lambda: io.BytesIO(raw)})


def test_two_runs_in_one_folder_are_not_mixed():
    files = real()
    again = {f"other-rank0-y/{name.rsplit('/', 1)[1]}": opened for name, opened in files.items()}
    with pytest.raises(UserError, match="comes twice"):
        read_monitor({**files, **again})


def test_a_table_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(msprobe_monitor, "MAX_BYTES", 100)
    with pytest.raises(UserError, match="larger than 100 bytes"):
        read_monitor(real())
