"""A run over time: load, submissions, lateness and week.

Most pictures have a function that returns their data as columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.curves import Floats, size_steps, weekly_profile
from hpcrowd.analysis.metrics import submitted
from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: A line of a picture: label, values (s), name of the colour, width.
type Line = tuple[str, Int64s, str, float]


#: Most bins of a curve over time; pictures are about a thousand pixels wide.
TIME_BINS = 720


def overview(run: Run) -> Figure:
    """Return the overview of a run: processors in use, queue, submissions, waits, weekly profile.

    If there is a record, submissions, waits and profile show it with the simulation.
    """
    jobs = run.jobs
    ended = int(np.count_nonzero(jobs.over))
    source = run.reading.source
    of = "" if source is None else f"{source['source']}: "
    figure = plots.new_figure(
        12,
        8.2,
        run.label,
        f"{of}{len(jobs):,} jobs, {ended:,} ran to their end, on {run.processors:,} processors",
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
    """Write :func:`overview` as ``overview.png`` into an existing folder; return the paths."""
    path = Path(folder) / "overview.png"
    path.write_bytes(plots.figure_png(overview(run)))
    return [path]


def draw_usage(axes: Axes, run: Run) -> None:
    """Draw the processors in use over time."""
    span = curves.span_of(run.runs)
    plots.tidy(axes)
    if span is None:
        return plots.say_nothing(axes, "nothing was submitted")
    edges = curves.time_edges(*span, TIME_BINS)
    level = curves.processors_in_use(run.runs, edges)
    axes.stairs(level, edges, fill=True, color=plots.COLOURS["sky"])
    steps = size_steps(run.processors, run.parts.sizes, *span)
    plots.draw_size(axes, steps, span[1])
    axes.set_ylim(0, 1.08 * max(1, *(size for _, size in steps)))
    axes.set_title(f"Processors in use, {plots.averaged(edges)}; dashed: all", **plots.TITLE)
    plots.time_axis(axes, run, *span, named=False)


def draw_queue(axes: Axes, run: Run) -> None:
    """Draw the jobs in the queue over time."""
    span = curves.span_of(run.runs)
    plots.tidy(axes)
    if span is None:
        return plots.say_nothing(axes, "nothing was submitted")
    edges = curves.time_edges(*span, TIME_BINS)
    level = curves.jobs_waiting(run.runs, edges)
    axes.set_title(f"Jobs in the queue, {plots.averaged(edges)}", **plots.TITLE)
    if not level.any():
        return plots.say_nothing(axes, "no job waited")
    axes.stairs(level, edges, fill=True, color=plots.COLOURS["orange"])
    axes.set_ylim(0, max(1.0, 1.05 * float(level.max())))
    plots.time_axis(axes, run, *span)


def draw_submissions(axes: Axes, run: Run) -> None:
    """Draw jobs submitted so far, recorded and simulated; without a record, submitted and ended."""
    jobs = run.jobs
    span = curves.span_of(jobs)
    plots.tidy(axes)
    if span is None:
        return plots.say_nothing(axes, "nothing was submitted")
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
        axes.plot(edges, counts, color=plots.COLOURS[colour], linewidth=width, label=name)
    axes.set_ylim(bottom=0)
    axes.set_title("Jobs submitted so far" if len(recorded) else "Jobs so far", **plots.TITLE)
    axes.legend(**plots.LEGEND, loc="upper left")
    plots.time_axis(axes, run, first, last, labels=4)


def draw_waits(axes: Axes, run: Run) -> None:
    """Draw the share of jobs that waited longer than a given time."""
    draw_exceedance(axes, lines_of(run, *waits_of(run)))


def waits_of(run: Run) -> tuple[Int64s, Int64s]:
    """Return recorded waits (none without a record) and simulated waits of jobs that ran, s."""
    jobs = run.jobs
    known, ran = jobs.recorded_start != UNKNOWN, jobs.over
    recorded = (jobs.recorded_start - jobs.recorded_submit)[known]
    return recorded, (jobs.start - jobs.submit)[ran]


def lines_of(run: Run, recorded: Int64s, simulated: Int64s) -> list[Line]:
    """Return the lines for record and simulation; a record alone is one line."""
    if run.is_record:
        return [("recorded", simulated, "blue", 1.3)]
    lines = [("simulated", simulated, "blue", 1.3)]
    return [("recorded", recorded, "grey", 2.8), *lines] if len(recorded) else lines


def draw_exceedance(
    axes: Axes, lines: Sequence[Line], title: str = "Share of jobs that waited longer than ..."
) -> None:
    """Draw the exceedance of waits (s); a line has label, waits, colour and width."""
    plots.tidy(axes, title)
    found = [(line, curves.exceedance(line[1])) for line in lines]
    drawn = [(line, curve) for line, curve in found if curve is not None]
    if not drawn:
        return plots.say_nothing(
            axes, "no job waited" if any(len(w) for _, w, *_ in lines) else "no job"
        )
    for (name, _, colour, width), (x, share) in drawn:
        axes.plot(x, share, color=plots.COLOURS[colour], linewidth=width, label=name)
    right = max(float(x[-1]) for _, (x, _) in drawn)
    plots.wait_axes(axes, max(1.5 * right, 60))
    axes.set_xlabel("wait", fontsize=8.5)
    axes.legend(**plots.LEGEND, loc="upper right")


def draw_week(axes: Axes, run: Run) -> None:
    """Draw the submissions per hour of a mean week."""
    draw_profiles(axes, run, _submissions(run))


def draw_profiles(
    axes: Axes,
    run: Run,
    lines: Sequence[Line],
    title: str = "Jobs submitted per hour, mean week",
    profile_of: Callable[[Int64s, Clock], Floats | None] = curves.weekly_rates,
) -> None:
    """Draw weekly profiles of submissions; a line has label, times, colour and width."""
    plots.tidy(axes, title)
    profiles = [(line, profile_of(line[1], run.clock)) for line in lines]
    found = [(line, profile) for line, profile in profiles if profile is not None]
    if not found:
        return plots.say_nothing(axes, "nothing was submitted")
    hours = np.arange(curves.WEEK_HOURS + 1)
    for (name, _, colour, width), profile in found:
        axes.stairs(
            profile, hours, color=plots.COLOURS[colour], linewidth=width, label=name, baseline=None
        )
    plots.label_week(axes, run.clock)
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])  # room for the legend
    axes.legend(**plots.LEGEND, loc="upper right", ncols=len(found))


def _submissions(run: Run) -> list[Line]:
    """Return the lines of submissions, recorded and simulated."""
    recorded = run.jobs.recorded_submit
    return lines_of(run, recorded[recorded != UNKNOWN], run.jobs.submit)


#: Data of a picture: columns of equal length, by name with unit.
Columns = dict[str, Any]

#: Most bins of line curves.
LINE_BINS = 180

#: Percentiles of lateness that are drawn.
LATENESS = (10, 50, 90)

#: Fewest submissions in a bin to draw its lateness.
FEWEST = 5

#: Units of lateness: smallest value shown in it (s), its length (s), name.
LATE_UNITS = ((3 * DAY, DAY, "days"), (3 * HOUR, HOUR, "h"), (0, 60, "min"))


def use_over_time(run: Run) -> Figure:
    """Return a picture of processors in use and the queue over time, with the record if known.

    Parts of the run may mark what they changed, see :meth:`hpcrowd.analysis.parts.RunPart.mark`.
    """
    figure = plots.new_figure(12, 5.4, "Processors in use and the queue", plots.run_name(run))
    above, below = plots.panels(figure, 2, 1, bottom=0.085, top=0.85, hspace=0.36)
    draw_usage(above, run)
    draw_queue(below, run)
    span = curves.span_of(run.runs)
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
                    label=f"recorded, {plots.averaged(edges)}",
                )  # fmt: skip
                top = max(axes.get_ylim()[1], 1.05 * float(level.max()))
                axes.set_ylim(0, top)
        plots.legend_at_right(figure, above)
    for part in run.parts.values():
        part.mark((above, below), run)
    return figure


def use_data(run: Run) -> Columns:
    """Return the data of :func:`use_over_time`: averages over bins that begin at ``begin_s``."""
    span = curves.span_of(run.runs)
    edges = curves.time_edges(*(span or (0, DAY)), 720)
    found: Columns = {
        "begin_s": edges[:-1],
        "begin_local_time": local_times(run, edges[:-1]),
        "processors_in_use": curves.processors_in_use(run.runs, edges),
        "jobs_in_queue": curves.jobs_waiting(run.runs, edges),
    }
    before = recorded_jobs(run)
    if before is not None:
        found["recorded_processors_in_use"] = curves.processors_in_use(before, edges)
        found["recorded_jobs_in_queue"] = curves.jobs_waiting(before, edges)
    return found


def submissions_over_time(run: Run) -> Figure:
    """Return a picture of submissions so far, recorded and simulated, and of their lateness.

    Without a record: submissions and ends, and submissions per day instead of lateness.
    """
    title = "Submissions and their lateness" if is_late(run) else "Submissions"
    figure = plots.new_figure(12, 3.9, title, plots.run_name(run))
    left, right = plots.panels(figure, 1, 2, left=0.06, bottom=0.13, top=0.78, wspace=0.16)
    draw_submissions(left, run)
    (_draw_lateness if is_late(run) else _draw_rate)(right, run)
    return figure


def submissions_data(run: Run) -> Columns:
    """Return the data of :func:`submissions_over_time`; lateness is by recorded submission."""
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
    """Return a picture of the share of jobs by hour of the week, recorded and simulated."""
    figure = plots.new_figure(12, 3.2, "Submissions over the week", plots.run_name(run))
    axes = figure.add_axes((0.045, 0.15, 0.94, 0.59))
    title = "Share of all jobs submitted in each hour of the week, %"
    draw_profiles(axes, run, _submissions(run), title, _percent)
    return figure


def week_data(run: Run) -> Columns:
    """Return the data of :func:`week_of`, for each hour of the week from Monday 00:00."""
    found = [(name, _percent(times, run.clock)) for name, times, *_ in _submissions(run)]
    return {
        "hour_of_week": np.arange(curves.WEEK_HOURS),
        **{f"{name}_percent": share for name, share in found if share is not None},
    }


def _percent(times: Int64s, clock: Clock) -> Floats | None:
    """Return the share of submissions in each hour of the week, %; None without submissions."""
    share: Floats = 100 * weekly_profile(times, clock)
    return share if share.any() else None


def has_record(run: Run) -> bool:
    """Return whether a run has a record to compare with; a record itself has none."""
    jobs = run.jobs
    known = (jobs.recorded_submit != UNKNOWN) & (jobs.recorded_start != UNKNOWN)
    return not run.is_record and bool(known.any())


def recorded_jobs(run: Run) -> JobTable | None:
    """Return the jobs as recorded; None without a record or if the run is the record."""
    jobs = run.jobs
    if not has_record(run):
        return None
    known = (jobs.recorded_submit != UNKNOWN) & (jobs.recorded_start != UNKNOWN)
    before = jobs.take(np.flatnonzero(known))
    before.submit[:], before.start[:] = before.recorded_submit, before.recorded_start
    before.end[:] = before.recorded_end
    return before


def local_times(run: Run, seconds: Int64s) -> list[str]:
    """Return local times in ISO 8601; empty if the trace does not give its start."""
    if run.clock.nominal:
        return [""] * len(seconds)
    return [run.clock.local(second).isoformat() for second in seconds.tolist()]


def is_late(run: Run) -> bool:
    """Return whether lateness makes sense for a run: it simulates recorded jobs."""
    return not run.is_record and bool(submitted(run.jobs).any())


def _lateness_bands(jobs: JobTable, edges: Int64s) -> np.ndarray:
    """Return percentiles of lateness by bin of recorded submission, s; NaN where jobs are few."""
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
    plots.tidy(axes)
    low, middle, high = _lateness_bands(jobs, edges)
    if np.isnan(middle).all():
        axes.set_title("Lateness", **plots.TITLE)
        return plots.say_nothing(axes, f"fewer than {FEWEST} submissions in each interval")
    furthest = float(np.nanmax(np.abs([low, high])))
    size, unit = next((size, unit) for least, size, unit in LATE_UNITS if furthest >= least)
    axes.set_title(
        f"Lateness, {unit}: simulated minus recorded submission, by recorded time", **plots.TITLE
    )
    axes.stairs(
        high / size, edges, baseline=low / size, fill=True, color=plots.COLOURS["sky"], alpha=0.55,
        label="10 to 90 % of the jobs",
    )  # fmt: skip
    axes.stairs(
        middle / size,
        edges,
        baseline=None,
        color=plots.COLOURS["blue"],
        linewidth=1.4,
        label="median",
    )
    axes.axhline(0, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    if furthest == 0:
        axes.set_ylim(-1, 1)
    axes.legend(**plots.LEGEND, loc="best")
    return plots.time_axis(axes, run, first, last, labels=6)


def _draw_rate(axes: Axes, run: Run) -> None:
    """Draw the submissions per day."""
    plots.tidy(axes, "Jobs submitted per day")
    known = run.jobs.submit[run.jobs.submit != UNKNOWN]
    if not len(known):
        return plots.say_nothing(axes, "nothing was submitted")
    first, last = int(known.min()), int(known.max())
    edges = curves.time_edges(first, last, LINE_BINS // 3)
    rate = np.histogram(known, edges)[0] * DAY / np.diff(edges)
    axes.stairs(rate, edges, fill=True, color=plots.COLOURS["sky"])
    axes.set_ylim(0, 1.08 * float(rate.max()))
    return plots.time_axis(axes, run, first, last, labels=6)
