"""The broker of a grid: users submit to it, and it sends jobs to clusters.

:class:`Dispatch` is its queue, in plain Python. It takes part in the lock-step of the clusters:
jobs of the grid join it when those of the clusters arrive, and after the scheduling passes it sends
jobs on, one after the other. Each joins the local queue in the same instant, and its cluster has
another pass before the next. :class:`GridBroker` is the Mesa agent that users see.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast, override

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.environment.cluster import to_take_back
from hpcrowd.environment.engine.base import Engine
from hpcrowd.environment.engine.lock_step import BrokerQueue
from hpcrowd.environment.engine.public_state import PublicState, public_state
from hpcrowd.environment.engine.units import UnitTable
from hpcrowd.environment.errors import QuantityError, SchedulerError, SimulationError
from hpcrowd.environment.frame import mesa
from hpcrowd.environment.grid.policies import (
    GRID,
    GridJob,
    GridPolicy,
    Site,
    fits,
    grid_job,
    parse_grid_policy,
)
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.parts.part import Part
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.schedulers.base import ReasonCode, WaitingReason
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.simulation import Simulation


#: Fates of stopped jobs, the strongest last.
FATES = ("requeue", "resubmit", "fail")


class Dispatch(BrokerQueue):
    """The broker's queue, and the dispatch of jobs from it to sites that the policy chooses.

    ``number`` is the value of the column CLUSTER while a job is with the broker.
    """

    def __init__(
        self,
        jobs: JobTable,
        units: UnitTable,
        sites: Sequence[Site],
        policy: GridPolicy,
    ) -> None:
        self.jobs = jobs
        self.units = units
        self.sites = sites
        self.policy = policy
        self.number = len(sites)
        self._submitted: list[Int64s] = []
        self._arrivals: list[tuple[int, int]] = []
        self._waiting: list[GridJob] = []
        # Components of jobs by the row of the first, and the first by the row of each.
        self._parts: dict[int, list[int]] = {}
        self._first: dict[int, int] = {}
        # Requested and run times of components on the first cluster's nodes, by row.
        self._times: dict[int, tuple[int, int]] = {}
        # Cause and fate of jobs of which the platform stopped components now, by first row.
        self._stopped: dict[int, tuple[str, str]] = {}
        #: Called with jobs that their users must submit again, and the second.
        self.lost: Callable[[Int64s, int], None] | None = None
        for site in sites:
            if site.engine.timeline is not None:
                site.engine.timeline.separate = self._separate

    @property
    @override
    def at_once(self) -> bool:
        return self.policy.at_once

    @property
    def waiting(self) -> Int64s:
        """Rows of the jobs that it holds, in their order."""
        return np.array([row for job in self._waiting for row in job.rows], np.int64)

    @property
    def held(self) -> list[tuple[int, ...]]:
        """Rows of the components of each job that it holds, in their order."""
        return [job.rows for job in self._waiting]

    @property
    def submitted(self) -> NDArray[np.bool_]:
        """Which jobs of the table were submitted to the broker, shape (jobs,)."""
        found = np.zeros(len(self.jobs), bool)
        for rows in self._submitted:
            found[rows] = True
        return found

    def submit(self, rows: ArrayLike, at: ArrayLike) -> None:
        """Let jobs arrive at the given seconds (one, or one per job)."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        self._expect(rows, self._note(rows, at))

    def _note(self, rows: Int64s, at: ArrayLike) -> Int64s:
        """Note that jobs are submitted here, and return the seconds, one per job."""
        self.units.check_rows(rows)
        times = np.broadcast_to(np.asarray(at, np.int64), rows.shape)
        if len(rows) and times.min() < self.now:
            raise SimulationError(
                f"submission at {times.min()} s: in the past, it is already {self.now} s; submit "
                "now or later"
            )
        if self._parts:
            self._check_whole(dict(zip(rows.tolist(), times.tolist(), strict=True)))
        self._submitted.append(rows)
        for site in self.sites:
            if site.engine.timeline is not None:
                site.engine.catch_up()
        self.jobs.matrix[Column.SUBMIT, rows] = times
        self.jobs.matrix[Column.CLUSTER, rows] = self.number
        return times

    def _check_whole(self, times: dict[int, int]) -> None:
        """Check that all components of a job are submitted together; second by row."""
        for row, time in times.items():
            first = self._first.get(row)
            if first is not None and (row == first or first not in times):
                parts = self._parts[first]
                if any(times.get(part) != time for part in parts):
                    raise SimulationError(
                        f"job in row {row}: one of the components in rows {parts}, which start "
                        "together; submit all of them in one call and for the same second"
                    )

    def _expect(self, rows: Int64s, times: Int64s) -> None:
        for row, time in zip(rows.tolist(), times.tolist(), strict=True):
            if self._first.get(row, row) == row:
                heapq.heappush(self._arrivals, (time, row))

    def bind(self, rows: ArrayLike) -> None:
        """Make rows of the table the components of one job, which start together."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        self.units.check_rows(rows)
        parts = rows.tolist()
        for row in parts:
            first = self._first.get(row, UNKNOWN)
            if first != UNKNOWN and self._parts[first] != parts:
                raise SimulationError(
                    f"job in row {row}: already a component of the job in rows "
                    f"{self._parts[first]}; a row can be part of only one job"
                )
        if len(parts) > 1:
            self._parts[parts[0]] = parts
            self._first.update(dict.fromkeys(parts, parts[0]))

    def withdraw(self, rows: Int64s) -> None:
        """Let jobs not arrive that were submitted for later; the table is not changed."""
        gone = set(rows.tolist())
        self._arrivals = [one for one in self._arrivals if one[1] not in gone]
        heapq.heapify(self._arrivals)

    def whole(self, rows: Int64s) -> Int64s:
        """Return rows of jobs with all other components of the same jobs."""
        parts = [self._parts[self._first[row]] for row in rows.tolist() if row in self._first]
        return np.unique(
            np.append(rows, [row for found in parts for row in found]).astype(np.int64)
        )

    def cancel(self, rows: Int64s) -> None:
        """Take jobs back that are held here, or are to arrive; their users are not notified."""
        jobs = self.jobs
        held = np.isin(rows, self.waiting)
        jobs.column(Column.STATE)[rows] = np.where(held, State.CANCELLED, State.RENOUNCED)
        jobs.end[rows[held]] = self.now
        to_come = rows[~held]
        jobs.submit[to_come] = jobs.cluster[to_come] = UNKNOWN
        if len(to_come):
            self.withdraw(to_come)
        if held.any():
            self._let_go(rows[held])

    def _let_go(self, rows: Int64s) -> None:
        gone = set(rows.tolist())
        self._waiting = [job for job in self._waiting if job.row not in gone]

    def submit_unit(self, unit: int, at: int) -> None:
        """Submit a defined unit from ``at`` on, with its jobs spaced as recorded."""
        self.submit(*self.units.as_recorded(unit, at))

    @override
    def next_time(self) -> int:
        return self._arrivals[0][0] if self._arrivals else FOREVER

    @override
    def arrive(self) -> list[int]:
        jobs, over = self.jobs, []
        sizes = [site.processors for site in self.sites]
        while self._arrivals and self._arrivals[0][0] == self.now:
            row = heapq.heappop(self._arrivals)[1]
            self.events += 1
            rows = self._parts.get(row, [row])
            if (jobs.state[rows] == State.RENOUNCED).any():
                jobs.matrix[Column.STATE, rows] = State.RENOUNCED
                jobs.submit[rows] = jobs.cluster[rows] = UNKNOWN
                over += rows
            elif not fits((job := grid_job(jobs, rows)).components, sizes):
                jobs.matrix[Column.STATE, rows] = State.REJECTED
                over += rows
            else:
                self._hold(job)
        return self.units.awaited(over)

    @override
    def place(self) -> list[Engine]:
        """Send one job on; return the engines that it went to, none if all must wait."""
        if not self._waiting:
            return []
        for site in self.sites:
            site.look()
        chosen = self.policy.select(self.now, tuple(self._waiting), self.sites)
        if chosen is None:
            return []
        job, sites = chosen
        if job not in self._waiting:
            raise SchedulerError(f"{self.policy.name}: job in row {job.row} is not waiting")
        if len({site.name for site in sites}) != len(job.components):
            raise SchedulerError(
                f"{self.policy.name}: job in row {job.row} has {len(job.components)} components; "
                f"name as many different sites, not {[site.name for site in sites]}"
            )
        self._waiting.remove(job)
        if len(job.rows) > 1:
            self._claim(job, sites)
        elif job.processors > sites[0].processors:
            raise SchedulerError(
                f"{self.policy.name}: job in row {job.row} needs {job.processors} processors, "
                f"{sites[0].name} has only {sites[0].processors}"
            )
        else:
            sites[0].send(job.row)
        return [site.engine for site in sites]

    def _claim(self, job: GridJob, sites: Sequence[Site]) -> None:
        """Start the components of a job; all take as long as the slowest one."""
        jobs, parts = self.jobs, list(zip(job.rows, job.components, sites, strict=True))
        for row, need, site in parts:
            if site.engine.closed:
                raise SchedulerError(
                    f"{self.policy.name}: component in row {row}: {site.name} is closed for "
                    "maintenance"
                )
            if need > site.engine.free:
                raise SchedulerError(
                    f"{self.policy.name}: component in row {row} needs {need} processors, but "
                    f"{site.engine.free} are free on {site.name}"
                )
        for row, _, site in parts:
            self._times[row] = int(jobs.requested_time[row]), int(jobs.run_time[row])
            site.engine.adopt(row)
        rows = list(job.rows)
        jobs.run_time[rows] = jobs.run_time[rows].max()
        jobs.requested_time[rows] = jobs.requested_time[rows].max()
        for row, _, site in parts:
            site.engine.claim(row)

    def _separate(self, row: int, cause: str, fate: str) -> bool:
        """Note that a job was stopped; return whether it is a component, whose job stops as one."""
        if row not in self._first:
            return False
        first = self._first[row]
        before = self._stopped.get(first)
        if before is None or FATES.index(fate) > FATES.index(before[1]):
            self._stopped[first] = cause, fate
        return True

    @property
    @override
    def holding(self) -> bool:
        return len(self._waiting) > 0

    @override
    def regroup(self) -> tuple[list[int], list[Engine]]:
        """Stop the other components of jobs, which start together again.

        If changes of one instant disagree on the fate of a job, it fails rather than being
        submitted again, and is submitted again rather than waiting.
        """
        jobs, over, touched = self.jobs, [], []
        again: list[int] = []
        for first, (cause, fate) in sorted(self._stopped.items()):
            rows = self._parts[first]
            for row in rows:
                engine = self.sites[int(jobs.cluster[row])].engine
                running = engine.running
                if row in running:
                    if engine.timeline is not None:
                        engine.timeline.note_stop(row, cause, fate)
                    engine.settle()
                    engine.take_over(engine.waiting, running[running != row])
                touched.append(engine)
            if fate == "fail":
                jobs.end[rows] = self.now
                jobs.matrix[Column.STATE, rows] = State.FAILED
                over += rows
                continue
            jobs.start[rows] = jobs.end[rows] = jobs.enqueued[rows] = UNKNOWN
            jobs.cluster[rows] = self.number
            for row in rows:
                jobs.requested_time[row], jobs.run_time[row] = self._times[row]
            if fate == "resubmit":
                again += rows
            else:
                self._hold(grid_job(jobs, rows))
        self._stopped.clear()
        if again:
            assert self.lost is not None
            self.lost(np.array(sorted(again), np.int64), self.now)
        return self.units.awaited(over), touched

    def _hold(self, job: GridJob) -> None:
        insort(self._waiting, job, key=lambda one: (one.submit, one.row))


def dispatch_of(
    jobs: JobTable,
    units: UnitTable,
    sites: Sequence[Site],
    policy: GridPolicy,
    coallocation: bool = False,
) -> Dispatch:
    """Return the queue of a broker, compiled if possible."""
    engines = [site.engine for site in sites]
    if not coallocation and not any(engine.alone for engine in engines):
        from hpcrowd.environment.grid.compiled import (
            CompiledDispatch,
            dispatches_compiled,
        )

        if dispatches_compiled(engines, policy):
            return CompiledDispatch(jobs, units, sites, policy)
    return Dispatch(jobs, units, sites, policy)


class Grid(Part):
    """Makes the clusters a grid: users may also submit to ``grid``, which sends their jobs on.

    Parameters
    ----------
    policy
        A name of :data:`hpcrowd.environment.grid.policies.GRID_POLICIES`, or a
        :class:`~hpcrowd.environment.grid.policies.GridPolicy`, which serves this broker only.
    coallocation
        Whether jobs may have components that start together on several clusters,
        :meth:`GridBroker.bind`. Such a grid runs in plain Python, more slowly.

    Raises
    ------
    QuantityError
        If the policy is not known.
    """

    def __init__(self, policy: str | GridPolicy = "first-fit", coallocation: bool = False) -> None:
        self._policy, self.coallocation = parse_grid_policy(policy), coallocation

    @override
    def broker(self, model: Simulation) -> Dispatch:
        """Add the broker to the places of a simulation, and return its queue.

        Raises
        ------
        QuantityError
            If a cluster has its name, or no scheduler.
        """
        if GRID in model.places:
            raise QuantityError(f"cluster {GRID!r}: name of the broker; choose another")
        for name, cluster in model.clusters.items():
            if cluster.engine.scheduler is None:
                raise QuantityError(
                    f"grid with {name}: it follows the recorded schedule, which has no notion of "
                    "free processors; choose a scheduler"
                )
        sites = [Site(name, cluster.engine) for name, cluster in model.clusters.items()]
        self.dispatch = dispatch_of(model.jobs, model.units, sites, self._policy, self.coallocation)
        self.dispatch.lost = model.on_lost
        model.places[GRID] = GridBroker(model, self.dispatch, self.coallocation)
        return self.dispatch

    @override
    def whole(self, rows: Int64s) -> Int64s:
        """Return jobs with all components of theirs."""
        return self.dispatch.whole(rows)


def broker_of(model: Simulation) -> GridBroker | None:
    """Return the broker of a grid; None if the clusters are none."""
    return cast("GridBroker | None", model.places.get(GRID))


class GridBroker(mesa.Agent):  # type: ignore[misc]
    """Holds the jobs of the grid until it sends them to a cluster.

    Parameters
    ----------
    model
        The simulation it is part of.
    dispatch
        Its queue.
    coallocation
        Whether jobs may have components.

    Attributes
    ----------
    name
        Its name for users, ``grid``.
    number
        Its number in the column CLUSTER, for jobs that have not been sent to a cluster yet.
    """

    name = GRID

    def __init__(
        self,
        model: Simulation,
        dispatch: Dispatch,
        coallocation: bool,
    ) -> None:
        super().__init__(model)
        self.coallocation = coallocation
        self.dispatch = dispatch
        self.number = dispatch.number
        #: Submits jobs at given seconds; their run times and requested times become those of
        #: the cluster that they go to.
        self.submit = dispatch.submit
        #: Submits jobs again, whose components a platform change stopped.
        self.submit_again = dispatch.submit
        #: Submits a unit of ``Simulation.own_units``, with its first job at a given second.
        self.submit_unit = dispatch.submit_unit
        #: Take jobs back, or let them not arrive, of which nobody is notified yet.
        self.take_out, self.withdraw = dispatch.cancel, dispatch.withdraw

    def __repr__(self) -> str:
        return (
            f"<GridBroker {self.dispatch.policy} of {plural(len(self.dispatch.sites), 'cluster')}>"
        )

    @property
    def waiting(self) -> Int64s:
        """Rows of the jobs that it holds, by submission."""
        return self.dispatch.waiting

    @property
    def submitted(self) -> NDArray[np.bool_]:
        """Mask of the jobs submitted to the broker so far, shape (jobs,)."""
        return self.dispatch.submitted

    @property
    def jobs(self) -> JobTable:
        """The table of jobs."""
        return self.dispatch.jobs

    def reasons(self) -> Iterator[WaitingReason]:
        """Yield why each job that it holds waits now."""
        dispatch = self.dispatch
        jobs, now = dispatch.jobs, dispatch.now
        mine = dispatch.submitted
        rooms = []
        for site in dispatch.sites:
            waiting = site.engine.waiting
            pending = waiting[mine[waiting]]
            rooms.append(site.engine.free - int(jobs.processors[pending].sum()))
        most = max(rooms)
        for place, rows in enumerate(dispatch.held, 1):
            asks = jobs.processors[list(rows)].tolist()
            code, note = ReasonCode.GRID, ""
            if len(rows) > 1:
                could = fits(asks, rooms)
                note = f"its {plural(len(rows), 'component')} are to start together"
            else:
                could = asks[0] <= most
            if could:
                code, note = ReasonCode.CAN_START, ""
            for row, need in zip(rows, asks, strict=True):
                yield WaitingReason(row, code, now, need, most, place, note=note)

    def look(self) -> PublicState:
        """Return what anyone may see of the grid now, such as the length of all its queues."""
        held = self.waiting
        asked = int(self.dispatch.jobs.processors[held].sum())
        engines = tuple(site.engine for site in self.dispatch.sites)
        return public_state(engines, len(held), asked)

    def cancel(self, rows: ArrayLike) -> None:
        """Take jobs back that are held here, or were submitted for later.

        See :meth:`~hpcrowd.environment.cluster.Cluster.cancel`.

        Raises
        ------
        SimulationError
            If a job is not here, or over.
        """
        found = to_take_back(self.dispatch.jobs, rows, self.number, self.name)
        if len(found):
            self.take_out(found)
            self.model.on_taken_back(found)

    def bind(self, rows: ArrayLike) -> None:
        """Make jobs the components of one job, which start together on several clusters.

        All of them must later be submitted here in one call and for the same second. Each starts on
        a different cluster, on free processors, bypassing the local queue. All take as long as on
        the slowest of their clusters.

        Raises
        ------
        QuantityError
            If the grid has no co-allocation, or the scheduler of a cluster uses a predictor, which
            would not see components arrive.
        SimulationError
            If one of them is already a component of another job.
        """
        if not self.coallocation:
            raise QuantityError(
                "co-allocation: not enabled in this grid; use Grid(coallocation=True)"
            )
        for site in self.dispatch.sites:
            if site.engine.predictor is not None:
                raise QuantityError(
                    f"co-allocation on {site.name}: its estimates come from a predictor, which "
                    "does not see components; choose other estimates, such as requested"
                )
            if site.engine.work is not None:
                raise QuantityError(
                    f"co-allocation on {site.name}: its speed changes, and components take equally "
                    "long; leave out the change or the components"
                )
        self.dispatch.bind(rows)

    def submit_together(self, rows: ArrayLike, at: int) -> None:
        """Submit the components of one job: :meth:`bind` and :meth:`submit` in one call."""
        self.bind(rows)
        self.submit(rows, at)

    def check_none_lost(self) -> None:
        """Check, at the end of the run, that the policy left no job waiting.

        Raises
        ------
        SchedulerError
            Names the policy and the first such job.
        """
        sites, jobs = self.dispatch.sites, self.dispatch.jobs
        sizes = [site.processors for site in sites]
        whole = all(site.engine.up == site.processors for site in sites)
        # Jobs for which no cluster is large enough any more just wait until the end.
        able = [
            rows for rows in self.dispatch.held if fits(jobs.processors[list(rows)].tolist(), sizes)
        ]
        lost = [row for rows in able for row in rows]
        if lost and whole:
            raise SchedulerError(
                f"{self.dispatch.policy}: {plural(len(lost), 'job')} left waiting at "
                f"{self.dispatch.now} s, the end of the run, the first in row "
                f"{lost[0]}; select() must name each job at some time"
            )
