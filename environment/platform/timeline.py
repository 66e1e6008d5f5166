"""The changes of one cluster in the order of time, and what each does to its engine.

Each run of a job that a change stops is an :class:`Attempt`. :class:`Reviews` are the looks of an
adaptive scheduler, which decide which policy is to be in charge.

At one second: an adaptive scheduler has its look, processors come up, maintenance ends, the size,
the speed and the policy change, maintenance is announced, processors go down, maintenance begins,
the power cap changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.environment.clock import WEEK, Clock
from hpcrowd.environment.engine.attempts import RECORDED, attempt_of
from hpcrowd.environment.engine.base import Engine
from hpcrowd.environment.errors import SimulationError
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, Names, State
from hpcrowd.environment.platform.changes import (
    Change,
    Failures,
    FailureTimes,
    Maintenance,
    NodesDown,
    Resize,
    SpeedChange,
    SwitchPolicy,
    changes_until,
    check_changes,
    stream_names,
)
from hpcrowd.environment.quantities import time_at_pace
from hpcrowd.environment.schedulers.base import Scheduler
from hpcrowd.environment.schedulers.estimates import Estimates
from hpcrowd.environment.schedulers.names import scheduler_for
from hpcrowd.environment.schedulers.policies.adaptive import Adaptive, WeeklyCorrelation
from hpcrowd.environment.stops import FOREVER
from hpcrowd.environment.streams import Streams

if TYPE_CHECKING:
    from hpcrowd.environment.power.caps import CapPlan  # circle: for its type only

#: Number of times that one job may be stopped before that is an error: it would never end.
LARGEST_RESTARTS = 10_000

#: Called when stopped jobs must be submitted again: rows and the second.
Lost = Callable[[Int64s, int], None]

# The order within a second.
UP, OPEN, SIZE, SPEED, POLICY, ANNOUNCE, DOWN, CLOSE, CAP = range(9)


class Timeline:
    """Applies the changes to an engine in the course of the run.

    Parameters
    ----------
    engine
        The engine that changes; it calls :meth:`apply` at :attr:`next_at`.
    streams
        Random streams of the run.
    lost
        Called with jobs that their users must submit again.

    Attributes
    ----------
    next_at
        Time of the next change, FOREVER if none is left.
    quiet
        Whether nothing will change any more, so that run times of later jobs are as submitted.
    attempts
        Runs of jobs that were stopped, in order.
    down
        Processors that are down.
    failures
        Number of random failures so far.
    history
        Second, number of processors from then on, and how many of these were neither down nor
        closed for maintenance, in order.
    caps, capped, levels
        Second, and from then on the limit in W, how many of the processors that are up may be busy
        under it, and their clock relative to full speed, in order; empty without a cap.
    reviews
        The policy in use.
    """

    def __init__(self, engine: Engine, streams: Streams, lost: Lost) -> None:
        self.engine = engine
        self.next_at, self.quiet = FOREVER, False
        self.attempts = engine.attempts
        self.down = 0
        self.failures = 0
        self.history = [(0, engine.processors, engine.processors)]
        self.caps: list[tuple[int, float]] = []
        self.capped: list[tuple[int, int]] = []
        self.levels: list[tuple[int, float]] = []
        self.reviews = Reviews(engine)
        #: Whether anything else than random failures is to happen here, or in the whole grid.
        self.expecting: Callable[[], bool] = self._expects
        #: Called with row, cause and fate of each stopped job; whether another decides its fate.
        self.separate: Callable[[int, str, str], bool] = _never
        self._lost = lost
        self._streams = streams
        self._changes: tuple[Change, ...] = ()
        self._size = engine.processors
        self._steps: list[tuple[int, int, int, int, Callable[[], None]]] = []
        self._numbers = 0
        self._single = 0  # future steps that are not part of a random process
        self._since = self._now = 0
        self._down_area = self._closed_s = 0
        self._waiting: Int64s = np.zeros(0, np.int64)
        self._running: Int64s = np.zeros(0, np.int64)
        self._restarts: Counter[int] = Counter()
        self._over: list[int] = []
        self._told: list[int] = []
        self._successor: Scheduler | None = None
        self.clock: Clock | None = None  #: local time of the cluster, for schedulers
        self._cap: CapPlan | None = None
        self._cap_changes = False
        self._speed = Fraction(1)  # by changes of speed, without the clock under a cap
        self._look_ahead()

    def add(self, changes: Sequence[Change]) -> None:
        """Plan changes; before the run.

        Raises QuantityError if they contradict each other, or those that are planned.
        """
        known = len(self._changes)
        self._changes += tuple(changes)
        check_changes(self._changes, self._size)
        if any(isinstance(change, SpeedChange) for change in changes):
            self._note_work()
        for change, name in zip(changes, stream_names(self._changes)[known:], strict=True):
            self._plan(change, self._streams.within("failures", self.engine.number, *name))
        self._look_ahead()

    def follow(self, adaptive: Adaptive) -> None:
        """Let an adaptive scheduler choose the policy from the beginning."""
        self.reviews = Reviews(self.engine, adaptive)
        self._look_ahead()

    def _note_work(self) -> None:
        """Let the engine keep how long jobs run at full speed, since speeds change."""
        self.engine.work = np.full(len(self.engine.jobs), UNKNOWN)

    def limit(self, cap: CapPlan) -> None:
        """Keep what runs within a cap on the power of the machine; before the run.

        Raises QuantityError if the limit is below the power of the idle machine.
        """
        engine = self.engine
        resizes = {one.at: one.processors for one in self._changes if isinstance(one, Resize)}
        cap.check({0: engine.processors} | resizes)
        if not self._changes and len(cap.limits) == 1:
            engine.most = cap.most(engine.processors)
        if cap.law is not None:
            self._note_work()
        self._cap = cap
        self._plan_cap(0)
        self._look_ahead()

    def _plan(self, change: Change, streams: Streams) -> None:
        """Schedule the steps of a change, which draws from these streams."""
        match change:
            case NodesDown():
                victims = streams.generator("victims")
                down = partial(self._nodes_down, change, victims)
                self._add(change.at, DOWN, down)
            case Failures():
                victims = streams.generator("victims")
                times = FailureTimes(change, streams.generator("times"))
                self._add_failure(change, times, victims)
            case Maintenance():
                window = (change.start, change.end)
                announced = max(0, change.start - change.announced)
                self._add(announced, ANNOUNCE, partial(self._announce, window))
                self._add(change.start, CLOSE, partial(self._close, change))
                self._add(change.end, OPEN, partial(self._open, window))
            case Resize():
                self._add(change.at, SIZE, partial(self._resize, change.processors))
            case SpeedChange():
                self._add(change.at, SPEED, partial(self._set_speed, change.factor))
            case SwitchPolicy():
                self._add(change.at, POLICY, partial(self._switch, change.scheduler))

    def _add(self, at: int, kind: int, step: Callable[[], None], single: int = 1) -> None:
        heappush(self._steps, (at, kind, self._numbers, single, step))
        self._numbers += 1
        self._single += single

    def _add_failure(
        self, change: Failures, times: Iterator[tuple[int, int]], victims: np.random.Generator
    ) -> None:
        """Schedule the next failure of a process."""
        for at, repaired in times:
            step = partial(self._fail, change, repaired, times, victims)
            self._add(at, DOWN, step, single=0)
            return

    def _plan_cap(self, place: int) -> None:
        """Schedule the next limit of the power cap."""
        if self._cap is not None and place < len(self._cap.limits):
            self._add(self._cap.limits[place][0], CAP, partial(self._set_cap, place))

    def _look_ahead(self) -> None:
        step = self._steps[0][0] if self._steps else FOREVER
        self.next_at = min(step, self.reviews.next_at)
        self.quiet = self.next_at == FOREVER and self.engine.work is None
        self.quiet &= self._cap is None or self._cap.uniform

    @property
    def step_at(self) -> int:
        """Time of the next change that is not a check of an adaptive scheduler."""
        return self._steps[0][0] if self._steps and self.next_at < FOREVER else FOREVER

    @property
    def slows(self) -> bool:
        """Whether a power cap may slow running jobs."""
        return self._cap is not None and self._cap.law is not None

    @property
    def up(self) -> int:
        """Processors that are up, whether the power cap lets them be busy or not."""
        return max(0, self.engine.processors - self.down)

    @property
    def planned(self) -> bool:
        """Whether changes are to come besides random failures and checks."""
        return self._single > 0

    def _expects(self) -> bool:
        return self.planned or self.engine.arriving

    def catch_up(self, now: int) -> None:
        """Apply changes before ``now`` while nothing ran, waited or was to arrive."""
        if self._cap is not None and self.caps and self._cap.learn():
            self._add(now, CAP, _nothing)  # jobs that users made up draw more than any before
        self._look_ahead()
        while self.next_at < now:
            self.apply(self.next_at)

    def begin_at(self, now: int) -> None:
        """Begin at a second with what changed before, on an empty machine, and without account."""
        looks, self.reviews.next_at = self.reviews.next_at, FOREVER
        self.engine.catch_up()
        self.reviews.next_at = looks
        self._since = self._now = now
        self._down_area = self._closed_s = 0
        if self._cap is not None:  # what runs already has to fit as well
            self._add(now, CAP, self._fit_again)
        self._look_ahead()

    def apply(self, now: int) -> list[int]:
        """Apply the changes at ``now``; return the rows of the jobs that end because of them."""
        engine = self.engine
        self._over, self._told, self._successor = [], [], None
        if self._is_hopeless(now):
            self.next_at = FOREVER
            return self._over
        if self.reviews.next_at <= now:
            self._successor = self.reviews.look(now)
            if self._successor is None and not (self._steps and self._steps[0][0] <= now):
                self._look_ahead()
                return self._over
        engine.settle()
        self._account(now)
        self._waiting, self._running = engine.waiting, np.sort(engine.running)
        while self._steps and self._steps[0][0] <= now:
            *_, single, step = heappop(self._steps)
            self._single -= single
            step()
        self._look_ahead()
        engine.up = self.up if self._cap is None else self._within(self._cap)
        there = (now, engine.processors, 0 if engine.closed else self.up)
        if there[1:] != self.history[-1][1:]:
            self.history.append(there)
        engine.take_over(self._waiting, self._running)
        if self._successor is not None:
            self._successor.clock = self.clock
            engine.switch(self._successor)
            self.reviews.took_over(self._successor, now)
        if self._told:
            self._lost(np.array(sorted(self._told), np.int64), now)
        return sorted(self._over)

    def _is_hopeless(self, now: int) -> bool:
        """Return whether waiting jobs can never start.

        That is so if nothing runs or will arrive, everything that will ever be up is up, and only
        random failures, which would continue for ever, are still to come.
        """
        engine = self.engine
        if self.expecting() or len(engine.running) or not len(engine.waiting):
            return False
        # For jobs that arrive or get room now, the pass of this second is still to come.
        submits, ends = engine.jobs.enqueued[engine.waiting], engine.jobs.end
        if np.any(submits >= now) or np.any(ends == now):
            return False
        return not self.reviews.would_switch(now)

    def _account(self, now: int) -> None:
        """Add up the processors that were down or closed since the last change."""
        passed = now - self._since
        self._down_area += passed * (self.engine.processors - self.up)
        self._closed_s += passed * self.engine.closed
        self._since = self._now = now

    def account(self, now: int) -> dict[str, Any]:
        """Return the effects of changes until ``now``, ready for JSON."""
        self._account(max(now, self._since))
        self.reviews.account(max(now, self._since))
        stopped = [one for one in self.attempts if one.cause != RECORDED]
        fates = [attempt.fate for attempt in stopped]
        return {
            "node_failures": self.failures,
            "down_processor_s": self._down_area,
            "maintenance_s": self._closed_s,
            "runs_stopped": len(fates),
            "runs_requeued": fates.count("requeue"),
            "runs_resubmitted": fates.count("resubmit"),
            "runs_failed": fates.count("fail"),
            "lost_processor_s": sum(one.processor_seconds for one in stopped),
            **changes_until(now, self._changes, self._size),
            "policy_switches": self.reviews.switches,
            "policies_s": dict(sorted(self.reviews.in_charge.items())),
        }

    # What the steps do.

    def _nodes_down(self, change: NodesDown, victims: np.random.Generator) -> None:
        struck = self._strike(change.processors, victims, "down", change.jobs)
        if struck and change.until is not None:
            self._add(change.until, UP, partial(self._come_up, struck))

    def _fail(
        self,
        change: Failures,
        repaired: int,
        times: Iterator[tuple[int, int]],
        victims: np.random.Generator,
    ) -> None:
        struck = self._strike(change.processors, victims, "failure", change.jobs)
        self.failures += struck > 0
        if struck:
            self._add(repaired, UP, partial(self._come_up, struck))
        self._add_failure(change, times, victims)

    def _strike(self, processors: int, victims: np.random.Generator, cause: str, fate: str) -> int:
        """Take processors down at a random place; return how many, fewer if not enough are up.

        Each strike takes one number from ``victims``, whatever happens in the run.
        """
        engine = self.engine
        place = victims.random()
        up = max(0, engine.processors - self.down)
        held = engine.jobs.processors[self._running]
        free = max(0, up - int(held.sum()))
        width, struck = free + int(held.sum()), min(processors, up)
        if struck == 0:
            return 0
        self.down += struck
        first = min(int(place * width), width - 1)
        last = first + struck  # wraps around to the first place
        ends = free + np.cumsum(held)
        begins = ends - held
        hit = (begins < last) & (ends > first) | (begins < last - width)
        self._stop(self._running[hit], cause, fate)
        return struck

    def _come_up(self, processors: int) -> None:
        self.down -= processors

    def _announce(self, window: tuple[int, int]) -> None:
        self.engine.windows = tuple(sorted((*self.engine.windows, window)))

    def _close(self, change: Maintenance) -> None:
        self.engine.closed = True
        if change.jobs != "run":
            self._stop(self._running, "maintenance", change.jobs)

    def _open(self, window: tuple[int, int]) -> None:
        self.engine.closed = False
        self.engine.windows = tuple(one for one in self.engine.windows if one != window)

    def _resize(self, processors: int) -> None:
        self.engine.processors = processors
        self.engine.most = max(self.engine.most, processors)
        large = self.engine.jobs.processors[self._waiting] > processors
        self._end(self._waiting[large], State.REJECTED)
        self._waiting = self._waiting[~large]

    def _switch(self, scheduler: str | Scheduler) -> None:
        made = scheduler_for(scheduler, self.engine.jobs.names)
        self.reviews.end()
        if isinstance(made, Adaptive):
            made = self.reviews.begin(made, self._now)
        self._successor = made

    def _set_speed(self, factor: float) -> None:
        speed = (self._speed * Fraction(Decimal(str(factor)))).limit_denominator(10**6)
        self._speed = max(speed, Fraction(1, 10**6))
        self._set_pace()

    def _set_pace(self) -> None:
        """Let jobs run on at the present speed and clock."""
        engine, jobs, running, now = self.engine, self.engine.jobs, self._running, self._now
        before, pace = engine.pace, self._speed
        if self._cap is not None and self.levels:
            pace = (pace * self._cap.pace(self.levels[-1][1])).limit_denominator(10**6)
        engine.pace = max(pace, Fraction(1, 10**6))
        started = jobs.start[running]
        left = started + jobs.run_time[running] - now
        jobs.run_time[running] = now - started + time_at_pace(left, engine.pace / before)
        jobs.end[running] = started + engine.stays(running)
        if self._exact:
            jobs.estimate[running] = engine.stays(running)
        self._set_run_times(self._waiting)

    def _set_cap(self, place: int) -> None:
        assert self._cap is not None
        self.caps.append((self._now, float(self._cap.limits[place][1])))
        self._fit_again()
        self._plan_cap(place + 1)

    def _fit_again(self) -> None:
        self._cap_changes = True

    def _within(self, cap: CapPlan) -> int:
        """Keep what runs within the power cap; return how many processors may be busy.

        The clock goes up only when the limit changes.
        """
        cap.learn()
        # Jobs may go on that run on processors which the machine no longer has.
        up = max(self.up, int(self.engine.jobs.processors[self._running].sum()))
        left = cap.left(self.caps[-1][1], up)
        if cap.stop != "none":
            self._stop(cap.beyond(left, self._running), "power", cap.stop)
        needs = cap.needs(self._running)
        level = self.levels[-1][1] if self.levels else cap.levels[0]
        if self._cap_changes or needs * cap.share(level) > left:
            level = cap.level(left, needs)
        self._cap_changes = False
        if not self.levels or level != self.levels[-1][1]:
            self.levels.append((self._now, level))
            if cap.law is not None:
                self._set_pace()
        room = min(self.up, cap.room(left, level))
        if not self.capped or room != self.capped[-1][1]:
            self.capped.append((self._now, room))
        return room

    @property
    def _exact(self) -> bool:
        found = self.engine.estimates
        return isinstance(found, Estimates) and found.kind == "exact"

    def _set_run_times(self, rows: Int64s) -> None:
        """Set the run times of waiting jobs to those at the present speed."""
        engine = self.engine
        if engine.work is None:
            return
        engine.jobs.run_time[rows] = time_at_pace(engine.work[rows], engine.pace)
        if self._exact:
            engine.jobs.estimate[rows] = engine.stays(rows)

    def _stop(self, rows: Int64s, cause: str, fate: str) -> None:
        """Stop running jobs."""
        jobs, now = self.engine.jobs, self._now
        self._running = np.setdiff1d(self._running, rows)
        apart = np.zeros(len(rows), bool)
        for place, row in enumerate(rows.tolist()):
            self.note_stop(row, cause, fate)
            apart[place] = self.separate(row, cause, fate)
        rows = rows[~apart]
        if fate == "fail":
            jobs.end[rows] = now
            self._end(rows, State.FAILED)
            return
        jobs.start[rows] = jobs.end[rows] = UNKNOWN
        if self.engine.work is not None:
            jobs.run_time[rows] = self.engine.work[rows]
        if fate == "resubmit":
            self._told += rows.tolist()
            return
        large = jobs.processors[rows] > self.engine.processors
        self._end(rows[large], State.REJECTED)
        self._set_run_times(rows[~large])
        self._waiting = np.append(self._waiting, rows[~large])

    def note_stop(self, row: int, cause: str, fate: str) -> None:
        """Note that a running job is stopped now.

        Raises SimulationError if it has been stopped too often.
        """
        engine = self.engine
        self._restarts[row] += 1
        if self._restarts[row] > LARGEST_RESTARTS:
            raise SimulationError(
                f"job {engine.jobs.number[row]} was stopped {LARGEST_RESTARTS:,} times by "
                f"{engine.now} s: nodes fail faster than it can run; make failures rarer, or end "
                "them"
            )
        self.attempts.append(attempt_of(engine.jobs, row, engine.now, cause, fate))

    def _end(self, rows: Int64s, state: State) -> None:
        """Note that jobs have ended."""
        self.engine.jobs.column(Column.STATE)[rows] = state
        self._over += rows.tolist()


def _nothing() -> None:
    pass


def _never(row: int, cause: str, fate: str) -> bool:
    return False


class Reviews:
    """The policy that an engine uses under an adaptive scheduler, for how long, and the next one.

    Attributes
    ----------
    next_at
        Time of the next check, FOREVER without an adaptive scheduler.
    in_charge
        Seconds for which each policy, as text, was used.
    switches
        Number of switches to another policy.
    """

    def __init__(self, engine: Engine, adaptive: Adaptive | None = None) -> None:
        self.engine = engine
        self.next_at = FOREVER
        self.in_charge: Counter[str] = Counter()
        self.switches = 0
        self._policy = str(engine.scheduler)
        self._adaptive = adaptive
        self._since = 0
        self._correlation = WeeklyCorrelation()
        self._heard = -1  # it knows of the jobs that ended by then
        self._begun = False  # a job has arrived
        if adaptive is not None:
            self.next_at = adaptive.every_s

    def begin(self, adaptive: Adaptive, now: int) -> Scheduler:
        """Start to use an adaptive scheduler; return the policy that takes over."""
        self._adaptive = adaptive
        self.next_at = now + adaptive.every_s
        return _made(self._choice(now), self.engine.jobs.names)

    def begin_at(self, now: int) -> Scheduler | None:
        """Begin at a second; return the policy that the last look chose, None for that in use.

        What it saw then is in the table: looks are whole periods apart, come after the arrivals and
        before the starts of their second, and correlations are computed at the first of a week.
        """
        adaptive, self._since = self._adaptive, now
        if adaptive is None:
            return None
        jobs, every = self.engine.jobs, adaptive.every_s
        submitted = jobs.submit != UNKNOWN
        begun = int(jobs.submit[submitted].min(initial=FOREVER))
        first, last = max(-(-begun // every), 1) * every, now // every * every
        self.next_at, self._begun = last + every, begun <= now
        if last < first:
            return None
        heard = max(-(-(last // WEEK * WEEK) // every) * every, first)
        rows = jobs.ended(self.engine.number)
        self._hear(rows[(jobs.end[rows] <= heard) & (jobs.start[rows] < heard)], heard)
        here = submitted & (jobs.submit <= last) & (jobs.cluster == self.engine.number)
        here &= (jobs.start == UNKNOWN) | (jobs.start >= last)
        here &= jobs.processors <= self.engine.processors
        here &= (jobs.end == UNKNOWN) | (jobs.end > last) | (jobs.start == last)
        wanted = int(jobs.processors[here].sum())
        choice = adaptive.policy(wanted, self.engine.up, self._correlation.expected(last))
        if choice == self._policy:
            return None
        self._policy = choice
        return _made(choice, self.engine.jobs.names)

    def end(self) -> None:
        """Stop using an adaptive scheduler."""
        self._adaptive, self.next_at = None, FOREVER

    def look(self, now: int) -> Scheduler | None:
        """Check the system; return the policy that is to take over, None to continue."""
        if self._adaptive is None:
            return None
        self.next_at = self._next(now, self._adaptive.every_s)
        choice = self._choice(now)
        return None if choice == self._policy else _made(choice, self.engine.jobs.names)

    def _next(self, now: int, every: int) -> int:
        """Return the time of the check after one at ``now``: there is none before the first job."""
        if not self._begun:
            submitted = self.engine.jobs.submit
            first = submitted[submitted != UNKNOWN].min(initial=FOREVER)
            self._begun = bool(first <= now)
            if now < first < FOREVER:
                return now + max(-(-(int(first) - now) // every), 1) * every
        return now + every

    def would_switch(self, now: int) -> bool:
        """Return whether a check now would switch to another policy."""
        return self._adaptive is not None and self._choice(now) != self._policy

    def account(self, now: int) -> None:
        """Count the time until now for the policy in use."""
        self.in_charge[self._policy] += now - self._since
        self._since = now

    def took_over(self, scheduler: Scheduler, now: int) -> None:
        """Note that another policy is used from now on."""
        self.account(now)
        self.switches += 1
        self._policy = str(scheduler)

    def _choice(self, now: int) -> str:
        """Return the text of the policy to use."""
        assert self._adaptive is not None
        engine = self.engine
        wanted = int(engine.jobs.processors[engine.waiting].sum())
        return self._adaptive.policy(wanted, engine.up, self._expected(now))

    def _expected(self, now: int) -> float:
        """Return the correlation expected for this week; jobs that ended are added once a week."""
        if now // WEEK > self._heard // WEEK:
            rows = self.engine.jobs.ended(self.engine.number)
            self._hear(rows[self.engine.jobs.end[rows] > self._heard], now)
        return self._correlation.expected(now)

    def _hear(self, rows: Int64s, until: int) -> None:
        """Learn of jobs that ended by a second."""
        jobs = self.engine.jobs
        stayed = jobs.end[rows] - jobs.start[rows]
        self._correlation.ended(jobs.submit[rows], stayed, jobs.processors[rows])
        self._heard = until


def _made(policy: str, names: Names) -> Scheduler:
    made = scheduler_for(policy, names)
    assert made is not None
    return made
