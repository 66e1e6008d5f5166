"""The book of Slurm's controller in the middle of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.engine.kernel.cluster import Cluster
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.beginning import queue_all, seat_all
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s
from hpcrowd.environment.machine.demand import demand_of
from hpcrowd.environment.machine.past import Past, Placed
from hpcrowd.environment.machine.stock import Holding, Stock
from hpcrowd.environment.schedulers.slurm.past import (
    NOTHING_KNOWN,
    check_not_too_full,
    cores_of,
    divided,
    in_seating_order,
    just_over,
    partitions_of,
    seat,
    seat_in_turn,
    seating_of,
    use_past,
    weighed_at,
)
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.engine.passes.slurm.book import SlurmBook

#: Columns that the admission of a job changes.
GRANTED = (Column.PROCESSORS, Column.REQUESTED_TIME)


def go_on(book: SlurmBook, past: Past, associations: Int64s, cluster: Cluster) -> None:
    """Let a book that has just begun go on from a state; the jobs of now have been submitted.

    Parameters
    ----------
    book
        The book.
    past
        The state.
    associations
        Places of the associations, by row of the table.
    cluster
        The arrays of the engine.

    Raises
    ------
    QuantityError
        If the running jobs have no room.
    """
    jobs, running, waiting = book.jobs, past.running, past.waiting
    phases = past.phases or book.site_rules.phases_at(past.now)
    recent = just_over(jobs, past, phases)
    if len(recent):
        granted = jobs.matrix[np.ix_(GRANTED, recent)]
        book.resolve(recent)
        jobs.matrix[np.ix_(GRANTED, recent)] = granted  # not asked for again
    use_past(book.shares, jobs, past, associations, phases.calculated)
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
    _note_over(book, recent, cores_of(jobs, recent, past))
    more = int(rows.count[here].sum())
    book.grow(len(here), len(recent), more)
    if _seat(book, past, cluster) >= 0:
        found = {row: book.running_like(row) for row in running.tolist()}
        for row, job in found.items():
            job.start = int(jobs.start[row])
        how = seating_of(book.site_rules, book.admission)
        seat_in_turn(found, past, how, Stock(book.layout))
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


def _note_over(book: SlurmBook, recent: Int64s, cores: Int64s) -> None:
    """Note jobs that ended since usage was computed last, with tenures to charge."""
    count = len(recent)
    book.first_tenure = count
    if not count:
        return
    book.grow(count, count, 0)
    of = np.arange(count)
    ledger, lists, c = book.ledger, book.lists, book.controls
    ledger.row[of], ledger.start[of] = recent, book.jobs.start[recent]
    ledger.submitted[of] = ledger.eligible[of] = book.jobs.enqueued[recent]
    ledger.cores[of] = cores
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
    how = seating_of(book.site_rules, book.admission)
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


def hold_shares(book: SlurmBook, holding: Holding) -> tuple[int, int]:
    """Note what a job holds; return the places of the first share and behind the last."""
    first = book.controls.shares
    last, held = first + len(holding), np.asarray(book.held.table)
    for place, share in enumerate(holding, first):
        held[:, place] = share.node, share.cores, share.memory, *share.gpus
    book.controls.shares = last
    return first, last
