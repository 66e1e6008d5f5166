"""Signals over time, such as a price or the carbon intensity of electricity, read from CSV.

A file has two columns, with a header, and one line for each step::

    time,value
    2024-01-08T00:00:00+01:00,312.5
    2024-01-08T01:00:00+01:00,298.0

``time`` is either whole seconds of the run or a date and time of ISO 8601 with its offset from
universal time, the same kind on all lines. A value is valid from its time until the next one; the
last value for the length of the usual step.

Steps may change their length, as prices did that went from hours to quarters of an hour. A length
that at least :data:`USUAL_STEPS` steps have is usual where at least :data:`USUAL_ROW` steps in a
row have it; in a signal without such a row, the most common length is usual. A longer step than the
usual ones before and after it is a gap.

Files as grid operators and data services publish them are read too; see
:class:`hpcrowd.environment.signals.published.SignalFile`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.clock import Clock, moment
from hpcrowd.environment.errors import SignalError, check_choice
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.signals.repeats import REPEATS, Repeat, Repeated
from hpcrowd.environment.signals.steps import Steps
from hpcrowd.environment.signals.walls import local_steps, walls_of

if TYPE_CHECKING:
    from hpcrowd.environment.signals.published import SignalFile

#: The columns of a file, in this order.
FIELDS = ("time", "value")

#: Steps in all, and in a row, that make their length a usual one: a day and a quarter of a day of
#: hourly values.
USUAL_STEPS, USUAL_ROW = 24, 6


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
    zone
        Time zone of its place, whose hours of the day repeat; None for that of the cluster.
    repeat
        Whether it repeats to cover a run: ``no``, by ``week`` or by ``year``.
    filled
        Number of steps that were missing and filled in.
    unit
        Of the values, such as ``EUR/MWh``, if the file says so; empty if not known.

    Raises
    ------
    SignalError
        If times do not ascend or have a gap, or a value is not a number.
    """

    times: Int64s
    values: np.ndarray
    absolute: bool = False
    source: str = "signal"
    zone: tzinfo | None = None
    repeat: Repeat = "no"
    filled: int = 0
    unit: str = ""

    def __post_init__(self) -> None:
        check_choice("repeat", self.repeat, REPEATS)
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

    @cached_property
    def ends(self) -> int:
        """When the last step ends, after the usual step there: s of the run, or Unix time."""
        return int(self.times[-1] + usual_steps(self.times)[-1])

    @property
    def _edges(self) -> Int64s:
        return np.append(self.times, self.ends)

    def seconds(self, clock: Clock) -> Int64s:
        """Return the beginnings of the steps and the end of the last one, s, shape (steps + 1,).

        Raises
        ------
        SignalError
            If times are dates and the trace has no start time.
        """
        edges = self._edges
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
        return Steps(self.seconds(clock), self.values).periods(above=above, below=below)

    def on(self, clock: Clock, begin: int, end: int, *, repeat: Repeat | None = None) -> Steps:
        """Return the signal over the seconds of a run from ``begin`` to ``end``.

        Parameters
        ----------
        clock
            Clock of the run.
        begin, end
            s of the run; at least one second.
        repeat
            Whether it repeats, see :mod:`hpcrowd.environment.signals.repeats`; None for
            :attr:`repeat`. A run that the signal covers has it as it is, unless the signal and the
            cluster are in different zones.

        Raises
        ------
        SignalError
            If it does not cover the run and does not repeat, or is too short to repeat.
        """
        repeat = self.repeat if repeat is None else repeat
        check_choice("repeat", repeat, REPEATS)
        end = max(end, begin + 1)
        if repeat == "no" and self.absolute and clock.nominal:
            raise SignalError(
                self.source,
                "times are dates, but the trace has no start time; let the signal repeat: repeat = "
                '"year" or "week", or put UnixStartTime into the header of the trace',
            )
        if repeat == "no" or self._same_place(clock):
            edges = self.seconds(clock)
            if edges[0] <= begin and end <= edges[-1]:
                inside = slice(*np.searchsorted(edges, [begin + 1, end]) - [1, 0])
                return Steps(
                    np.concatenate([[begin], edges[inside][1:], [end]]), self.values[inside]
                )
        if repeat == "no":
            raise SignalError(self.source, self._not_covered(clock, begin, end))
        repeated = Repeated(self._walls(clock), self.values, repeat, self.source)
        return local_steps(clock, begin, end, repeated)

    def check_least(self, least: float) -> None:
        """Check that no value is less than ``least``.

        Raises
        ------
        SignalError
            With the first value that is.
        """
        small = np.flatnonzero(self.values < least)
        if len(small):
            rule = f"must be {least:g} or more"
            value = f"{self.values[small[0]]:g}"
            raise SignalError(f"{self.source}, step {small[0] + 1}", rule, "value", value)

    def _same_place(self, clock: Clock) -> bool:
        """Return whether its times have a place in the run, and its clocks are the cluster's."""
        if not self.absolute:
            return True
        if clock.nominal:
            return False
        if self.zone is None or str(self.zone) == str(clock.zone):
            return True
        return bool(np.all(self._walls(clock) == walls_of(Clock(0, clock.zone), self._edges)))

    def _walls(self, clock: Clock) -> Int64s:
        """Return the local times at which steps begin, and of the end, shape (steps + 1,)."""
        own = Clock(0, self.zone or clock.zone) if self.absolute else clock
        return walls_of(own, self._edges)

    def _not_covered(self, clock: Clock, begin: int, end: int) -> str:
        first, *_, last = self.seconds(clock)
        spans = [
            f"{moment(clock, one)} to {moment(clock, two)}"
            if self.absolute
            else f"{one} to {two} s of the run"
            for one, two in ((int(first), int(last)), (begin, end))
        ]
        return (
            f"covers {spans[0]}, the run goes from {spans[1]}; give a longer signal, or let it "
            'repeat: repeat = "year" or "week"'
        )


