"""Jobs that leave the queue when the patience of their users ends.

Such a job waits in the queue like any other, and the scheduler counts on it. It leaves after a wait
that is known beforehand: as recorded, or as a model of patience has it. Its user goes on then, and
it is ``cancelled`` without a start.

What if its turn comes before that? Jobs that were given up in the record leave then, since nobody
knows for how long they would have run; or they run, as long as similar jobs of their users
(:func:`imputed_run_times`).

Some of them were replaced in the record: the user submitted the same work again. Of such a pair one
job runs. The replacement takes the other's place if that still waits, and is not submitted if it
has started.

Under the recorded schedule each leaves at its recorded second.
"""

from __future__ import annotations

from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.jobs import UNKNOWN, Column, State
from hpcrowd.environment.parts.part import Part
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from hpcrowd.environment.cluster import Cluster  # circle: for its type only
    from hpcrowd.environment.jobs import Int64s, JobTable
    from hpcrowd.environment.simulation import Simulation  # circle: for its type only

#: Jobs that are most like one, of which one gives its run time; our choice.
ALIKE = 10


class GivenUp(Part):
    """Lets jobs leave the queue.

    Parameters
    ----------
    waits
        s; after which wait each job leaves, -1 for jobs that stay, shape (jobs,); 0 counts as 1 s,
        since jobs arrive after others have left.
    unknown
        s; run times of the jobs that were given up in the record as imputed, -1 for other jobs,
        shape (jobs,).
    run
        Whether those run if their turn comes; they leave then otherwise, with a run time of 0 s.
    replaced_by
        Row of the job that replaced each one in the record, -1 for none, shape (jobs,); None if
        that does not count.
    """

    def __init__(
        self,
        waits: Int64s,
        unknown: Int64s,
        *,
        run: bool = False,
        replaced_by: Int64s | None = None,
    ) -> None:
        self.waits = np.append(np.where(waits == 0, 1, waits), UNKNOWN)
        self.unknown, self.run = unknown, run
        self._replaces: dict[int, list[int]] = {}
        if replaced_by is not None:
            for row in np.flatnonzero(replaced_by != UNKNOWN).tolist():
                self._replaces.setdefault(int(replaced_by[row]), []).append(row)
        self._left_out: set[int] = set()

    @override
    def attach(self, model: Simulation) -> None:
        self._model = model
        self._left = np.zeros(len(self.unknown), np.bool_)
        self._leaving: list[tuple[int, int]] = []  # when jobs leave, s, and their rows; a heap
        self._alarm = FOREVER
        rows = np.flatnonzero(self.unknown != UNKNOWN)
        if self.run:
            jobs = model.jobs
            jobs.run_time[rows] = self.unknown[rows]
            unasked = rows[jobs.requested_time[rows] <= 0]
            jobs.requested_time[unasked] = self.unknown[unasked]
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
        rows = units.rows[units.first[unit] : units.first[unit + 1]]
        if (self._waits(rows) >= 0).any() or not self._replaces.keys().isdisjoint(rows.tolist()):
            self._expect(*units.as_recorded(unit, at))

    def _waits(self, rows: Int64s) -> Int64s:
        """Return the waits of jobs, -1 for those that users have added."""
        found: Int64s = self.waits[np.minimum(rows, len(self.waits) - 1)]
        return found

    def _expect(self, rows: Int64s, at: Int64s) -> None:
        waits = self._waits(rows)
        mine = waits >= 0
        for entry in zip((at + waits)[mine].tolist(), rows[mine].tolist(), strict=True):
            heappush(self._leaving, entry)
        self._set_alarm()
        if self._replaces:
            for row, second in zip(rows.tolist(), at.tolist(), strict=True):
                if row in self._replaces:
                    self._model.call_at(second, self._replace, row, second)

    def _set_alarm(self) -> None:
        """Look again when the next job leaves that has not started; most start long before."""
        while self._leaving and not self._leaves(*self._leaving[0]):
            self._gone(heappop(self._leaving)[1])
        if self._leaving and self._leaving[0][0] < self._alarm:
            self._alarm = self._leaving[0][0]
            self._model.call_at(self._alarm, self._leave, self._alarm)

    def _leaves(self, second: int, row: int) -> bool:
        """Return whether a job still waits that leaves then, not submitted again since."""
        at = int(self._model.jobs.submit[row])
        return at + int(self.waits[row]) == second and self._waits_still(row)

    def _leave(self, now: int) -> None:
        """Let those jobs leave that still wait."""
        if now != self._alarm:
            return  # an earlier one was set since
        self._alarm, rows = FOREVER, []
        while self._leaving and self._leaving[0][0] <= now:
            second, row = heappop(self._leaving)
            if self._leaves(second, row):
                rows.append(row)
            else:
                self._gone(row)
        self._let_leave(rows)
        self._set_alarm()

    def _gone(self, row: int) -> None:
        """Note that a job has left whose turn came before this second."""
        self._left_at_turn(np.array([row]), self._model.time - 1)

    def _replace(self, row: int, at: int) -> None:
        """Let a job that arrives take the place of others; leave it out if one has started."""
        jobs, before = self._model.jobs, self._replaces[row]
        if jobs.submit[row] != at or not self._waits_still(row):
            return
        if any(jobs.start[one] != UNKNOWN or one in self._left_out for one in before):
            self._left_out.add(row)
            self._model.cancel(row)
        else:
            self._let_leave([one for one in before if self._waits_still(one, at)])

    def _waits_still(self, row: int, now: int = FOREVER) -> bool:
        """Return whether a job was submitted, by ``now``, and has neither started nor left."""
        jobs = self._model.jobs
        there = jobs.state[row] == State.UNFINISHED and jobs.start[row] == UNKNOWN
        return bool(there and UNKNOWN < jobs.submit[row] <= now)

    def _let_leave(self, rows: list[int]) -> None:
        if rows:
            self._left[rows] = True
            self._model.cancel(np.unique(rows))

    def account(self) -> dict[str, Any]:
        """Return how many jobs were given up, and after which waits, once the run is over.

        The processor-hours of jobs that were given up are those that they would have needed, as far
        as similar jobs show.
        """
        jobs, rows = self._model.jobs, np.flatnonzero(self._left)
        rows = rows[jobs.state[rows] == State.CANCELLED]  # not: replaced in the same second
        needed = np.where(self.unknown == UNKNOWN, jobs.run_time[: len(self.unknown)], self.unknown)
        waits = jobs.end[rows] - jobs.submit[rows]
        found: dict[str, Any] = {
            "jobs_given_up": len(rows),
            "given_up_processor_h": float(jobs.processors[rows] @ needed[rows] / HOUR),
            "jobs_at_their_turn": int((waits < self.waits[rows]).sum()) if not self.run else 0,
            "wait_mean_s": float(waits.mean()) if len(rows) else None,
            "processors_mean": float(jobs.processors[rows].mean()) if len(rows) else None,
        }
        if self.run:
            found |= {
                "jobs_with_imputed_run_time": len(self.imputed()),
                "jobs_not_replaced": len(self._left_out),
            }
        return found

    def imputed(self) -> dict[int, int]:
        """Return the imputed run times of jobs that ran, s, by row, once the run is over."""
        ran = self.run & (self._model.jobs.start[: len(self.unknown)] != UNKNOWN)
        rows = np.flatnonzero(ran & (self.unknown != UNKNOWN))
        return dict(zip(rows.tolist(), self.unknown[rows].tolist(), strict=True))

    @override
    def end(self) -> dict[str, Any]:
        self._left_at_turn(np.flatnonzero(self.waits >= 0), self._model.time)
        return {}

    def _left_at_turn(self, rows: Int64s, by: int) -> None:
        """Note that those of these jobs have left whose turn came by a second, and do not run."""
        jobs = self._model.jobs
        if not self.run:
            rows = rows[(jobs.state[rows] == State.COMPLETED) & (jobs.end[rows] <= by)]
            jobs.column(Column.STATE)[rows] = State.CANCELLED
            jobs.start[rows] = UNKNOWN
            self._left[rows] = True


