"""The arrays of Slurm's controller, and what is made of them in Python.

Python resolves what jobs ask for, ranks associations by fair share, and gives the arrays room;
everything else is compiled, :mod:`hpcrowd.environment.engine.kernel.nodes`.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.queue import withdraw
from hpcrowd.environment.engine.kernel.places import wider
from hpcrowd.environment.engine.passes.slurm.asked import (
    AskedBook,
    Grown,
    bytes_of,
    nodes_and_gpus,
)
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.environment.machine.stock import Holding, Share
from hpcrowd.environment.schedulers.slurm.admission import Admission
from hpcrowd.environment.schedulers.slurm.controller import Controller
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob, Tenure
from hpcrowd.environment.schedulers.slurm.shares import LN2
from hpcrowd.environment.schedulers.slurm.timing import MOST_PASSES

#: Columns by which jobs are alike, and what they ask for that differs between jobs alike.
ALIKE = (
    Column.USER, Column.GROUP, Column.QUEUE, Column.PROCESSORS, Column.REQUESTED_TIME,
    Column.REQUESTED_MEMORY,
)  # fmt: skip
OF_EACH = (Ask.RESERVATION, Ask.NICE, Ask.ARRAY, Ask.TASK, Ask.THROTTLE, Ask.NO_REQUEUE, Ask.BEGIN)
OF_ALL = tuple(ask for ask in Ask if ask not in OF_EACH)

RULES = {"slurm": N.CONSECUTIVE, "first-fit": N.FIRST_FIT, "best-fit": N.BEST_FIT,
         "spread": N.SPREAD}  # fmt: skip

PREEMPTS = {"none": N.NOBODY, "partition": N.BY_PARTITION, "qos": N.BY_QOS}

STARTERS = {N.BY_MAIN: "main", N.BY_BACKFILL: "backfill"}


class Alike(NamedTuple):
    """What jobs alike are."""

    job: QueuedJob
    options: tuple[int, ...]
    user: int
    qos: int
    refusal: int
    size: int
    tasks: int


class SlurmBook:
    """The state of the controller of one run.

    Parameters
    ----------
    controller, admission
        The plain forms, at their beginning; ranks are computed by the associations of the former.
    placement
        Name of the rule of placement.
    jobs
        The table.
    """

    def __init__(
        self, controller: Controller, admission: Admission, placement: str, jobs: JobTable
    ) -> None:
        self.controller, self.admission, self.jobs = controller, admission, jobs
        self.layout: Layout = controller.layout
        self.machine: Machine = self.layout.machine
        self.placement = placement
        self.shares = controller.shares
        self.asked = AskedBook(controller)
        self.site = self._site(placement)
        self._alike: dict[tuple[int, ...], int] = {}
        self._groups: list[Alike] = []
        self._group_of = np.zeros(0, np.int64)
        self._arrays: dict[int, int] = {}
        self._qos = {one.name: place for place, one in enumerate(self.machine.qos)}
        self._reservations = {one.name: i for i, one in enumerate(self.machine.reservations)}
        kinds = len(self.layout.gpu_types)
        nodes = len(self.layout)
        c = self.c = np.zeros(N.C_COUNT, np.int64)
        c[N.LAST_MAIN] = -(2**40)
        c[N.LOOKED_AT_ALL] = c[N.CHANGED] = -1
        c[N.FIRST_RUNNING] = c[N.LAST_RUNNING] = -1
        c[N.CALCULATED], self.f = controller.calculated, np.array([controller.next_backfill])
        self.rows = np.zeros((N.ROWS, 0), np.int64)
        self.entries = Grown(N.ENTRIES)
        self.order = np.zeros((2, 16), np.int64)
        self.used = np.zeros((N.FIRST_TRES + N.T_KINDS + kinds, 0), np.int64)
        self.usage, self.factors = np.zeros(0), np.zeros(0)
        self.parents = np.zeros(0, np.int64)
        self.ledger = np.zeros((N.LEDGER, 16), np.int64)
        self.held = np.zeros((N.S_GPUS + kinds, 16), np.int64)
        self.ends = np.zeros((2, 16), np.int64)
        self.over = np.zeros((2, 16), np.int64)
        self.stopped = np.zeros((4, 16), np.int64)
        self.again = np.zeros(16, np.int64)
        self.arrays = np.zeros((3, 0), np.int64)
        self.first = np.zeros((2, 0), np.int64)
        cores, memory, _ = self.site[0]
        gpus = self.site[1]
        self.stock = cores.copy(), memory.copy(), gpus.copy(), np.zeros(nodes, np.int64)
        self._scratch = [
            np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros((5, nodes), np.int64),
            np.zeros((N.S_GPUS + kinds, nodes), np.int64), np.zeros((6, nodes), np.uint8),
            *(array.copy() for array in self.stock), np.zeros((4, 16), np.int64),
            np.zeros((2, 0), np.int64), np.zeros((2, len(self.layout.partitions)), np.int64),
            np.zeros((N.S_GPUS + kinds, nodes), np.int64), np.zeros((3, 16), np.int64),
            np.zeros((16, nodes), np.uint8),
        ]  # fmt: skip
        self._learn_associations()
        #: Rows that ended before a new pass object took over, and whether the queue is shown anew.
        self.unheard = np.zeros(0, np.int64)
        self.shown_anew = False

    def _site(self, placement: str) -> tuple[Any, ...]:
        layout, settings, weights = self.layout, self.machine.scheduling, self.machine.priority
        partitions = list(layout.partitions.values())
        tiers = sorted({one.priority_tier for one in partitions}, reverse=True)
        table = [
            [tiers.index(one.priority_tier) for one in partitions],
            [one.priority_tier for one in partitions],
            [one.up for one in partitions],
        ]
        count = len(layout)
        reservations = self.machine.reservations
        qos = {one.name: place for place, one in enumerate(self.machine.qos)}
        preempts = np.zeros((max(len(qos), 1), max(len(qos), 1)), np.uint8)
        for one in self.machine.qos:
            for other in one.preempts:
                if other in qos:
                    preempts[qos[one.name], qos[other]] = 1
        chosen = np.zeros(N.SETTINGS, np.int64)
        again = settings.preempt_type != "none" and not settings.requeue_delay
        least_loaded = placement == "slurm" and settings.least_loaded
        for place, value in {
            N.BACKFILL: settings.backfill, N.BF_INTERVAL: settings.bf_interval,
            N.BF_WINDOW: settings.bf_window, N.BF_RESOLUTION: settings.bf_resolution,
            N.BF_TESTS: settings.bf_max_job_test, N.BF_USER: settings.bf_max_job_user,
            N.BF_PARTITION: settings.bf_max_job_part, N.BF_STARTS: settings.bf_max_job_start,
            N.BF_ARRAY: settings.bf_max_job_array_resv,
            N.BF_ASSOCIATION: settings.bf_max_job_assoc,
            N.BF_LEAST_AGE: settings.bf_min_age_reserve,
            N.BF_LEAST_PRIORITY: settings.bf_min_prio_reserve,
            N.DEPTH: settings.default_queue_depth,
            N.PARTITION_DEPTH: settings.partition_job_depth,
            N.SCHED_INTERVAL: settings.sched_interval, N.LIMIT_STOPS: settings.assoc_limit_stop,
            N.ENFORCED: settings.enforce_limits,
            N.RULE: N.SPREAD if least_loaded else RULES[placement],
            N.PREEMPTS: PREEMPTS[settings.preempt_type],
            N.YOUNGEST_FIRST: settings.preempt_youngest_first,
            N.EXEMPT: settings.preempt_exempt_time, N.REORDER: settings.reorder_count,
            N.MAY_REQUEUE: settings.requeue, N.REQUEUE_DELAY: settings.requeue_delay,
            N.PERIOD: weights.calculation_period, N.MAX_AGE: weights.max_age,
            N.BASIC: weights.kind == "basic", N.ALL_CORES: layout.all_cores,
            N.TIMES: MOST_PASSES + 2 if again else 1,
        }.items():  # fmt: skip
            chosen[place] = value
        amounts = np.zeros(N.AMOUNTS)
        amounts[N.DELAY] = settings.batch_sched_delay
        amounts[N.CYCLE] = settings.bf_interval + settings.cycle_time
        amounts[N.WEIGHT_AGE] = weights.weight_age
        amounts[N.WEIGHT_SHARE] = weights.weight_fair_share
        amounts[N.LEFT_PER_SECOND] = 1 - LN2 / weights.half_life if weights.half_life else 1.0
        return (
            *nodes_and_gpus(layout),
            np.array(table, np.int64),
            np.stack([bytes_of(layout.nodes_of(one.name), count) for one in partitions]),
            bytes_of(layout.all_nodes, count),
            np.array([[one.start, one.end, one.flexible] for one in reservations], np.int64)
            .reshape(len(reservations), 3).T.copy(),
            np.array(
                [bytes_of(layout.nodes_in(one.nodes), count) for one in reservations], np.uint8
            ).reshape(len(reservations), count),
            preempts,
            np.array([one.priority for one in self.machine.qos] or [0], np.int64),
            chosen,
            amounts,
        )  # fmt: skip

    # what compiled code takes

    def queue_arrays(self) -> tuple[Any, ...]:
        """Return the fields of ``kernel.nodes.places.Queue``."""
        return self.rows, self.entries.array, self.order

    def state_arrays(self) -> tuple[Any, ...]:
        """Return the fields of ``kernel.nodes.places.State``."""
        return (
            self.c, self.f, self.used, self.usage, self.parents, self.factors, self.ledger,
            self.held, self.ends, self.over, self.stopped, self.again, self.arrays, self.first,
        )  # fmt: skip

    def scratch_arrays(self) -> tuple[Any, ...]:
        """Return the fields of ``kernel.nodes.places.Scratch``."""
        return tuple(self._scratch)

    def grow(self, arrived: int, ended: int, more: int) -> None:
        """Give every array the room of ``kernel.nodes.loop.has_room``."""
        c, times = self.c, int(self.site[9][N.TIMES])
        starts = times * (int(c[N.ALL_WAITING]) + arrived)
        running = int(c[N.ALL_RUNNING])
        stops = times * (starts + running)
        nodes = self.site[0]
        shares = min(starts * nodes.shape[1], times * int(nodes[N.CORES].sum()))

        def roomy(array: Any, need: int) -> Any:
            return array if need <= array.shape[-1] else wider(array, need + need // 2 + 16)

        self.ends = roomy(self.ends, running + starts)
        self.ledger = roomy(self.ledger, int(c[N.TENURES]) + starts)
        self.held = roomy(self.held, int(c[N.SHARES]) + shares)
        self.over = roomy(self.over, int(c[N.OVER]) + stops + ended)
        self.stopped = roomy(self.stopped, int(c[N.STOPPED]) + stops)
        self.again = roomy(self.again, stops)
        self._scratch[9] = roomy(self._scratch[9], running + starts)
        spans = 2 * min(int(self.site[9][N.BF_TESTS]), int(c[N.ORDERED]) + more) + 4
        if spans > self._scratch[13].shape[1]:
            self._scratch[13] = np.zeros((3, 2 * spans), np.int64)
            self._scratch[14] = np.zeros((2 * spans, nodes.shape[1]), np.uint8)

    # jobs

    def resolve(self, rows: Int64s) -> None:
        """Note what jobs ask for that are submitted; what they asked for before is forgotten."""
        jobs, requests = self.jobs, self.jobs.requests
        room = jobs.matrix.shape[1]
        if room > self.rows.shape[1]:
            self.rows = wider(self.rows, room)
            self._group_of = wider(self._group_of, room)
        for row in rows[self.rows[N.STATUS, rows] == N.WAITING].tolist():
            self.withdraw(row)  # it left the queue, and comes back
        keys = [jobs.matrix[column, rows] for column in ALIKE]
        if requests is not None:
            keys += [requests[ask][rows] for ask in OF_ALL]
        first, which = _alike(keys)
        numbers = np.zeros(len(first), np.int64)
        for place, at in enumerate(first.tolist()):
            key = tuple(int(column[at]) for column in keys)
            if key not in self._alike:
                self._alike[key] = len(self._groups)
                self._groups.append(self._resolved(int(rows[at])))
            numbers[place] = self._alike[key]
        groups = numbers[which]
        self._group_of[rows] = groups
        self._note(rows, groups, np.unique(numbers).tolist())

    def _resolved(self, row: int) -> Alike:
        """Return what a job and those like it are."""
        admission, asked = self.admission, self.asked
        job = admission.resolved(row)
        size, tasks = admission.size_of(job)
        refusal = admission.always_refused(job)
        options = () if refusal else tuple(asked.option(job, name) for name in job.partitions)
        return Alike(
            job, options, asked.user(job.user), self._qos.get(job.qos, -1),
            asked.word(refusal) if refusal else 0, size, tasks,
        )  # fmt: skip

    def _note(self, rows: Int64s, groups: Int64s, numbers: list[int]) -> None:
        """Fill the rows of jobs that are submitted; the numbers are those of ``groups``, sorted."""
        known, requests = [self._groups[number] for number in numbers], self.jobs.requests
        place = np.searchsorted(numbers, groups)

        def of(values: Any) -> Int64s:
            found: Int64s = np.array(list(values), np.int64)[place]
            return found

        sizes, tasks = of(one.size for one in known), of(one.tasks for one in known)
        self.jobs.processors[rows[sizes > 0]] = sizes[sizes > 0]
        if requests is not None:
            requests[Ask.TASKS][rows[tasks > 0]] = tasks[tasks > 0]
        counts = of(len(one.options) for one in known)
        ends = np.cumsum(counts)
        entries, total = self.entries, int(ends[-1]) if len(ends) else 0
        entries.reserve(total)
        base = entries.count
        mine = entries.array[:, base : base + total]
        options = [np.array(one.options, np.int64) for one in known]
        starts = np.cumsum([0, *(len(one) for one in options)])
        flat = np.concatenate([*options, np.zeros(0, np.int64)])
        within = np.arange(total) - np.repeat(ends - counts, counts)
        mine[N.OPTION] = flat[np.repeat(starts[place], counts) + within]
        mine[N.OWNER] = np.repeat(rows, counts)
        entries.count = base + total
        if entries.count > self.order.shape[1]:
            self.order = wider(self.order, 2 * entries.count)
        table = self.rows
        table[N.STATUS, rows] = N.AWAY
        table[N.ENTRY, rows] = base + ends - counts
        table[N.COUNT, rows] = counts
        table[N.ASSOCIATION, rows] = of(one.job.association.place for one in known)
        table[N.USER_OF, rows] = of(one.user for one in known)
        table[N.QOS, rows] = of(one.qos for one in known)
        table[N.LIMIT, rows] = of(one.job.limit for one in known)
        table[N.REFUSAL, rows] = of(one.refusal for one in known)
        table[N.TENURE, rows] = table[N.PLANNED, rows] = UNKNOWN
        self._note_each(rows)
        self._learn_associations()

    def _note_each(self, rows: Int64s) -> None:
        """Note what differs between jobs alike."""
        table, requests = self.rows, self.jobs.requests
        table[N.ARRAY, rows] = table[N.RESERVATION, rows] = table[N.BEGIN, rows] = UNKNOWN
        table[N.REQUEUES, rows], table[N.THROTTLE, rows], table[N.NICE, rows] = 1, 0, 0
        if requests is None:
            return
        table[N.THROTTLE, rows] = np.maximum(requests[Ask.THROTTLE][rows], 0)
        nice = requests[Ask.NICE][rows]
        table[N.NICE, rows] = np.where(nice == UNKNOWN, 0, nice)
        table[N.REQUEUES, rows] = requests[Ask.NO_REQUEUE][rows] != 1
        table[N.BEGIN, rows] = requests[Ask.BEGIN][rows]
        words = [*requests.words[Ask.RESERVATION], ""]
        places = [self._reservations.get(word, -2) for word in words[:-1]]
        table[N.RESERVATION, rows] = np.array([*places, -1], np.int64)[
            requests[Ask.RESERVATION][rows]
        ]
        arrays = requests[Ask.ARRAY][rows]
        tasks = arrays != UNKNOWN
        if tasks.any():
            numbers, which = np.unique(arrays[tasks], return_inverse=True)
            dense = [
                self._arrays.setdefault(number, len(self._arrays)) for number in numbers.tolist()
            ]
            table[N.ARRAY, rows[tasks]] = np.array(dense, np.int64)[which]
            count = len(self._arrays)
            if count > self.arrays.shape[1]:
                self.arrays = wider(self.arrays, 2 * count)
                self.first = wider(self.first, 2 * count * self.site[2].shape[1])

    def _learn_associations(self) -> None:
        """Give associations, users and accounts of use that are new their places."""
        known, there = len(self.usage), self.shares.all
        if len(there) > known:
            self.usage = wider(self.usage, len(there))
            self.factors = wider(self.factors, len(there))
            self.parents = wider(self.parents, len(there))
            for one in there[known:]:
                self.usage[one.place], self.factors[one.place] = one.usage, one.factor
                self.parents[one.place] = UNKNOWN if one.parent is None else one.parent.place
        if len(self.asked.uses) > self.used.shape[1]:
            self.used = wider(self.used, 2 * len(self.asked.uses))
        counts = self.site[2].shape[1] + 2 * max(len(there), len(self.asked.users)) + 2
        if counts > self._scratch[10].shape[1]:
            self._scratch[10] = wider(self._scratch[10], 2 * counts)

    def withdraw(self, row: int) -> None:
        """Take a waiting job out of the queue."""
        withdraw(
            N.Asked(*self.asked.arrays()), N.Queue(*self.queue_arrays()),
            N.State(*self.state_arrays()), row,
        )  # fmt: skip

    def rank(self) -> None:
        """Compute the factors of fair share."""
        self._sync_usage()
        self.shares.rank()
        self.factors[:] = [one.factor for one in self.shares.all]

    def _sync_usage(self) -> None:
        for one, used in zip(self.shares.all, self.usage.tolist(), strict=True):
            one.usage = used

    # what is made of the arrays

    @property
    def waiting(self) -> Int64s:
        """Rows of the waiting jobs, by arrival."""
        owners = self.entries.array[N.OWNER, self.order[N.PLACED, : self.c[N.ORDERED]]]
        rows = np.unique(owners)
        rows = rows[self.rows[N.STATUS, rows] == N.WAITING]
        found: Int64s = rows[np.lexsort((rows, self.jobs.enqueued[rows]))]
        return found

    def refused(self) -> dict[int, str]:
        """Return why jobs were rejected, by row."""
        refusals = self.rows[N.REFUSAL, : len(self.jobs)]
        rejected = (refusals > 0) & (self.jobs.state[: len(refusals)] == State.REJECTED)
        return {row: self.asked.words[refusals[row]] for row in np.flatnonzero(rejected).tolist()}

    def holding(self, tenure: int) -> Holding:
        """Return what a tenure holds or held."""
        first, last = self.ledger[[N.L_FIRST, N.L_LAST], tenure].tolist()
        shares = self.held[:, first:last].T.tolist()
        return tuple(
            Share(node, cores, memory, tuple(gpus)) for node, cores, memory, *gpus in shares
        )

    def tenures(self) -> list[Tenure]:
        """Return what each job held in each of its runs, in the order of their starts."""
        held = self.held.T.tolist()
        table = self.ledger[:, : self.c[N.TENURES]].T.tolist()
        return [
            Tenure(
                row, submitted, eligible, start, end,
                tuple(Share(node, cores, memory, tuple(gpus))
                      for node, cores, memory, *gpus in held[first:last]),
                STARTERS[by], self.asked.partition_of(option),
            )
            for row, submitted, eligible, start, end, by, option, _, first, last in table
        ]  # fmt: skip

    def _queued(self, row: int) -> QueuedJob:
        """Return a job as the plain controller knows it."""
        table = self.rows[:, row].tolist()
        job = copy(self._groups[int(self._group_of[row])].job)
        requests = self.jobs.requests
        job.row, job.array, job.throttle = row, table[N.ARRAY], table[N.THROTTLE]
        job.nice, job.requeue = table[N.NICE], bool(table[N.REQUEUES])
        if requests is not None:
            job.reservation = requests.word(Ask.RESERVATION, row)
            job.task = int(requests[Ask.TASK][row])
        job.submitted, job.eligible = table[N.SUBMITTED], table[N.ELIGIBLE]
        job.reason, job.planned = self.asked.words[table[N.REASON]], table[N.PLANNED]
        weighed = table[N.WEIGHED]
        of = self.controller.priorities.of
        job.factors = {name: of(job, name, weighed) for name in job.partitions}
        job.priority = {name: factors.total for name, factors in job.factors.items()}
        return job

    def state(self) -> Controller:
        """Return the controller as it is now in its plain form, to be read or copied."""
        c = self.c
        self._sync_usage()
        state = Controller(self.machine, self.placement)
        state.shares = self.shares
        waiting = [self._queued(row) for row in self.waiting.tolist()]
        running, row = [], int(c[N.FIRST_RUNNING])
        while row >= 0:
            running.append(self._begun(self._queued(row), int(self.rows[N.TENURE, row])))
            row = int(self.rows[N.NEXT, row])
        over = []
        for tenure, second in self.over[:, : c[N.OVER]].T.tolist():
            job = self._begun(self._queued(int(self.ledger[N.L_ROW, tenure])), tenure)
            over.append((job, job.start, second))
        state.restore(
            waiting, running, over, calculated=int(c[N.CALCULATED]), changed=int(c[N.CHANGED]),
            last_main=int(c[N.LAST_MAIN]), last_backfill=int(c[N.LAST_BACKFILL]),
            next_backfill=float(self.f[0]), looked_at_all=int(c[N.LOOKED_AT_ALL]),
            wanted=bool(c[N.WANTED]), urgent=bool(c[N.URGENT]),
        )  # fmt: skip
        return state

    def _begun(self, job: QueuedJob, tenure: int) -> QueuedJob:
        """Return a job as it began with a tenure."""
        _, submitted, eligible, start, _, by, option, *_ = self.ledger[:, tenure].tolist()
        job.submitted, job.eligible, job.start, job.by = submitted, eligible, start, STARTERS[by]
        job.partition, job.holding = self.asked.partition_of(option), self.holding(tenure)
        job.reason = "None"
        return job


def _alike(columns: list[Int64s]) -> tuple[Int64s, Int64s]:
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
