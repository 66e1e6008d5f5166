"""Seconds of a run as local times: days, weeks and hours where the cluster stands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import numpy as np

from environment.jobs import Int64s
from environment.trace import Header

HOUR, DAY, WEEK = 3600, 86400, 604800  #: seconds

#: A Monday, 00:00, that stands for the origin when a trace does not say when it began.
NOMINAL_ORIGIN = datetime(2001, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Clock:
    """What local time it is at a second of the run.

    Attributes
    ----------
    unix_start
        Unix time of the origin.
    zone
        Time zone of the cluster.
    known
        Whether the trace told start and time zone. A start without a zone is taken in UTC; without
        a start the origin is a Monday, 00:00.
    """

    unix_start: int = int(NOMINAL_ORIGIN.timestamp())
    zone: tzinfo = UTC
    known: bool = False

    @classmethod
    def of(cls, header: Header) -> Clock:
        """Return the clock of a trace: its ``UnixStartTime`` and ``TimeZoneString``."""
        start = header.integer("UnixStartTime")
        if start is None or start <= 0:
            return cls()
        words = (header.get("TimeZoneString") or "").split()
        try:
            return cls(start, ZoneInfo(words[0]), known=True)
        except (IndexError, KeyError, ValueError, OSError):
            return cls(start)

    @property
    def nominal(self) -> bool:
        """Whether the origin only stands for a Monday, 00:00."""
        return not self.known and self.unix_start == int(NOMINAL_ORIGIN.timestamp())

    @property
    def note(self) -> str:
        """What the trace did not tell and is taken instead; empty when it told everything."""
        if self.nominal:
            return "start not in the trace: its origin counts as Monday 00:00"
        return "" if self.known else "time zone not in the trace: times are UTC"

    def local(self, second: int) -> datetime:
        """Return the local date and time at ``second``."""
        return (
            datetime.fromtimestamp(self.unix_start, UTC) + timedelta(seconds=second)
        ).astimezone(self.zone)

    def second_of_week(self, seconds: Int64s) -> Int64s:
        """Return how many local seconds after Monday 00:00 each of ``seconds`` lies, same shape."""
        unix = np.asarray(seconds) + self.unix_start
        hours, where = np.unique(unix // HOUR, return_inverse=True)
        shifts = np.array([self._shift(int(hour) * HOUR) for hour in hours], np.int64)
        shift = shifts[where].reshape(unix.shape)
        changing = [
            h for h, s in zip(hours, shifts, strict=True) if self._shift((h + 1) * HOUR) != s
        ]
        for place in np.flatnonzero(np.isin(unix // HOUR, changing)):
            shift.flat[place] = self._shift(int(unix.flat[place]))
        monday = 4 * DAY  # Unix time 0 was a Thursday
        return (unix + shift - monday) % WEEK

    def _shift(self, unix: int) -> int:
        """Return how far local time is ahead of universal time, s."""
        local = datetime.fromtimestamp(int(unix), UTC).astimezone(self.zone)
        return int((local.utcoffset() or timedelta()).total_seconds())
