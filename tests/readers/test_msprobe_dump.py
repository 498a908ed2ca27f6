"""msprobe's dumps: real ones, the sample writer held against them, and what is no dump."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest

pytest.importorskip("torch")
import sample_msprobe as sample

from pytest_migparity.core.errors import UserError
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
