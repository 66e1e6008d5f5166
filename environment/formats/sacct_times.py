"""Times of Slurm's accounting: of the clock on the wall, or since 1970.

sacct writes ``2024-01-31T12:00:00`` in the time zone of the machine that it runs on, and does not
say which that is. Where clocks are put back an hour is shown twice. Unix times
(``SLURM_TIME_FORMAT=%s``) and times with an offset (``%FT%T%z``) tell all.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from environment.clock import FIRST_MONDAY, QUARTER, Clock
from environment.formats.sacct_values import EMPTY
from environment.jobs import Int64s

#: A time that is not told.
NO_TIME = -(2**62)

#: What is added to times that are told since 1970, so that one number tells which kind it is.
SINCE_1970 = 2**40

#: s since 1970, the day before 1970 (its first hours in zones west of Greenwich), and year 2200.
FIRST_TIME, LAST_TIME = -86400, 7_258_118_400

_ISO = re.compile(
    rb"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})"
    rb"(?:(Z)|([+-])([0-9]{2}):?([0-9]{2}))?"
)
_RULE = (
    "not a time like 2024-01-31T12:00:00, nor seconds since 1970, from 1970 to 2200; "
    "leave SLURM_TIME_FORMAT alone"
)


class Moments(NamedTuple):
    """Times as seconds since 1970, all of shape (times,).

    Attributes
    ----------
    unix
        The first moment at which clocks show the time; :data:`NO_TIME` where it is not told.
    again
        s from then until clocks show it again; 0 where they do not.
    skipped
        Whether clocks never show it: they are put forward over it, and that moment is taken.
    """

    unix: Int64s
    again: Int64s
    skipped: NDArray[np.bool_]


def parse_time(word: bytes) -> int:
    """Return a time as on the wall, in s since 1970 there; with :data:`SINCE_1970` if in UTC.

    :data:`NO_TIME` where it is not told.
    """
    match = _ISO.fullmatch(word)
    if match:
        try:
            year, month, day, hour, minute, second = map(int, match.groups()[:6])
            moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            raise ValueError(_RULE) from None
        seconds, told = int(moment.timestamp()), 0
        if match[7] or match[8]:
            ahead = int(match[9] or 0) * 3600 + int(match[10] or 0) * 60
            seconds, told = seconds + (ahead if match[8] == b"-" else -ahead), SINCE_1970
    elif word.isdigit() and len(word) <= 12:
        if not int(word):
            return NO_TIME
        seconds, told = int(word), SINCE_1970
    elif word.strip().lower() in EMPTY:
        return NO_TIME
    else:
        raise ValueError(_RULE)
    if not FIRST_TIME <= seconds < LAST_TIME:
        raise ValueError(_RULE)
    return seconds + told


def to_unix(times: Int64s, zone: tzinfo | None) -> Moments:
    """Return times, as :func:`parse_time` gives them, as moments; without ``zone`` as in UTC."""
    unix = np.where(times >= SINCE_1970 + FIRST_TIME, times - SINCE_1970, times)
    again, skipped = np.zeros(len(times), np.int64), np.zeros(len(times), bool)
    walls = np.flatnonzero(local(times))
    if zone is None or not len(walls):
        return Moments(unix, again, skipped)
    quarters, where = np.unique(times[walls] // QUARTER, return_inverse=True)
    table = np.array([_ahead(zone, int(quarter)) for quarter in quarters], np.int64)
    first, second = table[where].T
    unix[walls] -= first
    again[walls] = np.maximum(first - second, 0)
    gaps = walls[first < second]
    skipped[gaps] = True
    clock = Clock(0, zone)
    for place in gaps:
        unix[place] = clock.second_at(int(times[place]) - FIRST_MONDAY)
    return Moments(unix, again, skipped)


def local(times: Int64s) -> NDArray[np.bool_]:
    """Return which times are those of a clock on the wall, shape (times,)."""
    return np.asarray((times != NO_TIME) & (times < SINCE_1970 + FIRST_TIME))


def _ahead(zone: tzinfo, quarter: int) -> tuple[int, int]:
    """Return how far clocks may be ahead that show a quarter since 1970, s: the first, the last."""
    shown = datetime(1970, 1, 1) + timedelta(seconds=quarter * QUARTER)
    first, last = (zone.utcoffset(shown.replace(fold=fold)) or timedelta() for fold in (0, 1))
    return int(first.total_seconds()), int(last.total_seconds())


def time_texts(unix: Int64s, zone: tzinfo | None) -> list[str]:
    """Return moments as sacct writes them in ``zone``, else in UTC; with offset if shown twice."""
    told = unix != NO_TIME
    walls = np.where(told, unix, 0)
    if zone is not None:
        walls = Clock(0, zone).walls(walls) + FIRST_MONDAY
    texts = np.datetime_as_string(walls.astype("datetime64[s]")).tolist()
    for place in np.flatnonzero(~told):
        texts[place] = "Unknown"
    for place in np.flatnonzero(told & (to_unix(walls, zone).again > 0)):
        minutes = int(walls[place] - unix[place]) // 60
        sign = "-" if minutes < 0 else "+"
        texts[place] += f"{sign}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"
    return list(texts)
