"""Folders of torch.distributed.checkpoint give the tensors that were saved, however ranks cut them, and run nothing."""

import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint import filesystem, metadata  # noqa: E402

from pytest_migparity.host.digest import digest  # noqa: E402
from pytest_migparity.host.safetensors_files import TensorFileError  # noqa: E402
from pytest_migparity.host.tensor_files import open_source, open_tensors  # noqa: E402
from pytest_migparity.host.tensors import of_array  # noqa: E402

WEIGHT = np.float32(range(24)).reshape(6, 4)


def hashes(tensors):
    return {item.name: (item.dtype, item.shape, item.hash) for item in digest(tensors, algorithm="sha256").tensors}


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_what_torch_saved_is_what_is_read_and_the_rest_is_named(tmp_path):
    half = torch.ones(3, 2, dtype=torch.bfloat16)
    state = {"model": {"w": torch.from_numpy(WEIGHT), "tied": torch.from_numpy(WEIGHT), "t": torch.from_numpy(WEIGHT).t()},
             "half": half, "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), "step": 7, "lr": [0.1, 0.2]}
    dcp.save(state, checkpoint_id=str(tmp_path / "c"), no_dist=True)
    found = open_source(str(tmp_path / "c"))
    assert hashes(found.tensors) == hashes([
        of_array("model.w", WEIGHT), of_array("model.tied", WEIGHT), of_array("model.t", WEIGHT.T),
        of_array("half", np.full((3, 2), 0x3F80, np.uint16), "bfloat16"), of_array("empty", np.zeros((0, 3), np.float32)),
        of_array("scalar", np.float32(2.5).reshape(()))])
    assert found.left_out == ("lr", "step")


RANK = """
import os, sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=int(sys.argv[1]), world_size=2)
mesh = init_device_mesh("cpu", (2,))
whole = torch.arange(35, dtype=torch.float32).reshape(7, 5)
state = {name: distribute_tensor(whole.clone(), mesh, [kind])
         for name, kind in (("rows", Shard(0)), ("columns", Shard(1)), ("all", Replicate()))}
dcp.save(state, checkpoint_id=sys.argv[3])
dist.barrier()
os._exit(0)  # not by way of gloo's threads, which now and then abort a process that ends
"""


def test_the_pieces_of_two_ranks_are_one_tensor(tmp_path):
    ranks = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", RANK, str(rank), tmp_path / "store", tmp_path / "c"],
                              stderr=subprocess.PIPE) for rank in (0, 1)]
    for rank in ranks:
        assert rank.communicate(timeout=120)[1] == b""
        assert rank.returncode == 0
    assert len(list((tmp_path / "c").glob("*.distcp"))) == 2
    whole = np.arange(35, dtype=np.float32).reshape(7, 5)
    assert hashes(open_tensors(str(tmp_path / "c"))) == hashes([of_array(name, whole) for name in ("rows", "columns", "all")])


def piece(array):
    """The bytes of a tensor as torch saves them."""
    import io

    stream = io.BytesIO()
    torch.save(torch.from_numpy(np.ascontiguousarray(array)), stream)
    return stream.getvalue()


def saved(folder, *boxes, size=(6, 4), dtype=torch.float32, file="__0_0.distcp", change=None):
    """A checkpoint of one tensor from boxes of (offsets, array), or (offsets, sizes, bytes)."""
    folder.mkdir()
    at, chunks, places = 0, [], {}
    with open(folder / "__0_0.distcp", "wb") as stream:
        for offsets, held, *rest in boxes:
            data, sizes = (rest[0], held) if rest else (piece(held), held.shape)
            chunks.append(metadata.ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes)))
            places[metadata.MetadataIndex("w", offsets)] = filesystem._StorageInfo(file, at, len(data))
            at += stream.write(data)
    whole = metadata.Metadata({"w": metadata.TensorStorageMetadata(metadata.TensorProperties(dtype), torch.Size(size),
                                                                    chunks)}, storage_data=places)
    if change:
        change(whole)
    (folder / ".metadata").write_bytes(pickle.dumps(whole))
    return str(folder)


def test_any_boxes_that_fill_a_tensor_are_it(tmp_path):
    cut = saved(tmp_path / "a", ((2, 1), WEIGHT[2:, 1:]), ((0, 0), WEIGHT[:2]), ((2, 0), WEIGHT[2:, :1]))
    rows = saved(tmp_path / "b", ((5, 0), WEIGHT[5:]), ((0, 0), WEIGHT[:5]))
    assert hashes(open_tensors(cut)) == hashes(open_tensors(rows)) == hashes([of_array("w", WEIGHT)])


