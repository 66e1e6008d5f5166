"""Slurm's controller that hears what starts and ends, instead of deciding it."""

from __future__ import annotations

import numpy as np

from hpcrowd.environment.engine.kernel.cluster import ClusterState, Jobs
from hpcrowd.environment.engine.kernel.heap import Heap
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.loop import calculated
from hpcrowd.environment.engine.kernel.nodes.queue import finish, join, occupy, withdraw
from hpcrowd.environment.engine.kernel.nodes.site import Site
from hpcrowd.environment.engine.passes.slurm.book import SlurmBook
from hpcrowd.environment.engine.passes.slurm.snapshot import SlurmState, hold_shares
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.selection import Share
from hpcrowd.environment.schedulers.slurm.admission import Admission, SiteRules


class RecordedRun:
    """A run whose starts and ends are known; priorities and shares are computed.

    Parameters
    ----------
    machine
        The machine.
    jobs
        The table.
    """

    def __init__(self, machine: Machine, jobs: JobTable) -> None:
        rules = SiteRules(machine)
        self._book = SlurmBook(rules, Admission(rules, jobs), "slurm", jobs)
        self._engine = Jobs(jobs.matrix), ClusterState(), Heap(np.zeros((2, 0), np.int64))

    def _site(self, now: int) -> Site:
        while not calculated(site := self._book.site(*self._engine), now):
            self._book.rank()
        return site

    def state(self, now: int) -> SlurmState:
        """Return what the controller knows."""
        self._site(now)
        return self._book.state()

    def _is(self, row: int, *status: int) -> bool:
        return row < self._book.rows.table.shape[1] and self._book.rows.status[row] in status

    def submit(self, row: int, now: int, eligible: int) -> None:
        """Put a job into the queue that may start from a second on, if it does not wait or run."""
        if self._is(row, N.WAITING, N.RUNNING):
            return
        book = self._book
        book.resolve(np.array([row]))
        if not book.rows.count[row]:  # the site refuses it by now
            book.add_entries(row, book.running_like(row))
        book.rows.begin[row] = eligible
        book.grow(1, 1, int(book.rows.count[row]))
        join(self._site(now), row, now)

    def start(self, row: int, now: int, cores: int) -> None:
        """Let a waiting job run with some cores."""
        if self._is(row, N.WAITING):
            book = self._book
            book.grow(1, 1, 0)
            withdraw(self._site(now), row)
            none = (0,) * len(book.layout.gpu_types)
            first, last = hold_shares(book, (Share(0, cores, 0, none),))
            entry = int(book.rows.entry[row])
            occupy(book.site(*self._engine), entry, now, first, last, N.BY_MAIN)

    def end(self, row: int, now: int) -> None:
        """Let a running job end."""
        if self._is(row, N.RUNNING):
            self._book.grow(0, 1, 0)
            finish(self._site(now), row, now, False)

    def take_back(self, row: int) -> None:
        """Take a waiting job out of the queue."""
        if self._is(row, N.WAITING):
            self._book.withdraw(row)
