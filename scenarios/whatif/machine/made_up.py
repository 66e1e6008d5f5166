"""A made-up site: a machine of nodes with GPUs, and nine days of jobs of thirty users.

The machine has twelve nodes of 32 cores, two with four GPUs each, and the partitions ``normal``
(the default), ``long`` (for days, on half of the nodes), ``gpu`` and ``scavenger`` (all nodes, of
a lower tier). Four accounts have different shares. Users come in sessions on working days, and
submit batches of equal jobs; chemists ask for whole nodes, modellers for GPUs, and one account
fills the scavenger partition. Starts are those of a run of the machine without reactions, so that
think times are known. All numbers are made up; they look like those of small sites (unconfirmed).

Run: ``python -m hpcrowd.scenarios.whatif.machine.made_up FOLDER`` writes ``jobs.txt``, as sacct
does, and ``machine.toml``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.machine.files.toml_text import write_machine
from hpcrowd.environment.machine.model import (
    Account,
    Machine,
    NodeType,
    Partition,
    PrioritySettings,
    SchedulingSettings,
)
from hpcrowd.environment.output.whole import whole_folder
from hpcrowd.environment.requests import Ask, Requests
from hpcrowd.environment.schedulers.on_nodes.in_use import MachineInUse
from hpcrowd.environment.schedulers.slurm.timers import drawn_timers
from hpcrowd.environment.simulation import Simulation
from hpcrowd.scenarios.terminal import say

SEED = 0
DAYS = 6  # of submissions, from a Thursday on
FIRST_WEEKDAY = 3  # Thursday
FIRST_DAY = int(datetime(2024, 1, 11, tzinfo=UTC).timestamp())  # Unix time
GB = 1024  # MB

#: Time limits that users ask for, s: the first that is long enough, after a margin.
LIMITS = tuple(HOUR // 2 * factor for factor in (1, 2, 4, 8, 12, 24, 48, 96, 144))
MARGIN = (1.2, 4.0)  # least and most ratio of the limit to the run time
COMES = (0.85, 0.2)  # probability of a session on a working day and at weekends
BEGINS = (10.5 * HOUR, 2 * HOUR)  # begin of a session, s of the day: mean and deviation
PAUSE = (40 * 60, 0.8)  # between batches: median, s, and deviation of the logarithm


class Kind(NamedTuple):
    """A kind of users: how many, and what their jobs are like."""

    account: str
    users: int
    partition: str
    cores: tuple[int, ...]
    memory: int  # MB per core
    gpus: tuple[int, ...]
    run: tuple[float, float]  # median, s, and deviation of the logarithm
    batch: float  # mean number of jobs submitted at once
    batches: float  # mean number of batches of a session


KINDS = (
    Kind("physics", 10, "normal", (1, 2, 4, 8), 2 * GB, (), (1 * HOUR, 1.0), 3.0, 2.0),
    Kind("chemistry", 8, "normal", (16, 32, 64), 3 * GB, (), (2 * HOUR, 0.8), 1.3, 1.7),
    Kind("climate", 3, "long", (32, 64), 2 * GB, (), (8 * HOUR, 0.5), 1.0, 1.0),
    Kind("learning", 7, "gpu", (4, 8), 6 * GB, (1, 1, 2, 4), (2 * HOUR, 0.7), 1.5, 1.5),
    Kind("climate", 2, "scavenger", (8, 16), 2 * GB, (), (6 * HOUR, 0.6), 6.0, 1.0),
)


def made_up_machine() -> Machine:
    """Return the machine of the site."""
    return Machine(
        name="made-up",
        nodes=(
            NodeType(name="n[1-6]", cores=32, memory=128 * GB),
            NodeType(name="g1", cores=32, memory=256 * GB, gpus={"a100": 4}),
        ),
        partitions=(
            Partition(name="normal", nodes=("n[1-6]",), default=True, max_time=DAY,
                      priority_tier=2),
            Partition(name="long", nodes=("n[4-6]",), max_time=3 * DAY, priority_tier=2),
            Partition(name="gpu", nodes=("g1",), max_time=2 * DAY, priority_tier=2),
            Partition(name="scavenger", nodes=("ALL",), max_time=2 * DAY),
        ),
        accounts=(
            Account(account="physics", shares=40),
            Account(account="chemistry", shares=30),
            Account(account="climate", shares=20),
            Account(account="learning", shares=10),
        ),
        priority=PrioritySettings(
            weight_age=1000, weight_fair_share=2000, weight_size=500, half_life=2 * DAY,
            calculation_period=900
        ),
        scheduling=SchedulingSettings(
            bf_interval=600, bf_window=3 * DAY, bf_resolution=600, bf_max_job_test=20,
            sched_interval=300, default_queue_depth=30,
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A job as its user submits it."""

    submit: int
    user: str
    kind: Kind
    cores: int
    gpus: int
    run: int
    limit: int

    @property
    def nodes(self) -> int:
        """Least nodes: as many as the cores fill."""
        return -(-self.cores // 32)


def made_up_jobs(seed: int = SEED) -> list[Asked]:
    """Return the jobs of the site, in the order of their submissions."""
    random = np.random.default_rng(seed)
    found: list[Asked] = []
    number = 0
    for kind in KINDS:
        for _ in range(kind.users):
            number += 1
            for day in range(DAYS):
                if random.random() < COMES[(FIRST_WEEKDAY + day) % 7 > 4]:
                    begin = day * DAY + max(0.0, random.normal(*BEGINS))
                    found += _session(random, f"u{number:02}", kind, begin)
    return sorted(found, key=lambda job: job.submit)


def _session(random: np.random.Generator, user: str, kind: Kind, at: float) -> list[Asked]:
    jobs = []
    for _ in range(1 + random.poisson(kind.batches - 1)):
        cores = int(random.choice(kind.cores))
        gpus = int(random.choice(kind.gpus)) if kind.gpus else 0
        for place in range(random.geometric(1 / kind.batch)):
            run = int(np.clip(random.lognormal(np.log(kind.run[0]), kind.run[1]), 60, 2 * DAY))
            margin = run * random.uniform(*MARGIN)
            most = {"normal": DAY, "long": 3 * DAY}.get(kind.partition, 2 * DAY)
            limit = min(next((one for one in LIMITS if one >= margin), most), most)
            jobs.append(Asked(int(at) + place, user, kind, cores, gpus, min(run, limit), limit))
        at += random.lognormal(np.log(PAUSE[0]), PAUSE[1])
    return jobs


def requests_of(jobs: Sequence[Asked]) -> Requests:
    """Return what the jobs ask of the machine."""
    requests = Requests(len(jobs))
    for ask, numbers in (
        (Ask.NODES, [job.nodes for job in jobs]),
        (Ask.MEMORY_PER_CORE, [job.kind.memory for job in jobs]),
        (Ask.GPUS, [job.gpus or UNKNOWN for job in jobs]),
    ):
        requests[ask][:] = numbers
    requests.set_texts(Ask.PARTITIONS, [job.kind.partition for job in jobs])
    requests.set_texts(Ask.ACCOUNT, [job.kind.account for job in jobs])
    return requests


def starts_of(jobs: Sequence[Asked], machine: Machine) -> Int64s:
    """Return the starts of the jobs on a machine, submitted whatever happens to them.

    The timers of the controller are those of seed 0, as in a replay.
    """
    users = sorted({job.user for job in jobs})
    table = JobTable()
    table.append(
        len(jobs),
        user=[users.index(job.user) for job in jobs],
        processors=[job.cores for job in jobs],
        run_time=[job.run for job in jobs],
        requested_time=[job.limit for job in jobs],
    )
    table.names = {"user": dict(enumerate(users))}
    table.requests = requests_of(jobs)
    timed = drawn_timers(machine, 0).on(machine)
    simulation = Simulation(table, machine.cores, "slurm", parts=[MachineInUse(timed)])
    simulation.submit(_Nobody(), np.arange(len(jobs)), [job.submit for job in jobs])
    simulation.run()
    return table.start


class _Nobody:
    """Submits jobs, and waits for none."""

    def on_finished(self, unit: int, now: int) -> None:
        """Do nothing."""


#: Columns of the log, as sacct calls them.
COLUMNS = (
    "JobID", "User", "Account", "JobName", "Partition", "Submit", "Start", "End", "State",
    "AllocCPUS", "ReqCPUS", "NNodes", "TimelimitRaw", "ReqTRES",
)  # fmt: skip


def accounting(jobs: Sequence[Asked], starts: Int64s) -> str:
    """Return the jobs as sacct writes them, in UTC."""
    lines = ["|".join(COLUMNS)]
    for number, (job, start) in enumerate(zip(jobs, starts.tolist(), strict=True), 1):
        times = (_time(second) for second in (job.submit, start, start + job.run))
        kind = job.kind
        asked = f"cpu={job.cores},mem={job.cores * kind.memory}M,node={job.nodes}"
        asked += f",gres/gpu={job.gpus}" if job.gpus else ""
        fields = (
            number, job.user, kind.account, kind.account, kind.partition, *times, "COMPLETED",
            job.cores, job.cores, job.nodes, job.limit // 60, asked,
        )  # fmt: skip
        lines.append("|".join(map(str, fields)))
    return "\n".join(lines) + "\n"


def _time(second: int) -> str:
    return f"{datetime.fromtimestamp(FIRST_DAY + second, UTC):%Y-%m-%dT%H:%M:%S}"


def made_up_log(seed: int = SEED) -> str:
    """Return the log of the site, as sacct writes it, in UTC."""
    jobs = made_up_jobs(seed)
    return accounting(jobs, starts_of(jobs, made_up_machine()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the site's log and machine into a folder; return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if len(given) != 1 or given[0].startswith("-"):
        say("usage: python -m hpcrowd.scenarios.whatif.machine.made_up FOLDER")
        return 2
    folder = Path(given[0])
    try:
        with whole_folder(folder) as place:
            (place / "jobs.txt").write_text(made_up_log(), encoding="utf-8")
            write_machine(made_up_machine(), place / "machine.toml")
    except HpcrowdError as error:
        say(f"made_up: {error}")
        return 2
    print(f"{folder}: jobs.txt, machine.toml")
    return 0


if __name__ == "__main__":
    sys.exit(main())
