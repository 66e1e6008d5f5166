"""Who slows whom: what holds what a waiting job needs, and who delayed whom over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.views.delays import blockers_of, delays_table
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.quantities import format_duration, plural
from hpcrowd.scenarios.inspector.panels.job_stories import why_waited

if TYPE_CHECKING:
    from hpcrowd.scenarios.inspector.panels.asked import Asked
    from hpcrowd.scenarios.inspector.subjects.course import Course

#: Jobs ahead of a waiting one that the page lists.
AHEAD_SHOWN = 50

#: Pairs of users that the page lists; a file has all.
PAIRS_SHOWN = 400

#: The number that stands for nobody: time in which no job held what was waited for.
NOBODY = -1


def blockers_panel(course: Course, asked: Asked) -> dict[str, Any]:
    """Return what holds what the chosen job needs; of one that does not wait, what it does."""
    moment = course.moment()
    jobs = moment.jobs
    rows = np.flatnonzero(jobs.number == (UNKNOWN if asked.job is None else asked.job))
    if not len(rows):
        raise QuantityError(
            f"job {asked.job}: not in this run" if asked.job else "no job is chosen"
        )
    row = int(rows[0])
    if not moment.waiting[row]:
        return {"job": asked.job, "waits": False, "words": _not_waiting(course, row)}
    words = course.reasons([row]).get(row, "")
    # A folder of results has only the name of a custom scheduler, which gives no reasons.
    scheduler = course.scheduler_name if words and course.scheduler_name else ""
    found = blockers_of(moment, row, most=AHEAD_SHOWN, scheduler=scheduler)
    return {
        "job": found.number,
        "user": found.user,
        "waits": True,
        "asked": found.asks,
        "free": found.free,
        "down": found.down,
        "missing": found.missing,
        "held": found.held,
        "words": _sentence(found.number, plural(found.asks, "processor"), words),
        "jobs": [
            {
                "job": one.number,
                "user": one.user,
                "processors": one.processors,
                "end": one.expected_end,
                "counted": one.counted,
                "share": one.share,
            }
            for one in found.running
        ],
        "ahead": [
            {
                "job": one.number,
                "user": one.user,
                "processors": one.processors,
                "start": None if one.start == UNKNOWN else one.start,
                "why": "its reservation is in the way" if one.in_the_way else "ahead in the queue",
            }
            for one in found.ahead
        ],
        "ahead_jobs": found.ahead_jobs,
        "ahead_processors": found.ahead_processors,
        "users": [
            {"user": one.user, "processors": one.counted, "share": one.share, "jobs": one.jobs}
            for one in found.by_user
        ],
    }


def _sentence(job: int, asks: str, reason: str) -> str:
    """Return why a job waits as a sentence; most reasons say themselves what it requests."""
    if reason.startswith("requests"):
        return f"Job {job} {reason}."
    if f"requests {asks}" in reason:
        return f"Job {job}: {reason}."
    return f"Job {job} requests {asks}" + (f"; {reason}." if reason else ".")


def _not_waiting(course: Course, row: int) -> str:
    """Return what a job does that does not wait, and why it waited before."""
    moment, jobs = course.moment(), course.moment().jobs
    if not moment.submitted[row]:
        return "It has not been submitted yet."
    if not moment.started[row]:
        return "It never ran."
    (why,) = why_waited(moment, np.array([row]))
    waited = f"It waited {format_duration(jobs.start[row] - jobs.submit[row])}: it {why}. "
    ran = f"runs on {plural(int(jobs.processors[row]), 'processor')}"
    return (waited if why else "") + (f"It {ran}." if moment.running[row] else "It has ended.")


def delays_panel(course: Course, asked: Asked) -> dict[str, Any]:
    """Return by how much users delayed users, in processor-hours waited.

    It counts from the beginning of the shown time until now.
    """
    moment = course.moment()
    frame = delays_table(moment, asked.since(moment.now), most=PAIRS_SHOWN)
    by = frame["by"].fillna(NOBODY).astype("int64")
    return {
        "total": frame.attrs["processor_hours"],
        "nobody": frame.attrs["nobody"],
        "since": max(asked.first, moment.first),
        "rows": [
            {"by": one, "delayed": other, "hours": hours, "jobs": jobs}
            for one, other, hours, jobs in zip(
                by.tolist(),
                frame["delayed"].tolist(),
                frame["processor_hours"].tolist(),
                frame["jobs"].tolist(),
                strict=True,
            )
        ],
    }
