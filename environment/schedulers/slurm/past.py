"""A machine of nodes in the middle of a run: where running jobs sit, and who used what so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.jobs import UNKNOWN, Column, Float64s, Int64s, JobTable
from hpcrowd.environment.machine.demand import demand_of
from hpcrowd.environment.machine.layout import bits
from hpcrowd.environment.machine.selection import Holding, Share, Stock, select
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.schedulers.past import Past, Phases, Placed
from hpcrowd.environment.schedulers.slurm.admission import Admission, SiteRules
from hpcrowd.environment.schedulers.slurm.billing import reset_around
from hpcrowd.environment.schedulers.slurm.limits import Bill, LimitKeeper
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.schedulers.slurm.shares import LN2, Shares

NOTHING_KNOWN = Placed()

#: Columns by which jobs are alike.
ASKED = (
    Column.USER, Column.GROUP, Column.QUEUE, Column.PROCESSORS, Column.REQUESTED_TIME,
    Column.REQUESTED_MEMORY,
)  # fmt: skip


def associations_of(admission: Admission) -> Int64s:
    """Return the place of the association of each job of the table; new users are added."""
    jobs, accounts = admission.jobs, admission.layout.machine.accounts
    columns = [jobs.user]
    if accounts:
        columns.append(jobs.group)
    if jobs.requests is not None:
        columns.append(jobs.requests[Ask.ACCOUNT])
    if any(one.partition for one in accounts):
        columns.append(jobs.queue)
        columns += [] if jobs.requests is None else [jobs.requests[Ask.PARTITIONS]]
    if not len(jobs):
        return np.zeros(0, np.int64)
    first, which = alike(columns)
    places = [admission.association(row).place for row in first.tolist()]
    return np.array(places, np.int64)[which]


def alike(columns: list[Int64s]) -> tuple[Int64s, Int64s]:
    """Return the first job of each group of equal ones, in order, and the group of each job."""
    if len(columns[0]) == 1:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, which = np.unique(column, return_inverse=True)
        if len(values) > 1:
            _, codes = np.unique(codes * len(values) + which, return_inverse=True)
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return first[order], place[which]


def cores_of(jobs: JobTable, rows: Int64s, past: Past) -> Int64s:
    """Return the cores that jobs held: those of their holdings, else their processors."""
    cores = jobs.processors[rows].copy()
    for place, row in enumerate(rows.tolist() if past.placed else ()):
        holding = past.placed.get(row, NOTHING_KNOWN).holding
        if holding:
            cores[place] = sum(share.cores for share in holding)
    return cores


class Charged(NamedTuple):
    """What jobs are charged in a second, for fair share and for limits."""

    rate: Float64s
    bills: list[Bill]
    of: Int64s  #: place in ``bills``
    scale: Float64s  #: what that is multiplied by


def charged(admission: Admission, limits: LimitKeeper, rows: Int64s, past: Past) -> Charged:
    """Return what jobs are charged that ran: by what jobs alike ask, and the cores they held."""
    jobs = admission.jobs
    cores = cores_of(jobs, rows, past).astype(np.float64)
    if not limits.bills or not len(rows):
        return Charged(cores, [], np.zeros(len(rows), np.int64), np.zeros(len(rows)))
    columns = [jobs.matrix[column, rows] for column in ASKED]
    if jobs.requests is not None:
        columns += [jobs.requests[ask][rows] for ask in Ask]
    first, of = alike(columns)
    bills, asked = [], []
    for row in rows[first].tolist():
        job = admission.resolved(row, adds=False)
        known = [name for name in job.partitions if name in job.demands]
        bills.append(limits.bill(job, known[0]) if known else Bill(job.association, 1.0, {}, ()))
        asked.append(job.counted_cores(known[0], admission.layout) if known else 1)
    scale = cores / np.maximum(np.array(asked)[of], 1)
    return Charged(np.array([one.rate for one in bills])[of] * scale, bills, of, scale)


def use_past(
    shares: Shares, limits: LimitKeeper, admission: Admission, past: Past, places: Int64s,
    until: int,
) -> None:  # fmt: skip
    """Set all usage at a second to what jobs used by then; rank the associations.

    Places of the associations are by row of the table; ``until`` is at the end of a calculation
    period, s since the origin.
    """
    jobs, settings = admission.jobs, shares.settings
    rows = np.concatenate((past.over, past.running))
    ends = np.concatenate((jobs.end[past.over], np.full(len(past.running), until)))
    charges, period = charged(admission, limits, rows, past), settings.calculation_period
    machine = admission.layout.machine
    reset, _ = reset_around(settings.usage_reset, until, *machine.began)
    counted = until - ((until - reset) // period + 1) * period  # a whole period counts anew
    starts, ends = np.maximum(jobs.start[rows], counted), np.maximum(ends, counted)
    used = decayed_use(charges.rate, starts, ends, until, period, settings.half_life)
    for half_life in {settings.half_life, 0} if charges.bills else ():
        seconds = decayed_use(charges.scale, starts, ends, until, period, half_life)
        of_each = np.bincount(charges.of, seconds, len(charges.bills)).tolist()
        for bill, amount in zip(charges.bills, of_each, strict=True):
            limits.spent_before(bill, amount, decays=half_life > 0)
    amounts = np.bincount(places[rows], used, len(shares.all)).tolist()
    for one in reversed(shares.all):  # each behind the one above it
        one.usage = amounts[one.place]
        if one.parent is not None:
            amounts[one.parent.place] += one.usage
    shares.rank()


def decayed_use(
    cores: Float64s, start: Int64s, end: Int64s, until: int, period: int, half_life: int
) -> Float64s:
    """Return what is left of the usage of jobs, processor-seconds, as ``Shares`` counts it.

    At the end of each period, earlier usage decays by the length of the period, and what ran in it
    is charged, decayed by how long it ran in it. Over whole periods that is a geometric series.

    Parameters
    ----------
    cores, start, end
        Of each job; s since the origin, shape (jobs,). Any amount may stand for cores.
    until
        s since the origin; the end of a period.
    period, half_life
        s; no half-life is 0.
    """
    old, young = np.maximum(until - start, 0), np.maximum(until - end, 0)
    if not half_life:
        return np.asarray(cores * (old - young), np.float64)
    left = 1 - LN2 / half_life
    first, last = np.maximum(old - 1, 0) // period, young // period  # periods, counted backwards
    within = first <= last

    def part(seconds: Int64s, periods: Int64s) -> Float64s:
        return np.asarray(seconds * left ** (seconds + periods * float(period)), np.float64)

    whole = left ** float(period)
    series = left ** ((last + 1.0) * period) - left ** (first * float(period))
    several = part(old - first * period, first) + part((last + 1) * period - young, last)
    several += period * whole * series / (1 - whole)
    return np.asarray(cores * np.where(within, part(old - young, last), several), np.float64)


def in_seating_order(past: Past) -> list[int]:
    """Return the running jobs, those first whose nodes are known."""
    placed = past.placed
    known = [row for row in past.running.tolist() if _is_known(placed.get(row, NOTHING_KNOWN))]
    there = set(known)
    return known + [row for row in past.running.tolist() if row not in there]


def _is_known(one: Placed) -> bool:
    return bool(one.holding or one.nodes)


class Seating(NamedTuple):
    """How running jobs are seated on a machine."""

    admission: Admission
    rules: SiteRules


def seat(job: QueuedJob, placed: Placed, how: Seating, stock: Stock) -> tuple[str, Holding]:
    """Return the partition of a running job, and what it holds of what is free.

    Where its nodes are not known, it keeps out of reservations if it can. Raises QuantityError if
    it has no room, or its partition or a node is not known.
    """
    layout, jobs = how.admission.layout, how.admission.jobs
    names = partitions_of(job, placed, how.admission)
    if placed.partition and placed.partition not in job.demands:
        asked = demand_of(layout, layout.partitions[placed.partition], jobs, job.row)
        job.demands = {**job.demands, placed.partition: asked}
    if placed.holding:
        return names[0], placed.holding
    allowed = layout.all_nodes
    if placed.nodes:
        try:
            allowed = layout.nodes_in(placed.nodes)
        except QuantityError as error:
            raise QuantityError(f"running job {jobs.number[job.row]}: {error}") from None
    count, barred = allowed.bit_count(), how.rules.barred(job, job.start, job.limit)
    for kept in (0,) if placed.nodes else dict.fromkeys((barred, 0)):
        for name in names:
            demand = job.demands[name]
            if placed.nodes:
                demand = replace(demand, nodes=allowed, least_nodes=count, most_nodes=count)
            holding = select(stock, demand, allowed & ~kept, how.rules.rule)
            if holding is not None:
                return name, holding
    raise no_room(jobs, job.row, [layout.names[node] for node in bits(allowed) if placed.nodes])


def partitions_of(job: QueuedJob, placed: Placed, admission: Admission) -> tuple[str, ...]:
    """Return the names of the partitions, which must exist, that a running job may be in."""
    names = (placed.partition,) if placed.partition else job.partitions
    for name in names:
        if name not in admission.layout.partitions:
            known = not_one_of(name, list(admission.layout.partitions))
            number = admission.jobs.number[job.row]
            raise QuantityError(f"running job {number} in partition {name!r}: {known}")
    return names


def no_room(jobs: JobTable, row: int, nodes: Sequence[str] = ()) -> QuantityError:
    """Return the error for a running job that the machine has no room for."""
    where = f"nodes {', '.join(nodes)} have" if nodes else "the machine has"
    return QuantityError(
        f"running job {jobs.number[row]}: it needs {jobs.processors[row]:,} processors, and "
        f"{where} no room for it beside the other running jobs; check what the jobs ask for, and "
        "the description of the machine (--machine)"
    )


def check_not_too_full(
    jobs: JobTable, holdings: Iterable[tuple[int, Holding]], stock: Stock
) -> None:
    """Check that nodes have what jobs are said to hold; else name the last job of a node."""
    memory = stock.layout.settings.memory_counts
    lacking = {
        node
        for node, cores in enumerate(stock.cores)
        if cores < 0 or (memory and stock.memory[node] < 0) or min(stock.gpus[node], default=0) < 0
    }
    if not lacking:
        return
    for row, holding in reversed(list(holdings)):
        for share in holding:
            if share.node in lacking:
                name = stock.layout.names[share.node]
                raise no_room(jobs, row, [name])


def running_job(admission: Admission, row: int) -> QueuedJob:
    """Return a running job as it was queued, in the partitions that may run it.

    One that the site's rules refuse by now runs nevertheless.
    """
    job = admission.queued(row, int(admission.jobs.enqueued[row]))
    if admission.always_refused(job) and job.demands:
        job.partitions = tuple(job.demands)
    return job


def seat_running(
    past: Past, how: Seating, stock: Stock, job_of: Callable[[int], QueuedJob]
) -> dict[int, QueuedJob]:
    """Return the running jobs in the order of their starts, with what they hold; take it.

    Raises QuantityError if they have no room.
    """
    starts = how.admission.jobs.start
    found = {row: job_of(row) for row in past.running.tolist()}
    for row, job in found.items():
        placed = past.placed.get(row, NOTHING_KNOWN)
        job.start, job.by = int(starts[row]), "main"
        if placed.eligible != UNKNOWN:
            job.eligible = placed.eligible
    seat_in_turn(found, past, how, stock)
    return found


def divided(past: Past, job_of: Callable[[int], QueuedJob], how: Seating) -> Past:
    """Return the state with exactly what those running jobs hold of which the nodes are known.

    Slurm's queue does not say how a job of several nodes divides its processors among them. Jobs of
    one node go first, so that the others share what they leave; of these, each leaves one task on
    each node to those behind it. One that finds no room goes before all others of several nodes,
    once.

    Raises
    ------
    QuantityError
        If the nodes have no room for them.
    """
    placed = past.placed
    order = [row for row in in_seating_order(past) if _is_known(placed.get(row, NOTHING_KNOWN))]
    if all(placed[row].holding for row in order):
        return past
    order.sort(key=lambda row: 0 if placed[row].holding else len(placed[row].nodes))
    first = sum(len(placed[row].nodes) <= 1 or bool(placed[row].holding) for row in order)
    moved: set[int] = set()
    while True:
        stock, found, lacking = Stock(how.admission.layout), dict(placed), UNKNOWN
        least = {row: _least(job_of(row), placed[row], how) for row in order[first:]}
        for holding in least.values():
            stock.take(holding)
        for row in order:
            stock.give(least.get(row, ()))
            try:
                partition, holding = seat(job_of(row), placed[row], how, stock)
            except QuantityError:
                if row in moved or row in order[:first]:
                    raise
                lacking = row
                break
            stock.take(holding)
            found[row] = placed[row]._replace(
                partition=placed[row].partition or partition, holding=holding
            )
        if lacking == UNKNOWN:
            return past._replace(placed=found)
        moved.add(lacking)
        order.remove(lacking)
        order.insert(first, lacking)


def _least(job: QueuedJob, placed: Placed, how: Seating) -> Holding:
    """Return one task on each node of a running job of which the nodes are known."""
    demand = job.demands.get(placed.partition or next(iter(job.partitions), ""))
    layout = how.admission.layout
    if demand is None or any(name not in layout.names for name in placed.nodes):
        return ()
    cores = max(demand.cores_per_task, demand.least_cores)
    memory = demand.memory_per_node or demand.memory_per_core * cores
    none = (0,) * len(layout.gpu_types)
    return tuple(Share(node, cores, memory, none) for node in bits(layout.nodes_in(placed.nodes)))


def seat_in_turn(running: dict[int, QueuedJob], past: Past, how: Seating, stock: Stock) -> None:
    """Seat running jobs by start, or those first that find room most rarely if that fails.

    Raises QuantityError if they have no room.
    """
    past = divided(past, running.__getitem__, how)
    order = in_seating_order(past)
    try:
        _seat(order, running, past, how, stock)
    except QuantityError:
        for job in running.values():
            stock.give(job.holding)
            job.holding = ()
        _seat(hardest_first(running, past), running, past, how, stock)


def _seat(
    order: Sequence[int],
    running: dict[int, QueuedJob],
    past: Past,
    how: Seating,
    stock: Stock,
) -> None:
    for row in order:
        job = running[row]
        placed = past.placed.get(row, NOTHING_KNOWN)
        job.partition, job.holding = seat(job, placed, how, stock)
        stock.take(job.holding)
    held = ((row, running[row].holding) for row in order)
    check_not_too_full(how.admission.jobs, held, stock)


def hardest_first(running: dict[int, QueuedJob], past: Past) -> list[int]:
    """Return the running jobs, those first whose nodes are known, then those with few to choose.

    Whole nodes before others, few nodes before many, many cores on each before few.
    """

    def rarity(row: int) -> tuple[bool, bool, int, float]:
        job = running[row]
        demands = [job.demands[name] for name in job.partitions if name in job.demands]
        return (
            not _is_known(past.placed.get(row, NOTHING_KNOWN)),
            not any(one.whole for one in demands),
            max((one.nodes.bit_count() for one in demands), default=0),
            -max((one.cores / max(one.least_nodes, 1) for one in demands), default=0.0),
        )

    return sorted(in_seating_order(past), key=rarity)


def just_over(jobs: JobTable, past: Past, phases: Phases) -> Int64s:
    """Return the jobs that ended since usage was computed last, by end."""
    return past.over[jobs.end[past.over] > phases.calculated]


def weighed_at(jobs: JobTable, past: Past, phases: Phases) -> Int64s:
    """Return when the priorities of the waiting jobs were computed last, s."""
    found: Int64s = np.maximum(jobs.enqueued[past.waiting], phases.calculated)
    return found
