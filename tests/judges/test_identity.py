"""L1: what counts as the same weights, and what the manifest may declare."""

from __future__ import annotations

import numpy as np
import pytest
from recordings import codes, identity, judged, normal

from pytest_migparity.core.verdict import Outcome
from pytest_migparity.host.digest import digest
from pytest_migparity.host.tensors import of_array
from pytest_migparity.host.zoom import cast_of, rounded
from pytest_migparity.judges.identity import Identity

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
WEIGHTS = {"layers.2.weight": normal(50, 30), "layers.10.weight": normal(50, 30, seed=1), "norm": np.ones(30, np.float32)}


def of_bfloat16():
    return Identity({"weights": digest([of_array(name, rounded(array, "float32", "bfloat16"), "bfloat16")
                                        for name, array in WEIGHTS.items()], algorithm="sha256")})


def with_proof():
    found = identity(WEIGHTS)
    rounded_copy = digest([cast_of(of_array(name, array), "bfloat16") for name, array in WEIGHTS.items()], level=0,
                          algorithm="sha256")
    return Identity({**found.digests, "weights.bfloat16": rounded_copy})


def test_the_same_weights_pass_and_say_how_many_were_compared():
    finding = judged("L1", identity(WEIGHTS), identity(WEIGHTS))
    assert finding.outcome is PASS
    assert (finding.coverage.compared, finding.coverage.of) == (3, 3)


def test_a_wider_dtype_with_the_same_values_passes_and_is_said():
    wider = {name: array.astype(np.float64) for name, array in WEIGHTS.items()}
    finding = judged("L1", identity(WEIGHTS), identity(wider))
    assert finding.outcome is PASS
    assert codes(finding) == {"identity-value-equal"}


def test_the_first_tensor_is_the_first_by_number_not_by_letter():
    other = {**WEIGHTS, **{name: WEIGHTS[name] * 1.05 for name in ("layers.2.weight", "layers.10.weight")}}
    finding = judged("L1", identity(WEIGHTS), identity(other))
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "layers.2.weight"
    assert [item.code for item in finding.notes] == ["digest-scaled"] * 2
    assert float(finding.notes[0].params["scale"]) == pytest.approx(1.05, abs=1e-3)


def test_a_cast_is_failed_undeclared_open_unproved_and_passed_with_its_proof():
    assert judged("L1", identity(WEIGHTS), of_bfloat16()).outcome is FAIL
    unproved = judged("L1", identity(WEIGHTS), of_bfloat16(), cast="bfloat16")
    assert unproved.outcome is INCONCLUSIVE
    assert codes(unproved) == {"identity-cast-unproved", "identity-value-equal"}  # norm is 1 in every dtype
    assert judged("L1", with_proof(), of_bfloat16(), cast="bfloat16").outcome is PASS
    assert judged("L1", of_bfloat16(), with_proof(), cast="bfloat16").outcome is PASS


def test_a_proof_covers_only_what_really_is_the_rounded_copy():
    spoiled = of_bfloat16()
    damaged = normal(50, 30)
    damaged[3, 4] = 7
    other = digest([of_array("layers.2.weight", rounded(damaged, "float32", "bfloat16"), "bfloat16")],
                   algorithm="sha256").tensors[0]
    tensors = tuple(other if item.name == "layers.2.weight" else item for item in spoiled.digests["weights"].tensors)
    finding = judged("L1", with_proof(), Identity({"weights": spoiled.digests["weights"]._replace(tensors=tensors)}),
                     cast="bfloat16")
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "layers.2.weight"


def test_a_proof_without_a_declaration_excuses_nothing():
    assert judged("L1", with_proof(), of_bfloat16()).outcome is FAIL


def test_a_tied_tensor_may_be_left_out_where_the_manifest_says_so():
    tied = {**WEIGHTS, "head": WEIGHTS["layers.2.weight"]}
    assert judged("L1", identity(tied), identity(WEIGHTS)).outcome is FAIL
    assert judged("L1", identity(tied), identity(WEIGHTS), tied_left_out=True).outcome is PASS


def test_a_loader_that_replaces_a_head_fails_on_its_own_side():
    loaded = {**WEIGHTS, "norm": normal(30, seed=5)}
    finding = judged("L1", identity(WEIGHTS, loaded=loaded), identity(WEIGHTS, loaded=loaded))
    assert finding.outcome is FAIL
    assert [(item.code, item.params["side"], item.params["first"]) for item in finding.notes] == \
        [("identity-loaded-differs", side, "norm") for side in ("baseline", "candidate")]


