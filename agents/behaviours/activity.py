"""When users are at work: the third part of a composed behaviour, see :mod:`behaviours.composed`.

========================= =======================================================================
:class:`SameWindow`       one window for all users, given
:class:`WorkPattern`      day or night, weekdays or weekend, drawn for each user (distribution)
:class:`RecordedSessions` at work during recorded sessions (fluid)
========================= =======================================================================

Profiles fitted to each user are in :mod:`hpcrowd.agents.behaviours.profiles`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, override

import numpy as np

from hpcrowd.agents.behaviours.decisions import Why
from hpcrowd.agents.behaviours.parts import AFTER_MIDNIGHT, Part, setting
from hpcrowd.environment.clock import DAY, HOUR, WEEK, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.options import made
from hpcrowd.environment.registry import Seam

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.user import User
    from hpcrowd.agents.behaviours.when import Release
    from hpcrowd.agents.work.units import Units


#: Source of the numbers of :class:`Shifts`.
ZAKAY = "Zakay and Feitelson 2015, section VII-B"

#: Days of the week, Monday is 0.
WORKING_DAYS = (0, 1, 2, 3, 4)
WEEKEND = (5, 6)
ALL_DAYS = (0, 1, 2, 3, 4, 5, 6)


def joined(periods: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return the beginnings and ends of periods, in order, with touching ones merged."""
    begins: list[int] = []
    ends: list[int] = []
    for begin, end in sorted(periods):
        if ends and begin <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            begins.append(begin)
            ends.append(end)
    return begins, ends


class WeeklyWindow:
    """Pieces of the local week in which a user may submit.

    Parameters
    ----------
    pieces
        (opens, closes), s after Monday 00:00 local time; open from ``opens`` on and before
        ``closes``, at most a week later. Pieces may touch or overlap.

    Raises
    ------
    QuantityError
        When it would never open.
    """

    def __init__(self, pieces: Iterable[tuple[int, int]]) -> None:
        flat = []
        for opens, closes in pieces:
            if not 0 <= opens < WEEK or not opens < closes <= opens + WEEK:
                raise QuantityError(
                    f"window {opens} to {closes} s of the week: must open within the week, before "
                    "it closes, and close within a week"
                )
            flat.append((opens, min(closes, WEEK)))
            if closes > WEEK:
                flat.append((0, closes - WEEK))
        if not flat:
            raise QuantityError("window without hours: never opens; give hours and days")
        self._opens, self._closes = joined(flat)
        self._first_again = self._opens[0] + WEEK

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """The pieces in order, with touching ones merged, s after Monday 00:00."""
        return list(zip(self._opens, self._closes, strict=True))

    def is_open(self, clock: Clock, second: int) -> bool:
        """Return whether the window is open at ``second``."""
        of_week = clock.wall(second) % WEEK
        piece = bisect_right(self._opens, of_week) - 1
        return piece >= 0 and of_week < self._closes[piece]

    def next_open(self, clock: Clock, second: int) -> int:
        """Return ``second`` if the window is open then, else the second at which it next opens."""
        while True:
            of_week = clock.wall(second) % WEEK
            piece = bisect_right(self._opens, of_week) - 1
            if piece >= 0 and of_week < self._closes[piece]:
                return second
            later = self._opens[piece + 1] if piece + 1 < len(self._opens) else self._first_again
            opens = second + later - of_week
            change = clock.next_change(second, opens)
            if change is None:
                return opens
            second = change  # a clock change may skip the opening, or repeat it

    def next_closed(self, clock: Clock, second: int) -> int:
        """Return ``second`` if the window is closed then, else the second at which it closes.

        Raises
        ------
        QuantityError
            If it is open all week.
        """
        if self.pieces == [(0, WEEK)]:
            raise QuantityError("window of the whole week: never closes")
        while self.is_open(clock, second):
            of_week = clock.wall(second) % WEEK
            closes = second + self._closes[bisect_right(self._opens, of_week) - 1] - of_week
            change = clock.next_change(second, closes)  # it may skip the closing, or repeat hours
            second = closes if change is None else change
        return second


