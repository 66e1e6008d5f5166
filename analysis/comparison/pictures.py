"""Pictures that compare runs, or groups of runs that differ in their seed.

A group of several seeds is drawn as a line, the mean over its runs, with a band from the lowest to
the highest run. The style is that of :mod:`hpcrowd.analysis.pictures.plots`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.comparison.multiples import (
    BEHIND,
    MOST_OVERLAID,
    Curve,
    draw_band,
    draw_multiples,
    fill_level,
    grid_of,
    headed,
    label_time,
    queue_multiples,
    span_of_groups,
    with_shared_clock,
)
from hpcrowd.analysis.comparison.numbers import Group, work_of
from hpcrowd.analysis.curves import Floats, weekly_profile
from hpcrowd.analysis.paired import paired_values
from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.pictures.over_time import TIME_BINS, draw_profiles
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Colours of the runs, in order.
RUN_COLOURS = ("vermilion", "orange", "blue", "sky", "green", "purple", "grey")


class Bars(NamedTuple):
    """One metric as bars."""

    metric: str  #: name in :data:`hpcrowd.analysis.metrics.METRICS`
    title: str  #: with its unit
    scale: float  #: size of the unit
    form: str  #: format of the numbers


#: What :func:`comparison` shows as bars.
BARS = (
    Bars("jobs_in", "Jobs submitted", 1, "{:,.0f}"),
    Bars("wait_mean_s", "Mean wait, h", HOUR, "{:.1f}"),
    Bars("bounded_slowdown_mean", "Mean bounded slowdown", 1, "{:,.0f}"),
    Bars("utilization", "Utilization, %", 0.01, "{:.0f}"),
)

#: What :func:`bars` shows.
GROUP_BARS = (
    *BARS[1:],
    Bars("lateness_mean_s", "Mean lateness, days", DAY, "{:,.1f}"),
    Bars("week_distance", "Weekly distance, 0 to 1", 1, "{:.2f}"),
)


def colour_of(place: int) -> str:
    """Return the name of the colour of the run at ``place``."""
    return RUN_COLOURS[place % len(RUN_COLOURS)]


def draw_runs(
    runs: Sequence[Run], groups: Mapping[int, str] | None = None, title: str = "Comparison"
) -> Figure:
    """Return bars of the main metrics, mean waits by group, and weekly profiles of several runs.

    Parameters
    ----------
    runs
        The runs.
    groups
        Names of groups by number, to show their waits separately; if empty, all jobs together.
    title
        Title of the picture.
    """
    rows = 0.24 * len(runs)
    figure = plots.new_figure(12, 4.7 + rows, title)
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


def queues(runs: Sequence[Run | Group], colours: Sequence[str] = RUN_COLOURS) -> Figure:
    """Return the queue over time of several runs, one below the other, on the same scale.

    More than :data:`~hpcrowd.analysis.comparison.multiples.MOST_OVERLAID` are side by side.

    For a group of several seeds, dark is the mean and pale the longest queue of any seed.

    Parameters
    ----------
    runs
        Runs, or groups of runs that differ only in their seed.
    colours
        Names of colours, in the order of the runs.
    """
    groups = [run if isinstance(run, Group) else Group(run.label, [run]) for run in runs]
    height = 1.1 + 1.35 * max(1, len(groups))
    several = any(len(group.runs) > 1 for group in groups)
    subtitle = "dark: mean over the seeds; pale: longest of any seed" if several else ""
    figure = plots.new_figure(12, height, headed("Jobs in the queue", groups), subtitle)
    places = {"bottom": 0.5 / height, "top": 1 - 0.85 / height, "hspace": 0.35}
    span = span_of_groups(groups)
    if span is None:
        grid = figure.add_gridspec(max(1, len(groups)), 1, left=0.055, right=0.985, **places)
        axes = figure.add_subplot(grid[0, 0])
        plots.tidy(axes)
        plots.say_nothing(axes, "nothing was submitted")
        return figure
    edges = curves.time_edges(*span, 700)
    levels = [np.stack([curves.jobs_waiting(run.runs, edges) for run in g.runs]) for g in groups]
    if len(groups) > MOST_OVERLAID:
        return queue_multiples(groups, levels, edges)
    highest = max(1.0, *(float(level.max()) for level in levels))
    clock = with_shared_clock(groups)
    drawn = plots.panels(figure, len(groups), 1, **places)
    for place, (axes, group, level) in enumerate(zip(drawn, groups, levels, strict=True)):
        plots.tidy(axes, plots.shortened(group.title, 150))
        fill_level(axes, level, edges, plots.COLOURS[colours[place % len(colours)]])
        axes.set_ylim(0, 1.05 * highest)
        plots.time_axis(axes, clock, *span, named=axes is drawn[-1])
        if axes is not drawn[-1]:
            axes.tick_params(labelbottom=False)
    return figure


def mean_waits(run: Run, groups: Mapping[int, str]) -> dict[str, float | None]:
    """Return the mean wait of the jobs that ran, s, in total and by group; None without jobs."""
    jobs = run.jobs
    ran = jobs.over
    wait = jobs.start - jobs.submit
    which = {"all": ran} | {name: ran & (jobs.group == number) for number, name in groups.items()}
    return {name: float(wait[rows].mean()) if rows.any() else None for name, rows in which.items()}


def _draw_bars(axes: Axes, runs: Sequence[Run], bar: Bars, *, named: bool) -> None:
    values = [run.metrics[bar.metric] for run in runs]
    plots.tidy(axes, bar.title)
    axes.grid(visible=False)
    lengths = [0.0 if value is None else value / bar.scale for value in values]
    places = range(len(runs))
    axes.barh(
        places, lengths, color=[plots.COLOURS[colour_of(place)] for place in places], height=0.72
    )
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
    plots.tidy(axes, "Mean wait by kind of user" if groups else "Mean wait")
    known = [wait for of_run in waits for wait in of_run.values() if wait]
    if not known:
        return plots.say_nothing(axes, "no job waited")
    for place, of_run in enumerate(waits):
        offset = 0.16 * (place - (len(runs) - 1) / 2)
        points = [(wait, row + offset) for row, name in enumerate(names) if (wait := of_run[name])]
        axes.plot(
            [wait for wait, _ in points],
            [height for _, height in points],
            linestyle="none",
            marker="o",
            markersize=6.5,
            color=plots.COLOURS[colour_of(place)],
        )
    axes.set_xscale("log")
    axes.set_xlim(0.6 * min(known), 1.7 * max(known))
    marks = {60: "1 min", 600: "10 min", HOUR: "1 h", 3 * HOUR: "3 h", 10 * HOUR: "10 h"}
    marks |= {DAY: "1 day", 10 * DAY: "10 days"}
    plots.label_at(axes.xaxis, marks)
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
        return plots.say_nothing(axes, "nothing was submitted")
    draw_profiles(
        axes,
        runs[0],
        [(" = ".join(names), times, colour_of(place), 1.5) for names, times, place in lines],
    )
    if axes.get_legend() is not None:
        axes.legend(**plots.LEGEND, loc="upper right")


def bars(groups: Sequence[Group]) -> Figure:
    """Return bars of the main metrics, with intervals for groups of several seeds."""
    rows = 0.42 * len(groups)
    height = 1.1 + rows
    several = any(len(group.runs) > 1 for group in groups)
    subtitle = "black lines: 95 % interval of the mean over seeds" if several else ""
    figure = plots.new_figure(12, height, headed("At a glance", groups), subtitle)
    bottom, top = 0.12 / height, 1 - 0.85 / height
    drawn = plots.panels(figure, 1, len(GROUP_BARS), left=0.19, bottom=bottom, top=top, wspace=0.12)
    for place, (axes, bar) in enumerate(zip(drawn, GROUP_BARS, strict=True)):
        _draw_group_bars(axes, groups, bar)
        labels = [plots.wrapped(group.title, 27, 2) if not place else "" for group in groups]
        axes.set_yticks(range(len(groups)), labels)
        axes.tick_params(axis="y", length=0, labelsize=9, labelcolor="black")
    return figure


def course(groups: Sequence[Group]) -> Figure:
    """Return the jobs submitted and ended over time, and the differences to the first group.

    Only groups of the same work as the first have a difference to it.
    """
    comparable = [work_of(group.first) == work_of(groups[0].first) for group in groups]
    if len(groups) > MOST_OVERLAID and span_of_groups(groups) is not None:
        return _course_multiples(groups, comparable)
    record = groups[0].record if all(comparable) else None
    titles = [group.title for group in groups]
    head = headed("Progress of the work", groups)
    figure, bottom, top = plots.legend_figure(12, 6.4, head, titles, record=record is not None)
    span = span_of_groups(groups)
    if span is None:
        axes = figure.add_axes((0.05, 0.1, 0.9, 0.6))
        plots.tidy(axes)
        plots.say_nothing(axes, "nothing was submitted")
        return figure
    grid = figure.add_gridspec(
        2, 2, left=0.06, right=0.985, bottom=bottom, top=top, hspace=0.3, wspace=0.16
    )
    edges = curves.time_edges(*span, TIME_BINS // 2)
    whose: tuple[tuple[str, Callable[[Run], Int64s]], ...] = (
        ("Jobs submitted so far", lambda run: run.jobs.submit),
        ("Jobs ended so far", lambda run: run.jobs.end),
    )
    for column, (name, times) in enumerate(whose):
        above, below = (figure.add_subplot(grid[row, column]) for row in (0, 1))
        levels = [
            np.stack([curves.cumulative(times(run), edges).astype(float) for run in group.runs])
            for group in groups
        ]
        base = levels[0].mean(axis=0)
        plots.tidy(above, name)
        plots.tidy(below, f"Difference to {plots.shortened(groups[0].label, 50)}")
        if column == 0 and record is not None:
            counts = curves.cumulative(record, edges)
            above.plot(edges, counts, color=plots.COLOURS["grey"], linewidth=3)
            below.plot(edges, counts - base, color=plots.COLOURS["grey"], linewidth=3)
        for place, level in enumerate(levels):
            draw_band(above, edges, level, place)
            if comparable[place]:
                draw_band(below, edges, level - base, place)
        above.set_ylim(bottom=0)
        for axes in (above, below):
            plots.time_axis(axes, with_shared_clock(groups), *span, labels=7, named=axes is below)
    return figure


def _course_multiples(groups: Sequence[Group], comparable: Sequence[bool]) -> Figure:
    """Return the jobs ended so far, a panel per group; of the same work, minus the first group."""
    span = span_of_groups(groups) or (0, 1)
    edges = curves.time_edges(*span, TIME_BINS // 2)
    levels = [
        np.stack([curves.cumulative(run.jobs.end, edges).astype(float) for run in group.runs])
        for group in groups
    ]
    same = all(comparable)
    base = levels[0].mean(axis=0) if same else np.zeros(len(edges))
    first = plots.shortened(groups[0].label, 60)
    text = f"Jobs ended so far, more or fewer than in {first}" if same else "Jobs ended so far"
    figure, panels, bottom = grid_of(
        groups, "Progress of the work", f"{text}; grey: the other runs"
    )
    clock = with_shared_clock(groups)
    every = np.concatenate([(level - base).ravel() for level in levels])
    low, high = float(every.min()), float(every.max())
    room = 0.06 * (high - low or 1.0)

    def finish(axes: Axes, place: int) -> None:
        axes.axhline(0, color="black", linewidth=0.7)
        axes.set_ylim(low - room, high + room)
        label_time(axes, clock, edges, last=place in bottom)

    draw_multiples(panels, [Curve(edges, level - base) for level in levels], finish)
    return figure


def weeks(groups: Sequence[Group]) -> Figure:
    """Return the weekly profile of each group in local time, with the record in grey.

    Without a record, grey is the first group.
    """
    columns = 1 if len(groups) <= 3 else 2
    rows = -(-len(groups) // columns)
    height = 1.1 + 1.75 * rows
    has_record = any(group.record is not None for group in groups)
    behind = "grey: recorded" if has_record else f"grey: {groups[0].label}"
    text = f"Share of all jobs in each hour of the week, %; {plots.shortened(behind, 100)}"
    figure = plots.new_figure(12, height, headed("Submissions over the week", groups), text)
    bottom, top = 0.5 / height, 1 - 0.95 / height
    grid = figure.add_gridspec(
        rows, columns, left=0.04, right=0.985, bottom=bottom, top=top, hspace=0.42, wspace=0.09
    )
    profiles = [
        100 * np.stack([weekly_profile(run.jobs.submit, run.clock) for run in group.runs])
        for group in groups
    ]
    greys = [_grey_profile(group, groups[0], has_record) for group in groups]
    highest = 1.05 * max(float(one.max()) for one in (*profiles, *greys)) or 1.0
    for place, (group, profile, grey) in enumerate(zip(groups, profiles, greys, strict=True)):
        axes = figure.add_subplot(grid[place // columns, place % columns])
        distance = group.estimate("week_distance")
        far = "" if distance is None else f"; {distance.mean:.2f} from the record"
        plots.tidy(axes, plots.shortened(group.title, 90 if columns == 1 else 52) + far)
        if not profile.any():
            plots.say_nothing(axes, "nothing was submitted")
            continue
        hours = np.arange(curves.WEEK_HOURS + 1)
        axes.stairs(grey, hours, fill=True, color="#cccccc")
        _draw_steps(axes, hours, profile, place)
        axes.set_ylim(0, highest)
        plots.label_week(axes, group.first.clock, named=place >= len(groups) - columns)
    return figure


def _draw_group_bars(axes: Axes, groups: Sequence[Group], bar: Bars) -> None:
    plots.tidy(axes, bar.title)
    axes.grid(visible=False)
    estimates = [group.estimate(bar.metric) for group in groups]
    ends = [0.0]
    for place, estimate in enumerate(estimates):
        if estimate is None:
            continue
        mean = estimate.mean / bar.scale
        axes.barh(place, mean, color=plots.look_of(place)["color"], height=0.7)
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


def _draw_steps(axes: Axes, edges: Int64s, levels: Floats, place: int) -> None:
    """Draw the same as steps; ``levels`` has shape (runs, bins)."""
    look = plots.look_of(place)
    if len(levels) > 1:
        low, high = levels.min(axis=0), levels.max(axis=0)
        axes.stairs(high, edges, baseline=low, fill=True, color=look["color"], alpha=0.3)
    axes.stairs(levels.mean(axis=0), edges, baseline=None, color=look["color"], linewidth=1.3)


def _grey_profile(group: Group, first: Group, has_record: bool) -> Floats:
    """Return the grey profile drawn behind a group's, %."""
    times = group.record if has_record else first.first.jobs.submit
    if times is None:
        return np.zeros(curves.WEEK_HOURS)
    profile: Floats = 100 * weekly_profile(times, group.first.clock)
    return profile


