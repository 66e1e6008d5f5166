"""What a simulation of a recorded plan needs; nothing of it is a start that was recorded.

One row per job, that is, per task of an array, in the order of the submissions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpcrowd.environment.holds.rules import Parent, Rules
from hpcrowd.environment.jobs import UNKNOWN, Float64s, Int64s, JobTable
from hpcrowd.environment.machine.requests import Ask, Requests
from hpcrowd.scenarios.studies.slurm.records import Record, Submission
from hpcrowd.scenarios.studies.slurm.tries import Key

#: Share of the time that sbatch takes until the controller has the job: with it, 2,902 of 3,007
#: submissions of five recorded runs have the second that the controller says, the others one
#: before or after.
ARRIVED = 0.7


@dataclass(frozen=True)
class Workload:
    """A plan as jobs; all arrays have shape (jobs,).

    Attributes
    ----------
    jobs
        User, group (the account), partition as ``queue``, cores, submission, limit as
        ``requested_time``, and ``run_time``: s that the job takes if it is not stopped at its
        limit. Times are s since the start of the plan.
    requests
        What the jobs ask of the machine.
    rules
        Dependencies, throttles of arrays, and earliest starts.
    keys
        The job in the plan.
    submitted
        s since the start of the plan, with fractions.
    cancel
        s since the start of the plan, when the job is taken back if it still waits; -1 for never.
    """

    jobs: JobTable
    requests: Requests
    rules: Rules
    keys: tuple[Key, ...]
    submitted: Float64s
    cancel: Float64s

    @cached_property
    def row_of(self) -> dict[Key, int]:
        """The row of each job."""
        return {key: row for row, key in enumerate(self.keys)}


def workload_of(record: Record, arrived: float = ARRIVED) -> Workload:
    """Return the plan of a recorded run as jobs, submitted when they were in that run.

    Parameters
    ----------
    record
        The recorded run.
    arrived
        Share of the time that sbatch took until the controller had a job.
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
