"""The commands about workload models. Each loads what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hpcrowd.scenarios.commands.options import AsJson, TraceOrRun

models_app = typer.Typer()

Source = Annotated[
    str,
    typer.Argument(metavar="M.json|NAME", help="File of a fitted model, or a published model."),
]

Jobs = Annotated[
    Literal["completed", "all"],
    typer.Option("--jobs", help="Jobs of the trace that count: completed (status 1), or all."),
]


@models_app.command()
def models(as_json: AsJson = False) -> None:
    """List the workload models, and the ways in which jobs may arrive."""
    from hpcrowd.scenarios.commands.models import list_command

    list_command(as_json=as_json)


@models_app.command()
def fit(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Name, with options such as mugm:groups=2.")
    ],
    trace: TraceOrRun,
    out: Annotated[Path, typer.Option("--out", "-o", help="File of the model, .json.")],
    arrivals: Annotated[
        str | None, typer.Option(help="How jobs arrive; by default what goes with the model.")
    ] = None,
    cycle: Annotated[
        Literal["weekly", "daily"] | None,
        typer.Option(help="Impose the trace's rhythm of the week, or of the mean day."),
    ] = None,
    which: Jobs = "completed",
    as_json: AsJson = False,
) -> None:
    """Fit a workload model to a trace.

    \b
    hpcrowd models
    hpcrowd fit comprehensive log.swf.gz -o M.json
    hpcrowd generate M.json --load 0.7 -o synthetic.swf.gz
    """
    from hpcrowd.scenarios.commands.models import fit_command

    fit_command(model, trace, out, arrivals=arrivals, cycle=cycle, which=which, as_json=as_json)


@models_app.command()
def generate(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="Trace to write, .swf or .swf.gz.")],
    jobs: Annotated[
        int | None, typer.Option(help="How many jobs; by default as many as the trace has.")
    ] = None,
    days: Annotated[float | None, typer.Option(help="How many days, instead of jobs.")] = None,
    load: Annotated[
        float | None, typer.Option(help="Offered load, such as 0.7; by default the model's.")
    ] = None,
    machine: Annotated[
        int | None, typer.Option(help="Processors of the machine; by default the model's.")
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(help="Run time and processors: -1 to 1 times the largest correlation."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Generate a workload from a model, as a trace.

    \b
    hpcrowd generate M.json --days 30 --load 0.7 -o X.swf.gz
    hpcrowd generate lublin --machine 256 --jobs 10000 -o X.swf.gz
    """
    from hpcrowd.scenarios.commands.models import generate_command

    generate_command(
        source,
        out,
        jobs=jobs,
        days=days,
        load=load,
        machine=machine,
        correlation=correlation,
        seed=seed,
        as_json=as_json,
    )


@models_app.command()
def judge(
    source: Source,
    trace: TraceOrRun,
    replications: Annotated[int, typer.Option(help="Workloads to generate.")] = 20,
    which: Jobs = "completed",
    processes: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first workload.")] = 0,
    html: Annotated[Path | None, typer.Option(help="File for a report with pictures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Hold a model against a trace: features of generated workloads beside the trace's."""
    from hpcrowd.scenarios.commands.judge import judge_command

    judge_command(
        source,
        trace,
        replications=replications,
        which=which,
        processes=processes,
        seed=seed,
        html=html,
        as_json=as_json,
    )
