"""The `migparity` command. Every verb is a few lines over the rooms; exit codes are the run's: 0, 1, 12; usage 4."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .core.errors import UserError, did_you_mean
from .core.verdict import Outcome

if TYPE_CHECKING:
    from .core.evidence import Evidence, Trajectory

app = typer.Typer(name="migparity", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  help="Was accuracy lost in the migration, and where does the loss first show?")

USAGE = 4
EXIT = {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.INCONCLUSIVE: 12}


@app.command()
def difftraj(
    baseline: Annotated[Path, typer.Argument(help="training log of the official run")],
    candidate: Annotated[Path, typer.Argument(help="training log of the migrated run")],
    steps: Annotated[int | None, typer.Option(min=1, help="judge these first steps only")] = None,
    column: Annotated[str, typer.Option(help="the series in the log that is judged")] = "loss",
    lang: Annotated[str | None, typer.Option(help="en or zh (default: from the locale)")] = None,
    json: Annotated[bool, typer.Option("--json", help="print the verdict document instead")] = False,
) -> None:
    """Judge two training logs as level L5 does, without a manifest: same initial weights, data and noise assumed."""
    from .assess import judge_evidence
    from .core.evidence import Policy
    from .core.levels import LEVELS
    from .core.limits import Floors, default_limits
    from .core.verdict import Verdict
    from .reports.messages import LANGUAGES, language
    from .reports.verdict_text import verdict_text

    if lang is not None and lang not in LANGUAGES:
        raise UserError(f"--lang {lang}: expected {' or '.join(LANGUAGES)}")
    ours, theirs = _read(baseline, "baseline", column), _read(candidate, "candidate", column)
    finding = judge_evidence("L5", ours, theirs, limits=default_limits(LEVELS["L5"]), floors=Floors(),
                             policy=Policy(steps=steps))
    verdict = Verdict("L5", "difftraj", "main", finding, (*ours.witnesses, *theirs.witnesses))
    typer.echo(verdict.to_json() if json else verdict_text(verdict, "", language(lang), every_check=True))
    raise typer.Exit(EXIT[verdict.outcome])


def _read(path: Path, side: str, column: str) -> Evidence[Trajectory]:
    """A log, or a TensorBoard folder, given by hand: manual evidence, judged as it is now."""
    from .assess import read_trajectory
    from .core.evidence import Evidence
    from .core.verdict import Witness
    from .gather import read_in_place

    files = read_in_place(path)
    recorded = read_trajectory(files, Witness(side, "manual", path.name, files[0].sha256), column)
    return Evidence(side, "loss", (recorded,))


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
