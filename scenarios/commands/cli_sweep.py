"""The command ``hpcrowd sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcrowd.scenarios.commands.options import AsJson

sweep_app = typer.Typer(add_completion=False)


@sweep_app.command()
def sweep(
    path: Annotated[
        Path, typer.Argument(metavar="STUDY", help="TOML file with a scenario and [axes].")
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for runs, tables and pictures.")] = None,
    executor: Annotated[
        str,
        typer.Option(help="Who does the runs: processes, dask, or inline (this process alone)."),
    ] = "processes",
    workers: Annotated[
        int | None, typer.Option(min=1, help="How many; as many as there are cores unless given.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="Scheduler of a Dask cluster that is there: tcp://HOST:PORT."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on in a folder; what is done is not done again.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Print the completed study as TOML, and end.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Tell how far the sweep in --out is, and end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a scenario with many settings and seeds, in parallel; compare what comes out.

    \b
    hpcrowd sweep study.toml --out sweeps/speed
    hpcrowd sweep study.toml --out sweeps/speed --resume
    hpcrowd sweep study.toml --out sweeps/speed --executor dask --address tcp://node1:8786
    """
    from hpcrowd.scenarios.commands.sweep import sweep_command

    sweep_command(
        path,
        out=out,
        executor=executor,
        workers=workers,
        address=address,
        resume=resume,
        show=show,
        status=status,
        as_json=as_json,
    )
