"""The cluster as a Mesa agent: processors, a scheduler, and the engine that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import mesa
from numpy.typing import ArrayLike

from environment.engine import Engine
from environment.errors import QuantityError
from environment.jobs import Int64s, JobTable
from environment.plain import PlainEngine
from environment.schedulers import SCHEDULER_NAMES, SCHEDULERS, Scheduler

if TYPE_CHECKING:
    from environment.frame import Frame


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
        A name of ``environment.schedulers.SCHEDULER_NAMES``, or a
        :class:`~environment.schedulers.Scheduler`.
    overrun
        What becomes of a job that outruns its requested time: ``keep`` or ``kill``.
    plain
        Run the named scheduler in plain Python too, as the reference does.

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
    ) -> None:
        super().__init__(model)
        if processors < 1:
            raise QuantityError(f"processors {processors}: a cluster needs at least 1")
        if overrun not in ("keep", "kill"):
            raise QuantityError(f"overrun {overrun!r}: not known; choose keep or kill")
        self.jobs = jobs
        self.processors = processors
        self.scheduler = scheduler if isinstance(scheduler, str) else scheduler.name
        self.overrun = overrun
        self.engine = _engine(jobs, processors, scheduler, overrun == "kill", plain)

    def __repr__(self) -> str:
        return f"<Cluster of {self.processors:,} processors under {self.scheduler}>"

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
        """Let jobs arrive at the given seconds."""
        self.engine.submit(rows, at)


def _engine(
    jobs: JobTable, processors: int, scheduler: str | Scheduler, kill: bool, plain: bool
) -> Engine:
    if isinstance(scheduler, Scheduler):
        return PlainEngine(jobs, processors, scheduler, kill=kill)
    if scheduler not in SCHEDULER_NAMES:
        raise QuantityError(
            f"scheduler {scheduler!r}: not known; choose {', '.join(SCHEDULER_NAMES)} "
            "or give a Scheduler"
        )
    if plain:
        policy = None if scheduler == "recorded" else SCHEDULERS[scheduler]()
        return PlainEngine(jobs, processors, policy, kill=kill)
    from environment.compiled import CompiledEngine  # loads the compiler, so only when needed

    return CompiledEngine(jobs, processors, scheduler, kill=kill)
