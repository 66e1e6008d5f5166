"""The compiled pass of the policy ``slurm``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.environment.engine.kernel.arrays import with_room
from hpcrowd.environment.engine.kernel.cluster import Cluster
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.loop import (
    advance_on_nodes,
    arrive_on_nodes,
    complete_on_nodes,
    pass_on_nodes,
    sort_stops,
)
from hpcrowd.environment.engine.passes.base import PassOnNodes
from hpcrowd.environment.engine.passes.slurm.book import SlurmBook
from hpcrowd.environment.engine.passes.slurm.past import go_on
from hpcrowd.environment.jobs import Int64s

if TYPE_CHECKING:
    from hpcrowd.environment.machine.past import Past

#: What happens to jobs that are stopped, as plain schedulers say it.
FATES = {N.REQUEUED: "requeue", N.CANCELLED: "fail"}


class SlurmPass(PassOnNodes):
    """Slurm's controller on a machine of nodes, in compiled code.

    Parameters
    ----------
    scheduler, engine
        See :class:`~hpcrowd.environment.engine.passes.base.CompiledPass`. The first pass of a run
        makes the book of the scheduler; later ones share it.
    """

    def __init__(self, scheduler: Any, engine: Any) -> None:
        super().__init__(scheduler, engine)
        if scheduler.book is None:
            scheduler.begin(engine.up)
            scheduler.book = SlurmBook(
                scheduler.rules, scheduler.admission, scheduler.placement, engine.jobs
            )
        self.book: SlurmBook = scheduler.book

    @override
    def inherit(self, before: Any, ended: Int64s) -> None:
        book, cluster = self.book, self.engine.arrays()
        book.let_end(cluster, ended)
        book.leave_out(self._arrived(cluster))
        book.shown_anew = True

    @override
    def go_on(self, past: Past) -> None:
        go_on(self.book, past, self.scheduler.associations, self.engine.arrays())

    @property
    @override
    def refused(self) -> dict[int, str]:
        return self.book.refused()

    @property
    @override
    def waiting(self) -> Int64s:
        found = self.book.waiting
        return found[:0] if self.book.shown_anew else found

    @property
    @override
    def suspended(self) -> Int64s:
        return self.book.suspended

    @override
    def schedule(self, ended: Int64s, arrived: Int64s) -> int:
        book, cluster = self.book, self._grow()
        while not pass_on_nodes(self._site(cluster), ended, arrived):
            book.rank()
        book.shown_anew = False
        sort_stops(self._site(cluster))
        stopped = slice(book.controls.stopped)
        rows, fates = book.lists.stopped_row[stopped], book.lists.stopped_fate[stopped]
        self.ended_now = rows[fates == N.CANCELLED].tolist()
        self._note_stops()
        return cluster.state.wake

    @override
    def advance(self, cluster: Cluster, remaining: Int64s, halt: int) -> int:
        book, engine, c = self.book, self.engine, self.book.controls
        passes = c.passes
        while True:
            stop: int = advance_on_nodes(cluster, remaining, halt, self._site(cluster))
            if c.passes > passes:
                passes = c.passes
                book.shown_anew = False
            if stop == N.PREDICT:
                engine.predict()
            elif stop == N.RANK:
                book.rank()
            elif stop == N.GROW:
                cluster = self._grow()
            else:
                break
        if c.stopped:
            self._note_stops()
        return stop

    @override
    def complete(self, cluster: Cluster, remaining: Int64s) -> bool:
        return complete_on_nodes(cluster, self._site(cluster), remaining)

    @override
    def arrive(self, cluster: Cluster, remaining: Int64s) -> bool:
        return arrive_on_nodes(cluster, self._site(cluster), remaining)

    def _site(self, cluster: Cluster) -> N.Site:
        """Return all arrays of the machine."""
        book, settings, engine = self.book, self.book.settings, self.engine
        settings.latency, settings.kill_every = engine.latency, engine.kill_every
        settings.kill_phase, settings.predicts = engine.kill_phase, engine.predictor is not None
        return book.site(cluster.jobs, cluster.state, cluster.ends)

    def _grow(self) -> Cluster:
        """Give more room to whatever could become full in the pass; return the engine's arrays."""
        book, cluster = self.book, self.engine.arrays()
        state, ends, rows = cluster.state, cluster.ends, self._arrived(cluster)
        arrived, more = len(rows), int(book.rows.count[rows].sum())
        book.grow(arrived, state.expected_end, more)
        need = state.running + book.controls.waiting + book.controls.running + arrived
        ends.table = with_room(ends.table, 2 * need)
        return cluster

    def _arrived(self, cluster: Cluster) -> Int64s:
        """Return the rows of the jobs that arrived since the last pass."""
        return cluster.queue.job[cluster.state.queue_head : cluster.state.queue_tail]

    def _note_stops(self) -> None:
        """Note the runs of preempted jobs."""
        book, engine, c = self.book, self.engine, self.book.controls
        table = np.asarray(book.lists.table)
        stops = table[N.STOPPED_ROW : N.STOPPED_START + 1, : c.stopped]
        for row, at, fate, start in stops.T.tolist():
            engine.note_preempted(row, start, at, FATES[fate])
        c.stopped = c.stopped_before = 0
