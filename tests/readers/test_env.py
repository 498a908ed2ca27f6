"""One lock, or one for each rank, from files as they come."""

import json

import pytest

from pytest_migparity.readers.env import read_env
from pytest_migparity.wire.env import MAX_BYTES, SCHEMA, EnvError


def lock(rank=None):
    document = {"schema": SCHEMA, "python": {}, "env": {}, "packages": {}}
    return json.dumps(document if rank is None else {**document, "rank": {"rank": rank, "world": 11}}).encode()


def test_ranks_come_in_their_order_not_in_that_of_their_names():
    found = read_env({f"env.rank{rank}.json": lock(rank) for rank in (10, 2, 0)})
    assert [document["rank"]["rank"] for document in found.ranks] == [0, 2, 10]


def test_a_byte_order_mark_is_no_error():
    assert len(read_env({"env.json": b"\xef\xbb\xbf" + lock()}).ranks) == 1


@pytest.mark.parametrize("files, named", [
    ({}, "no environment lock"),
    ({"env.json": b""}, "env.json: not JSON"),
    ({"env.json": "中文".encode("gbk")}, "env.json: not UTF-8"),
    ({"env.json": b"\x00\x01\x02"}, "env.json"),
    ({"env.json": b" " * (MAX_BYTES + 1)}, "env.json: larger"),
    ({"env.json": lock(), "env.rank0.json": lock(0)}, "env.rank0.json: rank 0 was already given by env.json"),
    ({"env.rank0.json": lock(0), "env.rank1.json": lock(1)[:-1]}, "env.rank1.json"),
])
def test_a_file_that_cannot_be_used_is_named(files, named):
    with pytest.raises(EnvError) as caught:
        read_env(files)
    assert named in str(caught.value)
