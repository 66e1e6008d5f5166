"""Jobs that others depend on, as the options of a resource manager name them.

A dependency is a text such as ``afterok:17:18_2,afterany:20`` (man page of ``sbatch``,
--dependency): all of its parts must be satisfied, or one of them if a question mark separates them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hpcrowd.environment.jobs import UNKNOWN, Int64s

#: The type that waits for earlier jobs of the same user and name.
SINGLETON = "singleton"

#: The type for which a task of an array waits for the same task of another one.
CORRESPONDING = "aftercorr"

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
        Field 16 of each job, which tells jobs apart that have the same identifier, shape (jobs,).
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

        Parameters
        ----------
        row
            A job of the same cluster.
        wanted
            What it names.
        corresponding
            Of an array only the task with the same number, if both are tasks.
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
