"""Files of tensors are read as the libraries that wrote them meant; a file that lies is one clear error and runs nothing."""

import contextlib
import io
import json
import pickle
import tracemalloc
import warnings
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from pytest_migparity.host import digest as digests  # noqa: E402
from pytest_migparity.host.digest_kernels import fastest  # noqa: E402
from pytest_migparity.host.safetensors_files import TensorFileError  # noqa: E402
from pytest_migparity.host.tensor_files import open_tensors  # noqa: E402
from pytest_migparity.host.tensors import of_array  # noqa: E402

WEIGHT = np.float32(range(12)).reshape(3, 4)
BIAS = np.float16([0.5, -2.0])


def safetensors(**entries):
    """The bytes of a safetensors file from name: (dtype, array), written by the format's own description."""
    table, data = {"__metadata__": {"format": "np"}}, b""
    for name, (dtype, array) in entries.items():
        table[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    return framed(table, data)


def framed(table, data=b"", pad=b""):
    head = table if isinstance(table, bytes) else json.dumps(table).encode()
    return len(head + pad).to_bytes(8, "little") + head + pad + data


GOOD = safetensors(weight=("F32", WEIGHT), bias=("F16", BIAS))


def digested(path):
    return {item.name: item for item in digests.digest(open_tensors(str(path)), algorithm="sha256").tensors}


def known(**arrays):
    held = [of_array(name, array) for name, array in arrays.items()]
    return {item.name: item for item in digests.digest(held, algorithm="sha256").tensors}


def put(folder, name, data):
    (folder / name).write_bytes(data)
    return folder / name


def npy(array, **options):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)
    return stream.getvalue()


def test_every_kind_of_file_gives_the_digest_of_its_arrays(tmp_path):
    wanted = known(weight=WEIGHT, bias=BIAS)
    np.savez(tmp_path / "a.npz", weight=WEIGHT, bias=BIAS)
    np.savez_compressed(tmp_path / "b.npz", weight=np.asfortranarray(WEIGHT), bias=BIAS.astype(">f2"))
    for path in (tmp_path / "a.npz", tmp_path / "b.npz", put(tmp_path, "c.safetensors", GOOD)):
        assert digested(path) == wanted
    for array in (WEIGHT, np.asfortranarray(WEIGHT), WEIGHT.astype(">f4")):
        np.save(tmp_path / "d.npy", array)
        assert digested(tmp_path / "d.npy") == known(array=WEIGHT)


@pytest.mark.parametrize("name, dtype, array", [
    ("BOOL", "bool", np.uint8([0, 1])), ("U8", "uint8", np.uint8([7])), ("I8", "int8", np.int8([-7])),
    ("U16", "uint16", np.uint16([7])), ("I16", "int16", np.int16([-7])), ("U32", "uint32", np.uint32([7])),
    ("I32", "int32", np.int32([-7])), ("U64", "uint64", np.uint64([7])), ("I64", "int64", np.int64([-7])),
    ("F16", "float16", np.float16([1.5])), ("BF16", "bfloat16", np.uint16([0x3FC0])),
    ("F32", "float32", np.float32([1.5])), ("F64", "float64", np.float64([1.5])),
    ("F8_E4M3", "float8_e4m3", np.uint8([9])), ("C64", "complex64", np.complex64([1j])),
    ("F32", "float32", np.zeros((0, 3), np.float32)), ("F32", "float32", np.float32(2).reshape(())),
])
def test_every_dtype_of_safetensors(tmp_path, name, dtype, array):
    (item,) = digested(put(tmp_path, "t.safetensors", safetensors(t=(name, array)))).values()
    assert (item.dtype, item.shape) == (dtype, array.shape)
    if dtype in ("bfloat16", "float16", "float32", "float64") and array.size:
        assert item.stats.l2 == float(np.float64(1.5 if array.ndim else 2))


def test_an_unaligned_table_is_read_the_same(tmp_path):
    table = {"t": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}
    values = np.float32([1, 2, 3])
    for pad in (b"", b" ", b"   "):
        assert digested(put(tmp_path, "t.safetensors", framed(table, values.tobytes(), pad))) == known(t=values)


def test_shards_are_one_checkpoint(tmp_path):
    put(tmp_path, "m-1.safetensors", safetensors(weight=("F32", WEIGHT)))
    put(tmp_path, "m-2.safetensors", safetensors(bias=("F16", BIAS)))
    index = {"metadata": {}, "weight_map": {"weight": "m-1.safetensors", "bias": "m-2.safetensors"}}
    path = put(tmp_path, "m.safetensors.index.json", json.dumps(index).encode())
    assert digested(path) == digested(tmp_path) == known(weight=WEIGHT, bias=BIAS)


