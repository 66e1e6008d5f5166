"""Jobs that their users gave up while they waited, as a log has them.

Such a job waits in the queue like any other, and the scheduler counts on it. It leaves after its
recorded wait. It also leaves if its turn comes before that: nobody knows for how long it would have
run. Either way its user goes on then, and it is ``cancelled`` without a start.

Under the recorded schedule each leaves at its recorded second.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.environment.jobs import UNKNOWN, Column, State
from hpcrowd.environment.parts.part import Part

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from hpcrowd.environment.cluster import Cluster  # circle: for its type only
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.simulation import Simulation  # circle: for its type only


class GivenUp(Part):
    """Lets jobs leave the queue that were given up in the record.

    Parameters
    ----------
    waits
        s; after which wait each job leaves, -1 for jobs that stay, shape (jobs,); 0 counts as 1 s,
        since jobs arrive after others have left. Jobs that leave have a run time of 0 s.
    """

    def __init__(self, waits: Int64s) -> None:
        self.waits = np.append(np.where(waits == 0, 1, waits), UNKNOWN)

    @override
    def attach(self, model: Simulation) -> None:
        self._model = model
        self._leaving: dict[int, list[int]] = {}  # jobs by the second at which they leave
        for cluster in model.clusters.values():
            if cluster.engine.scheduler is not None:
                cluster.submit = partial(self._submit, cluster.submit)
                cluster.submit_again = partial(self._submit, cluster.submit_again)
                cluster.submit_unit = partial(self._submit_unit, cluster, cluster.submit_unit)

    def _submit(self, submit: Any, rows: ArrayLike, at: ArrayLike) -> None:
        """Submit jobs, as ``Engine.submit``, and note when they leave."""
        submit(rows, at)
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        self._expect(rows, np.broadcast_to(np.asarray(at, np.int64), rows.shape))

    def _submit_unit(self, cluster: Cluster, submit: Any, unit: int, at: int) -> None:
        """Submit a unit, with its jobs spaced as recorded, and note when they leave."""
        submit(unit, at)
        units = cluster.engine.units
        if (self._waits(units.rows[units.first[unit] : units.first[unit + 1]]) >= 0).any():
            self._expect(*units.as_recorded(unit, at))

    def _waits(self, rows: Int64s) -> Int64s:
        """Return the waits of jobs, -1 for those that users have added."""
        found: Int64s = self.waits[np.minimum(rows, len(self.waits) - 1)]
        return found

    def _expect(self, rows: Int64s, at: Int64s) -> None:
        waits = self._waits(rows)
        mine = waits >= 0
        for row, second in zip(rows[mine].tolist(), (at + waits)[mine].tolist(), strict=True):
            if second not in self._leaving:
                self._leaving[second] = []
                self._model.call_at(second, self._leave, second)
            self._leaving[second].append(row)

    def _leave(self, now: int) -> None:
        """Let those jobs leave that still wait, and were not submitted again since."""
        jobs, rows = self._model.jobs, np.unique(self._leaving.pop(now))
        waits = (jobs.state[rows] == State.UNFINISHED) & (jobs.submit[rows] != UNKNOWN)
        rows = rows[waits & (jobs.submit[rows] + self.waits[rows] == now)]
        if len(rows):
            self._model.cancel(rows)

    def account(self) -> dict[str, Any]:
        """Return how many jobs were given up, and after which waits, once the run is over."""
        jobs = self._model.jobs
        rows = np.flatnonzero(self.waits[:-1] >= 0)
        rows = rows[(jobs.state[rows] == State.CANCELLED) & (jobs.start[rows] == UNKNOWN)]
        waits = jobs.end[rows] - jobs.submit[rows]
        return {
            "jobs_given_up": len(rows),
            "jobs_at_their_turn": int((waits < self.waits[rows]).sum()),
            "wait_mean_s": float(waits.mean()) if len(rows) else None,
            "processors_mean": float(jobs.processors[rows].mean()) if len(rows) else None,
        }

    @override
    def end(self) -> dict[str, Any]:
        """Note that jobs whose turn came have left, too."""
        jobs = self._model.jobs
        rows = np.flatnonzero(self.waits >= 0)
        rows = rows[jobs.over[rows]]
        jobs.column(Column.STATE)[rows] = State.CANCELLED
        jobs.start[rows] = UNKNOWN
        return {}
