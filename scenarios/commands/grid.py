"""The command ``hpcrowd grid``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcrowd.scenarios.commands.options import (
    AsJson,
    LogDecisions,
)

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog


def grid_command(
    source: str,
    *,
    broker: str | None,
    share: float | None,
    components: int | None,
    users: str | None,
    seed: int | None,
    out: Path | None,
    as_json: bool,
    log: DecisionLog | None = None,
) -> None:
    """Run a grid, print a summary, and write results if asked for.

    Parameters
    ----------
    source
        TOML file of the grid, or the name of one that is there.
    broker, components, users, seed
        Take the place of what the file says, unless None.
    share
        Takes the place of ``grid_share`` of every cluster.
    out
        Folder for results.
    as_json
        Print the summary as one JSON object.
    log
        Where users note what they decide.
    """
    from hpcrowd.analysis.results import check_replaceable
    from hpcrowd.scenarios.commands.summary import keep_run, tell_run
    from hpcrowd.scenarios.kinds.grid import read_grid, with_share
    from hpcrowd.scenarios.terminal import say_if_compiling, simulation_progress

    if out is not None:
        check_replaceable(out)
    given = {"broker": broker, "components": components, "users": users, "seed": seed}
    config = read_grid(
        source, **{name: value for name, value in given.items() if value is not None}
    )
    if share is not None:
        config = with_share(config, share)
    say_if_compiling(len(config.clusters) + 1)
    from hpcrowd.scenarios.kinds.grid import run_grid

    with simulation_progress(1) as progress:
        run = run_grid(config, progress=progress, log=log)
    keep_run(run, out)
    tell_run(run, as_json=as_json)


def command(
    source: Annotated[
        str, typer.Argument(metavar="FILE.toml|NAME", help="A grid of yours, or das3.")
    ],
    broker: Annotated[
        str | None,
        typer.Option(
            help="Where jobs of the grid go: first-fit, worst-fit, least-loaded, "
            "fastest-completion."
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(help="Share of the clusters' users who submit to the grid; 0 isolates them."),
    ] = None,
    components: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Split wider jobs of the grid into components of at most so many processors, "
            "which start together on several clusters.",
        ),
    ] = None,
    users: Annotated[
        str | None, typer.Option(help="How users behave, such as rigid or think-time.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Run several clusters as a grid, with users of each and users of the grid.

    \b
    hpcrowd grid das3
    hpcrowd grid das3 --broker fastest-completion --share 0.2
    hpcrowd grid das3 --components 114
    hpcrowd grid mine.toml --out results
    """
    from hpcrowd.scenarios.commands.options import log_for

    grid_command(
        source,
        broker=broker,
        share=share,
        components=components,
        users=users,
        seed=seed,
        out=out,
        as_json=as_json,
        log=log_for(log_decisions, out),
    )
