"""Time axes of short windows: hours, minutes and seconds in local time.

:func:`analysis.curves.time_ticks` labels days and longer; here what is shorter than some days.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcrowd.analysis.curves import time_ticks
from hpcrowd.environment.clock import DAY, HOUR, Clock

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Steps between labels, s.
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, *(h * HOUR for h in (1, 2, 3, 6, 12)))

#: Windows longer than this are labelled by days, s.
LONG = 4 * DAY

#: Labels so near to the end, as a part of the window, end there instead of being cut off.
EDGE = 0.02

#: Units in which a run without a date is labelled: the largest whose step is whole, s.
UNITS = ((DAY, "days"), (HOUR, "h"), (60, "min"), (1, "s"))


def hour_ticks(
    clock: Clock, first: int, last: int, most: int = 13
) -> tuple[list[int], list[str], str]:
    """Return where to label a time axis, s, with what, and the name of the axis.

    Parameters
    ----------
    clock
        Local time. Where the trace did not say when it began, times count from its origin.
    first, last
        The window, s.
    most
        Most labels.
    """
    if last - first > LONG:
        return time_ticks(clock, first, last)
    step = next((s for s in STEPS if (last - first) / s <= most), STEPS[-1])
    if clock.nominal:
        size, unit = next((size, unit) for size, unit in UNITS if step % size == 0)
        places = list(range(-(-first // step) * step, last + 1, step))
        return places, [f"{place // size:,}" for place in places], f"{unit} since the origin"
    walls = range(-(-clock.wall(first) // step) * step, clock.wall(last) + 1, step)
    places, texts, day = [], [], None
    for wall in walls:
        second = clock.second_at(wall)
        if not first <= second <= last or clock.wall(second) != wall:
            continue  # the wall never shows it
        local = clock.local(second)
        text = f"{local:%H:%M:%S}" if step < 60 else f"{local:%H:%M}"
        if local.date() != day:
            day = local.date()
            text += f"\n{local:%a} {local.day} {local:%b}"
        places.append(second)
        texts.append(text)
    return places, texts, f"local time {clock.local(first).year}, {clock.zone}"


def label_hours(
    axes: Axes, clock: Clock, first: int, last: int, *, named: bool, most: int = 13
) -> None:
    """Label the time axis of a window.

    Parameters
    ----------
    axes, clock, first, last
        What is labelled, local time, and the window, s.
    named
        Tell the zone and show the labels.
    most
        Most labels, fewer for narrow axes.
    """
    places, texts, name = hour_ticks(clock, first, last, most)
    every = max(1, -(-len(places) // most))
    places, texts = places[::every], texts[::every]
    if len(places) > 0.7 * most and last - places[-1] < EDGE * (last - first):
        texts[-1] = ""  # moved to the left it would lie on the one before
    axes.set_xlim(first, last)
    axes.set_xticks(places, texts if named else [""] * len(places))
    if not named:
        return
    axes.set_xlabel(name, fontsize=8.5)
    for label, place in zip(axes.get_xticklabels(), places, strict=True):
        if last - place < EDGE * (last - first):
            label.set_horizontalalignment("right")
