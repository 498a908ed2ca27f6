"""The file channel never leaves its folder; the store never hands out bytes that are not what their name says."""

import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_migparity.channels.file import ChannelError
from pytest_migparity.channels.sites import check_url, open_site
from pytest_migparity.channels.store import Store, StoreError
from pytest_migparity.core.errors import UserError


def read(channel, name):
    with channel.open(name) as stream:
        return stream.read()


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    (folder / "sub").mkdir(parents=True)
    (folder / "loss.jsonl").write_bytes(b"one")
    (folder / "sub" / "b.log").write_bytes(b"two")
    return folder


def test_names_are_relative_sorted_and_read_as_bytes(site, tmp_path):
    channel = open_site("file:site", tmp_path)
    assert channel.names() == ["loss.jsonl", "sub/b.log"]
    assert read(channel, "sub/b.log") == b"two"


@pytest.mark.parametrize("url", ["file:{}", "file://{}", "file://localhost{}"])
def test_absolute_forms_of_the_url(site, url, tmp_path):
    assert "loss.jsonl" in open_site(url.format(site), tmp_path / "elsewhere").names()


def test_a_single_file_is_a_site_of_one(site, tmp_path):
    channel = open_site("file:site/loss.jsonl", tmp_path)
    assert channel.names() == ["loss.jsonl"]
    assert read(channel, "loss.jsonl") == b"one"


def test_links_out_of_the_site_are_neither_listed_nor_read(site, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x")
    (site / "link").symlink_to(secret)
    channel = open_site("file:site", tmp_path)
    assert "link" not in channel.names()
    for name in ("link", "../secret", str(secret)):
        with pytest.raises(ChannelError, match="leads out"):
            channel.open(name)


def test_what_is_not_there_is_told(tmp_path, site):
    with pytest.raises(ChannelError, match="no such folder or file"):
        open_site("file:absent", tmp_path).names()
    with pytest.raises(ChannelError, match="No such file"):
        open_site("file:site", tmp_path).open("absent")


@pytest.mark.parametrize("url, message", [
    ("site", "no URL; for a folder or file on this machine write file:site"),
    ("flie:site", "no channel for flie:.*did you mean 'file'"),
    ("ssh://host/x", "no channel for ssh:"),
    ("file://otherhost/x", "this machine only"),
])
def test_a_url_that_no_channel_reads_is_refused(url, message, tmp_path):
    with pytest.raises(UserError, match=message):
        open_site(url, tmp_path)
    if "otherhost" not in url:
        with pytest.raises(UserError, match=message):
            check_url(url)


def test_the_store_keeps_bytes_by_their_hash_and_verifies_when_read(tmp_path):
    store = Store(tmp_path / "cache")
    stored = store.add(io.BytesIO(b"hello"))
    assert stored.sha256 == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # sha256sum of hello
    assert store.read(stored) == b"hello"
    stored.path.write_bytes(b"hellO")
    with pytest.raises(StoreError, match="damaged"):
        store.read(stored)
    assert store.read(store.add(io.BytesIO(b"hello"))) == b"hello"  # fetching again mends it
    stored.path.unlink()
    with pytest.raises(StoreError, match="fetch the evidence again"):
        store.read(stored)


def test_a_stream_from_the_store_is_verified_before_its_first_byte(tmp_path):
    store = Store(tmp_path / "cache")
    stored = store.add(io.BytesIO(b"hello"))
    with store.open(stored) as stream:
        assert stream.read(2) == b"he"
    stored.path.write_bytes(b"hellO")
    with pytest.raises(StoreError, match="damaged"):
        store.open(stored)


def test_many_writers_of_the_same_bytes_leave_one_whole_blob(tmp_path):
    store = Store(tmp_path)
    data = os.urandom(1 << 20)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: store.add(io.BytesIO(data)), range(16)))
    assert {store.read(stored) for stored in results} == {data}
    assert not list(tmp_path.rglob("*.part"))


def test_a_stream_that_breaks_leaves_nothing_behind(tmp_path):
    class Torn(io.BytesIO):
        def read(self, size=-1):
            raise OSError(5, "wire cut")

    with pytest.raises(StoreError, match="wire cut"):
        Store(tmp_path).add(Torn())
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_stream_without_an_end_is_cut_off_and_leaves_nothing(tmp_path):
    with pytest.raises(StoreError, match="more than 10 bytes"):
        Store(tmp_path).add(io.BytesIO(b"x" * 11), most=10)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert Store(tmp_path).add(io.BytesIO(b"x" * 10), most=10).bytes == 10


def test_a_cache_that_is_a_file_is_told_with_the_way_out(tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.raises(StoreError, match="MIGPARITY_CACHE"):
        Store(tmp_path / "cache").add(io.BytesIO(b"x"))


MOUNTED = """
import io, pathlib, subprocess, sys
from pytest_migparity.channels.store import Store, StoreError
root, options, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", root], check=True)
try:
    Store(pathlib.Path(root)).add(io.BytesIO(b"x" * size))
except StoreError as error:
    print(error)
"""


@pytest.mark.parametrize("options, size, why", [("size=64k", 1 << 20, "No space left"), ("ro", 1, "Read-only")])
def test_a_full_or_read_only_cache_is_one_clear_error(tmp_path, options, size, why):
    """On a real file system that is full or read-only: permissions mean nothing to root."""
    command = ["unshare", "--mount", sys.executable, "-c", MOUNTED, str(tmp_path), options, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr or "permission" in done.stderr.lower():
        pytest.skip(f"no private mounts here: {done.stderr.strip()[:100]}")
    assert why in done.stdout, done.stderr
    assert "MIGPARITY_CACHE" in done.stdout
    assert "Traceback" not in done.stderr
