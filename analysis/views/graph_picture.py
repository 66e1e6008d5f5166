"""The picture of a user's graph: units in columns, what waits to the right of what it waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.plots import COLOURS, LEGEND
from analysis.views.frames import figure_at
from analysis.views.graph_now import FINISHED, FREE, MOST, STATE_NAMES, WAITS, GraphNow, graph_now
from environment.clock import DAYS, WEEK
from environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.curves import Floats
    from analysis.views.moment import Moment

#: Colour, marker, letter and words of each state, so that none is told by colour alone.
LOOKS = {
    "finished": ("grey", "s", "F", "finished"),
    "running": ("blue", "o", "R", "running"),
    "queued": ("vermilion", "D", "Q", "in the queue"),
    "free": ("green", "p", "T", "free, and when it comes if that is known"),
    "waits": ("orange", "h", "W", "waiting for others"),
}

#: Columns in one row of the picture; a longer graph goes on below.
COLUMNS = 15

#: Inches between units above each other, and above and below all.
LANE, HEAD, FOOT = 0.46, 1.08, 0.12

#: Most units above each other; more stand beside them.
DEEPEST = 8

#: Lanes between rows.
GAP = 0.45

#: A picture is at most so high, inches; in a higher one nothing is written at the units.
HIGHEST = 12.0


def graph_picture(
    moment: Moment, user: int, most: int | None = MOST, *, width: float = 9.5
) -> Figure:
    """Return a picture of the units of a user around now, with what each waits for.

    Each unit stands to the right of all that it waits for; lines are red where that is not over.
    What goes on in the next row has a line to the right edge, and one from the left.

    Parameters
    ----------
    moment, user, most
        See :func:`analysis.views.graph_now`.
    width
        Inches; the height is what it needs.

    Raises
    ------
    QuantityError
        When there is no such user.
    """
    graph = graph_now(moment, user, most)
    layout = _lay_out(graph)
    height = min(HIGHEST, HEAD + FOOT + LANE * layout.lanes)
    figure = figure_at(moment, f"Graph of user {user}", width, height, _words(graph))
    axes = figure.add_axes((0.015, FOOT / height, 0.97, 1 - (HEAD + FOOT) / height))
    axes.set_axis_off()
    axes.set(xlim=(-0.6, COLUMNS - 0.4), ylim=(layout.lanes - 0.5, -0.5))
    if not len(graph.shown):
        lost = moment.submitted[moment.rows_of(user)].any()
        words = "which sessions it has is not in the folder of the run"
        axes.text(0, 0, words if lost else f"no {graph.own.name} yet", color="#444444")
        return figure
    _draw_edges(axes, graph, layout)
    crowded = LANE * layout.lanes > HIGHEST
    for place, name in enumerate(STATE_NAMES.tolist()):
        which = graph.state == place
        colour, marker, letter, words = LOOKS[name]
        axes.scatter(
            layout.x[which], layout.y[which], s=40 if crowded else 150, marker=marker,
            color=COLOURS[colour], edgecolors="black", linewidths=0.6, zorder=3,
            label=f"{letter} {words}",
        )  # fmt: skip
        if not crowded and which.any():
            # A marker is drawn many times faster than a text at each unit.
            axes.scatter(
                layout.x[which], layout.y[which], s=28, color="black", linewidths=0, zorder=4,
                marker=f"$\\mathrm{{{letter}}}$",
            )  # fmt: skip
    if not crowded:
        _write(axes, graph, layout)
    axes.legend(
        **LEGEND, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(LOOKS),
        borderaxespad=0.1, markerscale=0.7, columnspacing=1.2,
    )  # fmt: skip
    return figure


@dataclass(frozen=True)
class _Layout:
    """Where units stand: columns and heights, rows of the picture, and lanes in all."""

    x: Int64s
    y: Floats
    row: Int64s
    lanes: float


def _lay_out(graph: GraphNow) -> _Layout:
    depth = [0] * len(graph.shown)
    order = np.argsort(graph.after, kind="stable")
    # A unit has a higher number than all that it waits for.
    edges = zip(graph.before[order].tolist(), graph.after[order].tolist(), strict=True)
    for before, after in edges:
        depth[after] = max(depth[after], depth[before] + 1)
    level = np.array(depth, np.int64)
    order = np.argsort(level, kind="stable")
    count = np.bincount(level) if len(level) else np.zeros(1, np.int64)
    nth = np.empty(len(level), np.int64)
    nth[order] = np.arange(len(level)) - (np.cumsum(count) - count)[level[order]]
    columns = -(-count // DEEPEST)  # what is side by side for long fills several
    column = (np.cumsum(columns) - columns)[level] + nth // DEEPEST
    lane = nth % DEEPEST
    row, x = np.divmod(column, COLUMNS)
    deep = np.zeros(int(row.max(initial=0)) + 1)
    np.maximum.at(deep, row, lane + 1.0)
    tops = np.concatenate([[0.0], np.cumsum(deep + GAP)])
    return _Layout(x, tops[row] + lane, row, max(float(tops[-1]), 1.0))


def _words(graph: GraphNow) -> str:
    """Return which units are shown, and how many of them are in which state."""
    counts = np.bincount(graph.state, minlength=len(STATE_NAMES)).tolist()
    words = [words.split(",")[0] for *_, words in LOOKS.values()]
    states = [f"{count:,} {word}" for count, word in zip(counts, words, strict=True) if count]
    return f"{graph.which}: {', '.join(states)}" if states else graph.which


def _draw_edges(axes: Axes, graph: GraphNow, layout: _Layout) -> None:
    """Draw a line for each edge, red where it holds something up."""
    from matplotlib.collections import LineCollection

    red = (graph.state[graph.before] != FINISHED) & (graph.state[graph.after] == WAITS)
    lines: dict[bool, list[Any]] = {False: [], True: []}
    x, y, row = layout.x.tolist(), layout.y.tolist(), layout.row.tolist()
    for before, after, holds in zip(
        graph.before.tolist(), graph.after.tolist(), red.tolist(), strict=True
    ):
        if row[before] == row[after]:
            lines[holds].append([(x[before], y[before]), (x[after], y[after])])
        else:
            lines[holds].append([(x[before], y[before]), (COLUMNS - 0.4, y[before])])
            lines[holds].append([(-0.6, y[after]), (x[after], y[after])])
    for holds, some in lines.items():
        look: dict[str, Any] = {"colors": COLOURS["vermilion"] if holds else "#b0b0b0"}
        axes.add_collection(
            LineCollection(some, linewidths=1.5 if holds else 0.9, **look), autolim=False
        )


def _write(axes: Axes, graph: GraphNow, layout: _Layout) -> None:
    """Write the number of each unit below it, and when it is due."""
    own, clock = graph.own, graph.own.moment.clock
    look: dict[str, Any] = {"ha": "center", "zorder": 4}
    for place, (x, y) in enumerate(zip(layout.x.tolist(), layout.y.tolist(), strict=True)):
        unit = graph.shown.start + place
        text = str(own.numbers[unit])
        if graph.state[place] == FREE and own.begin[unit] != UNKNOWN:
            due = clock.local(int(own.begin[unit]))
            near = own.begin[unit] - own.moment.now < WEEK
            day = f"{DAYS[due.weekday()]} {due:%H:%M}" if near else f"{due.day} {due:%b}"
            text += f"\n{day}"
        axes.text(x, y + 0.27, text, fontsize=6.5, va="top", linespacing=0.95, **look)
