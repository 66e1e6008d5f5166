"""Dates and times as published files write them, and where they are in universal time.

    2023-01-01 00:00, 2023-01-01T00:00:00+01:00     ISO 8601
    01.01.2023 00:00, 01/01/2023 00:00:00           day first
    2023010100, 202301010015                        without separators
    01.01.2023 00:00 - 01.01.2023 01:00             a range; its beginning counts
    27/10/2024 02:00:00 (CEST)                      with an abbreviation behind

In the autumn hour that occurs twice, times without an offset go by their order: the first pass is
summer time, the second, where times go back, is standard time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from hpcrowd.environment.clock import EPOCH, HOUR
from hpcrowd.environment.errors import QuantityError, SignalError

#: Hours ahead of universal time of the abbreviations that publishers write behind times.
ABBREVIATIONS = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "CEST": 2, "MEZ": 1,
    "MESZ": 2, "EET": 2, "EEST": 3,
}  # fmt: skip

#: Zones that names of columns mean. The transparency platform of ENTSO-E heads columns of local
#: time with "(CET/CEST)", formerly "(CET)".
COLUMN_ZONES = {
    "cet/cest": "Europe/Brussels", "cet": "Europe/Brussels", "wet/west": "Europe/Lisbon",
    "eet/eest": "Europe/Helsinki", "gmt/bst": "Europe/London",
}  # fmt: skip

_RANGE = re.compile(r"\s+[-\u2013]\s+")
_MARK = re.compile(rf"(.*\d)\s*\(?({'|'.join(ABBREVIATIONS)})\)?", re.ASCII)
_DAY_FIRST = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})(.*)", re.ASCII)
_SLASHES = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(.*)", re.ASCII)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)?(\d\d)?(\d\d)?", re.ASCII)
_CLOCK = re.compile(r"[T ,]*(\d):(.*)", re.ASCII)
_OFFSET = re.compile(r"(?:utc|gmt)\s*([+-])\s*(\d{1,2})(?::?(\d\d))?", re.ASCII)

NOT_A_TIME = (
    "not a date and time such as 2024-01-08 00:00 or 08.01.2024 00:00, day first; remove lines "
    "that are not data"
)

NOT_WHOLE = "not a whole second; leave out the fraction"


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name.

    Raises
    ------
    QuantityError
        If there is none of this name.
    """
    try:
        return UTC if name.upper() == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise QuantityError(
            f"zone {name!r}: not a time zone; write for example Europe/Stockholm, or UTC"
        ) from None


def column_zone(name: str) -> tzinfo | None:
    """Return the zone that the name of a column means, such as ``Datetime (UTC)``; None without."""
    lower = name.lower()
    offset = _OFFSET.search(lower)
    if offset:
        sign = -1 if offset[1] == "-" else 1
        return timezone(sign * timedelta(hours=int(offset[2]) % 24, minutes=int(offset[3] or 0)))
    if re.search(r"(?<![a-z])(utc|gmt)(?![a-z/])", lower):
        return UTC
    words = re.search(r"\(([a-z/]+)\)", lower)
    return ZoneInfo(COLUMN_ZONES[words[1]]) if words and words[1] in COLUMN_ZONES else None


def parse_time(text: str) -> tuple[int, int | None]:
    """Return local time as s since 1970-01-01 00:00, and its offset from universal time or None.

    Raises
    ------
    ValueError
        If it is not a date and time, or not a whole second.
    """
    text = _RANGE.split(text.strip(), maxsplit=1)[0]
    offset = None
    mark = _MARK.fullmatch(text)
    if mark:
        text, offset = mark[1], ABBREVIATIONS[mark[2]] * HOUR
    moment = _moment(text)
    if moment.microsecond:
        raise ValueError(NOT_WHOLE)
    ahead = moment.utcoffset()
    if ahead is not None:
        offset = int(ahead.total_seconds())
        moment = moment.replace(tzinfo=None)
    return int((moment - EPOCH).total_seconds()), offset


def _moment(text: str) -> datetime:
    compact = _COMPACT.fullmatch(text)
    if compact:
        return datetime(*(int(part) for part in compact.groups(default="0")))  # type: ignore[arg-type]
    day_first, slashes = _DAY_FIRST.fullmatch(text), _SLASHES.fullmatch(text)
    if day_first:
        day, _, month, year, rest = day_first.groups()
    elif slashes:
        year, month, day, rest = slashes.groups()
    else:
        return datetime.fromisoformat(text)
    # An hour of one digit, as spreadsheets write it.
    clock = _CLOCK.fullmatch(rest)
    rest = f"0{clock[1]}:{clock[2]}" if clock else rest.lstrip("T ,")
    return datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}" + (f"T{rest}" if rest else ""))


class LocalTimes:
    """Places local times of one zone in universal time, in the order of a file.

    Parameters
    ----------
    zone
        Their zone; None if it is not known, so that each needs an offset.
    """

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone
        self._latest: int | None = None  # of the autumn hour that is being read
        self._again = False

    def unix(self, wall: int, offset: int | None) -> int | None:
        """Return Unix time of the next time in the file; None if it does not exist.

        Parameters
        ----------
        wall, offset
            As :func:`parse_time` returns them.

        Raises
        ------
        ValueError
            If it has no offset and the zone is not known.
        """
        if offset is not None:
            return wall - offset
        if self._zone is None:
            raise ValueError("no zone")
        local = EPOCH + timedelta(seconds=wall)
        offsets = (local.replace(tzinfo=self._zone, fold=fold).utcoffset() for fold in (0, 1))
        first, second = (int((one or timedelta()).total_seconds()) for one in offsets)
        if first < second:
            return None
        if first == second:
            self._latest, self._again = None, False
            return wall - first
        if self._latest is not None and wall <= self._latest:
            self._again = True
        self._latest = wall
        return wall - (second if self._again else first)


def no_such_time(line: str, field: str, text: str, zone: tzinfo) -> SignalError:
    """Return the error for a local time that clocks leave out."""
    return SignalError(
        line,
        f"does not exist in {zone}, where clocks are put forward; give the zone of the file, such "
        'as zone = "UTC", or remove the line',
        field,
        text,
    )
