"""Constants and arrays of a machine of nodes under Slurm's controller.

Sets of nodes are rows of words with a bit for each node. A job has an *entry* for each partition
that it may run in; entries of jobs alike share an *option*: what they ask there, their limits, and
the factors of their priorities that do not change. Some tables hold several lists with places of
their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.arrays import Row, rows
from hpcrowd.environment.engine.kernel.cluster import ClusterState, Jobs
from hpcrowd.environment.engine.kernel.heap import Heap
from hpcrowd.environment.jobs import Float64Rows, Int64Rows
from hpcrowd.environment.stops import FOREVER

#: Stops besides those of ``kernel.cluster``: factors of fair share are to be computed, an array of
#: the controller is to grow, or a predictor is to hear of what ended and arrived.
RANK, GROW, PREDICT = 100, 101, 102

#: Phases of an instant besides those of ``kernel.cluster``: a pass, and what it ended.
PASSING, NOTING = 3, 4

#: s between looks of the backfill scheduler for changes (sched/backfill, short sleep).
LOOK_EVERY = 1

#: Main passes at most within one second, each after a preemption.
MOST_PASSES = 8

#: s within which ends of running jobs count as one when a start is foretold, at first; it doubles
#: (select/cons_tres, time_window).
TIME_WINDOW = 30

#: Jobs that are taken out at most before a fit is tried again (select/cons_tres).
MOST_TAKEN_OUT = 200

#: s that a job beyond its limit is expected to go on (KillWait).
KILL_WAIT = 30

#: Priorities above this are as good as it.
MOST_PRIORITY = 2**44 - 1

#: Bits of an order key for priorities.
PRIORITY_BITS = 44

# Rules of placement; the last one is a function of Python.
CONSECUTIVE, FIRST_FIT, BEST_FIT, SPREAD, OWN = range(5)

# Fates of preempted jobs.
KEPT, REQUEUED, CANCELLED, SUSPENDED = range(4)

# Who preempts whom.
NOBODY, BY_PARTITION, BY_QOS = range(3)

# Who started a job.
BY_MAIN, BY_BACKFILL = range(2)

# Rows of ``Nodes`` that a choice is made by. Behind its named rows come, at the places in
# ``Settings``, all GPUs by type, what is free, a copy of that, a choice of shares, and its copy.
USABLE, FULLER, NODE_ROWS = 3, 4, 15

# Rows of what is free: cores, MB, jobs on the node, then GPUs by type.
FREE_CORES, FREE_MEMORY, JOBS_HERE, FREE_GPUS = range(4)

# Rows of shares: node, cores, MB, then GPUs by type.
S_NODE, S_CORES, S_MEMORY, S_GPUS = range(4)

# Sets of nodes: those that are up, room for work, and then those of partitions; those of
# reservations and demands follow, from the places in ``Settings`` on.
UP, WORK, MEMBERS = 0, 1, 8

# Rows of tables, and the first of those that follow the named ones.
PREEMPTED, DEMANDS, JOB_ROWS, ENTRY_ROWS, FIRST_TRES = 12, 15, 27, 7, 2
TENURE_ROWS, LIST_ROWS, TASK_ROWS, R_GPUS, PAUSE_ROWS = 9, 17, 5, 10, 3
OPTION_ROWS, WEIGHT_ROWS, CHECK_ROWS, PEOPLE_ROWS = 12, 5, 6, 3
SPENT_ROWS, BILL_ROWS = 2, 1

# Rows of entries: the order of those that wait, and that of a pass.
KEY, PLACED, IN_TURN = 3, 4, 6

# Rows of lists that move together.
STOPPED_ROW, STOPPED_START, VICTIM, SECOND_KEY, SPAN_BEGIN, SPAN_NODES = 4, 7, 10, 12, 14, 16

# Kinds of checks.
(
    MOST_SUBMITTED, MOST_RUNNING, LONGEST, IN_USE, JOB_MOST, JOB_LEAST, NODE_MOST, RUN_MINUTES,
    USED_MINUTES,
) = range(9)  # fmt: skip

# TRES by place: cpu, mem, node, gres/gpu, then each type of GPU, and billing.
T_CORES, T_MEMORY, T_NODES, T_GPUS, T_KINDS = range(5)

# Statuses. Accepted jobs count on limits before they join the queue; requeued ones join it after
# the pass that stopped them.
AWAY, ACCEPTED, WAITING, RUNNING, COMING = range(5)

# Words for reasons that the controller itself gives, by place; limits have further ones.
(
    NONE, BEGIN_TIME, ARRAY_LIMIT, PRIORITY_WORD, RESOURCES, NODES_KEPT, PARTITION_DOWN,
    NOT_AVAILABLE,
) = range(8)  # fmt: skip


@dataclass(eq=False, slots=True)
class Settings:
    """How a controller is set, and where things are in its arrays.

    ``bf_...`` are the parameters of backfilling; the places begin with ``kinds``, types of GPUs.
    ``billed`` is whether jobs are billed by weights, ``largest`` by the largest amount only;
    ``minutes`` whether decayed usage is limited, ``safe`` for what jobs may still use, too.
    """

    backfill: int = 0
    bf_window: int = 0
    bf_resolution: int = 0
    bf_tests: int = 0
    bf_user: int = 0
    bf_partition: int = 0
    bf_starts: int = 0
    bf_array: int = 0
    bf_association: int = 0
    bf_least_age: int = 0
    bf_least_priority: int = 0
    depth: int = 0
    partition_depth: int = 0
    sched_interval: int = 0
    limit_stops: int = 0
    enforced: int = 0
    rule: int = 0
    preempts: int = 0
    youngest_first: int = 0
    exempt: int = 0
    reorder: int = 0
    may_requeue: int = 0
    requeue_delay: int = 0
    suspends: int = 0
    predicts: int = 0
    period: int = 0
    max_age: int = 0
    basic: int = 0
    all_cores: int = 0
    latency: int = 0
    kill_every: int = 0
    kill_phase: int = 0
    billed: int = 0
    largest: int = 0
    safe: int = 0
    minutes: int = 0
    kinds: int = 0
    billing: int = 0
    partitions: int = 0
    reservations: int = 0
    reserved: int = 0
    sets: int = 0
    all_gpus: int = 0
    stock: int = 0
    future: int = 0
    chosen: int = 0
    kept_choice: int = 0
    full_phase: int = 0
    delay: float = 0.0
    cycle: float = 0.0
    weight_age: float = 0.0
    weight_share: float = 0.0
    left_per_second: float = 0.0


@dataclass(eq=False, slots=True)
class Controller:
    """Where a controller is, and how much of its arrays is in use."""

    last_main: int = -(2**40)  #: the main scheduler's last pass, s
    wanted: int = 0  #: a pass is wanted
    urgent: int = 0  #: at once
    looked_at_all: int = -1  #: when a pass last looked at all jobs, -1 never
    last_backfill: int = 0
    changed: int = -1  #: when something last changed for backfilling
    calculated: int = 0  #: until when usage is computed, s
    ranking: int = 0  #: factors of fair share are being computed
    ended_at: int = 0  #: how many of the jobs that ended a pass has let end
    arrived_at: int = 0  #: and of those that arrived let join
    ordered: int = 0  #: entries in the order
    gone: int = 0  #: jobs that have left it
    waiting: int = 0
    running: int = 0
    first_running: int = -1  #: row of the job that began first
    last_running: int = -1
    tenures: int = 0  #: so far
    shares: int = 0  #: so far
    over: int = 0  #: tenures that ended since usage was computed
    stopped: int = 0  #: jobs that were stopped
    again: int = 0  #: jobs that join the queue again
    stamp: int = 0  #: of the present pass or cycle
    stopped_before: int = 0  #: of the stopped jobs, those that are noted
    passes: int = 0
    pauses: int = 0  #: of jobs that were suspended, so far
    accepted: int = 0
    next_eligible: int = FOREVER  #: when the next job becomes eligible, s
    u_nodes: int = 0  #: nodes, of those looked at, that can be used
    u_cores: int = 0  #: their cores
    u_most: int = 0  #: the most of one
    u_gpus: int = 0  #: their GPUs
    releases: int = 0
    base_of: int = -1  #: the demand for which nodes are known
    events: int = 0  #: releases that are known for a demand
    events_of: int = -1  #: that demand
    next_full: int = -1  #: when a pass looks at all jobs, -1 never
    planned_on: int = 0  #: nodes are marked as planned
    chained: int = 0  #: the releases of each node are known
    next_reset: int = FOREVER  #: from when on usage is counted anew, s
    next_backfill: float = 0.0  #: when the next cycle may begin, s


@dataclass(eq=False, slots=True)
class Nodes:
    """The nodes of the machine."""

    table: Int64Rows  #: shape (NODE_ROWS and what follows, nodes)

    #: What a node has, its weight; cores that the present job could use, also without nodes with
    #: few of them; runs of nodes: first, end, cores, GPUs and whether they are used; GPUs of a
    #: node for the present job; what the job that was looked at last could use; its first
    #: release; cores of jobs that are not suspended.
    (
        cores, memory, weight, usable, fuller, run_first, run_end, run_cores, run_gpus, run_used,
        gpus_here, base, base_gpus, first_release, busy,
    ) = rows("table", 15)  # fmt: skip


@dataclass(eq=False, slots=True)
class Rules:
    """Partitions, reservations and QOS, a column for each."""

    table: Int64Rows  #: shape (PREEMPTED + QOS, the most of them)

    #: Of partitions the rank of the tier from the highest, the tier, whether it is up, and room; of
    #: reservations begin, end, whether others may be used, and whether a job did not fit; of QOS
    #: priority, all of them with those first that preempt others, and the place of the last job in
    #: a queue. Whom they preempt follows.
    (
        tier_rank, tier, partition_up, flag, counted_too, begins, until, flexible, tried,
        qos_rank, qos_turn, last_of,
    ) = rows("table", 12)  # fmt: skip


@dataclass(eq=False, slots=True)
class FairShare:
    """Fair share, by association."""

    table: Float64Rows  #: shape (2, associations)

    #: Decayed usage (billed amount times s), and the factor of priorities.
    usage, factor = rows("table", 2)


@dataclass(eq=False, slots=True)
class People:
    """Associations, and counts of backfilling."""

    table: Int64Rows  #: shape (3, places)

    #: The association above; jobs of a partition, association or user that were counted, and in
    #: which cycle.
    parent, counted, counted_in = rows("table", 3)


@dataclass(eq=False, slots=True)
class Demands:
    """What jobs ask of nodes; amounts of TRES follow."""

    table: Int64Rows  #: shape (DEMANDS + TRES, demands)

    (
        set, least, most, wanted_cores, per_task, least_cores, most_cores, node_memory,
        core_memory, all_memory, gpus, node_gpus, gpu_kind, whole, cores_only,
    ) = rows("table", 15)  # fmt: skip


@dataclass(eq=False, slots=True)
class Options:
    """What entries of jobs alike share."""

    table: Int64Rows  #: shape (12, options)

    #: Demand, partition, what happens when preempted, whether it is never planned; first and
    #: behind the last of the checks at submission, before and after nodes are chosen, and of
    #: accounts of use.
    (
        demand, partition, fate, no_plan, at_submit, at_submit_end, before, before_end, after,
        after_end, uses, uses_end,
    ) = rows("table", 12)  # fmt: skip


@dataclass(eq=False, slots=True)
class Weights:
    """Weighted factors of priorities that do not change; weights of billing by TRES follow."""

    table: Float64Rows  #: shape (WEIGHT_ROWS + TRES, options)

    #: The last one is how often usage counts.
    size, partition, qos, tres, counts = rows("table", 5)


@dataclass(eq=False, slots=True)
class Checks:
    """What is checked."""

    table: Int64Rows  #: shape (6, checks)

    #: Kind, account of use, TRES, limit, word of it; a list of its own: accounts of use that a job
    #: counts on.
    kind, use, tres, limit_at, word, charged = rows("table", 6)


@dataclass(eq=False, slots=True)
class Queued:
    """What the controller knows of jobs, by row of the table."""

    table: Int64Rows  #: shape (JOB_ROWS, jobs)

    #: The last ones are of running jobs: since when one is suspended, -1 if it is not, and for how
    #: long it was before; and while its end is put off, how long it still runs and its pause, else
    #: -1.
    (
        status, entry, count, association, user_of, qos, limit, array, throttle, nice, requeues,
        reservation, begin, submitted, eligible, reason, planned, tenure, next, before_it,
        weighed, refusal, mark, suspended, rested, left, pause,
    ) = rows("table", 27)  # fmt: skip


@dataclass(eq=False, slots=True)
class Entries:
    """Jobs in partitions."""

    table: Int64Rows  #: shape (ENTRY_ROWS, entries)

    #: Option, priority and job of each; and, a list of its own, the order of those that wait:
    #: keys and entries; in a pass, where each is behind those that may preempt it, and the
    #: entries in that order.
    option, priority, owner, key, placed, behind, in_turn = rows("table", 7)


@dataclass(eq=False, slots=True)
class Used:
    """What accounts of use hold; amounts of TRES follow."""

    table: Int64Rows  #: shape (FIRST_TRES + TRES, accounts)

    #: Jobs that run, and those that also wait.
    run_jobs, all_jobs = rows("table", 2)


@dataclass(eq=False, slots=True)
class Spent:
    """Decayed usage of accounts of use, if it is limited; amounts of TRES times s follow."""

    table: Float64Rows  #: shape (SPENT_ROWS + TRES, accounts)

    #: What is left of it after a second, and after a calculation period.
    kept, left = rows("table", 2)


@dataclass(eq=False, slots=True)
class Tenures:
    """Tenures: runs of jobs."""

    table: Int64Rows  #: shape (TENURE_ROWS, tenures)

    #: Job, submission, when it was eligible, start, end, who started it, option, and the first and
    #: behind the last of its shares.
    row, submitted, eligible, start, end, by, option, first, last = rows("table", 9)


@dataclass(eq=False, slots=True)
class Bills:
    """What tenures are charged; amounts of TRES follow if usage is limited."""

    table: Float64Rows  #: shape (BILL_ROWS + TRES, tenures)

    #: What fair share counts in a second.
    rate = Row("table", 0)


@dataclass(eq=False, slots=True)
class Pauses:
    """Times in which jobs were suspended."""

    table: Int64Rows  #: shape (PAUSE_ROWS, pauses)

    #: Tenure, and from and to, s; -1 without an end.
    tenure, begin, end = rows("table", 3)


@dataclass(eq=False, slots=True)
class Shares:
    """Shares of nodes that tenures hold; GPUs by type follow."""

    table: Int64Rows  #: shape (S_GPUS + types, shares)

    node, cores, memory = rows("table", 3)


@dataclass(eq=False, slots=True)
class Lists:
    """Lists, each with a length of its own."""

    table: Int64Rows  #: shape (LIST_ROWS, places)

    #: Latest end and row of running jobs, sorted; ended tenures since the last calculation, and
    #: when; stopped jobs with second, fate and start; jobs requeued that join the queue after the
    #: pass; jobs that have left the queue; candidates of preemption with two keys and a mark;
    #: begin, end and place of the spans of the plan.
    (
        end_at, end_of, over_of, over_at, stopped_row, stopped_at, stopped_fate, stopped_start,
        again_of, gone_of, victim, first_key, second_key, in_the_way, span_begin, span_end,
        span_nodes,
    ) = rows("table", 17)  # fmt: skip


@dataclass(eq=False, slots=True)
class Tasks:
    """Tasks of arrays."""

    table: Int64Rows  #: shape (5, arrays * partitions)

    #: Running tasks of an array, planned ones and the cycle that planned them; and by array and
    #: partition the pass, and the first task in it.
    tasks, tasks_planned, tasks_cycle, first_in, first_task = rows("table", 5)


@dataclass(eq=False, slots=True)
class Releases:
    """What backfilling expects to be given back; GPUs by type follow."""

    table: Int64Rows  #: shape (R_GPUS + types, shares)

    #: By latest end and job: both, a node that the job holds a share of, and what is free there
    #: from then on: cores, MB, jobs on it; then what of that the demand ``events_of`` could use,
    #: cores and GPUs; the next release of the node; words with a bit for each release.
    end, job, node, cores, memory, here, usable, usable_gpus, next, marks = rows("table", 10)


@dataclass(eq=False, slots=True)
class Site:
    """All arrays of a machine under its controller; columns may be more than are in use."""

    jobs: Jobs  #: as in ``kernel.cluster.Cluster``
    state: ClusterState  #: likewise
    ends: Heap  #: ends of running jobs, likewise
    settings: Settings
    controller: Controller
    nodes: Nodes
    sets: Int64Rows  #: sets of nodes, shape (sets, words)
    #: nodes that nothing planned holds in a span of the plan, shape (spans, words)
    spans: Int64Rows
    rules: Rules
    fair_share: FairShare
    people: People
    demands: Demands
    options: Options
    weights: Weights
    checks: Checks
    used: Used
    spent: Spent
    rows: Queued
    entries: Entries
    ledger: Tenures
    bills: Bills
    pauses: Pauses
    held: Shares
    lists: Lists
    tasks: Tasks
    releases: Releases
    #: places usable nodes in ``run_first`` by your own rule: a stock, a demand, and the row of
    #: cores that it can use; returns how many
    own_order: Callable[[int, int, int], int] | None = None
