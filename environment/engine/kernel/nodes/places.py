"""Constants and arrays of a machine of nodes under Slurm's controller.

Sets of nodes are rows of words with a bit for each node. A job has an *entry* for each partition
that it may run in; entries of jobs alike share an *option*: what they ask there, their limits, and
the factors of their priorities that do not change. Some tables hold several lists with places of
their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.jobs import Float64Rows, Int64Rows, Int64s

#: Stops besides those of ``kernel.places``: factors of fair share are to be computed, or an array
#: of the controller is to grow.
RANK, GROW = 100, 101

#: Phases of an instant besides those of ``kernel.places``: a pass, and what it ended.
PASSING, NOTING = 3, 4

#: Priorities above this are as good as it.
MOST_PRIORITY = 2**44 - 1

#: Bits of an order key for priorities.
PRIORITY_BITS = 44

# Rules of placement.
CONSECUTIVE, FIRST_FIT, BEST_FIT, SPREAD = range(4)

# Fates of preempted jobs.
KEPT, REQUEUED, CANCELLED = range(3)

# Who preempts whom.
NOBODY, BY_PARTITION, BY_QOS = range(3)

# Who started a job.
BY_MAIN, BY_BACKFILL = range(2)

# Rows of ``Site.nodes``. Behind them come, at the places in ``Site.c``, all GPUs by type, what is
# free, a copy of that, a choice of shares, and a copy of that.
(
    CORES, MEMORY, WEIGHT, USABLE, FULLER, RUN_FIRST, RUN_END, RUN_CORES, RUN_GPUS, RUN_USED,
    GPUS_HERE, BASE, BASE_GPUS, FIRST_RELEASE, NODE_ROWS,
) = range(15)  # fmt: skip

# Rows of what is free: cores, MB, jobs on the node, then GPUs by type.
FREE_CORES, FREE_MEMORY, JOBS_HERE, FREE_GPUS = range(4)

# Rows of shares: node, cores, MB, then GPUs by type.
S_NODE, S_CORES, S_MEMORY, S_GPUS = range(4)

# Sets of nodes: those that are up, room for work, and then those of partitions; those of
# reservations and demands follow, from the places in ``Site.c`` on.
UP, WORK, MEMBERS = 0, 1, 8

# Rows of ``Site.rules``: of partitions the rank of the tier from the highest, the tier, whether it
# is up, and room; of reservations begin, end, whether others may be used, and whether a job did
# not fit; of QOS priority, all of them with those first that preempt others, the place of the last
# job in a queue, and whom they preempt.
(
    TIER_RANK, TIER, PARTITION_UP, FLAG, COUNTED_TOO, FROM, UNTIL, FLEXIBLE, TRIED, QOS_RANK,
    QOS_TURN, LAST_OF, PREEMPTED,
) = range(13)  # fmt: skip

# Rows of ``Site.reals``; those with amounts have s of batch_sched_delay, s between backfill cycles,
# weights of age and fair share, what is left of usage after a second, and the next cycle.
USAGE, SHARE, AMOUNTS, REALS = range(4)
DELAY, CYCLE, WEIGHT_AGE, WEIGHT_SHARE, LEFT_PER_SECOND, NEXT_BACKFILL, AMOUNT_PLACES = range(7)

# Rows of ``Site.people``; counts of partitions, associations and users are stamped with the cycle.
PARENT, COUNTED, COUNTED_IN, PEOPLE = range(4)

# Places in ``Site.c``: settings.
(
    BACKFILL, BF_WINDOW, BF_RESOLUTION, BF_TESTS, BF_USER, BF_PARTITION, BF_STARTS, BF_ARRAY,
    BF_ASSOCIATION, BF_LEAST_AGE, BF_LEAST_PRIORITY, DEPTH, PARTITION_DEPTH, SCHED_INTERVAL,
    LIMIT_STOPS, ENFORCED, RULE, PREEMPTS, YOUNGEST_FIRST, EXEMPT, REORDER, MAY_REQUEUE,
    REQUEUE_DELAY, PERIOD, MAX_AGE, BASIC, ALL_CORES, LATENCY, KILL_EVERY, KILL_PHASE,
    KINDS, PARTITIONS, RESERVATIONS, RESERVED, SETS, ALL_GPUS, STOCK, FUTURE, CHOSEN, KEPT_CHOICE,
    FULL_PHASE, SETTINGS,
) = range(42)  # fmt: skip

# Places in ``Site.c`` behind them: what changes. U_... are of nodes that were looked at: how many
# can be used, their cores, the most of one, and their GPUs. BASE_OF and EVENTS_OF are the demands
# for which nodes and releases are known, CHAINED says whether the releases of each node are.
(
    LAST_MAIN, WANTED, URGENT, LOOKED_AT_ALL, LAST_BACKFILL, CHANGED, CALCULATED, RANKING, ENDED_AT,
    ARRIVED_AT, ORDERED, GONE, ALL_WAITING, ALL_RUNNING, FIRST_RUNNING, LAST_RUNNING, TENURES,
    SHARES, OVER, STOPPED, AGAIN, STAMP, STOPPED_BEFORE, PASSES, ALL_ACCEPTED,
    NEXT_ELIGIBLE, U_NODES, U_CORES, U_MOST, U_GPUS, ALL_RELEASES, BASE_OF,
    EVENTS, EVENTS_OF, NEXT_FULL, PLANNED_ON, CHAINED, C_COUNT,
) = range(SETTINGS, SETTINGS + 38)  # fmt: skip

# Rows of ``Site.demands``; amounts of TRES follow.
(
    SET, LEAST, MOST, WANTED_CORES, PER_TASK, LEAST_CORES, MOST_CORES, NODE_MEMORY, CORE_MEMORY,
    ALL_MEMORY, GPUS, NODE_GPUS, GPU_KIND, WHOLE, CORES_ONLY, DEMANDS,
) = range(16)  # fmt: skip

# Rows of ``Site.options``; checks and uses are places of the first and behind the last.
(
    DEMAND, PARTITION, FATE, NO_PLAN, AT_SUBMIT, AT_SUBMIT_END, BEFORE, BEFORE_END, AFTER,
    AFTER_END, USES, USES_END, OPTIONS,
) = range(13)  # fmt: skip

# Rows of ``Site.weights``: weighted factors of a priority that do not change.
F_SIZE, F_PARTITION, F_QOS, F_TRES, FACTORS = range(5)

# Rows of ``Site.checks``, and kinds of checks. The last two rows are lists of their own: accounts
# of use that a job counts on, and whether a word is that of a limit that time changes.
KIND, USE, TRES, LIMIT_AT, WORD, CHARGED, MINUTES, CHECKS = range(8)
(
    MOST_SUBMITTED, MOST_RUNNING, LONGEST, IN_USE, JOB_MOST, JOB_LEAST, NODE_MOST, RUN_MINUTES,
    USED_MINUTES,
) = range(9)  # fmt: skip

# TRES by place: cpu, mem, node, gres/gpu, then each type of GPU.
T_CORES, T_MEMORY, T_NODES, T_GPUS, T_KINDS = range(5)

# Rows of ``Site.rows``, one column for each job of the table.
(
    STATUS, ENTRY, COUNT, ASSOCIATION, USER_OF, QOS, LIMIT, ARRAY, THROTTLE, NICE, REQUEUES,
    RESERVATION, BEGIN, SUBMITTED, ELIGIBLE, REASON, PLANNED, TENURE, NEXT, BEFORE_IT, WEIGHED,
    REFUSAL, MARK, ROWS,
) = range(24)  # fmt: skip

# Statuses. Accepted jobs count on limits before they join the queue; requeued ones join it after
# the pass that stopped them.
AWAY, ACCEPTED, WAITING, RUNNING, COMING = range(5)

# Rows of ``Site.entries``: option, priority and job of each; and, a list of its own, the order of
# those that wait: keys and entries; in a pass, where each is behind those that may preempt it, and
# the entries in that order.
OPTION, PRIORITY, OWNER, KEY, PLACED, BEHIND, IN_TURN, ENTRIES = range(8)

# Rows of ``Site.used``: jobs that run, those that also wait, then TRES.
RUN_JOBS, ALL_JOBS, FIRST_TRES = range(3)

# Rows of ``Site.ledger``.
(
    L_ROW, L_SUBMITTED, L_ELIGIBLE, L_START, L_END, L_BY, L_OPTION, L_CORES, L_FIRST, L_LAST,
    LEDGER,
) = range(11)  # fmt: skip

# Rows of ``Site.lists``, each a list of its own: latest end and row of running jobs, sorted; ended
# tenures since the last calculation, and when; stopped jobs with second, fate and start; jobs
# requeued that join the queue after the pass; jobs that have left the queue; candidates of
# preemption with two keys and a mark; begin, end and place of the spans of the plan.
(
    END_AT, END_OF, OVER_OF, OVER_AT, STOPPED_ROW, STOPPED_AT, STOPPED_FATE, STOPPED_START,
    AGAIN_OF, GONE_OF, VICTIM, FIRST_KEY, SECOND_KEY, IN_THE_WAY, SPAN_BEGIN, SPAN_END, SPAN_NODES,
    LISTS,
) = range(18)  # fmt: skip

# Rows of ``Site.tasks``: running tasks of an array, planned ones and the cycle that planned them;
# and by array and partition the first task in a pass, and the pass.
TASKS, TASKS_PLANNED, TASKS_CYCLE, FIRST_IN, FIRST_TASK, TASK_ROWS = range(6)

# Rows of ``Site.releases``, by latest end and job: both, a node that the job holds a share of, and
# what is free there from then on: cores, MB, jobs on it; then what of that the demand EVENTS_OF
# could use, cores and GPUs; the next release of the node; words with a bit for each release; and
# GPUs by type.
(
    R_END, R_JOB, R_NODE, R_CORES, R_MEMORY, R_HERE, R_USABLE, R_USABLE_GPUS, R_NEXT, R_MARKS,
    R_GPUS,
) = range(11)  # fmt: skip

# Words for reasons that the controller itself gives, by place; limits have further ones.
(
    NONE, BEGIN_TIME, ARRAY_LIMIT, PRIORITY_WORD, RESOURCES, NODES_KEPT, PARTITION_DOWN,
    NOT_AVAILABLE,
) = range(8)  # fmt: skip


@dataclass(eq=False, slots=True)
class Site:
    """All arrays of a machine under its controller; columns may be more than are in use."""

    jobs: Int64Rows  #: the table of jobs, as in ``kernel.places.Cluster``
    s: Int64s  #: scalars of the engine, likewise
    ends: Int64Rows  #: ends of running jobs, a heap, likewise
    c: Int64s  #: settings and scalars of the controller
    nodes: Int64Rows  #: by node: what it has, what is free, room to choose
    sets: Int64Rows  #: sets of nodes, shape (sets, words)
    spans: (
        Int64Rows  #: nodes that nothing planned holds in a span of the plan, shape (spans, words)
    )
    rules: Int64Rows  #: of partitions, reservations and QOS, a column for each
    reals: Float64Rows  #: by association: usage and share; and amounts
    people: Int64Rows  #: by association: the one above; and counts of backfilling
    demands: Int64Rows  #: what is asked of nodes, then TRES, shape (DEMANDS + TRES, demands)
    options: Int64Rows  #: shape (OPTIONS, options)
    weights: Float64Rows  #: shape (FACTORS, options)
    checks: Int64Rows  #: shape (CHECKS, checks)
    used: Int64Rows  #: shape (FIRST_TRES + TRES, accounts of use)
    rows: Int64Rows  #: shape (ROWS, jobs)
    entries: Int64Rows  #: shape (ENTRIES, entries)
    ledger: Int64Rows  #: shape (LEDGER, tenures)
    held: Int64Rows  #: shares of tenures, shape (S_GPUS + types, shares)
    lists: Int64Rows  #: shape (LISTS, places)
    tasks: Int64Rows  #: shape (TASK_ROWS, arrays * partitions)
    releases: Int64Rows  #: what backfilling expects, shape (R_GPUS + types, shares)
