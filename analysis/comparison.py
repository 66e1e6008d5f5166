"""Pictures of several runs side by side; the look is that of :mod:`analysis.plots`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analysis import curves
from analysis.comparison_groups import Group
from analysis.comparison_style import shortened, span_of_groups, with_shared_clock
from analysis.plots import (
    COLOURS,
    LEGEND,
    TITLE,
    draw_profiles,
    new_figure,
    say_nothing,
    tidy,
    time_axis,
)
from analysis.run import Run
from environment.clock import DAY, HOUR
from environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours of runs, in their order.
RUN_COLOURS = ("vermilion", "orange", "blue", "sky", "green", "purple", "grey")


class Bars(NamedTuple):
    """One metric as bars."""

    metric: str  #: name in :data:`analysis.metrics.METRICS`
    title: str  #: with its unit
    scale: float  #: what one unit is worth
    form: str  #: of the numbers


#: What :func:`comparison` shows as bars.
BARS = (
    Bars("jobs_in", "Jobs submitted", 1, "{:,.0f}"),
    Bars("wait_mean_s", "Mean wait, h", HOUR, "{:.1f}"),
    Bars("bounded_slowdown_mean", "Mean bounded slowdown", 1, "{:,.0f}"),
    Bars("utilization", "Utilization, %", 0.01, "{:.0f}"),
)


def colour_of(place: int) -> str:
    """Return the name of the colour of the run at ``place``."""
    return RUN_COLOURS[place % len(RUN_COLOURS)]


def comparison(
    runs: Sequence[Run], groups: Mapping[int, str] | None = None, title: str = "Comparison"
) -> Figure:
    """Return bars of the chief metrics, mean waits by group, and weekly profiles of several runs.

    Parameters
    ----------
    runs
        The runs.
    groups
        Names of groups by number, to show their waits apart; without them only all jobs.
    title
        Of the picture.
    """
    rows = 0.24 * len(runs)
    figure = new_figure(12, 4.7 + rows, title)
    top = 1 - 0.75 / (4.7 + rows)
    middle = top - (0.3 + rows) / (4.7 + rows)
    bars = figure.add_gridspec(1, len(BARS), left=0.16, right=0.985, bottom=middle, top=top)
    below = figure.add_gridspec(
        1, 2, left=0.085, right=0.985, bottom=0.105, top=middle - 0.095, width_ratios=(1, 1.5)
    )
    for place, bar in enumerate(BARS):
        _draw_bars(figure.add_subplot(bars[0, place]), runs, bar, named=place == 0)
    _draw_group_waits(figure.add_subplot(below[0, 0]), runs, groups or {})
    _draw_weeks(figure.add_subplot(below[0, 1]), runs)
    return figure


def queues(
    runs: Sequence[Run | Group],
    title: str = "Jobs in the queue",
    colours: Sequence[str] = RUN_COLOURS,
) -> Figure:
    """Return the queue over time of several runs, one below the other, to the same scale.

    Of a group of several seeds the mean is drawn, and pale above it the longest queue of any.

    Parameters
    ----------
    runs
        Runs, or groups of runs that differ only in their seed.
    title
        Of the picture.
    colours
        Names of colours, in the order of the runs.
    """
    groups = [run if isinstance(run, Group) else Group(run.label, [run]) for run in runs]
    height = 1.1 + 1.35 * max(1, len(groups))
    several = any(len(group.runs) > 1 for group in groups)
    subtitle = "dark: mean over the seeds, pale: the longest of any seed" if several else ""
    figure = new_figure(12, height, title, subtitle)
    grid = figure.add_gridspec(max(1, len(groups)), 1, left=0.055, right=0.985, hspace=0.35)
    grid.update(bottom=0.5 / height, top=1 - 0.85 / height)
    span = span_of_groups(groups)
    if span is None:
        axes = figure.add_subplot(grid[0, 0])
        tidy(axes)
        say_nothing(axes, "nothing was submitted")
        return figure
    edges = curves.time_edges(*span, 700)
    levels = [np.stack([curves.jobs_waiting(run.jobs, edges) for run in g.runs]) for g in groups]
    highest = max(1.0, *(float(level.max()) for level in levels))
    clock = with_shared_clock(groups)
    for place, (group, level) in enumerate(zip(groups, levels, strict=True)):
        axes = figure.add_subplot(grid[place, 0])
        tidy(axes)
        colour = COLOURS[colours[place % len(colours)]]
        if len(level) > 1:
            axes.stairs(level.max(axis=0), edges, fill=True, color=colour, alpha=0.3)
        axes.stairs(level.mean(axis=0), edges, fill=True, color=colour)
        axes.set_ylim(0, 1.05 * highest)
        axes.set_title(shortened(group.title, 150), **TITLE)
        is_lowest = place == len(groups) - 1
        time_axis(axes, clock, *span, named=is_lowest)
        if not is_lowest:
            axes.tick_params(labelbottom=False)
    return figure


def mean_waits(run: Run, groups: Mapping[int, str]) -> dict[str, float | None]:
    """Return the mean wait of the jobs that ran, s, for all and for each group; None without."""
    jobs = run.jobs
    ran = jobs.over
    wait = jobs.start - jobs.submit
    which = {"all": ran} | {name: ran & (jobs.group == number) for number, name in groups.items()}
    return {name: float(wait[rows].mean()) if rows.any() else None for name, rows in which.items()}


def _draw_bars(axes: Axes, runs: Sequence[Run], bar: Bars, *, named: bool) -> None:
    values = [run.metrics[bar.metric] for run in runs]
    tidy(axes)
    axes.grid(visible=False)
    axes.set_title(bar.title, **TITLE)
    lengths = [0.0 if value is None else value / bar.scale for value in values]
    places = range(len(runs))
    axes.barh(places, lengths, color=[COLOURS[colour_of(place)] for place in places], height=0.72)
    longest = max([*lengths, 0.0]) or 1.0
    for place, value in enumerate(values):
        text = "-" if value is None else bar.form.format(lengths[place])
        axes.text(lengths[place] + 0.03 * longest, place, text, va="center", fontsize=9)
    axes.set_xlim(0, 1.28 * longest)
    axes.set_ylim(len(runs) - 0.4, -0.6)
    axes.set_xticks([])
    axes.set_yticks(list(places), [run.label for run in runs] if named else [""] * len(runs))
    axes.tick_params(axis="y", length=0, labelsize=9, labelcolor="black")
    axes.spines["bottom"].set_visible(False)


def _draw_group_waits(axes: Axes, runs: Sequence[Run], groups: Mapping[int, str]) -> None:
    waits = [mean_waits(run, groups) for run in runs]
    names = ["all", *groups.values()]
    tidy(axes)
    axes.set_title("Mean wait by kind of user" if groups else "Mean wait", **TITLE)
    known = [wait for of_run in waits for wait in of_run.values() if wait]
    if not known:
        return say_nothing(axes, "nobody waited")
    from matplotlib.ticker import FixedLocator, NullLocator

    for place, of_run in enumerate(waits):
        offset = 0.16 * (place - (len(runs) - 1) / 2)
        points = [(wait, row + offset) for row, name in enumerate(names) if (wait := of_run[name])]
        axes.plot(
            [wait for wait, _ in points],
            [height for _, height in points],
            linestyle="none",
            marker="o",
            markersize=6.5,
            color=COLOURS[colour_of(place)],
        )
    axes.set_xscale("log")
    axes.set_xlim(0.6 * min(known), 1.7 * max(known))
    marks = {60: "1 min", 600: "10 min", HOUR: "1 h", 3 * HOUR: "3 h", 10 * HOUR: "10 h"}
    marks |= {DAY: "1 day", 10 * DAY: "10 days"}
    axes.xaxis.set_major_locator(FixedLocator(list(marks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda second, _: marks.get(round(second), ""))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names)
    axes.grid(visible=False, axis="y")
    for row in range(1, len(names)):
        axes.axhline(row - 0.5, color="#e4e4e4", linewidth=0.6)
    axes.tick_params(axis="y", length=0, labelsize=9, labelcolor="black")


def _draw_weeks(axes: Axes, runs: Sequence[Run]) -> None:
    """Draw the weekly profile of each run; runs with the same submissions share a line."""
    lines: list[tuple[list[str], Int64s, int]] = []
    for place, run in enumerate(runs):
        times = np.sort(run.jobs.submit[run.jobs.submit != UNKNOWN])
        for labels, earlier, _ in lines:
            if np.array_equal(times, earlier):
                labels.append(run.label)
                break
        else:
            lines.append(([run.label], times, place))
    if not runs:
        return say_nothing(axes, "nothing was submitted")
    draw_profiles(
        axes,
        runs[0],
        [(" = ".join(names), times, colour_of(place), 1.5) for names, times, place in lines],
    )
    if axes.get_legend() is not None:
        axes.legend(**LEGEND, loc="upper right")
