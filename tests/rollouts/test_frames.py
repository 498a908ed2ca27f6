"""Messages between worker and policy: what is sent arrives, and a hostile peer's is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from pytest_migparity.rollouts.frames import FrameError, from_frame, to_frame

ARRAYS = st.dictionaries(st.text(max_size=8), stn.arrays(
    st.sampled_from([np.uint8, np.int64, np.float32, np.float64, np.bool_, np.dtype(">f4")]),
    stn.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)), max_size=3)


@given(ARRAYS)
def test_what_is_sent_arrives(arrays):
    head, found = from_frame(to_frame({"seed": 7, "ask": "act"}, arrays))
    assert head == {"seed": 7, "ask": "act"}
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype.kind == array.dtype.kind


def frame(**table):
    return json.dumps({"head": {}, "arrays": table}).encode() + b"\n" + bytes(8)


@pytest.mark.parametrize("bad", [
    b"", b"\x80\x04cos\nsystem\n", b"[1]\n", b"{}\n", frame(), frame(a=["<f8", [2]]), frame(a=["<f8", [-1]]),
    frame(a=["|O", [1]]), frame(a=["<f8", [1], 3]), frame(a=["<U2", [1]]), frame(a=["<f4", [1]]), frame(a=["<f8", ["1"]]),
    frame(a=["<f8", [1 << 40, 1 << 40]]), json.dumps({"head": 3, "arrays": {}}).encode() + b"\n"])
def test_a_message_that_breaks_the_rules_is_refused(bad):
    with pytest.raises(FrameError):
        from_frame(bad)
