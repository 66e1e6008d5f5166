"""Why each waiting job waits: of a run that is paused, and of one that is played back.

The scheduler tells, see :meth:`environment.schedulers.base.Scheduler.reasons`; here it is asked
with what it would be shown now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from hpcrowd.environment.cluster import Cluster
from hpcrowd.environment.engine.plain import WAITING
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.grid.broker import GridBroker
from hpcrowd.environment.grid.policies import fits
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.schedulers.base import (
    Look,
    ReasonCode,
    RunningJob,
    Scheduler,
    WaitingJob,
    WaitingReason,
)
from hpcrowd.environment.schedulers.estimates import believed_end
from hpcrowd.environment.schedulers.names import parse_scheduler


def reasons_of(
    place: Cluster | GridBroker, *, rows: Iterable[int] | None = None, limit: int | None = None
) -> list[WaitingReason]:
    """Return why each job that waits at a cluster, or at the broker of a grid, waits now.

    For a simulation that is paused; it goes on as if nobody had asked. Jobs stand in the order of
    the scheduler's queue, those that it has not looked at yet behind. Where jobs have ended at this
    very second the scheduler has its pass still to come; what it will do then as far as it knows,
    before other jobs arrive, is told too (``ReasonCode.CAN_START``).

    Parameters
    ----------
    place
        The cluster or broker.
    rows
        Tell of these jobs only.
    limit
        Tell of so many jobs at most.
    """
    if isinstance(place, GridBroker):
        return _shown(place.dispatch.jobs, _held_by(place), rows, limit)
    engine = place.engine
    jobs, now, policy = place.jobs, engine.now, engine.scheduler
    if policy is None:
        began = engine.running
        return _shown(jobs, _recorded(jobs, began[jobs.start[began] > now], now), rows, limit)
    waiting = engine.waiting
    if engine.closed:
        found = _all(jobs, waiting, ReasonCode.CLOSED, now, engine.free, start=engine.reopens)
        return _shown(jobs, found, rows, limit)
    engine.inform()
    unseen = np.isin(waiting, engine.unseen)
    corrects = engine.predictor is not None or policy.plans
    running = running_jobs(jobs, engine.running, now, corrects=corrects)
    shown = waiting_jobs(jobs, waiting[~unseen])
    told = explain(policy, Look(now, shown, running, engine.free, engine.up))
    new = _all(jobs, waiting[unseen], ReasonCode.ARRIVED, now, engine.free)
    return _shown(jobs, (one for part in (told, new) for one in part), rows, limit)


def reasons_at(
    jobs: JobTable,
    now: int,
    scheduler: str | Scheduler,
    processors: int,
    *,
    cluster: int = 0,
    windows: Sequence[tuple[int, int]] = (),
    predicted: bool = False,
    rows: Iterable[int] | None = None,
    limit: int | None = None,
) -> list[WaitingReason]:
    """Return why each job waited at a second of a run that is over, after what happened in it.

    What the scheduler knew is taken from the table: usage and slowdowns are those of the jobs that
    had ended by then, as if it had been in charge from the beginning. Plans are not kept in
    results; the start that a job was promised first stands for its plan. Runs that changes of the
    platform stopped are not seen, and an adaptive scheduler only tells processors, since which
    policy was in charge is not known.

    Parameters
    ----------
    jobs
        The table of the run, for example of ``jobs.parquet``.
    now
        The second, s since the origin.
    scheduler
        The scheduler, or its text; ``recorded`` for the recorded schedule. A scheduler that is
        handed over begins anew.
    processors
        Processors that were up.
    cluster
        The cluster's number in the column CLUSTER.
    windows
        Maintenance that was announced and not over, (start, end) in s since the origin, in order.
    predicted
        Whether estimates came from a predictor.
    rows, limit
        As for :func:`reasons_of`.

    Raises
    ------
    QuantityError
        When the scheduler is not known, or ``processors`` is below 0.
    """
    if processors < 0:
        raise QuantityError(f"processors {processors}: must be 0 or more")
    policy = parse_scheduler(scheduler) if isinstance(scheduler, str) else scheduler
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
    held = np.flatnonzero(came & (jobs.enqueued > now))
    with_broker = _all(jobs, held, ReasonCode.BROKER, now, UNKNOWN)
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
    return _shown(jobs, (one for part in (told, with_broker) for one in part), rows, limit)


def explain(policy: Scheduler, look: Look) -> Iterable[WaitingReason]:
    """Return what a scheduler says of its waiting jobs, see ``Scheduler.reasons``.

    What explains another ``select`` than the one that decides is not asked: then only processors
    and maintenance tell.
    """
    kind = type(policy)
    owner: Any = next(one for one in kind.__mro__ if "reasons" in vars(one))
    told: Callable[..., Iterable[WaitingReason]] = policy.reasons
    if owner.select is not Scheduler.select and kind.select is not owner.select:
        told = partial(Scheduler.reasons, policy)
    return told(look)


def waiting_jobs(jobs: JobTable, rows: Int64s) -> list[WaitingJob]:
    """Return jobs as a scheduler sees them that wait, in the order of ``rows``."""
    columns = (rows, *jobs.matrix[WAITING[:, np.newaxis], rows])
    return list(map(WaitingJob, *(column.tolist() for column in columns)))


def running_jobs(jobs: JobTable, rows: Int64s, now: int, *, corrects: bool) -> list[RunningJob]:
    """Return jobs as a scheduler sees them that run, by expected end, then by row.

    Parameters
    ----------
    corrects
        Whether a job that outruns its estimate is believed to go on for a while, see
        ``hpcrowd.environment.schedulers.estimates.believed_end``; else it is believed to end now.
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
    """Yield one reason for all of the rows."""
    for row, asks in zip(rows.tolist(), jobs.processors[rows].tolist(), strict=True):
        yield WaitingReason(row, code, now, asks, free, start=start)


