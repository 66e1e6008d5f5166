"""The broker of a grid as a Mesa agent: users submit to it, and it sends jobs to clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.environment.cluster import to_take_back
from hpcrowd.environment.engine.public_state import PublicState, public_state
from hpcrowd.environment.errors import QuantityError, SchedulerError
from hpcrowd.environment.frame import Frame, mesa
from hpcrowd.environment.grid.policies import GRID, GridPolicy, fits, parse_grid_policy
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    from hpcrowd.environment.grid.dispatch import Dispatch
    from hpcrowd.environment.jobs import Int64s


@dataclass(frozen=True)
class GridSpec:
    """Description of the broker of a grid.

    Attributes
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

    policy: str | GridPolicy = "first-fit"
    coallocation: bool = False

    def __post_init__(self) -> None:
        parse_grid_policy(self.policy)


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
    over
        Called with jobs that were taken back.

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
        model: Frame,
        dispatch: Dispatch,
        coallocation: bool,
        over: Callable[[Int64s], None],
    ) -> None:
        super().__init__(model)
        self._over = over
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
            self.dispatch.cancel(found)
            self._over(found)

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
                "co-allocation: not enabled in this grid; use GridSpec(coallocation=True)"
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
