"""Earlier runs of jobs that were run again, as a log has them.

The fields of a job in a trace are those of its last run, from its first submission on. The runs
before that, which a failure, a preemption or an operator ended, are in a column of
:attr:`hpcrowd.environment.traces.trace.Trace.extra`, as texts such as ``60:3949:3949:1:REQUEUED``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import TraceError, echo
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.traces.trace import Trace

#: The column.
COLUMN = "runs"

_RUN = re.compile(r"(\d{1,15}):(\d{1,15}):(\d{1,15}):(\d{1,10}):(\w*)", re.ASCII)


class EarlierRun(NamedTuple):
    """A run after which a job was run again; times in s after the first submission of the job."""

    start: int
    end: int
    again: int  #: when the job was submitted again; its next wait counts from here
    processors: int
    state: str  #: final state as the resource manager calls it

    @property
    def processor_seconds(self) -> int:
        """Lost processor-seconds."""
        return (self.end - self.start) * self.processors


Runs = tuple[EarlierRun, ...]


def in_order(runs: Iterable[EarlierRun], submit: int = 0) -> Runs:
    """Return runs with times after ``submit``, none of which begins before the last one is over."""
    found: list[EarlierRun] = []
    since = 0
    for run in sorted(runs):
        start = max(run.start - submit, since)
        end = max(run.end - submit, start)
        since = max(run.again - submit, end)
        found.append(run._replace(start=start, end=end, again=since))
    return tuple(found)


def text_of(runs: Runs) -> str:
    """Return runs as a text for :data:`COLUMN`."""
    return " ".join(":".join(map(str, run)) for run in runs)


def earlier_runs(trace: Trace) -> dict[int, Runs]:
    """Return the earlier runs of the jobs that have any, by row.

    Raises
    ------
    TraceError
        If a text says something else.
    """
    texts: NDArray[np.object_] = trace.extra.get(COLUMN, np.zeros(0, np.object_))
    return {
        row: _runs_in(text, f"{trace.source}: job {trace['number'][row]}")
        for row, text in enumerate(texts.tolist())
        if text
    }


def _runs_in(text: str, where: str) -> Runs:
    found = [_RUN.fullmatch(one) for one in text.split(" ")]
    runs = tuple(
        EarlierRun(int(one[1]), int(one[2]), int(one[3]), int(one[4]), one[5])
        for one in found
        if one is not None
    )
    since = (0, *(run.again for run in runs))
    ordered = (
        at <= run.start <= run.end <= run.again for at, run in zip(since, runs, strict=False)
    )
    if len(runs) < len(found) or not all(ordered):
        raise TraceError(
            f"{where}: {COLUMN} {echo(text)}: must be START:END:AGAIN:PROCESSORS:STATE for each "
            "run, in their order, separated by blanks, in s after the submission; correct it or "
            "remove the column"
        )
    return runs


def of_jobs(trace: Trace, source_row: Int64s) -> dict[int, Runs]:
    """Return the earlier runs by row of a table, given the row of each job in the log, or -1."""
    known = earlier_runs(trace)
    if not known:
        return {}
    rows = np.flatnonzero(np.isin(source_row, list(known)) & (source_row != UNKNOWN))
    return {row: known[int(source_row[row])] for row in rows.tolist()}
