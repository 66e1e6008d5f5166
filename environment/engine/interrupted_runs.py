"""What running jobs lost: each run of a job that the platform ended is an attempt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

#: The meaning and unit of each column of ``attempts.parquet``.
MEANING = {
    "row": "row of the job in the table of jobs",
    "number": "job number, as in the table of jobs",
    "cluster": "cluster it ran on, as in the table of jobs",
    "submit": "s since the origin; submission that the run followed",
    "start": "s since the origin; when the run began",
    "end": "s since the origin; when it was stopped",
    "processors": "processors that it held",
    "cause": "what stopped it: down, failure or maintenance",
    "fate": "what became of the job then: requeue, resubmit or fail",
}


@dataclass(frozen=True)
class Attempt:
    """A run of a job that did not come to its end; :data:`MEANING` says what each field holds."""

    row: int
    number: int
    cluster: int
    submit: int
    start: int
    end: int
    processors: int
    cause: str
    fate: str

    @property
    def processor_seconds(self) -> int:
        """Processor-seconds that were lost."""
        return (self.end - self.start) * self.processors


def attempt_columns(attempts: Iterable[Attempt]) -> dict[str, Any]:
    """Return attempts as arrays by column, numbers as int64, words as they are."""
    attempts = list(attempts)
    columns: dict[str, Any] = {}
    for field in fields(Attempt):
        values = [getattr(attempt, field.name) for attempt in attempts]
        columns[field.name] = values if field.name in ("cause", "fate") else np.array(values, int)
    return columns
