"""Gantt charts of long windows, as density: who used how much of the machine when.

A picture a thousand pixels wide cannot show the jobs of a year one by one. :func:`density` shows
instead the share of the machine that the busiest users held in each stretch of time, as a heat map
of users by time, with the processors in use and the queue below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.curves import Floats, mean_level, processor_seconds, size_steps
from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable, State
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Most rows with a name of their own; the others share the last row.
MOST_ROWS = 14

#: Most cells side by side, so that each is at least 3 pixels wide.
MOST_CELLS = 360

#: Shares of the machine that the colour scale labels.
MARKS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)

#: Shares below this are white: they would not be seen, and many cells hold a job of a minute.
LEAST_SHARE = 0.001

#: Letters of the name of a row.
LETTERS = 18

#: Height of the title with the scale, of a row, of each panel below, between them and below all,
#: inches.
HEAD, ROW, PANEL, GAP, FOOT = 1.05, 0.24, 0.62, 0.4, 0.6

#: Fewest rows for which there is room.
FEWEST_ROWS = 3


@dataclass(frozen=True)
class Density:
    """The shares of the machine that users, queues, clusters or states held over time."""

    #: Name of each row, the one with the most work first; the last may stand for all others.
    names: list[str]
    numbers: list[int]  #: numbers of the rows, -1 for all others together
    edges: Int64s  #: edges of the stretches of time, s, shape (stretches + 1,)
    width: int  #: length of a stretch, s; the first and the last may be shorter
    share: Floats  #: mean share of the machine in each stretch, 0 to 1, shape (rows, stretches)
    work: Floats  #: share of all processor-seconds held in the window, shape (rows,)
    held: Floats  #: processors held in each stretch, averaged, shape (stretches,)


def density_of(run: Run, first: int, last: int, by: str = "user") -> Density:
    """Return who held which share of the machine when, ``by`` user, queue, cluster or state; s."""
    jobs = run.runs
    end = np.where(jobs.end == UNKNOWN, max(last, int(jobs.start.max(initial=0))), jobs.end)
    rows = np.flatnonzero((jobs.start != UNKNOWN) & (jobs.start < last) & (end > first))
    begin, end = np.maximum(jobs.start[rows], first), np.minimum(end[rows], last)
    width, edges = stretches(run.clock, first, last)
    processors = jobs.processors[rows]
    steps = size_steps(run.processors, run.parts.sizes, first, last)
    there = _size(steps, edges)
    numbers, which = np.unique(getattr(jobs, by)[rows], return_inverse=True)
    work = np.bincount(which, processors * (end - begin).astype(float), len(numbers))
    order = np.argsort(-work, kind="stable")
    # A row of others with a single member would only hide its name.
    kept = order if len(order) <= MOST_ROWS + 1 else order[:MOST_ROWS]
    names = [_name(jobs, int(numbers[place]), by) for place in kept]
    places = np.full(len(numbers), len(kept))
    places[kept] = np.arange(len(kept))
    if len(kept) < len(order):
        names.append(f"{len(order) - len(kept):,} other {by}s")
    row = places[which]
    levels = [
        mean_level(begin[row == n], end[row == n], processors[row == n], edges)
        for n in range(len(names))
    ]
    found = np.array(levels).reshape(len(names), len(edges) - 1)
    total = np.bincount(row, processors * (end - begin).astype(float), len(names))
    share = np.divide(found, there, out=np.zeros_like(found), where=there > 0)
    of = numbers[kept].tolist() + [UNKNOWN] * (len(kept) < len(order))
    return Density(names, of, edges, width, share, total / max(total.sum(), 1.0), found.sum(axis=0))


def stretches(clock: Clock, first: int, last: int) -> tuple[int, Int64s]:
    """Return the length and the edges of the stretches of time, s; days are local days."""
    edges = curves.time_edges(first, last, MOST_CELLS)
    width = int(edges[1] - edges[0])
    if width % DAY:
        inside = edges[(edges > first) & (edges < last)]
    else:
        days = range(clock.wall(first) // DAY, clock.wall(last) // DAY + 2, width // DAY)
        inside = np.array([clock.second_at(day * DAY) for day in days])
        inside = inside[(inside > first) & (inside < last)]
    return width, np.concatenate([[first], inside, [last]]).astype(np.int64)


def _size(steps: list[tuple[int, int]], edges: Int64s) -> Floats:
    """Return the processors of the machine in each stretch, averaged."""
    times, sizes = (np.array(column, np.int64) for column in zip(*steps, strict=True))
    ends = np.append(times[1:], edges[-1])
    return mean_level(times, ends, sizes, edges)


def _name(jobs: JobTable, number: int, by: str) -> str:
    if by == "state":
        return State(number).name.lower()
    who = "unknown" if number == UNKNOWN else jobs.who(number, by)
    return plots.shortened(f"{by} {who}", LETTERS)


def density(run: Run, first: int, last: int, *, by: str = "user", title: str = "") -> Figure:
    """Return a picture of who held which share of the machine when, with the queue below it.

    A row is a ``user``, ``queue``, ``cluster`` or ``state``. The title is by default the trace and
    the label of the run.
    """
    from hpcrowd.analysis.pictures.gantt import draw_queue_steps, window_name

    found = density_of(run, first, last, by)
    heights = (ROW * max(len(found.names), FEWEST_ROWS), PANEL, PANEL, PANEL)
    height = HEAD + sum(heights) + GAP * (len(heights) - 1) + FOOT
    figure = plots.new_figure(12, height, title or f"Density of use, {plots.run_name(run)}")
    drawn: list[Axes] = []
    top = height - HEAD
    for tall in heights:
        drawn.append(figure.add_axes((0.125, (top - tall) / height, 0.82, tall / height)))
        top -= tall + GAP
    machine, used, count, asked = drawn
    steps = size_steps(run.processors, run.parts.sizes, first, last)
    there = processor_seconds(run.processors, run.parts.sizes, first, last)
    share = float(found.held @ np.diff(found.edges)) / there if there else 0.0
    text = (
        f"{window_name(run, first, last)}: jobs of {_of(run.jobs, found, by)} held "
        f"{100 * share:.1f} % of {run.processors:,} processors"
    )
    figure.text(0.012, 1 - 0.36 / height, text, va="top", fontsize=9.5, color="#444444")
    if found.names:
        _draw_cells(figure, machine, found)
    else:
        plots.tidy(machine)
        plots.say_nothing(machine, "no job ran in this window")
    mean = plots.averaged(np.array([0, found.width]))
    machine.set_title(
        f"Share of the machine that each {by} held, {mean}; at the right: share of all work",
        **plots.TITLE,
    )
    plots.label_hours(machine, run.clock, first, last, named=False)
    plots.tidy(used, "Processors in use; dashed: size of the machine")
    used.stairs(found.held, found.edges, fill=True, color=plots.COLOURS["sky"])
    plots.draw_size(used, steps, last)
    used.set_ylim(0, 1.08 * max(1, *(size for _, size in steps)))
    plots.count_axis(used)
    plots.label_hours(used, run.clock, first, last, named=False)
    draw_queue_steps(count, asked, run, first, last)
    return figure


def _of(jobs: JobTable, found: Density, by: str) -> str:
    """Return how many users, queues, clusters or states there are, in words."""
    if found.names and found.names[-1].endswith(f" other {by}s"):
        others = int(found.names[-1].split()[0].replace(",", ""))
        return plural(len(found.names) - 1 + others, by)
    return plural(len(found.names), by)


def _draw_cells(figure: Figure, axes: Axes, found: Density) -> None:
    """Draw the heat map, the shares of the work at its right, and the scale above it."""
    from matplotlib import colormaps
    from matplotlib.colors import PowerNorm

    colours = colormaps["YlGnBu"].with_extremes(under="white")
    norm = PowerNorm(0.5, LEAST_SHARE, 1.0)
    count = len(found.names)
    mesh = axes.pcolormesh(
        found.edges, np.arange(count + 1), np.where(found.share < LEAST_SHARE, -1.0, found.share),
        cmap=colours, norm=norm, rasterized=True,
    )  # fmt: skip
    axes.set_ylim(count, 0)
    axes.set_yticks(np.arange(count) + 0.5, found.names, fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8, length=3, color="#888888")
    axes.spines[:].set_color("#bbbbbb")
    for row in range(1, count):
        axes.axhline(row, color="white", linewidth=1.2)
    for row, part in enumerate(found.work.tolist()):
        axes.text(
            1.006, row + 0.5, f"{100 * part:.1f} %", transform=axes.get_yaxis_transform(),
            va="center", fontsize=8, color="#444444",
        )  # fmt: skip
    height = figure.get_figheight()
    scale = figure.add_axes((0.70, 1 - 0.55 / height, 0.245, 0.12 / height))
    bar = figure.colorbar(mesh, cax=scale, orientation="horizontal", extend="neither")
    bar.set_ticks(list(MARKS), labels=[f"{100 * mark:g}" for mark in MARKS])
    bar.ax.tick_params(labelsize=7.5, length=2, pad=2)
    bar.outline.set_linewidth(0.4)
    bar.ax.minorticks_off()
    bar.ax.set_title("% of the machine; white: less than 0.1 %", fontsize=8, loc="left", pad=3)
