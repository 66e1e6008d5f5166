"""The users: a table of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.metrics import bounded_slowdown
from hpcrowd.analysis.views.moment import Moment
from hpcrowd.analysis.views.users import STATES, users_table

if TYPE_CHECKING:
    import pandas as pd

    from hpcrowd.scenarios.inspector.panels.asked import Asked
    from hpcrowd.scenarios.inspector.subjects.course import Course

#: Columns of the page and those of :func:`hpcrowd.views.users_table`.
COLUMNS = {
    "user": "user",
    "state": "state",
    "done": "jobs_done",
    "running": "jobs_running",
    "waiting": "jobs_waiting",
    "wait": "wait_mean_s",
    "slowdown": "slowdown_mean",
    "lateness": "lateness_mean_s",
    "mood": "mood",
    "next": "next_submission_s",
    "behaviour": "behaviour",
    "submits_to": "submits_to",
}


def users_frame(moment: Moment) -> pd.DataFrame:
    """Return the table of users with the mean bounded slowdown of each (``slowdown_mean``)."""
    frame = users_table(moment)
    jobs, rows = moment.jobs, np.flatnonzero(moment.ended)
    numbers = frame["user"].to_numpy(dtype=np.int64)
    place = np.searchsorted(numbers, jobs.user[rows])
    slow = bounded_slowdown(jobs.end[rows] - jobs.submit[rows], jobs.end[rows] - jobs.start[rows])
    count = np.bincount(place, minlength=len(numbers))
    total = np.bincount(place, weights=slow, minlength=len(numbers))
    means = np.divide(total, count, out=np.full(len(numbers), np.nan), where=count > 0)
    return frame.assign(slowdown_mean=means)


def users_panel(course: Course, asked: Asked) -> dict[str, Any]:
    """Return the table of all users, column by column; columns without a value are left out."""
    frame = users_frame(course.moment())
    columns = {
        key: listed(frame[name])
        for key, name in COLUMNS.items()
        if not frame[name].isna().all() or key in ("wait", "slowdown")
    }
    there = dict.fromkeys(frame["state"])
    return {
        "columns": columns,
        "states": {name: words for name, words in STATES.items() if name in there},
    }


def listed(column: pd.Series[Any]) -> list[Any]:
    """Return a column as a list in which missing values are None."""
    return [
        None if missing else value
        for value, missing in zip(column.tolist(), column.isna().tolist(), strict=True)
    ]
