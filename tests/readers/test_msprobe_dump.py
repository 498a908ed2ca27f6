"""msprobe's dumps: real ones, the sample writer held against them, and what is no dump."""

from __future__ import annotations

import io
import json
import math
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("torch")
import sample_msprobe as sample

from pytest_migparity.core.errors import UserError
from pytest_migparity.readers import msprobe_dump
from pytest_migparity.readers.msprobe import read_msprobe
from pytest_migparity.readers.msprobe_dump import read_dump

DATA = Path(__file__).parent / "data" / "msprobe"


def real(name):
    path = DATA / name / "step0" / "rank0" / "dump.json"
    return read_dump({"step0/rank0/dump.json": lambda: path.open("rb")})


def raw(data, name="step0/rank0/dump.json"):
    return {name: lambda: io.BytesIO(data)}


def test_a_real_dump_is_read_whole_and_in_order():
    dump, repairs = real("base")
    assert (dump.task, dump.level, repairs) == ("statistics", "L0", ())
    outputs = [tensor for tensor in dump.tensors if tensor.stage == "output"]
    assert [tensor.name.removesuffix(".forward.0.output.0") for tensor in outputs] == [
        *(f"Module.b.{block}.{part}" for block in range(4) for part in ("l1.Linear", "l2.Linear", "B")),
        "Module.out.Linear"]
    first = outputs[0]
    assert (first.dtype, first.shape, first.high) == ("float32", (8, 64), 2.145263195037842)
    assert {tensor.stage for tensor in dump.tensors} == {"input", "output", "weight", "grad"}


@pytest.mark.parametrize("name, seed", [("base", 0), ("random", 99)])
def test_the_sample_writer_writes_what_msprobe_wrote_of_the_same_model(name, seed):
    written, _ = read_dump(sample.files(sample.dump(sample.model(seed), sample.given())))
    recorded = {(item.stage, item.name): item for item in real(name)[0].tensors if item.stage != "grad"}
    assert {(item.stage, item.name) for item in written.tensors} == set(recorded)
    for item in written.tensors:
        other = recorded[item.stage, item.name]
        assert (item.dtype, item.shape) == (other.dtype, other.shape)
        assert (item.low, item.high, item.norm) == pytest.approx((other.low, other.high, other.norm), rel=1e-4, abs=1e-5)


def test_steps_and_ranks_come_from_the_folders():
    document = sample.dump(sample.model(), sample.given())
    dump, _ = read_dump({**sample.files(document, "x/step2/rank1"), **sample.files(document, "x/step2/rank0"),
                         **sample.files(document, "x/step0/rank0")})
    assert list(dict.fromkeys((tensor.step, tensor.rank) for tensor in dump.tensors)) == [(0, 0), (2, 0), (2, 1)]


def test_what_is_no_tensor_is_counted_and_said():
    document = sample.dump(sample.model(), sample.given())
    document["data"]["Functional.x.0.forward"] = {
        "input_args": ["text", {"type": "slice", "value": 3}, {"type": "float", "value": 2.5},
                       {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": None, "Min": None,
                        "Mean": None, "Norm": None}], "input_kwargs": {"alpha": {"type": "int", "value": 7}}, "output": None}
    dump, (note,) = read_dump(sample.files(document))
    assert (note.code, note.params["count"]) == ("dump-skipped", 2)
    found = {tensor.name: tensor for tensor in dump.tensors if "Functional" in tensor.name}
    assert [item.norm for item in found.values() if not math.isnan(item.norm)] == [2.5, 7.0]
    assert sum(math.isnan(item.norm) for item in found.values()) == 1


@pytest.mark.parametrize("data, said", [
    (b"", "not JSON"), (b"\xff\xfe", "not JSON"), (b"[1]", "no dump of msprobe"), (b'{"data": 3}', "no dump of msprobe"),
    (b"[" * 100000, "not JSON"),
])
def test_what_is_no_dump_is_one_error_that_names_the_file(data, said):
    with pytest.raises(UserError, match=said) as caught:
        read_dump(raw(data))
    assert "step0/rank0/dump.json" in str(caught.value)


def test_dumps_of_two_kinds_are_not_mixed():
    document = sample.dump(sample.model(), sample.given())
    with pytest.raises(UserError, match="several kinds"):
        read_dump({**sample.files(document), **sample.files({**document, "level": "mix"}, "step1/rank0")})


def test_odd_entries_never_break_the_reader():
    odd = {"a": 3, "b": [], "c": {"output": 5, "parameters": None}, "d": {"input_args": {"x": {"y": {"z": 1}}}}}
    dump, (note,) = read_dump(raw(json.dumps({"task": "statistics", "level": "L1", "data": odd}).encode()))
    assert dump.tensors == ()
    assert note.code == "dump-skipped"


def test_a_real_dump_of_every_operation_with_checksums():
    dump, repairs = real("mix")
    assert (dump.task, dump.level, repairs) == ("statistics", "mix", ())
    tensors = {tensor.name: tensor for tensor in dump.tensors}
    first = tensors["Functional.linear.0.forward.input.0"]
    assert (first.checksum, first.stage, first.trained) == ("431a4b3c", "input", False)
    assert tensors["Functional.linear.0.forward.input.1"].trained
    argument = tensors["Torch.mul.0.forward.input.1"]
    assert (argument.dtype, argument.high, argument.shape) == ("float", 1.0, ())
    assert tensors["Tensor.__rmul__.0.forward.input.1"].dtype == "int"
    assert tensors["Module.out.Linear.parameters_grad.0.weight"].stage == "grad"
    assert tensors["Module.out.Linear.forward.0.parameters.bias"].stage == "weight"


