"""How a compiled engine comes to a policy, and goes on when policy or platform change.

FCFS and EASY without options run in the compiled loop; any other policy is a
:class:`~environment.passes.base.CompiledPass`. Whatever changes what runs and waits writes it into
the table of jobs; then all that the engine keeps beside the table is made anew from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, override

import numpy as np

from environment.engine import Engine
from environment.errors import QuantityError
from environment.kernel import places as S
from environment.passes.base import CompiledPass, compiled_pass, is_built_in, runs_compiled
from environment.schedulers.base import Scheduler

if TYPE_CHECKING:
    from environment.compiled import CompiledEngine
    from environment.jobs import Int64s

#: Policies of the compiled loop itself, by name.
POLICIES = {"fcfs": S.FCFS, "easy": S.EASY, "recorded": S.RECORDED}


class TakingOver(Engine):
    """The part of :class:`~environment.compiled.CompiledEngine` that knows policies."""

    scalars: Int64s
    ends: Int64s
    _queue: Int64s
    _expected: Int64s
    _policy: CompiledPass | None
    _foretold: Int64s  # rows that the predictor has heard of and a new pass has not
    _unheard: Int64s  # rows that ended and that no pass has heard of

    def _set_policy(self, scheduler: Scheduler | None) -> None:
        """Let the loop, or a pass beside it, do what the scheduler would."""
        self.scheduler, self._policy = scheduler, None
        if scheduler is None:
            self.scalars[S.POLICY] = S.RECORDED
        elif is_built_in(scheduler) and self.predictor is None:
            self.scalars[S.POLICY] = POLICIES[scheduler.name]
        else:
            policy = compiled_pass(scheduler)
            if policy is None:
                raise QuantityError(f"scheduler {scheduler}: not compiled; run it with plain=True")
            self.scalars[S.POLICY] = S.OUTSIDE
            self._policy = policy(scheduler, cast("CompiledEngine", self))

    def _set_platform(self) -> None:
        """Tell the kernel what the platform is like now."""
        s = self.scalars
        s[S.CAPACITY] = self.processors
        s[S.CHANGE_AT], s[S.CLOSED] = self.change_at, self.closed
        s[S.CLOSES], s[S.REOPENS] = self.closes, self.reopens
        s[S.PACE], s[S.PACE_ONE] = self.pace.as_integer_ratio()

    @override
    def _catch_up(self) -> None:
        if self.timeline is not None:
            super()._catch_up()
            self._set_platform()

    @override
    def change(self) -> list[int]:
        rows = super().change()
        self._set_platform()
        return rows

    @override
    def switch(self, scheduler: Scheduler) -> None:
        self._check_switch(recorded=bool(self.scalars[S.POLICY] == S.RECORDED))
        if not runs_compiled(scheduler):
            raise QuantityError(f"scheduler {scheduler}: not compiled; run it with plain=True")
        self.settle()
        waiting, running = self.waiting, self.running
        self.scheduler, self._policy = scheduler, None
        self.take_over(waiting, running)
        if self._policy is not None and scheduler.remembers:
            self._policy.remember(self.jobs.ended(self.number))

    @override
    def take_over(self, waiting: Int64s, running: Int64s) -> None:
        jobs, s = self.jobs, self.scalars
        waiting = self._by_submission(jobs, waiting)
        running = running[np.lexsort((running, jobs.end[running]))]  # a sorted array is a heap
        self.ends = with_room(self.ends, 2 * (len(running) + len(waiting)))
        self.ends[:, : len(running)] = jobs.end[running], running
        s[S.RUNNING], s[S.WAITING] = len(running), len(waiting)
        s[S.ASKED] = jobs.processors[waiting].sum()
        s[S.FREE] = self.up - jobs.processors[running].sum()
        self._queue = with_room(self._queue, 2 * len(waiting))
        estimates = jobs.estimate[waiting]
        self._queue[:, : len(waiting)] = waiting, jobs.processors[waiting], estimates
        s[S.QUEUE_HEAD] = s[S.QUEUE_GAPS] = s[S.SCANNED] = 0
        s[S.QUEUE_TAIL] = len(waiting)
        s[S.STALE] = 1
        s[S.EXPECTED_FIRST] = s[S.EXPECTED_END] = 0
        s[S.WAKE] = s[S.NOW]
        self._foretold = waiting  # estimates are made once, when a job arrives
        self._set_platform()
        before = self._policy
        self._set_policy(self.scheduler)
        if before is not None and self._policy is not None:
            self._policy.inherit(before, self._unheard)
        self._unheard = self._unheard[:0]
        if s[S.POLICY] == S.EASY:
            expected = jobs.start[running] + jobs.estimate[running]
            order = np.argsort(expected, kind="stable")
            self._expected = with_room(self._expected, 2 * (len(running) + len(waiting)))
            processors = jobs.processors[running]
            self._expected[:, : len(running)] = expected[order], processors[order]
            s[S.EXPECTED_END] = len(running)

    @override
    def inform(self) -> None:
        if self.scheduler is not None:
            self.scheduler.begin(self.up)
            if self._policy is not None:
                self._policy.tell()
        super().inform()

    @override
    def settle(self) -> None:
        s = self.scalars
        if self._policy is not None:
            ended = self._expected[0, : s[S.EXPECTED_END]]
            arrived = self._queue[0, s[S.QUEUE_HEAD] : s[S.QUEUE_TAIL]]
            self._foretell(ended, arrived)
            self._foretold = self.waiting
            self._unheard = np.concatenate((self._unheard, ended))
            s[S.EXPECTED_END] = 0

    def _foretell(self, ended: Int64s, arrived: Int64s) -> None:
        """Let the predictor hear, but not again of what a pass that takes over hears anew."""
        if self.predictor is not None:
            self._predict(ended, arrived[~np.isin(arrived, self._foretold)])
        self._foretold = self._foretold[:0]


def with_room(array: Int64s, columns: int) -> Int64s:
    """Return the array, wider where it has fewer columns than that."""
    return array if array.shape[1] >= columns else wider(array, columns)


def wider(array: Int64s, columns: int) -> Int64s:
    """Return the array with so many columns; zeros come behind what was there."""
    grown = np.zeros((array.shape[0], columns), np.int64)
    grown[:, : array.shape[1]] = array
    return grown
