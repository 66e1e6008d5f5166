"""Some of the jobs of a trace, with everything that belongs to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from environment.jobs import UNKNOWN, Int64s
from environment.trace import Trace, smallest


def take_jobs(trace: Trace, rows: Int64s | NDArray[np.bool_]) -> Trace:
    """Return a trace of some jobs, unchanged and in their order.

    Header and line ends stay; a comment among the jobs stays before the next job that is kept.

    Parameters
    ----------
    trace
        All jobs.
    rows
        Which of them: their places in ascending order, or for each whether it stays, shape (jobs,).
    """
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    columns = {name: smallest(values[rows]) for name, values in trace.columns.items()}
    extra = {name: values[rows] for name, values in trace.extra.items()}
    comments = [(int(np.searchsorted(rows, job)), line) for job, line in trace.comments]
    return replace(trace, columns=columns, extra=extra, comments=comments, sha256="")


def cut_references(whole: Trace, part: Trace) -> tuple[Trace, int]:
    """Return ``part`` without references to jobs that only ``whole`` has, and how many there were.

    Where the preceding job (field 17) is gone it becomes -1, and so does the think time since its
    end (field 18). References that led nowhere before stay.
    """
    preceding = part["preceding"]
    lost = np.isin(preceding, whole["number"]) & ~np.isin(preceding, part["number"])
    lost &= preceding != UNKNOWN
    if not lost.any():
        return part, 0
    changed: dict[str, NDArray[Any]] = {
        name: smallest(np.where(lost, UNKNOWN, part[name])) for name in ("preceding", "think_time")
    }
    return replace(part, columns=part.columns | changed), int(np.count_nonzero(lost))
