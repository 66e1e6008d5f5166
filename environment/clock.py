"""Seconds of a run as local times: hours, days and weeks at the place of the cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.header import Header
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.limits.numbers import LATEST_MOMENT, check_within
from hpcrowd.environment.quantities import parse_duration

HOUR, DAY, WEEK = 3600, 86400, 604800  #: seconds

#: What is between the moments of a window.
BETWEEN = ".."

#: Unix time of the first Monday, 00:00: Unix time 0 was a Thursday.
FIRST_MONDAY = 4 * DAY

#: Clocks change at multiples of this, s.
QUARTER = 900

#: Latest Unix time at which a trace can begin: the year 9999.
LATEST_START = 253_402_300_799

#: s after which the Gregorian calendar repeats: 400 years, a whole number of weeks.
CYCLE = 146_097 * DAY

#: Unix times of the years 2 and 9998, between which Python has dates in every time zone.
FIRST_DATE, LAST_DATE = -62_104_060_800, 253_339_228_800

#: Days of the week in local time, Monday first.
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

#: s; closer times are written only as day of the week and time of day.
NEAR = 6 * DAY

#: Keys of a header that give the time zone; the first that can be read counts.
ZONE_KEYS = ("TimeZoneString", "TimeZone")

#: A UTC offset in hours and minutes, or in seconds.
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::([0-9]{2}))?|([+-])([0-9]{2})([0-9]{2})")
_SECONDS = re.compile(r"[+-]?[0-9]{1,5}")

#: Largest UTC offset, s: 14 hours; offsets are multiples of :data:`QUARTER`.
FARTHEST_ZONE = 50_400

#: A Monday, 00:00, used as the origin if the trace has no start time.
NOMINAL_ORIGIN = datetime(2001, 1, 1, tzinfo=UTC)

#: A second of the run, or a date and time: local, or with a UTC offset.
Moment = int | datetime

#: 1970-01-01 00:00, from which local times are counted.
EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Clock:
    """Converts seconds of the run to local time.

    Attributes
    ----------
    unix_start
        Unix time of the origin.
    zone
        Time zone of the cluster.
    known
        Whether the trace has both start and time zone. Without a zone the start is taken in UTC;
        without a start the origin is a Monday, 00:00.
    """

    unix_start: int = int(NOMINAL_ORIGIN.timestamp())
    zone: tzinfo = UTC
    known: bool = False

    @classmethod
    def of(cls, header: Header) -> Clock:
        """Return the clock of a trace, from ``UnixStartTime`` and :func:`header_zone`."""
        start = header.integer("UnixStartTime")
        if start is None or start <= 0:
            return cls()
        check_within("UnixStartTime in the header of the trace", start, 1, LATEST_START)
        zone = header_zone(header)
        return cls(start) if zone is None else cls(start, zone, known=True)

    @property
    def nominal(self) -> bool:
        """Whether the start is unknown, so that the origin counts as a Monday, 00:00."""
        return not self.known and self.unix_start == int(NOMINAL_ORIGIN.timestamp())

    @property
    def note(self) -> str:
        """The assumptions about start and zone; empty if the trace has both."""
        if self.nominal:
            return "start not in the trace: its origin counts as Monday 00:00"
        return "" if self.known else "time zone not in the trace: times are UTC"

    def local(self, second: int) -> datetime:
        """Return the local date and time at ``second``.

        Python has no dates after the year 9999; then the year is one of the same calendar, a
        multiple of 400 years earlier; :meth:`date` gives the true year.
        """
        unix, _ = _within_calendar(self.unix_start + int(second))
        return datetime.fromtimestamp(unix, UTC).astimezone(self.zone)

    def cycles(self, second: int) -> int:
        """Return how many times 400 years :meth:`local` is earlier than ``second``."""
        return _within_calendar(self.unix_start + int(second))[1]

    def date(self, second: int) -> str:
        """Return the local date of ``second``, such as ``2024-01-09``, in any year."""
        local = self.local(second)
        return f"{local.year + 400 * self.cycles(second):04}-{local:%m-%d}"

    def ahead(self, second: int) -> int:
        """Return the UTC offset of local time at ``second``, s."""
        return _ahead(self.zone, (second + self.unix_start) // QUARTER)

    def wall(self, second: int) -> int:
        """Return the local time of ``second``, as seconds on the clock since a Monday, 00:00."""
        unix = second + self.unix_start
        return unix + _ahead(self.zone, unix // QUARTER) - FIRST_MONDAY

    def second_at(self, wall: int) -> int:
        """Return the second at which :meth:`wall` is ``wall``, the first if there are several.

        A local time that does not exist, because clocks are put forward, counts as the moment of
        the change.
        """
        about = wall + FIRST_MONDAY - self.unix_start
        early = about - self.ahead(about - DAY)
        late = about - self.ahead(about + DAY)
        found = [second for second in sorted((early, late)) if self.wall(second) == wall]
        if found:
            return found[0]
        change = self.next_change(min(early, late), max(early, late))
        return late if change is None else change

    def next_change(self, after: int, until: int) -> int | None:
        """Return when clocks next change, after ``after`` and up to ``until``.

        None if they do not; changes that cancel each other out within a week are not seen.
        """
        if self.zone.utcoffset(None) is not None:  # the same at all times
            return None
        before = self.ahead(after)
        while after < until:
            within = min(after + WEEK, until)
            if self.ahead(within) != before:
                early = (after + self.unix_start) // QUARTER
                late = (within + self.unix_start) // QUARTER
                while late - early > 1:
                    middle = (early + late) // 2
                    if _ahead(self.zone, middle) == before:
                        early = middle
                    else:
                        late = middle
                return late * QUARTER - self.unix_start
            after = within
        return None

    def walls(self, seconds: Int64s) -> Int64s:
        """Return :meth:`wall` for each of ``seconds``, same shape."""
        unix = np.asarray(seconds) + self.unix_start
        quarters, where = np.unique(unix // QUARTER, return_inverse=True)
        ahead = np.array([_ahead(self.zone, int(quarter)) for quarter in quarters], np.int64)
        walls: Int64s = unix + ahead[where].reshape(unix.shape) - FIRST_MONDAY
        return walls

    def second_of_week(self, seconds: Int64s) -> Int64s:
        """Return the local second of the week, from Monday 00:00, of each of ``seconds``."""
        return self.walls(seconds) % WEEK


def zone_of(name: str) -> tzinfo | None:
    """Return the time zone of a name or of a UTC offset; None if it is neither.

    Names are those of the time zone database. Offsets are hours (``+01:00``, ``-0800``, ``GMT+1``)
    or seconds (``-28800``), positive east of Greenwich, as people write them: ``GMT+1`` is an hour
    ahead of UTC, although ``Etc/GMT+1`` of the database, as in POSIX, is an hour behind.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    offset = None
    if match := _OFFSET.fullmatch(name):
        sign, hours, minutes = (match[i] or match[i + 3] or "0" for i in (1, 2, 3))
        offset = (int(hours) * HOUR + int(minutes) * 60) * (-1 if sign == "-" else 1)
    if (offset is None or abs(offset) > FARTHEST_ZONE) and _SECONDS.fullmatch(name):
        offset = int(name)
    if offset is None or abs(offset) > FARTHEST_ZONE or offset % QUARTER:
        return None
    return timezone(timedelta(seconds=offset))


