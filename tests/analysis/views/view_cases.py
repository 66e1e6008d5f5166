"""Runs for the tests of views: paused at a moment, and finished and played back to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from hpcrowd.agents import DecisionLog, Work, add_users
from hpcrowd.analysis.run import Run
from hpcrowd.analysis.views import Moment
from hpcrowd.environment import Clock, JobTable, Simulation
from hpcrowd.scenarios.kinds.replay import units_waited_for


def paused(
    jobs: JobTable,
    processors: int,
    users: Any = "think-time",
    *,
    until: int | None,
    clock: Clock | None = None,
    scheduler: str = "easy",
    log: DecisionLog | None = None,
) -> Moment:
    """A run of some jobs, by default under EASY with users who think, as it is at ``until``."""
    work = Work.of(jobs.copy())
    model = Simulation(work.jobs, processors, scheduler, clock=clock)
    agents = add_users(model, work, users, log=log)
    model.run(until=until)
    return Moment.of_model(model, label="run", work=work, users=agents, decisions=log)


def finished(
    jobs: JobTable,
    processors: int,
    users: Any = "think-time",
    *,
    clock: Clock | None = None,
    scheduler: str = "easy",
    log: DecisionLog | None = None,
) -> Run:
    """The same run when it has ended."""
    from hpcrowd.agents.behaviours.decisions import Decisions

    work = Work.of(jobs.copy())
    model = Simulation(work.jobs, processors, scheduler, clock=clock)
    agents = add_users(model, work, users, log=log)
    model.run()
    return Run(
        jobs=work.jobs,
        processors=processors,
        label="run",
        configuration={},
        clock=model.clock,
        work=work,
        waits=units_waited_for(work, agents),
        decisions=None if log is None else Decisions.of(log),
    )


def assert_same(view: Callable[[Moment], Any], live: Moment, back: Moment) -> None:
    """Check that a view of a live run is that of the finished one played back."""
    here, there = view(live), view(back)
    if isinstance(here, pd.DataFrame):
        pd.testing.assert_frame_equal(here, there)
    elif isinstance(here, np.ndarray):
        np.testing.assert_array_equal(here, there)
    else:
        assert here == there, view