#: Labels of the axis of differences between users, s.
MARKS = {
    600: "10 min", HOUR: "1 h", DAY: "1 d", 10 * DAY: "10 d", 100 * DAY: "100 d",
    1000 * DAY: "1,000 d",
}  # fmt: skip

#: The axis is linear around 0 up to the first value, s; if values are smaller, up to the second.
LINEAR = (HOUR, 600)


def users_apart(groups: Sequence[Group]) -> Figure:
    """Return the users' lateness, and the difference of their waits to the first group.

    Both count users, not jobs; a value is a user's mean over jobs and runs.
    """
    if len(groups) > MOST_OVERLAID:
        return _users_multiples(groups)
    titles = [group.title for group in groups]
    head = headed("Differences between users", groups)
    figure, bottom, top = plots.legend_figure(12, 4.4, head, titles)
    late, wait = plots.panels(figure, 1, 2, bottom=bottom, top=top, wspace=0.14)
    plots.tidy(late, "Share of users whose mean lateness is less than ...")
    lines = [(group.users["lateness_mean_s"][1], place) for place, group in enumerate(groups)]
    _draw_shares(late, lines, "a user's mean lateness", "no record to compare with")
    plots.tidy(wait, "Share of users whose mean wait is longer by less than ...")
    name = f"a user's mean wait, difference to {plots.shortened(groups[0].label, 48)}"
    _draw_shares(wait, _wait_differences(groups), name, "no users to pair")
    return figure