def header_zone(header: Header) -> tzinfo | None:
    """Return the time zone of a trace: the first of :data:`ZONE_KEYS` that can be read, or None."""
    zones = (zone_in(header.get(key)) for key in ZONE_KEYS)
    return next((zone for zone in zones if zone is not None), None)


def zone_in(value: str | None) -> tzinfo | None:
    """Return the time zone in a value of a header, without what follows; None if none can be read.

    A note follows in brackets, after ``#``, or in words: ``Europe/Amsterdam  # CET``.
    """
    words = re.split(r"[#(\n]", value or "")[0].split()
    if not words:
        return None
    zone = zone_of("".join(words))  # also GMT +1
    if zone is None and not re.search(r"[0-9]", "".join(words[1:])):
        zone = zone_of(words[0])
    return zone


def parse_moment(value: Any) -> int | datetime:
    """Return a second of the run, or a local date and time.

    Values are seconds; durations since the origin, such as ``2d 16h``; or a date and time of ISO
    8601, such as ``1996-10-14 16:00``, as text or as in TOML.
    """
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > LATEST_MOMENT:
            raise QuantityError(f"moment {value}: later than {LATEST_MOMENT:,} s")
        return value
    if isinstance(value, str) and value.strip():
        try:
            alone = f"{value.strip()}s"  # s of the run, as a number is
            parts = [alone] if value.strip().isdecimal() else value.split()
            return sum(map(parse_duration, parts))
        except QuantityError:
            pass
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            pass
    raise QuantityError(
        f"moment {value!r}: neither s of the run, nor durations such as '2d 16h', nor a date such "
        "as '1996-10-14 16:00'"
    )


