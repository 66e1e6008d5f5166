"""Small multiples: the same small picture of each of many runs, side by side on the same axes.

One can distinguish the lines of :data:`MOST_OVERLAID` runs in one panel. More of them get a panel
each, in which the others are drawn in grey behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.comparison.numbers import Group
from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.pictures.over_time import waits_of
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.jobs import Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Most runs whose lines share a panel.
MOST_OVERLAID = 4

#: Runs from which on there are four panels side by side instead of three.
MANY = 13

#: Height of a panel with the space below it, of the head and of the foot, inches.
PANEL, HEAD, FOOT = 1.75, 0.95, 0.35

#: Letters of a panel's title, with three panels side by side.
LETTERS = 48

#: A queue this many times longer than the usual one makes the axis logarithmic.
LOPSIDED = 8

#: A logarithmic axis of a queue is linear up to this many jobs.
LINEAR_JOBS = 10

#: The other runs behind the one of a panel.
BEHIND: dict[str, Any] = {"color": "#c9c9c9", "linewidth": 0.8, "zorder": 1}


@dataclass(frozen=True)
class Curve:
    """The lines of a group in a panel."""

    x: Int64s | Floats  #: shape (points,)
    y: Floats  #: a line per run, shape (runs, points)
    drawstyle: str = "default"  #: as matplotlib calls it: ``default`` or ``steps-post``


def headed(head: str, groups: Sequence[Group]) -> str:
    """Return the title of a picture, with the trace if all groups have the same one."""
    names = {plots.trace_name(group.first) for group in groups}
    return ", ".join(filter(None, (head, names.pop() if len(names) == 1 else "")))


def grid_of(
    groups: Sequence[Group], head: str, subtitle: str = ""
) -> tuple[Figure, list[Axes], set[int]]:
    """Return a figure with a panel per group, its panels, and the places of those at the bottom."""
    columns = 3 if len(groups) < MANY else 4
    rows = -(-len(groups) // columns)
    height = HEAD + PANEL * rows + FOOT
    figure = plots.new_figure(12, height, headed(head, groups), subtitle)
    places = {"left": 0.055, "right": 0.985, "hspace": 0.42, "wspace": 0.16}
    places |= {"bottom": (FOOT + 0.2) / height, "top": 1 - HEAD / height}
    found = plots.panels(figure, rows, columns, **places)
    for axes in found[len(groups) :]:
        axes.remove()
    letters = LETTERS * 3 // columns
    for axes, group in zip(found, groups, strict=False):
        plots.tidy(axes)
        axes.set_title(plots.shortened(group.title, letters), fontsize=8.5, loc="left")
    bottom = {place for place in range(len(groups)) if place + columns >= len(groups)}
    return figure, found[: len(groups)], bottom


def draw_multiples(
    panels: Sequence[Axes], curves_of: Sequence[Curve | None], finish: Callable[[Axes, int], None]
) -> None:
    """Draw each group in its panel, with the means of the others in grey behind.

    A group without lines has None; ``finish`` labels the axes of a panel, by its place.
    """
    for place, axes in enumerate(panels):
        for other, curve in enumerate(curves_of):
            if curve is not None and other != place:
                axes.plot(
                    curve.x, curve.y.mean(axis=0), drawstyle=curve.drawstyle, **BEHIND
                )  # fmt: skip
        mine = curves_of[place]
        if mine is not None:
            colour = plots.look_of(place)["color"]
            if len(mine.y) > 1:
                axes.fill_between(
                    mine.x, mine.y.min(axis=0), mine.y.max(axis=0), color=colour, alpha=0.25,
                    linewidth=0, step="post" if mine.drawstyle == "steps-post" else None,
                )  # fmt: skip
            axes.plot(
                mine.x, mine.y.mean(axis=0), color=colour, linewidth=1.6, zorder=3,
                drawstyle=mine.drawstyle,
            )  # fmt: skip
        finish(axes, place)


def draw_band(
    axes: Axes, x: Int64s | Floats, levels: Floats, place: int, linewidth: float = 1.4
) -> None:
    """Draw the mean of ``levels`` (runs, x) with a band from the lowest to the highest."""
    look = plots.look_of(place)
    if len(levels) > 1:
        low, high = levels.min(axis=0), levels.max(axis=0)
        axes.fill_between(x, low, high, color=look["color"], alpha=0.22, linewidth=0)
    axes.plot(x, levels.mean(axis=0), linewidth=linewidth, **look)


def queue_multiples(groups: Sequence[Group], levels: Sequence[Floats], edges: Int64s) -> Figure:
    """Return the queue over time of many groups, a panel each, on the same axes.

    The levels are jobs in the queue, averaged over the bins between ``edges`` (s), shape (runs,
    bins).
    """
    tops = np.array([float(level.max()) for level in levels])
    highest = max(1.0, float(tops.max()))
    lopsided = highest > LOPSIDED * max(1.0, float(np.median(tops)))
    text = "dark: mean over the seeds; pale: longest of any seed"
    notes = [text] if any(len(group.runs) > 1 for group in groups) else []
    if lopsided:
        notes.append(f"logarithmic above {LINEAR_JOBS} jobs")
    figure, panels, bottom = grid_of(groups, "Jobs in the queue", "; ".join(notes))
    clock = with_shared_clock(groups)
    for place, (axes, level) in enumerate(zip(panels, levels, strict=True)):
        fill_level(axes, level, edges, plots.look_of(place)["color"])
        if lopsided:
            axes.set_yscale("symlog", linthresh=LINEAR_JOBS, linscale=1)
            marks = [0, *(10**power for power in range(1, 12) if 10**power <= 1.3 * highest)]
            plots.label_at(axes.yaxis, {mark: f"{mark:,}" for mark in marks})
        axes.set_ylim(0, (1.3 if lopsided else 1.05) * highest)
        label_time(axes, clock, edges, last=place in bottom)
    return figure


def fill_level(axes: Axes, level: Floats, edges: Int64s, colour: str) -> None:
    """Draw a level (runs, bins): dark the mean over the runs, pale the highest of any run."""
    if len(level) > 1:
        axes.stairs(level.max(axis=0), edges, fill=True, color=colour, alpha=0.3)
    axes.stairs(level.mean(axis=0), edges, fill=True, color=colour)


def label_time(axes: Axes, clock: Run, edges: Int64s, *, last: bool) -> None:
    """Label the time axis of a panel; only those at the bottom have labels."""
    plots.time_axis(axes, clock, int(edges[0]), int(edges[-1]), labels=5, named=False)
    axes.tick_params(axis="x", labelsize=7.5)
    if not last:
        axes.tick_params(labelbottom=False)


def span_of_groups(groups: Sequence[Group]) -> tuple[int, int] | None:
    """Return the first and last second of all runs; None if nothing happened."""
    spans = [curves.span_of(run.runs) for group in groups for run in group.runs]
    known = [span for span in spans if span is not None]
    if not known:
        return None
    return min(first for first, _ in known), max(last for _, last in known)


def with_shared_clock(groups: Sequence[Group]) -> Run:
    """Return a run with the clock of all groups; the nominal clock if their origins differ."""
    first = groups[0].first
    same = all(group.first.clock == first.clock for group in groups)
    return first if same else replace(first, clock=Clock())


#: Points of a distribution of waits.
POINTS = 160


def wait_shares(groups: Sequence[Group]) -> Figure:
    """Return the share of jobs that waited longer than a time, of each group."""
    waits = [[waits_of(run)[1] for run in group.runs] for group in groups]
    longest = max((int(wait.max()) for found in waits for wait in found if len(wait)), default=0)
    x = np.geomspace(1.0, max(float(longest), 60.0), POINTS)
    lines = [_shares(found, x) for found in waits]
    text = "Share of jobs that waited longer than ..."

    def finish(axes: Axes, *, labelled: bool = True) -> None:
        plots.wait_axes(axes, 1.5 * x[-1])
        axes.tick_params(axis="x", labelbottom=labelled)

    if len(groups) > MOST_OVERLAID:
        figure, panels, bottom = grid_of(groups, "Waits of jobs", f"{text}; grey: the other runs")
        draw_multiples(panels, lines, lambda axes, at: finish(axes, labelled=at in bottom))
        return figure
    titles = [group.title for group in groups]
    figure, low, top = plots.legend_figure(12, 3.4, headed("Waits of jobs", groups), titles)
    (axes,) = plots.panels(figure, 1, 1, bottom=low, top=top)
    plots.tidy(axes, text)
    for place, line in enumerate(lines):
        if line is not None:
            draw_band(axes, x, line.y, place, linewidth=1.5)
    if not any(line is not None for line in lines):
        plots.say_nothing(axes, "no job ran")
        return figure
    finish(axes)
    axes.set_xlabel("wait", fontsize=8.5)
    return figure


def _shares(waits: Sequence[Int64s], x: Floats) -> Curve | None:
    """Return the shares of waits (s) longer than each of ``x``, a line per run with jobs."""
    known = [np.sort(wait) for wait in waits if len(wait)]
    if not known:
        return None
    shares = [1 - np.searchsorted(wait, x, side="right") / len(wait) for wait in known]
    return Curve(x, np.stack(shares))
