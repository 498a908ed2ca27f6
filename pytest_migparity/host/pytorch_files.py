"""PyTorch files (`.pt`, `.bin`, `.pth`): their tensors, loaded weights-only and mapped. Nothing they hold is run.

Needs torch. What `torch.load(weights_only=True)` refuses, such as a pickle with code in it, is refused here with the
name of what it asked for; nothing of it is executed.
"""

import os
import pickle
import warnings
import zipfile
from typing import Any, List

from .safetensors_files import TensorFileError
from .tensors import Tensor

_MOST_RECORDS = 1 << 20


def read_pytorch(path: str) -> List[Tensor]:
    """The tensors of a file that `torch.save` wrote, nested dicts under dotted names; TensorFileError names its fault.

    A zip's storages are mapped, not read; a file in the form before torch 1.6 is read whole.
    """
    try:
        import torch
    except ImportError:
        raise TensorFileError("%s is a PyTorch file or a pickle that could run code: not opened; torch is not "
                              "installed here to load its weights alone. Install it, or save as safetensors"
                              % path) from None
    from .torch_tensors import of_state

    mapped = _is_zip(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's remarks on a pickle's protocol
            state = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as error:
        raise TensorFileError("%s is not opened: %s" % (path, _refused(str(error)))) from None
    except (RuntimeError, ValueError, EOFError, KeyError, OSError, TypeError, AttributeError, IndexError) as error:
        raise TensorFileError("%s is damaged, or a pickle that could run code: not opened (%s)"
                              % (path, (str(error).strip() or type(error).__name__).splitlines()[0][:300])) from None
    try:
        found = of_state({"tensor": state} if isinstance(state, torch.Tensor) else _table(state, path))
    except ValueError as error:
        raise TensorFileError("%s: %s" % (path, error)) from None
    names = [tensor.name for tensor in found]
    if len(set(names)) < len(names):
        raise TensorFileError("%s: two of its tensors have one name once nested names are joined by dots" % path)
    return found


def _table(state: Any, path: str) -> Any:
    if not isinstance(state, (dict, list, tuple)):
        raise TensorFileError("%s holds a %s, and no tensors" % (path, type(state).__name__))
    return state


def _is_zip(path: str) -> bool:
    """Is it of the zip form, with every storage kept as it is? TensorFileError for one that would expand."""
    if not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError) as error:
        raise TensorFileError("%s: %s" % (path, error)) from None
    packed = [member.filename for member in members if member.compress_type != zipfile.ZIP_STORED]
    if packed:
        raise TensorFileError("%s: %.80s in it is compressed, which torch.save never does: not opened"
                              % (path, packed[0]))
    if len(members) > _MOST_RECORDS or sum(member.file_size for member in members) > os.path.getsize(path):
        raise TensorFileError("%s is said to hold more bytes than it has: not opened" % path)
    return True


def _refused(said: str) -> str:
    """What torch says it would not load, without its advice to load it all the same."""
    line = next((line.strip() for line in said.splitlines() if "Unsupported" in line or "GLOBAL" in line), "")
    return "its pickle asks for more than tensors (%s), and could run code. Save the state dict alone, or as " \
        "safetensors" % (line[:200] or "refused by torch")
