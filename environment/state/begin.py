"""Let a simulation begin from a state instead of from an empty machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from hpcrowd.environment.simulation import Simulation


def begin_from(simulation: Simulation, now: int, running: Int64s, waiting: Int64s) -> None:
    """Let a simulation go on from a second at which some jobs run and some wait.

    Its first cluster gets them, before users join and before anything has run. The scheduler has a
    pass at that second.

    Parameters
    ----------
    simulation
        One that has not begun. The table has the jobs with recorded submissions and, of those that
        run, starts; run times are how long they will run in all.
    now
        The second, s since the origin.
    running, waiting
        Rows.

    Raises
    ------
    QuantityError
        If the running jobs need more processors than the machine has, or one of them ends before.
    """
    jobs, engine = simulation.jobs, simulation.cluster.engine
    if engine.scheduler is None:
        raise QuantityError(
            "state under the recorded schedule: nobody knows what comes; choose a scheduler"
        )
    used = int(jobs.processors[running].sum())
    if used > engine.up:
        raise QuantityError(
            f"running jobs: they need {used:,} processors, and the machine has {engine.up:,}; give "
            "its size with --processors"
        )
    engine.pass_to(now)
    simulation.time = now
    here = np.concatenate((running, waiting))
    jobs.submit[here] = jobs.enqueued[here] = jobs.recorded_submit[here]
    jobs.cluster[here] = engine.number
    jobs.start[running] = jobs.recorded_start[running]
    jobs.end[running] = np.maximum(jobs.start[running] + engine.stays(running), now + 1)
    jobs.estimate[here] = np.where(
        jobs.requested_time[here] == UNKNOWN, jobs.run_time[here], jobs.requested_time[here]
    )
    engine.take_over(waiting, running)
