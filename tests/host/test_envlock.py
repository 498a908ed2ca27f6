"""What the collector sees: package origins, patched files, accelerator stacks, trees, compiled extensions."""

import base64
import hashlib
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_migparity.host.envlock import architectures, collect, npu_facts, payload_rows, runner


def install(site, name="lib", version="1.0", files=None, direct=None, wheel="Tag: py3-none-any\n", installer="pip"):
    """Put a distribution into a folder as an installer would, RECORD included."""
    files = {f"{name}/__init__.py": b"x = 1\n", f"{name}/model.py": b"y = 2\n"} if files is None else files
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    rows = []
    for path, content in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(content)}")
    rows += [f"{info.name}/RECORD,,", f"../../bin/{name},sha256=abc,9", f"{name}/__pycache__/a.pyc,,",
             f"{info.name}/INSTALLER,sha256={installer},4"]
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("\n".join(rows) + "\n")
    (info / "INSTALLER").write_text(installer + "\n")
    if wheel:
        (info / "WHEEL").write_text("Wheel-Version: 1.0\n" + wheel)
    if direct:
        (info / "direct_url.json").write_text(json.dumps(direct))
    return site


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """The lock's entry of `lib`, after the given installations were put on the path (the last one first)."""
    def look(*sites, named=()):
        for site in sites:
            monkeypatch.syspath_prepend(str(site))
        return collect(packages=named, environ={"PATH": os.environ["PATH"]}, torch=False)["packages"]["lib"]
    return look


def test_a_wheel_from_the_index(tmp_path, entry):
    version, kind, payload, build = entry(install(tmp_path / "a"))
    assert (version, kind, build) == ("1.0", "index", "pure")
    lines = [f"lib/{name},sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
             for name, content in (("__init__.py", b"x = 1\n"), ("model.py", b"y = 2\n"))]
    assert payload == hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def test_the_payload_ignores_installer_scripts_and_byte_code():
    record = ("lib/a.py,sha256=x,1\nlib-1.0.dist-info/RECORD,,\n../../bin/lib,sha256=y,2\n"
              "lib/__pycache__/a.pyc,sha256=z,3\n")
    assert payload_rows(record) == [("lib/a.py", "sha256=x", "1")]


@pytest.mark.parametrize("direct, kind, details", [
    ({"url": "https://h.example/o/lib", "vcs_info": {"vcs": "git", "commit_id": "b" * 40}}, "vcs",
     {"url": "https://h.example/o/lib", "commit": "b" * 40}),
    ({"url": "https://h.example/lib.whl", "archive_info": {"hash": "sha256=" + "c" * 64}}, "archive",
     {"url": "https://h.example/lib.whl", "archive": "c" * 12}),
    ({"url": "file:///data/wheels/lib.whl", "archive_info": {"hashes": {"sha256": "d" * 64}}}, "archive",
     {"url": "lib.whl", "archive": "d" * 12}),
    ({"url": "file:///no/such/folder", "dir_info": {}}, "local", None),
    ({"url": "file:///no/such/folder", "dir_info": {"editable": True}}, "editable", None),
])
def test_origins(tmp_path, entry, direct, kind, details):
    found = entry(install(tmp_path / "a", direct=direct))
    assert found[1] == kind
    assert found[4:] == ([details] if details else [])


@pytest.mark.parametrize("wheel, build", [("Tag: cp311-cp311-linux_x86_64\n", "binary"), ("", "?")])
def test_the_kind_of_build(tmp_path, entry, wheel, build):
    assert entry(install(tmp_path / "a", wheel=wheel))[3] == build


def test_conda_is_another_origin_than_the_index(tmp_path, entry):
    assert entry(install(tmp_path / "a", installer="conda"))[1] == "conda"


def test_a_patched_file_is_seen_by_its_hash_although_the_version_stays(tmp_path, entry):
    site = install(tmp_path / "a")
    (site / "lib" / "model.py").write_bytes(b"y = 3\n")  # as long as before
    assert len(entry(site)) == 4
    details = entry(named=["Lib"])[4]
    assert (details["checked"], details["modified"]) == (2, 1)
    assert len(details["patch"]) == 12


def test_a_patched_file_of_an_unnamed_package_is_seen_by_its_size(tmp_path, entry):
    site = install(tmp_path / "a")
    (site / "lib" / "model.py").write_bytes(b"y = 3  # longer\n")
    assert entry(site)[4] == {"modified": 1}


def test_added_and_missing_files_are_counted(tmp_path, entry):
    site = install(tmp_path / "a")
    (site / "lib" / "model.py").unlink()
    (site / "lib" / "patched.py").write_text("z = 1\n")
    details = entry(site, named=["lib"])[4]
    assert (details["checked"], details["missing"], details["added"]) == (1, 1, 1)


