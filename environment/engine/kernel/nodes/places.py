"""Constants and groups of arrays of a machine of nodes under Slurm's controller.

Sets of nodes are rows of bytes, one for each node. A job has an *entry* for each partition that it
may run in; entries of jobs alike share an *option*: what they ask there, their limits, and the
factors of their priorities that do not change.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hpcrowd.environment.jobs import Int64s

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

# Rows of ``Site.nodes``.
CORES, MEMORY, WEIGHT = range(3)

# Rows of ``Site.partitions``: rank of the tier from the highest, the tier, and whether it is up.
TIER_RANK, TIER, PARTITION_UP = range(3)

# Rows of ``Site.reservations``.
FROM, UNTIL, FLEXIBLE = range(3)

# Places in ``Site.settings``; TIMES is how often a job may start in a second.
(
    BACKFILL, BF_INTERVAL, BF_WINDOW, BF_RESOLUTION, BF_TESTS, BF_USER, BF_PARTITION, BF_STARTS,
    BF_ARRAY, BF_ASSOCIATION, BF_LEAST_AGE, BF_LEAST_PRIORITY, DEPTH, PARTITION_DEPTH,
    SCHED_INTERVAL, LIMIT_STOPS, ENFORCED, RULE, PREEMPTS, YOUNGEST_FIRST, EXEMPT, REORDER,
    MAY_REQUEUE, REQUEUE_DELAY, PERIOD, MAX_AGE, BASIC, TIMES, ALL_CORES,
    SETTINGS,
) = range(30)  # fmt: skip

# Places in ``Site.amounts``: s of batch_sched_delay, s between backfill cycles, weights of age and
# fair share, and what is left of usage after a second.
DELAY, CYCLE, WEIGHT_AGE, WEIGHT_SHARE, LEFT_PER_SECOND, AMOUNTS = range(6)

# Rows of ``Asked.demands``.
(
    SET, LEAST, MOST, WANTED_CORES, PER_TASK, LEAST_CORES, MOST_CORES, NODE_MEMORY, CORE_MEMORY,
    ALL_MEMORY, GPUS, NODE_GPUS, GPU_KIND, WHOLE, CORES_ONLY, DEMANDS,
) = range(16)  # fmt: skip

# Rows of ``Asked.options``; checks and uses are places of the first and behind the last.
(
    DEMAND, PARTITION, FATE, NO_PLAN, AT_SUBMIT, AT_SUBMIT_END, BEFORE, BEFORE_END, AFTER,
    AFTER_END, USES, USES_END, OPTIONS,
) = range(13)  # fmt: skip

# Rows of ``Asked.factors``: weighted factors of a priority that do not change.
F_SIZE, F_PARTITION, F_QOS, F_TRES, FACTORS = range(5)

# Rows of ``Asked.checks``, and their kinds.
KIND, USE, TRES, LIMIT_AT, WORD, CHECKS = range(6)
(
    MOST_SUBMITTED, MOST_RUNNING, LONGEST, IN_USE, JOB_MOST, JOB_LEAST, NODE_MOST, RUN_MINUTES,
    USED_MINUTES,
) = range(9)  # fmt: skip

# TRES by place: cpu, mem, node, gres/gpu, then each type of GPU.
T_CORES, T_MEMORY, T_NODES, T_GPUS, T_KINDS = range(5)

# Rows of ``Queue.rows``, one column for each job of the table.
(
    STATUS, ENTRY, COUNT, ASSOCIATION, USER_OF, QOS, LIMIT, ARRAY, THROTTLE, NICE, REQUEUES,
    RESERVATION, BEGIN, SUBMITTED, ELIGIBLE, REASON, PLANNED, TENURE, NEXT, BEFORE_IT, WEIGHED,
    REFUSAL, MARK, ROWS,
) = range(24)  # fmt: skip

# Statuses; those who come back join the queue after the pass that stopped them.
AWAY, WAITING, RUNNING, COMING = range(4)

# Rows of ``Queue.entries``.
OPTION, PRIORITY, OWNER, ENTRIES = range(4)

# Rows of ``Queue.order``: keys and entries.
KEY, PLACED = range(2)

# Rows of ``State.used``: jobs that run, those that also wait, then TRES.
RUN_JOBS, ALL_JOBS, FIRST_TRES = range(3)

# Rows of ``State.ledger``.
(
    L_ROW, L_SUBMITTED, L_ELIGIBLE, L_START, L_END, L_BY, L_OPTION, L_CORES, L_FIRST, L_LAST,
    LEDGER,
) = range(11)  # fmt: skip

# Rows of ``State.shares`` and of chosen shares: node, cores, memory, then GPUs by type.
S_NODE, S_CORES, S_MEMORY, S_GPUS = range(4)

# Rows of ``State.arrays``: running tasks, planned tasks and the cycle that planned them.
TASKS, TASKS_PLANNED, TASKS_CYCLE = range(3)

# Places in ``State.c``.
(
    LAST_MAIN, WANTED, URGENT, LOOKED_AT_ALL, LAST_BACKFILL, CHANGED, CALCULATED, RANKING, ENDED_AT,
    ARRIVED_AT, ORDERED, GONE, ALL_WAITING, ALL_RUNNING, FIRST_RUNNING, LAST_RUNNING, TENURES,
    SHARES, OVER, STOPPED, AGAIN, STAMP, LATENCY, KILL_EVERY, KILL_PHASE, STOPPED_BEFORE, PASSES,
    C_COUNT,
) = range(28)  # fmt: skip

# Rows of ``State.stopped``: row, second, fate, start.
STOPPED_ROW, STOPPED_AT, STOPPED_FATE, STOPPED_START = range(4)

# Words for reasons that the controller itself gives, by place; limits have further ones.
NONE, BEGIN_TIME, ARRAY_LIMIT, PRIORITY_WORD, RESOURCES, NODES_KEPT, PARTITION_DOWN = range(7)


class Site(NamedTuple):
    """What does not change in a run."""

    nodes: Int64s  #: shape (3, nodes)
    gpus: Int64s  #: shape (types, nodes)
    partitions: Int64s  #: shape (3, partitions)
    members: Any  #: nodes of partitions, bytes, shape (partitions, nodes)
    up: Any  #: nodes that are up, bytes, shape (nodes,)
    reservations: Int64s  #: shape (3, reservations)
    reserved: Any  #: their nodes, bytes, shape (reservations, nodes)
    preempts: Any  #: which QOS preempts which, bytes, shape (QOS, QOS)
    ranks: Int64s  #: priorities of QOS, shape (QOS,)
    settings: Int64s
    amounts: Any


class Asked(NamedTuple):
    """What jobs ask for, by what they have in common."""

    demands: Int64s  #: shape (DEMANDS, demands)
    sets: Any  #: nodes that may be used, bytes, shape (sets, nodes)
    tres: Int64s  #: resources that are asked, shape (TRES, demands)
    options: Int64s  #: shape (OPTIONS, options)
    factors: Any  #: shape (FACTORS, options)
    checks: Int64s  #: shape (CHECKS, checks)
    uses: Int64s  #: numbers of accounts of use, shape (places,)
    minutes: Any  #: whether a word is that of a limit that time changes, bytes


class Queue(NamedTuple):
    """Jobs and the order of those that wait."""

    rows: Int64s  #: shape (ROWS, jobs)
    entries: Int64s  #: shape (ENTRIES, entries)
    order: Int64s  #: shape (2, places)


class Stock(NamedTuple):
    """What is free."""

    cores: Int64s  #: shape (nodes,)
    memory: Int64s  #: MB, shape (nodes,)
    gpus: Int64s  #: shape (types, nodes)
    jobs: Int64s  #: number of jobs on each node


class State(NamedTuple):
    """What the controller keeps from second to second."""

    c: Int64s
    f: Any  #: the second of the next backfill cycle, shape (1,)
    used: Int64s  #: shape (2 + TRES, accounts of use)
    usage: Any  #: decayed processor-seconds of associations
    parents: Int64s  #: the association above, -1 for none
    shares: Any  #: fair-share factors of associations
    ledger: Int64s  #: shape (LEDGER, tenures)
    held: Int64s  #: shares of tenures, shape (3 + types, shares)
    ends: Int64s  #: latest end and row of running jobs, sorted, shape (2, running)
    over: Int64s  #: tenures that ended since the last calculation, and when, shape (2, tenures)
    stopped: Int64s  #: shape (4, stops)
    again: Int64s  #: rows of requeued jobs that join the queue after the pass
    arrays: Int64s  #: shape (3, arrays of tasks)
    first: Int64s  #: first tasks of arrays in a pass, by array and partition: stamp and row


class Scratch(NamedTuple):
    """Room for work within one pass."""

    usable: Int64s  #: cores that a job could use of each node
    fuller: Int64s
    runs: Int64s  #: first and last node, cores and GPUs of runs of nodes, whether used
    chosen: Int64s  #: shares of a choice, shape (3 + types, nodes)
    allowed: Any  #: bytes, shape (6, nodes)
    cores: Int64s  #: copies of the stock
    memory: Int64s
    gpus: Int64s
    jobs: Int64s
    victims: Int64s  #: shape (4, running)
    counts: Int64s  #: by user, by partition, by association: numbers and stamps
    flags: Int64s  #: shape (2, partitions)
    kept: Int64s  #: a copy of ``chosen``
    plan: Int64s  #: begin, end and place of the spans of the plan, shape (3, spans)
    spans: Any  #: nodes that nothing planned holds in a span, bytes, shape (spans, nodes)