@dataclass(frozen=True)
class ActivityWindow:
    """The same hours on some days of the week, in local time.

    Attributes
    ----------
    opens, closes
        s after local midnight; active from ``opens`` on and before ``closes``. A window that closes
        before it opens is open at night: on each of the days until ``closes``, and from ``opens``.
    days
        Days of the week, Monday is 0.

    Raises
    ------
    QuantityError
        When it would never open.
    """

    opens: int = 8 * HOUR
    closes: int = 18 * HOUR
    days: tuple[int, ...] = WORKING_DAYS

    def __post_init__(self) -> None:
        if not (0 <= self.opens < DAY and 0 < self.closes <= DAY) or self.opens == self.closes:
            raise QuantityError(
                f"window {self.opens} to {self.closes} s: both must be times of one day, and differ"
            )
        if not self.days:
            raise QuantityError("window without days: never opens; name days of the week")
        if not set(self.days) <= set(ALL_DAYS):
            raise QuantityError(f"days {self.days}: must be days from 0 (Monday) to 6 (Sunday)")

    def shifted(self, by: int) -> ActivityWindow:
        """Return the window ``by`` seconds later (or earlier); a day's window stays on one day."""
        if self.opens > self.closes:
            opens, closes = (self.opens + by) % DAY, (self.closes + by - 1) % DAY + 1
            return replace(self, opens=opens, closes=closes)
        by = max(-self.opens, min(DAY - self.closes, by))
        return replace(self, opens=self.opens + by, closes=self.closes + by)

    @cached_property
    def week(self) -> WeeklyWindow:
        """The window as pieces of the week."""
        if self.opens < self.closes:
            hours: Sequence[tuple[int, int]] = [(self.opens, self.closes)]
        else:
            hours = [(0, self.closes), (self.opens, DAY)]
        return WeeklyWindow((day * DAY + a, day * DAY + b) for day in self.days for a, b in hours)

    def next_open(self, clock: Clock, second: int) -> int:
        """Return ``second`` if the window is open then, else the second at which it next opens."""
        return self.week.next_open(clock, second)

    def is_open(self, clock: Clock, second: int) -> bool:
        """Return whether the window is open at ``second``."""
        return self.week.is_open(clock, second)


