"""A run over time: processors in use and the queue, submissions and lateness, with what changed.

Each picture has a function that gives what it shows as columns.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.metrics import submitted
from hpcrowd.analysis.pictures.platform_marks import draw_marks
from hpcrowd.analysis.pictures.plots import (
    COLOURS,
    LEGEND,
    TITLE,
    Line,
    averaged,
    draw_queue,
    draw_submissions,
    draw_usage,
    label_week,
    lines_of,
    new_figure,
    say_nothing,
    tidy,
    time_axis,
)
from hpcrowd.analysis.profiles import weekly_profile
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Columns of a picture as data: names with their units, and values of equal length.
Columns = dict[str, Any]

#: Most bins of curves that are lines.
LINE_BINS = 180

#: Percentiles of lateness that are drawn.
LATENESS = (10, 50, 90)

#: Fewest submissions of a bin whose lateness is drawn.
FEWEST = 5

#: Units of lateness: from so many s on, s of one, name.
LATE_UNITS = ((3 * DAY, DAY, "days"), (3 * HOUR, HOUR, "h"), (0, 60, "min"))


def use_over_time(run: Run) -> Figure:
    """Return processors in use and jobs in the queue over time, as recorded, too, where known.

    Changes of the platform are marked, see :mod:`hpcrowd.analysis.pictures.platform_marks`.
    """
    figure = new_figure(12, 5.4, "Processors in use and the queue", run.label)
    grid = figure.add_gridspec(2, 1, left=0.055, right=0.985, bottom=0.085, top=0.85, hspace=0.36)
    above, below = (figure.add_subplot(grid[row]) for row in (0, 1))
    draw_usage(above, run)
    draw_queue(below, run)
    span = curves.span_of(run.jobs)
    before = recorded_jobs(run)
    if span is None:
        return figure
    if before is not None:
        edges = curves.time_edges(*span, LINE_BINS)
        levels = curves.processors_in_use(before, edges), curves.jobs_waiting(before, edges)
        for axes, level in zip((above, below), levels, strict=True):
            if level.any():
                axes.stairs(
                    level, edges, baseline=None, color="#222222", linewidth=1.0,
                    label=f"recorded, {averaged(edges)}",
                )  # fmt: skip
                top = max(axes.get_ylim()[1], 1.05 * float(level.max()))
                axes.set_ylim(0, top)
        figure.legend(
            *above.get_legend_handles_labels(), loc="upper right", bbox_to_anchor=(0.985, 0.99),
            **LEGEND,
        )  # fmt: skip
    draw_marks((above, below), run)
    return figure


def use_data(run: Run) -> Columns:
    """Return what :func:`use_over_time` shows: averages over bins, which begin at ``begin_s``."""
    span = curves.span_of(run.jobs)
    edges = curves.time_edges(*(span or (0, DAY)), 720)
    found: Columns = {
        "begin_s": edges[:-1],
        "begin_local_time": local_times(run, edges[:-1]),
        "processors_in_use": curves.processors_in_use(run.jobs, edges),
        "jobs_in_queue": curves.jobs_waiting(run.jobs, edges),
    }
    before = recorded_jobs(run)
    if before is not None:
        found["recorded_processors_in_use"] = curves.processors_in_use(before, edges)
        found["recorded_jobs_in_queue"] = curves.jobs_waiting(before, edges)
    return found


def submissions_over_time(run: Run) -> Figure:
    """Return submissions until a time, recorded and simulated, and how late they are.

    Without a record, submissions and ends; and instead of lateness the submissions per day.
    """
    title = "Submissions, and how late they are" if is_late(run) else "Submissions"
    figure = new_figure(12, 3.9, title, run.label)
    grid = figure.add_gridspec(1, 2, left=0.06, right=0.985, bottom=0.13, top=0.78, wspace=0.16)
    left, right = (figure.add_subplot(grid[place]) for place in (0, 1))
    draw_submissions(left, run)
    draw = _draw_lateness if is_late(run) else _draw_rate
    draw(right, run)
    return figure


def submissions_data(run: Run) -> Columns:
    """Return what :func:`submissions_over_time` shows; lateness by the recorded submission."""
    jobs = run.jobs
    first, last = curves.span_of(jobs) or (0, DAY)
    recorded = jobs.recorded_submit[jobs.recorded_submit != UNKNOWN]
    first, last = int(recorded.min(initial=first)), int(recorded.max(initial=last))
    edges = curves.time_edges(first, last, LINE_BINS)
    found: Columns = {
        "end_s": edges[1:],
        "end_local_time": local_times(run, edges[1:]),
        "submitted_until_then": curves.cumulative(jobs.submit, edges[1:]),
        "ended_until_then": curves.cumulative(jobs.end, edges[1:]),
    }
    if is_late(run):
        found["recorded_until_then"] = curves.cumulative(jobs.recorded_submit, edges[1:])
        for p, values in zip(LATENESS, _lateness_bands(jobs, edges), strict=True):
            found[f"lateness_p{p}_s"] = values
    return found


def week_of(run: Run) -> Figure:
    """Return which share of the jobs comes in each hour of the week, recorded and simulated."""
    figure = new_figure(12, 3.2, "The week of the users", run.label)
    axes = figure.add_axes((0.045, 0.15, 0.94, 0.59))
    tidy(axes)
    axes.set_title("Share of all jobs submitted in each hour of the week, %", **TITLE)
    found = _weeks(run)
    if not found:
        say_nothing(axes, "nothing was submitted")
        return figure
    hours = np.arange(curves.WEEK_HOURS + 1)
    for (name, _, colour, width), share in found:
        axes.stairs(share, hours, color=COLOURS[colour], linewidth=width, label=name, baseline=None)
    label_week(axes, run)
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])  # room for the legend
    axes.legend(**LEGEND, loc="upper right", ncols=len(found))
    return figure


def week_data(run: Run) -> Columns:
    """Return what :func:`week_of` shows, for each hour of the week from Monday 00:00 on."""
    return {
        "hour_of_week": np.arange(curves.WEEK_HOURS),
        **{f"{line[0]}_percent": share for line, share in _weeks(run)},
    }


def _weeks(run: Run) -> list[tuple[Line, Any]]:
    """Return the lines of :func:`week_of` with their values, %."""
    recorded = run.jobs.recorded_submit
    lines = lines_of(run, recorded[recorded != UNKNOWN], run.jobs.submit)
    found = [(line, 100 * weekly_profile(line[1], run.clock)) for line in lines]
    return [(line, share) for line, share in found if share.any()]


def has_record(run: Run) -> bool:
    """Return whether a run has a record to be set against; a record itself has none."""
    jobs = run.jobs
    known = (jobs.recorded_submit != UNKNOWN) & (jobs.recorded_start != UNKNOWN)
    return not run.is_record and bool(known.any())


def recorded_jobs(run: Run) -> JobTable | None:
    """Return the jobs as they were recorded; None without, or where the run is the record."""
    jobs = run.jobs
    if not has_record(run):
        return None
    known = (jobs.recorded_submit != UNKNOWN) & (jobs.recorded_start != UNKNOWN)
    before = jobs.take(np.flatnonzero(known))
    before.submit[:], before.start[:] = before.recorded_submit, before.recorded_start
    before.end[:] = before.recorded_end
    return before


def local_times(run: Run, seconds: Int64s) -> list[str]:
    """Return local times in ISO 8601; nothing where the trace does not say when it began."""
    if run.clock.nominal:
        return [""] * len(seconds)
    return [run.clock.local(second).isoformat() for second in seconds.tolist()]


def is_late(run: Run) -> bool:
    """Return whether the lateness of a run says something: a simulation of recorded jobs."""
    return not run.is_record and bool(submitted(run.jobs).any())


def _lateness_bands(jobs: JobTable, edges: Int64s) -> np.ndarray:
    """Return percentiles of lateness by the bin of the recorded submission, s; NaN for few jobs."""
    rows = np.flatnonzero(submitted(jobs))
    rows = rows[np.argsort(jobs.recorded_submit[rows], kind="stable")]
    late = jobs.submit[rows] - jobs.recorded_submit[rows]
    cuts = np.searchsorted(jobs.recorded_submit[rows], edges)
    found = np.full((len(LATENESS), len(edges) - 1), np.nan)
    for place, (begin, end) in enumerate(pairwise(cuts.tolist())):
        if end - begin >= FEWEST:
            found[:, place] = np.percentile(late[begin:end], LATENESS)
    return found


def _draw_lateness(axes: Axes, run: Run) -> None:
    jobs = run.jobs
    which = submitted(jobs)
    recorded = jobs.recorded_submit[which]
    first, last = int(recorded.min()), int(recorded.max())
    edges = curves.time_edges(first, last, LINE_BINS // 3)
    tidy(axes)
    low, middle, high = _lateness_bands(jobs, edges)
    if np.isnan(middle).all():
        axes.set_title("Lateness", **TITLE)
        return say_nothing(axes, f"fewer than {FEWEST} submissions at a time")
    furthest = float(np.nanmax(np.abs([low, high])))
    size, unit = next((size, unit) for least, size, unit in LATE_UNITS if furthest >= least)
    axes.set_title(f"Lateness, {unit}: simulated minus recorded submission, by the latter", **TITLE)
    axes.stairs(
        high / size, edges, baseline=low / size, fill=True, color=COLOURS["sky"], alpha=0.55,
        label="10 to 90 % of the jobs",
    )  # fmt: skip
    axes.stairs(
        middle / size, edges, baseline=None, color=COLOURS["blue"], linewidth=1.4, label="median"
    )
    axes.axhline(0, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    if furthest == 0:
        axes.set_ylim(-1, 1)
    axes.legend(**LEGEND, loc="best")
    return time_axis(axes, run, first, last, labels=6)


def _draw_rate(axes: Axes, run: Run) -> None:
    """Draw the submissions per day."""
    tidy(axes)
    axes.set_title("Jobs submitted per day", **TITLE)
    known = run.jobs.submit[run.jobs.submit != UNKNOWN]
    if not len(known):
        return say_nothing(axes, "nothing was submitted")
    first, last = int(known.min()), int(known.max())
    edges = curves.time_edges(first, last, LINE_BINS // 3)
    rate = np.histogram(known, edges)[0] * DAY / np.diff(edges)
    axes.stairs(rate, edges, fill=True, color=COLOURS["sky"])
    axes.set_ylim(0, 1.08 * float(rate.max()))
    return time_axis(axes, run, first, last, labels=6)
