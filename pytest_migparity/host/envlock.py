"""What this machine would run with: software, origins, effective configuration, accelerator stack, as one small JSON.

    python3 envlock.py --package transformers --tree upstream=. --config train=outputs/config.json > env.json

Copied alone to a host this file is complete: standard library only, Python 3.9 and newer. That is why it is longer than
its neighbours. A part that breaks is recorded as {"error": ...} and never stops the rest. Nothing leaves that could be
a secret or a person: only listed environment variables, URLs without user and query, secret-looking keys and values
replaced, no home, user or host name.

A package is [version, kind, payload, build] and, where there is more to say, a fifth element with details:
  kind     index, vcs, archive, editable, local, develop, egg, or the installer's name (conda, debian)
  payload  sha256 (12 hex digits) over path and hash of every file that RECORD lists, apart from metadata, scripts and
           byte code: the same wheel gives the same value whatever installed it, and wherever; "" where there is none
  build    pure (py3-none-any), binary, or ? (no WHEEL file)
"""

import argparse
import base64
import csv
import glob
import hashlib
import importlib.metadata
import importlib.util
import inspect
import json
import mmap
import os
import platform
import re
import shutil
import socket
import struct
import subprocess
import sys
import sysconfig
import time
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple
from urllib.parse import unquote, urlsplit

SCHEMA = "migparity.env/1"
LISTED = (  # the only environment variables that are looked at
    "CUBLAS_WORKSPACE_CONFIG", "PYTHONHASHSEED", "HCCL_DETERMINISTIC", "LCCL_DETERMINISTIC", "CLOSE_MATMUL_K_SHIFT",
    "ATB_LLM_LCOC_ENABLE", "ATB_MATMUL_SHUFFLE_K_ENABLE", "FLASH_ATTENTION_DETERMINISTIC", "TF_DETERMINISTIC_OPS",
    "INF_NAN_MODE_ENABLE", "INF_NAN_MODE_FORCE_DISABLE", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "ALLOW_HF32", "ACL_PRECISION_MODE", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
    "PYTORCH_NO_NPU_MEMORY_CACHING", "PYTORCH_NO_CUDA_MEMORY_CACHING", "MULTI_STREAM_MEMORY_REUSE",
    "CUDA_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING", "TASK_QUEUE_ENABLE", "COMBINED_ENABLE", "CPU_AFFINITY_CONF",
    "ACL_OP_COMPILER_CACHE_MODE", "TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ATEN_CPU_CAPABILITY",
    "ONEDNN_MAX_CPU_ISA", "CUDA_DEVICE_MAX_CONNECTIONS", "NCCL_ALGO", "NCCL_PROTO", "NCCL_NTHREADS",
    "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "NCCL_NVLS_ENABLE",
    "NCCL_COLLNET_ENABLE", "HCCL_ALGO", "HCCL_BUFFSIZE", "HCCL_OP_EXPANSION_MODE", "HCCL_INTRA_PCIE_ENABLE",
    "HCCL_INTRA_ROCE_ENABLE", "HCCL_RDMA_TC", "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES",
    "ASCEND_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "MUJOCO_GL", "PYOPENGL_PLATFORM",
    "MUJOCO_EGL_DEVICE_ID", "EGL_DEVICE_ID", "SAPIEN_RENDER_DEVICE", "TOKENIZERS_PARALLELISM", "XLA_FLAGS",
)
_COUNT = re.compile("[0-9]{1,9}")  # str.isdigit and \d accept other scripts' digits too
_RANKS = (("rank", "RANK"), ("local_rank", "LOCAL_RANK"), ("world", "WORLD_SIZE"))
TIMEOUT = 20.0          # seconds for git, nvidia-smi, npu-smi
TORCH_TIMEOUT = 180.0   # seconds: a cold import of torch and torch_npu from a network disk
HASH_BYTES = 2 << 30    # what is hashed in all to find modified files and compiled extensions
STAT_SECONDS = 5.0      # what comparing file sizes may cost over all packages
MAX_CONFIG = 1 << 20    # bytes of a configuration file that are parsed
MAX_VALUES = 400        # values of one configuration file
MAX_TEXT = 160          # characters of one value
SHORT = 12              # hex digits of a shortened sha256

Run = Callable[[Sequence[str]], str]

# ---- nothing leaves that could be a secret or a person ------------------------------------------------------------

REDACTED = "<redacted>"
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_SECRET_KEY = re.compile(
    r"(^|_)(tokens?|secrets?|passwords?|passwd|passphrases?|passcodes?|pwd|apikeys?|auth|authorization|bearer|cookies?"
    r"|credentials?|signature|(api|access|private|secret|ssh|encryption|account|wandb|swanlab|comet|neptune|mlflow|hf"
    r"|hub|huggingface|modelscope|openai|anthropic|dashscope|aws|oss|s3|gcp|azure|aliyun|huawei|github|gitlab"
    r"|rsa|ssl|tls|gpg|master|license|webhook|admin|login)_?keys?)($|_)"
    r"|(^|_)(pass|pw|webhooks?(_url)?)$|(^|_)(ak|sk|sig)$")
_PASSES = re.compile(r"(^|_)(num|n|max|min|per|single|one|two|multi|first|second|forward|backward|low|high|band)_pass$")
_PERSON_KEY = re.compile(r"(^|_)(user|username|email|hostname|host|addr|address|endpoint|ip|entity)$")
_TEXT_TOKEN = re.compile(r"(^|_)(pad|eos|bos|unk|mask|sep|cls|img|image|video|audio|start|end|special|action|state)_")
_GRANTS = re.compile(r"(^|_)(access|auth|authorization|api|refresh|bearer|secret|private|personal|session|login|deploy"
                     r"|bot|hf|hub|huggingface|wandb|github|gitlab|git|slack|telegram|webhook|oauth2?|modelscope)_token$")

