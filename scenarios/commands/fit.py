"""The command ``hpcrowd fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hpcrowd.scenarios.commands.options import (
    AsJson,
    TraceOrRun,
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
