"""The command ``hpcrowd sessions``: sessions, batches and graphs of a trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcrowd.agents.work.graph import user_graph
from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.sessions import SessionDefinition
from hpcrowd.analysis.metrics import session_stats, words_of
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import number_of
from hpcrowd.environment.output.guard import WRITER
from hpcrowd.environment.output.whole import whole_file
from hpcrowd.environment.quantities import format_duration, plural
from hpcrowd.environment.registry import imported
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.scenarios.commands.options import AsJson, Reading, TracePath, reads_traces, sentence
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hpcrowd.scenarios.kinds.trace_settings import reading_options
from hpcrowd.scenarios.outputs import STANDARD, write_whole
from hpcrowd.scenarios.terminal import plain_table, print_json, standard_output

#: What draws the graph of a user, and what writes it for Graphviz.
DRAW = "hpcrowd.analysis.pictures.session_graph:draw_graph"
DOT = "hpcrowd.analysis.pictures.session_graph:generate_dot"

#: The setting of a replay that the option is made from.
SESSIONS = ReplayConfig.model_fields["sessions"]


@reads_traces
def command(
    trace: TracePath,
    how: Reading,
    sessions: Annotated[
        str, typer.Option(help=sentence(str(SESSIONS.description)))
    ] = SESSIONS.default,
    user: Annotated[str | None, typer.Option(help="Only this user, by name or number.")] = None,
    dot: Annotated[
        Path | None,
        typer.Option(help="Write the graph of --user for Graphviz; - is standard output."),
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Draw the graph of --user.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the sessions, batches and dependency graphs of a trace."""
    if user is None and (dot or png):
        raise QuantityError("--dot and --png draw the graph of one user; give --user")
    if as_json and str(dot) == "-":
        raise QuantityError("--json and --dot - both print to standard output; give --dot a file")
    chosen = SessionDefinition.parse(sessions)
    log = read_trace(trace, options=reading_options(**how))
    converted = jobs_from_trace(log, runnable=False)
    jobs = converted.jobs
    work = Work.recorded(log, converted, chosen)
    number = None if user is None else number_of(jobs.names, "user", user)
    stats = session_stats(jobs, work, number)
    if number is not None and (dot or png):
        graph = user_graph(jobs, work.sessions, work.dependencies, number)
        if dot is not None and str(dot) == STANDARD:
            sys.stdout.write(imported(DOT)(graph))
        elif dot is not None:
            write_whole(dot, f"// hpcrowd sessions\n{imported(DOT)(graph)}")
        if png is not None:
            picture = imported(DRAW)(graph, Clock.of(log.header))
            with whole_file(png) as temporary:
                picture.savefig(temporary, dpi=150, format="png", metadata={"Software": WRITER})
    if as_json:
        wire = {"trace": trace.name, "user": number, **stats}
        print_json(
            wire | {"repaired": dict(converted.repaired), "dropped": dict(converted.dropped)}
        )
    elif str(dot) != "-":
        name = None if number is None else jobs.who(number)
        _show(trace.name, name, stats, converted.dropped)


def _show(name: str, user: str | None, stats: dict[str, Any], dropped: dict[str, int]) -> None:
    console = standard_output()
    whose = "" if user is None else f", user {user}"
    console.print(f"{name}{whose}, sessions by {stats['sessions_definition']}")
    for reason, count in dropped.items():
        console.print(f"  {plural(count, 'job')} left out: {reason}")
    counts = plain_table("", "", words=2)
    counts.show_header = False
    spreads = plain_table("distribution", "p10", "p50", "p90", "max")
    for key, value in stats.items():
        if isinstance(value, dict):
            shown = (_number(key, value[p]) for p in ("p10", "p50", "p90", "max"))
            spreads.add_row(words_of(key), *shown)
        elif isinstance(value, int):
            counts.add_row(words_of(key), f"{value:,}")
    console.print(counts)
    console.print()
    console.print(spreads)


def _number(key: str, value: float) -> str:
    return format_duration(value) if key.endswith("_s") else f"{value:,.0f}"
