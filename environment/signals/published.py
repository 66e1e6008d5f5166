"""Files of carbon intensities, prices and temperatures as they are published.

Grid operators and data services publish CSV files that differ in everything: names of columns,
delimiters, decimal commas, local times. :class:`SignalFile` finds out what it can, and refuses what
could mean two things. Recognized among others (names of columns from public descriptions and code
that reads them, the files themselves unconfirmed):

    Electricity Maps            Datetime (UTC), Carbon intensity gCO2eq/kWh (direct)
    NESO (Great Britain)        Datetime (UTC), Actual Carbon Intensity (gCO2/kWh)
    RTE eCO2mix (France)        Date and Heures, Taux de Co2, between tabs
    ENTSO-E transparency        MTU (CET/CEST), Day-ahead Price [EUR/MWh] or (EUR/MWh)
    SMARD (Germany)             Datum von, Datum bis, prices of several zones: name one
    Open-Meteo                  time, temperature_2m, after some lines about the place
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timezone, tzinfo
from math import isfinite
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import QuantityError, SignalError, check_choice
from hpcrowd.environment.jobs import Float64s, Int64s
from hpcrowd.environment.limits.inputs import read_bytes
from hpcrowd.environment.quantities import duration_text, plural
from hpcrowd.environment.signals.repeats import REPEATS, Repeat
from hpcrowd.environment.signals.signal import FIELDS, Signal, usual_steps
from hpcrowd.environment.signals.times import (
    NOT_A_TIME,
    NOT_WHOLE,
    LocalTimes,
    column_zone,
    no_such_time,
    parse_time,
    zone_of,
)

#: What happens with steps that are missing.
Gaps = Literal["error", "hold", "interpolate"]

GAPS: tuple[Gaps, ...] = ("error", "hold", "interpolate")

#: s of the longest gap that is filled in unless another is given.
MOST_GAP = 3 * HOUR

#: Texts that mean that a value is missing.
MISSING = ("", "-", "\u2013", "n/a", "n/e", "na", "nan", "null", "none")

#: Lines in which the header is searched: some files begin with lines about their source.
HEADER_LINES = 40

#: Columns of times, without what is in brackets.
TIME_COLUMNS = (
    "datetime", "date time", "date/time", "timestamp", "mtu", "time", "datum von", "date from",
    "start date", "start time", "starttime", "from", "start", "begin", "beginn", "time interval",
    "valid time", "mess datum", "utc", "date", "datum",
)  # fmt: skip

#: Columns of the time of day next to one of dates.
HOUR_COLUMNS = (
    "heures", "heure", "time", "uhrzeit", "anfang", "start", "von", "tid", "hour", "hora",
)  # fmt: skip

#: Columns of values, the first found counts; names in lower case, and digits not lowered.
VALUE_COLUMNS = (
    r"carbon intensity gco2eq/kwh \(direct\)", r"actual carbon intensity.*", r"taux de co2.*",
    r"day-ahead price.*", r"value", r"carbon[ _]intensity.*", r"price.*",
    r"temperature.*", r"lufttemperatur.*",
)  # fmt: skip

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_SECONDS = re.compile(r"-?\d{1,15}", re.ASCII)
_UNIT = re.compile(r"[\[(]([^\[\]()]+/[kMG]?Wh)[\])]|(\S+/[kM]Wh)")
_LOWERED = str.maketrans("\u2080\u2081\u2082\u2083\u2084", "01234")


@dataclass(frozen=True)
class SignalFile:
    """How to read a file with a signal.

    Attributes
    ----------
    path
        CSV file; delimiters are commas, semicolons or tabs.
    column
        Name of the column of values; detected if it is well known, or the only one with numbers.
    time_column
        Name of the column of times; detected if empty. For dates and times of day in two columns,
        both names with a plus: ``Date+Heures``.
    zone
        Time zone of local times without an offset, such as ``Europe/Stockholm``. If times have
        offsets or their column is in UTC, it is the zone of the place, whose hours repeat.
    factor
        Values are multiplied by it: 0.001 makes prices per MWh those per kWh.
    gaps
        Missing steps: an ``error``; ``hold`` the value before; or ``interpolate`` between the
        values before and after.
    most
        s of the longest gap that is filled in.
    repeat
        Whether the signal repeats to cover a run, by ``week`` or ``year``.
    rows
        Pairs of a column and a text: only lines with these texts count, such as
        ``("Area", "BZN|SE3")``.
    missing
        Texts that mean that a value is missing, such as ``-999``, beyond :data:`MISSING`.

    Raises
    ------
    QuantityError
        If an option is wrong.
    """

    path: str | os.PathLike[str]
    column: str = ""
    time_column: str = ""
    zone: str = ""
    factor: float = 1.0
    gaps: Gaps = "error"
    most: int = MOST_GAP
    repeat: Repeat = "no"
    rows: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("gaps", self.gaps, GAPS)
        check_choice("repeat", self.repeat, REPEATS)
        if not (isfinite(self.factor) and self.factor > 0):
            raise QuantityError(f"signal: factor {self.factor:g}: must be more than 0")
        if self.most < 0:
            raise QuantityError(f"signal: most {self.most}: must be 0 s or more")
        if self.zone:
            zone_of(self.zone)

    def read(self, *, least: float | None = None) -> Signal:
        """Return the signal.

        Parameters
        ----------
        least
            Smallest value, after ``factor``, that is not a mistake; None for any.

        Raises
        ------
        SignalError
            If something is wrong; the message is one line with file, line, field and value.
        """
        return self.parse(_text(self.path).splitlines(), Path(self.path).name, least=least)

    def parse(
        self, lines: Sequence[str], source: str = "signal", *, least: float | None = None
    ) -> Signal:
        """Return the signal in the lines of a file, as :meth:`read` does."""
        zone = zone_of(self.zone) if self.zone else None
        try:
            return _Reader(self, lines, source, least).signal(zone)
        except csv.Error as error:
            raise SignalError(source, f"not CSV: {error}") from None

    @property
    def _detects(self) -> bool:
        """Whether an option says that a file is not read by the strict rules of time and value."""
        return bool(self.column or self.time_column or self.rows or self.missing) or (
            self.gaps != "error" or bool(self.zone)
        )


class _Line(NamedTuple):
    """A line with a time: its number in the file, and what its cells of time and value say."""

    number: int
    time: str
    value: str


class _Reader:
    """Reads the lines of one file."""

    def __init__(
        self, options: SignalFile, lines: Sequence[str], source: str, least: float | None
    ) -> None:
        self._options, self._source, self._least = options, source, least
        simple = _is_simple(lines)
        self._missing = {*MISSING, *(text.strip().lower() for text in options.missing)}
        if simple and not options._detects:
            self._missing = set()
        first, self._delimiter, self._names = self._header(lines)
        while self._names and not self._names[-1]:
            self._names.pop()
        self._time = self._time_places()
        self._field = " ".join(self._names[place] for place in self._time)
        self._rows = self._lines(lines, first)
        self._place = 1 if simple and not options.column else self._value_place()
        first_time = self._rows[0][1][self._time[0]] if self._rows else ""
        self._seconds = simple and _SECONDS.fullmatch(first_time) is not None

    def signal(self, zone: tzinfo | None) -> Signal:
        """Return the signal; ``zone`` is that of the options."""
        field = self._names[self._place]
        lines = [
            _Line(number, " ".join(cells[place] for place in self._time), cells[self._place])
            for number, cells in self._rows
        ]
        own = self._column_zone()
        fixed = isinstance(own, timezone)  # then zone is that of the place, not of the times
        local = own if fixed or zone is None else zone
        numbers = _numbers([line.value for line in lines], self._delimiter)
        times, values, kept, lost = [], [], [], []
        places = LocalTimes(local)
        for line, number in zip(lines, numbers, strict=True):
            where = f"{self._source}, line {line.number}"
            gone = line.value.lower() in self._missing
            if number is None and not gone:
                raise SignalError(where, "not a number; write for example 312.5", field, line.value)
            unix = self._unix(line, where, places)
            if unix is None and not gone:
                assert local is not None
                raise no_such_time(where, self._field, line.time, local)
            if gone or number is None:
                lost += [(unix, line)] if unix is not None else []
                continue
            value = number * self._options.factor
            if self._least is not None and value < self._least:
                rule = f"must be {self._least:g} or more; correct it, or name it in missing"
                raise SignalError(where, rule, field, line.value)
            if not isfinite(value):
                raise SignalError(where, "too large", field, line.value)
            times.append(unix)
            values.append(value)
            kept.append(line)
        seconds = np.array(times, np.int64)
        self._check_order(seconds, kept)
        filled = self._filled(seconds, np.array(values), kept, lost)
        unit = _UNIT.search(field) if self._options.factor == 1 else None
        return Signal(
            *filled,
            absolute=not self._seconds,
            source=self._source,
            zone=zone if zone is not None else None if fixed else own,
            repeat=self._options.repeat,
            filled=len(filled[0]) - len(seconds),
            unit=(unit[1] or unit[2]) if unit else "",
        )

    # ---- the table ----------------------------------------------------------------------------

    def _header(self, lines: Sequence[str]) -> tuple[int, str, list[str]]:
        """Return the number of lines up to the header, the delimiter, and the names of columns."""
        wanted = self._options.time_column
        for number, line in enumerate(lines[:HEADER_LINES], start=1):
            for delimiter in ";\t,":
                cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
                names = [_plain(cell) for cell in cells]
                if wanted:
                    found = all(_plain(name) in names for name in _columns(wanted, names))
                else:
                    found = any(_bare(cell) in TIME_COLUMNS for cell in cells)
                if found and len(cells) > 1:
                    return number, delimiter, cells
        if not any(line.strip() for line in lines):
            raise SignalError(
                self._source, "empty; a signal has a header time,value and a line per step"
            )
        if wanted:
            rule = "not a column in any of the first lines; write the name as in the header"
            raise SignalError(self._source, rule, "time_column", wanted)
        raise SignalError(
            f"{self._source}, line 1",
            "not the header of a signal; write time,value, or name the column of times with "
            "time_column",
            "",
            lines[0],
        )

    def _lines(self, lines: Sequence[str], first: int) -> list[tuple[int, list[str]]]:
        """Return the lines after the header that count, with their numbers."""
        wanted = [(self._named(name, "rows"), text.strip()) for name, text in self._options.rows]
        found, most = [], len(self._names)
        reader = csv.reader(lines[first:], delimiter=self._delimiter)
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            number = first + reader.line_num
            if len(cells) < most or any(cells[most:]):
                raise SignalError(
                    f"{self._source}, line {number}",
                    f"{plural(len(cells), 'column')}, the header has {most}; remove lines that are "
                    "not data, and quote decimal commas between commas",
                )
            if all(cells[place] == text for place, text in wanted):
                found.append((number, cells))
        if not found and wanted:
            said = ", ".join(f"{name} = {text}" for name, text in self._options.rows)
            raise SignalError(self._source, "no such line; check texts and columns", "rows", said)
        return found

    def _named(self, name: str, option: str) -> int:
        """Return the place of a column by its name."""
        places = [place for place, one in enumerate(self._names) if _plain(one) == _plain(name)]
        if len(places) != 1:
            what = "the name of several columns" if places else "not a column"
            raise SignalError(
                self._source, f"{what}; columns are {', '.join(self._names)}", option, name
            )
        return places[0]

    def _time_places(self) -> list[int]:
        """Return the place of the column of times, or those of date and time of day."""
        if self._options.time_column:
            plain = [_plain(name) for name in self._names]
            wanted = _columns(self._options.time_column, plain)
            return [self._named(name, "time_column") for name in wanted]
        names = [_bare(name) for name in self._names]
        dates = [names.index(name) for name in ("date", "datum") if name in names]
        hours = [names.index(name) for name in HOUR_COLUMNS if name in names]
        if dates and hours:
            return [dates[0], hours[0]]
        return [next(names.index(name) for name in TIME_COLUMNS if name in names)]

    def _column_zone(self) -> tzinfo | None:
        zones = [column_zone(self._names[place]) for place in self._time]
        return next((zone for zone in zones if zone is not None), None)

    def _value_place(self) -> int:
        """Return the place of the column of values."""
        if self._options.column:
            return self._named(self._options.column, "column")
        others = [place for place in range(len(self._names)) if place not in self._time]
        for known in VALUE_COLUMNS:
            places = [
                place
                for place in others
                if re.fullmatch(known, _plain(self._names[place])) and self._has_numbers(place)
            ]
            if places:
                break
        else:
            places = [place for place in others if self._has_numbers(place, only=True)]
        if len(places) != 1:
            what = "several columns of values" if places else "no column of numbers"
            among = places or others
            raise SignalError(
                self._source,
                f"{what}; name one with column: {', '.join(self._names[p] for p in among)}",
            )
        return places[0]

    def _has_numbers(self, place: int, *, only: bool = False) -> bool:
        """Return whether a column has numbers; ``only`` numbers, but for those missing."""
        texts = [cells[place] for _, cells in self._rows]
        present = [text for text in texts if text.lower() not in self._missing]
        numbers = [number is not None for number in _numbers(present, self._delimiter)]
        return any(numbers) and (all(numbers) or not only)

    # ---- times --------------------------------------------------------------------------------

    def _unix(self, line: _Line, where: str, places: LocalTimes) -> int | None:
        """Return Unix time of a line, or the second of the run; None if it does not exist."""
        if self._seconds:
            if _SECONDS.fullmatch(line.time):
                return int(line.time)
            rule = "not whole seconds of the run, as the first time is"
            raise SignalError(where, rule, self._field, line.time)
        try:
            wall, offset = parse_time(line.time)
        except (ValueError, OverflowError) as error:
            rule = NOT_WHOLE if str(error) == NOT_WHOLE else NOT_A_TIME
            raise SignalError(where, rule, self._field, line.time) from None
        try:
            return places.unix(wall, offset)
        except ValueError:
            rule = 'local time without an offset; give its zone, such as zone = "Europe/Paris"'
            raise SignalError(where, rule, self._field, line.time) from None

    def _check_order(self, times: Int64s, lines: list[_Line]) -> None:
        if len(times) < 2:
            raise SignalError(
                self._source, f"{plural(len(times), 'step')}; a signal needs at least 2"
            )
        wrong = np.flatnonzero(np.diff(times) <= 0)
        if len(wrong):
            place = int(wrong[0]) + 1
            again = times[place] == times[place - 1]
            what = "again" if again else "earlier than the step before"
            raise SignalError(
                f"{self._source}, line {lines[place].number}",
                f"comes {what}; sort the steps by time, each time once, or choose lines with rows",
                self._field,
                lines[place].time,
            )

    def _filled(
        self,
        times: Int64s,
        values: Float64s,
        lines: list[_Line],
        lost: list[tuple[int, _Line]],
    ) -> tuple[Int64s, Float64s]:
        """Return times and values with what is missing filled in."""
        usual, steps = usual_steps(times), np.diff(times)
        gaps = np.flatnonzero(steps > usual)
        most = 0 if self._options.gaps == "error" else self._options.most
        extra = []
        for place in gaps:
            gone = int(steps[place] - usual[place])
            if gone > most:
                self._refuse(times, lines, lost, int(place), gone, int(usual[place]))
            extra.append(np.arange(times[place] + usual[place], times[place + 1], usual[place]))
        if not extra:
            return times, values
        more = np.concatenate(extra)
        if self._options.gaps == "interpolate":
            between = np.interp(more, times, values)
        else:
            between = values[np.searchsorted(times, more) - 1]
        order = np.argsort(np.concatenate([times, more]))
        return (
            np.concatenate([times, more])[order],
            np.concatenate([values, between])[order],
        )

    def _refuse(
        self,
        times: Int64s,
        lines: list[_Line],
        lost: list[tuple[int, _Line]],
        place: int,
        gone: int,
        usual: int,
    ) -> None:
        """Raise the error of a gap, at the first missing value or at the line after it."""
        if self._options.gaps == "error":
            cure = 'fill it in, or say gaps = "hold" or "interpolate"'
        else:
            most = duration_text(self._options.most)
            cure = f"longer than most = {most}, the longest that is filled; fill it in"
        inside = [line for unix, line in lost if times[place] < unix < times[place + 1]]
        if inside:
            raise SignalError(
                f"{self._source}, line {inside[0].number}",
                f"missing, a gap of {duration_text(gone)}; {cure}",
                self._names[self._place],
                inside[0].value,
            )
        after = lines[place + 1]
        raise SignalError(
            f"{self._source}, line {after.number}",
            f"{gone + usual} s after the step before, the usual step is {usual} s: a gap of "
            f"{duration_text(gone)}; {cure}",
            self._field,
            after.time,
        )


def _is_simple(lines: Sequence[str]) -> bool:
    """Return whether the header is that of the strict format; so is none at all."""
    header = next(csv.reader(line[:99] for line in lines[:1]), None)
    return header is None or tuple(name.strip().lower() for name in header) == FIELDS


def _text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file in UTF-8, or as older programs in Europe write it."""
    try:
        data = read_bytes(path)
    except OSError as error:
        raise SignalError(
            str(path), f"cannot be read: {error.strerror}; check the name of the signal file"
        ) from None
    if b"\0" in data:
        raise SignalError(str(path), "not a text file; give a CSV file in UTF-8")
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            pass
    return data.decode("latin-1")


