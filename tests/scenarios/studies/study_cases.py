"""How each study is run at a small size, and what a terminal shows of it."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.minh2012.arrivals_measures import Plan as ArrivalsPlan
from hpcrowd.scenarios.studies.minh2012.correlation_measures import Plan as CorrelationPlan
from hpcrowd.scenarios.studies.study import PublishedStudy
from rich.console import Console

Maker = Callable[..., Trace]

KTH_FILE = "KTH-SP2-1996-2.1-cln.swf"
HPC2N_FILE = "HPC2N-2002-2.2-cln.swf"
THUNDER_FILE = "LLNL-Thunder-2007-1.1-cln.swf"
DS_FILE = "SDSC-DS-2004-2.1-cln.swf"
DAS2_FILE = "DAS2-fs1-2003-1.swf"


def shown(study: PublishedStudy) -> str:
    """Return what a terminal of 100 columns shows of a study; nothing in it is cut off."""
    console = Console(file=io.StringIO(), width=100)
    study.show(console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in text
    return text


def job(submit: int, run: int, processors: int, user: int, **more: int) -> dict[str, float]:
    """Return a completed job without a wait."""
    common = {"submit": submit, "run": run, "wait": 0, "requested_time": 3600, "user": user}
    return {**common, "requested_processors": processors, "status": 1, **more}


def log_of_one_job(make_trace: Maker) -> Trace:
    """Return a log with nearly nothing in it."""
    return make_trace(job(0, 5, 4, 1), header="; MaxProcs: 4")


def small_log(make_trace: Maker, seed: int, machine: int = 20, failed: int = 0) -> Trace:
    """Return 250 jobs by 12 users in 30 days, some of them failed; user 12 has one job."""
    random = np.random.default_rng(seed)
    jobs = []
    for row, submit in enumerate(np.sort(random.integers(0, 30 * DAY, 250)).tolist()):
        run, processors = int(random.integers(1, 30_000)), int(random.integers(1, machine))
        wait, status = int(random.integers(0, 5_000)), int(not failed or row % failed > 0)
        user = 12 if row == 0 else int(random.integers(1, 12))
        more = {"allocated_processors": processors, "requested_time": 2 * run, "wait": wait}
        jobs.append(job(submit, run, processors, user, status=status, **more))
    return make_trace(*jobs, header=f"; MaxProcs: {machine}\n; UnixStartTime: 843480031")


def bursty_log(make_trace: Maker, seed: int, jobs: int = 600) -> Trace:
    """Return a log of 20 days in which users submit the same job several times after each other."""
    random = np.random.default_rng(seed)
    made: list[dict[str, float]] = []
    while len(made) < jobs:
        submit = int(random.integers(0, 20 * DAY))
        processors, user = int(random.integers(1, 9)), int(random.integers(1, 6))
        for _ in range(int(random.geometric(0.4))):
            submit += int(random.integers(0, 60))
            run, wait = int(random.integers(0, 3000)), int(random.integers(0, 99))
            made.append(job(submit, run, processors, user, wait=wait))
    made.sort(key=lambda one: one["submit"])
    return make_trace(*made, header="; MaxProcs: 16\n; UnixStartTime: 1041375600")


def grouped_log(make_trace: Maker, seed: int, jobs: int = 400) -> Trace:
    """Return a log of users with habits: each has a size and a run time of its own."""
    random = np.random.default_rng(seed)
    size, log_run = 2 ** random.integers(0, 5, 15), random.uniform(2, 14, 15)
    made = []
    for submit in np.sort(random.integers(0, 20 * DAY, jobs)).tolist():
        user = min(int(random.exponential(4)), 14)
        processors = int(size[user]) if random.random() < 0.8 else int(random.integers(1, 17))
        run = int(2 ** (log_run[user] + random.normal()))
        made.append(job(submit, run, processors, user + 1, allocated_processors=processors))
    return make_trace(*made, header="; MaxProcs: 20")


#: Two nodes of four cores, in two partitions of different tiers.
CONF = """ClusterName=made
SlurmctldHost=made
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=30
PriorityType=priority/multifactor
PriorityWeightAge=1000
NodeName=n[1-2] CPUs=4 RealMemory=4000
PartitionName=main Nodes=n[1-2] Default=YES MaxTime=60 PriorityTier=1
PartitionName=fast Nodes=n1 MaxTime=60 PriorityTier=2
"""

PLAN_HEAD = "id,t,user,account,partition,qos,nodes,ntasks,cpus_per_task,ntasks_per_node,mem,gres," \
    "exclusive,constraint,limit_min,array,throttle,dep,dep_on,begin,cancel,run"  # fmt: skip


def write_recorded_run(folder: Path) -> None:
    """Write a run of 80 submissions, with an array, a chain and jobs over their limit."""
    random = np.random.default_rng(1)
    plan, submitted = [PLAN_HEAD], ["id,jobid,before,after,error,command"]
    schedule = ["plan_id,task,jobid,submit,eligible,start,end,state,nodes,cpus,flags"]
    listed = ["JobID|User|Account|Partition|State|Submit|Eligible|Start|End|AllocCPUS|ReqCPUS|"
              "TimelimitRaw|NodeList|SubmitLine"]  # fmt: skip
    at = 0.0
    for number in range(1, 81):
        at += float(random.exponential(40))
        run, limit = int(random.integers(20, 600)), int(random.integers(2, 10))
        user = f"u{random.integers(1, 4)}"
        cores = int(random.choice([1, 2, 4, 8], p=[0.4, 0.3, 0.2, 0.1]))
        place = "fast" if cores == 1 and number % 5 == 0 else "main"
        array, throttle, runs = ("0-1", "1", f"{run} {run}") if number == 10 else ("", "", f"{run}")
        depends = "afterany,10" if number == 11 else ","
        plan.append(
            f"{number},{at:.1f},{user},lab,{place},,,{cores},,,,,,,{limit},{array},{throttle},"
            f"{depends},,,{runs}"
        )
        submitted.append(f"{number},{number},{at:.1f},{at + 0.8:.1f},,sbatch -J p{number}")
        words = "--array=0-1%1 " if array else "-d afterany:10 " if number == 11 else ""
        for task in ("0", "1") if array else ("",):
            start = int(at) + int(random.integers(0, 900)) + (2000 if number == 11 else 0)
            schedule.append(
                f"{number},{task},{number},{int(at)},{int(at)},{start},{start + run},COMPLETED,n1,"
                f"{cores},SchedMain"
            )
            moments = [
                datetime.fromtimestamp(1000 + one, UTC).strftime("%Y-%m-%dT%H:%M:%S")
                for one in (int(at), int(at), start, start + run)
            ]
            listed.append(
                f"{number}{task and '_'}{task}|{user}|lab|{place}|COMPLETED|{'|'.join(moments)}|"
                f"{cores}|{cores}|{limit}|n1|sbatch {words}-n {cores} x"
            )
    clock = ["plan starts (t=0) at 1970-01-01T00:16:40 UTC = 1000"]
    for name, lines in (
        ("plan.csv", plan), ("submitted.csv", submitted), ("schedule.csv", schedule),
        ("clock.txt", clock), ("slurm.conf", [CONF]), ("sacct-all.txt", listed),
    ):  # fmt: skip
        (folder / name).write_text("\n".join([*lines, ""]))


#: Plans that take a second, and the tasks of the first.
SMALL_ARRIVALS = ArrivalsPlan(
    cluster_replications=3, grid_replications=2, jobs=2_000, loads=(0.5, 0.9), grid_loads=(0.4, 0.8)
)
ARRIVALS_TASKS = 3 * 3 + 2 * 2
SMALL_CORRELATION = CorrelationPlan(
    replications=2, jobs=150, degrees=(-1.0, 0.0, 1.0), loads=(0.7,), locality_loads=(0.7, 1.2)
)


@dataclass(frozen=True)
class Case:
    """A study at a small size."""

    #: The logs that it reads, each a function that makes it, by file.
    logs: Mapping[str, Callable[[Maker], Trace]] = field(default_factory=dict)
    #: Arguments of its function besides the input, and the same as options of its command.
    arguments: Mapping[str, Any] = field(default_factory=dict)
    words: str = ""
    #: Rows of its table, names of its pictures, and steps that it reports in the end.
    rows: int = 0
    pictures: tuple[str, ...] = ()
    steps: int = 0


class Ran(NamedTuple):
    """A study at a small size, and the steps that it reported: label, done, all."""

    study: Any
    steps: list[tuple[str, int, int]]


def _log(make: Callable[..., Trace], *arguments: int) -> Callable[[Maker], Trace]:
    return lambda make_trace: partial(make, make_trace)(*arguments)


CASES = {
    "madon2024": Case(
        {f"{KTH_FILE}.gz": _log(small_log, 1)},
        rows=111,
        pictures=tuple(f"figure{number}_kth" for number in (2, 3, 4, 5, 7, 8, 9, 10)),
        steps=1 + 18,
    ),
    "minh2012-arrivals": Case(
        arguments={"plan": SMALL_ARRIVALS, "workers": 1},
        words="--seeds 3 --grid-seeds 2 --jobs 2000 --loads 0.5,0.9 --grid-loads 0.4,0.8"
        " --workers 1",
        rows=3 * 2 * 3 * 3 + 9 * 2 * 3 * 3 * 2,
        pictures=("figure6_1", "figure6_2", "figure6_3"),
        steps=ARRIVALS_TASKS,
    ),
    "minh2012-correlation": Case(
        {HPC2N_FILE: _log(small_log, 1, 40, 10), f"{DAS2_FILE}.gz": _log(small_log, 2, 8, 10)},
        {"plan": SMALL_CORRELATION, "workers": 1},
        "--seeds 2 --jobs 120 --loads 0.6 --workers 1",
        rows=5 * 3 * 2 + 4 * 2 * 2 * 2 * 2,
        pictures=("figure7_3", "figure7_4", "figure7_5", "figure7_5_set"),
        steps=2 * (3 + 4),
    ),
    "minh2012-features": Case(
        {
            "HPC2N-2002-2.1-cln.swf": _log(bursty_log, 1, 700),
            HPC2N_FILE: _log(bursty_log, 2, 300),
            THUNDER_FILE: _log(bursty_log, 3),
        },
        rows=68,
        pictures=("hpc", "lln"),
        steps=2,
    ),
    "minh2012-models": Case(
        {"HPC2N-2002-2.1-cln.swf": _log(bursty_log, 1, 700), THUNDER_FILE: _log(bursty_log, 3)},
        {"seeds": 2, "workers": 1},
        "--seeds 2",
        rows=990,
        pictures=("figure4_5", "figure4_6", "figure5_1", "figure5_2", "figure5_3"),
        steps=46,
    ),
    "minh2012-predictor": Case(
        {DS_FILE: _log(grouped_log, 5, 150)},
        rows=3 * 3,
        pictures=("tables", "histories", "figure8-2"),
        steps=2,
    ),
    "slurm": Case(
        arguments={"phases": 5},
        words="--phases 2",
        rows=50,
        pictures=("slurm-starts", "slurm-waits"),
        steps=5,
    ),
    "song2005": Case(
        {
            KTH_FILE: _log(grouped_log, 1, 150),
            "LANL-CM5-1994-4.1-cln.swf": _log(grouped_log, 2, 150),
            "LANL-CM5-1994-3.1-cln.swf": _log(grouped_log, 3, 100),
        },
        {"seeds": 1, "workers": 1},
        "--seeds 1",
        rows=104,
        pictures=("kth-2-groups", "kth-4-groups", "kth-6-groups", "lanl-cm5-4-groups"),
        steps=2,
    ),
    "zakay2015": Case(
        {f"{KTH_FILE}.gz": _log(small_log, 1), "CEA-Curie-2011-2.1-cln.swf": _log(small_log, 2)},
        {"seeds": 2},
        "--seeds 2",
        rows=2 * 2 * 6,
        pictures=tuple(f"figure{number}" for number in range(5, 11)),
        steps=16,
    ),
}


def write_input(name: str, make_trace: Maker, folder: Path) -> None:
    """Write what a study reads at a small size."""
    if name == "slurm":
        write_recorded_run(folder)
    for file, make in CASES[name].logs.items():
        write_swf(make(make_trace), folder / file)
