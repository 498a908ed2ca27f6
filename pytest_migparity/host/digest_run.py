"""Digest a checkpoint of any size: in parallel, with progress, taken up again after an interruption, or a shard of it.

Tensors larger than a leaf are worked on leaf by leaf in parallel, smaller ones side by side. What is done is kept in
the journal `OUT.journal`, which is removed when the digest is whole.
"""

import hashlib
import json
from functools import partial
from typing import Iterator, List, NamedTuple, Optional, Tuple

from ..wire.digest import Digest, TensorDigest
from ..wire.digest_text import to_text
from ..wire.layout import Layout, layout_hash
from .digest import algorithm_here, digest_tensor, in_turn
from .digest_journal import Journal, state_of
from .digest_numpy import Array
from .digest_shards import bytes_of, shard_of
from .layout import apply_layout, read_layout
from .new_file import refuse_existing, write_new
from .progress import Progress
from .tensor_files import open_source
from .tensors import Tensor
from .zoom import cast_of, zoomed


class Wanted(NamedTuple):
    """What to digest, and how: `shard` is `i/n`, `layout` a file, `zoom` a tensor's name, `cast` a dtype."""

    path: str
    out: str
    level: int = 1
    algorithm: Optional[str] = None
    shard: str = ""
    layout: str = ""
    zoom: str = ""
    cast: str = ""


class Written(NamedTuple):
    """The digest, its characters, how many tensors an earlier run had done, and what is no tensor."""

    digest: Digest
    size: int
    resumed: int
    left_out: Tuple[str, ...]

    def remarks(self) -> List[str]:
        """What the reader should know of it, a line each."""
        found = []
        if self.digest.part:
            found.append("shard %s: merge it with the others" % self.digest.part.partition(" ")[0])
        if self.resumed:
            found.append("%d tensors were taken over from an interrupted run" % self.resumed)
        if self.left_out:
            found.append("%d entries are no tensors and not digested: %s%s" % (
                len(self.left_out), ", ".join(self.left_out[:5]), ", ..." if len(self.left_out) > 5 else ""))
        return found


def write_digest(wanted: Wanted) -> Written:
    """Digest what is wanted into a new file. ValueError and OSError name what is wrong; an interrupted run goes on.

    ImportError where the hash is xxh3_128 and the package xxhash is not installed.
    """
    refuse_existing(wanted.out)
    algorithm = wanted.algorithm or algorithm_here()
    opened = open_source(wanted.path)
    before = state_of(opened.files)
    layout = read_layout(wanted.layout) if wanted.layout else None
    tensors, part = _chosen(opened.tensors, wanted, layout)
    journal = Journal(wanted.out + ".journal", _settings(wanted, algorithm, layout, before), wanted.level, algorithm)
    try:
        done = [journal.get(tensor.name, tensor.dtype, tensor.shape) for tensor in tensors]
        items = [item for item in done if item is not None]
        left = [tensor for tensor, item in zip(tensors, done) if item is None]
        resumed = len(items)
        for item in _digested(left, wanted.level, algorithm):
            journal.add(item)
            items.append(item)
        if state_of(opened.files) != before:
            raise ValueError("%s changed while it was digested: digest it again" % wanted.path)
        digest = Digest(wanted.level, algorithm, tuple(sorted(items, key=lambda item: item.name)), part,
                        layout_hash(layout) if layout else "")
        text = to_text(digest)
        write_new(wanted.out, text)
    except BaseException:
        journal.close()
        raise
    journal.remove()
    return Written(digest, len(text), resumed, opened.left_out)


def _chosen(tensors: List[Tensor], wanted: Wanted, layout: Optional[Layout]) -> Tuple[List[Tensor], str]:
    """(the tensors to digest, the part of the whole that they are)."""
    if layout:
        tensors = apply_layout(tensors, layout)
    if wanted.zoom:
        tensors = zoomed(tensors, wanted.zoom)
    if wanted.cast:
        tensors = [cast_of(tensor, wanted.cast) for tensor in tensors]
    return shard_of(tensors, wanted.shard) if wanted.shard else (tensors, "")


def _settings(wanted: Wanted, algorithm: str, layout: Optional[Layout], state: str) -> str:
    """What a journal's lines must have been made of and with, to be used again."""
    told = [state, wanted.level, algorithm, wanted.zoom, wanted.cast, layout_hash(layout) if layout else ""]
    return hashlib.sha256(json.dumps(told).encode("ascii")).hexdigest()[:16]


def _digested(tensors: List[Tensor], level: int, algorithm: str) -> Iterator[TensorDigest]:
    progress = Progress(sum(map(bytes_of, tensors)), "digest")
    work = partial(digest_tensor, level=level, algorithm=algorithm)
    counted = [tensor._replace(leaves=partial(_counted, tensor, progress)) for tensor in tensors]
    try:
        yield from in_turn(work, counted)
    finally:
        progress.close()


def _counted(tensor: Tensor, progress: Progress) -> Iterator[Array]:
    """The leaves, counted; ValueError where they are not as many elements as the tensor is said to have."""
    held = 0
    for leaf in tensor.leaves():
        held += int(leaf.size)
        yield leaf
        progress.add(int(leaf.nbytes))
    if held != tensor.size:
        raise ValueError("%s: %d elements were read, its shape has %d: the file is torn, or its header lies"
                         % (tensor.name, held, tensor.size))
