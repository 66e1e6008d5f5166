"""The arrays of Slurm's controller, and what is made of them in Python.

Python resolves what jobs ask for, ranks associations by fair share, and gives the arrays room;
everything else is compiled, :mod:`hpcrowd.environment.engine.kernel.nodes`.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from hpcrowd.environment.engine.kernel.arrays import Groups, wider
from hpcrowd.environment.engine.kernel.cluster import Cluster, ClusterState, Jobs
from hpcrowd.environment.engine.kernel.heap import Heap
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.loop import let_these_end
from hpcrowd.environment.engine.kernel.nodes.preemption import order_of
from hpcrowd.environment.engine.kernel.nodes.queue import withdraw
from hpcrowd.environment.engine.kernel.nodes.site import Site
from hpcrowd.environment.engine.passes.slurm.asked import (
    AskedBook,
    Grown,
    words_of,
)
from hpcrowd.environment.engine.passes.slurm.snapshot import (
    STARTERS,
    SlurmState,
    Snapshot,
    snapshot_of,
)
from hpcrowd.environment.errors import SchedulerError, echo
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable, State
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.selection import Holding, Rule, Share, Stock
from hpcrowd.environment.registry import said
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.schedulers.past import Phases
from hpcrowd.environment.schedulers.slurm.admission import (
    Admission,
    SiteRules,
    in_turn,
    may_suspend,
)
from hpcrowd.environment.schedulers.slurm.billing import reset_around
from hpcrowd.environment.schedulers.slurm.limits import UseKey
from hpcrowd.environment.schedulers.slurm.past import ASKED, alike
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob, Tenure
from hpcrowd.environment.schedulers.slurm.shares import LN2

#: What jobs ask for that differs between jobs alike.
OF_EACH = (Ask.NICE, Ask.ARRAY, Ask.TASK, Ask.THROTTLE, Ask.NO_REQUEUE, Ask.BEGIN)
OF_ALL = tuple(ask for ask in Ask if ask not in OF_EACH)

#: Rules of placement by name; any other is a function.
RULES = {"slurm": N.CONSECUTIVE, "first-fit": N.FIRST_FIT, "best-fit": N.BEST_FIT,
         "spread": N.SPREAD}  # fmt: skip

PREEMPTS = {"none": N.NOBODY, "partition": N.BY_PARTITION, "qos": N.BY_QOS}

#: Times of phases, which the controller keeps by the same names; their flags come behind.
TIMES = Phases._fields[: Phases._fields.index("planned")]

#: State and ends where no engine is at hand.
NO_STATE, NO_ENDS = ClusterState(), Heap(np.zeros((2, 0), np.int64))


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

    The admission makes jobs when they are submitted. The rule of placement is its name, or a
    function.
    """

    def __init__(
        self, rules: SiteRules, admission: Admission, placement: str | Rule, jobs: JobTable
    ) -> None:
        self.site_rules, self.admission, self.jobs = rules, admission, jobs
        self.layout: Layout = rules.layout
        self.machine: Machine = self.layout.machine
        self.placement = placement
        self.shares = rules.shares
        self.asked = AskedBook(rules)
        self._alike: dict[tuple[int, ...], int] = {}
        self._groups: list[Alike] = []
        self._group_of = np.zeros(0, np.int64)
        self.arrays: dict[int, int] = {}
        self.qos = {one.name: place for place, one in enumerate(self.machine.qos)}
        self.reservations = {one.name: i for i, one in enumerate(self.machine.reservations)}
        kinds = len(self.layout.gpu_types)
        self.settings, begin = self._settings(), rules.phases_at()
        self.controls = N.Controller(calculated=begin.calculated, next_backfill=begin.next_backfill)
        self.nodes = N.Nodes(self._nodes())
        self.sets = self._sets_of_nodes()
        self.spans = np.zeros((0, self.sets.shape[1]), np.int64)
        self.rules = self._rules()
        self.fair_share = N.FairShare(np.zeros((2, 0)))
        self.people = N.People(_empty(N.PEOPLE_ROWS))
        self.used = N.Used(_empty(N.FIRST_TRES + N.T_KINDS + kinds + 1))
        self.spent = N.Spent(np.zeros((N.SPENT_ROWS + N.T_KINDS + kinds + 1, 0)))
        self.rows = N.Queued(_empty(N.JOB_ROWS))
        self.entries = Grown(N.ENTRY_ROWS)
        self.ledger = N.Tenures(_empty(N.TENURE_ROWS, 16))
        limited = self.settings.billing + 1 if self.settings.minutes else 0
        self.bills = N.Bills(np.zeros((N.BILL_ROWS + limited, 16)))
        self.pauses = N.Pauses(_empty(N.PAUSE_ROWS))
        self.held = N.Shares(_empty(N.S_GPUS + kinds, 16))
        self.lists = N.Lists(_empty(N.LIST_ROWS, 16))
        self.tasks = N.Tasks(_empty(N.TASK_ROWS))
        self.releases = N.Releases(_empty(N.R_GPUS + kinds, 16))
        self._made = Groups()
        self._own_order = None if isinstance(placement, str) else self._in_own_order
        #: Associations, and accounts of use, that have their places in the arrays.
        self.known = self.known_uses = 0
        #: Tenures before this one ended before the run, and are there to be charged only.
        self.first_tenure = 0
        self.learn_associations()
        self._note_reset()
        #: Whether the next pass is shown the whole queue, since a new pass object took over.
        self.shown_anew = False

    def _settings(self) -> N.Settings:
        """Return how the controller is set, and where things are in the arrays."""
        layout, given, weights = self.layout, self.machine.scheduling, self.machine.priority
        least_loaded = self.placement == "slurm" and given.least_loaded
        kinds = len(layout.gpu_types)
        stock = N.NODE_ROWS + kinds
        chosen = stock + 2 * (N.FREE_GPUS + kinds)
        partitions, reservations = len(layout.partitions), len(self.machine.reservations)
        return N.Settings(
            backfill=given.backfill, bf_window=given.bf_window,
            bf_resolution=given.bf_resolution, bf_tests=given.bf_max_job_test,
            bf_user=given.bf_max_job_user, bf_partition=given.bf_max_job_part,
            bf_starts=given.bf_max_job_start, bf_array=given.bf_max_job_array_resv,
            bf_association=given.bf_max_job_assoc, bf_least_age=given.bf_min_age_reserve,
            bf_least_priority=given.bf_min_prio_reserve, depth=given.default_queue_depth,
            partition_depth=given.partition_job_depth, sched_interval=given.sched_interval,
            limit_stops=given.assoc_limit_stop, enforced=given.enforce_limits,
            rule=N.SPREAD if least_loaded else RULES.get(str(self.placement), N.OWN),
            preempts=PREEMPTS[given.preempt_type], youngest_first=given.preempt_youngest_first,
            exempt=max(given.preempt_exempt_time, 1), reorder=given.reorder_count,
            may_requeue=given.requeue, requeue_delay=max(given.requeue_delay, 1),
            suspends=may_suspend(self.machine),
            period=weights.calculation_period, max_age=weights.max_age,
            basic=weights.kind == "basic", all_cores=layout.all_cores,
            billed=any(one.billing_weights for one in layout.partitions.values()),
            largest=weights.max_tres, safe=given.safe_limits,
            minutes=self.site_rules.limits.minutes, kinds=kinds, billing=N.T_KINDS + kinds,
            partitions=partitions, reservations=reservations, reserved=N.MEMBERS + partitions,
            sets=N.MEMBERS + partitions + reservations, all_gpus=N.NODE_ROWS, stock=stock,
            future=stock + N.FREE_GPUS + kinds, chosen=chosen,
            kept_choice=chosen + N.S_GPUS + kinds, full_phase=given.full_pass_phase,
            delay=given.batch_sched_delay, cycle=given.bf_interval + given.cycle_time,
            weight_age=weights.weight_age, weight_share=weights.weight_fair_share,
            left_per_second=1 - LN2 / weights.half_life if weights.half_life else 1.0,
        )  # fmt: skip

    def _nodes(self) -> Int64s:
        """Return the table of the nodes of an empty machine."""
        layout, at = self.layout, self.settings
        kinds = len(layout.gpu_types)
        gpus = np.array(layout.gpus, np.int64).reshape(len(layout), kinds).T
        table = np.zeros((at.kept_choice + N.S_GPUS + kinds, len(layout)), np.int64)
        table[:3] = layout.cores, layout.memory, layout.weight
        table[at.all_gpus : at.all_gpus + kinds] = gpus
        free = table[at.stock :]
        free[N.FREE_CORES], free[N.FREE_MEMORY] = layout.cores, layout.memory
        free[N.FREE_GPUS : N.FREE_GPUS + kinds] = gpus
        return table

    def _sets_of_nodes(self) -> Any:
        """Return ``Site.sets`` without those that jobs ask for."""
        layout, work = self.layout, N.MEMBERS - N.WORK
        sets = [layout.all_nodes, *([0] * work)]
        sets += [layout.nodes_of(name) for name in layout.partitions]
        sets += [layout.nodes_in(one.nodes) for one in self.machine.reservations]
        return np.stack([words_of(nodes, len(layout)) for nodes in sets])

    def _rules(self) -> N.Rules:
        """Return the rules of partitions, reservations and QOS."""
        partitions, machine = list(self.layout.partitions.values()), self.machine
        tiers = sorted({one.priority_tier for one in partitions}, reverse=True)
        width = max(len(partitions), len(machine.reservations), len(machine.qos))
        table = _empty(N.PREEMPTED + len(machine.qos), width)
        rules, turns = N.Rules(table), in_turn(machine.qos)
        for place, one in enumerate(partitions):
            rules.tier_rank[place] = tiers.index(one.priority_tier)
            rules.tier[place], rules.partition_up[place] = one.priority_tier, one.up
        for place, kept in enumerate(machine.reservations):
            rules.begins[place], rules.until[place] = kept.start, kept.end
            rules.flexible[place] = kept.flexible
        for place, qos in enumerate(machine.qos):
            rules.qos_rank[place] = qos.priority
            rules.qos_turn[place] = self.qos[turns[place]]
            for other in qos.preempts:
                if other in self.qos:
                    table[N.PREEMPTED + place, self.qos[other]] = 1
        return rules

    def site(self, jobs: Jobs, state: ClusterState, ends: Heap) -> Site:
        """Return all arrays, with those of the engine."""
        demands, options, weights, checks = self.asked.arrays()
        first, sets = self.settings.sets, self.asked.sets
        if first + len(sets) > len(self.sets):
            count = len(self.layout)
            more = [words_of(nodes, count) for nodes in sets[len(self.sets) - first :]]
            self.sets = np.concatenate([self.sets, np.stack(more)])
        of = self._made.of
        return of(
            N.Site, jobs, state, ends, self.settings, self.controls, self.nodes, self.sets,
            self.spans, self.rules, self.fair_share, self.people, of(N.Demands, demands),
            of(N.Options, options), of(N.Weights, weights), of(N.Checks, checks), self.used,
            self.spent, self.rows, of(N.Entries, self.entries.array), self.ledger, self.bills,
            self.pauses, self.held, self.lists, self.tasks, self.releases, self._own_order,
        )  # fmt: skip

    def grow(self, arrived: int, ended: int, more: int) -> None:
        """Give every array the room of ``kernel.nodes.loop.has_room``."""
        c, settings = self.controls, self.settings
        running = stops = c.running
        starts = c.waiting + arrived
        shares = min(starts * len(self.layout), 2 * settings.all_cores)
        spans = 2 * min(settings.bf_tests, c.ordered + more) + 4
        listed = max(running + starts, c.stopped + stops, c.over + stops + ended, spans)
        _grow(self.lists, listed)
        _grow(self.ledger, c.tenures + starts)
        _grow(self.bills, c.tenures + starts)
        _grow(self.held, c.shares + shares)
        if settings.suspends:
            _grow(self.pauses, c.pauses + listed)
        most, releases = min(stops * len(self.layout), settings.all_cores) + shares, self.releases
        if most > releases.table.shape[1]:
            releases.table = _empty(len(releases.table), most + most // 2)
        if spans > len(self.spans):
            self.spans = np.zeros((2 * spans, self.sets.shape[1]), np.int64)

    def _in_own_order(self, at: int, demand: int, usable: int) -> int:
        """Put usable nodes in the order of your own rule, see ``kernel.nodes.Site``.

        Raises SchedulerError if it raises an error, or names a node twice or that cannot be used.
        """
        rule: Any = self.placement
        stock, table = Stock(self.layout), np.asarray(self.nodes.table)
        stock.cores, stock.memory, stock.jobs = table[at : at + N.FREE_GPUS].tolist()
        kinds = self.settings.kinds
        stock.gpus = table[at + N.FREE_GPUS : at + N.FREE_GPUS + kinds].T.tolist()
        cores = table[usable].tolist()
        there = {node: count for node, count in enumerate(cores) if count}
        name = getattr(rule, "__name__", "placement")
        try:
            found = list(rule(stock, self.asked.demands[demand], there))
        except Exception as error:
            raise SchedulerError(f"placement {name}(): {said(error)}") from error
        wrong = [node for node in found if node not in there or found.count(node) > 1]
        if wrong:
            raise SchedulerError(
                f"placement {name}(): it named node {echo(wrong[0])}; it must name nodes that can "
                f"be used, {', '.join(map(str, there))}, once each"
            )
        self.nodes.run_first[: len(found)] = found
        return len(found)

    # jobs

    def resolve(self, rows: Int64s) -> None:
        """Note what jobs ask for that are submitted; what they asked for before is forgotten."""
        jobs, requests = self.jobs, self.jobs.requests
        room = jobs.matrix.shape[1]
        if room > self.rows.table.shape[1]:
            self.rows.table = wider(self.rows.table, room)
            self._group_of = wider(self._group_of, room)
        here = np.isin(self.rows.status[rows], (N.ACCEPTED, N.WAITING))
        for row in rows[here].tolist():
            self.withdraw(row)  # it left the queue, and comes back
        keys = [jobs.matrix[column, rows] for column in ASKED]
        if requests is not None:
            keys += [requests[ask][rows] for ask in OF_ALL]
        first, which = alike(keys)
        numbers = np.zeros(len(first), np.int64)
        known = map(tuple, np.array([column[first] for column in keys]).T.tolist())
        for place, (at, key) in enumerate(zip(first.tolist(), known, strict=True)):
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
            job, options, asked.user(job.user), self.qos.get(job.qos, -1),
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
        mine, present = N.Entries(entries.array), slice(base, base + total)
        options = [np.array(one.options, np.int64) for one in known]
        starts = np.cumsum([0, *(len(one) for one in options)])
        flat = np.concatenate([*options, np.zeros(0, np.int64)])
        within = np.arange(total) - np.repeat(ends - counts, counts)
        mine.option[present] = flat[np.repeat(starts[place], counts) + within]
        mine.owner[present] = np.repeat(rows, counts)
        entries.count = base + total
        table = self.rows
        table.status[rows] = N.AWAY
        table.entry[rows] = base + ends - counts
        table.count[rows] = counts
        table.association[rows] = of(one.job.association.place for one in known)
        table.user_of[rows] = of(one.user for one in known)
        table.qos[rows] = of(one.qos for one in known)
        table.limit[rows] = limits
        table.reservation[rows] = of(
            self.reservations.get(one.job.reservation, UNKNOWN) for one in known
        )
        table.refusal[rows] = of(one.refusal for one in known)
        table.tenure[rows] = table.planned[rows] = table.pause[rows] = UNKNOWN
        self._note_each(rows)
        self.learn_associations()

    def _note_each(self, rows: Int64s) -> None:
        """Note what differs between jobs alike."""
        table, requests = self.rows, self.jobs.requests
        table.array[rows] = table.begin[rows] = UNKNOWN
        table.requeues[rows], table.throttle[rows], table.nice[rows] = 1, 0, 0
        if requests is None:
            return
        table.throttle[rows] = np.maximum(requests[Ask.THROTTLE][rows], 0)
        nice = requests[Ask.NICE][rows]
        table.nice[rows] = np.where(nice == UNKNOWN, 0, nice)
        table.requeues[rows] = requests[Ask.NO_REQUEUE][rows] != 1
        table.begin[rows] = requests[Ask.BEGIN][rows]
        arrays = requests[Ask.ARRAY][rows]
        tasks = arrays != UNKNOWN
        if tasks.any():
            numbers, which = np.unique(arrays[tasks], return_inverse=True)
            dense = [
                self.arrays.setdefault(number, len(self.arrays)) for number in numbers.tolist()
            ]
            table.array[rows[tasks]] = np.array(dense, np.int64)[which]
            need = len(self.arrays) * len(self.layout.partitions)
            if need > self.tasks.table.shape[1]:
                self.tasks.table = wider(self.tasks.table, 2 * need)

    def learn_associations(self) -> None:
        """Give associations, users and accounts of use that are new their places."""
        known, there = self.known, self.shares.all
        need = len(self.layout.partitions) + 2 * max(len(there), len(self.asked.users)) + 2
        if need > self.people.table.shape[1]:
            self.people.table = wider(self.people.table, 2 * need)
            self.fair_share.table = wider(self.fair_share.table, 2 * need)
        for one in there[known:]:
            self.fair_share.usage[one.place] = one.usage
            self.fair_share.factor[one.place] = one.factor
            self.people.parent[one.place] = UNKNOWN if one.parent is None else one.parent.place
        self.known = len(there)
        uses = list(self.asked.uses)[self.known_uses :]
        if len(self.asked.uses) > self.used.table.shape[1]:
            self.used.table = wider(self.used.table, 2 * len(self.asked.uses))
            self.spent.table = wider(self.spent.table, 2 * len(self.asked.uses))
        for place, use in enumerate(uses, self.known_uses):
            kept = self.site_rules.limits.kept(use)
            self.spent.kept[place] = kept
            self.spent.left[place] = kept ** float(self.settings.period)
            self._note_spent(use, place)
        self.known_uses += len(uses)

    def _note_spent(self, use: UseKey, place: int) -> None:
        """Take the decayed usage of an account of use from the plain limits."""
        for name, amount in self.site_rules.limits.spent(use).items():
            self.spent.table[N.SPENT_ROWS + self.asked.tres_names.index(name), place] = amount

    def withdraw(self, row: int) -> None:
        """Take a waiting job out of the queue."""
        withdraw(self.site(Jobs(self.jobs.matrix), NO_STATE, NO_ENDS), row)

    def let_end(self, cluster: Cluster, ended: Int64s) -> None:
        """Let jobs end between two passes."""
        self.grow(0, len(ended), 0)
        while not let_these_end(self.site(cluster.jobs, cluster.state, cluster.ends), ended):
            self.rank()

    def leave_out(self, queue: Int64s) -> None:
        """Take jobs out that wait no more, or were taken back before they joined the queue."""
        for row in np.setdiff1d(self.queue, queue).tolist():
            self.withdraw(row)

    def rank(self) -> None:
        """Compute the factors of fair share."""
        used = np.asarray(self.fair_share.usage)[: self.known]
        self.fair_share.factor[: self.known] = self.shares.factors(used)
        if self.controls.calculated >= self.controls.next_reset:
            self._note_reset()

    def _note_reset(self) -> None:
        """Note when usage is reset next."""
        period, now = self.machine.priority.usage_reset, self.controls.calculated
        self.controls.next_reset = reset_around(period, now, *self.machine.began)[1]

    def learn_usage(self) -> None:
        """Take usage and factors from the plain tree, after which there is more of the past."""
        self.learn_associations()
        known = self.shares.all
        self.fair_share.usage[: len(known)] = [one.usage for one in known]
        self.fair_share.factor[: len(known)] = [one.factor for one in known]
        for use, place in self.asked.uses.items():
            self._note_spent(use, place)
        self._note_reset()

    def job_like(self, row: int) -> QueuedJob:
        """Return a job like a submitted one, whose row, limit and request it shares."""
        job = copy(self._groups[int(self._group_of[row])].job)
        job.row = row
        return job

    def running_like(self, row: int) -> QueuedJob:
        """Return a running job, in any of its partitions if the site refuses it by now."""
        job = self.job_like(row)
        if self.rows.refusal[row] and job.demands:
            job.partitions = tuple(job.demands)
        return job

    def add_entries(self, row: int, job: QueuedJob) -> tuple[int, int]:
        """Give a job entries in its partitions instead of its own; return the first, and how many.

        For a job that runs where the site would not let it by now.
        """
        entries = self.entries
        first = entries.count
        for name in job.partitions:
            column = np.zeros((N.ENTRY_ROWS, 1), np.int64)
            made = N.Entries(column)
            made.option[0], made.owner[0] = self.asked.option(job, name), row
            entries.add(column[:, 0])
        count = entries.count - first
        self.rows.entry[row], self.rows.count[row], self.rows.refusal[row] = first, count, 0
        self.learn_associations()
        return first, count

    # what is made of the arrays

    @property
    def waiting(self) -> Int64s:
        """Rows of the waiting jobs, by arrival."""
        there = N.Entries(self.entries.array)
        owners = there.owner[there.placed[: self.controls.ordered]]
        rows = np.unique(owners)
        rows = rows[self.rows.status[rows] == N.WAITING]
        found: Int64s = rows[np.lexsort((rows, self.jobs.enqueued[rows]))]
        return found

    @property
    def queue(self) -> Int64s:
        """Rows of the jobs that wait, or were accepted and have not joined the queue yet."""
        if not self.controls.accepted:
            return self.waiting
        accepted = np.flatnonzero(self.rows.status[: len(self.jobs)] == N.ACCEPTED)
        return np.concatenate((self.waiting, accepted))

    @property
    def suspended(self) -> Int64s:
        """Rows of the suspended jobs."""
        open_ones = self.pauses.tenure[: self.controls.pauses][
            self.pauses.end[: self.controls.pauses] < 0
        ]
        rows = np.unique(self.ledger.row[open_ones])
        found: Int64s = rows[self.rows.pause[rows] >= 0]
        return found

    def refused(self) -> dict[int, str]:
        """Return why jobs were rejected, by row."""
        refusals = self.rows.refusal[: len(self.jobs)]
        rejected = (refusals > 0) & (self.jobs.state[: len(refusals)] == State.REJECTED)
        return {row: self.asked.words[refusals[row]] for row in np.flatnonzero(rejected).tolist()}

    def holding(self, tenure: int) -> Holding:
        """Return what a tenure holds or held."""
        first, last = int(self.ledger.first[tenure]), int(self.ledger.last[tenure])
        shares = np.asarray(self.held.table)[:, first:last].T.tolist()
        return tuple(
            Share(node, cores, memory, tuple(gpus)) for node, cores, memory, *gpus in shares
        )

    def tenures(self) -> list[Tenure]:
        """Return what each job held in each of its runs, in the order of their starts."""
        held = np.asarray(self.held.table).T.tolist()
        ledger = np.asarray(self.ledger.table)
        pauses: dict[int, list[tuple[int, int]]] = {}
        noted = np.asarray(self.pauses.table)[:, : self.controls.pauses].T.tolist()
        for tenure, begin, end in noted:
            pauses.setdefault(tenure, []).append((begin, end))
        table = ledger[:, self.first_tenure : self.controls.tenures].T.tolist()
        return [
            Tenure(
                row, submitted, eligible, start, end,
                tuple(Share(node, cores, memory, tuple(gpus))
                      for node, cores, memory, *gpus in held[first:last]),
                STARTERS[by], self.asked.partition_of(option), pauses.get(tenure, []),
            )
            for tenure, (
                row, submitted, eligible, start, end, by, option, first, last,
            ) in enumerate(table, self.first_tenure)
        ]  # fmt: skip

    def order(self, now: int) -> Int64s:
        """Return the rows of the waiting jobs that may start, in the order in which they are tried.

        Jobs of several partitions are there once in each.
        """
        site = self.site(Jobs(self.jobs.matrix), NO_STATE, NO_ENDS)
        order = np.asarray(site.entries.table)[order_of(site, now), : self.controls.ordered]
        rows: Int64s = np.asarray(site.entries.owner)[order]
        return rows[self.rows.eligible[rows] <= now]

    def twin(self) -> SlurmBook:
        """Return a book with the same tables, in whose place others may be put."""
        other = copy(self)
        other._made, other.controls = Groups(), copy(self.controls)
        other.arrays, other.entries = dict(self.arrays), copy(self.entries)
        other._own_order = self._own_order and other._in_own_order
        return other

    def snapshot(self, now: int, waiting: Int64s, running: Int64s) -> Snapshot:
        """Return a copy that knows of what has happened by now."""
        return snapshot_of(self, now, waiting, running)

    def state(self) -> SlurmState:
        """Return what the controller knows, to be read."""
        return SlurmState(self)

    @property
    def phases(self) -> Phases:
        """What the controller did last when, and what comes next."""
        c = self.controls
        flags = map(bool, (c.planned_on, c.wanted, c.urgent))
        return Phases(*(getattr(c, name) for name in TIMES), *flags)

    def set_phases(self, phases: Phases) -> None:
        """Set what the controller did last when, and what comes next."""
        c = self.controls
        for name in TIMES:
            setattr(c, name, getattr(phases, name))
        c.planned_on, c.wanted, c.urgent = phases.planned, phases.wanted, phases.urgent

    def refusal(self, row: int) -> str:
        """Return why a submitted job is rejected whatever runs and waits; empty if it is not."""
        word = int(self.rows.refusal[row])
        return self.asked.words[word] if word else ""


def _empty(rows: int, columns: int = 0) -> Int64s:
    return np.zeros((rows, columns), np.int64)


def _grow(one: Any, need: int) -> None:
    """Give a table room for some columns, and for half as many more if it must grow."""
    if need > one.table.shape[1]:
        one.table = wider(one.table, need + need // 2 + 16)