def test_leaves_across_pieces_are_whole_leaves(tmp_path):
    values = np.arange((1 << 20) + 700, dtype=np.int32).reshape(-1, 4)
    (found,) = open_tensors(saved(tmp_path / "a", ((0, 0), values[:100]), ((100, 0), values[100:]), size=values.shape,
                                  dtype=torch.int32))
    leaves = list(found.leaves())
    assert [leaf.size for leaf in leaves] == [1 << 20, 700]
    assert np.array_equal(np.concatenate(leaves), values.ravel())


@pytest.mark.parametrize("boxes, message", [
    ([((0, 0), WEIGHT[:5])], "24 elements, and its pieces 20: a rank's are missing"),
    ([((0, 0), WEIGHT[:4]), ((2, 0), WEIGHT[2:4])], "overlap"),
    ([((0, 0), WEIGHT[:4]), ((3, 0), WEIGHT[:4])], "outside of it"),
    ([((0,), WEIGHT.ravel())], "outside of it"),
    ([((0, 0), (6, 4), b"")], "lies at byte 0"),
])
def test_pieces_that_do_not_make_the_tensor_are_refused(tmp_path, boxes, message):
    with pytest.raises(TensorFileError, match=message) as caught:
        open_tensors(saved(tmp_path / "c", *boxes))
    assert str(tmp_path / "c") in str(caught.value)


def place(whole):
    (found,) = whole.storage_data.values()
    return found


def negative(whole):
    whole.state_dict_metadata["w"].size = (-6, -4)


@pytest.mark.parametrize("change, message", [
    (lambda whole: setattr(place(whole), "relative_path", "../c/__0_0.distcp"), "beside it"),
    (lambda whole: setattr(place(whole), "relative_path", "__9_0.distcp"), "__9_0.distcp, which is not there"),
    (lambda whole: setattr(place(whole), "length", 10**9), "cut short"),
    (lambda whole: setattr(place(whole), "offset", -1), "cut short"),
    (lambda whole: setattr(place(whole), "transform_descriptors", ("zstd",)), "not undone"),
    (lambda whole: whole.storage_data.clear(), "does not say where"),
    (negative, "no shape"),
    (lambda whole: setattr(whole, "storage_data", None), "damaged"),
    (lambda whole: whole.state_dict_metadata.update(v=os.path.join), "posixpath.join, which no such file needs"),
])
def test_metadata_that_lie_are_refused(tmp_path, change, message):
    with pytest.raises(TensorFileError, match=message) as caught:
        open_tensors(saved(tmp_path / "c", ((0, 0), WEIGHT), change=change))
    assert str(caught.value).startswith(str(tmp_path / "c" / ".metadata"))


class Evil:
    """A pickle of this makes a folder where it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_metadata_pickle_with_code_is_refused_by_name_and_nothing_runs(tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / ".metadata").write_bytes(pickle.dumps(Evil(str(tmp_path / "made"))))
    with pytest.raises(TensorFileError, match=r"posix\.mkdir, which no such file needs, and could run code"):
        open_tensors(str(tmp_path / "c"))
    assert not (tmp_path / "made").exists()


def test_a_piece_with_code_is_refused_while_digesting_and_nothing_runs(tmp_path):
    folder = saved(tmp_path / "c", ((0, 0), (6, 4), pickle.dumps(Evil(str(tmp_path / "made")))))
    with pytest.raises(TensorFileError, match="could run code"):
        hashes(open_tensors(folder))
    assert not (tmp_path / "made").exists()


def test_a_piece_that_expands_or_is_another_tensor_is_refused(tmp_path):
    import io

    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(piece(WEIGHT))) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    other = piece(WEIGHT.astype(np.float64))
    for name, data, message in (("a", packed.getvalue(), "is compressed"), ("b", other, "the metadata speak of float32"),
                                ("c", piece(WEIGHT.T), "speak of float32"), ("d", piece(WEIGHT)[:-50], "damaged")):
        with pytest.raises(TensorFileError, match=message):
            hashes(open_tensors(saved(tmp_path / name, ((0, 0), (6, 4), data))))


@pytest.mark.parametrize("at", range(0, 600, 7))
def test_no_damage_to_the_metadata_makes_anything_but_tensors_or_a_clear_error(tmp_path, at):
    folder = saved(tmp_path / "c", ((0, 0), WEIGHT))
    data = bytearray((tmp_path / "c" / ".metadata").read_bytes())
    data[at % len(data)] ^= 0x15
    (tmp_path / "c" / ".metadata").write_bytes(bytes(data))
    try:
        found = hashes(open_tensors(folder))
    except TensorFileError:
        return
    assert [item[2] for item in found.values()] == [hashes([of_array("w", WEIGHT)])["w"][2]]


def test_without_torch_the_folder_says_what_it_needs(tmp_path, monkeypatch):
    folder = saved(tmp_path / "c", ((0, 0), WEIGHT))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(TensorFileError, match="torch is not installed"):
        open_tensors(folder)
