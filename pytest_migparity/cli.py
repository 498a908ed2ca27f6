"""The `migparity` command. Every verb is a few lines over the rooms; exit codes are the run's: 0, 1, 12; usage 4."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import cli_rollout, cli_tensors
from .command_line import EXIT, USAGE, spoken_language
from .core.errors import UserError, did_you_mean
from .core.verdict import Outcome

app = typer.Typer(name="migparity", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  help="Was accuracy lost in the migration, and where does the loss first show?")

app.add_typer(cli_tensors.app)
app.add_typer(cli_rollout.app)


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

    spoken = spoken_language(lang)
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


@app.command()
def readlog(
    log: Annotated[Path, typer.Argument(help="training log, or TensorBoard folder")],
    column: Annotated[str, typer.Option(help="the series in the log that would be judged")] = "loss",
    format: Annotated[str | None, typer.Option(help="read it as this format (default: told by the content)")] = None,
    json: Annotated[bool, typer.Option("--json", help="print the report as a document instead")] = False,
) -> None:
    """Show what a training log is read as: format, rows kept, dropped and why, printed digits, first and last rows."""
    from json import dumps

    from .gather import read_in_place
    from .reports.log_text import log_text
    from .reports.messages import language
    from .trainlog import read_log

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

    spoken, document, texts, refused = spoken_language(lang), dict[str, Any](), [], False
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
    spoken = spoken_language(lang)
    typer.echo(dumps(found.document(), ensure_ascii=False) if json else plan_text(found.document(), spoken))


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
