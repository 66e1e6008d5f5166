"""The command ``hpcrowd gantt``: who used the machine when, in a run or a recorded trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hpcrowd.analysis.curves import span_of
from hpcrowd.analysis.pictures.gantt import find_window, fitting_style, gantt, window_name
from hpcrowd.analysis.pictures.plots import check_picture, write_picture
from hpcrowd.analysis.results import read_run
from hpcrowd.scenarios.commands.options import TraceOrRun
from hpcrowd.scenarios.commands.setting_options import Reading, reads_traces
from hpcrowd.scenarios.commands.simulate.replay import GanttOption, parse_window
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.terminal import progress_bar, reading, say


@reads_traces
def command(
    trace: TraceOrRun,
    how: Reading,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File for the picture: .png, .svg or .pdf.")
    ] = Path("gantt.png"),
    window: Annotated[
        str | None,
        typer.Option(
            metavar="FROM..TO",
            help="Time window; the busiest day unless given, `..` for the whole run.",
        ),
    ] = None,
    style: Annotated[
        Literal["auto", "jobs", "density"],
        typer.Option(
            help="Each job, or who held which share of the machine; auto shows jobs if they fit."
        ),
    ] = "auto",
    by: Annotated[
        Literal["user", "queue", "cluster", "state"],
        typer.Option(help="What colours, or the rows of a density, stand for."),
    ] = "user",
    title: Annotated[
        str,
        typer.Option(help="Title; the trace and the run unless given.", show_default=False),
    ] = "",
) -> None:
    """Draw who used the machine when, in a run or a recorded trace.

    A window with more jobs than a picture can show, such as a year, is drawn as density: the share
    of the machine that each of the busiest users held over time.

    \b
    hpcrowd gantt runs/fluid
    hpcrowd gantt log.swf.gz --window .. -o year.png
    hpcrowd gantt runs/fluid --window "1996-10-14..1996-10-21" --style density --by queue
    """
    check_picture(out, "--out")
    asked = None if window is None else parse_window(window)
    with progress_bar() as progress:
        options = reading_options(**how)
        (run,) = (read_run(path, options) for path in reading([trace], progress))
        seconds = GanttOption(out, asked, window or "").seconds(run.clock)
        found = find_window(run, seconds)
        progress("drawing", 1, 1)
        chosen = fitting_style(run, *found) if style == "auto" else style
        write_picture(gantt(run, found, by=by, title=title, style=chosen), out)
    span = span_of(run.jobs)
    whole = span is None or (found[0] <= span[0] and found[1] >= span[1])
    why = ", the whole run" if whole else "" if seconds else ", the busiest day"
    shown = "density" if chosen == "density" else "jobs"
    say(f"The Gantt picture is {out} ({shown}, {window_name(run, *found)}{why})")
