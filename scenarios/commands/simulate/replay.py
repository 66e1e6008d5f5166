"""The command ``hpcrowd replay``: a trace with users who react, and a Gantt picture of the run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.commands.options import AsJson, LogDecisions, RunFolder, TracePath
from hpcrowd.scenarios.commands.setting_options import takes_settings
from hpcrowd.scenarios.commands.summary import carry_out
from hpcrowd.scenarios.kinds.fields import parse_moment
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hpcrowd.scenarios.terminal import say

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.traces.trace import Trace


@takes_settings(ReplayConfig)
def command(
    trace: TracePath,
    settings: dict[str, Any],
    out: RunFolder = None,
    gantt: Annotated[
        Path | None, typer.Option(help="File for a Gantt picture: .png, .svg or .pdf.")
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            metavar="FROM..TO",
            help="Time window of the Gantt picture; the busiest day unless given.",
        ),
    ] = None,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Replay a trace with users who react to the scheduler."""
    from hpcrowd.environment.clock import Clock

    config = ReplayConfig.configure(**settings)
    picture = GanttOption.of(gantt, window)

    def read() -> Trace:
        found = config.read(trace)
        if picture is not None:
            picture.check(Clock.of(found.header))
        return found

    carry_out(
        config,
        read,
        out=out,
        log_decisions=log_decisions,
        as_json=as_json,
        draw=None if picture is None else picture.draw,
    )


#: Separates the two moments of a window.
BETWEEN = ".."

#: A moment: s of the run, or a date; None for the beginning or end of the run.
Moment = int | datetime | None


@dataclass(frozen=True)
class GanttOption:
    """The picture that the options request.

    Attributes
    ----------
    path
        The file.
    window
        Its moments; None for the busiest day.
    text
        The window as it was given.
    """

    path: Path
    window: tuple[Moment, Moment] | None
    text: str = ""

    @classmethod
    def of(cls, path: Path | None, window: str | None) -> GanttOption | None:
        """Return the picture that the options request; None for no picture.

        Raises
        ------
        HpcrowdError
            When the file cannot be written or has no known suffix, or the window cannot be read.
        """
        if path is None:
            if window is not None:
                raise QuantityError(
                    f"window {window!r}: is for the picture of --gantt; give --gantt FILE"
                )
            return None
        from hpcrowd.analysis.pictures.plots import check_picture

        check_picture(path, "--gantt")
        return cls(path, None if window is None else parse_window(window), window or "")

    def check(self, clock: Clock) -> None:
        """Check, before the run, that the window can be found in a run with this clock."""
        self.seconds(clock)

    def seconds(self, clock: Clock) -> tuple[int | None, int | None] | None:
        """Return the window in s of the run; None for the busiest day.

        Raises
        ------
        QuantityError
            When it is empty, or has a date and the trace does not give the date of its origin.
        """
        if self.window is None:
            return None
        from hpcrowd.environment.clock import second_of

        begin, end = (
            None if moment is None else second_of(moment, clock) for moment in self.window
        )
        if begin is not None and end is not None and begin >= end:
            raise QuantityError(f"window {self.text!r}: is empty; TO has to come after FROM")
        return begin, end

    def draw(self, run: Run) -> None:
        """Draw the picture, and say where it is and what it shows."""
        from hpcrowd.analysis.curves import span_of
        from hpcrowd.analysis.pictures.gantt import find_window, gantt, window_name
        from hpcrowd.analysis.pictures.plots import write_picture

        asked = self.seconds(run.clock)
        window = find_window(run, asked)
        write_picture(gantt(run, window), self.path)
        span = span_of(run.jobs)
        whole = span is None or (window[0] <= span[0] and window[1] >= span[1])
        why = ", the whole run" if whole else "" if asked else ", the busiest day"
        say(f"The Gantt picture is {self.path} ({window_name(run, *window)}{why})")


def parse_window(text: str) -> tuple[Moment, Moment]:
    """Return the two moments of a window such as ``1996-10-14..1996-10-15 12:00`` or ``2d..``.

    Raises
    ------
    QuantityError
        When there are not two, or one of them cannot be read.
    """
    parts = text.split(BETWEEN)
    if len(parts) != 2:
        raise QuantityError(
            f"window {text!r}: has to be FROM..TO, such as 2d..3d or '1996-10-14..1996-10-15 12:00'"
        )
    begin, end = (_moment(part) for part in parts)
    return begin, end


def _moment(part: str) -> Moment:
    word = part.strip()
    if not word:
        return None
    return int(word) if word.isdecimal() else parse_moment(word)
