"""The broker of a grid as a Mesa agent: users submit to it, and it sends jobs to clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast, override

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.environment.cluster import to_take_back
from hpcrowd.environment.engine.public_state import PublicState, public_state
from hpcrowd.environment.errors import QuantityError, SchedulerError
from hpcrowd.environment.frame import mesa
from hpcrowd.environment.grid.dispatch import Dispatch, dispatch_of
from hpcrowd.environment.grid.policies import GRID, GridPolicy, Site, fits, parse_grid_policy
from hpcrowd.environment.parts.part import Part
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.schedulers.base import ReasonCode, WaitingReason

if TYPE_CHECKING:
    from hpcrowd.environment.jobs import Int64s, JobTable
    from hpcrowd.environment.simulation import Simulation


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
