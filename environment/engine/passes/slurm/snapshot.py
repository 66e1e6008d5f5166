"""Slurm's controller at one second: in plain objects, and as a copy to foretell with.

The copy has the jobs that wait and run only.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hpcrowd.environment.engine.kernel.arrays import with_room
from hpcrowd.environment.engine.kernel.cluster import ClusterState, Jobs
from hpcrowd.environment.engine.kernel.heap import Heap
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.beginning import queue_all, seat_all
from hpcrowd.environment.engine.kernel.nodes.foretelling import foretell
from hpcrowd.environment.engine.kernel.nodes.limits import first_limit
from hpcrowd.environment.engine.kernel.nodes.loop import calculated
from hpcrowd.environment.engine.kernel.nodes.queue import (
    finish,
    join,
    put_in_order,
    withdraw,
)
from hpcrowd.environment.engine.kernel.nodes.site import Site
from hpcrowd.environment.jobs import UNKNOWN, Float64s, Int64s
from hpcrowd.environment.machine.selection import Holding, Stock
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.schedulers.outlook import Forecast
from hpcrowd.environment.schedulers.past import Phases
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.schedulers.slurm.shares import Shares
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.engine.passes.slurm.book import SlurmBook


#: Who starts jobs.
STARTERS = {N.BY_MAIN: "main", N.BY_BACKFILL: "backfill"}


class SlurmState:
    """The state of Slurm's controller, to be read until the simulation goes on.

    ``phases`` is what the controller did last when, and what comes next.
    """

    def __init__(self, book: SlurmBook) -> None:
        self._book = book
        self.phases: Phases = book.phases

    @cached_property
    def shares(self) -> Shares:
        """The accounts and users, with their usage and factors of fair share."""
        shares, found = self._book.shares, self._book.fair_share
        used, factors = np.asarray(found.usage).tolist(), np.asarray(found.factor).tolist()
        for one in shares.all:
            one.usage, one.factor = used[one.place], factors[one.place]
        return shares

    @cached_property
    def waiting(self) -> dict[int, QueuedJob]:
        """The waiting jobs by row, in the order of submission."""
        return {row: self._job(row) for row in self._book.waiting.tolist()}

    @cached_property
    def running(self) -> dict[int, QueuedJob]:
        """The running jobs by row, in the order of their starts."""
        book, found = self._book, {}
        row = book.controls.first_running
        while row >= 0:
            found[row] = self._begun(row, int(book.rows.tenure[row]))
            row = int(book.rows.next[row])
        return found

    @cached_property
    def stock(self) -> Stock:
        """What is free on each node."""
        book = self._book
        at, stock = book.settings, Stock(book.layout)
        free = np.asarray(book.nodes.table)[at.stock : at.future]
        stock.cores, stock.memory = free[N.FREE_CORES].tolist(), free[N.FREE_MEMORY].tolist()
        stock.jobs, stock.gpus = free[N.JOBS_HERE].tolist(), free[N.FREE_GPUS :].T.tolist()
        return stock

    def _job(self, row: int) -> QueuedJob:
        book, job = self._book, self._book.job_like(row)
        table = N.Queued(np.asarray(book.rows.table)[:, row : row + 1].copy())
        job.throttle, job.nice = int(table.throttle[0]), int(table.nice[0])
        job.requeue = bool(table.requeues[0])
        if book.jobs.requests is not None:
            job.array = int(book.jobs.requests[Ask.ARRAY][row])
            job.task = int(book.jobs.requests[Ask.TASK][row])
        job.submitted, job.eligible = int(table.submitted[0]), int(table.eligible[0])
        job.reason, job.planned = book.asked.words[table.reason[0]], int(table.planned[0])
        _ = self.shares  # brings the factors of associations up to date
        of, at = book.site_rules.priorities.of, int(table.weighed[0])
        job.factors = {name: of(job, name, at) for name in job.partitions}
        job.priority = {name: factors.total for name, factors in job.factors.items()}
        return job

    def _begun(self, row: int, tenure: int) -> QueuedJob:
        book, job = self._book, self._job(row)
        one = N.Tenures(np.asarray(book.ledger.table)[:, tenure : tenure + 1].copy())
        job.submitted, job.eligible = int(one.submitted[0]), int(one.eligible[0])
        job.start, job.by, job.reason = int(one.start[0]), STARTERS[int(one.by[0])], "None"
        job.partition = book.asked.partition_of(int(one.option[0]))
        job.holding = book.holding(tenure)
        job.suspended, job.paused = int(book.rows.suspended[row]), int(book.rows.rested[row])
        return job


#: Tables of the book that a forecast changes; to what jobs hold it appends only.
CHANGED = ("nodes", "people", "used", "spent", "rows", "ledger", "bills", "lists", "tasks")


class Snapshot:
    """A copy of the book with few jobs; what happens to it does not happen in the run.

    The book learns of new options only. ``rows`` are the jobs by row of the table. In the copy,
    their rows are those of :meth:`place`; between them are rows for jobs that ask, since ties go by
    row.
    """

    def __init__(self, book: SlurmBook, now: int, rows: Int64s) -> None:
        self.now, self.rows = now, np.unique(rows)
        width = 2 * len(self.rows) + 1
        jobs = np.zeros((len(book.jobs.matrix), width), np.int64)
        jobs[:, 1::2] = book.jobs.matrix[:, self.rows]
        self._engine = Jobs(jobs), ClusterState(now=now), Heap(np.zeros((2, width), np.int64))
        self.book = own = book.twin()
        own.arrays = {}
        for name in ("nodes", "rules", "fair_share", "people", "used", "spent"):
            setattr(own, name, _copied(getattr(book, name)))
        for name in ("rows", "ledger", "bills", "pauses", "held", "lists", "tasks", "releases"):
            one = getattr(book, name)
            setattr(own, name, type(one)(np.asarray(one.table)[:, :0].copy()))
        own.sets, own.spans = book.sets.copy(), book.spans[:0]
        own.rows.table = np.zeros((N.JOB_ROWS, width), np.int64)
        own.entries.array, own.entries.count = book.entries.array[:, :0], 0

    def copy(self) -> Self:
        """Return an independent copy."""
        other = copy(self)
        jobs, _, ends = self._engine
        other._engine = _copied(jobs), ClusterState(now=self.now), _copied(ends)
        own = other.book = self.book.twin()
        own.entries.array = own.entries.array.copy()
        for name in CHANGED:
            setattr(own, name, _copied(getattr(own, name)))
        return other

    @property
    def site(self) -> Site:
        """All arrays."""
        return self.book.site(*self._engine)

    def place(self, rows: Any) -> Any:
        """Return the rows in the copy for rows of the table; UNKNOWN stays so."""
        return np.where(np.asarray(rows) < 0, UNKNOWN, 2 * np.searchsorted(self.rows, rows) + 1)

    def waits(self, row: int) -> bool:
        """Return whether a job of the table waits."""
        place = np.searchsorted(self.rows, row)
        if place == len(self.rows) or self.rows[place] != row:
            return False
        return bool(self.book.rows.status[2 * place + 1] == N.WAITING)

    # jobs that ask

    def note(self, job: QueuedJob, place: int) -> None:
        """Note what a job asks for, in a row of the copy."""
        own, one = self.book, job.association
        association = len(own.shares.all) if one.place == UNKNOWN else one.place
        rows = N.Queued(np.zeros((N.JOB_ROWS, 1), np.int64))
        rows.association[0], rows.user_of[0] = association, own.asked.user(job.user)
        rows.qos[0] = own.qos.get(job.qos, UNKNOWN)
        rows.reservation[0] = own.reservations.get(job.reservation, UNKNOWN)
        rows.limit[0], rows.throttle[0], rows.nice[0] = job.limit, job.throttle, job.nice
        rows.requeues[0], rows.array[0] = job.requeue, UNKNOWN
        rows.begin[0] = rows.eligible[0] = job.eligible
        rows.submitted[0], rows.planned[0], rows.tenure[0] = job.submitted, UNKNOWN, UNKNOWN
        rows.pause[0] = UNKNOWN
        if job.array != UNKNOWN:
            rows.array[0] = own.arrays.setdefault(job.array, len(own.arrays))
            need = len(own.arrays) * len(own.layout.partitions)
            own.tasks.table = with_room(own.tasks.table, need)
        np.asarray(own.rows.table)[:, place] = np.asarray(rows.table)[:, 0]
        own.add_entries(place, job)
        if one.place == UNKNOWN:  # a new user, behind all others
            above = UNKNOWN if one.parent is None else one.parent.place
            own.people.parent[association], own.fair_share.factor[association] = above, 1.0

    def limit(self, job: QueuedJob, partition: str, *kinds: str) -> str:
        """Return the first limit in the way of a job, of the kinds of ``kernel.nodes.Options``."""
        own = self.book
        if not own.settings.enforced:
            return ""
        option = own.asked.option(job, partition)
        own.learn_associations()
        site = self.site
        for kind in kinds:
            first, end = (getattr(site.options, name)[option] for name in (kind, f"{kind}_end"))
            word = first_limit(site, first, end, option, job.limit, 0)
            if word:
                return own.asked.words[word]
        return ""

    def forecast_new(self, job: QueuedJob) -> Forecast:
        """Return when a job would start that is submitted now instead of what waits in its row."""
        future = self.copy()
        if self.waits(job.row):
            withdraw(future.site, int(self.place(job.row)))
        place = 2 * int(np.searchsorted(self.rows, job.row))
        future.note(job, place)
        join(future.site, place, self.now)
        return future._foretold(place)

    def forecast(self, row: int) -> Forecast:
        """Return when a waiting job of the table starts."""
        return self.copy()._foretold(int(self.place(row)))

    def _foretold(self, place: int) -> Forecast:
        own, rows = self.book, self.book.rows
        own.grow(0, 0, 0)
        begin = int(rows.eligible[place])
        start = foretell(self.site, place, self.now)
        if start >= 0:
            return Forecast(max(start, begin))
        word = int(rows.reason[place])
        return Forecast(FOREVER, "Priority" if word == N.NONE else own.asked.words[word])

    # what there is to see

    def queue(self) -> tuple[Int64s, Int64s]:
        """Return the partition and the counted cores of each entry that waits."""
        own = self.book
        entries, options = N.Entries(own.entries.array), self.site.options
        option = entries.option[entries.placed[: own.controls.ordered]]
        cores = own.asked.arrays()[0][N.DEMANDS + N.T_CORES]
        return np.asarray(options.partition)[option], cores[np.asarray(options.demand)[option]]

    def free(self) -> tuple[Int64s, Int64s, Int64s]:
        """Return the free cores, the free GPUs and the jobs of each node."""
        settings = self.book.settings
        free = np.asarray(self.book.nodes.table)[settings.stock :]
        gpus = free[N.FREE_GPUS : N.FREE_GPUS + settings.kinds].sum(axis=0)
        return free[N.FREE_CORES], gpus, free[N.JOBS_HERE]

    def count(self, job: QueuedJob) -> tuple[int, int]:
        """Return how many jobs of the user in the QOS of a job run, and wait."""
        own, rows = self.book, self.book.rows
        mine = rows.user_of == own.asked.user(job.user)
        mine &= rows.qos == own.qos.get(job.qos, UNKNOWN)
        running, waiting = (mine & (rows.status == one) for one in (N.RUNNING, N.WAITING))
        return int(running.sum()), int(waiting.sum())

    def factors(self) -> Float64s:
        """Return the factors of fair share by place; 1 for users who have come since."""
        own = self.book
        found = np.ones(len(own.shares.all))
        found[: own.known] = np.asarray(own.fair_share.factor)[: own.known]
        return found


def snapshot_of(book: SlurmBook, now: int, waiting: Int64s, running: Int64s) -> Snapshot:
    """Return the controller as of now, which in the run learns of what happens now only later.

    Rows are those of the jobs that wait and run by now.
    """
    c, lists = book.controls, book.lists
    runs, queue = np.array(lists.end_of[: c.running]), book.queue
    over = np.array(book.ledger.row)[np.asarray(lists.over_of[: c.over])]
    found = Snapshot(book, now, np.concatenate((runs, queue, over, waiting)))
    _copy_jobs(found, book, runs)
    own = found.book
    gone, come = np.setdiff1d(runs, running), np.setdiff1d(waiting, book.waiting)
    own.grow(len(come), len(gone), 0)
    while not calculated(found.site, now):
        own.rank()
    site = found.site
    for place in found.place(gone).tolist():
        finish(site, place, now, False)
    for place in found.place(np.setdiff1d(queue, waiting)).tolist():
        withdraw(site, place)
    for place in found.place(come).tolist():
        join(site, place, now)
    return found


def snapshot_with(
    book: SlurmBook,
    now: int,
    running: Sequence[QueuedJob],
    waiting: Sequence[QueuedJob],
    arrived: Sequence[QueuedJob],
) -> Snapshot:
    """Return a controller with these jobs, whatever their priorities.

    The book has no jobs. Running ones have what they hold, and are in the order of their starts;
    waiting ones are in the order in which they are tried. Who joins the queue now is behind them.
    """
    everything = [*running, *waiting, *arrived]
    found = Snapshot(book, now, np.array([job.row for job in everything], np.int64))
    own, count = found.book, len(running)
    places = found.place([job.row for job in everything])
    own.held.table = with_room(own.held.table, sum(len(job.holding) for job in running))
    entries, shares = np.zeros(count, np.int64), np.zeros((2, count), np.int64)
    for k, (job, place) in enumerate(zip(everything, places.tolist(), strict=True)):
        if k >= count:
            found.note(job, place)
            continue
        ran = copy(job)
        ran.partitions = tuple(dict.fromkeys((*job.partitions, job.partition)))
        found.note(ran, place)
        entries[k] = own.rows.entry[place] + ran.partitions.index(job.partition)
        shares[:, k] = hold_shares(own, job.holding)
    own.grow(len(everything), 0, 0)
    starts = np.array([job.start for job in running], np.int64)
    seat_all(found.site, places[:count], entries, np.ones(count, np.int64), starts, shares)
    queue, come = places[count : count + len(waiting)], places[count + len(waiting) :]
    queue_all(found.site, queue, np.zeros(len(queue), np.int64))
    entry = N.Entries(own.entries.array)
    for behind, place in enumerate(reversed(queue.tolist()), 2):  # who comes later has priority 1
        first = own.rows.entry[place]
        entry.priority[first : first + own.rows.count[place]] = behind
    put_in_order(found.site)
    for place in come.tolist():
        join(found.site, place, now)
    return found


def hold_shares(book: SlurmBook, holding: Holding) -> tuple[int, int]:
    """Note what a job holds; return the places of the first share and behind the last."""
    first = book.controls.shares
    last, held = first + len(holding), np.asarray(book.held.table)
    for place, share in enumerate(holding, first):
        held[:, place] = share.node, share.cores, share.memory, *share.gpus
    book.controls.shares = last
    return first, last


def _copy_jobs(to: Snapshot, book: SlurmBook, runs: Int64s) -> None:
    """Copy the jobs of a snapshot, with their entries in the order of those that wait."""
    own, c = to.book, to.book.controls
    rows = N.Queued(np.take(book.rows.table, to.rows, axis=1))
    firsts, counts = np.array(rows.entry), np.asarray(rows.count)
    mine, all_entries = np.cumsum(counts) - counts, book.entries.array
    table = np.take(all_entries, _flat(firsts, counts), axis=1)
    entries = N.Entries(table)
    entries.owner[:] = np.repeat(2 * np.arange(len(to.rows)) + 1, counts)
    order = N.Entries(all_entries[:, : c.ordered].copy())
    which = np.searchsorted(to.rows, N.Entries(all_entries).owner[order.placed])
    entries.key[: c.ordered] = order.key
    entries.placed[: c.ordered] = order.placed - firsts[which] + mine[which]
    own.entries.array, own.entries.count = table, int(counts.sum())
    rows.entry[:], rows.pause[:], c.pauses = mine, UNKNOWN, 0  # pauses are for the ledger only
    for one in (rows.next, rows.before_it):
        one[:] = to.place(np.asarray(one))
    c.first_running, c.last_running = to.place([c.first_running, c.last_running]).tolist()
    _copy_arrays(own, book, rows, to.rows)
    _copy_tenures(to, book, rows, runs)
    np.asarray(own.rows.table)[:, 1::2] = rows.table


def _copy_arrays(own: SlurmBook, book: SlurmBook, rows: N.Queued, of: Int64s) -> None:
    """Number the arrays of jobs anew, with their running tasks."""
    requests, tasks = book.jobs.requests, np.flatnonzero(np.asarray(rows.array) >= 0)
    if requests is None or not len(tasks):
        return
    numbers, first, which = np.unique(
        requests[Ask.ARRAY][of[tasks]], return_index=True, return_inverse=True
    )
    own.arrays = {number: place for place, number in enumerate(numbers.tolist())}
    known = np.asarray(rows.array)[tasks[first]]
    own.tasks.table = np.zeros((N.TASK_ROWS, len(numbers) * len(own.layout.partitions)), np.int64)
    own.tasks.tasks[: len(numbers)] = np.asarray(book.tasks.tasks)[known]
    rows.array[tasks] = which


def _copy_tenures(to: Snapshot, book: SlurmBook, rows: N.Queued, runs: Int64s) -> None:
    """Copy the tenures of running jobs, and of those that ended since usage was computed."""
    own, c, lists = to.book, to.book.controls, to.book.lists
    here = np.searchsorted(to.rows, runs)
    count, over = len(runs), np.asarray(book.lists.over_of)[: c.over]
    which = np.concatenate((np.asarray(rows.tenure)[here], over))
    ledger = own.ledger = N.Tenures(np.take(book.ledger.table, which, axis=1))
    own.bills = N.Bills(np.take(book.bills.table, which, axis=1))
    firsts, sizes = np.array(ledger.first), ledger.last - np.asarray(ledger.first)
    firsts[count:] = sizes[count:] = 0
    own.held.table = np.take(book.held.table, _flat(firsts, sizes), axis=1)
    ends = np.cumsum(sizes)
    ledger.row[:], ledger.first[:], ledger.last[:] = to.place(ledger.row), ends - sizes, ends
    rows.tenure[here] = np.arange(count)
    lists.table = np.zeros((N.LIST_ROWS, max(count, len(over))), np.int64)
    lists.end_at[:count] = np.asarray(book.lists.end_at)[:count]
    lists.end_of[:count] = to.place(runs)
    lists.over_of[: len(over)] = count + np.arange(len(over))
    lists.over_at[: len(over)] = np.asarray(book.lists.over_at)[: len(over)]
    c.tenures, c.shares = len(which), int(sizes.sum())
    c.stopped = c.stopped_before = 0


def _flat(firsts: Int64s, counts: Int64s) -> Int64s:
    """Return the places of lists that lie somewhere, one list after the other."""
    before = np.cumsum(counts) - counts
    found: Int64s = np.repeat(firsts - before, counts) + np.arange(int(counts.sum()))
    return found


def _copied(one: Any) -> Any:
    """Return a table of numbers with a copy of its array."""
    return type(one)(np.array(one.table))
