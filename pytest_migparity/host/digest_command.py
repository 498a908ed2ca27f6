"""The commands `digest` and `merge` of a host that has only our files, as `migparity digest` and `migparity merge`.

Needs numpy. A mistake is one line on stderr and exit code 4.
"""

import argparse
import sys
from typing import Callable, List

from ..wire.digest import ALGORITHMS


def digest(argv: List[str]) -> int:
    """Write the digest of a file or folder of tensors, or of one shard of it."""
    parser = argparse.ArgumentParser(prog="digest", description=digest.__doc__)
    parser.add_argument("path", help="safetensors, PyTorch, npz, npy or parquet file, index, DCP or LeRobot folder")
    parser.add_argument("--out", required=True, help="write the digest here; an existing file is kept")
    parser.add_argument("--level", type=int, choices=(0, 1), default=1, help="0: names and hashes; 1: also statistics")
    parser.add_argument("--hash", choices=ALGORITHMS, default=None, help="default: xxh3_128 where xxhash is installed")
    parser.add_argument("--shard", default="", metavar="I/N", help="only this part of the tensors; I from 0 to N - 1")
    parser.add_argument("--layout", default="", metavar="FILE", help="map to the other side's names and layout")
    parser.add_argument("--zoom", default="", metavar="TENSOR", help="digest the parts of a tensor, or of a part")
    parser.add_argument("--cast", default="", help="digest the tensors rounded to bfloat16, float16 or float32")
    options = parser.parse_args(argv)

    def run() -> str:
        from .digest_run import Wanted, write_digest

        done = write_digest(Wanted(options.path, options.out, options.level, options.hash, options.shard,
                                   options.layout, options.zoom, options.cast))
        return "%s: %d tensors, level %d, %s, %d characters%s" % (
            options.out, len(done.digest.tensors), done.digest.level, done.digest.algorithm, done.size,
            "".join("\n  " + line for line in done.remarks()))

    return _told(run, "digest")


def merge(argv: List[str]) -> int:
    """Write the digest of the whole from the digests of all its shards."""
    parser = argparse.ArgumentParser(prog="merge", description=merge.__doc__)
    parser.add_argument("shards", nargs="+", help="what `digest --shard` wrote, one for each shard")
    parser.add_argument("--out", required=True, help="write the digest here; an existing file is kept")
    options = parser.parse_args(argv)

    def run() -> str:
        from .digest_shards import write_merged

        found, size = write_merged(options.shards, options.out)
        return "%s: %d tensors, level %d, %s, %d characters" % (options.out, len(found.tensors), found.level,
                                                                found.algorithm, size)

    return _told(run, "merge")


def _told(run: Callable[[], str], name: str) -> int:
    try:
        sys.stdout.write(run() + "\n")
    except ImportError as error:
        sys.stderr.write("migparity %s: %s is not installed for %s: install it%s\n" % (
            name, error.name or error, sys.executable, ", or use --hash sha256" if error.name == "xxhash" else ""))
        return 4
    except (ValueError, OSError) as error:
        sys.stderr.write("migparity %s: %s\n" % (name, error))
        return 4
    return 0