def test_the_sample_writer_computes_the_checksums_that_msprobe_computed():
    """Of the same weights to the bit; outputs may differ in the last one."""
    written, _ = read_dump(sample.files(sample.dump(sample.model(), sample.given(), checksum=True)))
    recorded = {tensor.name: tensor.checksum for tensor in real("mix")[0].tensors}
    known = [tensor for tensor in written.tensors if tensor.stage == "weight" and tensor.name in recorded]
    assert len(known) == 4
    assert [tensor.checksum for tensor in known] == [recorded[tensor.name] for tensor in known]


def test_a_place_that_holds_none_keeps_its_number():
    held = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], "Max": 1.0, "Min": 1.0, "Mean": 1.0,
            "Norm": 1.0}
    document = {"task": "statistics", "level": "L1", "data": {"Tensor.f.0.backward": {"input": [held],
                                                                                     "output": [None, held]}}}
    names = [tensor.name for tensor in read_dump(sample.files(document))[0].tensors]
    assert names == ["Tensor.f.0.backward.input.0", "Tensor.f.0.backward.output.1"]


def test_nan_is_a_value_and_null_is_none():
    text = (b'{"task": "statistics", "level": "L0", "data": {"a": {"output": [{"type": "torch.Tensor", "shape": [1], '
            b'"Max": NaN, "Min": NaN, "Mean": NaN, "Norm": NaN}, {"type": "torch.Tensor", "shape": [1], "Max": null, '
            b'"Min": null}, {"type": "torch.Tensor", "shape": [1], "Max": "x", "Min": "-Infinity"}]}}}')
    tensors = read_dump(raw(text))[0].tensors
    assert [tensor.measured for tensor in tensors] == [True, False, False]


@pytest.mark.parametrize("name, place", [
    ("step3/rank2/dump.json", (3, 2)), ("a/rank9/step0/proc4711/dump.json", (0, 0)), ("step7/rank/dump.json", (7, 0)),
    ("dump.json", (0, 0)), ("stepx/rank1/dump.json", (0, 0)),
])
def test_places_of_dumps(name, place):
    document = sample.dump(sample.model(), sample.given())
    (opened,) = sample.files(document).values()
    assert {(tensor.step, tensor.rank) for tensor in read_dump({name: opened})[0].tensors} == {place}


def test_two_processes_of_one_step_are_not_mixed():
    document = sample.dump(sample.model(), sample.given())
    with pytest.raises(UserError, match="both of step 0, rank 0"):
        read_dump({**sample.files(document, "step0/proc1"), **sample.files(document, "step0/proc2")})


def test_a_dump_that_is_too_large_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(msprobe_dump, "MAX_BYTES", 100)
    with pytest.raises(UserError, match="larger than 100 bytes"):
        read_dump(raw(b" " * 101))


def test_no_dump_at_all_is_one_error():
    with pytest.raises(UserError, match=r"no dump\.json was given"):
        read_dump({})


@pytest.mark.parametrize("shape", [[-1], [1.5], ["8"], None, [True], "8"])
def test_a_tensor_without_a_shape_is_torn(shape):
    item = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape, "Max": 1.0, "Min": 1.0}
    dump, (note,) = read_dump(raw(json.dumps({"task": "t", "level": "L0", "data": {"a": {"output": [item]}}}).encode()))
    assert (dump.tensors, note.code, note.params["count"]) == ((), "dump-torn", 1)


@pytest.mark.parametrize("value", [1e400, -0.0, 10**400, "1e999", "nan", True, [], {}])
def test_odd_numbers_never_break_the_reader(value):
    item = {"type": "torch.Tensor", "dtype": None, "shape": [2], "Max": value, "Min": value, "Mean": value,
            "Norm": value, "md5": value}
    document = {"task": None, "level": [], "data": {"a": {"output": [item, {"type": "int", "value": value}]}}}
    assert len(read_dump(raw(json.dumps(document).encode()))[0].tensors) == 2


def test_what_is_brought_is_told_by_the_names_of_its_files():
    assert read_msprobe(raw(json.dumps(sample.dump(sample.model(), sample.given())).encode()))[0].level == "L0"
    table = DATA / "monitor" / "run-rank0-x" / "grad_reduced_0-0.csv"
    assert read_msprobe({f"x/{table.name}": lambda: table.open("rb")})[0].level == "monitor"
    for names in ((), ("dump.json", "grad_reduced_0-0.csv"), ("a.zip", "b.zip"), ("loss.csv",)):
        with pytest.raises(UserError, match=r"expected the dump\.json files"):
            read_msprobe(dict.fromkeys(names, lambda: io.BytesIO(b"")))


def test_a_pack_is_brought_as_what_it_says_of_weights_and_inputs():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in sample.pack(sample.model(), sample.given()).items():
            archive.writestr(name, content)
    dump, _ = read_msprobe({"pack.zip": lambda: io.BytesIO(out.getvalue())})
    assert {tensor.stage for tensor in dump.tensors} == {"weight", "input"}
