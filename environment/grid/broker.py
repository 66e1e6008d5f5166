"""The broker of a grid as a Mesa agent: users submit to it, it sends jobs on to clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import mesa
import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.environment.errors import QuantityError, SchedulerError
from hpcrowd.environment.grid.policies import GRID, GridPolicy, parse_grid_policy
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    from hpcrowd.environment.frame import Frame
    from hpcrowd.environment.grid.dispatch import Dispatch
    from hpcrowd.environment.jobs import Int64s


@dataclass(frozen=True)
class GridSpec:
    """What the broker of a grid is like.

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
        When the policy is not known.
    """

    policy: str | GridPolicy = "first-fit"
    coallocation: bool = False

    def __post_init__(self) -> None:
        parse_grid_policy(self.policy)


class GridBroker(mesa.Agent):  # type: ignore[misc]
    """Holds the jobs of the grid until they go to a cluster.

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
        What users call it, ``grid``.
    number
        Its number in the column CLUSTER, that of jobs that no cluster has got yet.
    """

    name = GRID

    def __init__(self, model: Frame, dispatch: Dispatch, coallocation: bool) -> None:
        super().__init__(model)
        self.coallocation = coallocation
        self.dispatch = dispatch
        self.number = dispatch.number
        #: Lets jobs arrive at given seconds; their run times and requested times become those of
        #: the cluster that they go to.
        self.submit = dispatch.submit
        #: Lets a unit of ``Simulation.own_units`` arrive, its first job at a second.
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
        """Which jobs were submitted to the broker so far, shape (jobs,)."""
        return self.dispatch.submitted

    def bind(self, rows: ArrayLike) -> None:
        """Make jobs the components of one job, which are to start together on several clusters.

        However they are submitted here then, all of them have to be in one call and for one second.
        Each starts on a cluster of its own, on free processors there, past the local queue; all
        last as long as the slowest cluster makes them.

        Raises
        ------
        QuantityError
            When the grid does without co-allocation, or the scheduler of a cluster asks a
            predictor: it hears of no component's arrival.
        SimulationError
            When one of them is a component of another job.
        """
        if not self.coallocation:
            raise QuantityError(
                "co-allocation: this grid does without; give GridSpec coallocation=True"
            )
        for site in self.dispatch.sites:
            if site.engine.predictor is not None:
                raise QuantityError(
                    f"co-allocation on {site.name}: its estimates are predicted, and components "
                    "are not in its queue; choose estimates such as requested"
                )
        self.dispatch.bind(rows)

    def submit_together(self, rows: ArrayLike, at: int) -> None:
        """Let the components of one job arrive: :meth:`bind` and :meth:`submit` in one."""
        self.bind(rows)
        self.submit(rows, at)

    def check_none_lost(self) -> None:
        """Check, when nothing is left to happen, that the policy left no job waiting.

        Raises
        ------
        SchedulerError
            Names the policy and the first such job.
        """
        lost = self.waiting
        sites = self.dispatch.sites
        if len(lost) and all(site.engine.up == site.processors for site in sites):
            raise SchedulerError(
                f"{self.dispatch.policy}: {plural(len(lost), 'job')} left waiting at "
                f"{self.dispatch.now} s when nothing is left to happen, the first in row "
                f"{lost[0]}; select() must name each job some time"
            )
