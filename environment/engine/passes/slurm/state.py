"""What Slurm's controller knows at one second, in plain objects."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.machine.past import Phases
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.environment.machine.stock import Stock
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.schedulers.slurm.shares import Shares

if TYPE_CHECKING:
    from hpcrowd.environment.engine.passes.slurm.book import SlurmBook

#: Who starts jobs.
STARTERS = {N.BY_MAIN: "main", N.BY_BACKFILL: "backfill"}


class SlurmState:
    """The state of Slurm's controller, to be read until the simulation goes on.

    Parameters
    ----------
    book
        The arrays that it is made from.

    Attributes
    ----------
    phases
        What the controller did last when, and what comes next.
    """

    def __init__(self, book: SlurmBook) -> None:
        self._book = book
        self.phases: Phases = book.phases

    @property
    def calculated(self) -> int:
        """Until when usage and priorities have been computed, s."""
        return self.phases.calculated

    @property
    def next_backfill(self) -> float:
        """When the next cycle of backfilling may come, s."""
        return self.phases.next_backfill

    @cached_property
    def shares(self) -> Shares:
        """The accounts and users, with their usage and factors of fair share."""
        shares, found = self._book.shares, self._book.fair_share
        used, factors = np.asarray(found.usage).tolist(), np.asarray(found.factor).tolist()
        for one in shares.all:
            one.usage, one.factor = used[one.place], factors[one.place]
        return shares

    @cached_property
    def waiting(self) -> dict[int, QueuedJob]:
        """The waiting jobs by row, in the order of submission."""
        return {row: self._job(row) for row in self._book.waiting.tolist()}

    @cached_property
    def running(self) -> dict[int, QueuedJob]:
        """The running jobs by row, in the order of their starts."""
        book, found = self._book, {}
        row = book.controls.first_running
        while row >= 0:
            found[row] = self._begun(row, int(book.rows.tenure[row]))
            row = int(book.rows.next[row])
        return found

    @cached_property
    def stock(self) -> Stock:
        """What is free on each node."""
        book = self._book
        at, stock = book.settings, Stock(book.layout)
        free = np.asarray(book.nodes.table)[at.stock : at.future]
        stock.cores, stock.memory = free[N.FREE_CORES].tolist(), free[N.FREE_MEMORY].tolist()
        stock.jobs, stock.gpus = free[N.JOBS_HERE].tolist(), free[N.FREE_GPUS :].T.tolist()
        return stock

    def _job(self, row: int) -> QueuedJob:
        book, job = self._book, self._book.job_like(row)
        table = N.Queued(np.asarray(book.rows.table)[:, row : row + 1].copy())
        job.throttle, job.nice = int(table.throttle[0]), int(table.nice[0])
        job.requeue = bool(table.requeues[0])
        if book.jobs.requests is not None:
            job.array = int(book.jobs.requests[Ask.ARRAY][row])
            job.task = int(book.jobs.requests[Ask.TASK][row])
        job.submitted, job.eligible = int(table.submitted[0]), int(table.eligible[0])
        job.reason, job.planned = book.asked.words[table.reason[0]], int(table.planned[0])
        _ = self.shares  # brings the factors of associations up to date
        of, at = book.site_rules.priorities.of, int(table.weighed[0])
        job.factors = {name: of(job, name, at) for name in job.partitions}
        job.priority = {name: factors.total for name, factors in job.factors.items()}
        return job

    def _begun(self, row: int, tenure: int) -> QueuedJob:
        book, job = self._book, self._job(row)
        one = N.Tenures(np.asarray(book.ledger.table)[:, tenure : tenure + 1].copy())
        job.submitted, job.eligible = int(one.submitted[0]), int(one.eligible[0])
        job.start, job.by, job.reason = int(one.start[0]), STARTERS[int(one.by[0])], "None"
        job.partition = book.asked.partition_of(int(one.option[0]))
        job.holding = book.holding(tenure)
        job.suspended, job.paused = int(book.rows.suspended[row]), int(book.rows.rested[row])
        return job
