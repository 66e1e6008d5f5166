"""Run a published study again and compare.

The commands ``hpcrowd reproduce STUDY``. Each loads what it needs when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcrowd.scenarios.commands.options import AsJson

#: Exit code of a study that did not reach a published figure.
NOT_REACHED = 1

Traces = Annotated[
    Path, typer.Option("--traces", help="Folder with the traces of the Parallel Workloads Archive.")
]

reproduce = typer.Typer(help="Run a published study again and compare.", no_args_is_help=True)


@reproduce.callback()
def _reproduce() -> None:
    """Run a published study again and compare."""


@reproduce.command()
def madon2024(
    traces: Traces,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and pictures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Madon et al. 2024: Tables 1 and 2, Fig. 5c and the pictures, on KTH-SP2 (and SDSC-SP2)."""
    from hpcrowd.scenarios.studies.madon2024.run import run_madon2024

    if not run_madon2024(traces, out=out, as_json=as_json):
        raise typer.Exit(NOT_REACHED)


@reproduce.command()
def zakay2015(
    traces: Traces,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Seeds of each simulation; by default 10, 5 for large logs."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and pictures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Zakay and Feitelson 2015: Table I, Figures 5 to 10 and the text's statements."""
    from hpcrowd.scenarios.studies.zakay2015.run import run_zakay2015

    if not run_zakay2015(traces, seeds=seeds, out=out, as_json=as_json):
        raise typer.Exit(NOT_REACHED)


@reproduce.command()
def song2005(
    traces: Traces,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds of each fit; by default 8.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and pictures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Song et al. 2005: groups of users, Tables II to V, Figures 8 to 11, on KTH and LANL-CM5."""
    from hpcrowd.scenarios.studies.song2005.run import run_song2005

    if not run_song2005(traces, seeds=seeds, out=out, as_json=as_json):
        raise typer.Exit(NOT_REACHED)


@reproduce.command(name="minh2012-features")
def minh2012_features(
    traces: Traces,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and pictures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Minh 2012, chapter 3: features of workloads, Tables 3.2 to 3.20 and the text."""
    from hpcrowd.scenarios.studies.minh2012_features.run import run_minh2012_features

    if not run_minh2012_features(traces, out=out, as_json=as_json):
        raise typer.Exit(NOT_REACHED)


@reproduce.command(name="minh2012-models")
def minh2012_models(
    traces: Traces,
    seeds: Annotated[int, typer.Option(min=2, help="Workloads generated from each model.")] = 10,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and pictures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Minh 2012, chapters 4 and 5: models of arrivals and jobs, against traces and schedulers."""
    from hpcrowd.scenarios.studies.minh2012_models.run import run_minh2012_models

    if not run_minh2012_models(traces, seeds=seeds, out=out, as_json=as_json):
        raise typer.Exit(NOT_REACHED)


@reproduce.command(name="minh2012-arrivals")
def minh2012_arrivals(
    traces: Annotated[
        Path | None,
        typer.Option(
            "--traces", help="Folder with traces to fit arrivals to; stored ones if none."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer workloads of as many jobs: some minutes.")
    ] = False,
    log: Annotated[str, typer.Option(help="Log that arrivals are fitted to.")] = "Thunder",
    replications: Annotated[
        int | None, typer.Option(help="Workloads of each pattern on a cluster; 50, quick 10.")
    ] = None,
    grid_replications: Annotated[
        int | None, typer.Option(help="Sets of workloads on the grid; 25, quick 6.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Jobs of a workload.")] = 63_000,
    loads: Annotated[
        str, typer.Option(metavar="LOAD[,LOAD...]", help="System loads of the cluster.")
    ] = "0.5,0.6,0.7,0.8,0.85,0.9,0.95",
    grid_loads: Annotated[
        str, typer.Option(metavar="LOAD[,LOAD...]", help="Grid loads.")
    ] = "0.2,0.4,0.6,0.8,1.0",
    local_load: Annotated[
        float, typer.Option(help="Load of each cluster of the grid by local jobs.")
    ] = 0.5,
    widest: Annotated[
        int | None, typer.Option(help="Processors of the widest job on a cluster; all 64.")
    ] = None,
    local_widest: Annotated[
        float, typer.Option(help="Widest local job of the grid, a share of its cluster.")
    ] = 0.25,
    processes: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and pictures; a run that was ended goes on from it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Minh 2012, chapter 6: what arrivals do to a cluster and to the grid DAS-3."""
    from hpcrowd.scenarios.studies.minh2012_arrivals.plan import plan_of
    from hpcrowd.scenarios.studies.minh2012_arrivals.run import run_minh2012_arrivals
    from hpcrowd.scenarios.studies.minh2012_correlation.plan import parse_loads

    plan = plan_of(
        quick,
        cluster_replications=replications,
        grid_replications=grid_replications,
        jobs=jobs,
        loads=parse_loads(loads),
        grid_loads=parse_loads(grid_loads),
        local_load=local_load,
        widest=widest,
        local_widest=local_widest,
        seed=seed,
    )
    if not run_minh2012_arrivals(
        traces, plan=plan, log=log, processes=processes, out=out, as_json=as_json
    ):
        raise typer.Exit(NOT_REACHED)


@reproduce.command(name="minh2012-correlation")
def minh2012_correlation(
    traces: Traces,
    replications: Annotated[
        int, typer.Option(help="Workloads at each degree of correlation.")
    ] = 20,
    jobs: Annotated[int, typer.Option(help="Jobs of a workload.")] = 70_000,
    loads: Annotated[
        str, typer.Option(metavar="LOAD[,LOAD...]", help="System loads, 1 is all of the machine.")
    ] = "0.7,0.8,0.9",
    processes: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and pictures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Minh 2012, chapter 7: what correlation and locality do to schedulers, on HPC2N and others."""
    from hpcrowd.scenarios.studies.minh2012_correlation.plan import Plan, parse_loads
    from hpcrowd.scenarios.studies.minh2012_correlation.run import run_minh2012_correlation

    plan = Plan(replications=replications, jobs=jobs, seed=seed, loads=parse_loads(loads))
    if not run_minh2012_correlation(
        traces, plan=plan, processes=processes, out=out, as_json=as_json
    ):
        raise typer.Exit(NOT_REACHED)


@reproduce.command(name="minh2012-predictor")
def minh2012_predictor(
    traces: Traces,
    train: Annotated[
        bool,
        typer.Option(
            "--train", help="Train anew; otherwise parameters of an earlier training are taken."
        ),
    ] = False,
    budget: Annotated[str, typer.Option(help="How long to train, each trace.")] = "2m",
    seeds: Annotated[int, typer.Option(min=1, help="Searches that share it; the best counts.")] = 4,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and pictures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Minh 2012, chapter 8: predictors of run times, Tables 8.4 to 8.6, on SDSC-DS and HPC2N."""
    from hpcrowd.environment.quantities import parse_duration
    from hpcrowd.scenarios.studies.minh2012_predictor.run import run_minh2012_predictor

    budget_s = float(parse_duration(budget))
    if not run_minh2012_predictor(
        traces, training=train, budget_s=budget_s, seeds=seeds, out=out, as_json=as_json
    ):
        raise typer.Exit(NOT_REACHED)


command = reproduce
