"""Runs in progress, simulated or played back; and the runs of one page, which advance together.

A page is used by one person, but by several threads: the one that plays, and those that handle
clicks. Everything that advances a course takes the lock of its sitting.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.agents.behaviours.user import User
from hpcrowd.analysis.views import Moment, activity_count, next_event_of
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, number_of
from hpcrowd.environment.stops import FOREVER
from hpcrowd.environment.waiting_reasons import reasons_at, reasons_of

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.cluster import Cluster
    from hpcrowd.environment.grid.broker import GridBroker
    from hpcrowd.scenarios.inspector.subject import Subject
    from hpcrowd.scenarios.kinds.base import Staged


#: Simulated time after which the search for the next event of a user pauses, s.
SEARCHED_AT_ONCE = 8 * WEEK

#: Real time after which it pauses, s.
PATIENCE = 8.0

#: A long run is done in pieces of this simulated time, s, so that it can be stopped in between.
PIECE = 24 * HOUR


class Course(ABC):
    """A run that can be advanced.

    Attributes
    ----------
    label
        A short name for titles.
    log_full
        Whether decisions were lost because the log was full.
    """

    label: str
    log_full = False
    _moment: Moment | None = None

    @property
    @abstractmethod
    def now(self) -> int:
        """The current time of the run, s since the origin."""

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether the run has finished."""

    @abstractmethod
    def advance(self, until: int) -> None:
        """Advance to second ``until``, or to the end if that comes first."""

    @abstractmethod
    def advance_to_event(self, user: int) -> bool:
        """Advance to the next second at which a user submits, or a job of the user starts or ends.

        Returns
        -------
        bool
            False if there was none within :data:`SEARCHED_AT_ONCE` or :data:`PATIENCE`, or at all.
        """

    @abstractmethod
    def look(self) -> Moment:
        """Return the current moment."""

    @abstractmethod
    def reasons(self, rows: Sequence[int]) -> dict[int, str]:
        """Return why jobs wait, in words, by row; rows without a known reason are left out.

        Parameters
        ----------
        rows
            Rows of waiting jobs.
        """

    def skip_to(self, first: int) -> None:
        """Advance to the day of second ``first``, before which nothing happens."""
        if first < FOREVER:
            self.advance(first // DAY * DAY)

    def moment(self) -> Moment:
        """Return the current moment, the same object until the run advances."""
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
                # A user without a job in the queue is only affected by rare events.
                self.advance(min(until, self._rare()))
            if activity_count(self.moment(), user) != before:
                return True
            if time.perf_counter() > limit:
                break
        return False

    def _advance_to_start(self, rows: Int64s, until: int, limit: float) -> None:
        """Advance until one of the waiting jobs starts or leaves the queue, at most to a second."""
        model, jobs = self.model, self.model.jobs
        states = jobs.state[rows].copy()
        while self.now < until and not self.over and time.perf_counter() < limit:
            # If jobs have ended at this second, the scheduler has not run yet.
            looks = bool(np.any(jobs.end == self.now))
            step = self.now if looks else max(self.now, min(model.next_time, until))
            self.advance(min(step + 1, until))
            started = (jobs.start[rows] != UNKNOWN) & (jobs.start[rows] < self.now)
            if started.any() or (jobs.state[rows] != states).any():
                return

    def _rare(self) -> int:
        """Return when a user may next act, or nodes fail, s; plus the second when it is visible."""
        now, times = self.now, [self.model.next_event_time()]
        for cluster in self.model.clusters.values():
            # Past changes are applied when the cluster next has something to do.
            if cluster.engine.change_at >= now:
                times.append(cluster.engine.change_at)
        return max(now, min(times)) + 1

    @override
    def look(self) -> Moment:
        if len(self.model.agents) != self._agents:  # a user came or left
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
        The run, with its work if that can be recovered; shared by all pages, so it is only read.
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
        # Events of this second are visible one second later.
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
            told = reasons_at(
                run.jobs, self._now - 1, scheduler, run.processors, held=bool(run.holds), rows=rows
            )
        except QuantityError:
            return {}  # a custom scheduler, of which only the name is known
        return {one.row: one.words(run.clock) for one in told}


@dataclass
class Seat:
    """One of the runs of a page.

    Attributes
    ----------
    subject
        The subject of the run.
    given
        Settings from the reader, by name.
    course
        The run; None if it could not begin.
    error
        Why not, in one line.
    """

    subject: Subject
    given: dict[str, str] = field(default_factory=dict)
    course: Course | None = None
    error: str = ""

    def reset(self, given: Mapping[str, str] | None = None) -> None:
        """Begin again, with other settings if they are given."""
        if given is not None:
            self.given = dict(given)
        self.course, self.error = None, ""
        try:
            self.course = self.subject.begin(self.given)
        except HpcrowdError as error:
            self.error = str(error)


class Sitting:
    """The runs of a page.

    Parameters
    ----------
    subjects
        The subjects of the runs, one or two.

    Attributes
    ----------
    seats
        The runs.
    closed
        Whether the page has been closed; then the runs no longer advance.
    held
        The lock: while it is held, the runs do not advance.
    """

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.seats = [Seat(subject) for subject in subjects]
        self.closed = threading.Event()
        self.held = threading.RLock()
        self._halt = threading.Event()

    def begin(self, settings: Sequence[Mapping[str, str]] = ()) -> None:
        """Begin all runs, with settings for each if there are any."""
        with self.held:
            for place, seat in enumerate(self.seats):
                seat.reset(settings[place] if place < len(settings) else None)

    def reset(self, place: int, given: Mapping[str, str]) -> None:
        """Begin a run again with other settings; the others stay where they are."""
        with self.held:
            self.seats[place].reset(given)

    def add(self, subject: Subject, given: Mapping[str, str]) -> None:
        """Add a run."""
        with self.held:
            self.seats.append(Seat(subject, dict(given)))
            self.seats[-1].reset()

    def remove(self, place: int) -> None:
        """Remove a run."""
        with self.held:
            del self.seats[place]

    @property
    def courses(self) -> list[Course]:
        """The runs that could begin."""
        return [seat.course for seat in self.seats if seat.course is not None]

    def number_of(self, user: str) -> int | None:
        """Return the number of a user who is asked for by name; None without a run.

        Raises
        ------
        QuantityError
            When no user has the name.
        """
        if not self.courses:
            return None
        return number_of(self.courses[0].moment().jobs.names, "user", user)

    def who(self, user: int) -> str:
        """Return the name of a user, or its number without one."""
        return self.courses[0].moment().jobs.who(user) if self.courses else str(user)

    @property
    def now(self) -> int:
        """The time of the furthest run, s since the origin."""
        return max((course.now for course in self.courses), default=0)

    @property
    def over(self) -> bool:
        """Whether all runs have finished."""
        return all(course.over for course in self.courses)

    def halt(self) -> None:
        """Request that the thread that advances the runs stop at the next opportunity."""
        self._halt.set()

    def advance(self, until: int, tell: Callable[[], object] | None = None) -> None:
        """Advance all runs to a second, in pieces; stop in between on request.

        Parameters
        ----------
        until
            s since the origin.
        tell
            Called after each piece.
        """
        self._halt.clear()
        while not self._stopped:
            with self.held:
                behind = [one for one in self.courses if one.now < until and not one.over]
                if not behind:
                    return
                target = min(until, min(course.now for course in behind) + PIECE)
                for course in behind:
                    course.advance(target)
            if tell is not None:
                tell()

    def advance_to_event(self, place: int, user: int) -> bool:
        """Advance until something happens to a user of a run; return whether it did.

        The other runs follow to the same second.
        """
        with self.held:
            course = self.seats[place].course
            if course is None:
                return False
            found = course.advance_to_event(user)
        self.advance(course.now)
        return found

    def close(self) -> None:
        """Stop for good and remove all runs."""
        self.closed.set()
        with self.held:
            self.seats.clear()

    @property
    def _stopped(self) -> bool:
        return self._halt.is_set() or self.closed.is_set()
