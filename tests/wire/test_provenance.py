"""The provenance document: what it keeps, what it refuses, and what a loader changed."""

import json

import numpy as np
import pytest

from pytest_migparity.host.digest import digest
from pytest_migparity.host.tensors import of_array
from pytest_migparity.wire.provenance import (
    Asked,
    LogLine,
    Provenance,
    ProvenanceError,
    Weights,
    digest_hash,
    parse,
    to_text,
    weights_of,
)

FULL = Provenance((Asked("policy.pretrained_path", "lerobot/pi0_base", "train.json", "init", True),),
                  (LogLine(12, "Loading weights from local directory"),),
                  Weights("a" * 16, "b" * 16, ("lm_head.weight",), 1))


def checkpoint(level=1, **arrays):
    return digest([of_array(name, array) for name, array in arrays.items()], level=level, algorithm="sha256")


def weights(seed=0):
    return np.random.default_rng(seed).standard_normal((8, 8)).astype(np.float32)


def test_a_document_comes_back_as_it_was_written():
    assert parse(to_text(FULL)) == FULL
    assert parse(to_text(Provenance())) == Provenance()


def changed(path, value):
    data = json.loads(to_text(FULL))
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(data)


@pytest.mark.parametrize(("text", "said"), [
    ("", "not JSON"), ("[" * 100_000, "not JSON"), ("{}", "schema"), (" " * (1 << 21), "larger than"),
    (changed(["schema"], "migparity.provenance/2"), "schema"),
    (changed(["asked"], {}), "\"asked\" is not a list"),
    (changed(["lines"], [[1, "x"]] * 1001), "at most 1000"),
    (changed(["asked", 0], {"field": "x"}), "asked[0] has not just"),
    (changed(["asked", 0, "intent"], "guess"), "asked[0].intent"),
    (changed(["asked", 0, "chosen"], 1), "asked[0]"),
    (changed(["asked", 0, "value"], "a\x1b[31m"), "printable"),
    (changed(["asked", 0, "value"], "x" * 1001), "printable"),
    (changed(["lines", 0], [0, "x"]), "lines[0] is not a line number"),
    (changed(["lines", 0], [True, "x"]), "lines[0] is not a line number"),
    (changed(["lines", 0], "x"), "lines[0] is not a line number"),
    (changed(["weights"], []), "weights has not just"),
    (changed(["weights", "file"], "short"), "weights.file"),
    (changed(["weights", "loaded"], ""), "weights.differing does not fit"),
    (changed(["weights", "amount"], 0), "weights.differing does not fit"),
    (changed(["weights", "amount"], 500), "weights.differing does not fit"),
    (changed(["weights", "differing"], [7]), "weights.differing"),
])
def test_a_document_that_breaks_a_rule_is_refused(text, said):
    with pytest.raises(ProvenanceError) as caught:
        parse(text)
    assert said in str(caught.value)


def test_a_replaced_head_is_named():
    file = checkpoint(body=weights(), head=weights(1))
    found = weights_of(file, checkpoint(body=weights(), head=weights(2)))
    assert (found.differing, found.amount) == (("head",), 1)
    assert found.file != found.loaded
    assert found.file == digest_hash(file)


def test_what_is_in_one_of_them_alone_is_named():
    found = weights_of(checkpoint(body=weights(), gone=weights()), checkpoint(body=weights(), new=weights()))
    assert found.differing == ("gone", "new")


def test_an_exact_cast_on_loading_is_no_difference():
    """float16 numbers as float32 in memory; one of them moved by the least step is a difference."""
    half = weights().astype(np.float16)
    wide = half.astype(np.float32)
    assert weights_of(checkpoint(w=half), checkpoint(w=wide)).amount == 0
    wide[3, 3] = np.nextafter(wide[3, 3], np.float32(9))
    assert weights_of(checkpoint(w=half), checkpoint(w=wide)).differing == ("w",)


def test_a_reshaped_tensor_is_a_difference():
    assert weights_of(checkpoint(w=weights()), checkpoint(w=weights().reshape(4, 16))).differing == ("w",)


def test_digests_that_cannot_be_compared_say_so():
    half = weights().astype(np.float16)
    with pytest.raises(ProvenanceError, match="level 0"):
        weights_of(checkpoint(0, w=half), checkpoint(0, w=half.astype(np.float32)))
    with pytest.raises(ProvenanceError, match="use one for both"):
        weights_of(checkpoint(w=half), checkpoint(w=half)._replace(algorithm="xxh3_128"))


def test_more_differences_than_are_kept_are_counted():
    many = {f"p{at:04}": np.full(1, at, np.float32) for at in range(300)}
    found = weights_of(checkpoint(**many), checkpoint(**{name: array + 1 for name, array in many.items()}))
    assert (len(found.differing), found.amount) == (200, 300)
    assert parse(to_text(Provenance(weights=found))).weights == found