def _recorded(jobs: JobTable, rows: Int64s, now: int) -> Iterator[WaitingReason]:
    """Yield the recorded starts of jobs, by submission."""
    rows = rows[np.lexsort((rows, jobs.enqueued[rows]))]
    columns = (rows, jobs.processors[rows], jobs.start[rows])
    for row, asks, start in zip(*(column.tolist() for column in columns), strict=True):
        yield WaitingReason(row, ReasonCode.RECORDED, now, asks, UNKNOWN, start=start)


def _held_by(broker: GridBroker) -> Iterator[WaitingReason]:
    """Yield why jobs are with the broker of a grid."""
    dispatch = broker.dispatch
    jobs, now = dispatch.jobs, dispatch.now
    mine = dispatch.submitted
    rooms = []
    for site in dispatch.sites:
        waiting = site.engine.waiting
        pending = waiting[mine[waiting]]
        rooms.append(site.engine.free - int(jobs.processors[pending].sum()))
    most = max(rooms)
    for place, rows in enumerate(dispatch.held, 1):
        asks = jobs.processors[list(rows)].tolist()
        code, note = ReasonCode.GRID, ""
        if len(rows) > 1:
            could = fits(asks, rooms)
            note = f"its {plural(len(rows), 'component')} are to start together"
        else:
            could = asks[0] <= most
        if could:
            code, note = ReasonCode.CAN_START, ""
        for row, need in zip(rows, asks, strict=True):
            yield WaitingReason(row, code, now, need, most, place, note=note)


def _shown(
    jobs: JobTable,
    reasons: Iterable[WaitingReason],
    rows: Iterable[int] | None,
    limit: int | None,
) -> list[WaitingReason]:
    """Return those that are to be shown, with the numbers of the jobs that they name."""
    if rows is not None:
        wanted = set(rows)
        reasons = (one for one in reasons if one.row in wanted)
    number = jobs.number
    return [
        one if one.blocker == UNKNOWN else one._replace(number=int(number[one.blocker]))
        for one in islice(reasons, limit)
    ]
