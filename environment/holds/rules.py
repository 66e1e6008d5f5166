"""What holds jobs back after their submission, before they count as waiting in the queue.

A job is *eligible* when it could start if there were room: all jobs that it depends on are over as
it asked, its earliest start has come, and its array has fewer tasks in the queue and on the machine
than its throttle allows. A policy that waits for clean or cheap energy then chooses when it joins
the queue. :class:`Again` is a job that is run again as recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, State
from hpcrowd.environment.quantities import time_at_speed
from hpcrowd.environment.traces.formats.common.site_columns import Runs

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster  # circle: for its type only
    from hpcrowd.environment.simulation import Simulation  # circle: for its type only


class Condition(StrEnum):
    """How a job must be over for one that depends on it (man page of ``sbatch``, --dependency)."""

    ANY = "afterany"  #: in any way
    OK = "afterok"  #: with success
    NOT_OK = "afternotok"  #: without


class Parent(NamedTuple):
    """A job that another one depends on."""

    row: int
    condition: Condition


def account_of(
    held: Int64s,
    causes: Mapping[str, int] | None = None,
    *,
    never: int = 0,
    notes: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return how many jobs were held, for how long, s, and why, fit for JSON.

    ``causes`` has the number of jobs by the cause that held them last, ``notes`` that of rules that
    could not be taken as they are, by reason; ``never`` jobs were taken back because they could
    never be eligible.
    """
    return {
        "jobs_held": len(held) + never,
        "held_mean_s": float(held.mean()) if len(held) else None,
        "causes": dict(causes or {}),
        "jobs_never_eligible": never,
        "notes": dict(sorted((notes or {}).items())),
    }


class Cause(StrEnum):
    """Why a job was held."""

    DEPENDENCY = "dependency"
    SINGLETON = "singleton"
    THROTTLE = "throttle"
    BEGIN = "earliest start or hold"
    AGAIN = "run that ended, until it is run again"
    CLEAN = "window of clean energy"
    CHEAP = "window of cheap energy"
    SITE = "delay as in the site's record"


class Window(Protocol):
    """Chooses when jobs join the queue that nothing else holds.

    Attributes
    ----------
    cause
        Why they are held until then.
    """

    cause: Cause

    def starts(
        self, users: Sequence[int], requested: Sequence[int], at: Sequence[int]
    ) -> list[int]:
        """Return the second for each job, ``at`` or later.

        Parameters
        ----------
        users, requested, at
            For each job its user, its requested time, s, and since when nothing else holds it.
        """


@dataclass
class Rules:
    """What holds the jobs of a table; by row."""

    delay: Int64s  #: earliest start, s after the submission; 0 for none, shape (jobs,)
    #: Whether jobs fail in the record, and so again if they run to their end, shape (jobs,).
    failed: NDArray[np.bool_]
    #: The jobs that a job depends on.
    parents: Mapping[int, tuple[Parent, ...]] = field(default_factory=dict)
    either: frozenset[int] = frozenset()  #: jobs for which one of their parents is enough
    #: The array of each task of an array with a throttle.
    array: Mapping[int, int] = field(default_factory=dict)
    #: Most tasks of each array that are eligible at a time.
    throttle: Mapping[int, int] = field(default_factory=dict)
    #: Jobs of a user with one name, of which some are singletons: the number of these two.
    name_of: Mapping[int, int] = field(default_factory=dict)
    #: Jobs that wait for all earlier ones of their user with their name.
    singletons: frozenset[int] = frozenset()
    #: Chooses when jobs join the queue that nothing else holds, also those that are added to the
    #: table later; None for at once.
    window: Window | None = None
    #: The earlier runs of jobs that were run again in the record, and are so again; their lengths
    #: are those at the speed of the nodes.
    runs: Mapping[int, Runs] = field(default_factory=dict)
    #: Numbers of jobs whose rules could not be taken as they are, by reason.
    notes: Counter[str] = field(default_factory=Counter)

    @classmethod
    def none(cls, jobs: int) -> Self:
        """Return rules that hold none of the jobs of a table."""
        return cls(np.zeros(jobs, np.int64), np.zeros(jobs, np.bool_))

    def __bool__(self) -> bool:
        return self.holding or bool(self.runs)

    @property
    def holding(self) -> bool:
        """Whether jobs may be held before their first run."""
        return self.window is not None or bool(self.concerned.any())

    @property
    def concerned(self) -> NDArray[np.bool_]:
        """The jobs whose submission matters but for the window, shape (jobs,)."""
        found: NDArray[np.bool_] = self.delay > 0
        for rows in (self.parents, self.array, self.name_of):
            found[list(rows)] = True
        return found

    @property
    def awaited(self) -> list[int]:
        """The jobs whose end matters to others, in order."""
        found = {parent.row for parents in self.parents.values() for parent in parents}
        return sorted(found | set(self.array) | set(self.name_of) | set(self.runs))


