"""The compiled pass of the policy ``slurm``, also from the middle of a run on."""

from __future__ import annotations

from typing import Any, override

import numpy as np

from hpcrowd.environment.engine.kernel.arrays import with_room
from hpcrowd.environment.engine.kernel.cluster import Cluster
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.beginning import queue_all, seat_all
from hpcrowd.environment.engine.kernel.nodes.loop import (
    advance_on_nodes,
    arrive_on_nodes,
    complete_on_nodes,
    pass_on_nodes,
    sort_stops,
)
from hpcrowd.environment.engine.passes.base import PassOnNodes
from hpcrowd.environment.engine.passes.slurm.book import SlurmBook
from hpcrowd.environment.engine.passes.slurm.snapshot import hold_shares
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s
from hpcrowd.environment.machine.demand import demand_of
from hpcrowd.environment.machine.selection import Holding, Stock
from hpcrowd.environment.schedulers.past import Past, Placed
from hpcrowd.environment.schedulers.slurm.past import (
    NOTHING_KNOWN,
    Charged,
    Seating,
    charged,
    check_not_too_full,
    divided,
    in_seating_order,
    just_over,
    partitions_of,
    seat,
    seat_running,
    use_past,
    weighed_at,
)
from hpcrowd.environment.stops import FOREVER

#: What happens to jobs that are stopped, as plain schedulers say it.
FATES = {N.REQUEUED: "requeue", N.CANCELLED: "fail"}


class SlurmPass(PassOnNodes):
    """Slurm's controller on a machine of nodes, in compiled code.

    The first pass of a run makes the book of the scheduler; later ones share it.
    """

    def __init__(self, scheduler: Any, engine: Any) -> None:
        super().__init__(scheduler, engine)
        if scheduler.book is None:
            scheduler.begin(engine.up)
            scheduler.book = SlurmBook(
                scheduler.rules, scheduler.admission, scheduler.placement, engine.jobs
            )
        self.book: SlurmBook = scheduler.book

    @override
    def inherit(self, before: Any, ended: Int64s) -> None:
        book, cluster = self.book, self.engine.arrays()
        book.let_end(cluster, ended)
        book.leave_out(self._arrived(cluster))
        book.shown_anew = True

    @override
    def go_on(self, past: Past) -> None:
        go_on(self.book, past, self.scheduler.associations, self.engine.arrays())

    @property
    @override
    def refused(self) -> dict[int, str]:
        return self.book.refused()

    @property
    @override
    def waiting(self) -> Int64s:
        found = self.book.waiting
        return found[:0] if self.book.shown_anew else found

    @property
    @override
    def suspended(self) -> Int64s:
        return self.book.suspended

    @override
    def schedule(self, ended: Int64s, arrived: Int64s) -> int:
        book, cluster = self.book, self._grow()
        while not pass_on_nodes(self._site(cluster), ended, arrived):
            book.rank()
        book.shown_anew = False
        sort_stops(self._site(cluster))
        stopped = slice(book.controls.stopped)
        rows, fates = book.lists.stopped_row[stopped], book.lists.stopped_fate[stopped]
        self.ended_now = rows[fates == N.CANCELLED].tolist()
        self._note_stops()
        return cluster.state.wake

    @override
    def advance(self, cluster: Cluster, remaining: Int64s, halt: int) -> int:
        book, engine, c = self.book, self.engine, self.book.controls
        passes = c.passes
        while True:
            stop: int = advance_on_nodes(cluster, remaining, halt, self._site(cluster))
            if c.passes > passes:
                passes = c.passes
                book.shown_anew = False
            if stop == N.PREDICT:
                engine.predict()
            elif stop == N.RANK:
                book.rank()
            elif stop == N.GROW:
                cluster = self._grow()
            else:
                break
        if c.stopped:
            self._note_stops()
        return stop

    @override
    def complete(self, cluster: Cluster, remaining: Int64s) -> bool:
        return complete_on_nodes(cluster, self._site(cluster), remaining)

    @override
    def arrive(self, cluster: Cluster, remaining: Int64s) -> bool:
        return arrive_on_nodes(cluster, self._site(cluster), remaining)

    def _site(self, cluster: Cluster) -> N.Site:
        """Return all arrays of the machine."""
        book, settings, engine = self.book, self.book.settings, self.engine
        settings.latency, settings.kill_every = engine.latency, engine.kill_every
        settings.kill_phase, settings.predicts = engine.kill_phase, engine.predictor is not None
        return book.site(cluster.jobs, cluster.state, cluster.ends)

    def _grow(self) -> Cluster:
        """Give more room to whatever could become full in the pass; return the engine's arrays."""
        book, cluster = self.book, self.engine.arrays()
        state, ends, rows = cluster.state, cluster.ends, self._arrived(cluster)
        arrived, more = len(rows), int(book.rows.count[rows].sum())
        book.grow(arrived, state.expected_end, more)
        need = state.running + book.controls.waiting + book.controls.running + arrived
        ends.table = with_room(ends.table, 2 * need)
        return cluster

    def _arrived(self, cluster: Cluster) -> Int64s:
        """Return the rows of the jobs that arrived since the last pass."""
        return cluster.queue.job[cluster.state.queue_head : cluster.state.queue_tail]

    def _note_stops(self) -> None:
        """Note the runs of preempted jobs."""
        book, engine, c = self.book, self.engine, self.book.controls
        table = np.asarray(book.lists.table)
        stops = table[N.STOPPED_ROW : N.STOPPED_START + 1, : c.stopped]
        for row, at, fate, start in stops.T.tolist():
            engine.note_preempted(row, start, at, FATES[fate])
        c.stopped = c.stopped_before = 0


