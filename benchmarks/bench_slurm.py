"""A month of a large machine of nodes under Slurm's controller: time of the whole, and memory.

The machine has 1,000 nodes of 128 cores, 512 GB and four GPUs, and five partitions; 300 users of 30
accounts submit half a million jobs in batches, in working hours. All numbers are made up. It is
measured at two loads: with work for 60 % of the cores, few jobs wait; with more at the peaks of
the day than there are cores, backfilling plans hundreds of jobs every half minute.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from time import process_time

import numpy as np
import pytest

from hpcrowd import JobTable, Simulation
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.model import (
    Account,
    Limits,
    Machine,
    NodeType,
    Partition,
    PrioritySettings,
    Qos,
    SchedulingSettings,
)
from hpcrowd.environment.requests import Ask, Requests
from tests.support.simulations import simulation_of

NODES, CORES = 1000, 128
JOBS, DAYS = 500_000, 30
USERS, ACCOUNTS = 300, 30

#: Partitions with their longest time, s.
LONGEST = {"normal": 2 * DAY, "short": 4 * HOUR, "long": 7 * DAY, "gpu": 2 * DAY, "debug": 1800}

#: Jobs, days, part of the cores that is asked for, and deviation of submissions from 14:00, h.
LOADS = {"a month, few wait": (JOBS, DAYS, 0.6, 6.0), "two days, long queue": (30_000, 2, 0.7, 4.0)}

Figure = Callable[[str, float, str, str], None]


class Nobody:
    """Submits, and waits for nothing."""

    def on_finished(self, unit: int, now: int) -> None:
        """Do nothing."""


def site() -> Machine:
    """Return the machine."""
    tiers = {"gpu": 20, "debug": 30}
    nodes = {"long": f"n[1-{NODES // 2}]", "debug": f"n[{NODES - 20}-{NODES}]"}
    return Machine(
        nodes=(NodeType(name=f"n[1-{NODES}]", cores=CORES, memory=512 * 1024, gpus={"a100": 4}),),
        partitions=tuple(
            Partition(
                name=name,
                default=name == "normal",
                nodes=(nodes.get(name, "ALL"),),
                max_time=longest,
                priority_tier=tiers.get(name, 10),
            )
            for name, longest in LONGEST.items()
        ),
        accounts=(
            *(Account(account=f"a{one}", shares=1 + one % 5) for one in range(ACCOUNTS)),
            *(Account(account=f"a{one % ACCOUNTS}", user=str(one)) for one in range(USERS)),
        ),
        qos=(Qos(name="normal", limits=Limits(max_jobs=2000)),),
        priority=PrioritySettings(
            weight_age=1000, weight_fair_share=10_000, weight_size=100, weight_partition=1000
        ),
        scheduling=SchedulingSettings(enforce_limits=True),
    )


def submissions(count: int, days: int, load: float, deviation: float) -> JobTable:
    """Return jobs in batches of equal requests, ten on average."""
    rng = np.random.default_rng(0)
    batch = np.repeat(np.arange(count), rng.geometric(1 / 10, count))[:count]
    batches = int(batch[-1]) + 1
    weight = rng.lognormal(0, 1, USERS)
    user = rng.choice(USERS, batches, p=weight / weight.sum())
    begin = rng.integers(0, days, batches) * DAY + rng.normal(14, deviation, batches) % 24 * HOUR
    kind = rng.choice(5, batches, p=[0.5, 0.2, 0.05, 0.2, 0.05])
    sizes = [0.22, 0.08, 0.12, 0.12, 0.12, 0.1, 0.08, 0.1, 0.03, 0.02, 0.01]
    cores = 2 ** rng.choice(11, batches, p=sizes)
    gpus = np.where(kind == 3, rng.choice([1, 2, 4, 8], batches, p=[0.6, 0.2, 0.15, 0.05]), 0)
    cores = np.where(kind == 3, gpus * 16, np.where(kind == 4, np.minimum(cores, 256), cores))
    longest = np.array(list(LONGEST.values()))[kind]
    usual = np.minimum(rng.lognormal(8.9, 1.5, batches), 0.95 * longest)
    margin = rng.choice([1.2, 2, 4], batches)
    limit = np.minimum(np.ceil(usual * margin / 1800) * 1800, longest)
    order = np.argsort(begin, kind="stable")
    place = order[np.searchsorted(np.cumsum(np.bincount(batch)[order]), np.arange(count), "right")]
    run = np.minimum(usual[place] * rng.lognormal(0, 0.3, count), limit[place])
    run *= load * NODES * CORES * days * DAY / (run * cores[place]).sum()
    at = np.sort(np.minimum(begin[place] + rng.exponential(30, count), days * DAY))
    jobs = JobTable()
    jobs.append(
        count,
        user=user[place],
        group=user[place] % ACCOUNTS,
        processors=cores[place],
        run_time=np.maximum(np.minimum(run, limit[place]), 1).astype(np.int64),
        requested_time=limit[place].astype(np.int64),
        recorded_submit=at.astype(np.int64),
    )
    asked = Requests(count)
    names = list(LONGEST)
    asked.set_texts(Ask.PARTITIONS, [names[one] for one in kind[place].tolist()])
    asked.set_texts(Ask.ACCOUNT, [f"a{one % ACCOUNTS}" for one in user[place].tolist()])
    asked[Ask.GPUS][:] = np.where(gpus > 0, gpus, UNKNOWN)[place]
    memory = rng.choice([1000, 2000, 3500, 8000], batches, p=[0.3, 0.4, 0.25, 0.05])
    asked[Ask.MEMORY_PER_CORE][:] = memory[place]
    jobs.requests = asked
    return jobs


def simulate(jobs: JobTable) -> tuple[Simulation, float]:
    """Run the jobs; return the simulation, and the processor time of all of it, s."""
    begin = process_time()
    model = simulation_of(jobs, NODES * CORES, "slurm", machine=site(), overrun="kill")
    model.submit(Nobody(), np.arange(len(jobs)), jobs.recorded_submit)
    model.run()
    return model, process_time() - begin


@pytest.mark.parametrize("what", LOADS)
def bench_machine(what: str, figure: Figure) -> None:
    """Half a million jobs in a minute and 2 GB where few wait; and days with long queues."""
    simulate(submissions(100, 1, 0.01, 6.0))  # loads all modules
    jobs = submissions(*LOADS[what])
    _, taken = simulate(jobs)
    days, count = LOADS[what][1], len(jobs)
    waits = jobs.start - jobs.submit
    first, last = (np.minimum(column, days * DAY) for column in (jobs.start, jobs.end))
    used = (jobs.processors * (last - first)).sum() / (NODES * CORES * days * DAY)
    month = what.startswith("a month")
    figure(f"slurm, {what}, {count:,} jobs", taken, "s", "<= 60" if month else "")
    figure(f"slurm, {what}, mean wait", waits.mean(), "s", "")
    figure(f"slurm, {what}, cores in use", used, "part", "")
    if month:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        figure(f"slurm, {what}, peak memory", peak, "GB", "<= 2")
