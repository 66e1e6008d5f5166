"""Pictures of forecasts: fans of load and queue, starts of waiting jobs, effects of a change.

A fan has the median over futures as a line, the central 50 % of the futures as a dark band and the
central 90 % as a pale one. The record before now is a line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.numbers import time_unit
from hpcrowd.analysis.pictures import plots
from hpcrowd.environment.clock import DAY, HOUR, WEEK, moment
from hpcrowd.environment.errors import printable
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.analysis.curves import Floats
    from hpcrowd.analysis.forecast.answers import Answers, JobAnswer  # circle: for types only
    from hpcrowd.analysis.forecast.effects import Effect, Effects  # circle: for types only
    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.jobs import Int64s

#: Titles and colours of the panels, by the name of the quantity.
PANELS = {
    "load": ("Busy processors, % of the machine", "blue"),
    "queue": ("Jobs in the queue", "vermilion"),
    "queued_processors": ("Processors requested by the queue", "green"),
}

#: Share of white in the bands of 90 % and 50 %.
PALE = (0.80, 0.52)

#: Colour of the record, of the line at now, and of weekends.
RECORD, NOW, WEEKEND = "#555555", "#222222", "#f3f1ea"

#: Most jobs in a picture of starts.
MOST_JOBS = 40

#: Letters of a row's name, and of a user's name in it.
NAME_LETTERS, USER_LETTERS = 42, 14

#: Width of a label of a day, as a part of the space that each of the most labels has.
ROOM = 0.9

#: Longest window that is labelled by days, s.
BY_DAY = 4 * WEEK


def fans(answers: Answers) -> Figure:
    """Return a picture of load, queue and queued processors, before and after now."""
    figure = plots.new_figure(12, 7.6, *_titles(answers, "Forecast of load and queue"))
    panels = plots.panels(figure, 3, 1, bottom=0.075, top=0.86, hspace=0.38)
    before = answers.edges_before
    for axes, (name, (title, colour)) in zip(panels, PANELS.items(), strict=True):
        plots.tidy(axes, title)
        if name not in answers.fans:
            plots.say_nothing(axes, "these futures stop when all jobs have started")
            continue
        fan, scale = answers.fans[name], 100 if name == "load" else 1
        first, last = int(before[0]), int(answers.edges[-1])
        _draw_weekends(axes, answers.clock, first, last)
        if len(fan.before):
            _step(axes, before, scale * fan.before, color=RECORD, linewidth=1.1, label="record")
        _draw_bands(axes, answers.edges, scale * fan.bounds, colour)
        axes.axvline(answers.now, color=NOW, linewidth=1.0, linestyle=(0, (4, 2)), label="now")
        highest = max(float(fan.bounds.max()), float(fan.before.max(initial=0)), 1 / scale)
        axes.set_ylim(0, 104 if name == "load" and highest <= 1 else 1.06 * scale * highest)
        _label_days(axes, answers.clock, first, last, named=axes is panels[-1])
        if axes is panels[0]:
            plots.legend_at_right(figure, axes, 5)
    return figure


def starts(answers: Answers, most: int = MOST_JOBS) -> Figure:
    """Return a picture of when jobs start: those that one would submit, then those that wait.

    Parameters
    ----------
    answers
        What the futures say.
    most
        Most jobs; of those that wait the ones that were submitted first.
    """
    asked = [one for one in answers.jobs if one.number is None]
    waiting = [one for one in answers.jobs if one.number is not None]
    shown = [*asked, *waiting][:most]
    height = 1.75 + 0.245 * max(len(shown), 3)
    title, words = _titles(answers, "When jobs start")
    if len(shown) < len(answers.jobs):
        words = f"{words}; {len(shown):,} of {len(answers.jobs):,} jobs"
    figure = plots.new_figure(12, height, title, words)
    axes = figure.add_axes((0.235, 0.62 / height, 0.69, 1 - 1.62 / height))
    plots.tidy(axes)
    if not shown:
        plots.say_nothing(axes, "no job waits")
        return figure
    heading = "job, user: processors for requested time"
    axes.annotate(
        heading, (0, 1), (-8, 6), xycoords="axes fraction", textcoords="offset points", ha="right",
        fontsize=8, color="#444444",
    )  # fmt: skip
    last = _last_start(answers, shown)
    _draw_weekends(axes, answers.clock, answers.now, last)
    for place, one in enumerate(shown):
        _draw_start(axes, place, one, last)
    if asked and len(shown) > len(asked):
        axes.axhline(len(asked) - 0.5, color="#888888", linewidth=0.8)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_yticks(range(len(shown)), [_row_name(one) for one in shown], fontsize=8)
    plots.label_hours(axes, answers.clock, answers.now, last, named=True, most=10)
    axes.grid(visible=False, axis="y")
    _bar_legend(figure, "blue", ("start: 90 % of the futures", "50 %", "median"))
    return figure


def effects(found: Effects) -> Figure:
    """Return a picture of the effects of a change: load and queue over time, waits by size."""
    title = safe(f"Effect of {found.label}" if found.label else "Effect of the change")
    words = (
        f"with minus without the change, {plural(len(found.pairs), 'pair')} of futures from "
        f"{moment(found.clock, found.now)}; below 0: less with the change"
    )
    sizes = [one for one in found.totals if one.measure == "mean_wait_s"]
    sizes += [one for one in found.totals if one.measure == "mean_wait_now_s"]
    jobs = list(found.jobs) if not sizes else []
    rows = (sizes or jobs)[:MOST_JOBS]
    height = max(6.2, 1.9 + 0.3 * len(rows))
    figure = plots.new_figure(12, height, title, words)
    top, bottom = 1 - 1.05 / height, 0.55 / height
    grid = figure.add_gridspec(
        3, 2, left=0.05, right=0.985, bottom=bottom, top=top, hspace=0.45, wspace=0.28,
        width_ratios=(1.45, 1),
    )  # fmt: skip
    for place, (name, (text, colour)) in enumerate(PANELS.items()):
        axes = figure.add_subplot(grid[place, 0])
        plots.tidy(axes, text.replace("% of the machine", "percentage points"))
        if name not in found.fans:
            plots.say_nothing(axes, "these futures stop when all jobs have started")
            continue
        scale = 100 if name == "load" else 1
        first, last = int(found.edges[0]), int(found.edges[-1])
        _draw_weekends(axes, found.clock, first, last)
        _draw_bands(axes, found.edges, scale * found.fans[name], colour)
        axes.axhline(0, color="black", linewidth=0.8)
        _keep_apart(axes)
        _label_days(axes, found.clock, first, last, named=place == 2, most=8)
    axes = figure.add_subplot(grid[:, 1])
    _draw_effects(axes, rows, "Mean wait of the jobs of each size" if sizes else "Starts of jobs")
    _bar_legend(figure, "blue", ("90 % of the futures", "50 %", "median"), mean=True)
    return figure


# ---- parts of pictures --------------------------------------------------------------------------


def safe(text: str) -> str:
    """Return a text of the input as it can be drawn: printable, and never read as a formula."""
    return printable(text).replace("$", r"\$")


def _titles(answers: Answers, what: str) -> tuple[str, str]:
    """Return title and subtitle."""
    zone = "" if answers.clock.nominal else f" ({answers.clock.zone})"
    words = (
        f"{moment(answers.clock, answers.now)}{zone}; {plural(answers.futures, 'future')} of "
        f"{format_duration(answers.until - answers.now)}, {answers.scheduler}, users "
        f"{answers.users}, {plural(answers.processors, 'processor')}"
    )
    return safe(f"{what}: {answers.source}" if answers.source else what), safe(words)


def _step(axes: Axes, edges: Int64s, level: Floats, **look: Any) -> None:
    axes.step(edges, np.append(level, level[-1:]), where="post", **look)


def _draw_bands(axes: Axes, edges: Int64s, bounds: Floats, colour: str) -> None:
    """Draw a fan; bounds of shape (5, steps)."""
    shade = plots.COLOURS[colour]
    wide = np.concatenate((bounds, bounds[:, -1:]), axis=1)
    for outer, white, label in ((0, PALE[0], "90 % of the futures"), (1, PALE[1], "50 %")):
        axes.fill_between(
            edges, wide[outer], wide[4 - outer], step="post", linewidth=0, label=label,
            color=plots.paler(shade, white), zorder=1.5 + 0.1 * outer,
        )  # fmt: skip
    axes.step(edges, wide[2], where="post", color=shade, linewidth=1.3, label="median")


def _draw_weekends(axes: Axes, clock: Clock, first: int, last: int) -> None:
    """Shade Saturdays and Sundays by local time; nothing if the start is unknown."""
    if clock.nominal or last - first > 20 * WEEK:
        return
    monday = clock.wall(first) // WEEK
    for week in range(monday, clock.wall(last) // WEEK + 1):
        begin = max(clock.second_at(week * WEEK + 5 * DAY), first)
        end = min(clock.second_at((week + 1) * WEEK), last)
        if begin < end:
            axes.axvspan(begin, end, facecolor=WEEKEND, linewidth=0, zorder=0)


def _label_days(
    axes: Axes, clock: Clock, first: int, last: int, *, named: bool, most: int = 14
) -> None:
    """Label a window of days to weeks at midnights, others as other pictures do."""
    if clock.nominal or not 2 * DAY <= last - first <= BY_DAY:
        plots.label_hours(axes, clock, first, last, named=named, most=most)
        return
    days = range(-(-clock.wall(first) // DAY), clock.wall(last) // DAY + 1)
    every = -(-len(days) // most)
    places = [clock.second_at(day * DAY) for day in days[::every]]
    local = [clock.local(second) for second in places]
    texts = [
        f"{one:%a} {one.day} {one:%b}" if last - second > ROOM * (last - first) / most else ""
        for second, one in zip(places, local, strict=True)
    ]
    axes.set_xlim(first, last)
    axes.set_xticks(places, texts if named else [""] * len(places), fontsize=8, ha="left")
    if named:
        axes.set_xlabel(f"local time {clock.local(first).year}, {clock.zone}", fontsize=8.5)


def _last_start(answers: Answers, shown: Sequence[JobAnswer]) -> int:
    """Return the right end of a picture of starts, s since the origin."""
    every = np.concatenate([one.start for one in shown])
    if np.isinf(every).any():
        return answers.until
    latest = float(np.nanmax(every)) - answers.now
    return answers.now + max(math.ceil(1.04 * latest), HOUR)


def _draw_start(axes: Axes, place: int, one: JobAnswer, last: int) -> None:
    """Draw the bounds of a start as a bar; what is beyond the horizon leaves it at the right."""
    shade = plots.COLOURS["orange" if one.number is None else "blue"]
    low, lower, middle, upper, high = np.minimum(one.start, last).tolist()
    for left, right, size, white in ((low, high, 0.34, 0.62), (lower, upper, 0.62, 0.30)):
        if math.isnan(right):
            continue
        # A job that surely starts at once has a bar, too.
        width = max(right - left, 0.002 * (last - axes.get_xlim()[0]) if right < last else 0)
        axes.barh(place, width, size, left=left, color=plots.paler(shade, white), zorder=2)
    if math.isfinite(one.start[2]):
        axes.plot([middle, middle], [place - 0.36, place + 0.36], color="black", linewidth=1.6,
                  zorder=3, solid_capstyle="butt")  # fmt: skip
    look: dict[str, Any] = {
        "xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center",
        "fontsize": 7.5, "color": "#444444", "annotation_clip": False,
    }  # fmt: skip
    later = round(100 * (1 - one.within))
    text = f"{later} % later" if later else ""
    if one.held:
        text = "held"
    elif one.at_once >= 0.5:
        text = f"{100 * one.at_once:.0f} % at once"
    axes.annotate(text, (1, place), (4, 0), **look)


def _row_name(one: JobAnswer) -> str:
    """Return what is written next to a bar."""
    if one.number is None:
        return safe(plots.shortened(f"submit now: {one.name}", NAME_LETTERS))
    lasts = "" if one.requested < 0 else f" for {format_duration(one.requested)}"
    who = plots.shortened(one.user_name, USER_LETTERS)
    return safe(f"{one.name.removeprefix('job ')}, {who}: {one.processors:,}{lasts}")


def _draw_effects(axes: Axes, rows: Sequence[Effect], title: str) -> None:
    """Draw differences as bars with the interval of their mean."""
    plots.tidy(axes)
    rows = [one for one in rows if len(one.differences)]
    if not rows:
        plots.say_nothing(axes, "no job waits, and none comes")
        return
    largest = max(float(np.abs(one.bounds).max()) for one in rows)
    size, unit = time_unit(largest)
    axes.set_title(f"{title}, {unit}", **plots.TITLE)
    shade = plots.COLOURS["blue"]
    for place, one in enumerate(rows):
        low, lower, middle, upper, high = (one.bounds / size).tolist()
        for left, right, tall, white in ((low, high, 0.30, 0.62), (lower, upper, 0.56, 0.30)):
            axes.barh(place, right - left, tall, left=left, color=plots.paler(shade, white))
        axes.plot([middle, middle], [place - 0.34, place + 0.34], color="black", linewidth=1.6)
        mean = one.mean
        if mean.low is not None and mean.high is not None:
            axes.plot(
                [mean.low / size, mean.high / size], [place, place], linewidth=1.4,
                color=plots.COLOURS["vermilion"],
            )  # fmt: skip
        axes.plot([mean.mean / size], [place], "o", markersize=4, color=plots.COLOURS["vermilion"])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.use_sticky_edges = False
    axes.autoscale_view()
    names = [_effect_name(one) for one in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter("{x:,.10g}")
    if not largest:
        axes.set_xlim(-1, 1)


def _effect_name(one: Effect) -> str:
    if one.measure == "mean_wait_now_s":
        return "waiting now"
    if one.measure == "mean_wait_s":
        return "all jobs" if one.of == "all" else f"{one.of} proc."
    return safe(plots.shortened(one.of, NAME_LETTERS))


def _keep_apart(axes: Axes) -> None:
    """Give a panel in which nothing differs from 0 a height."""
    low, high = axes.get_ylim()
    if high - low < 1e-6 or max(abs(low), abs(high)) < 0.06:
        axes.set_ylim(-1, 1)


def _bar_legend(figure: Figure, colour: str, labels: Sequence[str], *, mean: bool = False) -> None:
    """Put the legend of bars into the upper right corner."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shade = plots.COLOURS[colour]
    handles: list[Any] = [
        Patch(color=plots.paler(shade, 0.62)),
        Patch(color=plots.paler(shade, 0.30)),
        Line2D([], [], color="black", linewidth=1.6),
    ]
    texts = list(labels)
    if mean:
        handles.append(Line2D([], [], color=plots.COLOURS["vermilion"], marker="o", markersize=4))
        texts.append("mean, 95 % interval")
    figure.legend(
        handles, texts, loc="upper right", bbox_to_anchor=(0.985, 0.99), ncols=len(texts),
        **plots.LEGEND,
    )  # fmt: skip


#: Pictures of a forecast: file name, title and caption.
CAPTIONS: Mapping[str, tuple[str, str]] = {
    "fans": (
        "Load and queue",
        "The record before now, and what comes after now: the median over futures, with "
        "bands that hold the central 50 % and 90 % of them at each time. Weekends are shaded.",
    ),
    "starts": (
        "When jobs start",
        "A row for each job: bars hold the central 50 % and 90 % of its starts, the black mark is "
        "the median. At the right: the probability that it starts at once, or later than the "
        "horizon, where a bar that reaches the right end goes on. Orange: jobs that one would "
        "submit now.",
    ),
    "effects": (
        "Effect of the change",
        "Left: differences of the two futures of a pair over time. Right: differences of the "
        "mean wait over the whole horizon by size of the jobs; the red dot is the mean over pairs, "
        "with the interval in which it lies with 95 % confidence.",
    ),
}
