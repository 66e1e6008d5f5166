"""The command ``hpcrowd report``. It loads what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcrowd.scenarios.commands.options import all_at_hand

report_app = typer.Typer()


@report_app.command()
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Folders of results, folders that hold several of them, or recorded traces.",
            callback=all_at_hand,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The HTML file; it may replace a report only.")
    ] = Path("report.html"),
    title: Annotated[
        str, typer.Option(help="Heading; the names of the runs unless given.", show_default=False)
    ] = "",
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Also write every picture as PNG and SVG, its data as CSV."
        ),
    ] = None,
) -> None:
    """Write one HTML file on a run, or on several side by side, for the screen and for paper.

    It holds its pictures, loads nothing and has no scripts. The same runs give the same bytes.

    \b
    hpcrowd report runs/fluid
    hpcrowd report runs/rigid runs/fluid -o both.html --title "Do users notice?"
    hpcrowd report log.swf.gz -o log.html --figures log-figures
    """
    from hpcrowd.scenarios.commands.report import report_command

    report_command(runs, out=out, title=title, figures=figures)