def test_two_hosts_that_lack_other_files_have_other_patches(tmp_path, entry):
    """The number of missing files is the same; which they are is in the digest."""
    patches = []
    for index, name in enumerate(("model.py", "__init__.py")):
        site = install(tmp_path / str(index))
        (site / "lib" / name).unlink()
        details = entry(site, named=["lib"])[4]
        assert details["missing"] == 1
        patches.append(details["patch"])
    assert len(set(patches)) == 2


@pytest.mark.parametrize("metadata", ["Name: lib\n", "Name: lib\nVersion:\n"])
def test_a_package_without_a_version_says_so_and_states_none(tmp_path, entry, metadata):
    site = install(tmp_path / "a")
    (site / "lib-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\n" + metadata)
    found = entry(site)
    assert (found[0], found[4]["error"]) == ("", "its metadata states no version")


def test_an_untouched_package_says_how_many_files_were_checked(tmp_path, entry):
    assert entry(install(tmp_path / "a"), named=["lib"])[4] == {"checked": 2}


def test_a_second_copy_further_down_the_path_is_named(tmp_path, entry):
    found = entry(install(tmp_path / "old", version="0.9"), install(tmp_path / "new", version="1.0"))
    assert (found[0], found[4]["shadowed"]) == ("1.0", ["0.9"])


@pytest.mark.parametrize("broken", ["direct_url.json", "RECORD", "WHEEL"])
def test_broken_metadata_does_not_stop_the_lock(tmp_path, entry, broken):
    site = install(tmp_path / "a")
    (site / "lib-1.0.dist-info" / broken).write_bytes(b"\xff\x00{")
    assert entry(site, named=["lib"])[0] == "1.0"


# ---- accelerators -------------------------------------------------------------------------------------------------

def program(folder, name, text, code=0):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
    path.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_a_gpu_host(tmp_path):
    """Eight equal devices are one row; toolkit, cuDNN and NCCL come from their files."""
    home = tmp_path / "cuda"
    (home / "include").mkdir(parents=True)
    (home / "version.json").write_text('{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}')
    (home / "include" / "cudnn_version.h").write_text(
        "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n")
    (home / "include" / "nccl.h").write_text("#define NCCL_MAJOR 2\n#define NCCL_MINOR 21\n#define NCCL_PATCH 5\n")
    path = program(tmp_path / "bin", "nvidia-smi", "\n".join(["NVIDIA A100-SXM4-80GB, 550.54.15, 8.0, 81920"] * 8))
    assert collect(environ={"CUDA_HOME": str(home), "PATH": path}, torch=False)["cuda"] == {
        "toolkit": "12.4.1", "cudnn": "9.1.0", "nccl": "2.21.5", "driver": "550.54.15",
        "devices": [["NVIDIA A100-SXM4-80GB", "8.0", "81920", 8]]}


