"""The command ``hpcrowd window``: a part of a trace, by time, user, queue, state and size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hpcrowd.environment.clock import Clock, moment, parse_moment
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.environment.traces.window import STATES, Windowed, window
from hpcrowd.scenarios.commands.options import AsJson, Reading, TracePath, reads_traces
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.outputs import check_writable
from hpcrowd.scenarios.terminal import print_json, standard_output
from hpcrowd.scenarios.trace_files import Kept, keep_part, show_reading

Out = Annotated[
    Path,
    typer.Option(
        "--out", "-o", metavar="FILE", help="File for the new trace; its name decides the format."
    ),
]

Begin = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="WHEN",
        help="Jobs submitted from then on: a date, '2004-01-01 12:00', or 30d since the origin.",
    ),
]

OnlyGroups = Annotated[
    str | None,
    typer.Option(metavar="GROUPS", help="Only these groups (accounts), by name or number."),
]

OnlyStates = Annotated[
    str | None,
    typer.Option(
        metavar="STATES",
        help=f"Only jobs in these states: {', '.join(STATES)}, or those of the log itself, "
        "such as TIMEOUT.",
    ),
]

OnlyProcessors = Annotated[
    str | None, typer.Option(metavar="SIZES", help="Only jobs of these sizes: 64, 1-64, or 128-.")
]


@reads_traces
def command(
    trace: TracePath,
    how: Reading,
    out: Out,
    begin: Begin = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="WHEN", help="Jobs submitted before then.")
    ] = None,
    only_users: Annotated[
        str | None,
        typer.Option(metavar="USERS", help="Only these users, by name or number: ada,17,20-30."),
    ] = None,
    only_groups: OnlyGroups = None,
    only_queues: Annotated[
        str | None, typer.Option(metavar="QUEUES", help="Only these queues, by name or number.")
    ] = None,
    only_states: OnlyStates = None,
    only_processors: OnlyProcessors = None,
    as_json: AsJson = False,
) -> None:
    """Extract the jobs submitted in a time window, of some users, groups, queues, states or sizes.

    Dates are local times of the log. Submit times of the new trace count from the beginning of the
    window; its header says so. In Python: hc.window.

    \b
    hpcrowd window log.swf.gz --from 2004-01-01 --to 2004-02-01 -o january.swf.gz
    hpcrowd window log.swf.gz --from 30d --to 60d --only-users 3,17,20-30 -o part.swf.gz
    hpcrowd window jobs.txt --only-users ada,bob --only-queues gpu --only-processors 64- -o big.csv
    """
    only: dict[str, Any] = {
        "only_users": only_users, "only_groups": only_groups, "only_queues": only_queues,
        "only_states": only_states, "only_processors": only_processors,
    }  # fmt: skip
    if all(each is None for each in (begin, end, *only.values())):
        raise QuantityError(
            "window: no part is given; choose one with --from, --to, "
            + " or ".join(f"--{name.replace('_', '-')}" for name in only)
        )
    edges = [None if each is None else parse_moment(each) for each in (begin, end)]
    check_writable(out, "-o")
    log = read_trace(trace, options=reading_options(**how))
    part, windowed = window(log, *edges, **only)
    kept = keep_part(part, out)
    if as_json:
        wire = {
            "trace": trace.name,
            "out": str(out),
            "jobs": len(log),
            "kept": len(part),
            "users": _users(part),
            "begin_s": windowed.begin,
            "end_s": windowed.end,
            "moved_s": windowed.moved,
            "left_out": dict(windowed.left_out),
            "references_cut": windowed.cut,
        }
        print_json(wire)
    else:
        _show(trace.name, log, out, part, windowed, kept)


def _show(name: str, log: Trace, out: Path, part: Trace, windowed: Windowed, kept: Kept) -> None:
    """Print what was kept of a log, and what was left out."""
    console = standard_output()
    console.print(f"{name}: {_count(log)}")
    show_reading(console, log)
    for reason, count in windowed.left_out.items():
        console.print(f"  {plural(count, 'job')} left out: {reason}")
    if windowed.cut:
        console.print(f"  {plural(windowed.cut, 'reference')} to jobs left out set to -1")
    clock = Clock.of(part.header)
    console.print(f"{out}: {_count(part)}, origin {moment(clock, 0)}", soft_wrap=True)
    if clock.note:
        console.print(f"  {clock.note}", soft_wrap=True)
    for line in kept.lines():
        console.print(line, soft_wrap=True)


def _count(trace: Trace) -> str:
    """Return the numbers of jobs and users in words."""
    return f"{plural(len(trace), 'job')}, {plural(_users(trace), 'user')}"


def _users(trace: Trace) -> int:
    """Return the number of users."""
    user = trace["user"]
    return len(np.unique(user[user >= 0]))
