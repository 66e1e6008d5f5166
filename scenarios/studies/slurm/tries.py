"""Tries of jobs, as Slurm's accounting has them; a requeued job has several."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.files import json_of
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.hostlists import expand
from hpcrowd.environment.traces.formats.common.files import LONGEST_DOCUMENT, read_file

#: How a try was started, by the flags of the accounting in JSON and in text.
STARTED = {
    "STARTED_ON_SCHEDULE": "main", "STARTED_ON_BACKFILL": "backfill", "STARTED_ON_SUBMIT": "submit",
    "SchedMain": "main", "SchedBackfill": "backfill", "SchedSubmit": "submit",
}  # fmt: skip

_PART = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


class Key(NamedTuple):
    """A job of a plan."""

    plan: int  #: the submission
    task: int  #: the task of its array; -1 for a job of its own

    def __str__(self) -> str:
        return f"{self.plan}" if self.task == UNKNOWN else f"{self.plan}_{self.task}"


@dataclass(frozen=True)
class Try:
    """One try of a job.

    Attributes
    ----------
    key
        The job.
    trial
        Place among its tries, from 0.
    submit, eligible, start, end
        s since the start of the plan; -1 if it did not happen, or is not known.
    state
        Slurm's word, such as ``COMPLETED``, ``PREEMPTED``.
    cores
        Cores that it had, or asked for.
    nodes
        Names of its nodes.
    how
        ``main``, ``backfill`` or ``submit``: the pass that started it; empty if not known.
    job
        Its number in that run; -1 if not known.
    """

    key: Key
    trial: int
    submit: int
    eligible: int
    start: int
    end: int
    state: str
    cores: int
    nodes: tuple[str, ...]
    how: str
    job: int = UNKNOWN

    @property
    def started(self) -> bool:
        """Whether it started."""
        return self.start != UNKNOWN


def by_job(tries: Iterable[Try]) -> dict[Key, tuple[Try, ...]]:
    """Return the tries of each job, in their order."""
    found: dict[Key, list[Try]] = {}
    for one in tries:
        found.setdefault(one.key, []).append(one)
    return {key: tuple(ones) for key, ones in found.items()}


def counted(tries: Iterable[Try]) -> tuple[Try, ...]:
    """Return tries by job and submission, with their numbers."""
    ordered = sorted(
        tries, key=lambda one: (one.key, one.submit, one.start if one.started else 2**62)
    )
    return tuple(
        replace(one, trial=trial)
        for ones in by_job(ordered).values()
        for trial, one in enumerate(ones)
    )


def tasks_in(text: str) -> tuple[int, ...]:
    """Return the tasks of an array: ``0-3,7,10-20:5``; an end such as ``%2`` is left out.

    Raises
    ------
    ValueError
        If it is something else.
    """
    found: list[int] = []
    for part in text.partition("%")[0].strip("[]").split(",") if text else ():
        match = _PART.fullmatch(part)
        if not match:
            raise ValueError(part)
        first = int(match[1])
        found += range(first, int(match[2] or first) + 1, int(match[3] or 1))
    return tuple(found)


def nodes_in(text: str) -> tuple[str, ...]:
    """Return the names of the nodes of a try."""
    return () if text in ("", "None assigned") else tuple(expand(text))


def read_jobs(path: Path) -> list[Mapping[str, Any]]:
    """Return the jobs in what ``sacct -D --json`` wrote (data parser 0.0.38, of Slurm 22.05).

    Raises
    ------
    TraceError
        If the file is something else.
    """
    try:
        jobs = json_of(read_file(path, LONGEST_DOCUMENT)[0].decode("utf-8", "replace"))["jobs"]
    except (ValueError, KeyError, TypeError):
        raise TraceError(f"{path}: not what sacct --json writes") from None
    if not isinstance(jobs, list) or not all(isinstance(one, dict) for one in jobs):
        raise TraceError(f"{path}: jobs: not a list of objects, as sacct --json writes")
    return jobs


def tries_of(
    jobs: Iterable[Mapping[str, Any]],
    plan_of: Callable[[Mapping[str, Any]], int | None],
    origin: int,
    path: Path,
) -> list[Try]:
    """Return the tries in the accounting.

    Parameters
    ----------
    jobs, path
        As of :func:`read_jobs`.
    plan_of
        Returns the submission of a job; None leaves it out.
    origin
        Unix time of the start of the plan.

    Raises
    ------
    TraceError
        If a job lacks something.
    """

    def since(moment: int) -> int:
        return moment - origin if moment else UNKNOWN

    found = []
    for place, job in enumerate(jobs, 1):
        try:
            plan = plan_of(job)
            if plan is None:
                continue
            time, state = job["time"], job["state"]["current"]
            words = (STARTED[flag] for flag in job["flags"] if flag in STARTED)
            common = Try(
                key=Key(plan, UNKNOWN),
                trial=0,
                submit=since(time["submission"]),
                eligible=since(time["eligible"]),
                start=since(time["start"]),
                end=since(time["end"]),
                state=state if isinstance(state, str) else state[0],
                cores=_cores(job),
                nodes=nodes_in(job["nodes"]),
                how=next(words, ""),
                job=int(job["job_id"]),
            )
            found += [replace(common, key=Key(plan, task)) for task in _tasks(job["array"])]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise TraceError(f"{path}: job {place} of the list: {error!r}") from None
    return found


def _cores(job: Mapping[str, Any]) -> int:
    """Return the cores that a try had; those it asked for if it had none."""
    for one in job.get("tres", {}).get("allocated", ()):
        if one["type"] == "cpu":
            return int(one["count"])
    return int(job["required"]["CPUs"])


def _tasks(array: Mapping[str, Any]) -> list[int]:
    """Return the tasks of a row; tasks that wait together are a bit map, or a list, such as 1-2."""
    text = array.get("task")
    if not text:
        task = array.get("task_id")
        return [UNKNOWN if task is None else int(task)]
    if not text.startswith("0x"):
        return list(tasks_in(text))
    bits = int(text.partition("%")[0], 16)
    return [place for place in range(bits.bit_length()) if bits >> place & 1]
