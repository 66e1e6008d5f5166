"""The compiled pass of the policy ``slurm``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, override

from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.arrays import with_room
from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.loop import advance_on_nodes
from hpcrowd.environment.engine.kernel.places import Cluster
from hpcrowd.environment.engine.passes.base import CompiledPass
from hpcrowd.environment.engine.passes.slurm.book import SlurmBook
from hpcrowd.environment.engine.passes.slurm.past import go_on
from hpcrowd.environment.jobs import Int64s

if TYPE_CHECKING:
    from hpcrowd.environment.machine.past import Past

#: What happens to jobs that are stopped, as plain schedulers say it.
FATES = {N.REQUEUED: "requeue", N.CANCELLED: "fail"}


class SlurmPass(CompiledPass):
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
                scheduler.controller, scheduler.admission, scheduler.placement, engine.jobs
            )
        self.book: SlurmBook = scheduler.book

    @override
    def inherit(self, before: Any, ended: Int64s) -> None:
        book, engine, s = self.book, self.engine, self.engine.scalars
        book.let_end(engine.jobs.matrix, s, engine.ends, ended)
        book.leave_out(engine.queue[0, s[S.QUEUE_HEAD] : s[S.QUEUE_TAIL]])
        book.shown_anew = True

    @override
    def go_on(self, past: Past) -> None:
        engine = self.engine
        arrays = engine.jobs.matrix, engine.scalars, engine.ends
        go_on(self.book, past, self.scheduler.associations, arrays)

    @override
    def tell(self) -> None:
        self.scheduler.admission = self.book.admission

    @property
    @override
    def refused(self) -> dict[int, str]:
        return self.book.refused()

    @property
    @override
    def waiting(self) -> Int64s:
        found = self.book.waiting
        return found[:0] if self.book.shown_anew else found

    @override
    def schedule(self, ended: Int64s, arrived: Int64s) -> int:
        raise NotImplementedError("a machine of nodes has its passes within advance()")

    @override
    def advance(self, cluster: Cluster, remaining: Int64s, halt: int) -> int:
        book, engine, c = self.book, self.engine, self.book.c
        c[N.LATENCY], c[N.KILL_EVERY] = engine.latency, engine.kill_every
        c[N.KILL_PHASE] = engine.kill_phase
        passes = int(c[N.PASSES])
        while True:
            site = book.site(engine.jobs.matrix, engine.scalars, engine.ends)
            stop: int = advance_on_nodes(cluster, remaining, halt, site)
            if c[N.PASSES] > passes:
                passes = int(c[N.PASSES])
                book.shown_anew = False
            if stop == N.RANK:
                book.rank()
            elif stop == N.GROW:
                cluster = self._grow()
            else:
                break
        if c[N.STOPPED]:
            self._note_stops()
        return stop

    def _grow(self) -> Cluster:
        """Give more room to whatever could become full in the pass; return the engine's arrays."""
        book, engine, s = self.book, self.engine, self.engine.scalars
        rows = engine.queue[0, s[S.QUEUE_HEAD] : s[S.QUEUE_TAIL]]
        arrived, more = len(rows), int(book.rows[N.COUNT, rows].sum())
        book.grow(arrived, int(s[S.EXPECTED_END]), more)
        need = int(s[S.RUNNING] + book.c[N.ALL_WAITING] + book.c[N.ALL_RUNNING]) + arrived
        engine.ends = with_room(engine.ends, 2 * need)
        return engine.arrays()

    def _note_stops(self) -> None:
        """Note the runs of preempted jobs."""
        book, engine, c = self.book, self.engine, self.book.c
        stops = book.lists[N.STOPPED_ROW : N.STOPPED_START + 1, : c[N.STOPPED]]
        for row, at, fate, start in stops.T.tolist():
            engine.note_preempted(row, start, at, FATES[fate])
        c[N.STOPPED] = c[N.STOPPED_BEFORE] = 0
