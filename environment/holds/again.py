"""Jobs that are run again as recorded, after a run of the recorded length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.jobs import UNKNOWN, Column, State
from hpcrowd.environment.quantities import time_at_speed
from hpcrowd.environment.traces.runs import Runs

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster  # circle: for its type only
    from hpcrowd.environment.simulation import Simulation  # circle: for its type only

#: Columns of the table that a new run sets.
OF_A_RUN = (Column.START, Column.END, Column.ENQUEUED, Column.ESTIMATE, Column.PROMISED)


class Again:
    """A job that is run again as recorded; while it runs, the table has the length of that run.

    On a machine of nodes it is admitted again, as a new submission is. A limit on the jobs that are
    submitted may thus reject it; Slurm would keep it.

    Parameters
    ----------
    model, row
        The simulation, and the job.
    runs
        Its earlier runs.
    """

    def __init__(self, model: Simulation, row: int, runs: Runs) -> None:
        self._model, self._row, self._place = model, row, 0
        self._runs, self._stopped = runs, False
        self._since: int | None = None  # submission for the present run, None for the first
        jobs = self._jobs = model.jobs
        self._last = int(jobs.run_time[row]), int(jobs.recorded_start[row])
        self._processors = int(jobs.processors[row])  # a machine of nodes may give it more
        self._as_recorded = model.cluster.engine.scheduler is None
        jobs.run_time[row] = self._length
        self._wait_as_recorded(int(jobs.recorded_submit[row]), int(jobs.recorded_submit[row]))

    @property
    def cluster(self) -> Cluster:
        """Where it runs."""
        clusters = list(self._model.clusters.values())
        return clusters[int(self._jobs.cluster[self._row])]

    @property
    def _length(self) -> int:
        """The length of the present run before it is divided by the speed of a cluster, s."""
        if self._place == len(self._runs):
            return self._last[0]
        return self._runs[self._place].end - self._runs[self._place].start

    def _wait_as_recorded(self, first: int, arrival: int) -> None:
        """Let the present run begin as long after the first submission as recorded, if it can.

        Only if the schedule is the recorded one: it starts jobs their recorded wait after they
        arrive.
        """
        if not self._as_recorded:
            return
        submit = int(self._jobs.recorded_submit[self._row])
        over = self._place == len(self._runs)
        after = self._last[1] - submit if over else self._runs[self._place].start
        self._jobs.recorded_start[self._row] = submit + max(first + after - arrival, 0)

    def stop(self, now: int) -> bool:
        """Note that a run has ended now; return whether the job is run again."""
        jobs, row = self._jobs, self._row
        if self._place == len(self._runs) or jobs.state[row] != State.COMPLETED:
            return False
        since = int(jobs.submit[row]) if self._since is None else self._since
        self.cluster.engine.note_recorded(row, since, now)
        jobs.column(Column.STATE)[row] = State.FAILED
        self._stopped = True
        return True

    def begin(self) -> int:
        """Let it wait for the next run; return when it is submitted again."""
        jobs, row, engine = self._jobs, self._row, self.cluster.engine
        before, over = self._runs[self._place], int(jobs.end[row])
        self._place += 1
        self._since = over + before.again - before.end
        self._forget()
        length = self._length
        if engine.speed != 1:
            length = int(time_at_speed(np.array([length]), engine.speed)[0])
        jobs.run_time[row] = length
        if engine.scheduler is not None and engine.scheduler.nodes:
            jobs.processors[row] = self._processors
        if engine.work is not None:
            engine.work[row] = length
        arrival = max(self._since, over + 1)
        self._wait_as_recorded(int(jobs.submit[row]), arrival)
        return arrival

    def _forget(self) -> None:
        """Forget the run that ended, of which the scheduler has heard."""
        jobs, row = self._jobs, self._row
        for column in OF_A_RUN:
            jobs.matrix[column, row] = UNKNOWN
        jobs.column(Column.STATE)[row] = State.UNFINISHED
        self._stopped = False

    def restore(self) -> None:
        """Put what was recorded back into the table, when the run of the simulation is over."""
        if self._stopped:
            self._forget()
        if self._as_recorded:
            self._jobs.recorded_start[self._row] = self._last[1]