def parse_window(text: str) -> tuple[Moment | None, Moment | None]:
    """Return the moments of a window such as ``1996-10-14..1996-10-15 12:00``; None for open ends.

    Raises QuantityError when it is not two moments with dots between them.
    """
    parts = text.split(BETWEEN)
    if len(parts) != 2:
        raise QuantityError(
            f"window {text!r}: has to be FROM..TO, such as 2d..3d or '1996-10-14..1996-10-15 12:00'"
        )
    begin, end = (parse_moment(part) if part.strip() else None for part in parts)
    return begin, end


def second_of(moment: Moment | str, clock: Clock) -> int:
    """Return a moment as a second of the run; a text is read by :func:`parse_moment`.

    Raises QuantityError if it is a date and the trace has no start time.
    """
    moment = parse_moment(moment)
    if not isinstance(moment, datetime):
        return moment
    if clock.nominal:
        raise QuantityError(
            f"date {moment}: the trace has no start time; give seconds of the run, or put "
            "UnixStartTime into the header of the trace"
        )
    if moment.tzinfo is not None:
        return int(moment.timestamp()) - clock.unix_start
    try:
        return clock.second_at(int((moment - EPOCH).total_seconds()) - FIRST_MONDAY)
    except (OverflowError, ValueError):
        raise QuantityError(f"date {moment}: too close to the end of the calendar") from None


def moment(clock: Clock, second: int, *, near: int | None = None) -> str:
    """Return a second as local time: ``Tue 2024-01-09 14:02:10``.

    If the trace has no start time, weeks are counted: ``week 1 Tue 14:02:10``. ``near`` is a second
    known to the reader: then seconds are left out, and the date too if it is less than six days
    away, ``Tue 14:02``.
    """
    local = clock.local(second)
    day = DAYS[local.weekday()]
    time = f"{local:%H:%M:%S}" if near is None else f"{local:%H:%M}"
    if near is not None and abs(second - near) < NEAR:
        return f"{day} {time}"
    if clock.nominal:
        return f"week {clock.wall(second) // WEEK - clock.wall(0) // WEEK + 1} {day} {time}"
    return f"{day} {clock.date(second)} {time}"


def offsets(zone: tzinfo, shown: int) -> tuple[int, int]:
    """Return how far clocks are ahead of UTC, s, when they show a time first, and when last.

    The time is in s on the clock since 1970-01-01 00:00; beyond the calendar they are not ahead.
    """
    try:
        moment = EPOCH + timedelta(seconds=shown)
    except OverflowError:
        return 0, 0
    both = (zone.utcoffset(moment.replace(fold=fold)) or timedelta() for fold in (0, 1))
    first, last = (int(offset.total_seconds()) for offset in both)
    return first, last


@lru_cache(maxsize=2**20)
def _ahead(zone: tzinfo, quarter: int) -> int:
    """Return the UTC offset of local time in a quarter of an hour since Unix time 0, s."""
    moment, _ = _within_calendar(quarter * QUARTER)
    local = datetime.fromtimestamp(moment, UTC).astimezone(zone)
    return int((local.utcoffset() or timedelta()).total_seconds())


def _within_calendar(unix: int) -> tuple[int, int]:
    """Return a Unix time that ``datetime`` can hold, and the cycles of the calendar to add to it.

    The calendar repeats every 400 years, with the same days of the week and the same rules for
    daylight saving time.
    """
    if FIRST_DATE <= unix < LAST_DATE:
        return unix, 0
    cycles = (unix - FIRST_DATE) // CYCLE if unix < FIRST_DATE else (unix - LAST_DATE) // CYCLE + 1
    return unix - cycles * CYCLE, cycles