NPU_SMI = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 25.0.rc1                 Version: 25.0.rc1                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 93.5        35                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3317 / 65536         |
+===========================+===============+====================================================+
| 1     910B3               | Warning       | 91.2        36                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          3317 / 65536         |
+===========================+===============+====================================================+"""


def test_an_ascend_host(tmp_path):
    toolkit = tmp_path / "Ascend" / "ascend-toolkit" / "latest"
    for path, text in (("aarch64-linux/ascend_toolkit_install.info", "package_name=x\nversion=8.2.RC1\narch=aarch64\n"),
                       ("opp/version.info", "Version=8.2.RC1.1\n"), ("../../driver/version.info", "Version=25.0.rc1\n"),
                       ("../../firmware/version.info", "Version=7.7.0.1.231\n")):
        (toolkit / path).parent.mkdir(parents=True, exist_ok=True)
        (toolkit / path).write_text(text)
    environ = {"ASCEND_TOOLKIT_HOME": str(toolkit), "PATH": program(tmp_path / "bin", "npu-smi", NPU_SMI)}
    assert npu_facts(environ, runner(environ)) == {
        "cann": "8.2.RC1", "opp": "8.2.RC1.1", "driver": "25.0.rc1", "firmware": "7.7.0.1.231", "smi": "25.0.rc1",
        "devices": [["910B3", 2]]}


def test_a_tool_that_fails_or_hangs_is_recorded_and_the_rest_goes_on(tmp_path):
    environ = {"PATH": program(tmp_path / "bin", "nvidia-smi", "No devices", code=9)}
    lock = collect(environ=environ, torch=False)
    assert "ended with 9" in lock["cuda"]["error"]
    assert lock["packages"]
    path = program(tmp_path / "slow", "npu-smi", "")
    (tmp_path / "slow" / "npu-smi").write_text("#!/bin/sh\nexec sleep 30\n")
    assert "did not answer within 0.2 s" in npu_facts({"PATH": path}, runner({"PATH": path}, timeout=0.2))["error"]


def fat_binary(*entries):
    """A section as the CUDA tools write it: (kind, architecture, payload length) each behind its own header."""
    body = b""
    for kind, arch, size in entries:
        body += struct.pack("<HHIIIIIII", kind, 0x101, 64, size, 0, size, 0, 0, arch).ljust(64, b"\0") + b"\1" * size
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def test_architectures_are_read_from_fat_binaries(tmp_path):
    library = tmp_path / "k.so"
    library.write_bytes(b"\x7fELF" + b"\0" * 500 + fat_binary((2, 80, 128), (2, 86, 64), (1, 90, 32)) + b"sm_70 is text"
                        + fat_binary((2, 75, 8)))
    assert architectures(str(library)) == ["compute_90", "sm_75", "sm_80", "sm_86"]


@pytest.mark.parametrize("cut", range(0, 120, 7))
def test_a_truncated_fat_binary_ends_the_scan_quietly(tmp_path, cut):
    (tmp_path / "k.so").write_bytes(fat_binary((2, 80, 16), (2, 86, 16))[:cut])
    assert set(architectures(str(tmp_path / "k.so"))) <= {"sm_80", "sm_86"}


def test_extensions_of_torchs_build_folder_are_listed(tmp_path):
    folder = tmp_path / "ext" / "py311_cu124" / "deform"
    folder.mkdir(parents=True)
    content = fat_binary((2, 86, 64))
    (folder / "deform.so").write_bytes(content)
    found = collect(environ={"TORCH_EXTENSIONS_DIR": str(tmp_path / "ext"), "PATH": ""}, torch=False)["extensions"]
    assert found == {"torch-extensions/deform": [hashlib.sha256(content).hexdigest()[:12], ["sm_86"]]}


# ---- trees --------------------------------------------------------------------------------------------------------

def git(folder, *arguments):
    done = subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always",
                           "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.py").write_text("1\n2\n3\n")
    git(folder, "add", "."), git(folder, "commit", "-qm", "upstream"), git(folder, "tag", "upstream")
    return folder


def facts(folder, reference=None):
    lock = collect(trees=[("code", str(folder))], upstream={"code": reference} if reference else None, torch=False)
    return lock["trees"]["code"]


def test_a_clean_tree(tree):
    assert facts(tree) == {"commit": git(tree, "rev-parse", "HEAD"), "dirty": 0}


def test_changed_and_untracked_files_are_told_apart(tree):
    (tree / "a.py").write_text("1\n")
    (tree / "new file.py").write_text("1\n")
    found = facts(tree)
    assert (found["dirty"], found["untracked"]) == (1, 1)


def test_a_staged_rename_is_one_change(tree):
    git(tree, "mv", "a.py", "b c.py")
    assert facts(tree)["dirty"] == 1


def test_the_port_is_measured_against_upstream(tree):
    """Two files change: a.py loses 1 line of 3 and gains 2, MIGRATION.md gains 1; the Chinese note is not tracked."""
    (tree / "a.py").write_text("1\n2\nx\ny\n")
    (tree / "MIGRATION.md").write_text("moved\n")
    git(tree, "add", "."), git(tree, "commit", "-qm", "port")
    (tree / "迁移说明.md").write_text("x\n")
    port = facts(tree, "upstream")["port"]
    assert port == {"base": git(tree, "rev-parse", "upstream"), "files": 2, "added": 3, "deleted": 1,
                    "notes": ["MIGRATION.md", "迁移说明.md"]}


@pytest.mark.parametrize("reference", ["no-such-ref", "--output=x"])
def test_a_wrong_reference_spoils_only_the_port(tree, reference):
    found = facts(tree, reference)
    assert found["commit"]
    assert found["port"]["error"]
    assert not (tree / "x").exists()


def test_submodules_are_listed_with_their_state(tree, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "x").write_text("x")
    git(other, "add", "."), git(other, "commit", "-qm", "x")
    git(tree, "submodule", "add", "-q", str(other), "sub"), git(tree, "commit", "-qm", "sub")
    assert facts(tree)["submodules"] == {"sub": git(other, "rev-parse", "HEAD")[:12]}


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: None])
def test_a_folder_that_is_no_tree_is_an_error_of_that_part(tmp_path, make):
    make(tmp_path / "x")
    assert "error" in facts(tmp_path / "x")


def test_an_editable_install_carries_its_commit(tree, tmp_path, entry):
    (tree / "a.py").write_text("changed\n")
    found = entry(install(tmp_path / "a", files={"__editable__lib.pth": b"/src\n"},
                          direct={"url": tree.as_uri(), "dir_info": {"editable": True}}))
    assert found[1:] == ["editable", "", "pure", {"commit": git(tree, "rev-parse", "HEAD"), "dirty": 1}]


def test_nothing_heavy_is_imported():
    code = "import sys; from pytest_migparity.host.envlock import collect; collect(); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          cwd=Path(__file__).parent)
    assert done.stdout.strip() == "False"
