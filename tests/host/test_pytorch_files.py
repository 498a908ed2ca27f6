"""PyTorch files are read weights-only: the tensors that torch itself gives, and never what a pickle would run."""

import json
import os
import pickle
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pytest_migparity.host.digest import digest  # noqa: E402
from pytest_migparity.host.pytorch_zip import read_zip  # noqa: E402
from pytest_migparity.host.safetensors_files import TensorFileError  # noqa: E402
from pytest_migparity.host.tensor_files import open_source, open_tensors  # noqa: E402
from pytest_migparity.host.tensors import of_array  # noqa: E402
from pytest_migparity.host.torch_tensors import of_module, of_torch  # noqa: E402


class Evil:
    """A pickle of this makes a file where it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def hashes(tensors):
    return {item.name: (item.dtype, item.shape, item.hash) for item in digest(tensors, algorithm="sha256").tensors}


def state():
    torch.manual_seed(0)
    weight = torch.randn(40, 30)
    return {"model": {"w": weight, "tied": weight, "t": weight.t(), "half": weight.bfloat16()}, "step": 7,
            "optimizer": {"state": {0: {"exp_avg": torch.randn(3)}}}, "scalar": torch.tensor(2.5)}


def known():
    whole = state()
    w = whole["model"]["w"].numpy()
    half = whole["model"]["half"].view(torch.int16).numpy().view(np.uint16)
    return hashes([of_array("model.w", w), of_array("model.tied", w), of_array("model.t", w.T),
                   of_array("model.half", half, "bfloat16"), of_array("scalar", np.float32(2.5).reshape(())),
                   of_array("optimizer.state.0.exp_avg", whole["optimizer"]["state"][0]["exp_avg"].numpy())])


@pytest.mark.parametrize("zipped", [True, False])
def test_the_tensors_of_a_file_are_those_that_were_saved(tmp_path, zipped):
    torch.save(state(), tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    assert hashes(open_tensors(str(tmp_path / "a.pt"))) == known()


def test_a_module_and_its_file_have_one_digest(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.BatchNorm1d(7))
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    found = hashes(open_tensors(str(tmp_path / "pytorch_model.bin")))
    assert found == hashes(of_module(model))
    assert found["1.num_batches_tracked"][:2] == ("int64", ())


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bool", "int8", "uint16", "complex64", "float64"])
def test_every_dtype_keeps_its_bits(dtype):
    held = (torch.randn(10, 6, generator=torch.Generator().manual_seed(0)) * 3).abs().to(getattr(torch, dtype))
    (leaf,) = of_torch("t", held).leaves()
    assert leaf.tobytes() == bytes(held.view(torch.uint8).flatten().tolist())


def test_a_tensor_of_any_strides_is_read_in_c_order_leaf_by_leaf():
    held = torch.arange(3 * 700 * 1000, dtype=torch.int32).reshape(3, 700, 1000).permute(2, 0, 1)[::2]
    leaves = list(of_torch("t", held).leaves())
    assert [leaf.size for leaf in leaves] == [1 << 20, held.numel() - (1 << 20)]
    assert np.array_equal(np.concatenate(leaves), held.contiguous().numpy().ravel())


@pytest.mark.parametrize("make", [
    lambda path, evil: torch.save({"w": torch.ones(2), "x": evil}, path),
    lambda path, evil: torch.save(evil, path, _use_new_zipfile_serialization=False),
    lambda path, evil: path.write_bytes(pickle.dumps(evil)),
])
def test_a_pickle_with_code_is_refused_by_name_and_nothing_runs(tmp_path, make):
    make(tmp_path / "evil.pt", Evil(str(tmp_path / "made")))
    with pytest.raises(TensorFileError, match=r"evil\.pt") as caught:
        open_tensors(str(tmp_path / "evil.pt"))
    assert "could run code" in str(caught.value)
    assert "weights_only=False" not in str(caught.value), "no advice to run it all the same"
    assert not (tmp_path / "made").exists()


def test_a_compressed_storage_is_no_file_of_torch(tmp_path):
    torch.save({"w": torch.zeros(1000)}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as old, zipfile.ZipFile(tmp_path / "b.pt", "w",
                                                                     zipfile.ZIP_DEFLATED) as bomb:
        for name in old.namelist():
            bomb.writestr(name, old.read(name))
    with pytest.raises(TensorFileError, match="is compressed"):
        open_tensors(str(tmp_path / "b.pt"))


@pytest.mark.parametrize("cut", [20, 300, -30])
def test_a_torn_file_is_one_error(tmp_path, cut):
    torch.save(state(), tmp_path / "a.pt")
    data = (tmp_path / "a.pt").read_bytes()
    (tmp_path / "torn.pt").write_bytes(data[:cut])
    with pytest.raises(TensorFileError, match=r"torn\.pt"):
        open_tensors(str(tmp_path / "torn.pt"))


def test_plain_tensors_are_read_without_torch(tmp_path, monkeypatch):
    torch.save(state(), tmp_path / "a.pt")
    wanted = known()
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    opened = open_source(str(tmp_path / "a.pt"))
    assert hashes(opened.tensors) == wanted
    assert opened.left_out == ("step",)


@pytest.mark.parametrize("held, options", [
    (lambda path: state(), {"_use_new_zipfile_serialization": False}),
    (lambda path: {"w": torch.eye(3).to_sparse()}, {}),
    (lambda path: {"w": torch.ones(2), "evil": Evil(str(path))}, {}),
])
def test_without_torch_a_file_of_more_than_plain_tensors_says_what_it_needs(tmp_path, monkeypatch, held, options):
    torch.save(held(tmp_path / "made"), tmp_path / "a.pt", **options)
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(TensorFileError, match="could run code: not opened; torch is not installed"):
        open_tensors(str(tmp_path / "a.pt"))
    assert not (tmp_path / "made").exists()


def test_a_file_without_tensors_says_so(tmp_path):
    torch.save("text", tmp_path / "a.pt")
    with pytest.raises(TensorFileError, match="holds a str, and no tensors"):
        open_tensors(str(tmp_path / "a.pt"))


def test_a_sparse_tensor_is_refused_by_name():
    with pytest.raises(ValueError, match=r"s: torch\.float32, torch\.sparse_coo on cpu"):
        of_torch("s", torch.eye(3).to_sparse())


def test_a_shard_of_a_rank_is_refused_by_name():
    class OfARank(torch.Tensor):
        def full_tensor(self):
            return self

    with pytest.raises(ValueError, match=r"w: this rank holds only a part of it; digest its full_tensor\(\)"):
        of_torch("w", torch.ones(2).as_subclass(OfARank))


def test_shards_under_an_index_are_one_checkpoint(tmp_path):
    whole = state()["model"]
    torch.save({"w": whole["w"], "step": 3}, tmp_path / "pytorch_model-1.bin")
    torch.save({"half": whole["half"]}, tmp_path / "pytorch_model-2.bin")
    index = {"weight_map": {"w": "pytorch_model-1.bin", "half": "pytorch_model-2.bin"}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    wanted = {name[len("model."):]: held for name, held in known().items() if name in ("model.w", "model.half")}
    assert hashes(open_tensors(str(tmp_path))) == wanted
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {"w": "../a.bin"}}))
    with pytest.raises(TensorFileError, match="beside it"):
        open_tensors(str(tmp_path))


def test_a_view_of_a_storage_is_read_where_it_lies(tmp_path):
    base = torch.arange(4000, dtype=torch.float32)
    held = {"part": base[100:300], "spread": base[::7], "turned": base[:600].reshape(20, 30).t(), "all": base,
            "conj": torch.tensor([1 + 2j]).conj(), "minus": torch.tensor([1 + 2j]).conj().imag}
    torch.save(held, tmp_path / "a.pt")
    found = {tensor.name: np.concatenate(list(tensor.leaves())) for tensor in open_tensors(str(tmp_path / "a.pt"))}
    for name in ("part", "spread", "turned", "all"):
        assert np.array_equal(found[name], held[name].numpy().ravel()), name
    assert found["conj"].view(np.complex64).tolist() == [1 - 2j]
    assert found["minus"].tolist() == [-2]


def rewritten(source, target, **replaced):
    """A PyTorch file with other bytes in some of its members; None for one that is left out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            change = replaced.get(name.partition("/")[2].replace(".", "_").replace("/", "_"), lambda data: data)
            if change:
                new.writestr(name, change(old.read(name)))


