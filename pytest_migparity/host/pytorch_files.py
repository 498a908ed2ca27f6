"""PyTorch files (`.pt`, `.bin`, `.pth`): their tensors, loaded weights-only and mapped. Nothing they hold is run.

Plain tensors in dicts and lists are read by `pytorch_zip`, without torch; all else needs torch. What
`torch.load(weights_only=True)` refuses, such as a pickle with code in it, is refused here with the name of what it
asked for; nothing of it is executed.
"""

import os
import pickle
import warnings
import zipfile
from functools import partial
from typing import Any, List, Optional, Tuple

from .digest_numpy import storage
from .pytorch_zip import read_zip
from .safetensors_files import TensorFileError
from .tensors import Opened, Tensor, mapped

_MOST_RECORDS = 1 << 20


def read_pytorch(path: str) -> Opened:
    """The tensors of a file that `torch.save` wrote, nested dicts under dotted names; TensorFileError names its fault.

    A zip's storages are mapped, and unmapped as they are read; a file in the form before torch 1.6 is read whole.
    """
    plain = read_zip(path)
    if plain:
        return plain
    try:
        import torch
    except ImportError:
        raise without_torch(path) from None
    from .torch_tensors import of_state

    state = load_weights(path, path, os.path.getsize(path))
    if not isinstance(state, (torch.Tensor, dict, list, tuple)):
        raise TensorFileError("%s holds a %s, and no tensors" % (path, type(state).__name__))
    try:
        found = of_state({"tensor": state} if isinstance(state, torch.Tensor) else state, make=_Mapped(path))
    except (ValueError, RecursionError) as error:
        raise TensorFileError("%s: %s" % (path, error)) from None
    names = [tensor.name for tensor in found.tensors]
    if len(set(names)) < len(names):
        raise TensorFileError("%s: two of its tensors have one name once nested names are joined by dots" % path)
    return found._replace(files=(path,))


class _Mapped:
    """Torch tensors that `torch.load` mapped from a file, as tensors mapped piece by piece while they are read.

    Torch maps the file as a whole and for good, so that all of it counts as memory of the process once it was read.
    Where a tensor lies in the file the kernel tells; where it does not (not Linux), torch's own mapping is used.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._places: Optional[List[Tuple[int, int, int]]] = None

    def __call__(self, name: str, tensor: Any) -> Tensor:
        from .torch_tensors import of_torch

        found = of_torch(name, tensor)
        if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg() or not found.size:
            return found
        if self._places is None:
            self._places = _places(self._path)
        kind, first = storage(found.dtype), int(tensor.data_ptr())
        for start, end, offset in self._places:
            if start <= first and first + found.size * kind.itemsize <= end:
                return found._replace(leaves=partial(mapped, self._path, offset + first - start, kind, found.size))
        return found


def _places(path: str) -> List[Tuple[int, int, int]]:
    """(first address, end, offset in the file) of what this process has mapped of a file."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:
            lines = [line.rstrip("\n").split(None, 5) for line in stream]
    except OSError:
        return []
    wanted = os.path.realpath(path)
    return [(*(int(part, 16) for part in fields[0].split("-")), int(fields[2], 16))  # type: ignore[misc]
            for fields in lines if len(fields) == 6 and fields[5] == wanted]


def without_torch(path: str) -> TensorFileError:
    """The error of a host that has no torch."""
    return TensorFileError("%s is a PyTorch file or a pickle that could run code: not opened; torch is not installed "
                           "here to load its weights alone. Install it, or save as safetensors" % path)


def load_weights(source: Any, where: str, size: int) -> Any:
    """What `torch.save` wrote into a file (a path, which is mapped, or an open one) of `size` bytes, weights only."""
    import torch

    mapped = _is_zip(source, where, size) and isinstance(source, str)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's remarks on a pickle's protocol
            return torch.load(source, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as error:
        raise TensorFileError("%s is not opened: %s" % (where, _refused(str(error)))) from None
    except (RuntimeError, ValueError, EOFError, KeyError, OSError, TypeError, AttributeError, IndexError) as error:
        raise TensorFileError("%s is damaged, or a pickle that could run code: not opened (%s)"
                              % (where, (str(error).strip() or type(error).__name__).splitlines()[0][:300])) from None


def _is_zip(source: Any, where: str, size: int) -> bool:
    """Is it of the zip form, with every storage kept as it is? TensorFileError for one that would expand."""
    try:
        if not zipfile.is_zipfile(source):
            return False
        with zipfile.ZipFile(source) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError) as error:
        raise TensorFileError("%s: %s" % (where, error)) from None
    finally:
        if not isinstance(source, str):
            source.seek(0)
    packed = [member.filename for member in members if member.compress_type != zipfile.ZIP_STORED]
    if packed:
        raise TensorFileError("%s: %.80s in it is compressed, which torch.save never does: not opened"
                              % (where, packed[0]))
    if len(members) > _MOST_RECORDS or sum(member.file_size for member in members) > size:
        raise TensorFileError("%s is said to hold more bytes than it has: not opened" % where)
    return True


def _refused(said: str) -> str:
    """What torch says it would not load, without its advice to load it all the same."""
    line = next((line.strip() for line in said.splitlines() if "Unsupported" in line or "GLOBAL" in line), "")
    return "its pickle asks for more than tensors (%s), and could run code. Save the state dict alone, or as " \
        "safetensors" % (line[:200] or "refused by torch")
