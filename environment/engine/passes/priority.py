"""The compiled pass of priorities: a formula over the queue, as a program if it can be traced."""

from __future__ import annotations

from typing import Any, override

import numpy as np

from hpcrowd.environment.engine.kernel import ordered as Q
from hpcrowd.environment.engine.kernel import scored as P
from hpcrowd.environment.engine.kernel.cluster import Cluster
from hpcrowd.environment.engine.passes.formula import Program, traced
from hpcrowd.environment.engine.passes.ordered import OrderedPass
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.schedulers.policies.priority import ARRAYS, Queue
from hpcrowd.environment.stops import FOREVER

#: Programs by formula, whether it may be traced, and options; :data:`CALLED` where there is none.
_TRACED: dict[tuple[Any, ...], Program] = {}

#: Room for no job.
NO_ROOM = np.zeros((len(ARRAYS), 0))

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
        program = program_of(scheduler)
        self.formula = P.Formula(program.steps, program.numbers, NO_ROOM, np.zeros(0))
        self._rows = program.rows
        super().__init__(scheduler, engine)

    @override
    def _make_room(self, arrived: int) -> None:
        super()._make_room(arrived)
        room = len(self.order.keys)
        if room > len(self.formula.scores):
            self.formula.view, self.formula.scores = np.zeros((self._rows, room)), np.zeros(room)

    @override
    def _set_order(self) -> None:
        names = type(self.scheduler).score.__code__.co_names
        self.order.by, self.order.charged = Q.BY_SCORE, "usage" in names
        self.order.half_life = self.scheduler.half_life_s

    @override
    def advance(self, cluster: Cluster, remaining: Int64s, halt: int) -> int:
        if self._known < len(self.engine.jobs):
            self._learn_jobs()
        arrays = self.order, self.beliefs, self.accounts, *self._plan()
        return P.advance_scored(cluster, remaining, halt, *arrays, self.formula)

    @override
    def schedule(self, ended: Int64s, arrived: Int64s) -> int:
        self._make_room(len(arrived))
        arrays, order, held = self.engine.arrays(), self.order, self.accounts
        beliefs = self.beliefs
        # What ended and arrived before a pass that stopped for its scores is noted already.
        needs = P.prepare(arrays, order, beliefs, held, ended, arrived)
        if needs == P.SCORES:
            self._score(arrays, order, held)
        if needs != P.NOTHING:
            P.one_pass(arrays, order, beliefs, held, *self._plan())
        return FOREVER

    def _score(self, arrays: Cluster, order: Q.Order, held: Any) -> None:
        state, formula = self.engine.state, self.formula
        view, scores = np.asarray(formula.view), np.asarray(formula.scores)
        count = P.fill(arrays, order, held, view)
        now, free, total = state.now, state.free, self.engine.up
        if len(formula.steps):
            P.compute(formula, count, now, total, free)
            if P.take(order, scores, count):
                return
        # Of a traced formula without a result this says what is wrong with it.
        jobs = Queue._make((*view[: len(ARRAYS), :count], now, total, free))
        P.take(order, self.scheduler.scores(jobs), count)