def imputed_run_times(
    jobs: JobTable, rows: Int64s, run_time: Int64s, stream: np.random.Generator
) -> Int64s:
    """Return run times for jobs that never ran, s, each that of a similar job, shape (rows,).

    It is one of the :data:`ALIKE` jobs of the same user that are most like it, or of all users if
    none of this user ran: by processors and requested time, in multiples, then by submission. It is
    at least 1 s, and no longer than requested.

    Parameters
    ----------
    jobs
        The table, with requests as far as they are known.
    rows
        The jobs; all others ran.
    run_time
        s; of all jobs, shape (jobs,).
    stream
        Draws one number for each of the jobs.
    """
    others = np.setdiff1d(np.arange(len(jobs)), rows)
    others = others[np.argsort(jobs.recorded_submit[others], kind="stable")]
    place = stream.random(len(rows))
    requested = jobs.requested_time[rows]
    found = np.maximum(requested, 1)
    if not len(others) or not len(rows):
        return found
    keys = np.stack((jobs.user[rows], jobs.processors[rows], requested))
    unique, group = np.unique(keys, axis=1, return_inverse=True)
    by_group = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    pool, whose = others, None
    for (user, processors, asked), mine in zip(unique.T.tolist(), by_group, strict=True):
        if user != whose:  # groups are in the order of users
            own, whose = others[jobs.user[others] == user], user
            pool = own if len(own) else others
        apart = np.abs(np.log2(np.maximum(jobs.processors[pool], 1) / max(processors, 1)))
        if asked > 0:
            apart += np.abs(np.log2(np.maximum(jobs.requested_time[pool], 1) / asked))
        last = min(ALIKE, len(pool)) - 1
        near = pool[apart <= np.partition(apart, last)[last]]
        at = np.searchsorted(jobs.recorded_submit[near], jobs.recorded_submit[rows[mine]])
        first = np.clip(at - ALIKE // 2, 0, max(len(near) - ALIKE, 0))
        drawn = run_time[near[first + (place[mine] * (last + 1)).astype(np.int64)]]
        found[mine] = np.minimum(drawn, asked) if asked > 0 else drawn
    return np.maximum(found, 1)