#: Columns of the table that a new run sets.
OF_A_RUN = (Column.START, Column.END, Column.ENQUEUED, Column.ESTIMATE, Column.PROMISED)


class Again:
    """A job that is run again as recorded; while it runs, the table has the length of that run.

    On a machine of nodes it is admitted again, as a new submission is. A limit on the jobs that are
    submitted may thus reject it; Slurm would keep it.

    Parameters
    ----------
    model, row
        The simulation, and the job.
    runs
        Its earlier runs.
    """

    def __init__(self, model: Simulation, row: int, runs: Runs) -> None:
        self._model, self._row, self._place = model, row, 0
        self._runs, self._stopped = runs, False
        self._since: int | None = None  # submission for the present run, None for the first
        jobs = self._jobs = model.jobs
        self._last = int(jobs.run_time[row]), int(jobs.recorded_start[row])
        self._processors = int(jobs.processors[row])  # a machine of nodes may give it more
        self._as_recorded = model.cluster.engine.scheduler is None
        jobs.run_time[row] = self._length
        self._wait_as_recorded(int(jobs.recorded_submit[row]), int(jobs.recorded_submit[row]))

    @property
    def cluster(self) -> Cluster:
        """Where it runs."""
        clusters = list(self._model.clusters.values())
        return clusters[int(self._jobs.cluster[self._row])]

    @property
    def _length(self) -> int:
        """The length of the present run before it is divided by the speed of a cluster, s."""
        if self._place == len(self._runs):
            return self._last[0]
        return self._runs[self._place].end - self._runs[self._place].start

    def _wait_as_recorded(self, first: int, arrival: int) -> None:
        """Let the present run begin as long after the first submission as recorded, if it can.

        Only if the schedule is the recorded one: it starts jobs their recorded wait after they
        arrive.
        """
        if not self._as_recorded:
            return
        submit = int(self._jobs.recorded_submit[self._row])
        over = self._place == len(self._runs)
        after = self._last[1] - submit if over else self._runs[self._place].start
        self._jobs.recorded_start[self._row] = submit + max(first + after - arrival, 0)

    def stop(self, now: int) -> bool:
        """Note that a run has ended now; return whether the job is run again."""
        jobs, row = self._jobs, self._row
        if self._place == len(self._runs) or jobs.state[row] != State.COMPLETED:
            return False
        since = int(jobs.submit[row]) if self._since is None else self._since
        self.cluster.engine.note_recorded(row, since, now)
        jobs.column(Column.STATE)[row] = State.FAILED
        self._stopped = True
        return True

    def begin(self) -> int:
        """Let it wait for the next run; return when it is submitted again."""
        jobs, row, engine = self._jobs, self._row, self.cluster.engine
        before, over = self._runs[self._place], int(jobs.end[row])
        self._place += 1
        self._since = over + before.again - before.end
        self._forget()
        length = self._length
        if engine.speed != 1:
            length = int(time_at_speed(np.array([length]), engine.speed)[0])
        jobs.run_time[row] = length
        if engine.scheduler is not None and engine.scheduler.nodes:
            jobs.processors[row] = self._processors
        if engine.work is not None:
            engine.work[row] = length
        arrival = max(self._since, over + 1)
        self._wait_as_recorded(int(jobs.submit[row]), arrival)
        return arrival

    def _forget(self) -> None:
        """Forget the run that ended, of which the scheduler has heard."""
        jobs, row = self._jobs, self._row
        for column in OF_A_RUN:
            jobs.matrix[column, row] = UNKNOWN
        jobs.column(Column.STATE)[row] = State.UNFINISHED
        self._stopped = False

    def restore(self) -> None:
        """Put what was recorded back into the table, when the run of the simulation is over."""
        if self._stopped:
            self._forget()
        if self._as_recorded:
            self._jobs.recorded_start[self._row] = self._last[1]
