"""A data set is the same where its columns are, row by row; a torn or incomplete one is one clear error."""

import hashlib
import json

import numpy as np
import pytest

pyarrow = pytest.importorskip("pyarrow")

from pyarrow import parquet  # noqa: E402

from pytest_migparity.host.digest import digest  # noqa: E402
from pytest_migparity.host.safetensors_files import TensorFileError  # noqa: E402
from pytest_migparity.host.tensor_files import open_tensors  # noqa: E402
from pytest_migparity.host.tensors import of_array  # noqa: E402

ACTIONS = np.float32(range(27)).reshape(9, 3)
EPISODES = np.int64([0, 0, 0, 1, 1, 1, 1, 2, 2])
FEATURES = {"action": {"dtype": "float32", "shape": [3]}, "observation.images.top": {"dtype": "video", "shape": [4, 4, 3]},
            "episode_index": {"dtype": "int64", "shape": [1]}, "next.done": {"dtype": "bool", "shape": [1]}}


def hashes(tensors):
    return {item.name: (item.dtype, item.shape, item.hash) for item in digest(tensors, algorithm="sha256").tensors}


def table(rows, **more):
    return pyarrow.table({"action": pyarrow.array(ACTIONS[rows].tolist(), pyarrow.list_(pyarrow.float32())),
                          "episode_index": EPISODES[rows], "next.done": EPISODES[rows] == 1,
                          "next": np.int8(EPISODES[rows]), **more})


def dataset(folder, files=None, info=None, **options):
    """A data set as LeRobot lays it out; episode 10 comes after episode 9, by number and not by letter."""
    for name, rows in (files or {"chunk-000/episode_9": slice(0, 3), "chunk-000/episode_10": slice(3, 9)}).items():
        path = folder / "data" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(rows if isinstance(rows, pyarrow.Table) else table(rows), path, **options)
    (folder / "meta").mkdir()
    (folder / "meta" / "info.json").write_text(json.dumps(info or {"total_frames": 9, "features": FEATURES}))
    (folder / "meta" / "tasks.jsonl").write_text('{"task_index": 0, "task": "fold the towel"}\n')
    video = folder / "videos" / "observation.images.top" / "chunk-000" / "file-000.mp4"
    video.parent.mkdir(parents=True)
    video.write_bytes(b"\0\0\0\x18ftypmp42")
    return str(folder)


def known(folder):
    held = {"data/action": ACTIONS, "data/episode_index": EPISODES, "data/next": np.int8(EPISODES),
            "data/next.done": EPISODES == 1}
    for name in ("meta/info.json", "meta/tasks.jsonl", "videos/observation.images.top/chunk-000/file-000.mp4"):
        held[name] = np.frombuffer((folder / name).read_bytes(), np.uint8)
    return hashes([of_array(name, array) for name, array in held.items()])


def test_columns_are_tensors_over_all_files_in_the_order_of_their_numbers(tmp_path):
    assert hashes(open_tensors(dataset(tmp_path / "a"))) == known(tmp_path / "a")


def test_cuts_and_compression_do_not_count_and_the_order_of_rows_does(tmp_path):
    one = dataset(tmp_path / "a")
    other = dataset(tmp_path / "b", {"chunk-000/file-000": slice(0, 8), "chunk-000/file-001": slice(8, 9)},
                    compression="gzip", row_group_size=2)
    assert hashes(open_tensors(one)) == hashes(open_tensors(other))
    turned = dataset(tmp_path / "c", {"chunk-000/episode_9": slice(3, 9), "chunk-000/episode_10": slice(0, 3)})
    a, b = hashes(open_tensors(one)), hashes(open_tensors(turned))
    assert {name for name in a if a[name] != b[name]} == {name for name in a if name.startswith("data/")}


def test_what_is_no_number_is_hashed_row_by_row(tmp_path):
    image = pyarrow.array([{"bytes": b"\x89PNG1", "path": "/a/0.png"}, {"bytes": None, "path": "/host/x/1.png"}, None])
    held = {"text": ["Falte", "日本", None], "image": image, "ragged": [[1.0], [], [2.0, 0.5]]}
    parquet.write_table(pyarrow.table(held), tmp_path / "t.parquet")

    def rows(*values):
        return np.frombuffer(b"".join(hashlib.sha256(value).digest() if value else bytes(32) for value in values),
                             np.uint8).reshape(3, 32)

    assert hashes(open_tensors(str(tmp_path / "t.parquet"))) == hashes([
        of_array("t.parquet/text", rows(b"Falte", "日本".encode(), b"")),
        of_array("t.parquet/image", rows(b"\x89PNG1", b"1.png", b"")),
        of_array("t.parquet/ragged", rows(b"[1.0]", b"[]", b"[2.0, 0.5]"))])