@pytest.mark.parametrize("weight_map, message", [
    ({"weight": "m-1.safetensors", "bias": "m-9.safetensors"}, "m-9.safetensors, which is not there"),
    ({"weight": "../m-1.safetensors"}, "beside it"),
    ({"weight": "pytorch_model.bin"}, "beside it"),
    ({"weight": "m-1.safetensors", "b": "m-1.safetensors"}, "'b', which only the index has"),
    ({"weight": "m-2.safetensors"}, "only the"),
    ({"weight": 3}, "weight_map"),
    (None, "weight_map"),
])
def test_an_index_that_does_not_fit_its_shards_is_refused(tmp_path, weight_map, message):
    put(tmp_path, "m-1.safetensors", safetensors(weight=("F32", WEIGHT)))
    put(tmp_path, "m-2.safetensors", safetensors(bias=("F16", BIAS)))
    path = put(tmp_path, "m.safetensors.index.json", json.dumps({"weight_map": weight_map}).encode())
    with pytest.raises(TensorFileError, match=message):
        open_tensors(str(path))


def entry(dtype="F32", shape=(3,), offsets=(0, 12), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


class Runs:
    def __reduce__(self):
        return pytest.fail, ("a pickle was run",)


def pickled_zip():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Runs()))
    return stream.getvalue()


def archive_of(*members, method=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


def claims(size):
    """An archive whose directory says that its member unpacks to `size` bytes."""
    data = archive_of(("a.npy", npy(WEIGHT)))
    at = data.rindex(b"PK\x01\x02") + 24
    return data[:at] + size.to_bytes(4, "little") + data[at + 4:]


TWELVE = bytes(12)


@pytest.mark.parametrize("name, data, message", [
    ("a.safetensors", b"", "0 bytes long, and the file has 0"),
    ("a.safetensors", GOOD[:40], "cut short"),
    ("a.safetensors", GOOD[:-1], "cut short, or grown"),
    ("a.safetensors", GOOD + b"\0", "cut short, or grown"),
    ("a.safetensors", (2**63).to_bytes(8, "little") + b"{}", "9223372036854775808 bytes long"),
    ("a.safetensors", framed(b"{" * 1000), "not JSON"),
    ("a.safetensors", framed(b"[" * 100_000), "not JSON"),
    ("a.safetensors", framed(b"[]"), "not an object"),
    ("a.safetensors", framed(b'{"a": 1, "a": 2}'), "'a' is given twice"),
    ("a.safetensors", framed({"__metadata__": {"a": 1}}), "__metadata__"),
    ("a.safetensors", framed({"a": entry(), "b": entry(offsets=(8, 20))}, bytes(20)), "'?b'? begins at byte 8 .* 12 was expected"),
    ("a.safetensors", framed({"a": entry(), "b": entry()}, TWELVE), "overlap"),
    ("a.safetensors", framed({"a": entry(offsets=(4, 16))}, bytes(16)), "hole"),
    ("a.safetensors", framed({"a": entry(shape=(4,))}, TWELVE), "takes 12 bytes, and F32 .4. needs 16"),
    ("a.safetensors", framed({"a": entry(shape=(2**62, 2**62))}, TWELVE), "needs"),
    ("a.safetensors", framed({"a": entry(offsets=(12, 0))}, TWELVE), "takes -12 bytes"),
    ("a.safetensors", framed({"a": entry(offsets=(0,))}, TWELVE), "1 offsets"),
    ("a.safetensors", framed({"a": entry(shape=(-3,))}, TWELVE), "shape"),
    ("a.safetensors", framed({"a": entry(shape=(True,))}, TWELVE), "shape"),
    ("a.safetensors", framed({"a": entry(dtype="F4")}, TWELVE), "dtype 'F4'"),
    ("a.safetensors", framed({"a": entry(dtype=["F32"])}, TWELVE), "dtype"),
    ("a.safetensors", framed({"a": entry(more=1)}, TWELVE), "not just"),
    ("a.safetensors", framed({"a": []}, TWELVE), "not just"),
    ("a.npy", npy(WEIGHT)[:-1], "cut short"),
    ("a.npy", npy(WEIGHT) + b"\0", "not one array"),
    ("a.npy", npy(WEIGHT)[:20], "npy header"),
    ("a.npy", npy(WEIGHT).replace(b"(3, 4)", b"(3,-4)"), "shape|bytes"),
    ("a.npy", npy(WEIGHT).replace(b"'<f4'", b"[[[[["), "npy header"),
    ("a.npy", npy(np.array([Runs()], object)), "pickle"),
    ("a.npy", npy(np.zeros(2, "V2")), "does not say"),
    ("a.npy", npy(np.zeros(2, [("x", "f4")])), "does not say"),
    ("a.npy", npy(np.array(["ab"])), "not a type"),
    ("a.npz", archive_of(("a.npy", npy(np.array([Runs()], object)))), "pickle"),
    ("a.npz", archive_of(("a.npy", npy(WEIGHT)), ("readme.txt", b"")), "readme.txt, which is no npy array"),
    ("a.npz", archive_of(("a.npy", npy(WEIGHT)[:-1])), "cut short"),
    ("a.npz", archive_of(("a.npy", npy(WEIGHT)), method=zipfile.ZIP_LZMA), "neither stored nor deflated"),
    ("a.npz", archive_of(("a.npy", npy(WEIGHT)))[:100], "zip"),
    ("a.npz", claims(2**31), "more than its size can hold"),
    ("a.npz", claims(1000), "1000|bytes"),
    ("a.pt", pickled_zip(), "could run code: not opened"),
    ("a.bin", pickle.dumps(Runs()), "could run code"),
    ("a.gguf", b"GGUF\x03\0\0\0\0\0\0", "neither npy, npz, safetensors nor PyTorch"),
], ids=lambda value: "data" if isinstance(value, bytes) else None)  # a zip's bytes hold the time at which it was made
def test_a_file_that_lies_is_refused_by_what_is_wrong(tmp_path, name, data, message):
    path = put(tmp_path, name, data)
    with pytest.raises(TensorFileError, match=message) as caught:
        open_tensors(str(path))
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 500 + len(str(path))


WHOLE = {"a.safetensors": GOOD, "a.npy": npy(WEIGHT), "a.npz": archive_of(("a.npy", npy(WEIGHT)), ("b.npy", npy(BIAS)))}


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(WHOLE)), st.data())
def test_no_damage_makes_anything_but_tensors_or_a_clear_error(tmp_path, name, data):
    whole = bytearray(WHOLE[name])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(whole) - 1))
        if data.draw(st.booleans()):
            whole[at] = data.draw(st.integers(0, 255))
        else:
            del whole[at:at + data.draw(st.integers(1, 9))]
            whole = whole or bytearray(b"x")
    path = put(tmp_path, name, bytes(whole))
    found = {}
    with warnings.catch_warnings(), contextlib.suppress(TensorFileError):
        warnings.simplefilter("ignore")  # numpy's, of headers that Python 2 wrote
        found = digested(path)
    assert all(len(item.hash) == 16 for item in found.values())