def _wait_differences(groups: Sequence[Group]) -> list[tuple[Floats, int]]:
    """Return the differences of users' mean waits to the first group (s), and each place."""
    first, found = groups[0], []
    for place, group in enumerate(groups):
        if place and work_of(group.first) == work_of(first.first):
            mine, theirs = paired_values(first.users["wait_mean_s"], group.users["wait_mean_s"])
            found.append((theirs - mine, place))
    return found


def _users_multiples(groups: Sequence[Group]) -> Figure:
    """Return the differences of users' waits to the first group, a panel per group."""
    first = plots.shortened(groups[0].label, 48)
    figure, panels, bottom = grid_of(
        groups,
        "Differences between users",
        f"Share of users whose mean wait is longer than in {first} by less than ...; grey: the "
        "other runs",
    )
    lines = {place: values for values, place in _wait_differences(groups) if len(values)}
    for place, axes in enumerate(panels):
        if place not in lines:
            nothing = "the others are compared with this one" if not place else "no users to pair"
            plots.say_nothing(axes, nothing)
            continue
        others = [(values, other) for other, values in lines.items() if other != place]
        _draw_shares(axes, [*others, (lines[place], place)], "", "", alone=place)
        if place not in bottom:
            axes.tick_params(labelbottom=False)
        axes.tick_params(axis="x", labelsize=7)
    return figure


