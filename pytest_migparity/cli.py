"""The `migparity` command. Every verb is a few lines over the rooms; exit codes are the run's: 0, 1, 12; usage 4."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .core.errors import UserError, did_you_mean
from .core.verdict import Outcome

if TYPE_CHECKING:
    from .wire.digest import Digest

app = typer.Typer(name="migparity", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  help="Was accuracy lost in the migration, and where does the loss first show?")

USAGE = 4
EXIT = {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.INCONCLUSIVE: 12}


@app.command()
def difftraj(
    baseline: Annotated[Path, typer.Argument(help="training log of the official run")],
    candidate: Annotated[Path, typer.Argument(help="training log of the migrated run")],
    rerun: Annotated[list[Path] | None, typer.Option(help="a rerun of the baseline, for floors; repeatable")] = None,
    family: Annotated[str | None, typer.Option(help="dense, moe or dropout: whose good pairs to compare with")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="judge these first steps only")] = None,
    first_step: Annotated[int | None, typer.Option(min=0, help="both resume from one checkpoint, here")] = None,
    column: Annotated[str, typer.Option(help="the series in the log that is judged")] = "loss",
    following: Annotated[bool, typer.Option("--follow", help="judge again whenever a log has grown")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="seconds between looks with --follow")] = 5.0,
    lang: Annotated[str | None, typer.Option(help="en or zh (default: from the locale)")] = None,
    json: Annotated[bool, typer.Option("--json", help="print the verdict document instead")] = False,
) -> None:
    """Judge two training logs as level L5 does, without a manifest: same initial weights, data and noise assumed."""
    from .byhand import Logs, follow
    from .core.evidence import FAMILIES, Policy
    from .reports.verdict_text import so_far, verdict_text

    spoken = _language(lang)
    if family is not None and family not in FAMILIES:
        raise UserError(f"--family {family}: {did_you_mean(family, FAMILIES)}")
    logs = Logs(baseline, candidate, tuple(rerun or ()), column, Policy(steps=steps, first=first_step, family=family))
    if following:
        for verdict, final in follow(logs, every=every):
            if not final:
                typer.echo(verdict.to_json() if json else so_far(verdict, spoken))
    else:
        verdict = logs.judge()
    typer.echo(verdict.to_json() if json else verdict_text(verdict, "", spoken, every_check=True))
    raise typer.Exit(EXIT[verdict.outcome])


def _language(lang: str | None) -> str:
    from .reports.messages import LANGUAGES, language

    if lang is not None and lang not in LANGUAGES:
        raise UserError(f"--lang {lang}: expected {' or '.join(LANGUAGES)}")
    return language(lang)


@app.command()
def readlog(
    log: Annotated[Path, typer.Argument(help="training log, or TensorBoard folder")],
    column: Annotated[str, typer.Option(help="the series in the log that would be judged")] = "loss",
    format: Annotated[str | None, typer.Option(help="read it as this format (default: told by the content)")] = None,
    json: Annotated[bool, typer.Option("--json", help="print the report as a document instead")] = False,
) -> None:
    """Show what a training log is read as: format, rows kept, dropped and why, printed digits, first and last rows."""
    from json import dumps

    from .assess import read_log
    from .gather import read_in_place
    from .reports.log_text import log_text
    from .reports.messages import language

    reading = read_log(read_in_place(log), column, format)
    document = reading.report.to_json()
    typer.echo(dumps(document, ensure_ascii=False) if json else log_text(document, reading.table, reading.repairs,
                                                                         language()))


@app.command()
def calibrate(
    runs: Annotated[list[Path] | None, typer.Argument(metavar="RUN", help="logs of reruns of one side: two or more")
                    ] = None,
    level: Annotated[str, typer.Option(help="the level whose floors are measured")] = "L5",
    column: Annotated[str, typer.Option(help="the series in the logs that is measured")] = "loss",
    steps: Annotated[int | None, typer.Option(min=1, help="measure over these first steps only")] = None,
    write: Annotated[Path | None, typer.Option(help="write the numbers into this model.toml")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="in place of other numbers that stand there")] = False,
    take: Annotated[Path | None, typer.Option("--import", metavar="FILE", help="write the floors and limits of FILE, "
                                              "measured elsewhere, instead of measuring")] = None,
    source: Annotated[str, typer.Option(help="who measured what is imported, and where")] = "",
    lang: Annotated[str | None, typer.Option(help="en or zh (default: from the locale)")] = None,
    json: Annotated[bool, typer.Option("--json", help="print the result as a document instead")] = False,
) -> None:
    """Measure noise floors from reruns of one side, or import measured ones, and write them into a manifest."""
    from datetime import UTC, datetime
    from json import dumps
    from typing import Any

    from .calibrate import calibrate as measure
    from .calibrate import calibrated_level
    from .core.manifest import load_manifest
    from .manifest_edit import imported_entries, measured_entries, write_entries
    from .reports.calibration_text import calibration_text, written_text

    spoken, document, texts, refused = _language(lang), dict[str, Any](), [], False
    if (take is None and source) or (replace and write is None):
        raise UserError("--source goes with --import, and --replace with --write")
    if take is not None:
        if runs or write is None:
            raise UserError("--import FILE takes no RUN, and needs --write model.toml to write into")
        entries = imported_entries(take, calibrated_level(level).name, source)
    else:
        found = measure(runs or [], level, column=column, steps=steps,
                        manifest=None if write is None else load_manifest(write))
        entries = {"floors": measured_entries(found, datetime.now(UTC).date().isoformat())}
        document, refused = found.document(), bool(found.refused)
        texts.append(calibration_text(document, spoken))
    if write is not None:
        document["written"] = write_entries(write, level, entries, replace=replace)
        texts.append(written_text(document["written"], str(write), level, spoken))
    typer.echo(dumps(document, ensure_ascii=False) if json else "\n\n".join(texts))
    raise typer.Exit(EXIT[Outcome.INCONCLUSIVE] if refused else 0)


@app.command()
def plan(
    level: Annotated[str, typer.Option(help="the level to plan: L7")] = "L7",
    model: Annotated[str | None, typer.Option(help="whose margin and published rate: a model's name or path")] = None,
    rate: Annotated[float | None, typer.Option(min=0, max=1, help="success rate to expect of the baseline")] = None,
    lang: Annotated[str | None, typer.Option(help="en or zh (default: from the locale)")] = None,
    json: Annotated[bool, typer.Option("--json", help="print the table as a document instead")] = False,
) -> None:
    """Say how many rollouts which margin costs, paired and unpaired, before any is run."""
    from json import dumps

    from .plan import planned
    from .reports.plan_text import plan_text

    if level != "L7":
        raise UserError(f"--level {level}: L7 is the level that costs rollouts; the others are judged from one run")
    found = planned(model, rate)
    typer.echo(dumps(found.document(), ensure_ascii=False) if json else plan_text(found.document(), _language(lang)))


@app.command()
def rehearse(
    out: Annotated[Path, typer.Option(help="new folder for this side's artifacts and receipt")],
    model: Annotated[str, typer.Option(help="whose recipe the arm rehearses: a model's name or path")] = "rehearsal",
    fault: Annotated[str | None, typer.Option(help="build this fault in (migparity faults lists them)")] = None,
    kernel: Annotated[str | None, typer.Option(help="BLAS kernel: default, other, or an OpenBLAS core type")] = None,
    rerun: Annotated[bool, typer.Option("--rerun", help="repeat the side on another kernel: its noise floor")] = False,
) -> None:
    """Run one side of the embedded model for real and write its artifacts and receipt."""
    from .core.manifest import load_manifest
    from .rehearsal.rehearse import PRINTED_SERIES
    from .rehearsal.rehearse import rehearse as run
    from .suite import find_model, known_models

    path = find_model(model, Path.cwd() / "fixtures")
    if path is None:
        known = set(known_models(Path.cwd() / "fixtures"))
        raise UserError(f"no model {model!r}: no folder or file of that name holds a model.toml; "
                        f"{did_you_mean(model, known)}")
    manifest = load_manifest(path)
    run(out, recipe=manifest.recipe.canonical(), fault=fault, kernel=kernel, rerun=rerun,
        printed=PRINTED_SERIES in manifest.series)
    typer.echo(f"{out}: {', '.join(sorted(file.name for file in out.iterdir()))}")


@app.command()
def faults() -> None:
    """List the faults that a rehearsal can build in, and what each level is expected to say of them."""
    from .rehearsal.faults import CATALOGUE

    for fault in CATALOGUE.values():
        expected = " ".join(f"{level}={outcome}" for level, outcome in sorted(fault.expect.items()))
        typer.echo(f"{fault.name:<28}{fault.kind:<14}{expected}\n{'':<28}{fault.cause}")


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

    if out.exists():
        raise UserError(f"{out} exists; move it away or choose another --out")
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

    if out.exists():
        raise UserError(f"{out} exists; move it away or choose another --out")
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

    spoken = _language(lang)
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

    spoken = _language(lang)
    try:
        found = refined(read(str(baseline)), read(str(candidate)), cast=cast)
    except DigestError as error:
        raise UserError(str(error)) from None
    asks = [(ask.side, ask.options) for ask in found.asks]
    typer.echo(refined_text(found.outcome, found.notes, asks, spoken))
    raise typer.Exit(EXIT[found.outcome])


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def envlock(context: typer.Context) -> None:
    """Write this host's environment lock (--help lists its own options)."""
    from .host.envlock import main as lock

    raise typer.Exit(lock(context.args))


def main() -> None:
    """The console script: a user's mistake is one line on stderr and exit code 4."""
    try:
        app()
    except UserError as error:
        sys.stderr.write(f"migparity: {error}\n")
        sys.exit(USAGE)
    except SystemExit as stop:
        sys.exit(USAGE if stop.code == 2 else stop.code)  # click's code for a wrong command line