def test_an_array_in_an_archive_twice_is_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        data = archive_of(("a.npy", npy(WEIGHT)), ("a.npy", npy(WEIGHT)))
    with pytest.raises(TensorFileError, match="twice"):
        open_tensors(str(put(tmp_path, "a.npz", data)))


def test_elements_that_do_not_unpack_are_refused_while_digesting(tmp_path):
    values = np.arange(200_000, dtype=np.float64) ** 0.5
    data = bytearray(archive_of(("a.npy", npy(values))))
    data[len(data) // 2] ^= 255
    with pytest.raises(TensorFileError, match=r"a\.npy"):
        digested(put(tmp_path, "a.npz", bytes(data)))


@pytest.mark.parametrize("names, message", [((), "0 safetensors"), (("a", "b"), "2 safetensors")])
def test_a_folder_that_is_not_one_checkpoint_is_refused(tmp_path, names, message):
    for name in names:
        put(tmp_path, f"{name}.safetensors", GOOD)
    with pytest.raises(TensorFileError, match=message):
        open_tensors(str(tmp_path))


def test_a_file_that_is_not_there_is_named(tmp_path):
    for name in ("absent.npz", "absent.safetensors.index.json"):
        with pytest.raises(TensorFileError, match="absent"):
            open_tensors(str(tmp_path / name))


@pytest.mark.parametrize("kind", ["safetensors", "npz", "npy"])
def test_memory_does_not_grow_with_the_tensor(tmp_path, kind):
    values = np.zeros((24, 1 << 20), np.float16)  # 48 MB, of which a leaf is 2
    values[:, ::3] = 0.25
    path = tmp_path / f"t.{kind}"
    if kind == "npz":
        np.savez(path, t=np.asfortranarray(values))
    elif kind == "npy":
        np.save(path, values)
    else:
        path.write_bytes(safetensors(t=("F16", values)))
    wanted = values.size // 3 + 24
    del values
    fastest()(np.zeros(1 << 16, np.float16), "float16", 0)  # compiling is not what is measured
    tracemalloc.start()
    (item,) = digested(path).values()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert item.size - item.stats.zeros == pytest.approx(wanted, abs=24)
    assert peak < 90e6  # five leaves of 2 MB are held at once, two of them widened; all of it would be 144e6
