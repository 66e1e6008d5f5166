"""Step functions of local time: what the clock on the wall shows decides the value."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from hpcrowd.environment.clock import DAY, FIRST_MONDAY, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Float64s, Int64s
from hpcrowd.environment.limits.numbers import LONGEST_DURATION
from hpcrowd.environment.quantities import format_duration
from hpcrowd.environment.signals.steps import Steps

#: Gives the beginnings and values of the steps between two local times (:meth:`Clock.wall`); the
#: first step begins at the first of them.
Pieces = Callable[[int, int], tuple[Int64s, Float64s]]


def stretches(clock: Clock, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (from, to, difference) for each stretch without a change of clocks.

    Parameters
    ----------
    clock
        The clock.
    begin, end
        s of the run.

    Yields
    ------
    tuple
        s of the run, and what to add to a second to have its local time (:meth:`Clock.wall`).
    """
    while begin < end:
        change = clock.next_change(begin, end - 1)
        until = end if change is None else change
        yield begin, until, clock.wall(begin) - begin
        begin = until


def check_span(begin: int, end: int) -> None:
    """Check that a span is short enough to be followed hour by hour.

    Raises
    ------
    QuantityError
        If that is longer than :data:`LONGEST_DURATION`.
    """
    if end - begin > LONGEST_DURATION:
        raise QuantityError(
            f"prices and signals by local time over {format_duration(end - begin)}: at most "
            f"{format_duration(LONGEST_DURATION)}; correct the run times or submissions in the "
            "trace, or leave out what changes by the hour or repeats"
        )


def walls_of(clock: Clock, seconds: Int64s) -> Int64s:
    """Return :meth:`Clock.wall` of many ascending seconds; fast where clocks change rarely."""
    if seconds[-1] - seconds[0] > LONGEST_DURATION:  # clocks change more often than there are days
        return clock.walls(seconds)
    found = list(stretches(clock, int(seconds[0]), int(seconds[-1]) + 1))
    firsts = np.array([first for first, _, _ in found])
    ahead = np.array([difference for _, _, difference in found])
    walls: Int64s = seconds + ahead[np.searchsorted(firsts, seconds, side="right") - 1]
    return walls


def local_steps(clock: Clock, begin: int, end: int, pieces: Pieces) -> Steps:
    """Return a function of local time as one of the seconds from ``begin`` to ``end``.

    A local hour that occurs twice has the same values twice; one that clocks leave out has none.

    Raises
    ------
    QuantityError
        If that is longer than :data:`LONGEST_DURATION`, beyond which steps would fill the memory.
    """
    check_span(begin, end)
    edges, values = [], []
    for first, last, difference in stretches(clock, begin, max(end, begin + 1)):
        starts, found = pieces(first + difference, last + difference)
        edges.append(starts - difference)
        values.append(found)
    edges.append(np.array([max(end, begin + 1)]))
    return Steps(np.concatenate(edges), np.concatenate(values))


def days_since_epoch(wall: Int64s) -> Int64s:
    """Return the days from 1970-01-01 to local times (:meth:`Clock.wall`)."""
    days: Int64s = (wall + FIRST_MONDAY) // DAY
    return days
