"""The command ``hpcrowd populate``: users made from a workload model work on a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from hpcrowd.analysis.models.registry import model_of
from hpcrowd.analysis.results import check_replaceable
from hpcrowd.scenarios.commands.options import (
    AsJson,
    LogDecisions,
    ModelSource,
    ResultsFolder,
    Seed,
    log_for,
)
from hpcrowd.scenarios.commands.summary import keep_run, tell_run
from hpcrowd.scenarios.kinds.populate import populate
from hpcrowd.scenarios.terminal import say_if_compiling, simulation_progress


def command(
    source: ModelSource,
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
    seed: Seed = 0,
    out: ResultsFolder = None,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Let users made from a model work on a cluster: each waits for a batch before the next.

    \b
    hpcrowd populate M.json --days 28 --nodes 2x
    """
    if out is not None:
        check_replaceable(out)
    log = log_for(log_decisions, out)
    model = model_of(source, machine)
    say_if_compiling()
    with simulation_progress(1) as progress:
        run = populate(
            model,
            days=days,
            load=load,
            machine=machine,
            nodes=nodes,
            scheduler=scheduler,
            hears=not oblivious,
            seed=seed,
            progress=progress,
            log=log,
        )
    keep_run(run, out)
    tell_run(run, as_json=as_json)
