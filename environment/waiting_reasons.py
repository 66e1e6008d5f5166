"""Why each waiting job waits, in a paused run or at a moment of a finished run.

The scheduler gives the reasons, see :meth:`environment.schedulers.base.Scheduler.reasons`; this
module shows it the state of the cluster at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.engine.plain import WAITING
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.schedulers.arithmetic import believed_end
from hpcrowd.environment.schedulers.base import (
    Look,
    ReasonCode,
    RunningJob,
    Scheduler,
    WaitingJob,
    WaitingReason,
    explain,
)
from hpcrowd.environment.schedulers.names import scheduler_for

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster, Place  # circle: for their types only


def reasons_of(
    place: Place, *, rows: Iterable[int] | None = None, limit: int | None = None
) -> list[WaitingReason]:
    """Return why each job that waits at a cluster, or at the broker of a grid, waits now.

    For a paused simulation, which it does not change. Jobs are in the order of the scheduler's
    queue, followed by those that the scheduler has not seen yet. If jobs have ended in this very
    second, the scheduling pass is still to come; jobs that will start in it, as long as no others
    arrive first, are marked with ``ReasonCode.CAN_START``.

    Parameters
    ----------
    place
        The cluster or broker.
    rows
        Only these jobs.
    limit
        At most this many jobs.
    """
    return _shown(place.jobs, place.reasons(), rows, limit)


def reasons_at_cluster(cluster: Cluster) -> Iterable[WaitingReason]:
    """Return why each job that waits at a cluster waits now, see :func:`reasons_of`."""
    engine = cluster.engine
    jobs, now, policy = cluster.jobs, engine.now, engine.scheduler
    if policy is None:
        began = engine.running
        return _recorded(jobs, began[jobs.start[began] > now], now)
    waiting = engine.waiting
    held = _not_eligible(cluster)
    if engine.closed:
        found = _all(jobs, waiting, ReasonCode.CLOSED, now, engine.free, start=engine.reopens)
        return (*found, *held)
    engine.inform()
    unseen = np.isin(waiting, engine.unseen)
    corrects = engine.predictor is not None or policy.plans
    running = running_jobs(jobs, engine.running, now, corrects=corrects)
    shown = waiting_jobs(jobs, waiting[~unseen])
    told = explain(policy, Look(now, shown, running, engine.free, engine.up))
    new = _all(jobs, waiting[unseen], ReasonCode.ARRIVED, now, engine.free)
    return (one for part in (told, new, held) for one in part)


def reasons_at(
    jobs: JobTable,
    now: int,
    scheduler: str | Scheduler,
    processors: int,
    *,
    cluster: int = 0,
    windows: Sequence[tuple[int, int]] = (),
    predicted: bool = False,
    held: bool = False,
    rows: Iterable[int] | None = None,
    limit: int | None = None,
) -> list[WaitingReason]:
    """Return why each job waited at a second of a finished run, after the events of that second.

    The knowledge of the scheduler is taken from the table: usage and slowdowns are those of the
    jobs that had ended by then, as if the scheduler had been used from the beginning. Results do
    not hold plans; the start that a job was first promised is used instead. Runs that platform
    changes stopped are not seen. For an adaptive scheduler only processors are given as reasons,
    since the policy in use is not known.

    Parameters
    ----------
    jobs
        The table of the run, for example of ``jobs.parquet``.
    now
        The second, s since the origin.
    scheduler
        The scheduler, or its text; ``recorded`` for the recorded schedule. A scheduler object is
        reset.
    processors
        Processors that were up.
    cluster
        The cluster's number in the column CLUSTER.
    windows
        Announced maintenance that has not ended, (start, end) in s since the origin, in order.
    predicted
        Whether estimates came from a predictor.
    held
        Whether jobs were held between their submission and the queue, and not by a broker.
    rows, limit
        As for :func:`reasons_of`.

    Raises
    ------
    QuantityError
        If the scheduler is not known, or ``processors`` is below 0.
    """
    if processors < 0:
        raise QuantityError(f"processors {processors}: must be 0 or more")
    policy = None if scheduler is None else scheduler_for(scheduler, jobs.names)
    here, started = jobs.cluster == cluster, (jobs.start != UNKNOWN) & (jobs.start <= now)
    came = here & (jobs.submit != UNKNOWN) & (jobs.submit <= now)
    late = (jobs.start > now) | ((jobs.start == UNKNOWN) & (jobs.state == 0))
    queued = came & (jobs.enqueued <= now) & (jobs.enqueued != UNKNOWN)
    waiting = np.flatnonzero(queued & late)
    waiting = waiting[np.lexsort((waiting, jobs.enqueued[waiting]))]
    if policy is None:
        return _shown(jobs, _recorded(jobs, waiting, now), rows, limit)
    runs = (jobs.end > now) | (jobs.end == UNKNOWN)
    running, ended = np.flatnonzero(here & started & runs), np.flatnonzero(here & started & ~runs)
    free = processors - int(jobs.processors[running].sum())
    code = ReasonCode.HELD if held else ReasonCode.BROKER
    not_yet = _all(jobs, np.flatnonzero(came & (jobs.enqueued > now)), code, now, UNKNOWN)
    open_windows = tuple(window for window in windows if window[1] > now)
    if open_windows and open_windows[0][0] <= now:
        end = open_windows[0][1]
        told: Iterable[WaitingReason] = _all(jobs, waiting, ReasonCode.CLOSED, now, free, start=end)
    else:
        policy.begin(processors)
        policy.recall(now, jobs, ended, running, waiting)
        policy.windows = open_windows
        believed = running_jobs(jobs, running, now, corrects=predicted or policy.plans)
        look = Look(now, waiting_jobs(jobs, waiting), believed, free, processors)
        told = explain(policy, look)
    return _shown(jobs, (one for part in (told, not_yet) for one in part), rows, limit)


def waiting_jobs(jobs: JobTable, rows: Int64s) -> list[WaitingJob]:
    """Return waiting jobs as a scheduler sees them, in the order of ``rows``."""
    columns = (rows, *jobs.matrix[WAITING[:, np.newaxis], rows])
    return list(map(WaitingJob, *(column.tolist() for column in columns)))


def running_jobs(jobs: JobTable, rows: Int64s, now: int, *, corrects: bool) -> list[RunningJob]:
    """Return running jobs as a scheduler sees them, by expected end, then by row.

    Parameters
    ----------
    corrects
        Whether a job that outruns its estimate is expected to run on for a while, see
        ``hpcrowd.environment.schedulers.arithmetic.believed_end``; else it is expected to end now.
    """
    estimate = jobs.estimate[rows]
    expected = jobs.start[rows] + np.maximum(estimate, int(corrects))
    late = np.flatnonzero(expected < now + corrects)
    if corrects:
        start, requested = jobs.start[rows], jobs.requested_time[rows]
        for i in late.tolist():
            believed = believed_end(int(start[i]), int(estimate[i]), int(requested[i]), now)
            expected[i] = believed
    else:
        expected[late] = now
    order = np.lexsort((rows, expected))
    rows = rows[order]
    found = (
        rows, jobs.processors[rows], expected[order], jobs.start[rows],
        jobs.user[rows], jobs.group[rows], jobs.queue[rows],
    )  # fmt: skip
    return list(map(RunningJob, *(column.tolist() for column in found)))


def _all(
    jobs: JobTable,
    rows: Int64s,
    code: ReasonCode,
    now: int,
    free: int,
    start: int = UNKNOWN,
) -> Iterator[WaitingReason]:
    """Yield the same reason for all rows."""
    for row, asks in zip(rows.tolist(), jobs.processors[rows].tolist(), strict=True):
        yield WaitingReason(row, code, now, asks, free, start=start)


def _recorded(jobs: JobTable, rows: Int64s, now: int) -> Iterator[WaitingReason]:
    """Yield the recorded starts of jobs, by submission."""
    rows = rows[np.lexsort((rows, jobs.enqueued[rows]))]
    columns = (rows, jobs.processors[rows], jobs.start[rows])
    for row, asks, start in zip(*(column.tolist() for column in columns), strict=True):
        yield WaitingReason(row, ReasonCode.RECORDED, now, asks, UNKNOWN, start=start)


def _not_eligible(cluster: Cluster) -> list[WaitingReason]:
    """Return why jobs are held before they come into the queue of a cluster."""
    jobs, now = cluster.jobs, cluster.engine.now
    return [
        WaitingReason(
            row, ReasonCode.HELD, now, int(jobs.processors[row]), UNKNOWN,
            note=f"held by {cause}",
        )
        for row, cause in cluster.held.items()
    ]  # fmt: skip


def _shown(
    jobs: JobTable,
    reasons: Iterable[WaitingReason],
    rows: Iterable[int] | None,
    limit: int | None,
) -> list[WaitingReason]:
    """Return the reasons to show, with the numbers of the jobs that they name."""
    if rows is not None:
        wanted = set(rows)
        reasons = (one for one in reasons if one.row in wanted)
    number = jobs.number
    return [
        one if one.blocker == UNKNOWN else one._replace(number=int(number[one.blocker]))
        for one in islice(reasons, limit)
    ]
