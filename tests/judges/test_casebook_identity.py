"""Public reports whose cause L1 should name, as far as layouts and provenance answer for them."""

import csv

import numpy as np
import pytest
from evidence_kit import SHARED

from pytest_migparity.core.verdict import Outcome
from pytest_migparity.host.digest import digest
from pytest_migparity.host.layout import apply_layout
from pytest_migparity.host.tensors import of_array
from pytest_migparity.judges.digest_fault import Fault
from pytest_migparity.judges.digestmatch import match
from pytest_migparity.judges.provenance import Expected, Witnesses, judge_provenance
from pytest_migparity.readers.restored import read_restored
from pytest_migparity.wire.layout import from_rules
from pytest_migparity.wire.provenance import Asked, Weights


@pytest.fixture
def row(request):
    """The casebook's row whose id the test carries."""
    book = SHARED / "casebook" / "cases.csv"
    if not book.is_file():
        pytest.skip("the casebook is not beside this checkout")
    with book.open(encoding="utf-8", newline="") as stream:
        found = next(row for row in csv.DictReader(stream) if row["id"] == request.node.name.split("_")[1])
    assert (found["level_code"], found["verdict_code"]) == ("L1", "fail")
    return found


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def held(arrays, *rules):
    tensors = [of_array(name, array) for name, array in arrays.items()]
    return digest(apply_layout(tensors, from_rules(list(rules))) if rules else tensors)


def faults(found):
    return {item.name: item.fault for item in found.tensors if item.fault is not Fault.EQUAL}


@pytest.mark.usefixtures("row")
def test_C78_rotary_rows_in_the_wrong_pairing():
    """Without a map q is a permutation. With the map it is equal if the conversion was done, and fails if it was not."""
    ours = {"q": drawn(64, 16), "v": drawn(64, 16, seed=1)}
    converted = {**ours, "q": ours["q"].reshape(4, 8, 2, 16).swapaxes(1, 2).reshape(64, 16)}
    rules = ({"from": "q", "to": "q", "ops": [{"op": "rope", "heads": 4, "to": "halves"}]}, {"from": "v", "to": "v"})
    raw = match(held(ours), held(converted))
    assert (raw.outcome, faults(raw)) == (Outcome.FAIL, {"q": Fault.PERMUTED})
    assert match(held(ours, *rules), held(converted)).outcome is Outcome.PASS
    left_as_it_was = match(held(ours, *rules), held(ours))
    assert (left_as_it_was.outcome, faults(left_as_it_was)) == (Outcome.FAIL, {"q": Fault.PERMUTED})


@pytest.mark.usefixtures("row")
def test_C11_raw_export_from_megatron():
    """40 tensors; the exporter cut 2 fused ones into thirds, where Megatron keeps queries, key and value by group."""
    heads, groups = {"heads": 4, "groups": 2}, 2
    fused = {f"l.{at}.qkv": drawn(8 * 4, 8, seed=at) for at in range(2)}
    others = {f"l.{at}.mlp": drawn(8, 8, seed=100 + at) for at in range(34)}
    names = [f"l.{{i}}.{name}" for name in "qkv"]
    rules = ({"from": "l.{i}.qkv", "to": names, "ops": [{"op": "split_qkv", **heads}]},
             {"from": "{rest*}", "to": "{rest}", "otherwise": True})
    right, raw = dict(others), dict(others)
    for at in range(2):
        whole = fused[f"l.{at}.qkv"].reshape(groups, 4, 4, 8)
        for name, part in zip("qkv", (whole[:, :2], whole[:, 2:3], whole[:, 3:]), strict=True):
            right[f"l.{at}.{name}"] = part.reshape(-1, 8)
        for name, part in zip("qkv", np.split(fused[f"l.{at}.qkv"], [16, 24]), strict=True):
            raw[f"l.{at}.{name}"] = part
    ours = held({**fused, **others}, *rules)
    assert len(ours.tensors) == 40
    assert match(ours, held(right)).outcome is Outcome.PASS
    found = match(ours, held(raw))
    assert found.outcome is Outcome.FAIL
    assert set(faults(found)) == {f"l.{at}.{name}" for at in range(2) for name in "qkv"}


@pytest.mark.usefixtures("row")
def test_C81_tensors_that_never_load_and_stay_random():
    """100 keys, 95 loaded: the log of the candidate names the five, and so does what was in memory."""
    missing = [f"model.layers.{at}.q.weight" for at in range(5)]
    log = ["[I] Loaded PyTorch weights from /w/pi0", "Missing keys when loading state dict: 5 keys",
           *(f"  - {name}" for name in missing)]
    asked = (Asked("pytorch_weight_path", "/w/pi0", "config.py", "init", True),)
    good = Witnesses(asked, read_restored(enumerate(log[:1], 1)), Weights("a" * 16, "a" * 16))
    bad = Witnesses(asked, read_restored(enumerate(log, 1)), Weights("a" * 16, "b" * 16, tuple(missing), 5))
    assert judge_provenance(good, good, Expected()) == ([], False, False)
    notes, failed, _ = judge_provenance(good, bad, Expected())
    assert failed
    named = {note.code: note.params for note in notes}
    assert named["provenance-new-tensors"]["names"] == ", ".join(missing)
    assert named["provenance-replaced"]["count"] == 5