def _plain(name: str) -> str:
    """Return the name of a column for comparisons: lower case, single blanks, no lowered digits."""
    return " ".join(name.translate(_LOWERED).lower().split())


def _columns(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that a text means: one, with a plus in it or not, or several with pluses."""
    return [text] if _plain(text) in names else text.split("+")


def _bare(name: str) -> str:
    """Return the name of a column of times without brackets and the zone."""
    words = re.sub(r"[(\[].*?[)\]]|(?<=[a-z])[ _]utc$", "", _plain(name))
    return " ".join(words.replace("_", " ").split())


def _numbers(texts: Sequence[str], delimiter: str) -> list[float | None]:
    """Return numbers, None for other texts.

    If the delimiter is not a comma and one of the texts has one, the last of point and comma is
    that of decimals and the other one separates thousands.
    """
    plain = [re.sub(r"(?<=\d)[\u00a0\u202f ](?=\d{3})", "", text) for text in texts]
    plain = [text.replace("\u2212", "-") for text in plain]
    if delimiter != ",":
        both = next((text for text in plain if "," in text and "." in text), None)
        if both is not None and both.rindex(".") > both.rindex(","):
            plain = [re.sub(r"(?<=\d),(?=\d{3})", "", text) for text in plain]
        elif any("," in text for text in plain):
            plain = [re.sub(r"(?<=\d)\.(?=\d{3})", "", text).replace(",", ".") for text in plain]
    return [float(text) if _NUMBER.fullmatch(text) else None for text in plain]
