"""Runs of jobs that were stopped before their end: by changes, preemption, or as in a record.

The table of jobs has the last run of each job; :func:`runs_of` returns all runs, each once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, NamedTuple, get_type_hints

import numpy as np

from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State

#: The cause of a run that ended in the record, after which the job was run again.
RECORDED = "recorded"


@dataclass(frozen=True)
class Attempt:
    """A run of a job that was stopped."""

    row: Annotated[int, "row of the job in the table of jobs"]
    number: Annotated[int, "job number, as in the table of jobs"]
    cluster: Annotated[int, "cluster it ran on, as in the table of jobs"]
    submit: Annotated[int, "s since the origin; submission that the run followed"]
    start: Annotated[int, "s since the origin; when the run began"]
    end: Annotated[int, "s since the origin; when it was stopped"]
    processors: Annotated[int, "processors that it held"]
    cause: Annotated[
        str, "what stopped it: down, failure, maintenance, power, preempted or recorded"
    ]
    fate: Annotated[str, "what happened to the job then: requeue, resubmit or fail"]

    @property
    def processor_seconds(self) -> int:
        """Lost processor-seconds."""
        return (self.end - self.start) * self.processors


#: The meaning and unit of each column of ``attempts.parquet``.
MEANING: dict[str, str] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Attempt, include_extras=True).items()
}


def attempt_of(jobs: JobTable, row: int, now: int, cause: str, fate: str) -> Attempt:
    """Return the run of a job that is stopped now."""
    columns = (jobs.number, jobs.cluster, jobs.submit, jobs.start)
    number, cluster, submit, start = (int(column[row]) for column in columns)
    held = int(jobs.processors[row])
    return Attempt(row, number, cluster, submit, start, now, held, cause, fate)


class Runs(NamedTuple):
    """All runs of some jobs, each once."""

    #: A row for the last run of each job, or for its wait for it, and then one for each run that
    #: was stopped and is not the last, in the state FAILED. ``submit`` is when the wait for this
    #: run began, whatever the job did before.
    table: JobTable
    row: Int64s  #: row of the job in the table of jobs
    stopped: list[Attempt]  #: those of the last rows, in order


def runs_of(jobs: JobTable, attempts: Iterable[Attempt], rows: Int64s | None = None) -> Runs:
    """Return all runs of jobs, each once, whether they are in the table or were stopped before.

    Parameters
    ----------
    jobs
        The table.
    attempts
        Runs that were stopped. Of a job that failed for good, the last one is in the table too.
    rows
        The jobs whose last run, or wait, counts; None for all. The table of a job that no change
        or preemption stopped is not copied then.
    """
    stopped = sorted(
        (one for one in attempts if one.fate != "fail"), key=lambda one: (one.row, one.start)
    )
    last = np.arange(len(jobs)) if rows is None else rows
    if not stopped:
        return Runs(jobs if rows is None else jobs.take(rows), last, stopped)
    row, submit, start, end, processors, cluster = np.array(
        [(o.row, o.submit, o.start, o.end, o.processors, o.cluster) for o in stopped], np.int64
    ).T
    again = np.full(len(jobs), UNKNOWN)
    again[row] = end  # of the last one, as they are in order
    before = np.where(row[1:] == row[:-1], end[:-1], UNKNOWN)
    every = np.concatenate([last, row])
    table = jobs.take(every)
    came = table.submit != UNKNOWN
    table.submit[:] = np.where(came, np.maximum(table.submit, again[every]), UNKNOWN)
    tail = slice(len(last), None)
    table.submit[tail] = since = np.maximum(submit, np.append(UNKNOWN, before))
    # A run that was to begin when nodes were on may have been stopped before.
    table.start[tail], table.end[tail] = np.minimum(start, end), end
    table.paused[tail] = UNKNOWN
    table.processors[tail], table.cluster[tail] = processors, cluster
    queued = table.enqueued[tail]
    table.enqueued[tail] = np.where(queued < start, queued, since)
    table.column(Column.STATE)[tail] = State.FAILED
    return Runs(table, every, stopped)
