"""The command ``hpcrowd populate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hpcrowd.scenarios.commands.options import (
    AsJson,
    LogDecisions,
)

Source = Annotated[
    str,
    typer.Argument(metavar="M.json|NAME", help="File of a fitted model, or a published model."),
]

Jobs = Annotated[
    Literal["completed", "all"],
    typer.Option("--jobs", help="Jobs of the trace that count: completed (status 1), or all."),
]


def command(
    source: Source,
    days: Annotated[float, typer.Option(help="Days in which users submit.")] = 28,
    load: Annotated[
        float | None, typer.Option(help="Offered load of the generated workload, such as 0.7.")
    ] = None,
    machine: Annotated[
        int | None, typer.Option(help="Processors the model is meant for; by default its own.")
    ] = None,
    nodes: Annotated[
        str, typer.Option(help="Processors of the simulated machine, or a multiple such as 2x.")
    ] = "1x",
    scheduler: Annotated[str, typer.Option(help="Policy, as for replay.")] = "easy",
    oblivious: Annotated[
        bool, typer.Option("--oblivious", help="Users act as if each job had started at once.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Let users made from a model work on a cluster: each waits for a batch before the next.

    \b
    hpcrowd populate M.json --days 28 --nodes 2x
    """
    from hpcrowd.scenarios.commands.explain import log_for
    from hpcrowd.scenarios.kinds.populate import populate_command

    populate_command(
        source,
        days=days,
        load=load,
        machine=machine,
        nodes=nodes,
        scheduler=scheduler,
        hears=not oblivious,
        seed=seed,
        out=out,
        as_json=as_json,
        log=log_for(log_decisions, out),
    )
