"""The command ``hpcrowd replay``: one run, a summary for people or for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hpcrowd.environment.traces.formats.registry import read_trace
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
