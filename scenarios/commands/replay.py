"""The command ``hpcrowd replay``: one run, a summary for people or for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.commands.options import (
    AsJson,
    LogDecisions,
    TracePath,
)
from hpcrowd.scenarios.commands.summary import keep_run, tell_run
from hpcrowd.scenarios.kinds.population_files import PopulationConfig
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hpcrowd.scenarios.terminal import say_if_compiling, simulation_progress

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.scenarios.commands.gantt_option import GanttOption


def replay_command(
    path: Path,
    config: ReplayConfig,
    *,
    out: Path | None,
    as_json: bool,
    picture: GanttOption | None = None,
    log: DecisionLog | None = None,
) -> None:
    """Replay the trace at ``path``; print a summary, write results to ``out`` if given."""
    from hpcrowd.analysis.results import check_replaceable

    if out is not None:
        check_replaceable(out)
    trace = read_trace(path)
    if picture is not None:
        from hpcrowd.environment.clock import Clock

        picture.check(Clock.of(trace.header))
    from hpcrowd.scenarios.kinds.replay import replay

    population = config.users if isinstance(config.users, PopulationConfig) else None
    say_if_compiling(1 + len(population.clusters) if population else 1)
    # The same schedule as with users that are called one by one, at a fraction of the time.
    compiled = config.users == "think-time"
    with simulation_progress(len(trace)) as progress:
        run = replay(trace, config, compiled=compiled, progress=progress, log=log)
    keep_run(run, out)
    if picture is not None:
        picture.draw(run)
    tell_run(run, as_json=as_json)


def _field(name: str) -> Any:
    """Return the command-line option of a field of the configuration."""
    return typer.Option(f"--{name}", help=f"{ReplayConfig.model_fields[name].description}.")


def _default(name: str) -> Any:
    return ReplayConfig.model_fields[name].default


def command(
    trace: TracePath,
    users: Annotated[str, _field("users")] = _default("users"),
    sessions: Annotated[str, _field("sessions")] = _default("sessions"),
    scheduler: Annotated[str, _field("scheduler")] = _default("scheduler"),
    estimates: Annotated[str, _field("estimates")] = _default("estimates"),
    nodes: Annotated[str, _field("nodes")] = _default("nodes"),
    speed: Annotated[str, _field("speed")] = _default("speed"),
    requested: Annotated[str, _field("requested")] = _default("requested"),
    processors: Annotated[str, _field("processors")] = _default("processors"),
    overrun: Annotated[str, _field("overrun")] = _default("overrun"),
    platform: Annotated[str | None, _field("platform")] = None,
    seed: Annotated[int, _field("seed")] = _default("seed"),
    strict: Annotated[bool, _field("strict")] = _default("strict"),
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables, trace, pictures and provenance.")
    ] = None,
    gantt: Annotated[
        Path | None, typer.Option(help="File for a Gantt picture: .png, .svg or .pdf.")
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            metavar="FROM..TO", help="What the Gantt picture shows; the busiest day unless given."
        ),
    ] = None,
    log_decisions: LogDecisions = False,
    as_json: AsJson = False,
) -> None:
    """Replay a trace once, with users who react to what the cluster does to them."""
    from hpcrowd.scenarios.commands.gantt_option import GanttOption
    from hpcrowd.scenarios.commands.options import log_for
    from hpcrowd.scenarios.kinds.replay import configure

    config = configure(
        users=users,
        sessions=sessions,
        scheduler=scheduler,
        estimates=estimates,
        nodes=nodes,
        speed=speed,
        requested=requested,
        processors=processors,
        overrun=overrun,
        platform=platform,
        seed=seed,
        strict=strict,
    )
    picture = GanttOption.of(gantt, window)
    log = log_for(log_decisions, out)
    replay_command(trace, config, out=out, as_json=as_json, picture=picture, log=log)
