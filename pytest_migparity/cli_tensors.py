"""The verbs of `migparity` that speak of tensors: digests, what is made of them, and what msprobe users bring."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command_line import EXIT, refuse_existing, spoken_language
from .core.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from .wire.digest import Digest

app = typer.Typer()


@app.command()
def digest(
    path: Annotated[Path, typer.Argument(help="safetensors file, index or folder; PyTorch file, DCP folder, npz, npy; "
                                         "LeRobot data set, parquet, images, videos")],
    out: Annotated[Path, typer.Option(help="write the digest here; an existing file is kept")],
    level: Annotated[int, typer.Option(min=0, max=1, help="0: names and hashes; 1: also statistics and sketches")] = 1,
    hash: Annotated[str | None, typer.Option(help="content hash, xxh3_128 (default where xxhash is installed) or "
                                             "sha256")] = None,
    zoom: Annotated[str | None, typer.Option(help="a tensor of it, or a part as its digest names it: digest the parts")]
    = None,
    layout: Annotated[Path | None, typer.Option(help="map to the other side's names and layout")]
    = None,
    cast: Annotated[str | None, typer.Option(help="digest the tensors rounded to bfloat16, float16 or float32")] = None,
    shard: Annotated[str | None, typer.Option(metavar="I/N", help="only this part of the tensors, I from 0 to N - 1; "
                                              "migparity merge makes one digest of all parts")] = None,
) -> None:
    """Write what a few KB can say of a checkpoint's tensors, to be compared where the other side's digest is."""
    from .host.digest_run import Wanted, write_digest
    from .wire.digest import ALGORITHMS

    if hash is not None and hash not in ALGORITHMS:
        raise UserError(f"--hash {hash}: {did_you_mean(hash, ALGORITHMS)}")
    try:
        done = write_digest(Wanted(str(path), str(out), level, hash, shard or "", str(layout or ""), zoom or "",
                                   cast or ""))
    except (ValueError, OSError) as error:
        raise UserError(str(error)) from None
    except ImportError:
        raise UserError("--hash xxh3_128 needs the package xxhash: install it, or digest both with sha256") from None
    _digest_written(out, done.digest, done.size)
    for line in done.remarks():
        typer.echo(f"  {line}")


@app.command()
def merge(
    shards: Annotated[list[Path], typer.Argument(help="what migparity digest --shard wrote: one of each part")],
    out: Annotated[Path, typer.Option(help="write the digest here; an existing file is kept")],
) -> None:
    """Make one digest of the digests of all shards of a checkpoint."""
    from .host.digest_shards import write_merged

    try:
        found, size = write_merged([str(shard) for shard in shards], str(out))
    except (ValueError, OSError) as error:
        raise UserError(str(error)) from None
    _digest_written(out, found, size)


def _digest_written(out: Path, found: Digest, size: int) -> None:
    from .reports.messages import language, say

    typer.echo(say("digest-written", language(), file=str(out), tensors=len(found.tensors), level=found.level,
                   algorithm=found.algorithm, size=size))


@app.command()
def hostfile(
    out: Annotated[Path, typer.Option(help="write the file here; an existing one is kept")] = Path(
        "migparity-host.pyz"),
) -> None:
    """Write the one file that a host needs to digest, launch and lock, with Python 3.9 or later."""
    from .pack_host import pack_host

    refuse_existing(out)
    try:
        out.write_bytes(pack_host())
    except OSError as error:
        raise UserError(f"{out}: {error.strerror}") from None
    typer.echo(f"{out}: python3 {out.name} envlock|digest|merge|launch --help")


@app.command()
def provenance(
    out: Annotated[Path, typer.Option(help="write provenance.json here; an existing file is kept")],
    config: Annotated[list[Path] | None, typer.Option(help="configuration of the run; repeatable")] = None,
    argument: Annotated[list[str] | None, typer.Option(help="an argument of its command line; repeatable")] = None,
    log: Annotated[Path | None, typer.Option(help="what the run printed")] = None,
    weights: Annotated[Path | None, typer.Option(help="digest of the checkpoint's file")] = None,
    loaded: Annotated[Path | None, typer.Option(help="digest of what was in memory after loading")] = None,
) -> None:
    """Write down which checkpoint a run was to load, which its log says was restored, and what the weights were."""
    from .host.envlock import Scrubber
    from .host.provenance import collect_asked, leaving, log_lines
    from .wire.digest_text import read
    from .wire.provenance import LogLine, Provenance, to_text, weights_of

    refuse_existing(out)
    if (weights is None) is not (loaded is None):
        raise UserError("--weights and --loaded belong together: the one is held against the other")
    try:
        lines: tuple[LogLine, ...] = ()
        if log is not None:
            with log.open(encoding="utf-8", errors="replace") as stream:
                lines = log_lines(stream)
        held = weights_of(read(str(weights)), read(str(loaded))) if weights and loaded else None
        asked = collect_asked([str(path) for path in config or ()], argument or ())
        out.write_text(to_text(leaving(Provenance(asked, lines, held), Scrubber(os.environ).text)), "utf-8")
    except (ValueError, OSError) as error:
        raise UserError(str(error)) from None
    typer.echo(f"{out}: {len(asked)} fields of loaders, {len(lines)} lines of the log")


@app.command()
def diffdigest(
    baseline: Annotated[Path, typer.Argument(help="digest of the official run's tensors")],
    candidate: Annotated[Path, typer.Argument(help="digest of the migrated run's tensors")],
    lang: Annotated[str | None, typer.Option(help="en or zh (default: from the locale)")] = None,
) -> None:
    """Compare two digests tensor by tensor: equal, value-equal, or which fault, where and how large."""
    from .judges.digestmatch import match
    from .reports.digest_text import digest_text
    from .wire.digest import DigestError
    from .wire.digest_text import read

    spoken = spoken_language(lang)
    try:
        found = match(read(str(baseline)), read(str(candidate)))
    except DigestError as error:
        raise UserError(str(error)) from None
    notes = [*found.notes, *(item.note() for item in found.tensors)]
    typer.echo(digest_text(found.outcome, found.counts, notes, spoken))
    raise typer.Exit(EXIT[found.outcome])


@app.command()
def refine(
    baseline: Annotated[Path, typer.Argument(help="digest of the official run's tensors, or of parts of them")],
    candidate: Annotated[Path, typer.Argument(help="digest of the migrated run's")],
    cast: Annotated[str, typer.Option(help="both are digests of copies rounded to this dtype")] = "",
    lang: Annotated[str | None, typer.Option(help="en or zh (default: from the locale)")] = None,
) -> None:
    """Say what two digests name, and which digests to make next so that what differs is named to the element."""
    from .judges.digest_refine import refine as refined
    from .reports.digest_text import refined_text
    from .wire.digest import DigestError
    from .wire.digest_text import read

    spoken = spoken_language(lang)
    try:
        found = refined(read(str(baseline)), read(str(candidate)), cast=cast)
    except DigestError as error:
        raise UserError(str(error)) from None
    asks = [(ask.side, ask.options) for ask in found.asks]
    typer.echo(refined_text(found.outcome, found.notes, asks, spoken))
    raise typer.Exit(EXIT[found.outcome])


@app.command()
def diffmsprobe(
    table: Annotated[Path, typer.Argument(help="compare_result_*.csv of msprobe: the official run as its bench")],
    lang: Annotated[str | None, typer.Option(help="en or zh (default: from the locale)")] = None,
    json: Annotated[bool, typer.Option("--json", help="print the verdict document instead")] = False,
) -> None:
    """Judge msprobe's comparison table as level L3 does, by our limits; its own Result column is not used."""
    from .byhand import judge_msprobe_table
    from .reports.verdict_text import verdict_text

    spoken = spoken_language(lang)
    verdict = judge_msprobe_table(table)
    typer.echo(verdict.to_json() if json else verdict_text(verdict, "", spoken, every_check=True))
    raise typer.Exit(EXIT[verdict.outcome])
