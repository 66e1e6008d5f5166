"""The compiled pass of priorities: a formula over the queue, compiled if numba can."""

from __future__ import annotations

from collections import namedtuple
from functools import cached_property
from typing import Any, override

import numba
import numpy as np
from numba import types

from hpcrowd.environment.engine.kernel import ordered as Q
from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel import scored as P
from hpcrowd.environment.engine.passes.ordered import FIRST_ROOM, OrderedPass
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.schedulers.priority import Queue
from hpcrowd.environment.stops import FOREVER

#: Type of compiled formulas: view, jobs, now, processors that are up and free, scores.
SCORER: Any = types.void(
    types.float64[:, ::1], types.int64, types.int64, types.int64, types.int64, types.float64[::1]
)

#: Compiled formulas by their function and options; None where numba cannot compile one.
_COMPILED: dict[tuple[Any, ...], Any] = {}


def scorer_of(scheduler: Any) -> Any:
    """Return the compiled formula of a scheduler; None if numba cannot compile it."""
    formula, options = type(scheduler).score, scheduler.options
    numbers = {
        name: value for name, value in options.items() if isinstance(value, bool | int | float)
    }
    key = (formula, *numbers.items())
    if key not in _COMPILED:
        _COMPILED[key] = _compile(formula, numbers) if scheduler.compiles else None
    return _COMPILED[key]


def _compile(formula: Any, numbers: dict[str, Any]) -> Any:
    # As ``self``; without options a number that nothing reads.
    given: Any = namedtuple("Options", numbers or ["none"])(*(numbers.values() or [0]))
    try:
        score: Any = numba.njit(formula, error_model="numpy")

        def scorer(view: Any, count: int, now: int, total: int, free: int, scores: Any) -> None:
            jobs = Queue(
                view[0, :count], view[1, :count], view[2, :count], view[3, :count],
                view[4, :count], view[5, :count], view[6, :count], view[7, :count],
                view[8, :count], now, total, free,
            )  # fmt: skip
            found = score(given, jobs)
            if found.size == count:
                for i in range(count):
                    scores[i] = found[i]
            else:
                scores[:count] = np.nan

        return numba.cfunc(SCORER)(scorer)
    except numba.core.errors.NumbaError:
        return None


class PriorityPass(OrderedPass):
    """The queue is ordered by a score, the highest first."""

    def __init__(self, scheduler: Any, engine: Any) -> None:
        scheduler.check()
        self._view = np.zeros((P.COLUMNS, FIRST_ROOM))
        self._scores = np.zeros(FIRST_ROOM)
        super().__init__(scheduler, engine)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the compiled formula, which cannot be copied; a copy makes it again."""
        return {name: value for name, value in vars(self).items() if name != "_scorer"}

    @cached_property
    def _scorer(self) -> Any:
        return scorer_of(self.scheduler)

    @override
    def _set_order(self) -> None:
        names = type(self.scheduler).score.__code__.co_names
        self._q[Q.ORDER], self._q[Q.CHARGED] = Q.BY_SCORE, "usage" in names
        self._c[Q.HALF_LIFE] = self.scheduler.half_life_s

    @override
    def _make_room(self, arrived: int) -> None:
        super()._make_room(arrived)
        room = self._queue.shape[1]
        if room > self._view.shape[1]:
            self._view = np.zeros((P.COLUMNS, room))
            self._scores = np.zeros(room)

    @override
    def advance(self, cluster: tuple[Int64s, ...], remaining: Int64s, halt: int) -> int:
        if self._known < len(self.engine.jobs):
            self._learn_jobs()
        arrays = self._order(), self._beliefs(), self._held(), *self._plan()
        if self._scorer is None:
            stop: int = P.advance_to_scores(cluster, remaining, halt, *arrays)
        else:
            stop = P.advance_scored(
                cluster, remaining, halt, *arrays, self._view, self._scores, self._scorer
            )
        return stop

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

    def _score(self, arrays: Any, order: Any, held: Any) -> None:
        s, view = self.engine.scalars, self._view
        count = P.fill(arrays, order, held, view)
        now, free, total = int(s[S.NOW]), int(s[S.FREE]), self.engine.up
        if self._scorer is not None:
            P.score_by(self._scorer, view, count, now, total, free, self._scores)
            if P.take(order, self._scores, count):
                return
        # Of a compiled formula without a result this says what is wrong with it.
        jobs = Queue._make((*view[:, :count], now, total, free))
        P.take(order, self.scheduler.scores(jobs), count)
