"""The verb of `migparity` that runs episodes in closed loop, and when it may stop early."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command_line import EXIT
from .core.errors import UserError
from .core.verdict import Outcome

if TYPE_CHECKING:
    from .rollouts.run import Planned

app = typer.Typer()
_SEEDS = re.compile(r"([0-9]{1,12})-([0-9]{1,12})")


@app.command()
def rollout(
    env: Annotated[str, typer.Option(help="MODULE:FACTORY of a gymnasium environment; it may take the task's name")],
    out: Annotated[Path, typer.Option(help="rollouts.jsonl; what it holds already is not run again")],
    policy: Annotated[str, typer.Option(help="MODULE:FACTORY of a policy, which is started here")] = "",
    server: Annotated[str, typer.Option(help="or the ws:// address of a policy server elsewhere")] = "",
    plan: Annotated[Path | None, typer.Option(help='JSON list of {"task": ..., "seed": ...}')] = None,
    task: Annotated[str, typer.Option(help="without a plan: the name of the task")] = "main",
    seeds: Annotated[str, typer.Option(help="without a plan: first-last, both included")] = "",
    workers: Annotated[int, typer.Option(min=1, help="simulators side by side")] = 2,
    rows: Annotated[int, typer.Option(min=0, help="fixed rows of the policy's batches (default: workers)")] = 0,
    horizon: Annotated[int, typer.Option(min=1, help="most steps of an episode")] = 1000,
    harness: Annotated[str, typer.Option(help="name and version of simulator and tasks, the same on both sides")] = "",
    until_decided: Annotated[Path | None, typer.Option(metavar="BASELINE", help="the baseline's rollouts.jsonl: stop "
                                                       "as soon as L7 is decided")] = None,
    margin: Annotated[float, typer.Option(min=0, max=1, help="L7's margin, with --until-decided")] = 0.10,
    alpha: Annotated[float, typer.Option(min=0, max=0.5, help="L7's alpha, with --until-decided")] = 0.05,
) -> None:
    """Run episodes of a policy in a simulator, in the order in which L7 judges them, one line each as it ends."""
    from .decided import Decided, in_order
    from .host.progress import Progress
    from .rollouts.run import Order, Run, planned_in

    if (plan is None) is not bool(seeds):
        raise UserError("name either --plan FILE or --seeds FIRST-LAST")
    if until_decided is not None and until_decided.resolve() == out.resolve():
        raise UserError(f"--until-decided {until_decided} is --out: a run is not its own baseline")
    episodes = in_order(planned_in(plan) if plan is not None else _of_seeds(task, seeds))
    order = Order(env, episodes, out, policy=policy, server=server, workers=workers, rows=rows, horizon=horizon,
                  harness=harness or env)
    decided = None if until_decided is None else Decided(until_decided, episodes, margin, alpha)
    progress = Progress(len(episodes), "rollout", "episodes")
    run = Run(order, enough=decided or (lambda done: False), told=lambda episode: progress.add(1))
    try:
        done = run()
    finally:
        progress.close()
    failed = sum(episode.success is None for episode in done)
    rate = sum(bool(episode.success) for episode in done)
    typer.echo(f"{out}: {len(done)} of {len(episodes)} episodes, {rate} succeeded, {failed} without an outcome"
               f"{f', {run.resumed} of an earlier run' if run.resumed else ''}")
    if decided is not None:
        typer.echo(f"L7 so far: {decided.outcome} at a margin of {margin:g}")
        raise typer.Exit(EXIT[decided.outcome])
    raise typer.Exit(EXIT[Outcome.INCONCLUSIVE] if failed else 0)


def _of_seeds(task: str, seeds: str) -> list[Planned]:
    found = _SEEDS.fullmatch(seeds)
    if not found or int(found[1]) > int(found[2]) or int(found[2]) - int(found[1]) >= 1 << 20:
        raise UserError(f"--seeds {seeds}: expected first-last, e.g. 0-99")
    return [(task, seed) for seed in range(int(found[1]), int(found[2]) + 1)]
