"""A run as far as it has come: simulated while somebody looks, or played back."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.agents.behaviours.user import User
from hpcrowd.analysis.views import Moment, activity_count, next_event_of
from hpcrowd.environment.clock import DAY, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.stops import FOREVER
from hpcrowd.environment.waiting_reasons import reasons_at, reasons_of

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.cluster import Cluster
    from hpcrowd.environment.grid.broker import GridBroker
    from hpcrowd.scenarios.kinds.base import Staged


#: Simulated time after which the search for the next event of a user pauses, s.
SEARCHED_AT_ONCE = 8 * WEEK

#: Real time after which it pauses, s.
PATIENCE = 8.0


class Course(ABC):
    """A run that can be moved on.

    Attributes
    ----------
    label
        A short name for titles.
    log_full
        Whether decisions were made that nobody kept.
    """

    label: str
    log_full = False
    _moment: Moment | None = None

    @property
    @abstractmethod
    def now(self) -> int:
        """How far it is, s since the origin."""

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether nothing is left to happen."""

    @abstractmethod
    def advance(self, until: int) -> None:
        """Move on to second ``until``, or to the end if that comes first."""

    @abstractmethod
    def advance_to_event(self, user: int) -> bool:
        """Move on to the next second at which a user submits, or a job of it starts or ends.

        Returns
        -------
        bool
            False when none came within :data:`SEARCHED_AT_ONCE` or :data:`PATIENCE`, or ever.
        """

    @abstractmethod
    def look(self) -> Moment:
        """Return the moment at which it is."""

    @abstractmethod
    def reasons(self, rows: Sequence[int]) -> dict[int, str]:
        """Return why jobs wait, in words, by row; nothing for rows of which nobody can tell.

        Parameters
        ----------
        rows
            Of jobs that wait.
        """

    def skip_to(self, first: int) -> None:
        """Move on to the day in which second ``first`` is, before which nothing happens."""
        if first < FOREVER:
            self.advance(first // DAY * DAY)

    def moment(self) -> Moment:
        """Return the moment at which it is, the same object until it moves on."""
        if self._moment is None:
            self._moment = self.look()
        return self._moment


class LiveCourse(Course):
    """A simulation.

    Parameters
    ----------
    staged
        The simulation before it begins.
    label
        A short name.
    """

    def __init__(self, staged: Staged, label: str) -> None:
        self.staged = staged
        self.model = staged.model
        self.label = label
        self._users: dict[int, User] = {}
        self._agents = 0
        self.skip_to(self.model.next_time)

    @property
    @override
    def now(self) -> int:
        return self.model.time

    @property
    @override
    def over(self) -> bool:
        return self.model.over

    @override
    def advance(self, until: int) -> None:
        if until > self.now and not self.over:
            self._moment = None
            self.model.run(until=until)
            if self.staged.log is not None:
                self.log_full = self.staged.log.dropped > 0

    @override
    def advance_to_event(self, user: int) -> bool:
        begin, limit = self.now, time.perf_counter() + PATIENCE
        before = activity_count(self.moment(), user)
        while not self.over and self.now - begin <= SEARCHED_AT_ONCE:
            moment = self.moment()
            known = next_event_of(moment, user)
            rows = moment.rows_of(user)
            until = self.now + WEEK if known is None else min(known, self.now + WEEK)
            if np.any(moment.waiting[rows]):
                self._advance_to_start(rows[moment.waiting[rows]], until, limit)
            else:
                # Nothing of others concerns who has no job in the queue, only what is rare.
                self.advance(min(until, self._rare()))
            if activity_count(self.moment(), user) != before:
                return True
            if time.perf_counter() > limit:
                break
        return False

    def _advance_to_start(self, rows: Int64s, until: int, limit: float) -> None:
        """Move on until one of the waiting jobs starts or is taken from the queue, or a second."""
        model, jobs = self.model, self.model.jobs
        states = jobs.state[rows].copy()
        while self.now < until and not self.over and time.perf_counter() < limit:
            # Where jobs have ended at this second, the scheduler has not looked yet.
            looks = bool(np.any(jobs.end == self.now))
            step = self.now if looks else max(self.now, min(model.next_time, until))
            self.advance(min(step + 1, until))
            started = (jobs.start[rows] != UNKNOWN) & (jobs.start[rows] < self.now)
            if started.any() or (jobs.state[rows] != states).any():
                return

    def _rare(self) -> int:
        """Return when a user may next do something, or nodes fail, s; one second later it shows."""
        now, times = self.now, [self.model.next_event_time()]
        for cluster in self.model.clusters.values():
            # What has passed happens when something is to be done on the cluster.
            if cluster.engine.change_at >= now:
                times.append(cluster.engine.change_at)
        return max(now, min(times)) + 1

    @override
    def look(self) -> Moment:
        if len(self.model.agents) != self._agents:  # somebody came or left
            self._agents = len(self.model.agents)
            found = [agent for agent in self.model.agents if isinstance(agent, User)]
            self._users = {user.number: user for user in found}
        return Moment.of_model(
            self.model,
            label=self.label,
            work=self.staged.work,
            users=self._users,
            decisions=self.staged.log,
        )

    @override
    def reasons(self, rows: Sequence[int]) -> dict[int, str]:
        model, clock = self.model, self.model.clock
        places: list[Cluster | GridBroker] = list(model.clusters.values())
        if model.broker is not None:
            places.append(model.broker)
        found: dict[int, str] = {}
        for place in places:
            found |= {one.row: one.words(clock) for one in reasons_of(place, rows=rows)}
        return found


class PlayedBack(Course):
    """A finished run.

    Parameters
    ----------
    run
        What came out, with its work where that can be recovered; shared by all pages, so it is only
        looked at.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.label = run.label
        jobs = run.jobs
        times = np.concatenate([jobs.submit, jobs.start, jobs.end])
        self._events = np.unique(times[times != UNKNOWN])
        self._now = 0
        self.log_full = run.decisions is not None and run.decisions.dropped > 0
        self.skip_to(int(self._events[0]) if len(self._events) else FOREVER)

    @property
    @override
    def now(self) -> int:
        return self._now

    @property
    @override
    def over(self) -> bool:
        return not len(self._events) or self._now > int(self._events[-1])

    @override
    def advance(self, until: int) -> None:
        if until > self._now:
            self._moment = None
            last = int(self._events[-1]) + 1 if len(self._events) else 0
            self._now = max(self._now, min(until, last))

    @override
    def advance_to_event(self, user: int) -> bool:
        jobs = self.run.jobs
        rows = np.flatnonzero(jobs.user == user)
        times = np.concatenate([jobs.submit[rows], jobs.start[rows], jobs.end[rows]])
        # What happens at this second has happened in the moment after it.
        times = times[(times != UNKNOWN) & (times >= self._now)]
        if not len(times):
            return False
        self.advance(int(times.min()) + 1)
        return True

    @override
    def look(self) -> Moment:
        return Moment.of_run(self.run, self._now)

    @override
    def reasons(self, rows: Sequence[int]) -> dict[int, str]:
        run = self.run
        scheduler = run.configuration.get("scheduler")
        if not isinstance(scheduler, str) or run.platform or run.sites:
            return {}  # several clusters, or not always the same processors
        try:
            told = reasons_at(run.jobs, self._now - 1, scheduler, run.processors, rows=rows)
        except QuantityError:
            return {}  # a scheduler of one's own, which is known by name only
        return {one.row: one.words(run.clock) for one in told}
