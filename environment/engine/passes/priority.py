"""The compiled pass of priorities: a formula over the queue, as a program if it can be traced."""

from __future__ import annotations

from functools import cached_property
from typing import Any, override

import numpy as np

from hpcrowd.environment.engine.kernel import ordered as Q
from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel import scored as P
from hpcrowd.environment.engine.passes.formula import Program, traced
from hpcrowd.environment.engine.passes.ordered import OrderedPass
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.schedulers.priority import ARRAYS, Queue
from hpcrowd.environment.stops import FOREVER

#: Programs by formula, whether it may be traced, and options; :data:`CALLED` where there is none.
_TRACED: dict[tuple[Any, ...], Program] = {}

#: What stands for a formula that has to be called.
CALLED = Program(np.zeros((0, 0), np.int64), np.zeros(0), len(ARRAYS))


def program_of(scheduler: Any) -> Program:
    """Return the program of a scheduler's formula; :data:`CALLED` if it cannot be traced."""
    formula, options = type(scheduler).score, scheduler.options
    numbers = {
        name: value for name, value in options.items() if isinstance(value, bool | int | float)
    }
    key = (formula, scheduler.traced, *numbers.items())
    if key not in _TRACED:
        found = traced(formula, numbers) if scheduler.traced else None
        _TRACED[key] = CALLED if found is None else found
    return _TRACED[key]


class PriorityPass(OrderedPass):
    """The queue is ordered by a score, the highest first."""

    def __init__(self, scheduler: Any, engine: Any) -> None:
        scheduler.check()
        self._view = np.zeros((len(ARRAYS), 0))
        self._scores = np.zeros(0)
        super().__init__(scheduler, engine)

    @cached_property
    def _program(self) -> Program:
        return program_of(self.scheduler)

    def _formula(self) -> P.Formula:
        room = self._queue.shape[1]
        if room > self._view.shape[1]:
            self._view = np.zeros((self._program.rows, room))
            self._scores = np.zeros(room)
        steps, numbers, _ = self._program
        return self._groups.of(P.Formula, steps, numbers, self._view, self._scores)

    @override
    def _set_order(self) -> None:
        names = type(self.scheduler).score.__code__.co_names
        self._q[Q.ORDER], self._q[Q.CHARGED] = Q.BY_SCORE, "usage" in names
        self._c[Q.HALF_LIFE] = self.scheduler.half_life_s

    @override
    def advance(self, cluster: S.Cluster, remaining: Int64s, halt: int) -> int:
        if self._known < len(self.engine.jobs):
            self._learn_jobs()
        arrays = self._order(), self._beliefs(), self._held(), *self._plan()
        return P.advance_scored(cluster, remaining, halt, *arrays, self._formula())

    @override
    def schedule(self, ended: Int64s, arrived: Int64s) -> int:
        self._make_room(len(arrived))
        arrays, order, held = self.engine.arrays(), self._order(), self._held()
        beliefs = self._beliefs()
        # What ended and arrived before a pass that stopped for its scores is noted already.
        needs = P.prepare(arrays, order, beliefs, held, ended, arrived)
        if needs == P.SCORES:
            self._score(arrays, order, held)
        if needs != P.NOTHING:
            P.one_pass(arrays, order, beliefs, held, *self._plan())
        return FOREVER

    def _score(self, arrays: S.Cluster, order: Q.Order, held: Any) -> None:
        s, formula = self.engine.scalars, self._formula()
        count = P.fill(arrays, order, held, self._view)
        now, free, total = int(s[S.NOW]), int(s[S.FREE]), self.engine.up
        if len(self._program.steps):
            P.compute(formula, count, now, total, free)
            if P.take(order, self._scores, count):
                return
        # Of a traced formula without a result this says what is wrong with it.
        jobs = Queue._make((*self._view[: len(ARRAYS), :count], now, total, free))
        P.take(order, self.scheduler.scores(jobs), count)
