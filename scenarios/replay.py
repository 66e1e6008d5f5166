"""Replay a trace: one configuration, one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from agents.population import add_users
from agents.sessions import SessionDefinition
from agents.work import Work
from analysis.run import Run
from environment.clock import Clock
from environment.quantities import parse_processors
from environment.simulation import Simulation
from environment.trace import Trace, jobs_from_trace
from scenarios.config import ReplayConfig, configure


def replay(
    trace: Trace,
    config: ReplayConfig | None = None,
    *,
    compiled: bool = False,
    progress: Callable[[Simulation], Any] | None = None,
    **choices: Any,
) -> Run:
    """Replay a trace and return the run.

    Parameters
    ----------
    trace
        What was recorded.
    config
        The configuration; or give its fields as ``choices``.
    compiled
        Let the engine follow think times by itself; same schedule, but users are not told.
    progress
        Called now and then with the simulation.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.

    Examples
    --------
    >>> from environment import parse_swf
    >>> trace = parse_swf("1 0 0 60 1 -1 -1 1 60 -1 1 1 -1 -1 -1 -1 -1 -1")
    >>> replay(trace, scheduler="fcfs", nodes="4").metrics["jobs_completed"]
    1
    """
    config = config or configure(**choices)
    began = time.perf_counter()
    converted = jobs_from_trace(trace, config.conversion(), strict=config.strict)
    jobs = converted.jobs
    work = Work.of(jobs, SessionDefinition.parse(config.sessions))
    clock = Clock.of(trace.header)
    model = Simulation(
        jobs,
        parse_processors(config.nodes, trace.processors if "x" in config.nodes else 1),
        config.scheduler,
        overrun=config.overrun,
        clock=clock,
        seed=config.seed,
    )
    users = add_users(model, work, config.users, compiled=compiled)
    prepared = time.perf_counter()
    model.run(progress=progress)
    ended = time.perf_counter()
    return Run(
        jobs=jobs,
        processors=model.cluster.processors,
        label=config.label(),
        configuration={"kind": "replay", **config.plain()},
        clock=clock,
        trace=trace,
        source_row=converted.source_row,
        work=work,
        reacted=users[0].behaviour.reacts,
        repaired=converted.repaired,
        dropped=converted.dropped,
        wall_s={"prepare": round(prepared - began, 3), "simulate": round(ended - prepared, 3)},
    )
