"""The overview of a run, and the panels that it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.accounts.platform import sizes_of
from hpcrowd.analysis.curves import size_steps
from hpcrowd.analysis.pictures.plots import (
    COLOURS,
    LEGEND,
    TITLE,
    WAIT_LABELS,
    averaged,
    figure_png,
    label_week,
    new_figure,
    say_nothing,
    tidy,
    time_axis,
)
from hpcrowd.analysis.run import Run
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: A line of a picture: its label, the values behind it (s), the name of its colour, its width.
type Line = tuple[str, Int64s, str, float]


#: Most bins of a curve over time; pictures are about a thousand pixels wide.
TIME_BINS = 720


def overview(run: Run) -> Figure:
    """Return the overview of a run: processors in use, queue, submissions, waits, weekly profile.

    Where there is a record, submissions, waits and profile show it beside the simulation.
    """
    jobs = run.jobs
    ended = int(np.count_nonzero(jobs.over))
    of = "" if run.source is None else f"{run.source['source']}: "
    figure = new_figure(
        12,
        8.2,
        run.label,
        f"{of}{len(jobs):,} jobs, {ended:,} ran to an end, on {run.processors:,} processors",
    )
    grid = figure.add_gridspec(
        3, 3, left=0.055, right=0.985, bottom=0.065, top=0.895, hspace=0.42, wspace=0.24
    )
    draw_usage(figure.add_subplot(grid[0, :]), run)
    draw_queue(figure.add_subplot(grid[1, :]), run)
    draw_submissions(figure.add_subplot(grid[2, 0]), run)
    draw_waits(figure.add_subplot(grid[2, 1]), run)
    draw_week(figure.add_subplot(grid[2, 2]), run)
    return figure


def write_overview(run: Run, folder: str | Path) -> list[Path]:
    """Draw :func:`overview` as ``overview.png`` in an existing folder; return the paths."""
    path = Path(folder) / "overview.png"
    path.write_bytes(figure_png(overview(run)))
    return [path]


def draw_usage(axes: Axes, run: Run) -> None:
    """Draw the processors in use over time."""
    span = curves.span_of(run.jobs)
    tidy(axes)
    if span is None:
        return say_nothing(axes, "nothing was submitted")
    edges = curves.time_edges(*span, TIME_BINS)
    level = curves.processors_in_use(run.jobs, edges)
    axes.stairs(level, edges, fill=True, color=COLOURS["sky"])
    steps = size_steps(run.processors, sizes_of(run.platform), *span)
    times, sizes = zip(*steps, (span[1], steps[-1][1]), strict=True)
    style: dict[str, Any] = {"color": "black", "linewidth": 0.8, "linestyle": (0, (4, 3))}
    axes.step(times, sizes, where="post", **style)
    axes.set_ylim(0, 1.08 * max(1, *sizes))
    axes.set_title(f"Processors in use, {averaged(edges)}; dashed: all", **TITLE)
    time_axis(axes, run, *span, named=False)


def draw_queue(axes: Axes, run: Run) -> None:
    """Draw the jobs in the queue over time."""
    span = curves.span_of(run.jobs)
    tidy(axes)
    if span is None:
        return say_nothing(axes, "nothing was submitted")
    edges = curves.time_edges(*span, TIME_BINS)
    level = curves.jobs_waiting(run.jobs, edges)
    axes.set_title(f"Jobs in the queue, {averaged(edges)}", **TITLE)
    if not level.any():
        return say_nothing(axes, "nobody waited")
    axes.stairs(level, edges, fill=True, color=COLOURS["orange"])
    axes.set_ylim(0, max(1.0, 1.05 * float(level.max())))
    time_axis(axes, run, *span)


def draw_submissions(axes: Axes, run: Run) -> None:
    """Draw how many jobs were submitted by when: recorded and simulated, or submitted and ended."""
    jobs = run.jobs
    span = curves.span_of(jobs)
    tidy(axes)
    if span is None:
        return say_nothing(axes, "nothing was submitted")
    recorded = jobs.recorded_submit[jobs.recorded_submit != UNKNOWN]
    first, last = span
    if len(recorded):
        last = max(int(jobs.submit.max()), int(recorded.max()))
        first = min(first, int(recorded.min()))
        pairs = lines_of(run, recorded, jobs.submit)
    else:
        pairs = [("submitted", jobs.submit, "blue", 1.3), ("ended", jobs.end, "vermilion", 1.3)]
    edges = curves.time_edges(first, last, TIME_BINS // 2)
    for name, times, colour, width in pairs:
        counts = curves.cumulative(times, edges)
        axes.plot(edges, counts, color=COLOURS[colour], linewidth=width, label=name)
    axes.set_ylim(bottom=0)
    axes.set_title("Jobs submitted until then" if len(recorded) else "Jobs until then", **TITLE)
    axes.legend(**LEGEND, loc="upper left")
    time_axis(axes, run, first, last, labels=4)


def draw_waits(axes: Axes, run: Run) -> None:
    """Draw the share of jobs that waited longer than so long."""
    draw_exceedance(axes, lines_of(run, *waits_of(run)))


def waits_of(run: Run) -> tuple[Int64s, Int64s]:
    """Return recorded waits, and simulated waits of jobs that ran, s; without a record none."""
    jobs = run.jobs
    known, ran = jobs.recorded_start != UNKNOWN, jobs.over
    recorded = (jobs.recorded_start - jobs.recorded_submit)[known]
    return recorded, (jobs.start - jobs.submit)[ran]


def lines_of(run: Run, recorded: Int64s, simulated: Int64s) -> list[Line]:
    """Return the lines of a picture of record and simulation; a record alone is one line."""
    if run.is_record:
        return [("recorded", simulated, "blue", 1.3)]
    lines = [("simulated", simulated, "blue", 1.3)]
    return [("recorded", recorded, "grey", 2.8), *lines] if len(recorded) else lines


def draw_exceedance(
    axes: Axes, lines: Sequence[Line], title: str = "Share of jobs that waited longer than ..."
) -> None:
    """Draw the exceedance of waits (s): for each line its label, waits, colour and width."""
    tidy(axes)
    axes.set_title(title, **TITLE)
    found = [(line, curves.exceedance(line[1])) for line in lines]
    drawn = [(line, curve) for line, curve in found if curve is not None]
    if not drawn:
        return say_nothing(axes, "nobody waited" if any(len(w) for _, w, *_ in lines) else "no job")
    from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

    for (name, _, colour, width), (x, share) in drawn:
        axes.plot(x, share, color=COLOURS[colour], linewidth=width, label=name)
    axes.set_xscale("log")
    axes.set_ylim(0, 1)
    right = max(float(x[-1]) for _, (x, _) in drawn)
    axes.set_xlim(1, max(1.5 * right, 60))
    shown = {second: text for second, text in WAIT_LABELS.items() if second <= axes.get_xlim()[1]}
    axes.xaxis.set_major_locator(FixedLocator(list(shown)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(list(shown.values()))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("wait", fontsize=8.5)
    axes.legend(**LEGEND, loc="upper right")


def draw_week(axes: Axes, run: Run) -> None:
    """Draw the submissions per hour over a mean week."""
    recorded = run.jobs.recorded_submit
    draw_profiles(axes, run, lines_of(run, recorded[recorded != UNKNOWN], run.jobs.submit))


def draw_profiles(axes: Axes, run: Run, lines: Sequence[Line]) -> None:
    """Draw weekly profiles of submissions: for each line its label, times, colour and width."""
    tidy(axes)
    axes.set_title("Jobs submitted per h over a mean week", **TITLE)
    found = [(line, curves.weekly_rates(line[1], run.clock)) for line in lines]
    hours = np.arange(curves.WEEK_HOURS + 1)
    empty = True
    for (name, _, colour, width), profile in found:
        if profile is not None:
            empty = False
            axes.stairs(
                profile, hours, color=COLOURS[colour], linewidth=width, label=name, baseline=None
            )
    if empty:
        return say_nothing(axes, "nothing was submitted")
    label_week(axes, run.clock)
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])  # room for the legend
    axes.legend(**LEGEND, loc="upper right", ncols=len(found))
