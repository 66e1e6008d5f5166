"""What makes users react: periods, hours of the week, recent waits, the queue.

===================== ===================================== ====================================
class                 active                                judged
===================== ===================================== ====================================
:class:`Always`       always
:class:`During`       in given periods                      each job at its own submission
:class:`WeekHours`    in local hours of the week            each job at its own submission
:class:`RecentWaits`  while the user has waited too long    when the unit of work is due
:class:`QueueLonger`  while many jobs wait                  when the unit of work is due
:class:`ExpectedWait` for jobs that would wait for long    when the unit of work is due
===================== ===================================== ====================================

Those of a machine of nodes are in :mod:`hpcrowd.agents.behaviours.on_nodes`, a signal and a
budget of energy in :mod:`hpcrowd.agents.behaviours.energy.triggers`.
A trigger is one part of a reaction of :mod:`hpcrowd.agents.behaviours.reactions`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.agents.behaviours.activity import ActivityWindow, WeeklyWindow, joined
from hpcrowd.agents.behaviours.parts import Trigger, setting
from hpcrowd.environment.clock import WEEK, Clock, Moment, second_of
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.requests import Requests
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.behaviours.reactions import Intention
    from hpcrowd.agents.behaviours.user import ReplayUser


@dataclass(eq=False)
class Always(Trigger):
    """Always active."""

    when = "always"

    @override
    def which(self, user: ReplayUser, intention: Intention) -> NDArray[np.bool_]:
        return np.ones(len(intention.rows), bool)


class Periods(Trigger):
    """Active in periods that are known once the run has a clock; subclass it."""

    ends = True

    _clock: Clock | None = None
    _begins: Sequence[int] = ()
    _ends: Sequence[int] = ()
    _until: int = 0  # s of the run for which a signal that repeats is looked up

    @override
    def begin(self, user: ReplayUser) -> None:
        if self._clock is not user.model.clock:
            self._clock = user.model.clock
            self._begins, self._ends = joined(self._seconds(user.model.clock))

    @override
    def which(self, user: ReplayUser, intention: Intention) -> NDArray[np.bool_]:
        begins, ends = self._begins, self._ends
        places = [bisect_right(begins, at) - 1 for at in intention.at.tolist()]
        until = np.array([ends[place] if place >= 0 else UNKNOWN for place in places])
        return intention.at < until

    @override
    def until(self, user: ReplayUser, at: int) -> int:
        return self._ends[bisect_right(self._begins, at) - 1]

    def _seconds(self, clock: Clock) -> list[tuple[int, int]]:
        """Return the periods, s of the run."""
        raise NotImplementedError(f"{type(self).__name__} has to define _seconds()")


@dataclass(eq=False)
class During(Periods):
    """Active in given periods, as in a call for less load (demand response).

    Parameters
    ----------
    periods
        (from, to): active from ``from`` on and before ``to``. Each is a second of the run, or a
        local date and time of the trace. Periods may touch or overlap.

    Raises
    ------
    QuantityError
        If there is none, or one does not end after it begins.
    """

    when = "during"

    periods: Sequence[tuple[Moment, Moment]] = setting(
        ...,
        "pairs from, to: s or durations since the origin such as 2d 16h, or local dates and "
        "times such as 1996-10-14 16:00",
    )

    def __post_init__(self) -> None:
        self.periods = tuple(self.periods)
        if not self.periods:
            raise QuantityError("periods: none given; give at least one (from, to)")
        for begin, end in self.periods:
            # A date and a second can only be compared once the trace is known.
            if _comparable(begin, end) and not begin < end:  # type: ignore[operator]
                raise QuantityError(f"period {begin} to {end}: must end after it begins")

    @override
    def _seconds(self, clock: Clock) -> list[tuple[int, int]]:
        found = []
        for begin, end in self.periods:
            pair = second_of(begin, clock), second_of(end, clock)
            if pair[0] >= pair[1]:
                raise QuantityError(
                    f"period {begin} to {end}: {pair[0]} to {pair[1]} s of the run; must end after "
                    "it begins"
                )
            found.append(pair)
        return found


@dataclass(eq=False)
class WeekHours(Trigger):
    """Active in local hours of the week, such as evenings on weekdays.

    Parameters
    ----------
    window
        The hours.

    Attributes
    ----------
    week
        The same as pieces of the week.

    Raises
    ------
    QuantityError
        When they never end.
    """

    when = "during"
    ends = True

    window: ActivityWindow | WeeklyWindow = setting(  # noqa: RUF009
        ..., "opens, closes (local time) and days of the week", name="hours"
    )

    def __post_init__(self) -> None:
        window = self.window
        self.week = window.week if isinstance(window, ActivityWindow) else window
        if self.week.pieces == [(0, WEEK)]:
            raise QuantityError("hours: the whole week, which never ends; leave out some of it")

    @override
    def which(self, user: ReplayUser, intention: Intention) -> NDArray[np.bool_]:
        clock = user.model.clock
        return np.array([self.week.is_open(clock, at) for at in intention.at.tolist()])

    @override
    def until(self, user: ReplayUser, at: int) -> int:
        return self.week.next_closed(user.model.clock, at)


@dataclass(eq=False)
class RecentWaits(Trigger):
    """Active while the user has waited too long: the mean over its most recently ended jobs.

    It is evaluated when a unit of work is due, over the user's jobs that ran and whose unit has
    finished: users are notified when a whole unit has finished. Before ``last`` such jobs it is not
    active. A user who has lost patience and renounces everything gets no new waits: without
    ``memory`` the user never comes back.

    Parameters
    ----------
    wait
        s; active while the mean wait is larger.
    times
        Active while the sum of waits is larger than this multiple of the sum of run times; give
        either this or ``wait``.
    last
        Number of jobs that count, the most recently ended ones. The default is unconfirmed.
    memory
        s; jobs that ended longer ago do not count. None for no limit.

    Raises
    ------
    QuantityError
        If a number is out of range.
    """

    when = "recent-waits"
    listens = True

    wait: int | None = setting(None, "the mean wait is longer than this", "s", least=0)
    _: KW_ONLY
    times: float | None = setting(
        None, "instead of wait: waits are longer than this multiple of the run times", least=0
    )
    last: int = setting(5, "jobs that count, those that ended last (unconfirmed)", least=1)
    memory: int | None = setting(
        None, "jobs that ended longer ago do not count; by default all do", "s", above=0
    )

    def __post_init__(self) -> None:
        if (self.wait is None) == (self.times is None):
            raise QuantityError(
                "recent-waits: give a threshold, either wait (s) or times (run times)"
            )
        for name, least in (("wait", 0), ("times", 0), ("last", 1)):
            value = getattr(self, name)
            if value is not None and not least <= value < float("inf"):
                raise QuantityError(f"recent-waits {name} {value:g}: at least {least}")
        if self.memory is not None and self.memory <= 0:
            raise QuantityError(
                f"recent-waits memory {self.memory} s: more than 0, or leave it out"
            )
        # By user: (end, wait, run time) of its last jobs, s.
        self._jobs: dict[int, deque[tuple[int, int, int]]] = {}
        self._unit: dict[int, int] = {}

    @override
    def begin(self, user: ReplayUser) -> None:
        self._jobs[user.number] = deque(maxlen=self.last)
        self._unit[user.number] = UNKNOWN

    @override
    def heard(self, user: ReplayUser, unit: int, now: int) -> None:
        if self._unit[user.number] == unit:
            return  # another reaction shares this trigger and has called it already
        self._unit[user.number] = unit
        jobs, rows = user.model.jobs, user.jobs_of(unit)
        rows = rows[jobs.start[rows] != UNKNOWN]
        if len(rows) > 1:
            rows = rows[np.argsort(jobs.end[rows], kind="stable")]
        start, end = jobs.start[rows], jobs.end[rows]
        waits = start - jobs.submit[rows]
        self._jobs[user.number].extend(
            zip(end.tolist(), waits.tolist(), (end - start).tolist(), strict=True)
        )

    @override
    def which(self, user: ReplayUser, intention: Intention) -> NDArray[np.bool_]:
        jobs = self._jobs[user.number]
        since = 0 if self.memory is None else user.model.time - self.memory
        while jobs and jobs[0][0] < since:
            jobs.popleft()
        most: float = (self.wait or 0) * len(jobs)
        if self.times is not None:
            most = self.times * sum(run for _, _, run in jobs)
        has_lost = len(jobs) == self.last and sum(wait for _, wait, _ in jobs) > most
        return np.full(len(intention.rows), has_lost)


@dataclass(eq=False)
class QueueLonger(Trigger):
    """Active while more jobs than this wait in the queue that the user submits to.

    Evaluated when the unit is due. In a grid the jobs in all queues count.

    Parameters
    ----------
    than
        Number of waiting jobs.
    """

    when = "queue"

    than: int = setting(..., "more jobs than this wait", name="longer_than", least=0)

    @override
    def which(self, user: ReplayUser, intention: Intention) -> NDArray[np.bool_]:
        long = user.site.look().waiting > self.than
        return np.full(len(intention.rows), long)


@dataclass(eq=False)
class ExpectedWait(Trigger):
    """Active for jobs that would have to wait for longer than this.

    What counts is the start in a conservative plan of what waits and runs now, from requested
    times, see :class:`~hpcrowd.environment.engine.public_state.PublicState`; each job of a unit
    alone. Jobs that are too large for the machine do not count: they are rejected at once. On a
    machine of nodes it is the start that its scheduler foretells; jobs for which it foretells none,
    such as those at a limit, count.

    Parameters
    ----------
    above
        s.
    """

    when = "expected-wait"

    above: int = setting(..., "the expected wait is longer than this", "s", least=0)

    @override
    def which(self, user: ReplayUser, intention: Intention) -> NDArray[np.bool_]:
        jobs, state = user.model.jobs, user.site.look()
        if state.has_nodes:
            forecasts = [state.machine.forecast(row) for row in intention.rows.tolist()]
            late = state.now + self.above
            return np.array([not one.rejected and one.start > late for one in forecasts])
        asked = jobs.processors[intention.rows], jobs.requested_time[intention.rows]
        starts = [
            state.expected_start(processors, requested)
            for processors, requested in zip(*(column.tolist() for column in asked), strict=True)
        ]
        return np.array([state.now + self.above < start < FOREVER for start in starts])


def check_nodes(user: ReplayUser, what: str) -> None:
    """Check that a user submits to a machine of nodes, whose jobs can ask for more.

    Raises
    ------
    QuantityError
        If it is none.
    """
    if not user.site.look().has_nodes:
        raise QuantityError(
            f"{what}: needs a machine of nodes; give --machine FILE, such as a slurm.conf"
        )
    jobs = user.model.jobs
    if jobs.requests is None:
        jobs.requests = Requests(len(jobs))


def _comparable(begin: Moment, end: Moment) -> bool:
    if isinstance(begin, datetime) and isinstance(end, datetime):
        return (begin.tzinfo is None) == (end.tzinfo is None)
    return not isinstance(begin, datetime) and not isinstance(end, datetime)


#: Each trigger in its forms, for :mod:`hpcrowd.agents.behaviours.parts`.
DURING, RECENT_WAITS = (During, WeekHours), (RecentWaits,)
QUEUE, EXPECTED_WAIT, ALWAYS = (QueueLonger,), (ExpectedWait,), (Always,)
