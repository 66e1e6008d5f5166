"""Jobs that users add to the table during a run, as copies of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.jobs import Column

if TYPE_CHECKING:
    from hpcrowd.environment.jobs import JobTable

#: What a new job has in common with the one that it is a copy of.
SHARED = [
    Column.USER, Column.GROUP, Column.EXECUTABLE, Column.QUEUE, Column.PROCESSORS,
    Column.REQUESTED_MEMORY, Column.SESSION, Column.BATCH,
]  # fmt: skip


class NewJobs:
    """Adds jobs to the table of a run; each gets a number that no other job has.

    Parameters
    ----------
    jobs
        The table.
    """

    def __init__(self, jobs: JobTable) -> None:
        self.jobs = jobs
        self._known = self._highest = 0  # jobs of which the highest number is known, and that one

    def add(self, of: int) -> int:
        """Add a job for the user and the request of job ``of``, without run times; return its row.

        Both are rows of the table.
        """
        jobs = self.jobs
        unseen = jobs.number[self._known :]
        self._known, self._highest = len(jobs), max(self._highest, int(unseen.max(initial=0)))
        row = int(jobs.append(1, number=self._highest + 1)[0])
        jobs.matrix[SHARED, row] = jobs.matrix[SHARED, of]
        if jobs.requests is not None:
            jobs.requests.repeat(row, jobs.requests.take(np.array([of])))
        return row
