"""The Gantt chart: jobs as rectangles, or, where there are too many, who held how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from hpcrowd.analysis.pictures.density import density_of
from hpcrowd.analysis.views.moment import Moment
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.jobs import UNKNOWN, State, name_of
from hpcrowd.environment.platform.placement import Filling, Placement, rows_beyond
from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.inspector.panels.jobs import at_submission

if TYPE_CHECKING:
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.scenarios.inspector.panels.exchange import Asked
    from hpcrowd.scenarios.inspector.subjects.course import Course

#: Parts of the time shown at which rows of processors are given out anew. In between, jobs stay on
#: their rows while time passes.
PARTS = 4


def gantt_panel(course: Course, asked: Asked) -> dict[str, Any]:
    """Return the jobs that ran in the time shown; the rest of running ones as expected.

    More than ``asked.most`` jobs are returned as densities.
    """
    of_job = course.moment().every_run.row
    moment = course.moment().by_run
    jobs, now = moment.jobs, moment.now
    end = moment.ends
    step = max((asked.last - asked.first) // PARTS, HOUR)
    begin = asked.first // step * step
    which = moment.started & (end > begin) & (jobs.start < asked.last)
    shown = which & (end > asked.first)
    total, ran = int(shown.sum()), len(np.unique(of_job[shown]))
    if total > asked.most:
        return {"total": total, "density": _density(moment, asked), "words": _words(ran, False)}
    rows = np.flatnonzero(which)
    rows = rows[np.lexsort((rows, jobs.start[rows]))]
    size = max(one.size for one in moment.steps if one.at <= now)
    where = placed(course, rows, end[rows], size)
    kept = np.flatnonzero(shown[rows])
    index = np.full(len(rows), -1)
    index[kept] = np.arange(len(kept))
    pieces = index[where.job] >= 0
    rows = rows[kept]
    running = moment.running[rows]
    waited = np.flatnonzero(jobs.start[rows] > jobs.submit[rows])
    free, ahead = np.full((2, len(rows)), UNKNOWN)
    free[waited], ahead[waited] = at_submission(moment, rows[waited])
    has_queue = bool((jobs.queue != UNKNOWN).any())
    queues = jobs.queue[rows]
    return {
        "total": total,
        "rows": max(where.rows, size),
        "size": size,
        "piece": index[where.job][pieces],
        "bottom": where.row[pieces],
        "top": (where.row + where.height)[pieces],
        "job": jobs.number[rows],
        "user": jobs.user[rows],
        "processors": jobs.processors[rows],
        "submitted": jobs.submit[rows],
        "start": jobs.start[rows],
        "end": end[rows],
        "requested": jobs.requested_time[rows],
        "free": free,
        "ahead": ahead,
        "running": running.astype(np.int64),
        "state": np.where(running, -1, jobs.state[rows]),
        "states": {int(state): state.name.lower() for state in State},
        "queue": queues if has_queue else None,
        "queues": {
            int(number): name_of(jobs.names, "queue", int(number)) for number in np.unique(queues)
        }
        if has_queue
        else {},
        "words": _words(ran, True),
    }


@dataclass(frozen=True)
class Known:
    """Jobs of a run that have rows."""

    filling: Filling  #: the rows
    now: int  #: when that was, s
    table: Int64s  #: rows in the table of jobs, starts and processors, shape (3, jobs)
    end: Int64s  #: ends, some of them only expected then, shape (jobs,)

    def begins(self, now: int, table: Int64s, end: Int64s) -> bool:
        """Return whether other jobs begin with these, and differ only in what ended later."""
        size = len(self.end)
        if now < self.now or not np.array_equal(self.table, table[:, :size]):
            return False
        later = (self.end > self.now) & (end[:size] > self.now)
        return bool(np.all(later | (end[:size] == self.end)))


#: What is known of the runs of this process.
_KNOWN: WeakKeyDictionary[Course, Known] = WeakKeyDictionary()


def placed(course: Course, rows: Int64s, end: Int64s, size: int) -> Placement:
    """Return where jobs are drawn; after a small step most of them are where they were.

    Rows of the table of runs are by start; ends may be only expected. ``size`` is the machine's.
    """
    moment = course.moment().by_run
    jobs = moment.jobs
    table = np.stack([rows, jobs.start[rows], jobs.processors[rows]])
    beyond = rows_beyond(table[1], end, table[2], size)
    known = _KNOWN.get(course)
    if known is not None and known.begins(moment.now, table, end):
        filling = known.filling
    else:
        filling = Filling(size, beyond)
    if (filling.machine, filling.beyond) != (size, beyond):
        filling = Filling(size, beyond)
    filling.add(table[1], end, table[2])
    _KNOWN[course] = Known(filling, moment.now, table, end)
    return filling.placement()


def _words(jobs: int, each: bool) -> str:
    how = "" if each else "; so many that the picture shows who held which part of the machine"
    return f"{plural(jobs, 'job')} ran in this time{how}"


def _density(moment: Moment, asked: Asked) -> dict[str, Any]:
    """Return which part of the machine each of the busiest users held, over time."""
    last = max(min(asked.last, moment.now), asked.first + HOUR)
    found = density_of(moment.by_run.run(), asked.first, last)
    return {"edges": found.edges, "users": found.numbers, "share": found.share.ravel().round(4)}