class Activity(Part):
    """Decides when users are at work. Shared by all users of a behaviour; subclass it."""

    seam = Seam(
        "Activity", 'window = "{0}" in a file of users, or in Python Composed(when, window=...)'
    )

    #: The reason of its waits in the log of decisions.
    why: ClassVar[Why] = Why.WINDOW

    @classmethod
    def make(cls, units: Units, fit: Units, settings: Any = None) -> Activity | None:
        """Return the part; None for users who are always at work.

        Parameters
        ----------
        units
            Recorded units that are replayed.
        fit
            Recorded units that it is fitted to.
        settings
            An object of the class that :attr:`settings` names, or options by name; None for the
            defaults.
        """
        part: Activity = made(cls, (), settings)
        return part

    def begin(self, user: User) -> None:
        """Prepare for a user, before the run begins."""

    def is_open(self, user: User, at: int) -> bool:
        """Return whether the user is at work at second ``at``."""
        raise NotImplementedError(f"{type(self).__name__} must define is_open()")

    def next_open(self, user: User, at: int, release: Release) -> int:
        """Return when the user submits a released unit that is due at ``at``: then or later.

        Parameters
        ----------
        user
            The user.
        at
            s; when the unit would arrive from a user who is always at work.
        release
            The unit to submit, and what released it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define next_open()")


class Always(Activity):
    """Users are always at work."""

    name = "always"

    @override
    @classmethod
    def make(cls, units: Units, fit: Units, settings: None = None) -> None:
        return None


class SameWindow(Activity):
    """All users are at work in the same window of the local week.

    Parameters
    ----------
    window
        The window.
    """

    name = table = "hours"
    settings = ActivityWindow

    def __init__(self, window: ActivityWindow | WeeklyWindow) -> None:
        self.window = window

    @override
    def is_open(self, user: User, at: int) -> bool:
        return self.window.is_open(user.model.clock, at)

    @override
    def next_open(self, user: User, at: int, release: Release) -> int:
        return self.window.next_open(user.model.clock, at)


@dataclass(frozen=True)
class Shifts:
    """Shares of users and their hours (Zakay and Feitelson 2015, section VII-B).

    Attributes
    ----------
    opens, closes
        s after local midnight; the day begins at 7:30 and ends at 17:30.
    shift
        s; each user's hours are moved by a uniform draw from minus to plus this, one hour.
    day_share
        Share of users who work by day; the others work at night: 0.7.
    weekday_share
        Share of users who work from Monday to Friday; the others work at weekends: 0.8.
    """

    opens: int = setting(7 * HOUR + HOUR // 2, "when the day begins", AFTER_MIDNIGHT, ZAKAY)
    closes: int = setting(
        17 * HOUR + HOUR // 2, "when it ends and the night begins", AFTER_MIDNIGHT, ZAKAY
    )
    shift: int = setting(HOUR, "a user's hours are moved by up to this", "s", ZAKAY, least=0)
    day_share: float = setting(0.7, "share of users who work by day", "", ZAKAY, least=0, most=1)
    weekday_share: float = setting(
        0.8, "share of users who work from Monday to Friday", "", ZAKAY, least=0, most=1
    )

    def __post_init__(self) -> None:
        for name in ("day_share", "weekday_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise QuantityError(f"{name} {getattr(self, name):g}: must be between 0 and 1")
        if self.shift < 0:
            raise QuantityError(f"shift {self.shift} s: at least 0")
        ActivityWindow(self.opens, self.closes)
        if self.closes - self.opens == DAY and self.day_share < 1:
            raise QuantityError(
                f"day from {self.opens} to {self.closes} s: leaves no night for the share "
                f"{1 - self.day_share:g} of users who work then; shorten it or set day_share to 1"
            )

    def hours(self, by_day: bool) -> tuple[int, int]:
        """Return when the day opens and closes, or the night, s after local midnight."""
        return (self.opens, self.closes) if by_day else (self.closes % DAY, self.opens or DAY)


class WorkPattern(Activity):
    """Each user draws hours and days once (Zakay and Feitelson 2015, section VII-B).

    Nights on weekdays are the hours before the morning and after the evening of each day from
    Monday to Friday: users who work then are active on Monday at 3:00, but not on Saturday at 3:00.

    Parameters
    ----------
    shifts
        Shares and hours.
    """

    name = table = "shifts"
    settings = Shifts

    def __init__(self, shifts: Shifts | None = None) -> None:
        self.shifts = shifts or Shifts()
        self.windows: dict[int, ActivityWindow] = {}

    @override
    def begin(self, user: User) -> None:
        shifts, stream = self.shifts, user.stream
        by_day = stream.random() < shifts.day_share
        on_weekdays = stream.random() < shifts.weekday_share
        shift = int(stream.integers(-shifts.shift, shifts.shift + 1))
        days = WORKING_DAYS if on_weekdays else WEEKEND
        self.windows[user.number] = ActivityWindow(*shifts.hours(by_day), days).shifted(shift)

    @override
    def is_open(self, user: User, at: int) -> bool:
        return self.windows[user.number].is_open(user.model.clock, at)

    @override
    def next_open(self, user: User, at: int, release: Release) -> int:
        return self.windows[user.number].next_open(user.model.clock, at)


class RecordedSessions(Activity):
    """A user is at work during its recorded sessions (Zakay and Feitelson 2015, section VII-C).

    A session lasts from its first to its last submission. After the last session they repeat, from
    the week after the last one on, on the same days of the week at the same local time. A user who
    is absent comes back at the beginning of the next session.

    Parameters
    ----------
    units
        Recorded units, whose sessions are used. Users without recorded units are always at work.
    """

    name = "sessions"

    def __init__(self, units: Units) -> None:
        self._units = units
        self._of: dict[int, _Sessions] = {}

    @override
    @classmethod
    def make(cls, units: Units, fit: Units, settings: None = None) -> RecordedSessions:
        return cls(fit)

    @override
    def begin(self, user: User) -> None:
        units = self._units
        place = int(np.searchsorted(units.users, user.number))
        if place == len(units.users) or units.users[place] != user.number:
            return
        first, last = units.user_first[place : place + 2]
        new = np.flatnonzero(units.continues[first:last] == 0) + first
        begins, ends = self.spans(user, new, np.append(new[1:], last) - 1)
        self._of[user.number] = _Sessions(user.model.clock, begins.tolist(), ends.tolist())

    def spans(self, user: User, first: Int64s, last: Int64s) -> tuple[Int64s, Int64s]:
        """Return the beginnings and ends of a user's sessions, s; override for another definition.

        Parameters
        ----------
        user
            The user.
        first, last
            The first and the last unit of each of its sessions, in their order.
        """
        return self._units.start[first], self._units.last[last]

    @override
    def is_open(self, user: User, at: int) -> bool:
        sessions = self._of.get(user.number)
        return sessions is None or sessions.is_open(at)

    @override
    def next_open(self, user: User, at: int, release: Release) -> int:
        sessions = self._of.get(user.number)
        return at if sessions is None or sessions.is_open(at) else sessions.next_begin(at)

    def next_session(self, user: User, at: int) -> int:
        """Return when the next session of a user begins after ``at``, even if one is open.

        For a user without recorded sessions, who is always in one, return ``at``.
        """
        sessions = self._of.get(user.number)
        return at if sessions is None else sessions.next_begin(at)


class _Sessions:
    """The sessions of a user, as recorded and then repeated.

    Parameters
    ----------
    clock
        Local time.
    begins, ends
        s; first and last submission of each, in their order.
    """

    def __init__(self, clock: Clock, begins: list[int], ends: list[int]) -> None:
        self.clock = clock
        self.begins, self.ends = begins, ends
        self._last_end = max(ends)
        # Sorted again: with clocks put back, a later session may have an earlier local time.
        walls = sorted((clock.wall(a), clock.wall(b)) for a, b in zip(begins, ends, strict=True))
        self._wall_begins = [begin for begin, _ in walls]
        self._wall_ends = list(accumulate((end for _, end in walls), max))
        weeks = self._wall_ends[-1] // WEEK - self._wall_begins[0] // WEEK + 1
        self.period = weeks * WEEK

    def is_open(self, at: int) -> bool:
        """Return whether a session is open at ``at``."""
        if at <= self._last_end:
            place = bisect_right(self.begins, at) - 1
            return place >= 0 and at <= self.ends[place]
        wall = self.clock.wall(at)
        times = self._round(wall)
        if not times:
            return False
        wall -= times * self.period
        place = bisect_right(self._wall_begins, wall) - 1
        return place >= 0 and wall <= self._wall_ends[place]

    def next_begin(self, at: int) -> int:
        """Return when the next session after ``at`` begins."""
        if at < self.begins[-1]:
            return self.begins[bisect_right(self.begins, at)]
        wall = self.clock.wall(at)
        times = self._round(wall)
        place = bisect_right(self._wall_begins, wall - times * self.period)
        while True:
            if place == len(self.begins):
                times, place = times + 1, 0
            second = self.clock.second_at(self._wall_begins[place] + times * self.period)
            if second > at and times:
                return second
            place += 1

    def _round(self, wall: int) -> int:
        """Return how often the sessions have been repeated at a local time, 0 at first."""
        return max(0, (wall - self._wall_begins[0] // WEEK * WEEK) // self.period)
