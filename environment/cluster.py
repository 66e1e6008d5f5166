"""A cluster as a Mesa agent: processors, a scheduler, and the engine that runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import mesa
from numpy.typing import ArrayLike

from environment.engine import Engine
from environment.errors import QuantityError
from environment.estimates import Estimates, parse_estimates
from environment.jobs import Int64s, JobTable
from environment.passes.base import runs_compiled
from environment.plain import PlainEngine
from environment.predictors.base import Predictor
from environment.schedulers.base import Scheduler
from environment.schedulers.names import parse_scheduler

if TYPE_CHECKING:
    from environment.frame import Frame
    from environment.unit_table import UnitTable

#: Name of the first cluster.
HOME = "home"


@dataclass(frozen=True)
class ClusterSpec:
    """What a cluster beside the first one is like.

    Attributes
    ----------
    processors
        Its size; larger jobs are rejected when they are submitted to it.
    scheduler
        Text of ``environment.schedulers.names.parse_scheduler``, or a
        :class:`~environment.schedulers.base.Scheduler`, which serves this cluster only.
    speed
        Speed of its nodes where that of the first cluster is 1: jobs submitted to it need their run
        time divided by this, rounded half up, at least 1 s; requested times likewise.
    estimates
        What its scheduler believes of run times, see :class:`Cluster`.

    Raises
    ------
    QuantityError
        When the speed is not positive.
    """

    processors: int
    scheduler: str | Scheduler = "easy"
    speed: float = 1.0
    estimates: str | Estimates | Predictor = "requested"

    def __post_init__(self) -> None:
        if not 0 < self.speed < float("inf"):
            raise QuantityError(f"speed {self.speed}: must be positive, for example 2 or 0.5")


class Cluster(mesa.Agent):  # type: ignore[misc]
    """A batch-scheduled cluster.

    Parameters
    ----------
    model
        The simulation it is part of.
    jobs
        The table of jobs.
    processors
        Its size; larger jobs are rejected when they are submitted.
    scheduler
        Text of ``environment.schedulers.names.parse_scheduler``, or a
        :class:`~environment.schedulers.base.Scheduler`, which serves this cluster only.
    overrun
        What becomes of a job that outruns its requested time: ``keep`` or ``kill``.
    plain
        Run a scheduler of the library in plain Python too, as the reference does; one of your own
        always runs so.
    estimates
        What the scheduler believes of run times: text of ``environment.estimates.parse_estimates``,
        :class:`~environment.estimates.Estimates`, or a predictor, which serves this cluster only.
    name, number, speed
        What users call it, its number in the column CLUSTER, and the speed of its nodes as in
        :class:`ClusterSpec`.
    units
        What users wait for, where there are several clusters.

    Raises
    ------
    QuantityError
        When a choice is not known.
    """

    def __init__(
        self,
        model: Frame,
        jobs: JobTable,
        processors: int,
        scheduler: str | Scheduler = "easy",
        *,
        overrun: Literal["keep", "kill"] = "keep",
        plain: bool = False,
        estimates: str | Estimates | Predictor = "requested",
        name: str = HOME,
        number: int = 0,
        speed: float = 1.0,
        units: UnitTable | None = None,
    ) -> None:
        super().__init__(model)
        if processors < 1:
            raise QuantityError(f"processors {processors}: a cluster needs at least 1")
        if overrun not in ("keep", "kill"):
            raise QuantityError(f"overrun {overrun!r}: not known; choose keep or kill")
        self.jobs = jobs
        self.name = name
        self.number = number
        self.speed = speed
        self.processors = processors
        self.scheduler = str(scheduler)
        self.overrun = overrun
        self.engine = _engine(
            jobs,
            processors,
            scheduler,
            plain,
            kill=overrun == "kill",
            estimates=parse_estimates(estimates) if isinstance(estimates, str) else estimates,
            number=number,
            speed=speed,
            units=units,
        )

    def __repr__(self) -> str:
        return f"<Cluster {self.name} of {self.processors:,} processors under {self.scheduler}>"

    @property
    def free(self) -> int:
        """Processors without a job."""
        return self.engine.free

    @property
    def waiting(self) -> Int64s:
        """Rows of the jobs in the queue, in its order."""
        return self.engine.waiting

    @property
    def running(self) -> Int64s:
        """Rows of the jobs that run."""
        return self.engine.running

    def submit(self, rows: ArrayLike, at: ArrayLike) -> None:
        """Let jobs arrive at the given seconds (one, or one per job).

        Their run times and requested times become those of this cluster.
        """
        self.engine.submit(rows, at)

    def submit_unit(self, unit: int, at: int) -> None:
        """Let a unit of ``Simulation.own_units`` arrive, its first job at ``at``."""
        self.engine.submit_unit(unit, at)


def _engine(
    jobs: JobTable, processors: int, scheduler: str | Scheduler, plain: bool, **options: Any
) -> Engine:
    policy = parse_scheduler(scheduler) if isinstance(scheduler, str) else scheduler
    if plain or not (policy is None or runs_compiled(policy)):
        return PlainEngine(jobs, processors, policy, **options)
    from environment.compiled import CompiledEngine  # loads the compiler, so only when needed

    return CompiledEngine(jobs, processors, policy, **options)
