"""The command ``hpcrowd sessions``: sessions, batches and graphs of a trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.quantities import format_duration, plural
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.scenarios.commands.options import (
    AsJson,
    TracePath,
)
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hpcrowd.scenarios.terminal import print_json, standard_output


def sessions_command(
    path: Path,
    definition: str,
    *,
    user: int | None,
    dot: Path | None,
    png: Path | None,
    as_json: bool,
) -> None:
    """Print what the sessions of a trace are like; write the graph of one user if asked for."""
    if user is None and (dot or png):
        raise QuantityError("--dot and --png draw one user's graph; say whose with --user")
    if as_json and str(dot) == "-":
        raise QuantityError("--json and --dot - both print to standard output; give --dot a file")
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.agents.work.sessions import SessionDefinition
    from hpcrowd.analysis.metrics import session_stats

    chosen = SessionDefinition.parse(definition)
    trace = read_trace(path)
    converted = jobs_from_trace(trace, runnable=False)
    jobs = converted.jobs
    work = Work.recorded(trace, converted, chosen)
    stats = session_stats(jobs, work, user)
    if user is not None and (dot or png):
        from hpcrowd.agents.work.graph import user_graph
        from hpcrowd.analysis.pictures.session_graph import draw_graph, generate_dot
        from hpcrowd.environment.clock import Clock

        graph = user_graph(jobs, work.sessions, work.dependencies, user)
        try:
            if dot is not None and str(dot) == "-":
                sys.stdout.write(generate_dot(graph))
            elif dot is not None:
                dot.write_text(generate_dot(graph))
            if png is not None:
                draw_graph(graph, Clock.of(trace.header)).savefig(png, format="png", dpi=150)
        except OSError as error:
            raise HpcrowdError(
                f"{error.filename}: cannot be written: {error.strerror or error}"
            ) from None
    if as_json:
        wire = {"trace": path.name, "user": user, **stats}
        print_json(
            wire | {"repaired": dict(converted.repaired), "dropped": dict(converted.dropped)}
        )
    elif str(dot) != "-":
        _show(path.name, user, stats, converted.dropped)


def _show(name: str, user: int | None, stats: dict[str, Any], dropped: dict[str, int]) -> None:
    from rich.table import Table

    console = standard_output()
    whose = "" if user is None else f", user {user}"
    console.print(f"{name}{whose}, sessions by {stats['sessions_definition']}", highlight=False)
    for reason, count in dropped.items():
        console.print(f"  {plural(count, 'job')} left out: {reason}", highlight=False)
    counts = Table(box=None, pad_edge=False, show_header=False)
    spreads = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("distribution", "p10", "p50", "p90", "max"):
        spreads.add_column(title, justify="left" if title == "distribution" else "right")
    for key, value in stats.items():
        if isinstance(value, dict):
            spreads.add_row(key, *(_number(key, value[p]) for p in ("p10", "p50", "p90", "max")))
        elif isinstance(value, int):
            counts.add_row(key.replace("_", " "), f"{value:,}")
    console.print(counts)
    console.print()
    console.print(spreads)


def _number(key: str, value: float) -> str:
    return format_duration(value) if key.endswith("_s") else f"{value:,.0f}"


def _field(name: str) -> Any:
    """Return the command-line option of a field of the configuration."""
    return typer.Option(f"--{name}", help=f"{ReplayConfig.model_fields[name].description}.")


def _default(name: str) -> Any:
    return ReplayConfig.model_fields[name].default


def command(
    trace: TracePath,
    definition: Annotated[str, _field("sessions")] = _default("sessions"),
    user: Annotated[int | None, typer.Option(help="Only this user.")] = None,
    dot: Annotated[
        Path | None, typer.Option(help="Write the graph of --user for Graphviz; - is stdout.")
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Draw the graph of --user.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the sessions, batches and dependency graphs of a trace."""

    sessions_command(trace, definition, user=user, dot=dot, png=png, as_json=as_json)
