"""A cluster as a Mesa agent: processors, a scheduler, and the engine that runs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, override

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.environment.engine.base import Engine
from hpcrowd.environment.engine.passes.base import runs_compiled
from hpcrowd.environment.engine.public_state import PublicState, public_state
from hpcrowd.environment.errors import (
    FixedError,
    QuantityError,
    SchedulerError,
    SimulationError,
    check_choice,
    echo,
)
from hpcrowd.environment.frame import Frame, mesa
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable, State
from hpcrowd.environment.limits.numbers import (
    LEAST_SPEED,
    MOST_PROCESSORS,
    MOST_SPEED,
    check_within,
)
from hpcrowd.environment.quantities import notebook_table, plural
from hpcrowd.environment.schedulers.base import Scheduler, WaitingReason
from hpcrowd.environment.schedulers.estimates import Estimates, Predictor, parse_estimates
from hpcrowd.environment.schedulers.names import own_scheduler, scheduler_for

if TYPE_CHECKING:
    from hpcrowd.environment.engine.attempts import Attempt
    from hpcrowd.environment.engine.units import UnitTable


#: Name of the first cluster.
HOME = "home"


@dataclass(frozen=True)
class ClusterSpec:
    """Description of a cluster.

    Attributes
    ----------
    processors
        Its size; larger jobs are rejected when they are submitted to it.
    scheduler
        Text of ``hpcrowd.environment.schedulers.names.parse_scheduler``, or a
        :class:`~hpcrowd.environment.schedulers.base.Scheduler`, which serves this cluster only.
    speed
        Speed of its nodes relative to the first cluster: the run times of jobs submitted to it are
        divided by this, rounded half up, at least 1 s; requested times likewise.
    estimates
        The run times that its scheduler expects: text of
        ``environment.schedulers.estimates.parse_estimates``,
        :class:`Estimates`, or a predictor, which serves this cluster only
        and learns from the jobs that ran on it. Not for the recorded schedule, which uses none.

    Raises
    ------
    QuantityError
        If the speed is not positive.
    """

    processors: int
    scheduler: str | Scheduler = "easy"
    speed: float = 1.0
    estimates: str | Estimates | Predictor = "requested"

    def __post_init__(self) -> None:
        if isinstance(self.scheduler, type):
            object.__setattr__(self, "scheduler", own_scheduler(self.scheduler))
        # Of two clusters, one may be as slow and the other as fast as can be.
        check_within("speed", self.speed, LEAST_SPEED / MOST_SPEED, MOST_SPEED / LEAST_SPEED)


_PLATFORM = "give Simulation(parts=[Platform([{}])]), or --platform FILE, for a change in the run"
_SPEC = "make the cluster with another one"

#: Attributes that are set once, and how to change what they say.
FIXED = {
    "processors": _PLATFORM.format("Resize(second, processors)"),
    "scheduler": _PLATFORM.format("SwitchPolicy(second, scheduler)"),
    "speed": _PLATFORM.format("SpeedChange(second, factor)"),
    **dict.fromkeys(("name", "number", "overrun", "jobs"), _SPEC),
}


class Place(Protocol):
    """Where users may submit jobs to."""

    name: str
    number: int

    @property
    def waiting(self) -> Int64s:
        """Rows of the jobs that wait here."""

    def submit(self, rows: ArrayLike, at: ArrayLike) -> None:
        """Let jobs arrive at the given seconds (one, or one per job)."""

    def submit_again(self, rows: Int64s, at: ArrayLike) -> None:
        """Submit jobs again that were stopped."""

    def submit_unit(self, unit: int, at: int) -> None:
        """Submit a unit of ``Simulation.own_units``, with its first job at a given second."""

    def cancel(self, rows: ArrayLike) -> None:
        """Take jobs back that wait or run here, or were submitted for later."""

    def take_out(self, rows: Int64s) -> None:
        """Take jobs back, of which nobody is notified yet."""

    def withdraw(self, rows: Int64s) -> None:
        """Let jobs not arrive that were submitted for later."""

    @property
    def jobs(self) -> JobTable:
        """The table of jobs."""

    def look(self) -> PublicState:
        """Return what anyone may see of it now, such as the length of its queue."""

    def reasons(self) -> Iterable[WaitingReason]:
        """Return why each job that waits here waits now."""

    def check_none_lost(self) -> None:
        """Check, at the end of the run, that no job was left waiting."""


class Cluster(mesa.Agent):  # type: ignore[misc]
    """A batch-scheduled cluster.

    Parameters
    ----------
    model
        The simulation it is part of.
    jobs
        The table of jobs.
    spec
        Its description.
    overrun
        What happens to a job that outruns its requested time: ``keep`` or ``kill``.
    plain
        Run a scheduler of the library, but for ``slurm``, in plain Python, like the reference
        engine; your own schedulers always run like that.
    name, number
        Its name, and its number in the column CLUSTER.
    units
        The units that users wait for, shared between several clusters.

    Attributes
    ----------
    estimates
        The run times that its scheduler expects.
    together
        Whether several clusters, or a broker, count the jobs that users wait for.

    Raises
    ------
    QuantityError
        If a choice is not known, or does not go with the parts of the run.
    """

    def __init__(
        self,
        model: Frame,
        jobs: JobTable,
        spec: ClusterSpec,
        overrun: Literal["keep", "kill"] = "keep",
        plain: bool = False,
        name: str = HOME,
        number: int = 0,
        units: UnitTable | None = None,
    ) -> None:
        super().__init__(model)
        processors, scheduler, estimates = spec.processors, spec.scheduler, spec.estimates
        check_within("processors", processors, 1, MOST_PROCESSORS)
        check_choice("overrun", overrun, ("keep", "kill"))
        self.jobs = jobs
        self.name = name
        self.number = number
        self.speed = spec.speed
        self.processors = processors
        self.scheduler = str(scheduler)
        self.overrun = overrun
        self.together = units is not None
        self.estimates = parse_estimates(estimates) if isinstance(estimates, str) else estimates
        given = None if scheduler is None else scheduler_for(scheduler, jobs.names)
        policy = None if given is None else given.at_first(self)
        for part in model.parts.at("policy"):
            policy = part.policy(self, policy)
        if policy is not None:
            policy.clock = model.clock
            policy.check_ready()
        needs = [part.needs_plain(self, policy) for part in model.parts.at("needs_plain")]
        self.engine = _engine(
            jobs,
            processors,
            policy,
            plain or any(needs),
            kill=overrun == "kill",
            estimates=self.estimates,
            number=number,
            speed=spec.speed,
            units=units,
        )
        #: Submit jobs; their run times and requested times become those of this cluster.
        self.submit, self.submit_again = self.engine.submit, self.engine.submit_again
        #: Submits a unit of ``Simulation.own_units``, with its first job at a given second.
        self.submit_unit = self.engine.submit_unit
        #: Lets jobs not arrive that were submitted for later.
        self.withdraw = self.engine.withdraw
        if given is not None:
            given.take_charge(self)
        for part in model.parts.at("equip"):
            part.equip(self)

    @override
    def __setattr__(self, name: str, value: object) -> None:
        if name in FIXED and name in vars(self):
            raise FixedError(
                f"{name} = {echo(value)} of {self!r}: does not change by assignment; {FIXED[name]}"
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"<Cluster {self.name} of {self.processors:,} processors under {self.scheduler}>"

    def _repr_html_(self) -> str:
        """Return a table of its present state, for notebooks."""
        rows = [
            ("processors", f"{self.processors:,}"),
            ("free", f"{self.free:,}"),
            ("scheduler", self.scheduler),
            ("jobs running", f"{len(self.running):,}"),
            ("jobs waiting", f"{len(self.waiting):,}"),
            ("second", f"{self.engine.now:,}"),
        ]
        return notebook_table(f"cluster {self.name}", rows)

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
        """Rows of the running jobs."""
        return self.engine.running

    def look(self) -> PublicState:
        """Return what anyone may see of it now, such as the length of its queue."""
        return public_state((self.engine,))

    def reasons(self) -> Iterable[WaitingReason]:
        """Return why each job that waits here waits now, in the order of the scheduler's queue."""
        from hpcrowd.environment.waiting_reasons import reasons_at_cluster

        return reasons_at_cluster(self)

    def cancel(self, rows: ArrayLike) -> None:
        """Take jobs back that wait or run here, or were submitted for later.

        Those that wait or run become ``cancelled``, with the present second as their end; a running
        job stops now. Those that are still to come become ``renounced``. The scheduler gets another
        pass, and users whose units are over with this are notified, both within the same second.
        Schedulers with a plan lay it out anew.

        Parameters
        ----------
        rows
            Rows in the table of jobs. ``Simulation.cancel`` takes jobs back wherever they are.

        Raises
        ------
        SimulationError
            If a job is not here, or over.
        """
        found = to_take_back(self.jobs, rows, self.number, self.name)
        if len(found):
            self.take_out(found)
            self.model.on_taken_back(found)

    def take_out(self, rows: Int64s) -> None:
        """Take jobs back, of which nobody is notified yet."""
        for part in self.model.parts.at("take_back"):
            rows = part.take_back(rows)
        self.engine.cancel(rows)

    @property
    def held(self) -> dict[int, str]:
        """Which jobs are submitted but not in the queue yet, and what holds them, by row."""
        found: dict[int, str] = {}
        for part in self.model.parts.at("held"):
            found |= part.held(self)
        return found

    @property
    def attempts(self) -> Sequence[Attempt]:
        """Runs of jobs that changes of the platform or preemption stopped, in order."""
        return self.engine.attempts

    def check_none_lost(self) -> None:
        """Check, at the end of the run, that the scheduler left no job waiting.

        It may hold jobs back for maintenance, or behind a job too large for the processors that
        are up.

        Raises
        ------
        SchedulerError
            Names the scheduler and the first such job.
        """
        engine = self.engine
        if engine.scheduler is None or engine.closed or engine.windows or engine.scheduler.nodes:
            return  # on a machine of nodes, limits and reservations may keep jobs for ever
        lost = engine.waiting
        if len(lost) and np.all(self.jobs.processors[lost] <= engine.up):
            row = int(lost[0])
            raise SchedulerError(
                f"{engine.scheduler.name}: {plural(len(lost), 'job')} left waiting at "
                f"{engine.now} s, the end of the run; the first in row {row} needs "
                f"{self.jobs.processors[row]} processors, {engine.free} are free; select() must "
                "name each job at some time, or wake() must return when to call it again"
            )


