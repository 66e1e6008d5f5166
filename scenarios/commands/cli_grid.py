"""The command about grids. It loads what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcrowd.scenarios.commands.options import AsJson, LogDecisions

grid_app = typer.Typer()


@grid_app.command()
def grid(
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
    from hpcrowd.scenarios.commands.explain import log_for
    from hpcrowd.scenarios.commands.grid import grid_command

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
