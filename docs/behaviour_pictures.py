"""Effects of behaviours on a trace, one picture for each page of the documentation.

Every function returns a figure from finished runs of one trace; the look is that of
:mod:`hpcrowd.analysis.pictures.plots`. ``docs/measured.py`` draws them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.behaviours.profiles import Profiles, WeeklyProfile
from hpcrowd.agents.behaviours.think import ContinuationLaw, LinearThink, think_time_pairs
from hpcrowd.analysis import curves
from hpcrowd.analysis.curves import activity_lengths, profile_distance, weekly_profile
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, TITLE, new_figure, tidy, time_axis
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.jobs import UNKNOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.agents.work.units import Units


#: Colours of runs, in their order; grey is the record.
RUN_COLOURS = ("vermilion", "blue", "green")

#: Days on an axis of a week.
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

#: Response times at which an axis is labelled, s.
RESPONSES = {10: "10 s", 60: "1 min", 600: "10 min", HOUR: "1 h", 10 * HOUR: "10 h", 4 * DAY: "4 d"}

#: Edges of the classes of response times in which sessions that go on are counted, min.
CLASSES = (0, 1, 2, 5, 10, 20, 30, 45, 60, 120, 300, 600, 1440)

#: Groups of pairs, as many in each, that a fitted line is compared with.
GROUPS = 12


def weeks(runs: Mapping[str, Run], title: str) -> Figure:
    """Return the weekly profiles of the record and of runs, by their names."""
    figure = new_figure(9, 3.3, title, _of(runs))
    axes = figure.add_axes((0.06, 0.15, 0.925, 0.61))
    _draw_weeks(axes, runs)
    return figure


def weeks_and_activity(runs: Mapping[str, Run], title: str) -> Figure:
    """Return weekly profiles, and how long users are active."""
    figure = new_figure(9, 6.3, title, _of(runs))
    _draw_weeks(figure.add_axes((0.06, 0.555, 0.925, 0.32)), runs)
    _draw_activity(figure.add_axes((0.06, 0.085, 0.925, 0.32)), runs)
    return figure


def machines(runs: Mapping[str, Run], title: str) -> Figure:
    """Return how many jobs were submitted by when, and the queue, on machines of several sizes."""
    figure = new_figure(9, 3.5, title, _of(runs))
    grid = figure.add_gridspec(1, 2, left=0.075, right=0.985, bottom=0.145, top=0.78, wspace=0.2)
    any_run = next(iter(runs.values()))
    last = max(int(run.jobs.end.max()) for run in runs.values())
    edges = curves.time_edges(0, last, 300)
    left, right = (figure.add_subplot(grid[0, place]) for place in range(2))
    for place, ((name, run), colour) in enumerate(zip(runs.items(), RUN_COLOURS, strict=True)):
        submitted = curves.cumulative(run.jobs.submit, edges)
        left.plot(edges, submitted, color=COLOURS[colour], label=name,
                  linewidth=3.6 - 1.2 * place)  # fmt: skip  # lines that cover each other show
        queue = curves.jobs_waiting(run.jobs, edges)
        right.stairs(queue, edges, color=COLOURS[colour], baseline=None, linewidth=1.2)
    for axes, text in ((left, "Jobs submitted until then"), (right, "Jobs in the queue")):
        tidy(axes)
        axes.set_ylim(bottom=0)
        axes.set_title(text, **TITLE)
        time_axis(axes, any_run, 0, last, labels=5)
    left.legend(**LEGEND, loc="lower right")
    return figure


def law_and_weeks(runs: Mapping[str, Run], title: str) -> Figure:
    """Return weekly profiles, recorded sessions that go on against the law, and activity."""
    figure = new_figure(9, 6.3, title, _of(runs))
    _draw_weeks(figure.add_axes((0.06, 0.555, 0.925, 0.32)), runs)
    run = next(iter(runs.values()))
    assert run.work is not None
    _draw_law(figure.add_axes((0.06, 0.085, 0.4, 0.32)), run.work.by_batch)
    _draw_activity(figure.add_axes((0.53, 0.085, 0.455, 0.32)), runs)
    return figure


def line(runs: Mapping[str, Run], title: str) -> Figure:
    """Return think times against response times, recorded, with the line that is fitted."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import FixedLocator, NullLocator

    run = next(iter(runs.values()))
    assert run.work is not None
    units = run.work.by_batch
    response, think = think_time_pairs(units)
    fitted, default = LinearThink.fit(units), LinearThink()
    left, right = 10, 4 * DAY
    figure = new_figure(9, 4.1, title, f"{_of(runs)}, {len(think):,} pairs of batches")
    axes = figure.add_axes((0.06, 0.13, 0.83, 0.68))
    tidy(axes)
    cells = axes.hist2d(
        np.maximum(response, left), think / HOUR, cmin=1, cmap="Greys", norm=LogNorm(0.5, 1000),
        bins=[np.geomspace(left, right, 60), np.linspace(0, fitted.cut / HOUR, 49)],
    )[3]  # fmt: skip
    bar = figure.colorbar(cells, cax=figure.add_axes((0.915, 0.13, 0.015, 0.68)))
    bar.ax.tick_params(labelsize=8)
    bar.ax.set_title("pairs", fontsize=8.5)
    bar.ax.set_ylim(1, 1000)
    x = np.geomspace(left, right, 200)
    for one, name, colour, style in (
        (default, "given without a fit (unconfirmed)", "orange", (0, (5, 2))),
        (fitted, "fitted", "vermilion", "-"),
    ):
        label = f"{name}: {one.slope:.3g} response + {one.intercept / 60:.0f} min"
        axes.plot(x, (one.slope * x + one.intercept) / HOUR, color=COLOURS[colour], label=label,
                  linestyle=style, linewidth=2)  # fmt: skip
    order = np.argsort(response, kind="stable")
    groups = np.array_split(order, GROUPS)
    axes.plot(
        [max(left, float(np.mean(response[group]))) for group in groups],
        [float(np.mean(think[group])) / HOUR for group in groups],
        "o", color=COLOURS["blue"], markeredgecolor="white", markersize=8,
        label="mean of a twelfth of the pairs, by response time",
    )  # fmt: skip
    axes.set(xscale="log", xlim=(left, right), ylim=(0, fitted.cut / HOUR))
    axes.xaxis.set_major_locator(FixedLocator(list(RESPONSES)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(list(RESPONSES.values()))
    axes.set_xlabel("response time", fontsize=8.5)
    axes.set_title("Think time, h", **TITLE)
    axes.legend(**{**LEGEND, "frameon": True, "framealpha": 0.9, "edgecolor": "none"},
                loc="upper left")  # fmt: skip
    return figure


def active_time(runs: Mapping[str, Run], title: str) -> Figure:
    """Return the profile of a user, and how a pause goes by when it begins at another hour."""
    run = next(iter(runs.values()))
    assert run.work is not None
    units = run.work.by_batch
    busiest = int(units.users[np.argmax(np.diff(units.user_first))])
    profiles = Profiles.fit(units, run.clock)
    profile = profiles.of(busiest)
    figure = new_figure(9, 6.0, title, f"{_of(runs)}, user {busiest}")
    axes = figure.add_axes((0.06, 0.6, 0.925, 0.26))
    tidy(axes)
    hours = np.arange(curves.WEEK_HOURS + 1)
    axes.stairs(profiles.common.weights, hours, color=COLOURS["grey"], linewidth=2.2,
                baseline=None, label="all users")  # fmt: skip
    axes.stairs(profile.weights, hours, color=COLOURS["blue"], linewidth=1.4, baseline=None,
                label=f"user {busiest}, smoothed")  # fmt: skip
    axes.set_title("Pace of active time, active seconds per second", **TITLE)
    axes.set_ylim(0, 1.25 * float(max(profile.weights.max(), profiles.common.weights.max())))
    _week_axis(axes)
    axes.legend(**LEGEND, loc="upper right", ncols=2)
    _draw_pauses(figure.add_axes((0.06, 0.09, 0.925, 0.36)), profile)
    return figure


def _draw_pauses(axes: Axes, profile: WeeklyProfile) -> None:
    """Draw active time on Monday and Tuesday, and a pause of two hours that is moved."""
    tidy(axes)
    last = 48
    x = np.linspace(0, last, 600)
    axes.plot(x, [profile.active(t * HOUR) / HOUR for t in x], color=COLOURS["grey"], linewidth=2)
    pause = 2.0
    recorded = 11.0
    used = profile.active((recorded + pause) * HOUR) - profile.active(recorded * HOUR)
    for begin, colour, name in ((recorded, "blue", "recorded: Mon 11:00 to 13:00"),
                                (22.0, "vermilion", "released on Mon 22:00: ends ")):  # fmt: skip
        low = profile.active(begin * HOUR)
        end = profile.wall_at(low + used) / HOUR
        if begin != recorded:
            minutes = round(end * 60)
            name += f"{DAYS[minutes // 1440]} {minutes // 60 % 24}:{minutes % 60:02d}"
        bottom, top = low / HOUR, (low + used) / HOUR
        axes.fill_between([begin, end], bottom, top, color=COLOURS[colour], alpha=0.22, linewidth=0)
        axes.plot([begin, end], [bottom, top], "o", color=COLOURS[colour], markersize=5, label=name)
        axes.plot([0, begin], [bottom, bottom], color=COLOURS[colour], linewidth=0.8, alpha=0.6)
        axes.plot([0, end], [top, top], color=COLOURS[colour], linewidth=0.8, alpha=0.6)
        axes.plot([begin, begin], [0, bottom], color=COLOURS[colour], linewidth=0.8, alpha=0.6)
        axes.plot([end, end], [0, top], color=COLOURS[colour], linewidth=0.8, alpha=0.6)
    axes.set(xlim=(0, last), ylim=(0, None))
    axes.set_xticks(
        range(0, last, 6), [f"{DAYS[hour // 24]} {hour % 24}:00" for hour in range(0, last, 6)]
    )
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("left")
    axes.set_title(
        f"Active time since Monday, h; the pause of 2 h takes {used / HOUR:.1f} active hours",
        **TITLE,
    )
    axes.set_xlabel("local time", fontsize=8.5)
    axes.legend(**LEGEND, loc="upper left")


def _draw_weeks(axes: Axes, runs: Mapping[str, Run]) -> None:
    """Draw the weekly profiles of the record and of runs."""
    from matplotlib.ticker import PercentFormatter

    tidy(axes)
    first = next(iter(runs.values()))
    recorded = weekly_profile(first.jobs.recorded_submit, first.clock)
    hours = np.arange(curves.WEEK_HOURS + 1)
    axes.stairs(recorded, hours, color="#bdbdbd", fill=True, label="recorded")
    highest = float(recorded.max())
    for (name, run), colour in zip(runs.items(), RUN_COLOURS, strict=False):
        profile = weekly_profile(run.jobs.submit, run.clock)
        highest = max(highest, float(profile.max()))
        far = profile_distance(profile, recorded)
        axes.stairs(profile, hours, color=COLOURS[colour], linewidth=1.5, baseline=None,
                    label=f"{name} (distance {far:.2f})")  # fmt: skip
    axes.set_ylim(0, 1.22 * highest)  # room for the legend
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=1))
    axes.set_title("Share of jobs submitted in each hour of the week", **TITLE)
    _week_axis(axes)
    axes.set_xlabel(f"local time, {first.clock.zone}", fontsize=8.5)
    axes.legend(**LEGEND, loc="upper right", ncols=4)


