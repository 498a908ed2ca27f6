"""msprobe's configuration packs: what is taken from them, what is left behind, and hostile zips."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

pytest.importorskip("torch")
import sample_msprobe as sample

from pytest_migparity.core.errors import UserError
from pytest_migparity.core.evidence import EnvLock, EnvRules, Evidence, Policy, Recorded
from pytest_migparity.core.levels import LEVELS
from pytest_migparity.core.limits import Floors, default_limits
from pytest_migparity.core.verdict import Outcome, Witness
from pytest_migparity.judges.dumped import judge_dumped_weights
from pytest_migparity.judges.envmatch import judge_env
from pytest_migparity.readers import msprobe_pack
from pytest_migparity.readers.msprobe_pack import read_pack


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def read(raw):
    return read_pack(io.BytesIO(raw), "pack.zip")


def packed(made=None, **changes):
    members = sample.pack(made or sample.model(), sample.given())
    return zipped([(name, changes.get(name, content)) for name, content in members.items()])


def judged(level, baseline, candidate, **policy):
    sides = []
    for side, raw in (("baseline", baseline), ("candidate", candidate)):
        pack, _ = read(raw)
        table = EnvLock((pack.environment,)) if level == "L0" else pack.dump
        sides.append(Evidence(side, "env", (Recorded(table, Witness(side, "manual", "pack.zip", side)),)))
    judge = judge_env if level == "L0" else judge_dumped_weights
    limits = {} if level == "L0" else default_limits(LEVELS[level])
    return judge(*sides, limits=limits, floors=Floors(), policy=Policy(**policy))


def test_a_pack_is_read_whole():
    pack, repairs = read(packed())
    assert repairs == ()
    stages = [(tensor.step, tensor.stage) for tensor in pack.dump.tensors]
    assert stages.count((0, "weight")) == 18
    assert stages.count((0, "input")) == 1
    assert pack.draws == {"torch.randn": 3, "torch.manual_seed": 1}
    assert pack.settings == {"lr": 0.001, "hidden-size": "64"} | {"flags": "[true]"}
    assert pack.environment["packages"]["torch"][0] == "2.13.0+cpu"


def test_no_variable_is_taken_that_numbers_do_not_hinge_on():
    environment = {"HCCL_DETERMINISTIC": "true", "API_TOKEN": "secret", "HOME": "/home/somebody", "PATH": "/bin"}
    pack, _ = read(packed(env=json.dumps(environment)))
    assert pack.environment["env"] == {"HCCL_DETERMINISTIC": "true"}
    assert "secret" not in repr(pack)


def test_equal_statistics_of_weights_are_no_pass_because_columns_may_be_flipped():
    flipped = sample.model()
    with sample.torch.no_grad():
        flipped.b[1].l1.weight.copy_(flipped.b[1].l1.weight.flip(1))
    finding = judged("L1", packed(), packed(flipped))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert finding.first_divergence is None


def test_scaled_weights_fail_and_the_factor_is_named():
    scaled = sample.model()
    with sample.torch.no_grad():
        for parameter in scaled.parameters():
            parameter.mul_(1.05)
    finding = judged("L1", packed(), packed(scaled))
    assert finding.outcome is Outcome.FAIL
    assert {item.params["factor"] for item in finding.notes if item.code == "dump-scaled"} == {"1.05000"}


def test_packages_are_judged_by_the_rules_of_the_manifest():
    rules = EnvRules(must_match={"torch": "2.13.0", "numpy": "*"})
    other = packed(pip="torch=2.12.0\nnumpy=2.4.6\n")
    assert judged("L0", packed(), packed(), env=rules).outcome is not Outcome.FAIL
    finding = judged("L0", packed(), other, env=rules)
    assert finding.outcome is Outcome.FAIL
    assert finding.first_divergence.at == "torch"


@pytest.mark.parametrize("raw, said", [
    (b"", "not a readable zip"), (b"PK\x03\x04 cut", "not a readable zip"),
    (zipped([("readme.txt", "x")]), "no configuration pack"), (zipped([]), "no configuration pack"),
    (zipped([("env", "[1]")]), "expected an object"), (zipped([("env", "{")]), "not JSON"),
    (zipped([("env", "[" * 100_000)]), "not JSON"), (zipped([("../env", "{}")]), "outside the pack"),
    (zipped([("/env", "{}")]), "outside the pack"), (zipped([("C:env", "{}")]), "outside the pack"),
])
def test_what_is_no_pack_is_one_error_that_names_the_file(raw, said):
    with pytest.raises(UserError, match=said) as caught:
        read(raw)
    assert "pack.zip" in str(caught.value)


def test_a_zip_bomb_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(msprobe_pack, "MAX_UNPACKED", 1 << 20)
    raw = zipped([("env", b" " * (4 << 20))])
    assert len(raw) < 10_000
    with pytest.raises(UserError, match="unpacks beyond"):
        read(raw)


def test_many_members_are_refused(monkeypatch):
    monkeypatch.setattr(msprobe_pack, "MAX_MEMBERS", 5)
    with pytest.raises(UserError, match="6 members"):
        read(zipped([(f"x{number}", "") for number in range(6)]))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_comes_twice_is_refused():
    with pytest.raises(UserError, match="comes twice"):
        read(zipped([("env", "{}"), ("env", '{"HCCL_DETERMINISTIC": "true"}')]))


def test_a_damaged_member_is_one_error():
    raw = bytearray(zipped([("env", json.dumps({"HCCL_ALGO": "x" * 50}))], zipfile.ZIP_STORED))
    raw[raw.index(b"xxxx")] = ord("y")
    with pytest.raises(UserError, match="not a readable zip"):
        read(bytes(raw))


def test_members_that_are_not_read_are_counted():
    members = sample.pack(sample.model(), sample.given())
    _, (note,) = read(zipped([*members.items(), ("notes.txt", "hello")]))
    assert (note.code, note.params["count"]) == ("dump-skipped", 1)


def test_steps_and_ranks_are_told_apart():
    members = sample.pack(sample.model(), sample.given())
    weights = members["weights/step0/rank0/weight.json"]
    pack, _ = read(zipped([*members.items(), ("weights/step2/rank1/weight.json", weights)]))
    assert {(tensor.step, tensor.rank) for tensor in pack.dump.tensors} == {(0, 0), (2, 1)}


def test_odd_contents_never_break_the_reader():
    odd = {"args": {"0": {"max": "x", "min": None, "mean": [], "norm": True}}, "kwargs": [1]}
    pack, _ = read(zipped([("dataset/step0/rank0/dataset.json", json.dumps(odd)), ("pip", "=\n\xff==\nNone=1\n"),
                           ("random/rank0.json", '{"f": 3, "g": [{"count": "2"}, 5]}')]))
    assert [tensor.measured for tensor in pack.dump.tensors] == [False]
    assert pack.draws == {"f": 0, "g": 0}