def _draw_shares(
    axes: Axes,
    lines: Sequence[tuple[Floats, int]],
    name: str,
    nothing: str,
    alone: int | None = None,
) -> None:
    """Draw distributions over users on a time axis that is linear around 0.

    ``alone`` is the place of the only one with a colour; the others are grey, behind it.
    """
    drawn = [(np.sort(values), place) for values, place in lines if len(values)]
    if not drawn:
        return plots.say_nothing(axes, nothing)
    furthest = max(float(np.abs(values).max()) for values, _ in drawn)
    linear = LINEAR[0] if furthest > DAY else LINEAR[1]
    furthest = max(furthest, linear)
    for values, place in drawn:
        # From the left edge to the right one, a step at each user.
        x = np.concatenate([[-2 * furthest], values, [2 * furthest]])
        share = np.concatenate([[0], np.arange(1, len(values) + 1) / len(values), [1]])
        look = plots.look_of(place) | {"linewidth": 1.5, "zorder": 3}
        if alone is not None:
            look = BEHIND if place != alone else {**look, "linestyle": "-"}
        axes.step(x, share, where="post", **look)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xscale("symlog", linthresh=linear, linscale=0.6)
    low = min(float(values[0]) for values, _ in drawn)
    high = max(float(values[-1]) for values, _ in drawn)
    least = max(0.1 * furthest, 1.4 * linear)  # always show some range around 0
    axes.set_xlim(min(1.6 * low, -least), max(1.6 * high, least))
    marks = {sign * second: text for second, text in MARKS.items() for sign in (1, -1)}
    shown = {0: "0"} | {
        second: ("+" if second > 0 else "-") + text
        for second, text in marks.items()
        if axes.get_xlim()[0] <= second <= axes.get_xlim()[1] and abs(second) >= linear
    }
    if alone is not None:  # a narrow panel has room for every second label
        shown = {0: "0"} | {second: text for second, text in shown.items() if abs(second) >= DAY}
    plots.label_at(axes.xaxis, shown)
    plots.share_axis(axes, 1.01)
    axes.set_xlabel(name, fontsize=8.5)
    return None