@pytest.mark.parametrize("kind, values", [
    (pyarrow.float16(), np.float16([1, -2])), (pyarrow.float64(), np.float64([1, np.nan])),
    (pyarrow.uint8(), np.uint8([1, 255])), (pyarrow.list_(pyarrow.int16(), 2), np.int16([[1, 2], [3, -4]])),
    (pyarrow.list_(pyarrow.list_(pyarrow.float32(), 1), 2), np.float32([[[1], [2]], [[3], [4]]]))])
def test_every_type_of_numbers_keeps_its_bits(tmp_path, kind, values):
    parquet.write_table(pyarrow.table({"x": pyarrow.array(values.tolist(), kind)}), tmp_path / "t.parquet")
    assert hashes(open_tensors(str(tmp_path / "t.parquet"))) == hashes([of_array("t.parquet/x", values)])


def test_images_in_a_folder_are_their_bytes(tmp_path):
    (tmp_path / "frame_1.PNG").write_bytes(b"\x89PNG")
    (tmp_path / "frame_2.jpg").write_bytes(b"")
    wanted = hashes([of_array("frame_1.PNG", np.uint8([0x89, 80, 78, 71])), of_array("frame_2.jpg", np.zeros(0, np.uint8))])
    assert hashes(open_tensors(str(tmp_path))) == wanted
    assert hashes(open_tensors(str(tmp_path / "frame_1.PNG"))) == {"frame_1.PNG": wanted["frame_1.PNG"]}


MISSING_NUMBER = {"x": slice(0, 4), "y": table(slice(4, 9)).set_column(1, "episode_index", [[1, None, 1, 2, 2]])}
UNEVEN = {"x": table(slice(0, 9)).set_column(0, "action", pyarrow.array([[1.0, 2.0]] * 9, pyarrow.list_(pyarrow.float32())))}


@pytest.mark.parametrize("files, info, message", [
    (None, {"total_frames": 12, "features": FEATURES}, "9 rows, and meta/info.json speaks of 12 frames"),
    (None, {"features": {**FEATURES, "wrist": {"dtype": "video"}}}, "the video wrist, and videos/ holds none"),
    (None, {"features": [1]}, "info.json: \"features\""),
    (None, [3], "info.json is not a JSON object"),
    (MISSING_NUMBER, None, "y.parquet: column episode_index, rows 0 to 5: numbers are missing"),
    (UNEVEN, None, r"x.parquet: column action, rows 0 to 9: lists of \['2'\], expected 3"),
    ({"x": slice(0, 4), "y": table(slice(4, 9)).drop(["next"])}, None, "differ in their columns, in next"),
])
def test_a_data_set_that_is_not_whole_or_contradicts_itself_is_refused(tmp_path, files, info, message):
    with pytest.raises(TensorFileError, match=message):
        hashes(open_tensors(dataset(tmp_path / "a", files, info)))


def test_a_torn_file_and_a_folder_without_data_are_named(tmp_path):
    folder = dataset(tmp_path / "a")
    torn = tmp_path / "a" / "data" / "chunk-000" / "episode_9.parquet"
    torn.write_bytes(torn.read_bytes()[:-20])
    with pytest.raises(TensorFileError, match=r"episode_9\.parquet: no parquet file, or a torn one"):
        open_tensors(folder)
    for path in torn.parent.iterdir():
        path.unlink()
    with pytest.raises(TensorFileError, match="holds no parquet file"):
        open_tensors(folder)


def test_rows_that_do_not_unpack_are_refused_while_digesting(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table({"x": np.arange(50_000) ** 2}), path, compression="zstd", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[len(data) // 2:len(data) // 2 + 40] = bytes(40)
    path.write_bytes(data)
    with pytest.raises(TensorFileError, match=r"t\.parquet: column x"):
        hashes(open_tensors(str(path)))


def test_without_pyarrow_the_file_says_what_it_needs(tmp_path, monkeypatch):
    folder = dataset(tmp_path / "a")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(TensorFileError, match="pyarrow is not installed"):
        open_tensors(folder)
