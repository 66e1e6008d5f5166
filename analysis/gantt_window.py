"""Windows of Gantt pictures: the busiest day, what a window is called, where it begins and ends."""

from __future__ import annotations

import numpy as np

from analysis import curves
from analysis.run import Run
from environment.clock import DAY
from environment.errors import QuantityError

#: First and last moment, s; None where the run begins or ends.
Window = tuple[int | None, int | None]


def busiest_day(run: Run) -> tuple[int, int] | None:
    """Return the local day, s, with the most processors in use on average; the first of several.

    A run of at most one and a half days is returned whole. None where nothing happened.
    """
    span = curves.span_of(run.jobs)
    if span is None or span[1] - span[0] <= 1.5 * DAY:
        return None if span is None else (span[0], max(span[1], span[0] + 1))
    first, last = (int(run.clock.wall(second)) // DAY for second in span)
    edges = np.array([run.clock.second_at(day * DAY) for day in range(first, last + 2)])
    day = int(curves.processors_in_use(run.jobs, edges).argmax())
    return int(edges[day]), int(edges[day + 1])


def window_name(run: Run, first: int, last: int) -> str:
    """Return what a window is called: one day by its date, else its first and last moment."""
    if run.clock.nominal:
        whole = first % DAY == 0 and last - first == DAY
        return f"day {first // DAY} since the origin" if whole else f"{first:,} to {last:,} s"
    begin, end = run.clock.local(first), run.clock.local(last)
    if run.clock.wall(first) % DAY == 0 and run.clock.wall(last) - run.clock.wall(first) == DAY:
        return f"{begin:%a} {begin.day} {begin:%b %Y}"
    return f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}"


def find_window(run: Run, window: Window | None) -> tuple[int, int]:
    """Return the window that :func:`gantt` draws, s.

    Raises
    ------
    QuantityError
        When it is empty.
    """
    if window is None:
        return busiest_day(run) or (0, DAY)
    first, last = window
    begin, end = curves.span_of(run.jobs) or (0, 1)
    first = begin if first is None else first
    last = max(end, begin + 1) if last is None else last
    if first >= last:
        raise QuantityError(
            f"window from {first} to {last} s: is empty; the run lasts from {begin} to {end} s"
        )
    return first, last
