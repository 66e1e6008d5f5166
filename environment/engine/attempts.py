"""Runs of jobs that were stopped before their end, by changes of the platform or preemption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, get_type_hints

from hpcrowd.environment.jobs import JobTable


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
    cause: Annotated[str, "what stopped it: down, failure, maintenance, power or preempted"]
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
