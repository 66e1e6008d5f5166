"""The arrays of Slurm's controller, and what is made of them in Python.

Python resolves what jobs ask for, ranks associations by fair share, and gives the arrays room;
everything else is compiled, :mod:`hpcrowd.environment.engine.kernel.nodes`.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from hpcrowd.environment.engine.kernel.arrays import Groups, wider
from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.loop import let_these_end
from hpcrowd.environment.engine.kernel.nodes.places import Site
from hpcrowd.environment.engine.kernel.nodes.queue import withdraw
from hpcrowd.environment.engine.passes.slurm.asked import (
    AskedBook,
    Grown,
    words_of,
)
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64Rows, Int64s, JobTable, State
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.past import Phases
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.environment.machine.stock import Holding, Share
from hpcrowd.environment.schedulers.slurm.admission import Admission
from hpcrowd.environment.schedulers.slurm.controller import Controller
from hpcrowd.environment.schedulers.slurm.past import alike
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob, Tenure
from hpcrowd.environment.schedulers.slurm.shares import LN2
from hpcrowd.environment.stops import FOREVER

#: Columns by which jobs are alike, and what they ask for that differs between jobs alike.
ALIKE = (
    Column.USER, Column.GROUP, Column.QUEUE, Column.PROCESSORS, Column.REQUESTED_TIME,
    Column.REQUESTED_MEMORY,
)  # fmt: skip
OF_EACH = (Ask.NICE, Ask.ARRAY, Ask.TASK, Ask.THROTTLE, Ask.NO_REQUEUE, Ask.BEGIN)
OF_ALL = tuple(ask for ask in Ask if ask not in OF_EACH)

RULES = {"slurm": N.CONSECUTIVE, "first-fit": N.FIRST_FIT, "best-fit": N.BEST_FIT,
         "spread": N.SPREAD}  # fmt: skip

PREEMPTS = {"none": N.NOBODY, "partition": N.BY_PARTITION, "qos": N.BY_QOS}

STARTERS = {N.BY_MAIN: "main", N.BY_BACKFILL: "backfill"}

#: Scalars and ends where no engine is at hand.
NO_SCALARS, NO_ENDS = np.zeros(0, np.int64), np.zeros((2, 0), np.int64)


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
        self._alike: dict[tuple[int, ...], int] = {}
        self._groups: list[Alike] = []
        self._group_of = np.zeros(0, np.int64)
        self._arrays: dict[int, int] = {}
        self._qos = {one.name: place for place, one in enumerate(self.machine.qos)}
        self._reservations = {one.name: i for i, one in enumerate(self.machine.reservations)}
        kinds = len(self.layout.gpu_types)
        self.c = self._scalars()
        self.nodes = self._nodes()
        self.sets = self._sets_of_nodes()
        self.spans = np.zeros((0, self.sets.shape[1]), np.int64)
        self.rules = self._rules()
        self.reals = np.zeros((N.REALS, N.AMOUNT_PLACES))
        self.reals[N.AMOUNTS] = self._amounts()
        self.people = np.zeros((N.PEOPLE, 0), np.int64)
        self.used = np.zeros((N.FIRST_TRES + N.T_KINDS + kinds, 0), np.int64)
        self.rows = np.zeros((N.ROWS, 0), np.int64)
        self.entries = Grown(N.ENTRIES)
        self.ledger = np.zeros((N.LEDGER, 16), np.int64)
        self.held = np.zeros((N.S_GPUS + kinds, 16), np.int64)
        self.lists = np.zeros((N.LISTS, 16), np.int64)
        self.tasks = np.zeros((N.TASK_ROWS, 0), np.int64)
        self.releases = np.zeros((N.R_GPUS + kinds, 16), np.int64)
        self._made = Groups()
        self._known = 0
        #: Tenures before this one ended before the run, and are there to be charged only.
        self.first_tenure = 0
        self._learn_associations()
        #: Whether the next pass is shown the whole queue, since a new pass object took over.
        self.shown_anew = False

    def _scalars(self) -> Int64s:
        """Return ``Site.c`` at the beginning."""
        layout, settings, weights = self.layout, self.machine.scheduling, self.machine.priority
        least_loaded = self.placement == "slurm" and settings.least_loaded
        kinds = len(layout.gpu_types)
        stock = N.NODE_ROWS + kinds
        chosen = stock + 2 * (N.FREE_GPUS + kinds)
        partitions, reservations = len(layout.partitions), len(self.machine.reservations)
        c = np.zeros(N.C_COUNT, np.int64)
        for place, value in {
            N.BACKFILL: settings.backfill, N.BF_WINDOW: settings.bf_window,
            N.BF_RESOLUTION: settings.bf_resolution, N.BF_TESTS: settings.bf_max_job_test,
            N.BF_USER: settings.bf_max_job_user, N.BF_PARTITION: settings.bf_max_job_part,
            N.BF_STARTS: settings.bf_max_job_start, N.BF_ARRAY: settings.bf_max_job_array_resv,
            N.BF_ASSOCIATION: settings.bf_max_job_assoc,
            N.BF_LEAST_AGE: settings.bf_min_age_reserve,
            N.BF_LEAST_PRIORITY: settings.bf_min_prio_reserve,
            N.DEPTH: settings.default_queue_depth,
            N.PARTITION_DEPTH: settings.partition_job_depth,
            N.SCHED_INTERVAL: settings.sched_interval, N.LIMIT_STOPS: settings.assoc_limit_stop,
            N.ENFORCED: settings.enforce_limits,
            N.RULE: N.SPREAD if least_loaded else RULES[self.placement],
            N.PREEMPTS: PREEMPTS[settings.preempt_type],
            N.YOUNGEST_FIRST: settings.preempt_youngest_first,
            N.EXEMPT: max(settings.preempt_exempt_time, 1), N.REORDER: settings.reorder_count,
            N.MAY_REQUEUE: settings.requeue, N.REQUEUE_DELAY: max(settings.requeue_delay, 1),
            N.PERIOD: weights.calculation_period, N.MAX_AGE: weights.max_age,
            N.BASIC: weights.kind == "basic",
            N.ALL_CORES: layout.all_cores, N.KINDS: kinds, N.PARTITIONS: partitions,
            N.RESERVATIONS: reservations, N.RESERVED: N.MEMBERS + partitions,
            N.SETS: N.MEMBERS + partitions + reservations, N.ALL_GPUS: N.NODE_ROWS,
            N.STOCK: stock, N.FUTURE: stock + N.FREE_GPUS + kinds, N.CHOSEN: chosen,
            N.KEPT_CHOICE: chosen + N.S_GPUS + kinds,
            N.LAST_MAIN: -(2**40), N.LOOKED_AT_ALL: -1, N.CHANGED: -1, N.FIRST_RUNNING: -1,
            N.LAST_RUNNING: -1, N.NEXT_ELIGIBLE: FOREVER, N.BASE_OF: -1,
            N.EVENTS_OF: -1, N.CALCULATED: self.controller.calculated,
            N.NEXT_FULL: -1, N.FULL_PHASE: settings.full_pass_phase,
        }.items():  # fmt: skip
            c[place] = value
        return c

    def _nodes(self) -> Int64s:
        """Return ``Site.nodes`` of an empty machine."""
        layout, c = self.layout, self.c
        kinds = len(layout.gpu_types)
        gpus = np.array(layout.gpus, np.int64).reshape(len(layout), kinds).T
        table = np.zeros((int(c[N.KEPT_CHOICE]) + N.S_GPUS + kinds, len(layout)), np.int64)
        table[[N.CORES, N.MEMORY, N.WEIGHT]] = layout.cores, layout.memory, layout.weight
        table[c[N.ALL_GPUS] : c[N.ALL_GPUS] + kinds] = gpus
        stock = int(c[N.STOCK])
        table[stock + N.FREE_CORES], table[stock + N.FREE_MEMORY] = layout.cores, layout.memory
        table[stock + N.FREE_GPUS : stock + N.FREE_GPUS + kinds] = gpus
        return table

    def _sets_of_nodes(self) -> Any:
        """Return ``Site.sets`` without those that jobs ask for."""
        layout, work = self.layout, N.MEMBERS - N.WORK
        sets = [layout.all_nodes, *([0] * work)]
        sets += [layout.nodes_of(name) for name in layout.partitions]
        sets += [layout.nodes_in(one.nodes) for one in self.machine.reservations]
        return np.stack([words_of(nodes, len(layout)) for nodes in sets])

    def _rules(self) -> Int64s:
        """Return ``Site.rules``."""
        partitions, machine = list(self.layout.partitions.values()), self.machine
        tiers = sorted({one.priority_tier for one in partitions}, reverse=True)
        width = max(len(partitions), len(machine.reservations), len(machine.qos))
        rules = np.zeros((N.PREEMPTED + len(machine.qos), width), np.int64)
        for place, one in enumerate(partitions):
            rules[[N.TIER_RANK, N.TIER, N.PARTITION_UP], place] = (
                tiers.index(one.priority_tier), one.priority_tier, one.up,
            )  # fmt: skip
        for place, kept in enumerate(machine.reservations):
            rules[[N.FROM, N.UNTIL, N.FLEXIBLE], place] = kept.start, kept.end, kept.flexible
        for place, qos in enumerate(machine.qos):
            rules[N.QOS_RANK, place] = qos.priority
            rules[N.QOS_TURN, place] = self._qos[self.controller.preemption.qos_in_turn[place]]
            for other in qos.preempts:
                if other in self._qos:
                    rules[N.PREEMPTED + place, self._qos[other]] = 1
        return rules

    def _amounts(self) -> list[float]:
        settings, weights = self.machine.scheduling, self.machine.priority
        return [
            settings.batch_sched_delay,
            settings.bf_interval + settings.cycle_time,
            weights.weight_age,
            weights.weight_fair_share,
            1 - LN2 / weights.half_life if weights.half_life else 1.0,
            self.controller.next_backfill,
        ]

    def site(self, jobs: Int64Rows, scalars: Int64s, ends: Int64Rows) -> Site:
        """Return all arrays; the first three are the engine's."""
        demands, options, weights, checks = self.asked.arrays()
        first, sets = int(self.c[N.SETS]), self.asked.sets
        if first + len(sets) > len(self.sets):
            count = len(self.layout)
            more = [words_of(nodes, count) for nodes in sets[len(self.sets) - first :]]
            self.sets = np.concatenate([self.sets, np.stack(more)])
        return self._made.of(
            Site, jobs, scalars, ends, self.c, self.nodes, self.sets, self.spans, self.rules,
            self.reals, self.people, demands, options, weights, checks, self.used, self.rows,
            self.entries.array, self.ledger, self.held, self.lists, self.tasks, self.releases,
        )  # fmt: skip

    def grow(self, arrived: int, ended: int, more: int) -> None:
        """Give every array the room of ``kernel.nodes.loop.has_room``."""
        c = self.c.tolist()
        running = stops = c[N.ALL_RUNNING]
        starts = c[N.ALL_WAITING] + arrived
        shares = min(starts * len(self.layout), 2 * c[N.ALL_CORES])
        spans = 2 * min(c[N.BF_TESTS], c[N.ORDERED] + more) + 4
        listed = max(running + starts, c[N.STOPPED] + stops, c[N.OVER] + stops + ended, spans)
        self.lists = _roomy(self.lists, listed)
        self.ledger = _roomy(self.ledger, c[N.TENURES] + starts)
        self.held = _roomy(self.held, c[N.SHARES] + shares)
        most = min(stops * len(self.layout), c[N.ALL_CORES]) + shares
        if most > self.releases.shape[1]:
            self.releases = np.zeros((len(self.releases), most + most // 2), np.int64)
        if spans > len(self.spans):
            self.spans = np.zeros((2 * spans, self.sets.shape[1]), np.int64)

    # jobs

    def resolve(self, rows: Int64s) -> None:
        """Note what jobs ask for that are submitted; what they asked for before is forgotten."""
        jobs, requests = self.jobs, self.jobs.requests
        room = jobs.matrix.shape[1]
        if room > self.rows.shape[1]:
            self.rows = wider(self.rows, room)
            self._group_of = wider(self._group_of, room)
        here = np.isin(self.rows[N.STATUS, rows], (N.ACCEPTED, N.WAITING))
        for row in rows[here].tolist():
            self.withdraw(row)  # it left the queue, and comes back
        keys = [jobs.matrix[column, rows] for column in ALIKE]
        if requests is not None:
            keys += [requests[ask][rows] for ask in OF_ALL]
        first, which = alike(keys)
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

        limits = of(one.job.limit for one in known)
        missing = self.jobs.requested_time[rows] < 0
        self.jobs.requested_time[rows[missing]] = limits[missing]
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
        table = self.rows
        table[N.STATUS, rows] = N.AWAY
        table[N.ENTRY, rows] = base + ends - counts
        table[N.COUNT, rows] = counts
        table[N.ASSOCIATION, rows] = of(one.job.association.place for one in known)
        table[N.USER_OF, rows] = of(one.user for one in known)
        table[N.QOS, rows] = of(one.qos for one in known)
        table[N.LIMIT, rows] = limits
        table[N.RESERVATION, rows] = of(
            self._reservations.get(one.job.reservation, UNKNOWN) for one in known
        )
        table[N.REFUSAL, rows] = of(one.refusal for one in known)
        table[N.TENURE, rows] = table[N.PLANNED, rows] = UNKNOWN
        self._note_each(rows)
        self._learn_associations()

    def _note_each(self, rows: Int64s) -> None:
        """Note what differs between jobs alike."""
        table, requests = self.rows, self.jobs.requests
        table[N.ARRAY, rows] = table[N.BEGIN, rows] = UNKNOWN
        table[N.REQUEUES, rows], table[N.THROTTLE, rows], table[N.NICE, rows] = 1, 0, 0
        if requests is None:
            return
        table[N.THROTTLE, rows] = np.maximum(requests[Ask.THROTTLE][rows], 0)
        nice = requests[Ask.NICE][rows]
        table[N.NICE, rows] = np.where(nice == UNKNOWN, 0, nice)
        table[N.REQUEUES, rows] = requests[Ask.NO_REQUEUE][rows] != 1
        table[N.BEGIN, rows] = requests[Ask.BEGIN][rows]
        arrays = requests[Ask.ARRAY][rows]
        tasks = arrays != UNKNOWN
        if tasks.any():
            numbers, which = np.unique(arrays[tasks], return_inverse=True)
            dense = [
                self._arrays.setdefault(number, len(self._arrays)) for number in numbers.tolist()
            ]
            table[N.ARRAY, rows[tasks]] = np.array(dense, np.int64)[which]
            need = len(self._arrays) * len(self.layout.partitions)
            if need > self.tasks.shape[1]:
                self.tasks = wider(self.tasks, 2 * need)

    def _learn_associations(self) -> None:
        """Give associations, users and accounts of use that are new their places."""
        known, there = self._known, self.shares.all
        need = len(self.layout.partitions) + 2 * max(len(there), len(self.asked.users)) + 2
        if need > self.people.shape[1]:
            self.people = wider(self.people, 2 * need)
            self.reals = wider(self.reals, max(2 * need, N.AMOUNT_PLACES))
        for one in there[known:]:
            self.reals[[N.USAGE, N.SHARE], one.place] = one.usage, one.factor
            self.people[N.PARENT, one.place] = UNKNOWN if one.parent is None else one.parent.place
        self._known = len(there)
        if len(self.asked.uses) > self.used.shape[1]:
            self.used = wider(self.used, 2 * len(self.asked.uses))

    def withdraw(self, row: int) -> None:
        """Take a waiting job out of the queue."""
        withdraw(self.site(self.jobs.matrix, NO_SCALARS, NO_ENDS), row)

    def let_end(self, matrix: Int64Rows, scalars: Int64s, ends: Int64Rows, ended: Int64s) -> None:
        """Let jobs end between two passes; the arrays are the engine's."""
        self.grow(0, len(ended), 0)
        while not let_these_end(self.site(matrix, scalars, ends), ended):
            self.rank()

    def leave_out(self, queue: Int64s) -> None:
        """Take jobs out that wait no more, or were taken back before they joined the queue."""
        waiting, c = self.waiting, self.c
        if c[N.ALL_ACCEPTED]:
            accepted = np.flatnonzero(self.rows[N.STATUS, : len(self.jobs)] == N.ACCEPTED)
            waiting = np.concatenate((waiting, accepted))
        for row in np.setdiff1d(waiting, queue).tolist():
            self.withdraw(row)

    def rank(self) -> None:
        """Compute the factors of fair share."""
        if self.shares.settings.fair_tree:
            found = self.shares.factors(self.reals[N.USAGE, : self._known])
        else:
            self._sync_usage()
            self.shares.rank()
            found = [one.factor for one in self.shares.all]
        self.reals[N.SHARE, : self._known] = found

    def learn_usage(self) -> None:
        """Take usage and factors from the plain tree, after which there is more of the past."""
        self._learn_associations()
        known = self.shares.all
        self.reals[N.USAGE, : len(known)] = [one.usage for one in known]
        self.reals[N.SHARE, : len(known)] = [one.factor for one in known]

    def job_like(self, row: int) -> QueuedJob:
        """Return a job like a submitted one, whose row, limit and request it shares."""
        job = copy(self._groups[int(self._group_of[row])].job)
        job.row = row
        return job

    def running_like(self, row: int) -> QueuedJob:
        """Return a running job, in any of its partitions if the site refuses it by now."""
        job = self.job_like(row)
        if self.rows[N.REFUSAL, row] and job.demands:
            job.partitions = tuple(job.demands)
        return job

    def add_entries(self, row: int, job: QueuedJob) -> tuple[int, int]:
        """Give a job entries in its partitions instead of its own; return the first, and how many.

        For a job that runs where the site would not let it by now.
        """
        entries = self.entries
        first = entries.count
        for name in job.partitions:
            column = np.zeros(N.ENTRIES, np.int64)
            column[[N.OPTION, N.OWNER]] = self.asked.option(job, name), row
            entries.add(column)
        count = entries.count - first
        self.rows[[N.ENTRY, N.COUNT], row] = first, count
        self.rows[N.REFUSAL, row] = 0
        self._learn_associations()
        return first, count

    def _sync_usage(self) -> None:
        used = self.reals[N.USAGE, : self._known].tolist()
        factors = self.reals[N.SHARE, : self._known].tolist()
        for one, amount, factor in zip(self.shares.all, used, factors, strict=True):
            one.usage, one.factor = amount, factor

    # what is made of the arrays

    @property
    def waiting(self) -> Int64s:
        """Rows of the waiting jobs, by arrival."""
        owners = self.entries.array[N.OWNER, self.entries.array[N.PLACED, : self.c[N.ORDERED]]]
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
        table = self.ledger[:, self.first_tenure : self.c[N.TENURES]].T.tolist()
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
        job.row, job.throttle = row, table[N.THROTTLE]
        job.nice, job.requeue = table[N.NICE], bool(table[N.REQUEUES])
        if requests is not None:
            job.array, job.task = int(requests[Ask.ARRAY][row]), int(requests[Ask.TASK][row])
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
        for tenure, second in self.lists[N.OVER_OF : N.OVER_AT + 1, : c[N.OVER]].T.tolist():
            job = self._begun(self._queued(int(self.ledger[N.L_ROW, tenure])), tenure)
            over.append((job, job.start, second))
        state.restore(waiting, running, over, self.phases)
        return state

    @property
    def phases(self) -> Phases:
        """What the controller did last when, and what comes next."""
        c = self.c.tolist()
        return Phases(
            calculated=c[N.CALCULATED], last_main=c[N.LAST_MAIN], next_full=c[N.NEXT_FULL],
            looked_at_all=c[N.LOOKED_AT_ALL], last_backfill=c[N.LAST_BACKFILL],
            next_backfill=float(self.reals[N.AMOUNTS, N.NEXT_BACKFILL]), changed=c[N.CHANGED],
            planned=bool(c[N.PLANNED_ON]), wanted=bool(c[N.WANTED]), urgent=bool(c[N.URGENT]),
        )  # fmt: skip

    def set_phases(self, phases: Phases) -> None:
        """Set what the controller did last when, and what comes next."""
        self.c[[
            N.CALCULATED, N.LAST_MAIN, N.NEXT_FULL, N.LOOKED_AT_ALL, N.LAST_BACKFILL, N.CHANGED,
            N.PLANNED_ON, N.WANTED, N.URGENT,
        ]] = (
            phases.calculated, phases.last_main, phases.next_full, phases.looked_at_all,
            phases.last_backfill, phases.changed, phases.planned, phases.wanted, phases.urgent,
        )  # fmt: skip
        self.reals[N.AMOUNTS, N.NEXT_BACKFILL] = phases.next_backfill

    def refusal(self, row: int) -> str:
        """Return why a submitted job is rejected whatever runs and waits; empty if it is not."""
        word = int(self.rows[N.REFUSAL, row])
        return self.asked.words[word] if word else ""

    def _begun(self, job: QueuedJob, tenure: int) -> QueuedJob:
        """Return a job as it began with a tenure."""
        _, submitted, eligible, start, _, by, option, *_ = self.ledger[:, tenure].tolist()
        job.submitted, job.eligible, job.start, job.by = submitted, eligible, start, STARTERS[by]
        job.partition, job.holding = self.asked.partition_of(option), self.holding(tenure)
        job.reason = "None"
        return job


def _roomy(array: Any, need: int) -> Any:
    """Return an array with room for some columns, and for half as many more if it must grow."""
    return array if need <= array.shape[-1] else wider(array, need + need // 2 + 16)