@pytest.mark.parametrize("ours, theirs, policy, code", [
    (Identity(), Identity(), {}, "identity-absent"),
    (identity(WEIGHTS), Identity(), {}, "identity-one-sided"),
    (identity(WEIGHTS), identity(WEIGHTS), {"has_dataset": True}, "identity-absent"),
    (identity(WEIGHTS, data=WEIGHTS), identity(WEIGHTS), {}, "identity-one-sided"),
    (identity(WEIGHTS), Identity({"weights": digest([of_array("w", normal(3))], algorithm="sha256")._replace(
        algorithm="xxh3_128")}), {}, "digest-two-hashes"),
    (identity({}), identity({}), {}, "digest-no-tensors"),
])
def test_what_was_not_compared_is_never_a_pass(ours, theirs, policy, code):
    finding = judged("L1", ours, theirs, **policy)
    assert finding.outcome is INCONCLUSIVE
    assert code in codes(finding)


def test_a_declared_start_that_nobody_tells_of_is_open():
    finding = judged("L1", identity(WEIGHTS), identity(WEIGHTS), checkpoint="pi05_base")
    assert finding.outcome is INCONCLUSIVE
    assert codes(finding) == {"identity-start-unknown"}


def rounded_to(dtype, arrays):
    """The tensors rounded to a dtype, as their owner digests them."""
    return digest([cast_of(of_array(name, array), dtype) for name, array in arrays.items()], algorithm="sha256")


def test_a_side_cannot_prove_its_own_weights_with_themselves():
    """The digest of a bfloat16 checkpoint is the digest of its copy in bfloat16: that says nothing of the baseline's."""
    others = {name: normal(*array.shape, seed=70) for name, array in WEIGHTS.items()}
    narrow = rounded_to("bfloat16", others)
    finding = judged("L1", identity(WEIGHTS), Identity({"weights": narrow, "weights.bfloat16": narrow}), cast="bfloat16")
    assert finding.outcome is FAIL
    same = of_bfloat16()
    same = Identity({**same.digests, "weights.bfloat16": same.digests["weights"]})
    unproved = judged("L1", identity(WEIGHTS), same, cast="bfloat16")
    assert unproved.outcome is INCONCLUSIVE
    assert "identity-cast-unproved" in codes(unproved)


@pytest.mark.parametrize("size", [0.02, 1.0])
def test_a_proof_that_was_made_of_other_weights_is_none(size):
    """The baseline went on training; the digest of its rounded copy is last week's, and so are the candidate's weights."""
    older = {name: (array + size * normal(*array.shape, seed=71)).astype(np.float32) for name, array in WEIGHTS.items()}
    narrow = rounded_to("bfloat16", older)
    finding = judged("L1", Identity({**identity(WEIGHTS).digests, "weights.bfloat16": narrow}),
                     Identity({"weights": narrow}), cast="bfloat16")
    assert finding.outcome is FAIL
    assert {check.name: check.value for check in finding.checks}["differing"] == 3


def test_numbers_that_float16_cannot_hold_are_still_proved_by_their_rounded_copy():
    """float16 ends at 6e-8: of weights around 1e-6 a rounded copy is a few per cent off."""
    small = {"w": 1e-6 * normal(50, 30)}
    rounded_copy = rounded_to("float16", small)
    baseline = Identity({**identity(small).digests, "weights.float16": rounded_copy})
    assert judged("L1", baseline, Identity({"weights": rounded_copy}), cast="float16").outcome is PASS


def test_a_loader_whose_digest_has_another_hash_is_not_known_to_have_kept_the_weights():
    """Memory and file of one side by two kinds of hash: both sides did the same, and it proves nothing."""
    tensors = [of_array(name, array) for name, array in WEIGHTS.items()]
    other = [of_array(name, array + 1) for name, array in WEIGHTS.items()]
    side = Identity({"weights": digest(tensors, algorithm="sha256"), "loaded": digest(other, algorithm="xxh3_128")})
    finding = judged("L1", side, side)
    assert finding.outcome is INCONCLUSIVE
    assert "identity-loaded-open" in codes(finding)
