"""Pictures of groups of runs that count users, not jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis.comparison_groups import Group, work_of
from analysis.comparison_style import headed_figure, look_of, shortened
from analysis.paired import Floats
from analysis.plots import TITLE, say_nothing, tidy
from environment.clock import DAY, HOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Where the axis of differences between users is labelled, s.
MARKS = {600: "10 min", HOUR: "1 h", DAY: "1 d", 10 * DAY: "10 d", 100 * DAY: "100 d"}
MARKS |= {1000 * DAY: "1,000 d"}

#: About 0 the axis is linear, up to here, s; with smaller values up to the second.
LINEAR = (HOUR, 600)


def users_apart(groups: Sequence[Group], title: str = "From user to user") -> Figure:
    """Return how late users are against the record, and how their waits differ from the first.

    Both count users, not jobs; a value is a user's mean over jobs, and over runs.
    """
    figure, bottom, top = headed_figure(12, 4.4, title, groups)
    grid = figure.add_gridspec(1, 2, left=0.055, right=0.985, bottom=bottom, top=top, wspace=0.14)
    late, wait = (figure.add_subplot(grid[0, column]) for column in (0, 1))
    tidy(late)
    late.set_title("Share of users who submit less late than ..., against the record", **TITLE)
    lines = [(group.users["lateness_mean_s"][1], place) for place, group in enumerate(groups)]
    _draw_shares(late, lines, "a user's mean lateness", "no record to be late against")
    tidy(wait)
    first = groups[0]
    wait.set_title("Share of users whose mean wait is longer by less than ...", **TITLE)
    differences = []
    for place, group in enumerate(groups):
        if place and work_of(group.first) == work_of(first.first):
            (users, values), (others, other_values) = (
                one.users["wait_mean_s"] for one in (first, group)
            )
            _, in_first, in_other = np.intersect1d(
                users, others, assume_unique=True, return_indices=True
            )
            differences.append((other_values[in_other] - values[in_first], place))
    name = f"a user's mean wait, difference to {shortened(first.label, 48)}"
    _draw_shares(wait, differences, name, "no users to be paired")
    return figure


def _draw_shares(axes: Axes, lines: Sequence[tuple[Floats, int]], name: str, nothing: str) -> None:
    """Draw distributions over users on an axis of time that is linear about 0."""
    from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

    drawn = [(np.sort(values), place) for values, place in lines if len(values)]
    if not drawn:
        return say_nothing(axes, nothing)
    furthest = max(float(np.abs(values).max()) for values, _ in drawn)
    linear = LINEAR[0] if furthest > DAY else LINEAR[1]
    furthest = max(furthest, linear)
    for values, place in drawn:
        # From the left edge to the right one, a step at each user.
        x = np.concatenate([[-2 * furthest], values, [2 * furthest]])
        share = np.concatenate([[0], np.arange(1, len(values) + 1) / len(values), [1]])
        axes.step(x, share, where="post", linewidth=1.5, **look_of(place))
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xscale("symlog", linthresh=linear, linscale=0.6)
    low = min(float(values[0]) for values, _ in drawn)
    high = max(float(values[-1]) for values, _ in drawn)
    least = max(0.1 * furthest, 1.4 * linear)  # about 0 there is always something to be seen
    axes.set_xlim(min(1.6 * low, -least), max(1.6 * high, least))
    marks = {sign * second: text for second, text in MARKS.items() for sign in (1, -1)}
    shown = {0: "0"} | {
        second: ("+" if second > 0 else "-") + text
        for second, text in marks.items()
        if axes.get_xlim()[0] <= second <= axes.get_xlim()[1] and abs(second) >= linear
    }
    axes.xaxis.set_major_locator(FixedLocator(list(shown)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(list(shown), list(shown.values()))
    axes.set_ylim(0, 1.01)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel(name, fontsize=8.5)
    return None
