"""The command ``hpcrowd replay``: a trace with users who react."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.registry import imported
from hpcrowd.scenarios.commands.options import (
    AsJson,
    LogDecisions,
    RunFolder,
    TracePath,
    carry_out,
    takes_settings,
)
from hpcrowd.scenarios.kinds.replay import ReplayConfig

if TYPE_CHECKING:
    from hpcrowd.environment.traces.trace import Trace

#: What draws the picture of ``--gantt``.
GANTT = "hpcrowd.scenarios.commands.look.gantt:GanttOption"


#: What replays with several seeds.
RANGES = "hpcrowd.scenarios.commands.seeds:tell_ranges"

#: What fits ``--scheduler fitted``.
FITTED = "hpcrowd.scenarios.forecasts.fitting:with_found"


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
    seeds: Annotated[
        int,
        typer.Option(min=1, help="Seeds to replay with, from --seed on; ranges are printed."),
    ] = 1,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Replay a trace with users who react to the scheduler."""
    from hpcrowd.environment.clock import Clock

    config = ReplayConfig.configure(**settings)
    if gantt is None and window is not None:
        raise QuantityError(f"window {window!r}: is for the picture of --gantt; give --gantt FILE")
    if seeds > 1 and (out, gantt, log_decisions) != (None, None, False):
        raise QuantityError(
            f"seeds {seeds}: --out, --gantt and --log-decisions are for one run; `hpcrowd sweep` "
            "keeps the results of many"
        )
    picture = None if gantt is None else imported(GANTT).of(gantt, window)

    def read() -> Trace:
        found = config.read(trace)
        if picture is not None:
            picture.check(Clock.of(found.header))
        return found

    if str(config.scheduler).partition(":")[0] == "fitted":
        begin = read()
        config, read = imported(FITTED)(config, begin), lambda: begin
    if seeds > 1:
        imported(RANGES)(config, read, seeds, as_json=as_json)
        return
    carry_out(
        config,
        read,
        out=out,
        log_decisions=log_decisions,
        as_json=as_json,
        draw=None if picture is None else picture.draw,
    )
