"""Tables of jobs of several sites in one, for a run of all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable

#: What has a number of its own at each site; the others of the table get higher ones.
NAMED = (Column.USER, Column.GROUP, Column.EXECUTABLE)


@dataclass(frozen=True)
class Joined:
    """Several tables in one.

    Attributes
    ----------
    jobs
        All jobs by recorded submission, numbered from 1; at one second those of the first table
        come first. Users, groups and executables of later tables have higher numbers.
    table, row
        Where each job comes from, shape (jobs,).
    first_user
        What was added to the numbers of the users of each table, shape (tables,).
    """

    jobs: JobTable
    table: Int64s
    row: Int64s
    first_user: Int64s


def join(tables: Sequence[JobTable]) -> Joined:
    """Return the tables as one; simulated columns are left out."""
    sizes = [len(table) for table in tables]
    matrix = np.concatenate(
        [table.matrix[:, :size] for table, size in zip(tables, sizes, strict=True)], axis=1
    )
    source = np.repeat(np.arange(len(tables)), sizes)
    row = np.concatenate([np.arange(size) for size in sizes])
    first_user = np.zeros(len(tables), np.int64)
    for column in NAMED:
        more = 0
        for place in range(len(tables)):
            mine = (source == place) & (matrix[column] != UNKNOWN)
            if column == Column.USER:
                first_user[place] = more
            matrix[column, mine] += more
            more = max(more, int(matrix[column, mine].max(initial=UNKNOWN)) + 1)
    order = np.lexsort((row, source, matrix[Column.RECORDED_SUBMIT]))
    jobs = JobTable(len(order))
    jobs.matrix = np.ascontiguousarray(matrix[:, order])
    jobs.erase_outcome()
    jobs.number[:] = np.arange(1, len(order) + 1)
    return Joined(jobs, source[order], row[order], first_user)