# Every pattern below is linear in the text: a run of its first character class is entered once (lookbehind) or the
# repetition is bounded. tests/host/test_envlock_secrets.py holds them to it.
_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*"
    r"|(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{8,}|gh[pousr]_[A-Za-z0-9]{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}"
    r"|(?:sk|pk|rk)-[\w-]{12,}|(?:AKIA|ASIA|LTAI|AKID|AKLT)[0-9A-Za-z]{8,}|AIza[\w-]{20,}|xox[abeoprs]-[\w-]{8,}"
    r"|ms-[0-9a-f]{8}-[0-9a-f-]{20,}|wandb_v1_\w{8,})"
    r"|(?<![\w-])eyJ[\w-]{4,}\.[\w-]{4,}(?:\.[\w-]*)?"
    r"|(?i:(?<![A-Za-z0-9])(?:bearer|basic)\s{1,8}[\w.~+/=-]{8,})"
    r"|(?i:(?<![A-Za-z0-9])login\s{1,8}(?:--\w{1,20}\s{1,8})?[\w-]{20,})"
    r"|(?i:(?<![A-Za-z0-9])obsutil\s{1,8}config\b[^\r\n]*)"
    r"|(?:密码|口令|密钥|令牌)\s{0,4}[=:：＝是为]{1,2}\s{0,4}\S+"
    r"|(?:(?<=bot)|(?<![A-Za-z0-9]))[0-9]{6,12}:[\w-]{30,}"                     # Telegram
    # a webhook's path is its secret
    r"|(?i:(?:(?<![\w.-])hooks?\.[\w.-]{1,200}|(?<!\.git)/(?:web)?hooks?(?:b2)?)/[^\s\"'<>]+)"
    r"|(?<![A-Za-z0-9])(?=[A-Z]{0,19}[0-9])(?=[0-9]{0,19}[A-Z])[A-Z0-9]{20}(?![A-Za-z0-9])"  # an access key id
    r"|(?<![A-Za-z0-9+])(?=[a-z0-9+]*[A-Z])(?=[A-Z0-9+]*[a-z])(?=[A-Za-z+]*[0-9])[A-Za-z0-9+]{40,}={0,2}")
_NAMED = re.compile(r"(?<![\w.-])([\w.-]+)(?:\\{0,2}[\"']?\s{0,4}[=:：＝]{1,2}>?\s{0,4}|[ \t]{1,4}(?=\S))")
_GIVEN = re.compile(r"(?i:(?:bearer|basic|token|digest)\s{1,4})?(?:\"[^\"]*(?:\"|$)|'[^']*(?:'|$))?\S*")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,20})://((?:[^\s/?#]*@)?[^\s\"'<>]+)")
_WORD = re.compile(r"[^\s\"']+")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])")
_IP_PORT = re.compile(r"(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?=:[0-9])|\[[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}"
                      r"(?:%\w{1,16})?\](?=:)")
_IP = re.compile(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}|\[[0-9A-Fa-f:.]{2,}(?:%\w{1,16})?\]")
_HOST = re.compile(r"(?:\[[\w:.%]+\]|[\w-]+(?:\.[\w-]+)+|localhost)(?::[0-9]{0,5})?")
_PINNED = re.compile(r"@sha256:[0-9a-f]{64}\Z")
_PORT = re.compile(r"[0-9]{1,5}/")
_HOMES = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\{1,4}Users\\{1,4})[^/\\\s\"':;,]+|(?<![\w.-])/root(?![\w.-])")
_COMMON_NAMES = {"root", "user", "admin", "ubuntu", "localhost", "runner", "docker", "build", "test", "work", "none"}


class Scrubber:
    """Replaces secrets, people and machines in text. It knows the names of this machine and of its user."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        homes = {environ.get("HOME", ""), environ.get("USERPROFILE", ""), os.path.expanduser("~")}
        self._homes = sorted((home for home in homes if len(home) > 3), key=len, reverse=True)
        host = socket.gethostname()
        names = {host, host.split(".")[0]}
        names.update(environ.get(key, "") for key in ("USER", "LOGNAME", "USERNAME", "HOSTNAME"))
        names.update(os.path.basename(home) for home in self._homes)
        known = sorted((n for n in names if len(n) > 2 and n.lower() not in _COMMON_NAMES), key=len, reverse=True)
        pattern = "|".join(re.escape(name) for name in known)
        self._names = re.compile(r"(?<![A-Za-z0-9])(?:%s)(?![A-Za-z0-9])" % pattern) if known else None

    def text(self, value: str) -> str:
        """`value` without secrets, URL credentials and queries, addresses, homes, user and host names."""
        if "://" in value:
            value = _URL.sub(lambda match: "%s://%s" % (match.group(1), _bare(match.group(2))), value)
        if "@" in value:
            value = _WORD.sub(lambda match: _without_login(match.group()), value)
        value = _SHAPES.sub(REDACTED, _without_named(value))
        value = _IP_PORT.sub("<ip>", _MAIL.sub("<address>", value))
        for home in self._homes:
            value = re.sub(r"(?<![\w.-])" + re.escape(home) + r"(?![\w.-])", "~", value)
        value = _HOMES.sub("~", value)
        return self._names.sub("<name>", value) if self._names else value

    def short(self, value: str) -> str:
        """`text`, at most MAX_TEXT characters; a longer one is cut and keeps a hash of its scrubbed whole.

        Scrubbed first, cut then: a secret that the cut halves would have lost its shape, and a hash of the raw text
        could be searched for a password in it.
        """
        clean = self.text(value)
        return clean if len(clean) <= MAX_TEXT else "%s...#%s" % (clean[:MAX_TEXT - 20], digest(clean.encode(
            "utf-8", "backslashreplace")))

    def tree(self, value: Any) -> Any:
        """The same for every string of a JSON-able value; keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.tree(item) for key, item in value.items()}
        return [self.tree(item) for item in value] if isinstance(value, (list, tuple)) else value

    def setting(self, key: str, value: Any, hidden: bool = False) -> Any:
        """One configuration value; `hidden` where a key above it already names a secret."""
        if value is None or isinstance(value, bool):
            return value
        if hidden or secret_key(key, isinstance(value, str)) or (isinstance(value, str) and _key_value(key, value)):
            return REDACTED
        if isinstance(value, (int, float)):
            return value if value == value and abs(value) != float("inf") else str(value)
        return self.short(str(value))