def to_take_back(jobs: JobTable, rows: ArrayLike, place: int, name: str) -> Int64s:
    """Return the rows of jobs that are to be taken back, in order.

    Raises
    ------
    SimulationError
        If one of them is over, was never submitted, or is not at the cluster with this number.
    """
    found = np.unique(np.atleast_1d(np.asarray(rows)).astype(np.int64))
    if len(found) and not 0 <= found[0] <= found[-1] < len(jobs):
        raise SimulationError(f"rows {found[0]} to {found[-1]}: the table has {len(jobs)} jobs")
    for row in found.tolist():
        state = State(jobs.state[row])
        if state != State.UNFINISHED:
            raise SimulationError(
                f"cancel job {jobs.number[row]} (row {row}): it is {state.name.lower()}; only jobs "
                "that wait, run or are still to come can be taken back"
            )
        if jobs.submit[row] == UNKNOWN:
            raise SimulationError(
                f"cancel job {jobs.number[row]} (row {row}): never submitted; to leave it out, "
                "remove its session from the graph of its user, or renounce it in a reaction"
            )
        if jobs.cluster[row] != place:
            raise SimulationError(
                f"cancel job {jobs.number[row]} (row {row}): not at {name}; "
                "Simulation.cancel(rows) takes jobs back wherever they are"
            )
    return found


def _engine(
    jobs: JobTable, processors: int, policy: Scheduler | None, plain: bool, **options: Any
) -> Engine:
    estimates = options["estimates"]
    if policy is None and isinstance(estimates, Predictor):
        raise QuantityError(
            f"estimates {estimates.name}: the recorded schedule uses no predictions; choose a "
            "scheduler, or use `hpcrowd predict` to evaluate predictions of a recorded trace"
        )
    if policy is not None and policy.compiled_only:
        plain = False
    if plain or not (policy is None or runs_compiled(policy)):
        from hpcrowd.environment.engine.plain import PlainEngine

        return PlainEngine(jobs, processors, policy, **options)
    from hpcrowd.environment.engine.compiled import CompiledEngine

    return CompiledEngine(jobs, processors, policy, **options)
