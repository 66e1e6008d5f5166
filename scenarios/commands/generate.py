"""The command ``hpcrowd generate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hpcrowd.scenarios.commands.options import (
    AsJson,
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