@pytest.mark.parametrize("replaced", [
    {"data_pkl": lambda data: data.replace(b"K\x04\x85", b"K\x05\x85")},  # a shape that reaches past its storage
    {"data_pkl": lambda data: data.replace(b"K\x00K\x04\x85", b"K\x01K\x04\x85")},  # an offset that does
    {"data_pkl": lambda data: data.replace(b"K\x01\x85", b"K\x02\x85")},  # a stride that does
    {"data_pkl": lambda data: data.replace(b"FloatStorage", b"ShortStorage")},
    {"data_pkl": lambda data: data.replace(b"_rebuild_tensor_v2", b"_rebuild_tensor_v9")},
    {"data_pkl": lambda data: data[:-5]},
    {"data_0": None},
    {"data_0": lambda data: data[:-1]},
    {"byteorder": lambda data: b"big"},
])
def test_a_zip_that_is_not_plain_is_left_to_torch(tmp_path, replaced):
    torch.save(torch.arange(4, dtype=torch.float32), tmp_path / "a.pt")
    rewritten(tmp_path / "a.pt", tmp_path / "same.pt")
    rewritten(tmp_path / "a.pt", tmp_path / "b.pt", **replaced)
    assert hashes(read_zip(str(tmp_path / "same.pt")).tensors) == hashes([of_array("tensor", np.arange(4, dtype="f4"))])
    assert read_zip(str(tmp_path / "b.pt")) is None