def _plain(key: str) -> str:
    """A key in lower case with single underscores: apiKey, api-key and API_KEY are one name."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower())


def secret_key(key: str, text: bool = True) -> bool:
    """Does a key announce a secret or a person? Numbers under token names (max_token) and text tokens do not."""
    name = _plain(key)
    return _announces(name, text) or bool(_PERSON_KEY.search(name) or re.search("密码|口令|密钥|令牌", key))


def _announces(name: str, text: bool) -> bool:
    """Does a key in its plain form announce a secret?"""
    if _GRANTS.search(name):
        return True
    if _TEXT_TOKEN.search(name) and re.search(r"_tokens?$", name):
        return False
    if not text and re.search(r"_tokens?(_|$)|^tokens_|(^|_)(ak|sk|sig)$", name):
        return False
    return bool(_SECRET_KEY.search(name)) and not _PASSES.search(name)


def _key_value(key: str, value: str) -> bool:
    """A text under `key` itself, or a text without meaning under any ..._key: `image_key = "cam_high"` is harmless."""
    name = _plain(key)
    return name == "key" or (name.endswith("key") and _opaque(value))


def _opaque(value: str) -> bool:
    """Is the text one random-looking word: hexadecimal, or both cases and digits?"""
    return bool(re.fullmatch(r"(?=[a-f-]*[0-9])(?=[0-9-]*[a-f])[0-9a-f-]{16,}"
                             r"|(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])(?=[^0-9]*[0-9])[A-Za-z0-9+/_=-]{16,}", value))


def _without_named(text: str) -> str:
    """`text` without what is given to a secret's name: NAME=VALUE, "NAME": "VALUE", --NAME VALUE."""
    parts, done = [], 0
    for match in _NAMED.finditer(text):
        name = _plain(match.group(1)).strip("_")
        blank = not re.search("[=:：＝]", match.group()[len(match.group(1)):])
        if match.start() < done or (blank and not match.group(1).startswith("-")):
            continue
        if _announces(name, True):
            given = _GIVEN.match(text, match.end())
            if not _announces(name, not _NUMBER.fullmatch(given.group().strip("\"',;()[]{}")) if given else True):
                continue
        elif name.endswith("key"):
            given = re.compile(r"[\"']?(\S{16,256})").match(text, match.end())
            if given is None or not _opaque(given.group(1).strip("\"',;()[]{}")):
                continue
        else:
            continue
        if given is not None and given.group():
            parts += [text[done:match.end()], REDACTED]
            done = given.end()
    return "".join(parts) + text[done:]


def _without_login(word: str) -> str:
    """A word without USER:PASSWORD@; the password may hold "@" and "/". A port in front of a path is no password."""
    pinned = _PINNED.search(word)  # an image's digest is no host
    end = word.rfind("@", 0, pinned.start() if pinned else len(word))
    at = word.find(":", 0, max(end, 0))
    while at >= 0:
        if not word.startswith("://", at) and not _PORT.match(word, at + 1):
            return word[:max(word.rfind(mark, 0, at) for mark in "/@") + 1] + word[end + 1:]
        at = word.find(":", at + 1, end)
    return word


def _bare(rest: str) -> str:
    """A URL after its scheme, without userinfo, query, fragment and IP address.

    A password may hold "@", and unquoted "/", "?" and "#" that end the authority for a strict reader. So an "@" further
    on ends the userinfo, unless what stands in front of the path is plainly a host.
    """
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user, at, host = authority.rpartition("@")
    if not _HOST.fullmatch(host) and (at or ":" in authority):
        rest = rest.rpartition("@")[2]
    else:
        rest = rest[len(user) + len(at):]
    authority, slash, path = re.split(r"[?#;]", rest, maxsplit=1)[0].partition("/")
    address = _IP.match(authority)
    if address and authority[address.end():address.end() + 1] in ("", ":"):
        authority = "<ip>" + authority[address.end():]
    return authority + slash + path


def repo_name(remote: str) -> str:
    """The last part of a remote's path, "" where that is not certainly a repository's name.

    https://user:password@host/team/NAME.git, ssh://git@host:22/NAME, git@host:team/NAME.git, /data/NAME/.git, ../NAME.
    Never a part of the authority, however much of the path is missing.
    """
    remote = remote.strip()
    if re.match(r"[\w+.-]+::", remote) or re.search(r"[?#].*@", remote):  # a remote helper's own syntax; ambiguous
        return ""
    _, mark, rest = remote.partition("://")
    host = re.match(r"(?:[^/\\]*@)?(?:\[[^\]/\\]*\]|[^:/\\@]*):", remote)
    if mark:
        rest = rest if remote[:7].lower() == "file://" else rest.rpartition("@")[2].lstrip("/")
        path = "/" + re.split(r"[?#;]", rest, maxsplit=1)[0].partition("/")[2]
    elif host and not re.fullmatch(r"[A-Za-z]:", host.group()):
        path = "" if re.fullmatch(r"(?i)(https?|ssh|git|ftps?|file|rsync):", host.group()) else remote[host.end():]
    else:
        path = remote
    parts = [part for part in re.split(r"[/\\]", path) if part not in ("", ".", "..", ".git")]
    bare = not host and len(parts) == 1 and path[:1] not in "./\\"  # a folder, or a host with all else left out
    if _HOMES.fullmatch(path.rstrip("/\\")) or (bare and not re.fullmatch(r"[^.]+\.git", parts[0])):
        return ""
    if path[:2] in ("//", "\\\\"):  # //HOST/SHARE/...
        parts = parts[1:]
    name = re.sub(r"\.git$", "", parts[-1]) if parts else ""
    return name if re.fullmatch(r"[^\W_][\w.+-]{0,99}", name) else ""


def digest(data: bytes) -> str:
    """A shortened sha256."""
    return hashlib.sha256(data).hexdigest()[:SHORT]


# ---- running and reading ------------------------------------------------------------------------------------------

