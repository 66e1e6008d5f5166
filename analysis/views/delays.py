"""Who slows whom: what holds what a waiting job needs, and the hours by which users delay users.

:func:`blockers_of` looks at one waiting job, :func:`delays_table` at all waits so far, added up by
pairs of users; :func:`delays_of_user` takes one user out of it.

The hours are a division of what was waited, not a cause: a user whose jobs fill the machine is
charged with most of what the others wait, whatever the order of the queue.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcrowd.analysis.views.attribution import attribute
from hpcrowd.analysis.views.frames import where_known
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Float64s, Int64s, State
from hpcrowd.environment.machine.demand import partitions_asked
from hpcrowd.environment.schedulers.base import ReasonCode, WaitingReason
from hpcrowd.environment.waiting_reasons import reasons_at, reasons_of, running_jobs

if TYPE_CHECKING:
    import pandas as pd

    from hpcrowd.analysis.views.moment import Bools, Moment
    from hpcrowd.environment.machine.layout import Layout

#: Name of nobody in columns of names.
NOBODY = "nobody"

#: Pairs of users that are worked out at once; they take 50 MB.
MOST_CELLS = 2**21

#: Reasons of jobs with a reservation.
RESERVED = frozenset({ReasonCode.HEAD, ReasonCode.PLANNED, ReasonCode.PROMISED})

#: Reasons of jobs that do not wait for other waiting jobs, but for one that they name.
ALONE = frozenset({
    ReasonCode.HEAD, ReasonCode.TOO_LARGE, ReasonCode.MAINTENANCE, ReasonCode.CLOSED,
    ReasonCode.CAN_START, ReasonCode.RECORDED, ReasonCode.LIMIT,
})  # fmt: skip

#: Reasons about room; the head of the queue comes first unless they name a job.
ROOM = frozenset({ReasonCode.NO_ROOM, ReasonCode.WOULD_DELAY, ReasonCode.NOT_CHOSEN})


# What holds what one job needs


class Holder(NamedTuple):
    """A running job that holds processors that a waiting job needs."""

    row: int  #: row in the table of jobs
    number: int  #: job number
    user: int  #: user number
    user_name: str  #: name of the user, the number without one
    processors: int  #: processors that it holds
    expected_end: int  #: s since the origin; now if it runs longer than expected
    counted: int  #: of its processors, those that the waiting job needs; 0 if lost to an outage
    share: float  #: ``counted`` as a part of what the waiting job asks for, 0 to 1


class Ahead(NamedTuple):
    """A waiting job that comes before another one."""

    row: int  #: row in the table of jobs
    number: int  #: job number
    user: int  #: user number
    user_name: str  #: name of the user, the number without one
    processors: int  #: processors that it asks for
    start: int  #: s since the origin, its expected start if the scheduler has one, else -1
    in_the_way: bool  #: whether the scheduler's reason names it


class UserShare(NamedTuple):
    """What the running jobs of a user hold of what a waiting job needs."""

    user: int  #: user number
    user_name: str  #: name of the user, the number without one
    counted: int  #: processors
    share: float  #: as a part of what the waiting job asks for, 0 to 1
    jobs: int  #: running jobs


@dataclass(frozen=True)
class Blockers:
    """What holds what a waiting job needs, see :func:`blockers_of`.

    Attributes
    ----------
    row, number, user, user_name
        The waiting job: its row in the table, its number and its user.
    cluster
        Name of its cluster; empty if there is only one, or none yet.
    asks
        Processors that it asks for.
    free
        Processors without a job where it may run; negative while more are held than are up.
    down
        Processors that are down or closed for maintenance.
    held
        Whether it is not in a queue: with the broker of a grid, or not eligible yet. Then no job
        is in its way.
    running
        Running jobs that hold what it needs, by expected end; none if enough is free.
    missing
        Processors that it lacks even when all running jobs have ended, because of outages.
    ahead
        Waiting jobs that come first, in the order of the queue; not more than were asked for.
    ahead_jobs, ahead_processors
        How many come first, and the processors that all of these ask for.
    by_user
        ``running`` by user, the one with the most processors first.
    reason
        The scheduler's reason; None if not known.
    """

    row: int
    number: int
    user: int
    user_name: str
    cluster: str
    asks: int
    free: int
    down: int
    held: bool
    running: tuple[Holder, ...]
    missing: int
    ahead: tuple[Ahead, ...]
    ahead_jobs: int
    ahead_processors: int
    by_user: tuple[UserShare, ...]
    reason: WaitingReason | None = None


def blockers_of(
    moment: Moment,
    row: int,
    *,
    reason: WaitingReason | None = None,
    scheduler: str = "",
    most: int | None = None,
) -> Blockers:
    """Return what holds what a waiting job needs.

    Running jobs are taken by expected end (start and estimate, or now if they outran it) until
    they and what is free are enough for the job: those that it would wait for if nobody else came.
    With several clusters these are the jobs of its own.

    Which waiting jobs come first depends on the scheduler: if it lets nobody overtake (FCFS), all
    jobs ahead in the queue; else those ahead with a reservation (EASY: the first in the queue), and
    the one that its reason names. If the reason is not known, all jobs ahead are listed.

    On a machine of nodes, the running jobs are those whose partitions share nodes with the
    partitions of the job, and ``free`` is at most what they leave of these nodes: the nodes of each
    job, memory and GPUs are not considered. A finished run played back does not hold its machine,
    and all its jobs count. Nor does it hold outages by cluster: with several clusters played back,
    they have their initial sizes.

    Parameters
    ----------
    moment
        The moment, of a simulation or of a finished run.
    row
        Row of the job in the table.
    reason
        Why it waits, if that is known already; by default a simulation asks its scheduler, which
        also knows the reservations of the others.
    scheduler
        For a finished run with one cluster: its scheduler, from which the reasons follow, see
        :func:`hpcrowd.environment.waiting_reasons.reasons_at`.
    most
        Most waiting jobs that are listed in ``ahead``; None for all.

    Raises
    ------
    QuantityError
        If the job does not wait, or the scheduler is not known.
    """
    jobs = moment.jobs
    if not 0 <= row < len(jobs):
        raise QuantityError(f"row {row}: must be 0 to {len(jobs) - 1}, a row of the table of jobs")
    if not moment.waiting[row]:
        raise QuantityError(
            f"row {row}: job {jobs.number[row]} does not wait at second {moment.now}; waiting jobs "
            "are in queue_table(moment)"
        )
    reasons = {} if reason is not None else _reasons(moment, row, scheduler)
    reason = reasons.get(row) if reason is None else reason
    held = bool(moment.held[row])
    here = None if held or len(moment.clusters) < 2 else int(jobs.cluster[row])
    at = np.ones(len(jobs), bool) if here is None else jobs.cluster == here
    size, up = _size(moment, here)
    rows = np.flatnonzero(moment.running & at)
    free = up - int(jobs.processors[rows].sum())
    layout = _layout(moment, row)
    if layout is not None:
        rows, free = _in_partitions(moment, layout, row, rows, free)
    asks = int(jobs.processors[row])
    running = () if held else tuple(_holders(moment, rows, asks, free))
    ahead = [] if held else _ahead(moment, row, at, reason, reasons)
    found = max(0, min(free, asks)) + sum(one.counted for one in running)
    return Blockers(
        row=row,
        number=int(jobs.number[row]),
        user=int(jobs.user[row]),
        user_name=jobs.who(int(jobs.user[row])),
        cluster="" if here is None else list(moment.clusters)[here],
        asks=asks,
        free=free,
        down=size - up,
        held=held,
        running=running,
        missing=0 if held else asks - found,
        ahead=tuple(_listed(moment, ahead[:most], reason, reasons)),
        ahead_jobs=len(ahead),
        ahead_processors=int(jobs.processors[ahead].sum()),
        by_user=tuple(_by_user(running, asks)),
        reason=reason,
    )


def _reasons(moment: Moment, row: int, scheduler: str) -> dict[int, WaitingReason]:
    """Return the reasons of the jobs that wait where a job waits, by row."""
    model, jobs = moment.model, moment.jobs
    if model is not None:
        for place in model.places.values():
            found = {one.row: one for one in reasons_of(place)}
            if row in found:
                return found
        return {}
    if not scheduler or len(moment.clusters) > 1:
        return {}
    reasons = reasons_at(jobs, moment.now - 1, scheduler, moment.up, held=True)
    return {one.row: one for one in reasons}


def _size(moment: Moment, cluster: int | None) -> tuple[int, int]:
    """Return the processors of a cluster, and those up; of all clusters if there is only one."""
    if cluster is None:
        return moment.size, moment.up
    size = up = list(moment.clusters.values())[cluster]
    if moment.model is not None:
        timeline = list(moment.model.clusters.values())[cluster].engine.timeline
        for at, *state in () if timeline is None else timeline.history:
            if at < moment.now:
                size, up = state
    return size, up


def _layout(moment: Moment, row: int) -> Layout | None:
    """Return the nodes of the cluster of a job, None for a pool of processors or if not known."""
    if moment.model is None or moment.held[row]:
        return None
    place = list(moment.model.clusters.values())[int(moment.jobs.cluster[row])]
    layout: Layout | None = getattr(place.engine.scheduler, "layout", None)
    return layout


def _in_partitions(
    moment: Moment, layout: Layout, row: int, rows: Int64s, free: int
) -> tuple[Int64s, int]:
    """Return the running jobs that may use nodes that a job may use, and what they leave it."""
    jobs = moment.jobs

    def nodes_of(one: int) -> int:
        found = 0
        for name in partitions_asked(layout, jobs, one):
            found |= layout.nodes_of(name) if name in layout.partitions else 0
        return found

    mine = nodes_of(row)
    rows = np.array([one for one in rows.tolist() if nodes_of(one) & mine], np.int64)
    cores = sum(cores for node, cores in enumerate(layout.cores) if mine >> node & 1)
    return rows, min(free, max(0, cores - int(jobs.processors[rows].sum())))


def _holders(moment: Moment, rows: Int64s, asks: int, free: int) -> list[Holder]:
    """Return the first running jobs by expected end that leave a job enough."""
    jobs, found = moment.jobs, []
    for job in running_jobs(jobs, rows, moment.now, corrects=False):
        if free >= asks:
            break
        before, free = free, free + job.processors
        # The first processors may only make up for those that are down.
        counted = min(max(free, 0), asks) - max(before, 0)
        number, who = int(jobs.number[job.row]), jobs.who(job.user)
        held = job.processors, job.expected_end, counted, counted / asks
        found.append(Holder(job.row, number, job.user, who, *held))
    return found


def _ahead(
    moment: Moment,
    row: int,
    at: Bools,
    reason: WaitingReason | None,
    reasons: Mapping[int, WaitingReason],
) -> list[int]:
    """Return rows of the waiting jobs that come before one, in the order of the queue."""
    jobs = moment.jobs
    here = at & ~moment.held
    queue: list[int] = moment.queue[here[moment.queue]].tolist()
    before = queue[: queue.index(row)]
    blocker = UNKNOWN if reason is None else reason.blocker
    if reason is not None and reason.code in ALONE:
        before = []
    elif reason is not None and reasons:
        # The scheduler may have another order than that of submission.
        place = {one: why.place for one, why in reasons.items() if why.place != UNKNOWN}
        last = place.get(row, len(jobs))
        before = sorted((one for one in place if place[one] < last), key=place.__getitem__)
        behind = reason.code == ReasonCode.BEHIND
        before = [one for one in before if _comes_first(reasons[one], behind)]
    elif reason is not None and reason.code in ROOM:
        before = before[:1] if blocker == UNKNOWN else []
    if blocker not in (UNKNOWN, *before):
        before.append(blocker)
    return before


def _listed(
    moment: Moment,
    rows: list[int],
    reason: WaitingReason | None,
    reasons: Mapping[int, WaitingReason],
) -> Iterator[Ahead]:
    """Yield waiting jobs that come before one."""
    jobs = moment.jobs
    columns = (column[rows].tolist() for column in (jobs.number, jobs.user, jobs.processors))
    blocker = UNKNOWN if reason is None else reason.blocker
    for row, number, user, asks in zip(rows, *columns, strict=True):
        start = _start(row, reason, reasons)
        yield Ahead(row, number, user, jobs.who(user), asks, start, row == blocker)


def _comes_first(reason: WaitingReason, behind: bool) -> bool:
    """Return whether a job ahead comes first; ``behind`` if nobody may overtake."""
    planned = reason.code == ReasonCode.SITE and reason.start != UNKNOWN
    return reason.code != ReasonCode.LIMIT if behind else planned or reason.code in RESERVED


def _start(row: int, reason: WaitingReason | None, reasons: Mapping[int, WaitingReason]) -> int:
    """Return when a job that comes before another is expected to start; -1 not known."""
    if row in reasons and reasons[row].start != UNKNOWN:
        return reasons[row].start
    return reason.reserved if reason is not None and reason.blocker == row else UNKNOWN


def _by_user(running: tuple[Holder, ...], asks: int) -> list[UserShare]:
    """Return running jobs that hold what a job needs, by user."""
    users: dict[int, list[Holder]] = {}
    for one in running:
        users.setdefault(one.user, []).append(one)
    found = []
    for user, some in users.items():
        counted = sum(one.counted for one in some)
        found.append(UserShare(user, some[0].user_name, counted, counted / asks, len(some)))
    return sorted(found, key=lambda one: (-one.counted, one.user))


# Who delayed whom, over the run


class Spans(NamedTuple):
    """Stretches of time in which jobs wait or run, arrays of the same length."""

    user: Int64s  #: user number
    processors: Int64s  #: processors asked for, or held
    cluster: Int64s  #: cluster number
    begin: Int64s  #: s since the origin
    queued: Int64s  #: s since the origin; when the job joined a queue
    end: Int64s  #: s since the origin

    def which(self, some: Bools | Int64s) -> Spans:
        """Return some of them."""
        return Spans(*(column[some] for column in self))


def delays_table(
    moment: Moment, window: int | None = None, *, most: int | None = None
) -> pd.DataFrame:
    """Return the processor-hours by which users delayed users, until the moment.

    While a job waits, the processors that it asks for are divided, at each second, among the users
    whose jobs run on its cluster, in proportion to the processors that they hold. User X delayed
    user Y by

        D[X, Y] = sum over jobs j of Y of
                  integral from s_j to e_j of p_j R_X(t) / sum over X' of R_X'(t) dt / 3600

    with p_j the processors of job j, s_j its submission, e_j its start (or when it was taken back,
    or now), and R_X(t) the processors that jobs of X hold at t on the cluster of the job. Seconds
    in which nothing runs there are due to nobody (outages, limits), and so is the time before the
    job joins the queue (with the broker of a grid, or held until it is eligible). The sum is the
    processor-hours waited, but for rounding.

    Runs that the platform stopped count while they lasted, and their jobs wait again from then on,
    or from their next submission. A suspended job counts as running.

    Parameters
    ----------
    moment
        The moment.
    window
        s before the moment; None for the whole run so far.
    most
        Most rows; None for all.

    Returns
    -------
    frame
        A row for each pair: ``by``, the number of the user whose jobs ran (missing for nobody);
        ``by_name`` if the trace has names; ``delayed``, the number of the user whose jobs waited;
        ``delayed_name``; ``own``, whether both are the same user; ``processor_hours``; ``jobs``,
        how many jobs of ``delayed`` waited while ``by`` ran, where each wait of a stopped job
        counts. Most processor-hours first. ``frame.attrs`` has the ``processor_hours`` of all rows,
        and of these those due to ``nobody``, whatever ``most`` is.
    """
    import pandas as pd

    begin = 0 if window is None else max(0, moment.now - window)
    waits, runs = _waits_and_runs(moment, begin)
    delayed, delayed_index = np.unique(waits.user, return_inverse=True)
    by, by_index = np.unique(runs.user, return_inverse=True)
    waits, runs = waits._replace(user=delayed_index), runs._replace(user=by_index)
    waiter, runner = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    seconds, jobs = [np.zeros(0)], [np.zeros(0, np.int64)]
    block = max(1, MOST_CELLS // (len(by) + 1))
    for first in range(0, len(delayed), block):
        some = waits.which((waits.user >= first) & (waits.user < first + block))
        some = some._replace(user=some.user - first)
        spent, counts = _divide(some, runs, min(block, len(delayed) - first), len(by))
        cells = np.nonzero(counts)
        waiter.append(cells[0] + first)
        runner.append(cells[1])
        seconds.append(spent[cells])
        jobs.append(counts[cells])
    waits_of, runs_of, waited = (np.concatenate(parts) for parts in (waiter, runner, jobs))
    hours = np.concatenate(seconds) / HOUR
    nobody = runs_of == len(by)
    sums = _sums(hours, nobody)
    order = np.lexsort((waits_of, runs_of, -hours))[:most]
    left, right = np.append(by, UNKNOWN)[runs_of[order]], delayed[waits_of[order]]
    nobody = nobody[order]
    columns: dict[str, Any] = {"by": where_known(left, ~nobody)}
    named, who = bool(moment.jobs.names.get("user")), moment.jobs.who
    if named:
        called = [who(user) for user in left.tolist()]
        columns["by_name"] = np.where(nobody, NOBODY, np.array(called, object))
    columns["delayed"] = right
    if named:
        columns["delayed_name"] = [who(user) for user in right.tolist()]
    columns["own"] = (left == right) & ~nobody
    columns["processor_hours"] = hours[order]
    columns["jobs"] = waited[order]
    frame = pd.DataFrame(columns)
    frame.attrs |= sums
    return frame


def _sums(hours: Float64s, nobody: Bools) -> dict[Hashable, float]:
    """Return the attributes of a table."""
    return {"processor_hours": float(hours.sum()), "nobody": float(hours[nobody].sum())}


class UserDelays(NamedTuple):
    """The delays of one user, see :func:`delays_of_user`."""

    delayed_by: pd.DataFrame  #: who delayed the user, rows as of :func:`delays_table`
    delays: pd.DataFrame  #: which others the user delayed, rows as of :func:`delays_table`


def delays_of_user(
    moment: Moment, user: int, window: int | None = None, *, most: int | None = None
) -> UserDelays:
    """Return who delayed a user, nobody and its own jobs included, and which others it delayed.

    Parameters
    ----------
    moment, window
        See :func:`delays_table`.
    user
        The user's number.
    most
        Most rows of each table; None for all.
    """
    frame = delays_table(moment, window)
    found = []
    mine = (frame["by"] == user).fillna(False).to_numpy(bool)
    for which in (frame["delayed"] == user).to_numpy(), mine & ~frame["own"].to_numpy():
        part = frame[which]
        hours, none = part["processor_hours"].to_numpy(), part["by"].isna().to_numpy()
        part = part.head(len(part) if most is None else most).reset_index(drop=True)
        part.attrs = _sums(hours, none)
        found.append(part)
    return UserDelays(*found)


def _waits_and_runs(moment: Moment, begin: int) -> tuple[Spans, Spans]:
    """Return the waits and the runs from second ``begin`` to the moment."""
    jobs, now = moment.by_run.jobs, moment.now
    submit, start = jobs.submit, jobs.start
    never, over = start == UNKNOWN, jobs.state[:] != State.UNFINISHED
    known = np.where(never, np.where(over, np.maximum(jobs.end, submit), now), start)
    # Jobs of tables without a queue count as queued when submitted.
    joined = np.where((jobs.enqueued == UNKNOWN) & ~never, submit, jobs.enqueued)
    joined = np.where(joined == UNKNOWN, now, joined)
    ends = np.where(jobs.end == UNKNOWN, now, jobs.end)
    came = submit != UNKNOWN
    about = jobs.user, jobs.processors, jobs.cluster
    found: list[Spans] = []
    for spans in (
        Spans(*about, submit, joined, known).which(came),
        Spans(*about, start, start, ends).which(came & ~never),
    ):
        spans = spans._replace(
            begin=np.maximum(spans.begin, begin),
            queued=np.clip(spans.queued, np.maximum(spans.begin, begin), now),
            end=np.minimum(spans.end, now),
        )
        found.append(spans.which((spans.begin < spans.end) & (spans.processors > 0)))
    return found[0], found[1]


def _divide(waits: Spans, runs: Spans, delayed: int, by: int) -> tuple[Float64s, Int64s]:
    """Return processor-seconds and jobs, by user who waits and user who runs.

    Users are indices; the last column of both tables, of shape (delayed, by + 1), is nobody's.
    """
    spent, jobs = np.zeros((delayed, by + 1)), np.zeros((delayed, by + 1), np.int64)
    queued = np.minimum(waits.queued, waits.end)
    before = queued - waits.begin
    held = before > 0
    spent[:, by] = np.bincount(waits.user, before * waits.processors, delayed)
    jobs[:, by] = np.bincount(waits.user[held], minlength=delayed)
    in_queue = waits._replace(queued=queued).which(queued < waits.end)
    held = held[queued < waits.end]
    for cluster in np.unique(in_queue.cluster).tolist():
        here = in_queue.cluster == cluster
        mine, others = in_queue.which(here), runs.which(runs.cluster == cluster)
        events = _in_order(others.begin, others.end, others.processors, others.user)
        changes = _in_order(mine.queued, mine.end, mine.processors, mine.user, held[here])
        places, times = np.zeros((6, by + 1), np.int64), np.zeros((2, by))
        own, seen = np.zeros((2, delayed), np.int64), np.zeros((delayed, by + 1))
        attribute(events, changes, places, times, own, seen, spent, jobs)
    return spent, jobs


def _in_order(begin: Int64s, end: Int64s, processors: Int64s, *more: Int64s | Bools) -> Int64s:
    """Return begins and ends in the order of time, begins first, shape (columns, events).

    Columns are the second, the processors added, the second of the begin, and ``more``.
    """
    at, change = np.concatenate((begin, end)), np.concatenate((processors, -processors))
    order = np.argsort(at, kind="stable")
    columns = np.array([at, change, *(np.tile(column, 2) for column in (begin, *more))])
    return np.take(columns, order, axis=1)  # keeps columns contiguous
