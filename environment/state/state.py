"""The state of a cluster at one second, with what is known of the time before.

Nothing in a :class:`ClusterState` is known only later: jobs that wait have no start, and jobs that
run have no end and no run time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.environment.clock import Clock, moment
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.jobs import State as Outcome
from hpcrowd.environment.machine.past import Placed

if TYPE_CHECKING:
    from hpcrowd.environment.simulation import Simulation

#: Why jobs wait that something else than the scheduler holds back.
HELD_BACK = "not eligible yet: {}"


@dataclass
class ClusterState:
    """A cluster at one second.

    Attributes
    ----------
    jobs
        All jobs that had been submitted until then, with their recorded times: of those that are
        over all three, of those that run submission and start, of those that wait the submission;
        the others, and the run times that follow from them, are -1.
    now
        The second, s since the origin of the clock.
    clock
        Local time.
    processors
        Size of the machine.
    down
        Processors that are down now.
    closed
        Announced times in which no job may run, from and to, s since the origin.
    source
        Where it comes from, for messages.
    lines
        Line of its file in which each job stands, shape (jobs,), for messages, 0 for none; None if
        it comes from no file.
    held
        Rows of waiting jobs that will not start by themselves, and the reason in the words of the
        resource manager: held by somebody, waiting for another job, asking for the impossible.
    placed
        On a machine of nodes, what is known of jobs beyond the table, by row: partition and nodes
        of those that run, earliest start and reason of those that wait.
    partitions
        Names of the partitions of the machine; empty if they are not known.
    notes
        What reading dropped, repaired or assumed, one line each.
    """

    jobs: JobTable
    now: int
    clock: Clock
    processors: int
    down: int = 0
    closed: tuple[tuple[int, int], ...] = ()
    source: str = "state"
    lines: Int64s | None = field(default=None, repr=False, compare=False)
    held: dict[int, str] = field(default_factory=dict)
    placed: dict[int, Placed] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<ClusterState at {moment(self.clock, self.now)}: {len(self.running):,} running, "
            f"{len(self.waiting):,} waiting, {len(self.over):,} over>"
        )

    @property
    def running(self) -> Int64s:
        """Rows of the jobs that run."""
        jobs = self.jobs
        runs = (jobs.recorded_start != UNKNOWN) & (jobs.recorded_end == UNKNOWN)
        return np.flatnonzero(runs)

    @property
    def waiting(self) -> Int64s:
        """Rows of the jobs that wait, by submission."""
        jobs = self.jobs
        waits = np.flatnonzero((jobs.recorded_start == UNKNOWN) & (jobs.recorded_end == UNKNOWN))
        ordered: Int64s = waits[np.lexsort((waits, jobs.recorded_submit[waits]))]
        return ordered

    @property
    def over(self) -> Int64s:
        """Rows of the jobs that are over."""
        return np.flatnonzero(self.jobs.recorded_end != UNKNOWN)

    @classmethod
    def of(
        cls,
        jobs: JobTable,
        now: int,
        clock: Clock,
        processors: int,
        *,
        simulated: bool = False,
        source: str = "state",
    ) -> ClusterState:
        """Return the state at a second of a record, or of a run.

        What happens in that very second has happened: a job that ends then is over, one that is
        submitted then waits unless it starts.

        Parameters
        ----------
        jobs
            The whole record; what comes later is left out.
        now
            The second, s since the origin.
        clock, processors, source
            See the class.
        simulated
            Take the simulated times instead of the recorded ones.

        Raises
        ------
        QuantityError
            If no job had been submitted until then.
        """
        submit, start, end = (
            (jobs.submit, jobs.start, jobs.end)
            if simulated
            else (jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end)
        )
        if simulated:  # a rejected job has no end, and is over at once
            end = np.where(jobs.state == Outcome.REJECTED, submit, end)
        rows = np.flatnonzero((submit != UNKNOWN) & (submit <= now))
        if not len(rows):
            raise QuantityError(
                f"{source} at {moment(clock, now)}: no job had been submitted; choose a later time"
            )
        known = jobs.take(rows)
        known.erase_outcome()
        start = np.where(start[rows] > now, UNKNOWN, start[rows])
        end = np.where(end[rows] > now, UNKNOWN, end[rows])
        known.recorded_submit[:] = submit[rows]
        known.recorded_start[:], known.recorded_end[:] = start, end
        known.run_time[end == UNKNOWN] = UNKNOWN
        return cls(known, now, clock, processors, source=source)

    @classmethod
    def of_simulation(cls, simulation: Simulation, *, source: str = "simulation") -> ClusterState:
        """Return the state of a simulation now, between two calls of ``run``.

        It has the jobs of the first cluster with their simulated times as recorded ones; those that
        users have submitted for later are left out. On a machine of nodes, what runs keeps its
        place. Jobs that are held before they are eligible count as held: what they wait for is not
        part of a state.

        Parameters
        ----------
        simulation
            It is not changed.
        source
            See the class.

        Raises
        ------
        QuantityError
            If no job has been submitted yet.
        """
        cluster, jobs, now = simulation.cluster, simulation.jobs, simulation.time
        engine = cluster.engine
        submit = jobs.submit
        rows = np.flatnonzero(
            (jobs.cluster == cluster.number) & (submit != UNKNOWN) & (submit <= now)
        )
        found = cls.of(
            jobs.take(rows), now, simulation.clock, engine.processors, simulated=True, source=source
        )
        held: dict[int, str] = {}
        for row, cause in cluster.held.items():
            held[int(np.searchsorted(rows, row))] = HELD_BACK.format(cause)
        placed: dict[int, Placed] = {}
        if engine.scheduler is not None and engine.scheduler.nodes:
            policy: Any = engine.scheduler
            runs = {run.row: run for run in policy.ledger}  # of several, the last
            for place in found.running.tolist():
                run = runs[int(rows[place])]
                placed[place] = Placed(run.partition, holding=run.holding)
        return replace(
            found,
            down=engine.processors - engine.uncapped,
            closed=tuple((int(start), int(end)) for start, end in engine.windows),
            held=held,
            placed=placed,
        )
