"""Jobs: those of a user as a story, what holds what one needs, who delayed whom over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.views.delays import blockers_of, delays_table
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, State
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from hpcrowd.analysis.views.moment import Moment
    from hpcrowd.analysis.views.units import OwnUnits
    from hpcrowd.scenarios.inspector.panels.exchange import Asked
    from hpcrowd.scenarios.inspector.subjects.course import Course


#: Jobs that the page shows, the latest first; a file has all.
JOBS_SHOWN = 500


def job_stories(course: Course, own: OwnUnits, user: int, most: int | None = JOBS_SHOWN) -> Any:
    """Return the latest jobs of a user, newest first; ``most`` or all of them.

    In ``jobs`` are, for each job, ``job`` and ``unit`` numbers, ``processors``, ``submitted`` (s),
    ``waited`` and ``ran`` (s, None before), ``started`` (s, None before), ``state``, ``why`` it
    waits or waited, and what the user did ``next``; ``jobs_total`` is the number of all.
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
    """Return what submitted jobs found: processors that were free, and jobs that waited already.

    Each of shape (rows,); -1 of all with several clusters, since a queue is one cluster's.
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
        "rows": frame.assign(by=by, hours=frame["processor_hours"])[
            ["by", "delayed", "hours", "jobs"]
        ].to_dict("records"),
    }
