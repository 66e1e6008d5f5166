"""What is run to reproduce Minh 2012, chapter 6: workloads, loads, machines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.grid.das3 import DAS3
from hpcrowd.scenarios.studies.minh2012_arrivals.study import (
    CLUSTER_REPLICATIONS,
    GRID_REPLICATIONS,
    WORKLOAD_JOBS,
)

#: System loads of the single cluster; the text names 0.8 only.
LOADS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)

#: Grid loads (Fig. 6.3).
GRID_LOADS = (0.2, 0.4, 0.6, 0.8, 1.0)

#: Processors of the single cluster, whose size is not told: as many as the LU has.
MACHINE = 64

#: Load of each cluster of the grid by its local jobs; not told.
LOCAL_LOAD = 0.5

#: Widest local job of the grid, as a share of its cluster; not told. A quarter makes the six
#: workloads last about equally long: the grid's as long as the others at a grid load of a third.
LOCAL_WIDEST = 0.25

#: Processes that share the work.
PROCESSES = 2

#: What the quick form has less of: workloads, not jobs.
QUICK: dict[str, Any] = {"cluster_replications": 10, "grid_replications": 6}


@dataclass(frozen=True)
class Plan:
    """What is to be run; see :class:`~scenarios.studies.minh2012_arrivals.study.Experiments`.

    Attributes
    ----------
    cluster_replications, grid_replications, jobs
        Workloads of each kind, and jobs of each.
    seed
        Of everything random.
    loads, machine, widest
        Of the single cluster: system loads, processors, and the widest job; None for a job as wide
        as the machine.
    grid_loads, local_load, local_widest, grid_widest
        Of the grid: grid loads, load of each cluster by local jobs, widest local job as a share of
        its cluster, widest grid job in processors; None for one as wide as the smallest cluster.
    """

    cluster_replications: int = CLUSTER_REPLICATIONS
    grid_replications: int = GRID_REPLICATIONS
    jobs: int = WORKLOAD_JOBS
    seed: int = 0
    loads: tuple[float, ...] = LOADS
    machine: int = MACHINE
    widest: int | None = None
    grid_loads: tuple[float, ...] = GRID_LOADS
    local_load: float = LOCAL_LOAD
    local_widest: float = LOCAL_WIDEST
    grid_widest: int | None = None

    def __post_init__(self) -> None:
        smallest = min(row.processors for row in DAS3)
        least = {"cluster_replications": 2, "grid_replications": 2, "jobs": 1_000, "machine": 1}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise QuantityError(f"{name} {getattr(self, name)}: at least {bound}")
        for name, most in (("widest", self.machine), ("grid_widest", smallest)):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= most:
                raise QuantityError(f"{name} {value}: from 1 to {most}, what a job may go to")
        for load in (*self.loads, *self.grid_loads):
            if not 0 < load < float("inf"):
                raise QuantityError(f"load {load}: must be positive, for example 0.8")
        for loads in (self.loads, self.grid_loads):
            if not loads or len(set(loads)) < len(loads):
                raise QuantityError(f"loads {loads}: give at least one, each once")
        if not 0 < self.local_load < 1:
            raise QuantityError(
                f"local_load {self.local_load}: between 0 and 1, the rest is for the grid"
            )
        if not 0 < self.local_widest <= 1:
            raise QuantityError(f"local_widest {self.local_widest}: a share of the cluster, to 1")

    @property
    def widest_job(self) -> int:
        """Processors of the widest job of the single cluster."""
        return self.machine if self.widest is None else self.widest

    @property
    def widest_grid_job(self) -> int:
        """Processors of the widest grid job: any cluster is to have room for it."""
        if self.grid_widest is None:
            return min(row.processors for row in DAS3)
        return self.grid_widest

    def widest_local_job(self, processors: int) -> int:
        """Return the processors of the widest local job of a cluster of the grid."""
        return max(1, int(self.local_widest * processors))

    def settings(self) -> dict[str, Any]:
        """Return everything as plain data; what was left open is told."""
        found = {**asdict(self), "widest": self.widest_job, "grid_widest": self.widest_grid_job}
        return {
            name: [*value] if isinstance(value, tuple) else value for name, value in found.items()
        }


def plan_of(quick: bool, **choices: Any) -> Plan:
    """Return the plan of the full or the quick form; choices that are None stay at its defaults."""
    told = {name: value for name, value in choices.items() if value is not None}
    return Plan(**{**(QUICK if quick else {}), **told})
