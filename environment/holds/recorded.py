"""What held jobs back in a log: dependencies, earliest starts and throttles of its own columns.

And which jobs were run again, after runs of which lengths.

A dependency is a text such as ``afterok:17:18_2,afterany:20`` (man page of ``sbatch``,
--dependency): all of its parts must be satisfied, or one of them if a question mark separates them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.holds.rules import Condition, Parent, Rules, account_of
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.requests import Ask, Requests
from hpcrowd.environment.traces.formats.common.site_columns import EarlierRun, of_jobs, site_numbers
from hpcrowd.environment.traces.trace import Trace, gave_up

#: The type that waits for earlier jobs of the same user and name.
SINGLETON = "singleton"

#: The type for which a task of an array waits for the same task of another one.
CORRESPONDING = "aftercorr"

#: s after a submission until Slurm notes that a job is eligible.
NOTED = 1

#: The state in which a preempted run ends.
PREEMPTED = "PREEMPTED"

#: The type that waits for starts.
STARTED = "after"

_ID = re.compile(r"(\d{1,18})(?:_(\d{1,18})|\[(\d{1,18})\])?(?:\+\d{1,18})?(?:[.@]\S*)?$")


class JobId(NamedTuple):
    """An identifier: of a job, of an array, or of one of its tasks; -1 for none."""

    number: int
    task: int


def job_id(text: str) -> JobId:
    """Return the parts of ``17``, ``17_2``, ``17+1`` or ``17[2].server``; -1 for none."""
    found = _ID.match(text)
    if found is None:
        return JobId(UNKNOWN, UNKNOWN)
    task = found[2] or found[3]
    return JobId(int(found[1]), UNKNOWN if task is None else int(task))


class Named(NamedTuple):
    """A part of a dependency: its type, such as ``afterok``, and what it names."""

    kind: str
    ids: tuple[JobId, ...]


def parts_of(dependency: str) -> list[Named]:
    """Return the parts of a dependency."""
    found = []
    for part in filter(None, re.split("[,?]", dependency)):
        kind, *ids = part.split(":")
        found.append(Named(kind, tuple(map(job_id, ids))))
    return found


class JobIds:
    """Finds jobs by identifier.

    Parameters
    ----------
    ids
        The identifier of each job, shape (jobs,).
    clusters
        The cluster of each job, shape (jobs,); None if that is not known.
    partition
        Field 16 of each job, which differs between jobs of the same identifier, shape (jobs,).
    """

    def __init__(
        self, ids: Sequence[str], clusters: Sequence[str] | None, partition: Int64s
    ) -> None:
        self.of = list(map(job_id, ids))
        if clusters is None:
            same = len(set(ids)) < len(ids)
            clusters = list(map(str, partition.tolist())) if same else [""] * len(ids)
        self._clusters = clusters
        self._tasks: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        for row, (cluster, one) in enumerate(zip(self._clusters, self.of, strict=True)):
            if one.number != UNKNOWN:
                self._tasks[cluster, one.number][one.task] = row

    def rows(self, row: int, wanted: JobId, *, corresponding: bool = False) -> list[int]:
        """Return the rows of a job, or of the tasks of an array, that a job in ``row`` names.

        Both are of the same cluster. If ``corresponding``, of an array only the task with the same
        number counts, if both are tasks.
        """
        tasks = self._tasks.get((self._clusters[row], wanted.number), {})
        task, mine = wanted.task, self.of[row].task
        if corresponding and task == UNKNOWN and mine in tasks:
            task = mine
        if task != UNKNOWN:
            tasks = {task: tasks[task]} if task in tasks else {}
        return sorted(tasks.values())


def preceding_by_dependency(
    dependency: Sequence[str], ids: JobIds, number: Int64s, submit: Int64s, end: Int64s
) -> tuple[Int64s, Int64s]:
    """Return the fields 17 and 18 of jobs that depend on others, -1 elsewhere.

    Parameters
    ----------
    dependency
        Texts, shape (jobs,); empty for none.
    ids
        Finds the jobs that they name.
    number, submit, end
        Of each job, s; -1 if unknown, shape (jobs,).

    Returns
    -------
    preceding, think
        The number of the job that ended last among those that were submitted before, and the time
        from its end to the submission, s, which is 0 for a job that was submitted before that.
    """
    preceding, think = np.full(len(number), UNKNOWN), np.full(len(number), UNKNOWN)
    for row in [row for row, text in enumerate(dependency) if text]:
        others = [
            other
            for part in parts_of(dependency[row])
            for one in part.ids
            for other in ids.rows(row, one, corresponding=part.kind == CORRESPONDING)
            if part.kind != STARTED and end[other] >= 0 and 0 <= submit[other] <= submit[row]
        ]
        last = max((other for other in others if other != row), key=end.__getitem__, default=None)
        if last is not None:
            preceding[row] = number[last]
            think[row] = max(0, int(submit[row] - end[last]))
    return preceding, think


#: Columns that say what held jobs back, see ``SITE_COLUMNS``.
COLUMNS = ("dependency", "throttle", "begin", "eligible")

#: Types of dependencies on jobs that are over (man page of ``sbatch``, --dependency).
CONDITIONS = {
    "afterany": Condition.ANY,
    "afterburstbuffer": Condition.ANY,
    "afterok": Condition.OK,
    CORRESPONDING: Condition.OK,
    "afternotok": Condition.NOT_OK,
}

#: Why dependencies could not be taken as they are.
NOT_THERE = "depends on a job that is not replayed: eligible as long after its submission as then"
OTHER = "dependency of a type that is not known: eligible as long after its submission as then"
LATER = "depends on a job that had not ended when it started: that dependency is left out"
ANYHOW = "ran though a job that it depends on had not ended as it asked: its end is enough"


def recorded_rules(
    trace: Trace,
    jobs: JobTable,
    source_row: Int64s,
    *,
    held: bool = True,
    run_time: Callable[[Int64s], Int64s] = lambda recorded: recorded,
) -> Rules | None:
    """Return what held the jobs of a log back; None if nothing did, or nothing is known of it.

    A job that depends on others, or is a task of an array with a throttle, is held for these
    reasons; any other becomes eligible as long after its submission as it did in the log, which
    covers earliest starts, and holds by users and operators. Raises TraceError if earlier runs
    cannot be read.

    Parameters
    ----------
    trace
        The log, with its own columns in ``extra``.
    jobs
        Its jobs to replay.
    source_row
        Row of each job in the log, -1 for none, shape (jobs,).
    held
        False leaves out what held them back, but not that jobs were run again.
    run_time
        Returns recorded run times at the speed of the nodes, s.
    """
    rules = Rules.none(len(jobs))
    if held and any(name in trace.extra for name in COLUMNS):
        rules = _Reader(trace, jobs, source_row).rules()
    rules.runs = {
        row: tuple(_as_long(run, run_time) for run in runs)
        for row, runs in of_jobs(trace, source_row).items()
    }
    return rules if rules else None


def without_controlled(rules: Rules, requests: Requests | None) -> Rules | None:
    """Return rules without what Slurm's controller does itself; None if nothing is left.

    That is to keep throttles and earliest starts that jobs ask for, and to run jobs again that it
    preempted; runs that ended otherwise, such as with their node, are still run again as recorded.
    """
    runs = {
        row: kept
        for row, found in rules.runs.items()
        if (kept := tuple(run for run in found if run.state != PREEMPTED))
    }
    found = replace(rules, runs=runs)
    if requests is not None:
        asked = (requests[Ask.BEGIN] != UNKNOWN) | (rules.delay <= NOTED)
        array = {row: of for row, of in rules.array.items() if requests[Ask.THROTTLE][row] < 0}
        found = replace(found, delay=np.where(asked, 0, rules.delay), array=array)
    return found if found else None


def as_recorded(trace: Trace, jobs: JobTable, source_row: Int64s) -> dict[str, Any]:
    """Put the recorded eligible times into a table whose jobs start as recorded.

    Returns
    -------
    account
        As of ``Holds.account``; empty if nothing is known.
    """
    if "eligible" not in trace.extra:
        return {}
    known = (source_row != UNKNOWN) & (jobs.submit != UNKNOWN)
    later = np.where(known, site_numbers(trace.extra, "eligible", len(trace))[source_row], 0)
    ended = jobs.wait_ended
    eligible = jobs.submit + later
    eligible = np.where(ended != UNKNOWN, np.minimum(eligible, ended), eligible)
    jobs.enqueued[known] = eligible[known]
    held = (eligible - jobs.submit)[known & (later > 0)]
    return account_of(held) if len(held) else {}


def _as_long(run: EarlierRun, run_time: Callable[[Int64s], Int64s]) -> EarlierRun:
    """Return a run as long as it is at the speed of the nodes; what follows comes as long after."""
    end = run.start + int(run_time(np.array([run.end - run.start]))[0])
    return run._replace(end=end, again=end + run.again - run.end)


class _Reader:
    """Reads the rules of a log."""

    def __init__(self, trace: Trace, jobs: JobTable, source_row: Int64s) -> None:
        self.jobs, self.notes = jobs, Counter[str]()
        self.known = source_row != UNKNOWN
        self.source, self.count = source_row, len(jobs)
        self.begin, self.eligible, self.throttle = (
            np.where(self.known, site_numbers(trace.extra, name, len(trace))[source_row], 0)
            for name in ("begin", "eligible", "throttle")
        )
        self.failed = self.known & _failed(trace)[source_row]
        self.never_ran = self.known & gave_up(trace)[source_row]
        self.dependency = self._texts(trace, "dependency")
        clusters = self._texts(trace, "cluster_name") if "cluster_name" in trace.extra else None
        partition = trace["partition"][source_row].astype(np.int64)
        self.ids = JobIds(self._texts(trace, "job_id"), clusters, partition)

    def _texts(self, trace: Trace, name: str) -> list[str]:
        if name not in trace.extra:
            return [""] * self.count
        texts: list[str] = np.where(self.known, trace.extra[name][self.source], "").tolist()
        return texts

    def rules(self) -> Rules:
        """Return the rules."""
        delay = np.maximum(self.eligible, self.begin)
        parents: dict[int, tuple[Parent, ...]] = {}
        either, singletons = set(), set()
        for row in [row for row, text in enumerate(self.dependency) if text]:
            found = self._parents(row)
            alone = any(part.kind == SINGLETON for part in parts_of(self.dependency[row]))
            if found:
                parents[row] = tuple(found)
                if "?" in self.dependency[row]:
                    either.add(row)
            if alone:
                singletons.add(row)
            if found or alone:
                delay[row] = self.begin[row]
        array, throttle = self._arrays()
        delay[list(array)] = self.begin[list(array)]
        return Rules(
            delay=delay,
            failed=self.failed,
            parents=parents,
            either=frozenset(either),
            array=array,
            throttle=throttle,
            name_of=self._names(singletons),
            singletons=frozenset(singletons),
            notes=self.notes,
        )

    def _arrays(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return the array of each task with a throttle, and the throttle of each array."""
        array, throttle = {}, {}
        for row in np.flatnonzero(self.throttle).tolist():
            one = self.ids.of[row]
            if one.task != UNKNOWN:
                # The array is named by the first of its tasks.
                which = self.ids.rows(row, one._replace(task=UNKNOWN))[0]
                array[row], throttle[which] = which, int(self.throttle[row])
        return array, throttle

    def _names(self, singletons: set[int]) -> dict[int, int]:
        """Return the number of the user and name of all jobs that share those of a singleton."""
        if not singletons:
            return {}
        pairs = np.stack((self.jobs.user, self.jobs.executable), axis=1)
        _, number = np.unique(pairs, axis=0, return_inverse=True)
        number = number.ravel()
        shared = np.isin(number, number[list(singletons)])
        rows = np.flatnonzero(shared)
        return dict(zip(rows.tolist(), number[rows].tolist(), strict=True))

    def _parents(self, row: int) -> list[Parent]:
        """Return the jobs that a job depends on."""
        found: dict[int, Parent] = {}
        for kind, ids in parts_of(self.dependency[row]):
            if kind == SINGLETON:
                continue
            if kind not in CONDITIONS:
                self.notes[OTHER] += 1
                continue
            for one in ids:
                others = self.ids.rows(row, one, corresponding=kind == CORRESPONDING)
                if not others:
                    self.notes[NOT_THERE] += 1
                found |= self._checked(row, others, CONDITIONS[kind])
        return [found[other] for other in sorted(found)]

    def _checked(self, row: int, others: list[int], condition: Condition) -> dict[int, Parent]:
        """Return the jobs that a job waited for indeed, as the log has it.

        A job that never ran may have waited for all of them.
        """
        jobs, found = self.jobs, {}
        if self.never_ran[row]:
            return {other: Parent(other, condition) for other in others if other != row}
        started = jobs.recorded_start[row]
        for other in others:
            if other == row or (started != UNKNOWN and jobs.recorded_end[other] > started):
                self.notes[LATER] += 1
                continue
            asked = condition
            if asked != Condition.ANY and self.failed[other] == (asked == Condition.OK):
                self.notes[ANYHOW] += 1
                asked = Condition.ANY
            found[other] = Parent(other, asked)
        return found


def _failed(trace: Trace) -> NDArray[np.bool_]:
    """Return which jobs did not end with success, shape (jobs,)."""
    if "final_state" in trace.extra:
        states = trace.extra["final_state"]
        found: NDArray[np.bool_] = (states != "COMPLETED") & (states != "")
        return found
    return np.isin(trace["status"], (0, 5))
