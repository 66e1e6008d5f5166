"""Signals over time, such as a price or the carbon intensity of electricity, read from CSV.

A file has two columns, with a header, and one line for each step::

    time,value
    2024-01-08T00:00:00+01:00,312.5
    2024-01-08T01:00:00+01:00,298.0

``time`` is either whole seconds of the run or a date and time of ISO 8601 with its offset from
universal time, the same kind on all lines. A value is valid from its time until the next one; the
last value for the length of the usual step, which is the most common one.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

import numpy as np

from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import SignalError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.limits.inputs import read_bytes
from hpcrowd.environment.quantities import plural

#: The columns of a file, in this order.
FIELDS = ("time", "value")


@dataclass(frozen=True, eq=False)
class Signal:
    """A step function over time.

    Attributes
    ----------
    times
        The beginning of each step, ascending, shape (steps,): s of the run, or Unix time.
    values
        The value of each step, shape (steps,).
    absolute
        Whether ``times`` are Unix times.
    source
        The origin, for messages.

    Raises
    ------
    SignalError
        If times do not ascend or have a gap, or a value is not a number.
    """

    times: Int64s
    values: np.ndarray
    absolute: bool = False
    source: str = "signal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", np.asarray(self.times, np.int64))
        object.__setattr__(self, "values", np.asarray(self.values, np.float64))
        if self.times.shape != self.values.shape or self.times.ndim != 1:
            raise SignalError(
                self.source,
                f"{self.times.size} times and {self.values.size} values: give one value for "
                "each time",
            )
        fault = _first_fault(self.times, self.values)
        if fault is not None:
            step, field, rule = fault
            value = self.times[step] if field == "time" else self.values[step]
            raise SignalError(f"{self.source}, step {step + 1}", rule, field, f"{value}")

    def __repr__(self) -> str:
        return f"<Signal {self.source}: {len(self.times):,} steps of {self.step} s>"

    @cached_property
    def step(self) -> int:
        """The usual step, s: the most common one, and the shortest if several are as common."""
        steps, counts = np.unique(np.diff(self.times), return_counts=True)
        return int(steps[counts.argmax()])

    def seconds(self, clock: Clock) -> Int64s:
        """Return the beginnings of the steps and the end of the last one, s, shape (steps + 1,).

        Raises
        ------
        SignalError
            If times are dates and the trace has no start time.
        """
        edges = np.append(self.times, self.times[-1] + self.step)
        if not self.absolute:
            return edges
        if clock.nominal:
            raise SignalError(
                self.source,
                "times are dates, but the trace has no start time; give times in s of the run, or "
                "put UnixStartTime into the header of the trace",
            )
        shifted: Int64s = edges - clock.unix_start
        return shifted

    def periods(
        self, clock: Clock, *, above: float | None = None, below: float | None = None
    ) -> list[tuple[int, int]]:
        """Return (from, to), s of the run, of periods with values above or below a threshold."""
        edges = self.seconds(clock)
        active = np.zeros(len(self.values), bool)
        if above is not None:
            active |= self.values > above
        if below is not None:
            active |= self.values < below
        change = np.diff(np.concatenate([[0], active.astype(np.int64), [0]]))
        begins, ends = edges[change == 1].tolist(), edges[change == -1].tolist()
        return list(zip(begins, ends, strict=True))


def read_signal(path: str | os.PathLike[str]) -> Signal:
    """Read a signal from a file; see the text of the module for its format.

    Raises
    ------
    SignalError
        If something is wrong; the message is one line with file, line, field and value.
    """
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except OSError as error:
        raise SignalError(
            str(path), f"cannot be read: {error.strerror}; check the name of the signal file"
        ) from None
    except UnicodeDecodeError:
        raise SignalError(str(path), "not a text file; give a CSV file in UTF-8") from None
    return parse_signal(text.splitlines(), source=Path(path).name)


def parse_signal(lines: Iterable[str], source: str = "signal") -> Signal:
    """Return the signal in the lines of a CSV file, the header first.

    Raises
    ------
    SignalError
        If something is wrong; the message is one line.

    Examples
    --------
    >>> parse_signal(["time,value", "0,310", "3600,295.5"])
    <Signal signal: 2 steps of 3600 s>
    """
    reader = csv.reader(lines)
    header = next(reader, None)
    if header is None:
        raise SignalError(source, "empty; a signal has a header time,value and a line per step")
    names = tuple(name.strip().lower() for name in header)
    if names != FIELDS:
        raise SignalError(
            f"{source}, line 1",
            "not the header of a signal; write time,value",
            "",
            ",".join(header),
        )
    times: list[int] = []
    values: list[float] = []
    where: list[tuple[int, list[str]]] = []
    kinds: set[bool] = set()
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        line = f"{source}, line {reader.line_num}"
        if len(cells) != len(FIELDS):
            raise SignalError(line, "not a time and a value with one comma", "", ",".join(cells))
        seconds, absolute = _time(cells[0].strip(), line)
        kinds.add(absolute)
        if len(kinds) > 1:
            raise SignalError(
                line, "seconds and dates in one file; use one of them", "time", cells[0]
            )
        times.append(seconds)
        values.append(_value(cells[1].strip(), line))
        where.append((reader.line_num, cells))
    fault = _first_fault(np.array(times, np.int64), np.array(values))
    if fault is not None:
        step, field, rule = fault
        if step == len(where):
            raise SignalError(source, rule)
        number, cells = where[step]
        raise SignalError(f"{source}, line {number}", rule, field, cells[FIELDS.index(field)])
    return Signal(np.array(times, np.int64), np.array(values), kinds.pop(), source)


def _time(text: str, line: str) -> tuple[int, bool]:
    """Return seconds of the run or Unix time, and whether it is Unix time."""
    if re.fullmatch(r"-?\d+", text, re.ASCII):
        return int(text), False
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        rule = "neither whole seconds of the run nor a date and time such as 2024-01-08T00:00+01:00"
        raise SignalError(line, rule, "time", text) from None
    if moment.tzinfo is None:
        rule = "date without its offset from universal time; add for example +01:00, or Z"
        raise SignalError(line, rule, "time", text)
    if moment.microsecond:
        raise SignalError(line, "not a whole second; leave out the fraction", "time", text)
    return int(moment.timestamp()), True


def _value(text: str, line: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SignalError(line, "not a number; write for example 312.5", "value", text) from None


def _first_fault(times: Int64s, values: np.ndarray) -> tuple[int, str, str] | None:
    """Return the first step that breaks a rule, in which field, and the rule."""
    if len(times) < 2:
        return len(times), "time", f"{plural(len(times), 'step')}; a signal needs at least 2"
    infinite = np.flatnonzero(~np.isfinite(values))
    if len(infinite):
        return int(infinite[0]), "value", "not a finite number; fill in what is missing"
    steps = np.diff(times)
    if steps.min() <= 0:
        first = int(np.flatnonzero(steps <= 0)[0])
        what = "again" if steps[first] == 0 else "earlier than the step before"
        return first + 1, "time", f"comes {what}; sort the steps by time, each time once"
    lengths, counts = np.unique(steps, return_counts=True)
    usual = int(lengths[counts.argmax()])
    if steps.max() > usual:
        first = int(np.flatnonzero(steps > usual)[0])
        what = f"{steps[first]} s after the step before, the usual step is {usual} s: a gap"
        return first + 1, "time", f"{what}; fill it in, or bring the signal to one step"
    return None
