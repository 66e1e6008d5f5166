"""Pictures of groups of runs: the course of the work, the week, the chief metrics.

A group of several seeds is a line, the mean over its runs, with a band from the lowest to the
highest of them. :mod:`analysis.comparison_users` has the pictures that count users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis import curves
from analysis.comparison import Bars
from analysis.comparison_groups import Group, work_of
from analysis.comparison_style import (
    headed_figure,
    look_of,
    shortened,
    span_of_groups,
    with_shared_clock,
    wrapped,
)
from analysis.paired import Floats
from analysis.plots import COLOURS, TIME_BINS, TITLE, new_figure, say_nothing, tidy, time_axis
from analysis.profiles import weekly_profile
from analysis.run import Run
from environment.clock import DAY, HOUR
from environment.jobs import Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What :func:`bars` shows.
BARS = (
    Bars("wait_mean_s", "Mean wait, h", HOUR, "{:.1f}"),
    Bars("bounded_slowdown_mean", "Mean bounded slowdown", 1, "{:,.0f}"),
    Bars("utilization", "Utilization, %", 0.01, "{:.0f}"),
    Bars("lateness_mean_s", "Mean lateness, days", DAY, "{:,.1f}"),
    Bars("week_distance", "Weekly distance, 0 to 1", 1, "{:.2f}"),
)


def bars(groups: Sequence[Group], title: str = "At a glance") -> Figure:
    """Return bars of the chief metrics, with the intervals of groups of several seeds."""
    rows = 0.42 * len(groups)
    height = 1.1 + rows
    several = any(len(group.runs) > 1 for group in groups)
    subtitle = "black lines: 95 % interval of the mean over seeds" if several else ""
    figure = new_figure(12, height, title, subtitle)
    grid = figure.add_gridspec(1, len(BARS), left=0.19, right=0.985, wspace=0.12)
    grid.update(bottom=0.12 / height, top=1 - 0.85 / height)
    for place, bar in enumerate(BARS):
        axes = figure.add_subplot(grid[0, place])
        _draw_bars(axes, groups, bar)
        labels = [wrapped(group.title, 27, 2) if not place else "" for group in groups]
        axes.set_yticks(range(len(groups)), labels)
        axes.tick_params(axis="y", length=0, labelsize=9, labelcolor="black")
    return figure


def course(groups: Sequence[Group], title: str = "The course of the work") -> Figure:
    """Return how many jobs were submitted and had ended by when, and by how many more than first.

    Parameters
    ----------
    groups
        At least one; the others' differences are to the first, where they are of the same work.
    title
        Of the picture.
    """
    record = _record(groups)
    figure, bottom, top = headed_figure(12, 6.4, title, groups, record=record is not None)
    grid = figure.add_gridspec(
        2, 2, left=0.06, right=0.985, bottom=bottom, top=top, hspace=0.3, wspace=0.16
    )
    span = span_of_groups(groups)
    if span is None:
        return _nothing(figure, "nothing was submitted")
    edges = curves.time_edges(*span, TIME_BINS // 2)
    comparable = [work_of(group.first) == work_of(groups[0].first) for group in groups]
    whose: tuple[tuple[str, Callable[[Run], Int64s]], ...] = (
        ("Jobs submitted until then", lambda run: run.jobs.submit),
        ("Jobs ended until then", lambda run: run.jobs.end),
    )
    for column, (name, times) in enumerate(whose):
        above, below = (figure.add_subplot(grid[row, column]) for row in (0, 1))
        levels = [
            np.stack([curves.cumulative(times(run), edges).astype(float) for run in group.runs])
            for group in groups
        ]
        base = levels[0].mean(axis=0)
        tidy(above)
        tidy(below)
        if column == 0 and record is not None:
            counts = curves.cumulative(record, edges)
            above.plot(edges, counts, color=COLOURS["grey"], linewidth=3)
            below.plot(edges, counts - base, color=COLOURS["grey"], linewidth=3)
        for place, level in enumerate(levels):
            _draw_band(above, edges, level, place)
            if comparable[place]:
                _draw_band(below, edges, level - base, place)
        above.set_ylim(bottom=0)
        above.set_title(name, **TITLE)
        below.set_title(f"The same, difference to {shortened(groups[0].label, 50)}", **TITLE)
        for axes in (above, below):
            time_axis(axes, with_shared_clock(groups), *span, labels=7, named=axes is below)
    return figure


def weeks(groups: Sequence[Group], title: str = "Submissions over the week") -> Figure:
    """Return the weekly profile of each group, local time, with the record in grey.

    Where there is no record, the first group stands in its place.
    """
    columns = 1 if len(groups) <= 3 else 2
    rows = -(-len(groups) // columns)
    height = 1.1 + 1.75 * rows
    figure = new_figure(12, height, title)
    has_record = any(group.record is not None for group in groups)
    behind = "grey: recorded" if has_record else f"grey: {groups[0].label}"
    figure.text(
        0.012,
        1 - 0.40 / height,
        f"Share of all jobs in each hour of the week, %; {shortened(behind, 100)}",
        va="top",
        fontsize=9.5,
        color="#444444",
    )
    grid = figure.add_gridspec(rows, columns, left=0.04, right=0.985, hspace=0.42, wspace=0.09)
    grid.update(bottom=0.5 / height, top=1 - 0.95 / height)
    profiles = [
        100 * np.stack([weekly_profile(run.jobs.submit, run.clock) for run in group.runs])
        for group in groups
    ]
    greys = [_grey_profile(group, groups[0], has_record) for group in groups]
    highest = 1.05 * max(float(one.max()) for one in (*profiles, *greys)) or 1.0
    for place, (group, profile, grey) in enumerate(zip(groups, profiles, greys, strict=True)):
        axes = figure.add_subplot(grid[place // columns, place % columns])
        tidy(axes)
        distance = group.estimate("week_distance")
        far = "" if distance is None else f"; {distance.mean:.2f} from the record"
        axes.set_title(shortened(group.title, 90 if columns == 1 else 52) + far, **TITLE)
        if not profile.any():
            say_nothing(axes, "nothing was submitted")
            continue
        hours = np.arange(curves.WEEK_HOURS + 1)
        axes.stairs(grey, hours, fill=True, color="#cccccc")
        _draw_steps(axes, hours, profile, place)
        axes.set_xlim(0, curves.WEEK_HOURS)
        axes.set_ylim(0, highest)
        axes.set_xticks(hours[:-1:24], ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("left")
        clock = group.first.clock
        zone = "the origin counts as Monday" if clock.nominal else f"local time, {clock.zone}"
        if place >= len(groups) - columns:
            axes.set_xlabel(zone, fontsize=8.5)
    return figure


def _nothing(figure: Figure, why: str) -> Figure:
    axes = figure.add_axes((0.05, 0.1, 0.9, 0.6))
    tidy(axes)
    say_nothing(axes, why)
    return figure


def _draw_bars(axes: Axes, groups: Sequence[Group], bar: Bars) -> None:
    tidy(axes)
    axes.grid(visible=False)
    axes.set_title(bar.title, **TITLE)
    estimates = [group.estimate(bar.metric) for group in groups]
    ends = [0.0]
    for place, estimate in enumerate(estimates):
        if estimate is None:
            continue
        mean = estimate.mean / bar.scale
        axes.barh(place, mean, color=look_of(place)["color"], height=0.7)
        ends.append(mean)
        if estimate.low is not None and estimate.high is not None:
            interval = estimate.low / bar.scale, estimate.high / bar.scale
            axes.plot(interval, (place, place), color="black", linewidth=1.1)
            ends.extend(interval)
    low, high = min(ends), max(ends)
    width = high - low or 1.0
    for place, estimate in enumerate(estimates):
        text = "-" if estimate is None else bar.form.format(estimate.mean / bar.scale)
        values = [] if estimate is None else [estimate.mean, estimate.high or estimate.mean]
        right = max([0.0, *(value / bar.scale for value in values)])
        axes.text(right + 0.03 * width, place, text, va="center", fontsize=9)
    axes.axvline(0, color="#888888", linewidth=0.8)
    axes.set_xlim(low - 0.02 * width, high + 0.3 * width)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xticks([])
    axes.spines[["bottom", "left"]].set_visible(False)


def _draw_band(axes: Axes, x: Int64s, levels: Floats, place: int) -> None:
    """Draw the mean over runs, levels of shape (runs, x), with a band between the outer ones."""
    look = look_of(place)
    if len(levels) > 1:
        low, high = levels.min(axis=0), levels.max(axis=0)
        axes.fill_between(x, low, high, color=look["color"], alpha=0.22, linewidth=0)
    axes.plot(x, levels.mean(axis=0), linewidth=1.4, **look)


def _draw_steps(axes: Axes, edges: Int64s, levels: Floats, place: int) -> None:
    """Draw the same as steps, levels of shape (runs, bins)."""
    look = look_of(place)
    if len(levels) > 1:
        low, high = levels.min(axis=0), levels.max(axis=0)
        axes.stairs(high, edges, baseline=low, fill=True, color=look["color"], alpha=0.3)
    axes.stairs(levels.mean(axis=0), edges, baseline=None, color=look["color"], linewidth=1.3)


def _grey_profile(group: Group, first: Group, has_record: bool) -> Floats:
    """Return the profile drawn behind that of a group, %."""
    times = group.record if has_record else first.first.jobs.submit
    if times is None:
        return np.zeros(curves.WEEK_HOURS)
    profile: Floats = 100 * weekly_profile(times, group.first.clock)
    return profile


def _record(groups: Sequence[Group]) -> Int64s | None:
    """Return the recorded submissions that the groups share; None without."""
    first = groups[0]
    same = all(work_of(group.first) == work_of(first.first) for group in groups[1:])
    return first.record if same else None
