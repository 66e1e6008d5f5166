"""Machines of nodes and jobs for them: given ones, and random ones full of ties and limits."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.machine.model import (
    Account,
    Limits,
    Machine,
    NodeType,
    Partition,
    Preempt,
    PrioritySettings,
    Qos,
    Reservation,
    SchedulingSettings,
)
from hpcrowd.environment.requests import Ask, Requests

Job = dict[str, Any]

#: Passes follow each event at once, so that stories need no arithmetic.
AT_ONCE = {
    "batch_sched_delay": 0, "sched_interval": 1, "bf_interval": 1, "bf_resolution": 1,
    "time_limit_period": 1,
}  # fmt: skip


class Nobody:
    """Submits, and waits for nothing."""

    def on_finished(self, unit: int, now: int) -> None:
        """Do nothing."""


def machine(*nodes: NodeType, scheduling: dict[str, Any] | None = None, **more: Any) -> Machine:
    """Return a machine whose scheduler acts at once; by default two nodes of four cores."""
    settings = SchedulingSettings(**{**AT_ONCE, **(scheduling or {})})
    kinds = nodes or (NodeType(name="n[1-2]", cores=4),)
    return Machine(nodes=kinds, scheduling=settings, **more)


def table(*jobs: Job) -> tuple[JobTable, np.ndarray[Any, Any]]:
    """Return a table of jobs with requests, and their submissions.

    Keys are columns of the table or of requests; ``at`` is the submission, ``limit`` the requested
    time, ``run`` the run time.
    """
    made, requests = JobTable(), Requests(len(jobs))
    made.append(
        len(jobs),
        user=[job.get("user", 1) for job in jobs],
        processors=[job.get("cores", 1) for job in jobs],
        run_time=[job.get("run", 100) for job in jobs],
        requested_time=[job.get("limit", job.get("run", 100)) for job in jobs],
    )
    for row, job in enumerate(jobs):
        for name, value in job.items():
            if name.upper() in Ask.__members__:
                requests.set(row, Ask[name.upper()], value)
    made.requests = requests
    made.names = {"user": {number: f"u{number}" for number in range(10)}}
    return made, np.array([job.get("at", 0) for job in jobs])


#: Users of random jobs; the last one is in no account.
USERS = 4

#: Each limit, with values that random jobs reach.
LIMITS: dict[str, tuple[Any, ...]] = {
    "group_jobs": (1, 2, 4),
    "group_submit": (3, 6),
    "group_tres": ({"cpu": 4}, {"node": 2}, {"mem": 300}, {"gres/gpu": 2}, {"gres/gpu:a": 1}),
    "group_tres_run_minutes": ({"cpu": 1}, {"mem": 15}, {"node": 1}, {"gres/gpu:a": 1}),
    "max_jobs": (1, 2),
    "max_submit": (2, 5),
    "max_tres": ({"cpu": 3}, {"node": 2}, {"mem": 200}, {"gres/gpu": 1}),
    "max_tres_per_node": ({"cpu": 2}, {"gres/gpu": 1}),
    "max_wall": (6, 12),
}

#: Limits that only a QOS has.
QOS_LIMITS: dict[str, tuple[Any, ...]] = {
    "max_tres_per_user": ({"cpu": 3}, {"node": 2}, {"gres/gpu": 1}),
    "max_jobs_per_account": (1, 3),
    "max_submit_per_account": (4,),
    "max_tres_per_account": ({"cpu": 5}, {"mem": 250}),
    "min_tres": ({"cpu": 2},),
}


def _picker(rng: np.random.Generator) -> Callable[..., Any]:
    def pick(*options: Any) -> Any:
        return options[int(rng.integers(len(options)))]

    return pick


def _limits(
    rng: np.random.Generator, known: dict[str, tuple[Any, ...]], often: float = 0.08
) -> Limits:
    """Return limits, most of them none."""
    pick = _picker(rng)
    return Limits(**{key: pick(*values) for key, values in known.items() if rng.random() < often})


def random_machine(rng: np.random.Generator) -> Machine:
    """Return a machine of one to nine nodes with all that bounds who runs what, where and when.

    Partitions ``all``, ``some`` and ``rest`` overlap; QOS are ``normal``, ``high`` and ``site``;
    accounts are ``a`` and, below it, ``b``, of the users ``u1`` to ``u3``.
    """
    pick = _picker(rng)
    kinds = tuple(
        NodeType(
            name=f"{name}[1-{pick(1, 2, 3)}]",
            cores=pick(1, 2, 4, 6),
            memory=pick(None, 100, 250),
            gpus=pick({}, {}, {"a": 1}, {"a": 1, "b": 2}),
            features=pick((), ("fast",), ("fast", "large")),
            weight=pick(1, 2),
        )
        for name in "kmn"[: pick(1, 2, 3)]
    )
    first, last = kinds[0].name, kinds[-1].name
    most = pick(1, 2, None)
    preempt = pick("none", "partition", "qos")

    def partition(name: str, **more: Any) -> Partition:
        return Partition(
            name=name,
            max_time=pick(None, None, 8, 15),
            default_time=pick(None, 5),
            max_cores_per_node=pick(None, None, None, 2),
            default_memory_per_core=pick(None, None, 30),
            priority_tier=1 if preempt == "qos" else pick(1, 2, 3),
            priority_factor=pick(0, 1, 2),
            exclusive=pick(False, False, False, True),
            preempt_mode=pick(None, None, None, None, "off", "cancel"),
            qos=pick("", "", "site"),
            **more,
        )

    turns = sorted(rng.choice(np.arange(1, 60), 4, replace=False).tolist())
    return Machine(
        nodes=kinds,
        partitions=(
            partition("all", default=True),
            partition("some", nodes=(first,), deny_accounts=pick((), (), ("b",))),
            partition("rest", nodes=pick((last,), (first, last)), max_nodes=most,
                      min_nodes=pick(0, 0, most or 2), up=pick(True, True, True, True, False)),
        ),
        qos=(
            Qos(name="normal", limits=_limits(rng, LIMITS | QOS_LIMITS)),
            Qos(name="high", priority=10, preempts=("normal",), deny_on_limit=pick(False, True),
                limits=_limits(rng, LIMITS | QOS_LIMITS), part_qos_overrides=pick(False, True)),
            Qos(name="site", limits=_limits(rng, LIMITS | QOS_LIMITS)),
        ),
        accounts=(
            Account(account="a", shares=2, limits=_limits(rng, LIMITS)),
            Account(account="b", parent="a", limits=_limits(rng, LIMITS)),
            Account(account="a", user="u1", limits=_limits(rng, LIMITS, 0.2)),
            Account(account="b", user="u2", default_qos=pick("", "high")),
            Account(account="b", user="u3", limits=_limits(rng, LIMITS, 0.2)),
        ),
        reservations=tuple(
            Reservation(name=name, start=start, end=end, nodes=pick(("ALL",), (first,), (last,)),
                        maintenance=pick(False, True),
                        flexible=preempt == "none" and pick(False, True))
            for name, start, end in (("early", *turns[:2]), ("late", *turns[2:]))
            if rng.random() < 0.4
        ),
        priority=PrioritySettings(
            weight_age=pick(0, 100), weight_fair_share=pick(0, 1000), weight_size=pick(0, 500),
            weight_partition=pick(0, 300), max_age=50,
            weight_qos=pick(0, 300),
            calculation_period=pick(5, 29, 300), half_life=pick(0, 77, 1000),
            fair_tree=pick(True, False),
        ),
        scheduling=SchedulingSettings(
            enforce_limits=pick(True, True, False),
            preempt_type=preempt,
            preempt_mode="off" if preempt == "none" else pick("requeue", "requeue", "cancel"),
            preempt_youngest_first=pick(False, True),
            preempt_exempt_time=pick(0, 0, 0, 3),
            requeue_delay=pick(1, 4),
            enforce_part_limits=pick("no", "any", "all"),
            backfill=pick(True, True, False),
            bf_interval=pick(1, 7), bf_resolution=pick(1, 6), bf_window=pick(30, 600),
            bf_max_job_user=pick(0, 2), bf_max_job_test=pick(3, 100),
            sched_interval=pick(1, 9), batch_sched_delay=pick(0, 3),
            default_queue_depth=pick(2, 100), assoc_limit_stop=pick(False, False, True),
            time_limit_period=pick(1, 5), whole_nodes=pick(False, False, False, False, True),
            memory_counts=pick(True, True, False), least_loaded=pick(False, False, True),
        ),
    )  # fmt: skip


#: Limits on decayed usage, which random jobs reach, and on what they are billed.
USAGE_LIMITS: dict[str, tuple[Any, ...]] = {
    "group_tres_minutes": ({"cpu": 1}, {"mem": 9}, {"node": 1}, {"billing": 2}, {"gres/gpu:a": 1}),
    "group_tres": ({"billing": 5}, {"billing": 9}),
}


#: Usage is reset 40 s after the origin, also if it is once in a week.
BEFORE_RESET = Clock(Clock().unix_start + 6 * DAY - 40)


def with_usage_rules(site: Machine, seed: int) -> Machine:
    """Return a machine on which usage is weighed, reset and limited."""
    rng = np.random.default_rng(seed)
    pick = _picker(rng)

    def limited[One: (Qos, Account)](one: One, often: float, **more: Any) -> One:
        values = {key: pick(*some) for key, some in USAGE_LIMITS.items() if rng.random() < often}
        return one.model_copy(
            update={"limits": one.limits.model_copy(update=values), **more}
        )  # fmt: skip

    weights = {"cpu": 0.5, "mem": 0.02, "gres/gpu": 2.0}, {"node": 3.0, "gres/gpu:a": 1.0}, {}
    return site.changed(
        partitions=tuple(
            one.model_copy(update={"billing_weights": pick(*weights)}) for one in site.partitions
        ),
        qos=tuple(
            limited(one, 0.5, usage_factor=pick(1.0, 1.0, 0.0, 2.5), no_decay=pick(False, True))
            for one in site.qos
        ),
        accounts=tuple(limited(one, 0.4) for one in site.accounts),
        priority=site.priority.model_copy(
            update={
                "max_tres": pick(False, True), "usage_reset": pick("none", "daily", "weekly"),
                "calculation_period": pick(5, 29), "half_life": pick(0, 77, 77),
            }
        ),
        scheduling=site.scheduling.model_copy(
            update={"enforce_limits": True, "safe_limits": pick(False, True)}
        ),
    )  # fmt: skip


#: What a random job may ask for beyond processors, mostly in one of ten jobs.
OTHERS: dict[Ask, tuple[Any, ...]] = {
    Ask.NODES: (1, 2, 3),
    Ask.MAX_NODES: (3, 4),
    Ask.CORES_PER_TASK: (1, 2, 2),
    Ask.TASKS_PER_NODE: (1, 2),
    Ask.GPUS: (1, 2, 3),
    Ask.GPUS_PER_NODE: (1, 2),
    Ask.GPUS_PER_TASK: (1,),
    Ask.GPU_TYPE: ("a", "b"),
    Ask.FEATURES: ("fast", "large", "fast&large", "fast|large"),
    Ask.EXCLUSIVE: (1,),
    Ask.PARTITIONS: ("all", "some", "rest", "some,rest", "rest,all"),
    Ask.QOS: ("normal", "high"),
    Ask.ACCOUNT: ("a", "b"),
    Ask.NICE: (20,),
    Ask.NO_REQUEUE: (1,),
    Ask.BEGIN: tuple(range(0, 40, 7)),
}

#: The part of the jobs that ask for something, where it is not a tenth.
OFTEN = {Ask.PARTITIONS: 0.5, Ask.QOS: 0.4}


def random_jobs(rng: np.random.Generator, machine: Machine, most: int = 30) -> JobTable:
    """Return jobs with requests and recorded submissions, arrays among them.

    One to ``most``, or five times as many.
    """
    pick = _picker(rng)
    rows: list[dict[str, int]] = []
    asks: list[dict[Ask, Any]] = []
    kept = [one.name for one in machine.reservations]
    size = int(rng.integers(1, pick(most, most, 5 * most) + 1))
    while len(rows) < size:
        memory = pick({}, {Ask.MEMORY_PER_NODE: pick(0, 40, 90)}, {Ask.MEMORY_PER_CORE: 20})
        asked = memory | {
            ask: pick(*values)
            for ask, values in OTHERS.items()
            if rng.random() < OFTEN.get(ask, 0.1)
        }
        if kept and rng.random() < 0.1:
            asked[Ask.RESERVATION] = pick(*kept)
        job = {
            "recorded_submit": pick(0, int(rng.integers(40))),
            "processors": pick(1, 1, 2, 3, 4),
            "user": 1 + pick(*range(USERS)),
        }
        tasks = pick(1, 1, 1, 4)
        if tasks > 1:
            asked |= {Ask.ARRAY: len(rows), Ask.THROTTLE: pick(-1, 1, 2)}
        for task in range(tasks):
            times = {"run_time": int(rng.integers(16)), "requested_time": pick(-1, 3, 6, 10)}
            rows.append(job | times)
            asks.append(asked | ({Ask.TASK: task} if tasks > 1 else {}))
    jobs = JobTable()
    jobs.append(len(rows), **{key: [row[key] for row in rows] for key in rows[0]})
    jobs.names = {"user": {number: f"u{number}" for number in range(1, USERS + 1)}}
    jobs.requests = Requests(len(rows))
    for row, asked in enumerate(asks):
        for ask, value in asked.items():
            jobs.requests.set(row, ask, value)
    return jobs


def suspending(rng: np.random.Generator, most: int = 40) -> tuple[Machine, JobTable]:
    """Return a machine on which partitions of higher tiers suspend jobs, and jobs for all three."""
    site = random_machine(rng)
    jobs = random_jobs(rng, site, most)
    assert jobs.requests is not None
    jobs.recorded_submit[:] = rng.integers(0, 60, len(jobs))
    for row in range(len(jobs)):
        jobs.requests.set(row, Ask.PARTITIONS, ("all", "some", "rest")[rng.integers(3)])
    tier = [
        one.model_copy(update={"priority_tier": place, "preempt_mode": None})
        for place, one in enumerate(site.partitions, 1)
    ]
    how = site.scheduling.model_copy(
        update={"preempt_type": "partition", "preempt_mode": Preempt.SUSPEND}
    )
    return site.model_copy(update={"partitions": tuple(tier), "scheduling": how}), jobs
