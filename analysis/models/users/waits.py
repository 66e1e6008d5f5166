"""Waits for logs that do not have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.agents.populations.population import add_users
from hpcrowd.agents.presets import PRESETS
from hpcrowd.agents.work.recorded import Work
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.simulation import Simulation


def with_waits(
    jobs: JobTable, recorded: ArrayLike, processors: int, scheduler: str = "easy"
) -> tuple[JobTable, str]:
    """Return jobs with starts and ends, and a note if they had to be simulated.

    A log without waits does not say when jobs ended, and so not how long users thought. Starts are
    then those of a simulation of the recorded submissions.

    Parameters
    ----------
    jobs
        The jobs of a trace.
    recorded
        Recorded waits, s; below 0 unknown.
    processors
        Size of the machine.
    scheduler
        The policy of the simulation.
    """
    if (np.asarray(recorded) >= 0).any():
        return jobs, ""
    run = jobs.copy()
    simulation = Simulation(run, max(processors, int(run.processors.max())), scheduler)
    add_users(simulation, Work.of(run), PRESETS["rigid"])
    simulation.run()
    again = jobs.copy()
    ran = run.start != UNKNOWN
    again.recorded_start[:] = np.where(ran, run.start, run.recorded_submit)
    again.recorded_end[:] = np.where(ran, run.end, run.recorded_submit)
    return again, f"the log has no waits: those of a simulation with {scheduler} take their place"