def _week_axis(axes: Axes) -> None:
    axes.set_xlim(0, curves.WEEK_HOURS)
    axes.set_xticks(range(0, WEEK // HOUR, 24), DAYS)
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("left")


def _draw_activity(axes: Axes, runs: Mapping[str, Run]) -> None:
    """Draw the distribution of activity lengths over users."""
    from matplotlib.ticker import PercentFormatter

    tidy(axes)
    jobs = next(iter(runs.values())).jobs
    recorded = activity_lengths(jobs.user, jobs.recorded_submit)
    lines = [("recorded", recorded, "#999999", 3.0)]
    lines += [
        (name, activity_lengths(run.jobs.user, run.jobs.submit), COLOURS[colour], 1.6)
        for (name, run), colour in zip(runs.items(), RUN_COLOURS, strict=False)
    ]
    for name, lengths, colour, width in lines:
        x = np.sort(lengths) / DAY
        axes.step(x, 1 - np.arange(1, len(x) + 1) / len(x), where="post", color=colour,
                  linewidth=width, label=name)  # fmt: skip
    axes.set(xlim=(0, None), ylim=(0, 1))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_title("Share of users who are active for longer than ...", **TITLE)
    axes.set_xlabel("days from a user's first to its last submission", fontsize=8.5)
    axes.legend(**LEGEND, loc="upper right")


def _draw_law(axes: Axes, units: Units) -> None:
    """Draw how often a session continues after a response time, recorded and by the law."""
    from matplotlib.ticker import PercentFormatter

    tidy(axes)
    waited = units.awaited != UNKNOWN
    minutes = units.response[units.awaited[waited]] / 60
    goes_on = units.continues[waited]
    place = np.digitize(minutes, CLASSES[1:])
    middle, share = [], []
    for each in range(len(CLASSES)):
        if (place == each).any():
            middle.append(float(np.median(minutes[place == each])))
            share.append(float(goes_on[place == each].mean()))
    x = np.geomspace(0.1, CLASSES[-1], 200)
    law = ContinuationLaw()
    axes.plot(x, [law.probability(60 * t) for t in x], color=COLOURS["vermilion"], linewidth=1.6,
              label="law")  # fmt: skip
    axes.plot(middle, share, "o", color="#777777", markersize=5, label="recorded")
    axes.set(xscale="log", xlim=(0.1, CLASSES[-1]), ylim=(0, 1))
    axes.set_xticks([0.1, 1, 10, 60, 600], ["6 s", "1 min", "10 min", "1 h", "10 h"])
    axes.xaxis.minorticks_off()
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_title("Share of sessions that go on after a response", **TITLE)
    axes.set_xlabel("response time", fontsize=8.5)
    axes.legend(**LEGEND, loc="lower left")


def _of(runs: Mapping[str, Run]) -> str:
    run = next(iter(runs.values()))
    read = run.reading.source
    source = "" if read is None else read["source"].split(".swf")[0]
    return f"{source}: {len(run.jobs):,} jobs"
