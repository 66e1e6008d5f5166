"""A user's graph at a moment: the state of each unit, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND
from hpcrowd.analysis.views.frames import figure_at, where_known
from hpcrowd.analysis.views.units import OwnUnits, own_units
from hpcrowd.environment.clock import DAYS, WEEK
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.analysis.curves import Floats
    from hpcrowd.analysis.views.moment import Moment


#: States of units and their meaning.
UNIT_STATES = {
    "finished": "all its jobs have finished",
    "running": "some job has started, not all have finished",
    "queued": "submitted, no job has started",
    "free": "all it waits for has finished, the user thinks",
    "waits": "something it waits for has not finished",
}

#: The states by index.
STATE_NAMES = np.array(list(UNIT_STATES))
FINISHED, RUNNING, QUEUED, FREE, WAITS = range(len(STATE_NAMES))

#: Most units of a window, and the share of them before the first unfinished one.
MOST, BEHIND = 60, 0.4


#: Most units listed in a table cell.
MOST_NAMES = 12


@dataclass(frozen=True, eq=False)
class GraphNow:
    """The units of a user in a window around now."""

    own: OwnUnits  #: all units of the user
    shown: range  #: indices of those in the window
    state: Int64s  #: state of each unit of the window, index in :data:`STATE_NAMES`, shape (shown,)
    before: Int64s  #: edges between units of the window, as indices in the window, shape (edges,)
    after: Int64s

    @property
    def which(self) -> str:
        """The units shown, counted from 1: ``sessions 2,310 to 2,369 of 5,000``."""
        many = {"session": "sessions", "batch": "batches"}[self.own.name]
        total = len(self.own)
        if len(self.shown) == total:
            return f"{total:,} {many if total != 1 else self.own.name}"
        return f"{many} {self.shown.start + 1:,} to {self.shown.stop:,} of {total:,}"


def graph_now(moment: Moment, user: int, most: int | None = MOST) -> GraphNow:
    """Return the units of a user around now, with their states and what they wait for.

    At most ``most``, around the first unfinished one. A QuantityError says that there is no such
    user.
    """
    own = own_units(moment, user)
    shown = range(len(own))
    if most is not None and len(own) > most:
        open_ones = np.flatnonzero(~own.over)
        at = int(open_ones[0]) if len(open_ones) else len(own)
        begin = max(0, min(at - int(BEHIND * most), len(own) - most))
        shown = range(begin, begin + most)
    states = unit_states(own)
    inside = (own.before >= shown.start) & (own.before < shown.stop)
    inside &= (own.after >= shown.start) & (own.after < shown.stop)
    return GraphNow(
        own,
        shown,
        states[shown.start : shown.stop],
        own.before[inside] - shown.start,
        own.after[inside] - shown.start,
    )


def unit_states(own: OwnUnits) -> Int64s:
    """Return the state of each unit of a user, index in :data:`STATE_NAMES`, shape (units,)."""
    done = [own.over, own.started, own.submitted, own.free]
    return np.select(done, [FINISHED, RUNNING, QUEUED, FREE], WAITS).astype(np.int64)


def graph_table(moment: Moment, user: int, most: int | None = MOST) -> pd.DataFrame:
    """Return a table of the units of a user around now.

    Parameters
    ----------
    moment, user, most
        See :func:`graph_now`.

    Returns
    -------
    frame
        ``place`` among the user's units from 1, ``unit`` number, ``state`` (one of
        :data:`UNIT_STATES`), ``jobs``, ``processors`` of its largest job, ``submitted_s`` (first
        submission), ``due_s`` if it is free and its submission is known, ``ended_s``, all s since
        the origin; and the numbers of the unfinished units that it ``waits_for``, and of the units
        ``awaiting`` it.
    """
    import pandas as pd

    graph = graph_now(moment, user, most)
    own, shown = graph.own, slice(graph.shown.start, graph.shown.stop)
    begin, end = own.begin[shown], own.end[shown]
    submitted = own.submitted[shown]
    due = (graph.state == FREE) & (begin != UNKNOWN)
    processors = moment.jobs.processors[own.rows]
    size = np.maximum.reduceat(processors, own.first[:-1])
    numbers = own.numbers[shown]
    waits_for, awaiting = _names(own, graph.shown)
    return pd.DataFrame(
        {
            "place": np.arange(graph.shown.start, graph.shown.stop) + 1,
            "unit": numbers,
            "state": STATE_NAMES[graph.state],
            "jobs": np.diff(own.first)[shown],
            "processors": size[shown],
            "submitted_s": where_known(begin, submitted),
            "due_s": where_known(begin, due),
            "ended_s": where_known(end, end != UNKNOWN),
            "waits_for": pd.Series(waits_for, dtype="str"),
            "awaiting": pd.Series(awaiting, dtype="str"),
        }
    )


def graph_network(moment: Moment, user: int, most: int | None = MOST) -> nx.DiGraph[int]:
    """Return the same as a networkx graph.

    Nodes are unit numbers with the columns of :func:`graph_table` except ``unit`` as attributes,
    None if missing; edges lead from a unit to those that wait for it.
    """
    import networkx as nx

    graph = graph_now(moment, user, most)
    network: nx.DiGraph[int] = nx.DiGraph(user=user, now=moment.now, units=graph.which)
    frame = graph_table(moment, user, most)
    for row in frame.astype(object).where(frame.notna(), None).to_dict("records"):
        network.add_node(row.pop("unit"), **{str(name): value for name, value in row.items()})
    numbers = graph.own.numbers[graph.shown.start : graph.shown.stop]
    network.add_edges_from(
        zip(numbers[graph.before].tolist(), numbers[graph.after].tolist(), strict=True)
    )
    return network


def _names(own: OwnUnits, shown: range) -> tuple[list[str], list[str]]:
    """Return what each unit of a window waits for, and what awaits it, as text."""
    if not own.waits:
        return [""] * len(shown), [""] * len(shown)
    held = ~own.over[own.before]
    before, after = own.before[held], own.after[held]
    if own.ordered:  # an unsubmitted unit also holds up the next one
        late = np.flatnonzero(~own.submitted[:-1])
        pairs = np.stack([np.append(before, late), np.append(after, late + 1)])
        before, after = np.unique(pairs, axis=1)
    return _listed(own.numbers[before], after, shown), _listed(own.numbers[after], before, shown)


def _listed(numbers: Int64s, places: Int64s, shown: range) -> list[str]:
    """Return the first numbers at each index of a window as text, with how many more."""
    inside = np.flatnonzero((places >= shown.start) & (places < shown.stop))
    inside = inside[np.lexsort((numbers[inside], places[inside]))]
    first = np.searchsorted(places[inside], np.arange(shown.start, shown.stop + 1)).tolist()
    texts = []
    for begin, end in pairwise(first):
        text = ", ".join(map(str, numbers[inside[begin : min(end, begin + MOST_NAMES)]].tolist()))
        more = end - begin - MOST_NAMES
        texts.append(f"{text} and {more:,} more" if more > 0 else text)
    return texts


#: Colour, marker, letter and text of each state, so that colour is never the only sign.
LOOKS = {
    "finished": ("grey", "s", "F", "finished"),
    "running": ("blue", "o", "R", "running"),
    "queued": ("vermilion", "D", "Q", "in the queue"),
    "free": ("green", "p", "T", "free (below: when it comes, if known)"),
    "waits": ("orange", "h", "W", "waiting for other units"),
}

#: Columns in one row of the picture; a longer graph continues below.
COLUMNS = 15

#: Inches between units above each other, and above and below the whole graph.
LANE, HEAD, FOOT = 0.46, 1.08, 0.12

#: Most units above each other; further ones go into the next column.
DEEPEST = 8

#: Lanes between rows.
GAP = 0.45

#: Greatest height of a picture, inches; if it would be higher, units have no text.
HIGHEST = 12.0


def graph_picture(
    moment: Moment, user: int, most: int | None = MOST, *, width: float = 9.5
) -> Figure:
    """Return a picture of the units of a user around now, and of what each waits for.

    Each unit is to the right of all that it waits for; a line is red while that has not finished.
    A line to the next row goes to the right edge and continues from the left.

    Parameters
    ----------
    moment, user, most
        See :func:`hpcrowd.analysis.views.graph`.
    width
        Inches; the height follows.

    Raises
    ------
    QuantityError
        When there is no such user.
    """
    graph = graph_now(moment, user, most)
    layout = _lay_out(graph)
    height = min(HIGHEST, HEAD + FOOT + LANE * layout.lanes)
    figure = figure_at(
        moment, f"Graph of user {moment.jobs.who(user)}", width, height, _words(graph)
    )
    axes = figure.add_axes((0.015, FOOT / height, 0.97, 1 - (HEAD + FOOT) / height))
    axes.set_axis_off()
    axes.set(xlim=(-0.6, COLUMNS - 0.4), ylim=(layout.lanes - 0.5, -0.5))
    if not len(graph.shown):
        lost = moment.submitted[moment.rows_of(user)].any()
        words = "the folder of the run does not contain its sessions"
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
            # Drawing a marker is many times faster than a text at each unit.
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
    """Positions of units: column, height, row of the picture; and the number of lanes."""

    x: Int64s
    y: Floats
    row: Int64s
    lanes: float


def _lay_out(graph: GraphNow) -> _Layout:
    depth = [0] * len(graph.shown)
    order = np.argsort(graph.after, kind="stable")
    # A unit has a higher number than those it waits for.
    edges = zip(graph.before[order].tolist(), graph.after[order].tolist(), strict=True)
    for before, after in edges:
        depth[after] = max(depth[after], depth[before] + 1)
    level = np.array(depth, np.int64)
    order = np.argsort(level, kind="stable")
    count = np.bincount(level) if len(level) else np.zeros(1, np.int64)
    nth = np.empty(len(level), np.int64)
    nth[order] = np.arange(len(level)) - (np.cumsum(count) - count)[level[order]]
    columns = -(-count // DEEPEST)  # many parallel units fill several columns
    column = (np.cumsum(columns) - columns)[level] + nth // DEEPEST
    lane = nth % DEEPEST
    row, x = np.divmod(column, COLUMNS)
    deep = np.zeros(int(row.max(initial=0)) + 1)
    np.maximum.at(deep, row, lane + 1.0)
    tops = np.concatenate([[0.0], np.cumsum(deep + GAP)])
    return _Layout(x, tops[row] + lane, row, max(float(tops[-1]), 1.0))


def _words(graph: GraphNow) -> str:
    """Return the units shown and the number in each state, in words."""
    counts = np.bincount(graph.state, minlength=len(STATE_NAMES)).tolist()
    words = [words.split(",")[0] for *_, words in LOOKS.values()]
    states = [f"{count:,} {word}" for count, word in zip(counts, words, strict=True) if count]
    return f"{graph.which}: {', '.join(states)}" if states else graph.which


def _draw_edges(axes: Axes, graph: GraphNow, layout: _Layout) -> None:
    """Draw a line for each edge, red if it holds something up."""
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
    """Write its number, and when it is due, below each unit."""
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