#: Columns that the admission of a job changes.
GRANTED = (Column.PROCESSORS, Column.REQUESTED_TIME)


def go_on(book: SlurmBook, past: Past, associations: Int64s, cluster: Cluster) -> None:
    """Let a book that has just begun go on from a state; the jobs of now have been submitted.

    The associations are places by row of the table. Raises QuantityError if the running jobs have
    no room.
    """
    jobs, running, waiting = book.jobs, past.running, past.waiting
    phases = past.phases or book.site_rules.phases_at(past.now)
    recent = just_over(jobs, past, phases)
    if len(recent):
        granted = jobs.matrix[np.ix_(GRANTED, recent)]
        book.resolve(recent)
        jobs.matrix[np.ix_(GRANTED, recent)] = granted  # not asked for again
    limits = book.site_rules.limits
    use_past(book.shares, limits, book.admission, past, associations, phases.calculated)
    book.learn_usage()
    rows = book.rows
    here = np.concatenate((running, waiting))
    submitted = jobs.enqueued[here]
    rows.submitted[here] = submitted
    rows.eligible[here] = np.maximum(submitted, rows.begin[here])
    rows.reason[here], rows.planned[here] = N.NONE, UNKNOWN
    for row, placed in past.placed.items():
        if placed.eligible != UNKNOWN:
            rows.eligible[row] = placed.eligible
        if placed.reason:
            rows.reason[row] = book.asked.word(placed.reason)
    book.set_phases(phases)
    _note_over(book, recent, charged(book.admission, limits, recent, past))
    more = int(rows.count[here].sum())
    book.grow(len(here), len(recent), more)
    if _seat(book, past, cluster) >= 0:
        how = Seating(book.admission, book.site_rules)
        found = seat_running(past, how, Stock(book.layout), book.running_like)
        seats = {
            row: Placed(partition=job.partition, holding=job.holding) for row, job in found.items()
        }
        _seat(book, past._replace(placed=seats), cluster)
    book.grow(len(waiting), 0, more)
    eligible = rows.eligible[waiting]
    book.controls.next_eligible = int(eligible[eligible > past.now].min(initial=FOREVER))
    queue_all(
        book.site(cluster.jobs, cluster.state, cluster.ends),
        waiting,
        weighed_at(jobs, past, phases),
    )


