"""A cluster as a Mesa agent: processors, a scheduler, and the engine that runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import mesa
import numpy as np

from hpcrowd.environment.engine.base import Engine
from hpcrowd.environment.engine.passes.base import compiled_pass, runs_compiled
from hpcrowd.environment.errors import QuantityError, SchedulerError, check_choice
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.schedulers.adaptive import Adaptive
from hpcrowd.environment.schedulers.base import Scheduler
from hpcrowd.environment.schedulers.estimates import Estimates
from hpcrowd.environment.schedulers.names import parse_scheduler
from hpcrowd.environment.schedulers.predictors.base import Predictor, parse_estimates

if TYPE_CHECKING:
    from hpcrowd.environment.engine.units import UnitTable
    from hpcrowd.environment.frame import Frame
    from hpcrowd.environment.platform.changes import Change
    from hpcrowd.environment.platform.timeline import Attempt, Lost, Timeline


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
        Text of ``hpcrowd.environment.schedulers.names.parse_scheduler``, or a
        :class:`~hpcrowd.environment.schedulers.base.Scheduler`, which serves this cluster only.
    speed
        Speed of its nodes where that of the first cluster is 1: jobs submitted to it need their run
        time divided by this, rounded half up, at least 1 s; requested times likewise.
    estimates
        What its scheduler believes of run times: text of
        ``environment.schedulers.predictors.base.parse_estimates``,
        :class:`Estimates`, or a predictor, which serves this cluster only
        and learns from the jobs that ran on it. Not for the recorded schedule, which asks nobody.
    platform
        What changes during the run, see :mod:`hpcrowd.environment.platform.changes`.

    Raises
    ------
    QuantityError
        When the speed is not positive.
    """

    processors: int
    scheduler: str | Scheduler = "easy"
    speed: float = 1.0
    estimates: str | Estimates | Predictor = "requested"
    platform: Sequence[Change] = ()

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
    spec
        What it is like.
    overrun
        What becomes of a job that outruns its requested time: ``keep`` or ``kill``.
    plain
        Run a scheduler of the library in plain Python too, as the reference does; one of your own
        always runs so.
    name, number
        What users call it, and its number in the column CLUSTER.
    units
        What users wait for, where there are several clusters.
    lost
        Hears of jobs that their users have to submit again after such a change.

    Attributes
    ----------
    timeline
        What changes during the run and when; None for nothing.

    Raises
    ------
    QuantityError
        When a choice is not known, or changes cannot be.
    """

    def __init__(
        self,
        model: Frame,
        jobs: JobTable,
        spec: ClusterSpec,
        *,
        overrun: Literal["keep", "kill"] = "keep",
        plain: bool = False,
        name: str = HOME,
        number: int = 0,
        units: UnitTable | None = None,
        lost: Lost,
    ) -> None:
        super().__init__(model)
        processors, scheduler, estimates = spec.processors, spec.scheduler, spec.estimates
        if processors < 1:
            raise QuantityError(f"processors {processors}: a cluster needs at least 1")
        check_choice("overrun", overrun, ("keep", "kill"))
        self.jobs = jobs
        self.name = name
        self.number = number
        self.speed = spec.speed
        self.processors = processors
        self.scheduler = str(scheduler)
        self.overrun = overrun
        policy = parse_scheduler(scheduler) if isinstance(scheduler, str) else scheduler
        adaptive = policy if isinstance(policy, Adaptive) else None
        self.engine = _engine(
            jobs,
            processors,
            policy if adaptive is None else parse_scheduler(adaptive.policies[0]),
            plain or not _changes_compiled(policy, spec.platform),
            kill=overrun == "kill",
            estimates=parse_estimates(estimates) if isinstance(estimates, str) else estimates,
            number=number,
            speed=spec.speed,
            units=units,
        )
        #: Let jobs arrive; their run times and requested times become those of this cluster.
        self.submit, self.submit_again = self.engine.submit, self.engine.submit_again
        #: Lets a unit of ``Simulation.own_units`` arrive, its first job at a second.
        self.submit_unit = self.engine.submit_unit
        self.timeline: Timeline | None = None
        if spec.platform or adaptive is not None:
            from hpcrowd.environment.platform.timeline import Timeline

            self.timeline = Timeline(self.engine, spec.platform, model.streams, lost, adaptive)
            self.engine.timeline = self.timeline

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

    @property
    def attempts(self) -> Sequence[Attempt]:
        """Runs of jobs that changes of the platform stopped, in order."""
        return () if self.timeline is None else self.timeline.attempts

    def account(self, now: int) -> dict[str, Any]:
        """Return what changes of the platform did until ``now``, see ``Timeline.account``."""
        return {} if self.timeline is None else self.timeline.account(now)

    def check_none_lost(self) -> None:
        """Check, when nothing is left to happen, that the scheduler left no job waiting.

        It may hold jobs back for maintenance, and for a job that is too large for what is up.

        Raises
        ------
        SchedulerError
            Names the scheduler and the first such job.
        """
        engine = self.engine
        if engine.scheduler is None or engine.closed or engine.windows:
            return
        lost = engine.waiting
        if len(lost) and np.all(self.jobs.processors[lost] <= engine.up):
            row = int(lost[0])
            raise SchedulerError(
                f"{engine.scheduler.name}: {plural(len(lost), 'job')} left waiting at "
                f"{engine.now} s when nothing is left to happen, the first in row {row} with "
                f"{self.jobs.processors[row]} processors, {engine.free} are free; select() must "
                "name each job some time, or wake() a second to be asked again"
            )


def _engine(
    jobs: JobTable, processors: int, policy: Scheduler | None, plain: bool, **options: Any
) -> Engine:
    estimates = options["estimates"]
    if policy is None and isinstance(estimates, Predictor):
        raise QuantityError(
            f"estimates {estimates.name}: the recorded schedule asks for no predictions; "
            "choose a scheduler, or see how well a recorded trace is predicted: hpcrowd predict"
        )
    if plain or not (policy is None or runs_compiled(policy)):
        from hpcrowd.environment.engine.plain import PlainEngine

        return PlainEngine(jobs, processors, policy, **options)
    from hpcrowd.environment.engine.compiled import CompiledEngine

    return CompiledEngine(jobs, processors, policy, **options)


def _changes_compiled(policy: Scheduler | None, platform: Sequence[Change]) -> bool:
    """Return whether the compiled engine can run all policies through these changes.

    Raises
    ------
    QuantityError
        When the schedule is the recorded one.
    """
    if not platform:
        return True
    if policy is None:
        raise QuantityError(
            "platform changes: the recorded schedule knows no processors; choose a scheduler"
        )
    from hpcrowd.environment.platform.changes import Maintenance, SwitchPolicy

    policies = [policy]
    for change in platform:
        if isinstance(change, SwitchPolicy):
            new = change.scheduler
            made = parse_scheduler(new) if isinstance(new, str) else new
            policies += [] if made is None else [made]
    # An adaptive scheduler's are known by name, so they are all compiled.
    policies = [one for one in policies if not isinstance(one, Adaptive)]
    drains = any(isinstance(change, Maintenance) for change in platform)
    for one in policies:
        if not runs_compiled(one):
            return False
        found = compiled_pass(one) if drains else None
        if found is not None and not found.drains:
            return False
    return True