def runner(environ: Mapping[str, str], timeout: float = TIMEOUT) -> Run:
    """A function that runs one argv and returns its stdout; OSError or ValueError where that cannot be had."""
    def run(argv: Sequence[str]) -> str:
        program = shutil.which(argv[0], path=environ.get("PATH"))
        if program is None:
            raise FileNotFoundError("%s is not on PATH" % argv[0])
        quiet = dict(environ, LC_ALL="C", GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0")
        try:
            done = subprocess.run([program, *argv[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=timeout, env=quiet)
        except subprocess.TimeoutExpired:
            raise OSError("%s did not answer within %g s" % (argv[0], timeout)) from None
        if done.returncode != 0:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
            raise OSError("%s ended with %d: %s" % (argv[0], done.returncode, lines[-1][:200]))
        return done.stdout.decode("utf-8", "replace")
    return run


def read_text(path: str, limit: int = 1 << 16) -> str:
    """The first `limit` bytes of a file as text, "" where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def first_match(pattern: str, paths: Iterable[str]) -> str:
    """The first group of the first file that matches, or ""."""
    for path in paths:
        match = re.search(pattern, read_text(path), re.MULTILINE)
        if match:
            return match.group(1).strip().strip("\"'")
    return ""


def known(**values: Any) -> Dict[str, Any]:
    """The values that are known."""
    return {key: value for key, value in values.items() if value not in ("", None, [], {})}


# ---- interpreter, system, processor -------------------------------------------------------------------------------

def python_facts(environ: Mapping[str, str]) -> Dict[str, Any]:
    """Implementation, version and kind of installation."""
    conda = os.path.isdir(os.path.join(sys.prefix, "conda-meta"))
    kind = "venv" if sys.prefix != sys.base_prefix else "conda" if conda else "system"
    return {"implementation": platform.python_implementation(), "version": platform.python_version(), "kind": kind}


def os_facts() -> Dict[str, Any]:
    """Distribution, kernel and libc."""
    name = first_match(r"^PRETTY_NAME=(.*)$", ("/etc/os-release", "/usr/lib/os-release"))
    return known(system=platform.system(), name=name, release=platform.release(),
                 libc=" ".join(platform.libc_ver()).strip())


def cpu_facts(run: Run) -> Dict[str, Any]:
    """Machine, model, cores usable by this process out of all."""
    model = first_match(r"^(?:model name|Model)\s*:\s*(.+)$", ("/proc/cpuinfo",))
    if not model:  # aarch64 kernels do not name the model there
        try:
            found = re.search(r"^Model name:\s*(.+)$", run(["lscpu"]), re.MULTILINE)
            model = found.group(1).strip() if found else ""
        except OSError:
            model = platform.processor()
    affinity = getattr(os, "sched_getaffinity", None)
    return known(machine=platform.machine(), model=model, cores=os.cpu_count(),
                 usable=len(affinity(0)) if affinity else None)


# ---- packages and their origin ------------------------------------------------------------------------------------

def canonical(name: str) -> str:
    """The PEP 503 name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def payload_rows(record: str) -> List[Tuple[str, str, str]]:
    """(path, algorithm=hash, size) of the files that are the package, in path order."""
    rows = []
    for row in csv.reader(record.splitlines()):
        if len(row) < 2 or not row[1]:
            continue
        path = row[0].replace("\\", "/")
        if path.startswith(("../", "/")) or ".dist-info/" in path or path.endswith(".pyc") or ":" in path:
            continue
        rows.append((path, row[1], row[2] if len(row) > 2 else ""))
    return sorted(rows)


def compare_files(base: str, rows: Sequence[Tuple[str, str, str]], budget: List[int]) -> Dict[str, Any]:
    """What differs on disk from RECORD: counts of modified, missing and added files, and a digest of the difference.

    The digest covers which files they are and what is in them, so that two hosts with one patch have one digest. Added
    files are modules beside the recorded ones in the package's own folders. `budget[0]` is the number of bytes that may
    still be hashed; files beyond it are counted as unchecked.
    """
    changed, gone, unchecked = [], [], 0
    for path, recorded, _size in rows:
        full = os.path.join(base, path)
        algorithm, _, expected = recorded.partition("=")
        try:
            budget[0] -= os.path.getsize(full)
            if budget[0] < 0 or algorithm not in ("sha256", "sha384", "sha512"):
                unchecked += 1
                continue
            found = hash_file(full, algorithm)
        except OSError:
            gone.append(path)
            continue
        if base64.urlsafe_b64encode(found).rstrip(b"=").decode() != expected:
            changed.append((path, found.hex()))
    listed = {path for path, _, _ in rows}
    added = []
    for top in sorted({path.split("/")[0] for path in listed if path.count("/")}):
        for folder, folders, files in os.walk(os.path.join(base, top)):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(files):
                full = os.path.join(folder, name)
                path = os.path.relpath(full, base).replace(os.sep, "/")
                if name.endswith((".py", ".so")) and path not in listed:
                    added.append((path, hash_file(full).hex()))
    parts = (changed, added, gone) if gone else (changed, added)
    patch = digest(repr(parts).encode("utf-8", "backslashreplace")) if changed or added or gone else ""
    return known(checked=len(rows) - len(gone) - unchecked, modified=len(changed) or None, missing=len(gone) or None,
                 added=len(added) or None, unchecked=unchecked or None, patch=patch)


def resized(base: str, rows: Sequence[Tuple[str, str, str]], deadline: float) -> int:
    """How many modules no longer have their recorded size: a cheap lower bound of modified files."""
    count = 0
    for path, _hash, size in rows:
        if path.endswith(".py") and _COUNT.fullmatch(size) and time.monotonic() < deadline:
            try:
                count += os.stat(os.path.join(base, path)).st_size != int(size)
            except OSError:
                continue
    return count


def hash_file(path: str, algorithm: str = "sha256") -> bytes:
    """The digest of a file."""
    state = hashlib.new(algorithm)
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            state.update(block)
    return state.digest()


def origin_of(dist: Any, base: str, run: Run) -> Tuple[str, Dict[str, Any]]:
    """(kind, details) from direct_url.json, the installer, or where the metadata lies."""
    try:
        direct = json.loads(dist.read_text("direct_url.json") or "null")
    except ValueError:
        return "?", {"error": "direct_url.json is not JSON"}
    if isinstance(direct, dict):
        url, parts = str(direct.get("url", "")), urlsplit(str(direct.get("url", "")))
        vcs, archive, folder = (direct.get(key) for key in ("vcs_info", "archive_info", "dir_info"))
        if isinstance(vcs, dict):
            return "vcs", known(url=url, commit=str(vcs.get("commit_id", "")))
        if isinstance(archive, dict):
            hashes = archive.get("hashes")
            one = hashes.get("sha256") if isinstance(hashes, dict) else archive.get("hash")
            value = str(one or "").rpartition("=")[2]
            return "archive", known(url=os.path.basename(parts.path) if parts.scheme == "file" else url,
                                    archive=value[:SHORT])
        editable = isinstance(folder, dict) and folder.get("editable") is True
        return ("editable" if editable else "local"), source_state(unquote(parts.path), run)
    installer = (dist.read_text("INSTALLER") or "").split()
    if not dist.read_text("WHEEL"):
        sites = {os.path.realpath(sysconfig.get_path(key)) for key in ("purelib", "platlib")}
        inside = os.path.realpath(base) in sites or "packages" in os.path.basename(base)
        return ("egg", {}) if inside else ("develop", source_state(base, run))
    name = installer[0].lower() if installer else ""
    return (name if name in ("conda", "debian", "rpm") else "index"), {}


def source_state(folder: str, run: Run) -> Dict[str, Any]:
    """Commit and number of changed files of a source folder, {} where it is none of git's."""
    try:
        git = git_in(folder, run)
        return known(commit=git("rev-parse", "HEAD").strip(), dirty=changes(git)[0])
    except OSError:
        return {}


def package_facts(named: Iterable[str], run: Run, budget: List[int]) -> Dict[str, Any]:
    """Every distribution on sys.path; files of the `named` ones are compared with their recorded hashes."""
    wanted = {canonical(name) for name in named}
    found = {}  # type: Dict[str, List[Any]]
    deadline = time.monotonic() + STAT_SECONDS
    seen = set()
    for dist in importlib.metadata.distributions():
        try:
            name, version = canonical(str(dist.metadata["Name"] or "")), version_of(dist)
        except (KeyError, TypeError, ValueError, OSError):
            continue  # metadata without a name is no package
        base = str(dist.locate_file(""))
        marker = (name, os.path.realpath(base), version)
        if not name or name == "none" or marker in seen:
            continue
        seen.add(marker)
        if name in found:  # the first on sys.path is the one that is imported
            entry = found[name]
            if len(entry) == 4:
                entry.append({})
            entry[4].setdefault("shadowed", []).append(version)
            continue
        try:
            found[name] = describe(dist, name in wanted, base, run, budget, deadline)
        except Exception as error:
            found[name] = [version, "?", "", "?", {"error": "%s: %s" % (type(error).__name__, error)}]
    return {name: found[name] for name in sorted(found)}


def version_of(dist: Any) -> str:
    """The version that the metadata states, "" where they state none."""
    try:
        return str(dist.metadata["Version"] or "")
    except KeyError:
        return ""


def describe(dist: Any, named: bool, base: str, run: Run, budget: List[int], deadline: float) -> List[Any]:
    """One package's entry."""
    rows = payload_rows(dist.read_text("RECORD") or "")
    wheel = dist.read_text("WHEEL") or ""
    tags = re.findall(r"^Tag:\s*(\S+)", wheel, re.MULTILINE)
    build = "?" if not wheel else "pure" if tags and all(tag.endswith("-none-any") for tag in tags) else "binary"
    kind, details = origin_of(dist, base, run)
    payload = digest("\n".join("%s,%s" % row[:2] for row in rows).encode("utf-8", "backslashreplace")) if rows else ""
    if kind in ("editable", "develop"):
        payload = ""  # RECORD holds a pointer to the source folder, not the package
    elif named and rows:
        details.update(compare_files(base, rows, budget))
    else:
        details.update(known(modified=resized(base, rows, deadline) or None))
    user = getattr(sys.modules.get("site"), "USER_SITE", None)
    if user and os.path.realpath(base) == os.path.realpath(user):
        details["site"] = "user"
    version = version_of(dist)
    if not version:
        details["error"] = "its metadata states no version"
    return [version, kind, payload, build] + ([details] if details else [])


# ---- compiled extensions ------------------------------------------------------------------------------------------

def architectures(path: str, limit: int = 256 << 20) -> List[str]:
    """GPU architectures a library carries code for, from its fat binaries (at most `limit` bytes are looked through).

    A fat binary starts with the magic 0xBA55ED50, version, header size and length; each entry names its kind (1 PTX,
    2 machine code), header size, padded size and, 28 bytes in, the architecture.
    """
    found = set()
    with open(path, "rb") as stream:
        size = min(os.fstat(stream.fileno()).st_size, limit)
        if size < 16:
            return []
        with mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ) as data:
            at = data.find(b"\x50\xed\x55\xba")
            while at >= 0 and at + 16 <= size:
                header, length = struct.unpack_from("<HQ", data, at + 6)
                entry, end = at + header, min(at + header + length, size)
                while header >= 16 and entry + 64 <= end:
                    kind, _version, skip, padded = struct.unpack_from("<HHII", data, entry)
                    arch = struct.unpack_from("<I", data, entry + 28)[0]
                    if kind in (1, 2) and 20 <= arch < 1000:
                        found.add("%s_%d" % ("compute" if kind == 1 else "sm", arch))
                    if skip < 32:
                        break
                    entry += skip + padded
                at = data.find(b"\x50\xed\x55\xba", at + 4)
    return sorted(found)


def extension_facts(named: Iterable[str], environ: Mapping[str, str], budget: List[int]) -> Dict[str, Any]:
    """Compiled extensions of the named packages and of torch's build folder: [sha256, architectures].

    A package with more than 8 is one line, hashed together.
    """
    facts = {}  # type: Dict[str, Any]
    for name in sorted({canonical(name) for name in named}):
        try:
            dist = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        base = str(dist.locate_file(""))
        rows = payload_rows(dist.read_text("RECORD") or "")
        paths = [os.path.join(base, path) for path, _, _ in rows if re.search(r"\.(so(\.[0-9]+)*|pyd)$", path)]
        merge_extensions(facts, name, paths, budget)
    home = environ.get("HOME", "")
    root = environ.get("TORCH_EXTENSIONS_DIR") or (os.path.join(home, ".cache", "torch_extensions") if home else "")
    if root:
        root = glob.escape(root)
        built = {path for depth in ("*", "*/*") for path in glob.glob(os.path.join(root, depth, "*.so"))}
        merge_extensions(facts, "torch-extensions", sorted(built)[:40], budget)
    return facts


def merge_extensions(facts: Dict[str, Any], owner: str, paths: Sequence[str], budget: List[int]) -> None:
    """Add one owner's libraries to `facts`."""
    rows = []
    for path in paths:
        try:
            budget[0] -= os.path.getsize(path)
            if budget[0] < 0:
                facts[owner] = {"error": "more than %d bytes to hash" % HASH_BYTES}
                return
            rows.append((os.path.basename(path).split(".")[0], hash_file(path).hex(), architectures(path)))
        except (OSError, ValueError, struct.error):
            continue
    if len(rows) > 8:
        whole = "\n".join(row[1] for row in rows).encode()
        rows = [("%d files" % len(rows), digest(whole), sorted({arch for row in rows for arch in row[2]}))]
    facts.update({"%s/%s" % (owner, name): [sha[:SHORT], archs] for name, sha, archs in rows})


# ---- accelerator stack --------------------------------------------------------------------------------------------

def cuda_facts(environ: Mapping[str, str], run: Run) -> Dict[str, Any]:
    """Driver and devices by nvidia-smi; toolkit, cuDNN and NCCL by their files. {} on a machine without."""
    roots = [environ[key] for key in ("CUDA_HOME", "CUDA_PATH") if environ.get(key)] + ["/usr/local/cuda"]
    includes = [os.path.join(root, "include") for root in roots] + ["/usr/include"]
    includes += sorted(glob.glob("/usr/include/*-linux-gnu"))
    toolkit = first_match(r'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([^"]+)"',
                          [os.path.join(root, "version.json") for root in roots]) \
        or first_match(r"CUDA Version\s+(\S+)", [os.path.join(root, "version.txt") for root in roots])
    facts = known(toolkit=toolkit, cudnn=defined(includes, ("cudnn_version.h", "cudnn.h"), "CUDNN_%s"),
                  nccl=defined(includes, ("nccl.h",), "NCCL_%s"))
    if shutil.which("nvidia-smi", path=environ.get("PATH")):
        try:
            text = run(["nvidia-smi", "--query-gpu=name,driver_version,compute_cap,memory.total",
                        "--format=csv,noheader,nounits"])
            rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.count(",") == 3]
            facts.update(known(driver=rows[0][1] if rows else "",
                               devices=counted([row[0], row[2], row[3]] for row in rows)))
        except OSError as error:
            facts["error"] = str(error)
    return facts


def defined(folders: Sequence[str], names: Sequence[str], prefix: str) -> str:
    """major.minor.patch from the #defines of a header, or ""."""
    for path in (os.path.join(folder, name) for name in names for folder in folders):
        text = read_text(path, 1 << 20)
        numbers = [re.search(r"#define\s+%s\s+([0-9]+)" % (prefix % part), text) for part in ("MAJOR", "MINOR")]
        patch = re.search(r"#define\s+%s(?:LEVEL)?\s+([0-9]+)" % (prefix % "PATCH"), text)
        if all(numbers) and patch:
            return ".".join([match.group(1) for match in numbers if match] + [patch.group(1)])
    return ""


def npu_facts(environ: Mapping[str, str], run: Run) -> Dict[str, Any]:
    """CANN, driver and firmware by their version files, devices by npu-smi. {} on a machine without."""
    base = "/usr/local/Ascend"
    toolkits = [environ[key] for key in ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH") if environ.get(key)]
    toolkits += [base + "/ascend-toolkit/latest", base + "/nnae/latest", base + "/latest"]
    infos = [path for root in toolkits for path in sorted(
        glob.glob(os.path.join(glob.escape(root), "*-linux", "ascend_*_install.info"))
        + glob.glob(os.path.join(glob.escape(root), "ascend_*_install.info")))]
    version = r"^[Vv]ersion\s*=\s*(.+)$"
    part = {name: first_match(version, [os.path.join(root, name, "version.info") for root in toolkits])
            for name in ("runtime", "compiler", "opp", "hccl", "opp_kernel")}
    bases = [os.path.dirname(os.path.dirname(root.rstrip("/"))) for root in toolkits] + [base]
    facts = known(cann=first_match(version, infos), **part)
    for name in ("driver", "firmware"):
        facts.update(known(**{name: first_match(version, [os.path.join(one, name, "version.info") for one in bases])}))
    if shutil.which("npu-smi", path=environ.get("PATH")):
        try:
            text = run(["npu-smi", "info"])
            names = re.findall(r"^\|\s*[0-9]+\s+([A-Za-z0-9_-]+)\s*\|\s*[A-Za-z]+\s*\|", text, re.MULTILINE)
            smi = re.search(r"Version:\s*(\S+)", text)
            facts.update(known(smi=smi.group(1) if smi else "", devices=counted([name] for name in names)))
        except OSError as error:
            facts["error"] = str(error)
    return facts


def counted(rows: Iterable[List[str]]) -> List[Any]:
    """Equal devices once, each with how many there are: [name, ..., count]."""
    counts = {}  # type: Dict[Tuple[str, ...], int]
    for row in rows:
        counts[tuple(row)] = counts.get(tuple(row), 0) + 1
    return [[*row, count] for row, count in counts.items()]


def torch_facts() -> Dict[str, Any]:
    """Version, build and numeric switches of the torch that is imported here; importing it is the caller's risk.

    Self-contained: its source is also what a child process runs.
    """
    import importlib
    import sys
    torch = importlib.import_module("torch")  # type: Any
    facts = {"version": str(torch.__version__), "git": str(getattr(torch.version, "git_version", ""))[:12],
             "cuda": getattr(torch.version, "cuda", None), "hip": getattr(torch.version, "hip", None)}  # type: Dict[str, Any]
    flags = {}  # type: Dict[str, Any]

    def look(name: str, get: Callable[[], Any]) -> None:
        try:
            value = get()
            flags[name] = value if isinstance(value, (bool, int, float, str)) else str(value)
        except Exception:
            flags.pop(name, None)  # this build has no such switch

    backends = getattr(torch, "backends", None)  # type: Any
    look("deterministic", lambda: torch.are_deterministic_algorithms_enabled())
    look("matmul_precision", lambda: torch.get_float32_matmul_precision())
    look("default_dtype", lambda: str(torch.get_default_dtype()))
    look("cuda.matmul.allow_tf32", lambda: backends.cuda.matmul.allow_tf32)
    look("cuda.matmul.bf16_reduced", lambda: backends.cuda.matmul.allow_bf16_reduced_precision_reduction)
    look("cuda.matmul.fp16_reduced", lambda: backends.cuda.matmul.allow_fp16_reduced_precision_reduction)
    look("cudnn.allow_tf32", lambda: backends.cudnn.allow_tf32)
    look("cudnn.benchmark", lambda: backends.cudnn.benchmark)
    look("cudnn.deterministic", lambda: backends.cudnn.deterministic)
    look("threads", lambda: torch.get_num_threads())
    try:
        if torch.cuda.is_available():
            facts["built_for"] = list(torch.cuda.get_arch_list())
            caps = {torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())}
            facts["present"] = ["sm_%d%d" % cap for cap in sorted(caps)]
            facts["cudnn"] = torch.backends.cudnn.version()
            facts["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    except Exception as error:
        facts["cuda_error"] = "%s: %s" % (type(error).__name__, error)
    try:
        npu = sys.modules.get("torch_npu") or importlib.import_module("torch_npu")
        facts["npu"] = {"version": str(npu.__version__), "available": bool(torch.npu.is_available())}
        look("npu.matmul.allow_hf32", lambda: torch.npu.matmul.allow_hf32)
        look("npu.conv.allow_hf32", lambda: torch.npu.conv.allow_hf32)
        look("npu.jit_compile", lambda: not torch.npu.is_jit_compile_false())
        if facts["npu"]["available"]:
            facts["npu"]["present"] = sorted({torch.npu.get_device_name(i) for i in range(torch.npu.device_count())})
        try:
            facts["npu"]["cann"] = str(importlib.import_module("torch_npu.utils").get_cann_version())
        except Exception:
            facts["npu"]["cann"] = ""  # before CANN 8.1.RC1 it cannot be asked
    except ImportError as error:
        if "torch_npu" not in str(error):
            facts["npu"] = {"error": str(error)}
    except Exception as error:
        facts["npu"] = {"error": "%s: %s" % (type(error).__name__, error)}
    facts["flags"] = flags
    return {key: value for key, value in facts.items() if value not in (None, "", [], {})}


def torch_part(environ: Mapping[str, str], wanted: bool) -> Dict[str, Any]:
    """Torch's facts from this process where it is imported already, else from a child that may die or hang alone."""
    if "torch" in sys.modules:
        return dict(torch_facts(), seen="process")
    if not wanted or importlib.util.find_spec("torch") is None:
        return {}
    source = inspect.getsource(torch_facts) + "\nimport json\nprint('\\n' + json.dumps(torch_facts()))\n"
    head = "from typing import Any, Callable, Dict\nimport sys\nsys.path[:] = %r\n" % (sys.path,)
    text = runner(dict(environ), TORCH_TIMEOUT)([sys.executable, "-c", head + source])
    return dict(json.loads(text.strip().splitlines()[-1]), seen="probe")


# ---- source trees -------------------------------------------------------------------------------------------------

def git_in(folder: str, run: Run) -> Callable[..., str]:
    """A git for one folder, also where another user owns it (a container's mount), without the folder's monitors."""
    def git(*arguments: str) -> str:
        return run(["git", "-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false",
                    "-C", folder, *arguments])
    return git


def changes(git: Callable[..., str]) -> Tuple[int, int]:
    """(changed tracked files, untracked ones)."""
    lines = [line for line in git("status", "--porcelain", "-z").split("\0") if len(line) > 3 and line[2] == " "]
    untracked = sum(line.startswith("??") for line in lines)
    return len(lines) - untracked, untracked


def tree_facts(folder: str, reference: Optional[str], run: Run) -> Dict[str, Any]:
    """Commit, changed and untracked files, submodules; with `reference`, the size of the port against upstream."""
    git = git_in(folder, run)
    facts = {"commit": git("rev-parse", "HEAD").strip()}  # type: Dict[str, Any]
    dirty, untracked = changes(git)
    facts.update(dirty=dirty, **known(untracked=untracked or None))
    try:
        remote = git("remote", "get-url", "origin").strip()
        facts.update(known(repo=repo_name(remote)))
    except OSError:
        pass
    modules = [line for line in git("submodule", "status").splitlines() if line.strip()]
    facts.update(known(submodules={line[1:].split()[1]: line[0].strip() + line[1:].split()[0][:SHORT]
                                   for line in modules[:30]}))
    if reference:
        facts["port"] = port_facts(git, reference)
    return facts


def port_facts(git: Callable[..., str], reference: str) -> Dict[str, Any]:
    """What the working tree changed since the upstream `reference`: files, lines, names of migration notes."""
    if reference.startswith("-"):
        return {"error": "not a git reference: %s" % reference}
    try:
        base = git("rev-parse", "--verify", "--end-of-options", reference + "^{commit}").strip()
        rows = [line.split("\t") for line in git("diff", "--numstat", "--no-renames", base, "--").splitlines()]
        added = sum(int(row[0]) for row in rows if _COUNT.fullmatch(row[0]))
        deleted = sum(int(row[1]) for row in rows if len(row) > 1 and _COUNT.fullmatch(row[1]))
        names = git("ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
        note = re.compile(r"(?i)(migrat|port(ing)?_?notes|迁移|适配)[^/]*\.(md|rst|txt)$")
        notes = [name for name in names if note.search(name)]
        return {"base": base, "files": len(rows), "added": added, "deleted": deleted, **known(notes=sorted(notes)[:10])}
    except OSError as error:
        return {"error": str(error)}


# ---- effective configuration --------------------------------------------------------------------------------------

def config_facts(path: str, scrub: Scrubber) -> Dict[str, Any]:
    """sha256 and flattened values of one configuration file (JSON, TOML; YAML where PyYAML is installed)."""
    with open(path, "rb") as stream:
        raw = stream.read(MAX_CONFIG + 1)
    if len(raw) > MAX_CONFIG:
        return {"sha256": hash_file(path).hex()[:32], "unread": "larger than %d bytes" % MAX_CONFIG}
    facts = {"sha256": hashlib.sha256(raw).hexdigest()[:32]}  # type: Dict[str, Any]
    try:
        data = parse_config(path, raw.decode("utf-8-sig"))
    except ImportError as error:
        return dict(facts, unread="no reader on this host: %s" % error.name)
    except (ValueError, RecursionError) as error:
        return dict(facts, unread="%s: %s" % (type(error).__name__, str(error).splitlines()[0][:80]))
    except Exception as error:  # yaml has its own family, which may not be importable here
        return dict(facts, unread=type(error).__name__)
    values = {}  # type: Dict[str, Any]
    dropped = flatten("", data, values, scrub, False, 0)
    return dict(facts, values=values, **known(dropped=dropped or None))


def parse_config(path: str, text: str) -> Any:
    """The parsed file; ImportError where this host has no reader for its kind, ValueError for an unknown kind."""
    kind = os.path.splitext(path)[1].lower()
    if kind == ".json":
        return json.loads(text)
    if kind == ".toml":
        try:
            import tomllib
        except ImportError:  # before 3.11
            import tomli as tomllib  # type: ignore[import-not-found,no-redef,unused-ignore]
        return tomllib.loads(text)
    if kind in (".yaml", ".yml"):
        import yaml  # type: ignore[import-untyped,import-not-found,unused-ignore]
        return yaml.safe_load(text)
    raise ValueError("not .json, .toml or .yaml")


def _without_flagged(items: Sequence[Any]) -> List[Any]:
    """A list of arguments without what follows a secret's flag: ["--token", "..."]."""
    out = []  # type: List[Any]
    flag = ""
    for item in items:
        plain = isinstance(item, (str, int, float)) and not isinstance(item, bool)
        text = isinstance(item, str) and not _NUMBER.fullmatch(item)
        out.append(REDACTED if flag and plain and _announces(flag, text) else item)
        flag = _plain(item).strip("_") if isinstance(item, str) and re.fullmatch(r"--?[\w-]+", item) else ""
    return out


def flatten(key: str, value: Any, into: Dict[str, Any], scrub: Scrubber, hidden: bool, depth: int) -> int:
    """Add `value` under dotted keys; returns how many values were left out because there are too many or too deep."""
    if isinstance(value, (dict, list)) and value:
        if depth > 12 or len(into) >= MAX_VALUES:
            return 1
        items = value.items() if isinstance(value, dict) else enumerate(_without_flagged(value))
        if isinstance(value, list) and len(value) <= 16 and not any(isinstance(item, (dict, list)) for item in value):
            into[key] = [scrub.setting(key.rsplit(".", 1)[-1], item, hidden) for _, item in items]
            return 0
        dropped = 0
        for name, item in items:
            below = hidden or (isinstance(item, (dict, list)) and secret_key(str(name))) or (
                name == "value" and isinstance(value, dict)
                and any(secret_key(str(value.get(one))) for one in ("name", "key")))
            name = scrub.short(str(name))
            dropped += flatten("%s.%s" % (key, name) if key else name, item, into, scrub, below, depth + 1)
        return dropped
    if len(into) >= MAX_VALUES:
        return 1
    empty = "{}" if isinstance(value, dict) else "[]" if isinstance(value, list) else None
    into[key] = empty or scrub.setting(key.rsplit(".", 1)[-1], value, hidden)
    return 0


# ---- the whole ----------------------------------------------------------------------------------------------------

def collect(*, packages: Optional[Iterable[str]] = None, trees: Iterable[Tuple[str, str]] = (),
            configs: Iterable[Tuple[str, str]] = (), upstream: Optional[Mapping[str, str]] = None,
            environ: Optional[Mapping[str, str]] = None, torch: bool = True) -> Dict[str, Any]:
    """The environment lock of this process, JSON-able.

    `packages`: those whose files are compared with their recorded hashes. `trees`, `configs`: (name, path) pairs.
    `upstream`: tree name -> git reference the port started from. `environ`: os.environ unless given. `torch`: may a
    child process import it? Raises nothing for a broken part: that part becomes {"error": ...}.
    """
    env = os.environ if environ is None else environ
    named, scrub, run, budget = list(packages or ()), Scrubber(env), runner(env), [HASH_BYTES]
    ranks = {key: int(env[name]) for key, name in _RANKS if _COUNT.fullmatch(env.get(name, ""))}
    references = dict(upstream or {})

    def part(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:
            return {"error": scrub.short("%s: %s" % (type(error).__name__, error))}

    packages_found = part(lambda: package_facts(named, run, budget))
    lock = {
        "schema": SCHEMA,
        "rank": ranks,
        "python": part(lambda: python_facts(env)),
        "os": part(os_facts),
        "cpu": part(lambda: cpu_facts(run)),
        "packages": {name: entry[:4] + [scrub.tree(item) for item in entry[4:]] if isinstance(entry, list) else
                     scrub.tree(entry) for name, entry in packages_found.items()},
        "verified": sorted({canonical(name) for name in named}),
        "extensions": scrub.tree(part(lambda: extension_facts(named, env, budget))),
        "cuda": scrub.tree(part(lambda: cuda_facts(env, run))),
        "npu": scrub.tree(part(lambda: npu_facts(env, run))),
        "torch": scrub.tree(part(lambda: torch_part(env, torch))),
        "env": {name: scrub.short(env[name]) for name in LISTED if name in env},
        "listed": list(LISTED),
        "trees": {name: scrub.tree(part(partial(tree_facts, path, references.get(name), run))) for name, path in trees},
        "configs": {name: part(partial(config_facts, path, scrub)) for name, path in configs},
    }
    return {key: value for key, value in lock.items() if value not in ({}, []) or key in ("packages", "env")}


def render(lock: Mapping[str, Any]) -> str:
    """The JSON text: a line for each part, and for each package and configuration, so that two locks can be diffed."""
    def line(value: Any) -> str:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    parts = []
    for key in sorted(lock):
        value = lock[key]
        if key in ("packages", "configs", "trees", "extensions") and isinstance(value, dict) and value:
            value = "{\n%s\n}" % ",\n".join("%s:%s" % (line(name), line(value[name])) for name in sorted(value))
        else:
            value = line(value)
        parts.append("%s:%s" % (line(key), value))
    return "{%s}\n" % ",\n".join(parts)


def pair(text: str) -> Tuple[str, str]:
    """NAME=VALUE as (name, value)."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError("%r is not NAME=VALUE" % text)
    return name, value


def main(argv: Optional[Sequence[str]] = None) -> int:
    """The command: 0 written, 1 the file cannot be written or exists; argparse's 2 for a wrong command line."""
    parser = argparse.ArgumentParser(prog="envlock", description="Write down this machine's software environment.")
    parser.add_argument("--out", metavar="FILE", help="write here instead of stdout; an existing file is kept")
    parser.add_argument("--per-rank", action="store_true", help="under torchrun: FILE env.json becomes env.rankN.json")
    parser.add_argument("--package", action="append", default=[], metavar="NAME",
                        help="compare this package's files with their recorded hashes (repeatable)")
    parser.add_argument("--tree", action="append", default=[], type=pair, metavar="NAME=PATH", help="a git tree")
    parser.add_argument("--upstream", action="append", default=[], type=pair, metavar="NAME=REF",
                        help="the reference that tree NAME was ported from")
    parser.add_argument("--config", action="append", default=[], type=pair, metavar="NAME=PATH",
                        help="an effective configuration file")
    parser.add_argument("--no-torch", action="store_true", help="do not import torch in a child process")
    options = parser.parse_args(argv)
    out = options.out
    if out and options.per_rank and _COUNT.fullmatch(os.environ.get("RANK", "")):
        stem, extension = os.path.splitext(out)
        out = "%s.rank%d%s" % (stem, int(os.environ["RANK"]), extension)
    if out and os.path.lexists(out):
        print("envlock: %s exists; move it away or choose another --out" % out, file=sys.stderr)
        return 1
    lock = collect(packages=options.package, trees=options.tree, configs=options.config,
                   upstream=dict(options.upstream), torch=not options.no_torch)
    data = render(lock).encode("utf-8", "backslashreplace")
    if not out:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return 0
    try:
        with open(out, "xb") as stream:
            stream.write(data)
    except OSError as error:
        print("envlock: cannot write %s: %s" % (out, error.strerror), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