def _note_over(book: SlurmBook, recent: Int64s, charges: Charged) -> None:
    """Note jobs that ended since usage was computed last, with tenures to charge."""
    count = len(recent)
    book.first_tenure = count
    if not count:
        return
    book.grow(count, count, 0)
    of = np.arange(count)
    ledger, lists, c, bills = book.ledger, book.lists, book.controls, book.bills
    ledger.row[of], ledger.start[of] = recent, book.jobs.start[recent]
    ledger.submitted[of] = ledger.eligible[of] = book.jobs.enqueued[recent]
    bills.rate[of] = charges.rate
    if book.settings.minutes:
        entries = N.Entries(book.entries.array)
        known = book.rows.count[recent] > 0
        ledger.option[of[known]] = entries.option[book.rows.entry[recent[known]]]
        for place, name in enumerate(book.asked.tres_names):
            amounts = np.array([one.tres.get(name, 0.0) for one in charges.bills] or [0.0])
            bills.table[N.BILL_ROWS + place, :count] = known * amounts[charges.of] * charges.scale
    lists.over_of[of], lists.over_at[of] = of, book.jobs.end[recent]
    c.tenures = c.over = count


def _seat(book: SlurmBook, past: Past, cluster: Cluster) -> int:
    """Seat the running jobs; return the place of one that has no room, -1 for none."""
    running, held = past.running, book.controls.shares
    entries, counts, holdings = _seats(book, past)
    shares = np.zeros((2, len(running)), np.int64)
    for place, row in enumerate(running.tolist() if holdings else ()):
        if row in holdings:
            shares[:, place] = hold_shares(book, holdings[row])
    starts = book.jobs.start[running]
    lacks = seat_all(
        book.site(cluster.jobs, cluster.state, cluster.ends),
        running,
        entries,
        counts,
        starts,
        shares,
    )
    if lacks >= 0:
        book.controls.shares = held
    return lacks


def _seats(book: SlurmBook, past: Past) -> tuple[Int64s, Int64s, dict[int, Holding]]:
    """Return entries of the running jobs to try, first and number, and what some of them hold."""
    rows, running = book.rows, past.running
    entries, counts = rows.entry[running].copy(), rows.count[running].copy()
    holdings: dict[int, Holding] = {}
    place_of = {row: place for place, row in enumerate(running.tolist())}
    stock = Stock(book.layout) if past.placed else None
    how = Seating(book.admission, book.site_rules)
    refused = set(running[rows.refusal[running] > 0].tolist())
    past = divided(past, book.running_like, how)
    for row in in_seating_order(past):
        placed = past.placed.get(row, NOTHING_KNOWN)
        if placed is NOTHING_KNOWN and row not in refused:
            continue
        place = place_of[row]
        entries[place], counts[place] = _entries_in(book, row, placed, row in refused)
        if stock is not None and (placed.holding or placed.nodes):
            job = book.running_like(row)
            partition, holdings[row] = seat(job, placed, how, stock)
            stock.take(holdings[row])
            if not placed.partition and counts[place] > 1:
                named = placed._replace(partition=partition)
                entries[place], counts[place] = _entries_in(book, row, named, False)
    if stock is not None:
        check_not_too_full(book.jobs, holdings.items(), stock)
    return entries, counts, holdings


def _entries_in(book: SlurmBook, row: int, placed: Placed, refused: bool) -> tuple[int, int]:
    """Return the entry of a running job in the partition where it runs, or all of its entries."""
    job = book.running_like(row)
    names = partitions_of(job, placed, book.admission)
    first, count = int(book.rows.entry[row]), int(book.rows.count[row])
    if not refused:
        if not placed.partition:
            return first, count
        for entry in range(first, first + count):
            if (
                book.asked.partition_of(N.Entries(book.entries.array).option[entry])
                == placed.partition
            ):
                return entry, 1
    job.partitions, layout = names, book.layout
    job.demands = {
        name: job.demands.get(name) or demand_of(layout, layout.partitions[name], book.jobs, row)
        for name in names
    }
    return book.add_entries(row, job)
