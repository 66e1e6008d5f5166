"""The command ``hpcrowd explain``. It loads what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcrowd.scenarios.commands.options import AsJson

explain_app = typer.Typer()


@explain_app.command()
def explain(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Folder of results, written with --log-decisions."),
    ],
    user: Annotated[int, typer.Option(help="Number of the user.")],
    begin: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="MOMENT", help="First moment: 2d, 36h, or 1996-10-14 16:00."
        ),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="MOMENT", help="End; what comes then is left out.")
    ] = None,
    jobs: Annotated[
        bool, typer.Option("--jobs", help="Tell what became of the jobs of each submission.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell what a user of a run did, when and why.

    \b
    hpcrowd replay log.swf.gz --users fluid --log-decisions --out runs/fluid
    hpcrowd explain runs/fluid --user 17 --from "1996-10-14 08:00" --to 1996-10-15
    """
    from hpcrowd.scenarios.commands.explain import explain_command

    explain_command(run, user, begin=begin, end=end, jobs=jobs, as_json=as_json)