def test_a_file_whose_lists_multiply_as_they_are_walked_is_refused(tmp_path):
    inner = []
    for _ in range(40):
        inner = [inner, inner]
    torch.save(inner, tmp_path / "a.pt")
    with pytest.raises(TensorFileError, match="unfold to more than 1048576 entries"):
        open_tensors(str(tmp_path / "a.pt"))


def changed_by_pickle(path, state, *, called, name=b"_rebuild_tensor_v2"):
    """A file whose pickle sets attributes (BUILD) of what it has just called, or of the function itself."""
    torch.save({"w": torch.arange(4, dtype=torch.float32)}, path.with_suffix(".honest"))
    with zipfile.ZipFile(path.with_suffix(".honest")) as archive:
        inner = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        pickled = archive.read(inner)
    change = pickle.dumps(state, protocol=2)[2:-1] + b"b"
    at = pickled.rindex(b"Rq") + 1 if called else pickled.index(name) + len(name) + 1
    rewritten(path.with_suffix(".honest"), path, data_pkl=lambda data: pickled[:at] + change + pickled[at:])


@pytest.mark.parametrize("called", [True, False], ids=["a tensor", "a function"])
@pytest.mark.parametrize("state", [{"strides": (-(1 << 40),)}, (None, {"strides": (1 << 40,)}), {"shape": (9,)},
                                   (None, {"__defaults__": (1,)})])
def test_a_pickle_changes_nothing_that_it_was_given(tmp_path, state, called):
    """Strides that lead out of the file would read the memory beside it."""
    changed_by_pickle(tmp_path / "evil.pt", state, called=called)
    assert read_zip(str(tmp_path / "evil.pt")) is None
    torch.save({"w": torch.arange(4)}, tmp_path / "next.pt")
    assert [tensor.shape for tensor in read_zip(str(tmp_path / "next.pt")).tensors] == [(4,)]
    with pytest.raises(TensorFileError, match=r"evil\.pt"):
        [list(tensor.leaves()) for tensor in open_tensors(str(tmp_path / "evil.pt"))]
