"""The command ``hpcrowd gantt``, and the picture that other commands draw of their run.

It shows who used the machine when, in a run or a recorded trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hpcrowd.analysis.curves import span_of
from hpcrowd.analysis.pictures.gantt import find_window, fitting_style, gantt, window_name
from hpcrowd.analysis.pictures.plots import check_picture, write_picture
from hpcrowd.analysis.results import read_run
from hpcrowd.environment.clock import parse_window, second_of
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.commands.options import Reading, TraceOrRun, reads_traces
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.terminal import progress_bar, reading, say

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.clock import Clock


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
    picture = GanttOption.of(out, window, "--out")
    with progress_bar() as progress:
        options = reading_options(**how)
        (run,) = (read_run(path, options) for path in reading([trace], progress))
        progress("drawing", 1, 1)
        drawn = picture.drawn(run, style, by=by, title=title)
    say(drawn)


#: Separates the two moments of a window.
BETWEEN = ".."

#: A moment: s of the run, or a date; None for the beginning or end of the run.
Moment = int | datetime | None


@dataclass(frozen=True)
class GanttOption:
    """The picture that the options request."""

    path: Path  #: the file
    window: tuple[Moment, Moment] | None  #: its moments; None for the busiest day
    text: str = ""  #: the window as it was given

    @classmethod
    def of(cls, path: Path, window: str | None, what: str = "--gantt") -> GanttOption:
        """Return the picture that the options request; ``what`` names the option of its file."""
        check_picture(path, what)
        return cls(path, None if window is None else parse_window(window), window or "")

    def check(self, clock: Clock) -> None:
        """Check, before the run, that the window can be found in a run with this clock."""
        self.seconds(clock)

    def seconds(self, clock: Clock) -> tuple[int | None, int | None] | None:
        """Return the window in s of the run, which must not be empty; None for the busiest day."""
        if self.window is None:
            return None
        begin, end = (
            None if moment is None else second_of(moment, clock) for moment in self.window
        )
        if begin is not None and end is not None and begin >= end:
            raise QuantityError(f"window {self.text!r}: is empty; TO has to come after FROM")
        return begin, end

    def draw(self, run: Run) -> None:
        """Draw the picture, and say where it is and what it shows."""
        say(self.drawn(run))

    def drawn(self, run: Run, style: str = "", **how: Any) -> str:
        """Draw the picture, and return where it is and what it shows, with its style if given.

        ``how`` is as for :func:`hpcrowd.analysis.pictures.gantt.gantt`.
        """
        asked = self.seconds(run.clock)
        window = find_window(run, asked)
        chosen = fitting_style(run, *window) if style in ("", "auto") else style
        write_picture(gantt(run, window, style=chosen, **how), self.path)
        span = span_of(run.jobs)
        whole = span is None or (window[0] <= span[0] and window[1] >= span[1])
        why = ", the whole run" if whole else "" if asked else ", the busiest day"
        shown = f"{chosen}, " if style else ""
        return f"The Gantt picture is {self.path} ({shown}{window_name(run, *window)}{why})"
