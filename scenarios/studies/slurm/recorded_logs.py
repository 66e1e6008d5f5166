"""Accounting of a real Slurm as a recorded run: the record itself is the plan.

A folder with

    sacct.json, or dumps/json-D.txt    every try of every job, as ``sacct -D --json`` writes it
    dumps/lines.txt    the submit lines: dependencies, throttles, whole nodes
    truth-a.csv        jobs to compare: when sbatch was called and answered, and how long they sleep
    slurm.conf         the machine, or slurm.conf.in if only the host's name is left open in it
    dumps/qos.txt, dumps/assoc.txt, dumps/sshare.txt    limits, shares, and the tree of accounts

each of them plain or gzipped; only the accounting and the machine may not be missing. What a job
asks for is what it requested, its run time is what it took. A job that became eligible later for a
reason that is not known is not eligible before that either.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.holds.rules import Condition
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.files.reading import read_machine
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.traces.formats.slurm.submit_lines import Asked, asked_in
from hpcrowd.scenarios.studies.slurm.records import (
    Key,
    Record,
    Rows,
    Submission,
    Try,
    by_job,
    counted,
    file_of,
    load,
    read_jobs,
    text_of,
    tries_of,
)

#: Files with the accounting.
FILES = ("sacct.json", "dumps/json-D.txt")

#: Files that describe the machine; of the first two only one is read.
MACHINE_FILES = ("slurm.conf", "slurm.conf.in", "dumps/qos.txt", "dumps/assoc.txt")

_DEPENDENCY = re.compile(r"(after\w+):(\d+)")


class Called(NamedTuple):
    """When sbatch was called and answered, Unix time, and how long the job sleeps, s."""

    before: float
    after: float
    sleep: float


def load_any(folder: str | os.PathLike[str]) -> Record:
    """Return a recorded run of a plan, or an accounting, whichever a folder holds.

    Raises TraceError if it holds neither, or something is missing or malformed.
    """
    place = Path(folder)
    if place.is_dir() and file_of(place, "plan.csv") is None:
        found = [path for name in FILES if (path := file_of(place, name)) is not None]
        if found:
            return load_log(place, found[0])
        names = " or ".join(f"{name}[.gz]" for name in FILES)
        raise TraceError(
            f"{place}: not a recorded run; it has neither plan.csv, nor an accounting in {names}"
        )
    return load(place)


def load_log(folder: Path, path: Path) -> Record:
    """Return the accounting in a file as a recorded run; TraceError if it is malformed."""
    jobs = read_jobs(path)
    called, lines = _called(folder), _submit_lines(folder)
    try:
        origin = min(int(job["time"]["submission"]) for job in jobs)
        plans = [int(job["array"]["job_id"] or job["job_id"]) for job in jobs]
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{path}: not jobs as sacct --json writes them: {error!r}") from None
    tries = counted(
        tries_of(jobs, lambda job: job["array"]["job_id"] or job["job_id"], origin, path)
    )
    ran = by_job(tries)
    first: dict[int, Mapping[str, Any]] = {}
    for plan, job in zip(plans, jobs, strict=True):
        if plan not in first or job["time"]["submission"] < first[plan]["time"]["submission"]:
            first[plan] = job
    keys: dict[int, list[Key]] = {}
    for key in ran:
        keys.setdefault(key.plan, []).append(key)
    lines_of_plan = tuple(
        _timed(
            _submission(job, [ran[key] for key in keys[number]], lines.get(number, Asked())),
            called.get(number),
            origin,
        )
        for number, job in sorted(first.items())
    )
    compared = frozenset(key for number in called for key in keys.get(number, ()))
    numbers = {number: number for number in first}
    return Record(folder, lines_of_plan, tries, origin, UNKNOWN, 1.0, numbers, compared)


def machine_of_log(folder: Path) -> Machine:
    """Return the machine of an accounting.

    ``sacctmgr show assoc`` names no parent of an account unless asked; ``sshare`` shows the tree.
    Raises MachineError if nothing describes it, or something is wrong.
    """
    conf, template, *more = (file_of(folder, name) for name in MACHINE_FILES)
    machine = read_machine([path for path in (conf or template, *more) if path is not None])
    parents = _parents(folder)
    accounts = tuple(
        one if one.user else one.model_copy(update={"parent": parents.get(one.account, one.parent)})
        for one in machine.accounts
    )
    return machine.changed(accounts=accounts)


def _parents(folder: Path) -> dict[str, str]:
    """Return the account above each account, by the indentation of ``sshare -a``."""
    if file_of(folder, "dumps/sshare.txt") is None:
        return {}
    found: dict[str, str] = {}
    above: list[str] = []
    for line in text_of(folder, "dumps/sshare.txt").splitlines()[2:]:
        name, depth = line.split(maxsplit=1)[0], len(line) - len(line.lstrip())
        if above[depth - 1 : depth] not in ([], [name]):  # users are below an account of their name
            found.setdefault(name, above[depth - 1])
        above[depth:] = [name]
    return found


def _submission(job: Mapping[str, Any], ran: Sequence[Sequence[Try]], asked: Asked) -> Submission:
    """Return what was submitted, from its first row, the tries of its tasks and its submit line."""
    counts = {
        one["type"] + (f"/{one['name']}" if one["name"] else ""): int(one["count"] or 0)
        for one in job["tres"]["requested"]
    }
    cores, nodes = max(counts.get("cpu", 1), 1), counts.get("node", 1)
    tries = [one for ones in ran for one in ones]
    last, firsts = [ones[-1] for ones in ran], [ones[0] for ones in ran]
    limit = 60 * int(job["time"]["limit"] or 0)
    depends = _DEPENDENCY.fullmatch(asked.dependency)
    known = depends and depends[1] in set(Condition)
    eligible = max(min(one.eligible for one in firsts), UNKNOWN)
    later = eligible > firsts[0].submit + 1 and not known and not asked.throttle
    waiting = [one.end for one in tries if not one.started and one.state == "CANCELLED"]
    return Submission(
        plan=firsts[0].key.plan,
        planned=firsts[0].submit,
        before=firsts[0].submit,
        after=firsts[0].submit,
        user=job["user"],
        account=job["account"],
        partition=job["partition"],
        qos=job["qos"],
        nodes=nodes if nodes > 1 else UNKNOWN,
        tasks=cores,
        tasks_per_node=UNKNOWN,
        cores_per_task=UNKNOWN,
        memory=UNKNOWN,
        gpus=UNKNOWN,
        exclusive=asked.exclusive,
        features=job.get("constraints") or "",
        limit=limit or UNKNOWN,
        array=tuple(one.key.task for one in firsts if one.key.task != UNKNOWN),
        throttle=asked.throttle,
        condition=Condition(depends[1]) if depends and known else None,
        parent=int(depends[2]) if depends and known else UNKNOWN,
        begin=eligible if later else UNKNOWN,
        cancel=max(waiting, default=UNKNOWN),
        run=tuple(_run_time(one, limit) for one in last),
        memory_per_core=counts.get("mem", UNKNOWN * cores) // cores,
        all_gpus=counts.get("gres/gpu", UNKNOWN),
        fails=any(one.state == "FAILED" for one in last),
    )


def _run_time(one: Try, limit: int) -> float:
    """Return how long a job runs; one that was stopped at its limit would have gone on."""
    if not one.started or one.end == UNKNOWN:
        return 0.0
    return one.end - one.start + (limit if one.state == "TIMEOUT" else 0)


def _timed(line: Submission, called: Called | None, origin: int) -> Submission:
    """Return a submission with what is known of its call of sbatch."""
    if called is None:
        return line
    before, after = called.before - origin, called.after - origin
    return replace(line, before=before, after=after, run=(called.sleep,) * len(line.run))


def _called(folder: Path) -> dict[int, Called]:
    if file_of(folder, "truth-a.csv") is None:
        return {}
    return {
        row.whole("jobid"): Called(row.number("before"), row.number("after"), row.number("sleep"))
        for row in Rows(folder, "truth-a.csv", ("jobid", "before", "after", "sleep"))
    }


def _submit_lines(folder: Path) -> dict[int, Asked]:
    """Return what the submit lines say, by job; they are in the last column, as they are."""
    name = "dumps/lines.txt"
    if file_of(folder, name) is None:
        return {}
    heading, *lines = text_of(folder, name).split("\n")
    columns = heading.split("|")
    if columns[0] != "JobID" or columns[-1] != "SubmitLine":
        raise TraceError(f"{folder / name}: the first column must be JobID, the last SubmitLine")
    found: dict[int, Asked] = {}
    for line in lines:
        cells = line.split("|", len(columns) - 1)
        number = cells[0].partition("_")[0]
        if len(cells) == len(columns) and number.isdecimal():
            found.setdefault(int(number), asked_in(cells[-1]))
    return found