def read_signal(
    path: str | os.PathLike[str], *, least: float | None = None, options: SignalFile | None = None
) -> Signal:
    """Read a signal from a file; see the text of the module for its format.

    Parameters
    ----------
    path
        CSV file, with the columns time and value or as it was published.
    least
        Smallest value that is not a mistake, such as 0 for carbon intensities; None for any.
    options
        How to read a published file, whose path is replaced; None to detect everything.

    Raises
    ------
    SignalError
        If something is wrong; the message is one line with file, line, field and value.
    """
    # It imports this module.
    from hpcrowd.environment.signals.published import SignalFile

    found = SignalFile(path) if options is None else replace(options, path=path)
    return found.read(least=least)


def parse_signal(
    lines: Iterable[str], source: str = "signal", *, least: float | None = None
) -> Signal:
    """Return the signal in the lines of a CSV file with the header ``time,value``.

    Parameters
    ----------
    lines
        Of the file, the header first.
    source
        Its origin, for messages.
    least
        Smallest value that is not a mistake; None for any.

    Raises
    ------
    SignalError
        If something is wrong; the message is one line.

    Examples
    --------
    >>> parse_signal(["time,value", "0,310", "3600,295.5"])
    <Signal signal: 2 steps of 3600 s>
    """
    from hpcrowd.environment.signals.published import SignalFile

    return SignalFile("").parse(list(lines), source, least=least)


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
    usual = usual_steps(times)
    longer = np.flatnonzero(steps > usual)
    if len(longer):
        first = int(longer[0])
        what = f"{steps[first]} s after the step before, the usual step is {usual[first]} s: a gap"
        return first + 1, "time", f"{what}; fill it in, or bring the signal to one step"
    return None


def usual_steps(times: Int64s) -> Int64s:
    """Return how long steps usually are where each of them is, s, shape (times - 1,).

    That is the length of the row of equal steps that a step belongs to, see the text of the module;
    between two such rows the larger of their lengths; without any the most common length.
    """
    steps = np.diff(times)
    begins = np.concatenate([[0], np.flatnonzero(np.diff(steps)) + 1])
    sizes = np.diff(np.append(begins, len(steps)))
    lengths, counts = np.unique(steps, return_counts=True)
    common = np.isin(steps[begins], lengths[counts >= USUAL_STEPS])
    rows = np.flatnonzero(common & (sizes >= USUAL_ROW))
    if not len(rows):
        return np.full(len(steps), lengths[counts.argmax()])
    lengths = steps[begins[rows]]
    place = np.arange(len(sizes))
    before = np.maximum(np.searchsorted(rows, place, side="right") - 1, 0)
    after = np.minimum(np.searchsorted(rows, place, side="left"), len(rows) - 1)
    usual: Int64s = np.repeat(np.maximum(lengths[before], lengths[after]), sizes)
    return usual
