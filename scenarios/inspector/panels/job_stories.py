"""The jobs of one user as a story: when each was submitted, why it waited, what followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.environment.jobs import UNKNOWN, Int64s, State
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from hpcrowd.analysis.views.moment import Moment
    from hpcrowd.analysis.views.units import OwnUnits
    from hpcrowd.scenarios.inspector.subjects.course import Course

#: Jobs that the page shows, the latest first; a file has all.
JOBS_SHOWN = 500


def job_stories(course: Course, own: OwnUnits, user: int, most: int | None = JOBS_SHOWN) -> Any:
    """Return the latest jobs of a user, newest first.

    Parameters
    ----------
    course
        The run.
    own
        The units of the user.
    user
        The number of the user.
    most
        Most jobs; None for all.

    Returns
    -------
    dict
        ``jobs``: a list with, for each job, ``job`` and ``unit`` numbers, ``processors``,
        ``submitted`` (s), ``waited`` and ``ran`` (s, None before), ``started`` (s, None before),
        ``state``, ``why`` it waits or waited, and what the user did ``next``; and ``jobs_total``.
    """
    moment = course.moment()
    jobs = moment.jobs
    rows = moment.rows_of(user)
    rows = rows[moment.submitted[rows]]
    rows = rows[np.lexsort((rows, jobs.submit[rows]))]
    total = len(rows)
    shown = rows[::-1][:most]
    reasons = course.reasons([row for row in shown.tolist() if moment.waiting[row]])
    waited = why_waited(moment, shown)
    following = _following(moment, rows, shown)
    unit = dict(zip(own.rows.tolist(), own.numbers[own.place].tolist(), strict=True))
    found = []
    for place, row in enumerate(shown.tolist()):
        started, ended = bool(moment.started[row]), bool(moment.ended[row])
        start, submit = int(jobs.start[row]), int(jobs.submit[row])
        since = start if started else int(jobs.end[row]) if moment.never_ran[row] else moment.now
        found.append(
            {
                "job": int(jobs.number[row]),
                "unit": unit.get(row),
                "processors": int(jobs.processors[row]),
                "submitted": submit,
                "waited": since - submit,
                "started": start if started else None,
                "ran": int(jobs.end[row]) - start if ended else None,
                "state": _state(moment, row),
                "why": reasons.get(row, "") if moment.waiting[row] else waited[place],
                "next": following[place],
            }
        )
    return {"jobs": found, "jobs_total": total}


def _state(moment: Moment, row: int) -> str:
    if moment.waiting[row]:
        return "waiting"
    if moment.running[row]:
        return "running"
    return State(int(moment.jobs.state[row])).name.lower()


def at_submission(moment: Moment, rows: Int64s) -> tuple[Int64s, Int64s]:
    """Return what jobs found when they were submitted.

    Parameters
    ----------
    moment
        The moment.
    rows
        Rows of the jobs, which have been submitted.

    Returns
    -------
    free, ahead
        Processors that were free then, and jobs that waited already, shape (rows,); -1 of all with
        several clusters, since a queue is one cluster's.
    """
    jobs, started = moment.jobs, moment.started
    if len(moment.clusters) > 1 or not len(rows):
        return np.full(len(rows), UNKNOWN), np.full(len(rows), UNKNOWN)
    submit = jobs.submit[rows]
    # What had ended, or begun, before all of them does not matter.
    first = int(submit.min())
    ran = np.flatnonzero(started & (~moment.ended | (jobs.end > first)))
    # What starts in the second of the submission starts after it.
    used = _below(jobs.start[ran], submit, jobs.processors[ran])
    gone = ran[moment.ended[ran]]
    used -= _below(jobs.end[gone], submit + 1, jobs.processors[gone])
    queued = moment.submitted & ~moment.never_ran & (~started | (jobs.start > first))
    left = np.flatnonzero(queued & started)
    ahead = _below(jobs.submit[queued], submit) - _below(jobs.start[left], submit + 1)
    return np.maximum(moment.size - used, 0), np.maximum(ahead, 0)


def _below(times: Int64s, limits: Int64s, weights: Int64s | None = None) -> Int64s:
    """Return the sum of the weights, 1 unless given, of times below each limit, as ``limits``."""
    order = np.argsort(times, kind="stable")
    total = np.arange(len(times) + 1)
    if weights is not None:
        total = np.concatenate([[0], np.cumsum(weights[order])])
    found: Int64s = total[np.searchsorted(times[order], limits, side="left")]
    return found


def why_waited(moment: Moment, rows: Int64s) -> list[str]:
    """Return in words what each job found when it was submitted; empty if it did not wait."""
    jobs, started = moment.jobs, moment.started
    free, ahead = at_submission(moment, rows)
    found = []
    for place, row in enumerate(rows.tolist()):
        if not started[row] or jobs.start[row] == jobs.submit[row] or free[place] == UNKNOWN:
            found.append("")
            continue
        asks = plural(int(jobs.processors[row]), "processor")
        others = int(ahead[place])
        queue = f"and {plural(others, 'job')} waited already" if others else "and no other waited"
        found.append(f"requested {asks} when {int(free[place]):,} were free {queue}")
    return found


def _following(moment: Moment, every: Int64s, rows: Int64s) -> list[str]:
    """Return what the user submitted next after each job ended, or while it waits or runs."""
    jobs = moment.jobs
    submit = jobs.submit[every]
    found = []
    for row in rows.tolist():
        ended = bool(moment.ended[row])
        after = int(jobs.end[row]) if ended else int(jobs.submit[row]) + 1
        place = int(np.searchsorted(submit, after, side="left"))
        if place == len(every):
            found.append("nothing yet")
            continue
        at = int(submit[place])
        last = int(np.searchsorted(submit, at, side="right"))
        many = last - place
        words = f"job {int(jobs.number[every[place]])}"
        words += f" and {many - 1:,} more" if many > 1 else ""
        gap = at - after if ended else at - int(jobs.submit[row])
        pause = "at once" if gap == 0 else f"{format_duration(gap)} later"
        found.append(f"{pause}: {words}" if ended else f"meanwhile, {pause}: {words}")
    return found
