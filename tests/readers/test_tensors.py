"""Digests and recordings as they lie at a site: what is which, and what cannot be."""

from __future__ import annotations

import io

import numpy as np
import pytest
from recordings import event, recording

from pytest_migparity.core.errors import UserError
from pytest_migparity.host.digest import digest
from pytest_migparity.host.tensors import of_array
from pytest_migparity.readers.tensors import read_digests, read_recordings
from pytest_migparity.wire import digest_text, record

DIGEST = digest_text.to_text(digest([of_array("w", np.ones(3, np.float32))], algorithm="sha256")).encode()
RECORD = record.to_text(recording([event("input", "x", np.ones(3))])).encode()


def held(**files):
    return {name.replace("__", "/").replace("_", "."): lambda data=data: io.BytesIO(data) for name, data in files.items()}


def test_a_digest_is_of_what_its_name_says():
    found = read_digests(held(weights_digest=DIGEST, a__loaded_digest=DIGEST, weights_bfloat16_digest=DIGEST))
    assert set(found) == {"weights", "loaded", "weights.bfloat16"}


@pytest.mark.parametrize("files, said", [
    (held(model_digest=DIGEST), "model.digest: a digest is called"),
    (held(weights_int4_digest=DIGEST), "a digest is called"),
    (held(a__weights_digest=DIGEST, b__weights_digest=DIGEST), "two digests of the weights"),
    (held(weights_digest=DIGEST[:-9]), "weights.digest: holds"),
    (held(weights_digest=RECORD), "weights.digest: this is migparity.record/1"),
    (held(weights_digest=b""), "weights.digest: the first line"),
])
def test_digests_that_cannot_be_read_are_one_error(files, said):
    with pytest.raises(UserError) as caught:
        read_digests(files)
    assert said in str(caught.value)


@pytest.mark.parametrize("files, said", [
    (held(a_record=RECORD, b_record=RECORD), "a.record are both of rank 0"),
    (held(a_record=DIGEST), "a.record: this is migparity.digest/1"),
    (held(a_record=RECORD[:200] + b"x" + RECORD[201:]), "a.record: mangled"),
])
def test_recordings_that_cannot_be_read_are_one_error(files, said):
    with pytest.raises(UserError) as caught:
        read_recordings(files)
    assert said in str(caught.value)


def test_ranks_come_in_order():
    ranks = {f"{name}_record": record.to_text(recording([event("input", "x", np.ones(3))], rank=rank, world=2)).encode()
             for name, rank in (("a", 1), ("b", 0))}
    assert [item.rank for item in read_recordings(held(**ranks))] == [0, 1]
