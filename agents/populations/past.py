"""The record of users until a second, and the moments of it that are like now.

From a second *now* each user goes on from an earlier moment of its own record, at the same time of
day, at which it was in a similar situation: as long since its last submission, as many jobs not
over, as active in the week before, and not too long ago. Users with a short record may go on from
moments of others. With each future other moments are drawn. A log that is too short for moments at
the same time of day has them at any; from the second moment on, all are as likely there, as users
would be silent for ever who are silent at its end.

This is the nearest-neighbour bootstrap of Lall and Sharma (Water Resources Research 32(3), 1996)
for each user; the features and the widths of the kernels are our choice.

New users come as they came in some week of the last weeks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.behaviours.profiles import Profiles
from hpcrowd.agents.populations.learned import ends_awaited, session_begins
from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.units import REPEATED
from hpcrowd.environment.clock import DAY, HOUR, WEEK, Clock
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Likeness:
    """Which earlier moments are like now. All numbers are our choice.

    Attributes
    ----------
    days
        Latest days that moments may be from.
    memory
        Days after which the weight of a moment has fallen by the factor e.
    silence, pending, activity
        Widths of the kernels over ln(1 + minutes since the last submission), ln(1 + jobs not over)
        and ln(1 + units submitted in the week before).
    weekend
        Factor on moments of which the days that follow are not the same days of the week.
    prior
        Weight of the moments of other users; that of an own moment that is exactly like now is 1.
    block
        Days that a user goes on from one moment, at most.
    arrivals
        Latest weeks in which new users are counted.
    rest, spacing
        In a short record: the share of it, and at least an hour, that follows each moment; and the
        time between two moments, s.
    """

    days: int = 120
    memory: float = 40.0
    silence: float = 0.7
    pending: float = 0.5
    activity: float = 0.7
    weekend: float = 0.25
    prior: float = 0.3
    block: int = 7
    arrivals: int = 12
    rest: float = 0.25
    spacing: int = HOUR // 4


class Past:
    """The record of all users until a second, as work to go on with.

    Parameters
    ----------
    jobs
        The jobs known at that second, with recorded times; -1 for what has not happened.
    now, clock
        The second, s since the origin of the clock.
    likeness
        Which moments are like now.

    Attributes
    ----------
    work
        The record; jobs that are not over count as ending just now, and those that left the queue
        before they started as starting then, for no time.
    units
        The batches of users.
    recorded_clock, pool_units
        As in :class:`~hpcrowd.agents.populations.components.Pool`.
    """

    def __init__(
        self, jobs: JobTable, now: int, clock: Clock, likeness: Likeness | None = None
    ) -> None:
        self.now, self.clock = now, clock
        self.likeness = likeness or Likeness()
        known = jobs.copy()
        pending = known.recorded_end == UNKNOWN
        known.recorded_end[pending] = now
        never = known.recorded_start == UNKNOWN
        known.recorded_start[never] = known.recorded_end[never]
        known.run_time[:] = known.recorded_end - known.recorded_start
        self.work = Work.of(known)
        self.units = self.work.by_batch
        self.starts = self.units.start
        self.by_user = self.units.user_first.tolist()
        self._pending_now = self._count_pending(jobs, pending)
        self._wall = clock.wall(now)
        self._ahead: dict[int, int] = {}
        self._weights_of: dict[tuple[int, ...], NDArray[np.float64]] = {}

    @property
    def users(self) -> Int64s:
        """The numbers of the users, ascending."""
        return self.units.users

    def _count_pending(self, jobs: JobTable, pending: NDArray[np.bool_]) -> Int64s:
        place = np.searchsorted(self.units.users, jobs.user[pending])
        return np.bincount(place, minlength=len(self.units.users))

    @cached_property
    def profiles(self) -> Profiles:
        """Weekly profiles of the users, by number."""
        return Profiles.fit(self.units, self.clock)

    def set_run_times(self, rows: Int64s, run_times: Int64s) -> None:
        """Set how long jobs run that are not over, rows in the table of the record."""
        row = Column.RUN_TIME - REPEATED.start
        self.units.repeated[self._place_of[rows], row] = run_times

    @cached_property
    def _place_of(self) -> Int64s:
        """The place of each job in the order of the units' rows."""
        place = np.empty(len(self.units.rows), np.int64)
        place[self.units.rows] = np.arange(len(place))
        return place

    @cached_property
    def awaited_ends(self) -> list[int]:
        """For each unit the one whose end released it, -1 where another reason did."""
        return ends_awaited(self.work)

    @cached_property
    def session_begins(self) -> NDArray[np.bool_]:
        """Which units are the first of a session, shape (units,)."""
        return session_begins(self.units)

    @cached_property
    def walls(self) -> Int64s:
        """Local time of the start of each unit, s since a Monday, shape (units,)."""
        return self.clock.walls(self.starts)

    @cached_property
    def _ends(self) -> Int64s:
        """Ends of the jobs of all users, ascending for each, s."""
        work = self.work
        ends = work.jobs.recorded_end[work.sessions.rows]
        count = np.diff(work.sessions.session_first[work.sessions.user_first])
        user = np.repeat(np.arange(len(count)), count)
        ordered: Int64s = ends[np.lexsort((ends, user))]
        return ordered

    @cached_property
    def submits(self) -> Int64s:
        """Submissions of the jobs of all users, ascending for each, s."""
        work = self.work
        return work.jobs.recorded_submit[work.sessions.rows]

    @cached_property
    def jobs_of(self) -> list[int]:
        """Where the jobs of each user begin in :attr:`submits`, and the end."""
        sessions = self.work.sessions
        first: list[int] = sessions.session_first[sessions.user_first].tolist()
        return first

    def moments(self, wall: int) -> Int64s:
        """Return the seconds before now at the time of day of a local time, latest first.

        At least a day of the record follows each. A record that is too short for that has moments
        at any time of day.
        """
        days = self._days(wall)
        if not days:
            return self._any_time
        walls = wall - (self._back(wall) + np.arange(days)) * DAY
        found: Int64s = self.now + walls - self._wall + self._ahead_by_day(walls)
        return found

    def _days(self, wall: int) -> int:
        """Return how many days of the record have a moment at the time of day of a local time."""
        latest = self.now + wall - self._wall - self._back(wall) * DAY
        return min(self.likeness.days, max((latest - self.begin) // DAY + 1, 0))

    @cached_property
    def begin(self) -> int:
        """The first submission of the record, s; now without any."""
        return int(self.submits.min(initial=self.now))

    @cached_property
    def _any_time(self) -> Int64s:
        """Moments of a short record at any time of day, s, latest first."""
        rest = max(int(self.likeness.rest * (self.now - self.begin)), HOUR)
        found: Int64s = np.arange(self.now - rest, self.begin - 1, -self.likeness.spacing)
        return found

    def _ahead_by_day(self, walls: Int64s) -> Int64s:
        """Return by how much clocks are ahead now of those days, s; one number for each day."""
        first = self._wall // DAY
        for day in (first - walls // DAY).tolist():
            if day not in self._ahead:
                noon = self.now - day * DAY
                self._ahead[day] = self.clock.ahead(self.now) - self.clock.ahead(noon)
        return np.array([self._ahead[day] for day in (first - walls // DAY).tolist()], np.int64)

    def features(self, place: int, moments: Int64s) -> NDArray[np.float64]:
        """Return the situation of a user at seconds of the record, shape (3, moments).

        Parameters
        ----------
        place
            Its index among :attr:`users`.
        moments
            s.

        Returns
        -------
        array
            ln(1 + minutes since the last submission), infinite before the first; ln(1 + jobs not
            over); ln(1 + units of the week before).
        """
        a, b = self.jobs_of[place : place + 2]
        submits, ends = self.submits[a:b], self._ends[a:b]
        sent = submits.searchsorted(moments, side="right")
        over = ends.searchsorted(moments, side="right")
        last = submits[np.maximum(sent - 1, 0)]
        silence = np.where(sent > 0, np.log1p(np.maximum(moments - last, 0) / 60), np.inf)
        a, b = self.by_user[place : place + 2]
        starts = self.starts[a:b]
        week = starts.searchsorted(moments, side="right")
        week = week - starts.searchsorted(moments - WEEK, side="right")
        return np.stack((silence, np.log1p(np.maximum(sent - over, 0)), np.log1p(week)))

    def kernel(self, here: NDArray[np.float64], there: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how like situations are, at most 1; 0 before the first submission.

        Parameters
        ----------
        here, there
            Of :meth:`features`, shape (3, 1) and (3, moments).
        """
        like = self.likeness
        width = np.array((like.silence, like.pending, like.activity))[:, None]
        known = np.isfinite(there[0])
        gap = np.where(known, there - here, 0.0) / width
        found: NDArray[np.float64] = np.where(known, np.exp(-0.5 * (gap**2).sum(axis=0)), 0.0)
        return found

    def _weights(self, wall: int, count: int, horizon: int) -> NDArray[np.float64]:
        """Return the weights of the moments by their age in days and their days of the week.

        Parameters
        ----------
        wall, count
            Of :meth:`moments`, and how many there are.
        horizon
            For how long what follows them matters, s.
        """
        if not self._days(wall):
            return np.ones(count)
        back, day = self._back(wall), wall // DAY
        key = day, back, count, horizon
        if key not in self._weights_of:
            like, age = self.likeness, back + np.arange(count)
            weekdays = np.arange(max(1, min(like.block, -(-horizon // DAY))))
            here = ((day + weekdays) % 7) >= 5
            there = (((day - age)[:, None] + weekdays) % 7) >= 5
            differs = (there != here).mean(axis=1)
            self._weights_of[key] = np.exp(-age / like.memory) * like.weekend ** (2 * differs)
        return self._weights_of[key]

    def _back(self, wall: int) -> int:
        """Return how many days before a local time the first moment is that is before now."""
        back: int = max(-(-(wall - self._wall) // DAY), 0) + 1
        return back

    @cached_property
    def _situations(self) -> tuple[Int64s, NDArray[np.float64]]:
        """Moments at the time of day of now, and the situations of all users at them.

        In a short record, whoever was not seen before a moment was silent since the record began:
        most users submit for the first time in it, and would not go on from before that.
        """
        moments = self.moments(self._wall)
        found = [self.features(place, moments) for place in range(len(self.users))]
        there = np.array(found).reshape(len(self.users), 3, len(moments))
        if not self._days(self._wall):
            silence = np.log1p((moments - self.begin) / 60)
            there[:, 0] = np.where(np.isinf(there[:, 0]), silence, there[:, 0])
        return moments, there

    def _others(
        self, here: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return weights of the moments of all users, shape (users, moments), adding up to 1."""
        moments, there = self._situations
        flat = np.moveaxis(there, 1, 0).reshape(3, -1)
        found = self.kernel(here, flat).reshape(len(self.users), len(moments)) * weights
        total = found.sum()
        return found / total if total > 0 else found

    @cached_property
    def choices(self) -> list[tuple[Int64s, NDArray[np.float64]]]:
        """For each user the moments to go on from now, as places in a table, and sums of weights.

        A place is user * moments + moment. Users who are in no situation like any before do
        nothing: the list is empty.
        """
        moments, there = self._situations
        count = len(moments)
        if not count:
            nothing = np.zeros(0, np.int64), np.zeros(0)
            return [nothing] * len(self.users)
        weights = self._weights(self._wall, count, self.likeness.block * DAY)
        now = np.array([self.now], np.int64)
        cache: dict[tuple[int, ...], NDArray[np.float64]] = {}
        found = []
        for place in range(len(self.users)):
            here = self.features(place, now)
            here[1] = np.log1p(self._pending_now[place])
            own = self.kernel(here, there[place]) * weights
            key = tuple(np.rint(here[:, 0] / 0.5).astype(int).tolist())
            if key not in cache:
                cache[key] = self._others(here, weights)
            all_of = (self.likeness.prior * cache[key]).reshape(-1)
            mine = slice(place * count, (place + 1) * count)
            chosen = all_of.copy()
            chosen[mine] += own
            places = np.flatnonzero(chosen > 1e-6)
            sums = np.cumsum(chosen[places])
            found.append((places, sums / sums[-1] if len(sums) else sums))
        return found

    def first_moments(self, stream: np.random.Generator) -> tuple[Int64s, Int64s]:
        """Draw for each user a moment to go on from; return whose record, and which second.

        Whose is -1 for users who do nothing, both of shape (users,).
        """
        moments, _ = self._situations
        drawn = stream.random(len(self.users))
        whose = np.full(len(self.users), UNKNOWN)
        when = np.full(len(self.users), self.now)
        for place, (places, sums) in enumerate(self.choices):
            if len(places):
                one = int(places[min(int(sums.searchsorted(drawn[place])), len(places) - 1)])
                whose[place], which = divmod(one, len(moments))
                when[place] = moments[which]
        return whose, when

    def next_moment(
        self, place: int, at: int, silence: int, stream: np.random.Generator
    ) -> int | None:
        """Draw a moment from which a user goes on at a later second; None if there is none.

        Parameters
        ----------
        place
            The record, by the index of its user among :attr:`users`.
        at
            s, from now on.
        silence
            s since the user's last submission.
        stream
            The user's.
        """
        wall = self.clock.wall(at)
        moments = self.moments(wall)
        if not len(moments):
            return None
        if not self._days(wall):
            return int(stream.choice(moments))
        there = self.features(place, moments)
        like = self.likeness
        gap = (there[0] - np.log1p(silence / 60)) / like.silence
        weights = self._weights(wall, len(moments), like.block * DAY)
        weights = (
            weights * np.where(np.isfinite(gap), np.exp(-0.5 * np.minimum(gap**2, 1e3)), 0.0) + 1e-9
        )
        sums = np.cumsum(weights)
        return int(moments[sums.searchsorted(stream.random() * sums[-1])])

    def new_users(self, horizon: int, stream: np.random.Generator) -> list[tuple[int, int]]:
        """Draw who comes for the first time before a second: whose record, and from which second.

        Those of one of the last weeks come again, at the same time of the week.
        """
        like, weeks = self.likeness, -(-(horizon - self.now) // WEEK)
        first = self.starts[self.units.user_first[:-1]]
        begin = int(first.min()) if len(first) else self.now
        # In the first weeks of a record most of its users are new.
        most = min(like.arrivals, (self.now - begin) // WEEK - 2)
        if most < weeks:
            return []
        back = int(stream.integers(weeks, most + 1))
        moment = self.clock.second_at(self._wall - back * WEEK)
        until = moment + horizon - self.now
        return [
            (place, moment)
            for place in np.flatnonzero((first > moment) & (first <= until)).tolist()
        ]
