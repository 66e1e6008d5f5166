"""What a simulation of a recorded plan needs; nothing of it is a start that was recorded.

One row per job, that is, per task of an array, in the order of the submissions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hpcrowd.environment.engine.kernel.nodes.site import LOOK_EVERY
from hpcrowd.environment.holds.rules import Parent, Rules
from hpcrowd.environment.jobs import UNKNOWN, Float64s, Int64s, JobTable
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.requests import Ask, Requests
from hpcrowd.environment.streams import Streams
from hpcrowd.scenarios.studies.slurm.records import Key, Record, Submission

#: Share of the time that sbatch takes until the controller has the job: with it, 2,902 of 3,007
#: submissions of five recorded runs have the second that the controller says, the others one
#: before or after.
ARRIVED = 0.7


@dataclass(frozen=True)
class Workload:
    """A plan as jobs; all arrays have shape (jobs,)."""

    #: User, group (the account), partition as ``queue``, cores, submission, limit as
    #: ``requested_time``, and ``run_time``: s that the job takes if it is not stopped at its limit.
    #: Times are s since the start of the plan.
    jobs: JobTable
    requests: Requests  #: What the jobs ask of the machine.
    rules: Rules  #: Dependencies, throttles of arrays, and earliest starts.
    keys: tuple[Key, ...]  #: The job in the plan.
    submitted: Float64s  #: s since the start of the plan, with fractions.
    #: s since the start of the plan, when the job is taken back if it still waits; -1 for never.
    cancel: Float64s

    @cached_property
    def row_of(self) -> dict[Key, int]:
        """The row of each job."""
        return {key: row for row, key in enumerate(self.keys)}


def workload_of(record: Record, arrived: float = ARRIVED) -> Workload:
    """Return the plan of a recorded run as jobs, submitted when they were in that run.

    ``arrived`` is the share of the time that sbatch took until the controller had a job.
    """
    lines = sorted(record.plan, key=lambda line: (arrival(line, arrived), line.plan))
    keys = [key for line in lines for key in line.keys]
    line_of = [line for line in lines for _ in line.keys]
    row_of = {key: row for row, key in enumerate(keys)}
    submitted = np.array([arrival(line, arrived) for line in line_of])
    return Workload(
        jobs=_jobs(line_of, keys, submitted),
        requests=_requests(line_of, keys),
        rules=_rules(lines, row_of, submitted),
        keys=tuple(keys),
        submitted=submitted,
        cancel=np.array([line.cancel for line in line_of]),
    )


def arrival(line: Submission, arrived: float = ARRIVED) -> float:
    """Return when the controller had a submission, s since the start of the plan."""
    return line.before + arrived * (line.after - line.before)


def _jobs(lines: list[Submission], keys: list[Key], submitted: Float64s) -> JobTable:
    names = {
        field: sorted({getattr(line, source) for line in lines})
        for field, source in (("user", "user"), ("group", "account"), ("queue", "partition"))
    }

    def numbers(field: str, values: list[str]) -> Int64s:
        return np.array([names[field].index(value) for value in values], np.int64)

    jobs = JobTable()
    second = np.floor(submitted).astype(np.int64)  # as in Slurm's records
    jobs.append(
        len(keys),
        user=numbers("user", [line.user for line in lines]),
        group=numbers("group", [line.account for line in lines]),
        queue=numbers("queue", [line.partition for line in lines]),
        processors=[cores_of(line) for line in lines],
        run_time=[
            round(line.run[line.array.index(key.task) if line.array else 0])
            for line, key in zip(lines, keys, strict=True)
        ],
        requested_time=[line.limit for line in lines],
        recorded_submit=second,
    )
    jobs.names = {field: dict(enumerate(known)) for field, known in names.items()}
    return jobs


def cores_of(line: Submission) -> int:
    """Return the cores that a job asks for, without those that whole nodes add."""
    tasks = line.tasks
    if tasks == UNKNOWN:
        tasks = max(line.nodes, 1) * max(line.tasks_per_node, 1)
    return tasks * max(line.cores_per_task, 1)


def _requests(lines: list[Submission], keys: list[Key]) -> Requests:
    requests = Requests(len(keys))
    for row, (line, key) in enumerate(zip(lines, keys, strict=True)):
        asked: dict[Ask, int | str] = {
            Ask.NODES: line.nodes,
            Ask.MAX_NODES: line.nodes,  # sbatch --nodes=N is least and most
            Ask.TASKS: line.tasks,
            Ask.TASKS_PER_NODE: line.tasks_per_node,
            Ask.CORES_PER_TASK: line.cores_per_task,
            Ask.MEMORY_PER_NODE: line.memory,
            Ask.MEMORY_PER_CORE: line.memory_per_core,
            Ask.GPUS: line.all_gpus,
            Ask.GPUS_PER_NODE: line.gpus,
            Ask.EXCLUSIVE: 1 if line.exclusive else UNKNOWN,
            Ask.FEATURES: line.features,
            Ask.PARTITIONS: line.partition,
            Ask.QOS: line.qos,
            Ask.ACCOUNT: line.account,
            Ask.BEGIN: UNKNOWN if line.begin == UNKNOWN else int(line.begin),
        }
        if line.array:
            asked |= {Ask.ARRAY: line.plan, Ask.TASK: key.task}
            asked[Ask.THROTTLE] = line.throttle or UNKNOWN
        for ask, value in asked.items():
            requests.set(row, ask, value)
    return requests


def _rules(lines: list[Submission], row_of: Mapping[Key, int], submitted: Float64s) -> Rules:
    known = {line.plan: line for line in lines}
    delay, failed = np.zeros(len(submitted), np.int64), np.zeros(len(submitted), bool)
    parents: dict[int, tuple[Parent, ...]] = {}
    array: dict[int, int] = {}
    throttle: dict[int, int] = {}
    for line in lines:
        rows = [row_of[key] for key in line.keys]
        failed[rows] = line.fails
        if line.begin != UNKNOWN:
            delay[rows] = max(int(line.begin) - int(submitted[rows[0]]), 0)
        if line.condition is not None and line.parent in known:
            others = [row_of[key] for key in known[line.parent].keys]
            found = tuple(Parent(other, line.condition) for other in others)
            parents |= dict.fromkeys(rows, found)
        if line.throttle:
            array |= dict.fromkeys(rows, rows[0])
            throttle[rows[0]] = line.throttle
    return Rules(
        delay=delay,
        failed=failed,
        parents=parents,
        array=array,
        throttle=throttle,
    )


# ---- phases ----------------------------------------------------------------------------------
# Passes over the whole queue come every 60 s, time limits are checked every 30 s, priorities are
# computed every few minutes, and a submission reaches the controller at some moment while sbatch
# runs. Backfill cycles come every 30 s; the first submission to an idle controller, which looks for
# work every second, sets their rhythm, within that second. None of this is in a plan or a
# configuration, two runs of one plan differ in it, and a second more or less
# decides who gets a node that has just become free. A simulated run with phases drawn at random is
# one draw of what Slurm could have done; the study looks at several.

#: Half the width of the range around :data:`ARRIVED` in which a submission arrives.
AROUND = 1 - ARRIVED


class Phases(NamedTuple):
    """The phases of a run."""

    backfill: float  #: s before the first look of the backfill scheduler
    limit_check: int  #: second of the first check of time limits
    calculation: int  #: s until priorities are first computed anew; 0 for a whole period
    arrived: float  #: share of the time that sbatch takes until the controller has a job
    full_pass: int  #: s from the first submission to the first pass over the whole queue

    def on(self, machine: Machine) -> Machine:
        """Return a machine whose controller has these phases."""
        scheduling = machine.scheduling.model_copy(
            update={
                "backfill_phase": self.backfill,
                "limit_check_phase": self.limit_check,
                "calculation_phase": self.calculation,
                "full_pass_phase": self.full_pass,
            }
        )
        return machine.model_copy(update={"scheduling": scheduling})


def drawn_phases(machine: Machine, number: int, seed: int = 0) -> Phases:
    """Return the phases of a draw: each is anywhere in its period, all equally likely.

    The settings of the machine are the periods. A draw, by its number from 0, is the same however
    many there are.
    """
    random = Streams(seed).generator("slurm", "phases", number)
    scheduling, priority = machine.scheduling, machine.priority
    return Phases(
        backfill=round(random.uniform(0, LOOK_EVERY), 3),
        limit_check=int(random.integers(scheduling.time_limit_period)),
        calculation=int(random.integers(priority.calculation_period)),
        arrived=round(random.uniform(ARRIVED - AROUND, ARRIVED + AROUND), 3),
        full_pass=int(random.integers(max(scheduling.sched_interval, 1))),
    )
